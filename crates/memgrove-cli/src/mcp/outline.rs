//! How a message that cannot be read is answered: with its id, found without reading the rest of it.

use serde_json::Value;

/// The longest outline; what comes after it is not looked at.
const OUTLINE_BYTES: usize = 4096;
/// The longest text that is kept in it.
const TEXT_BYTES: usize = 512;

/// The members of a line's outermost object, without nested values and long texts. Built piece by piece, it
/// stays small however long the line is and whatever is wrong inside.
#[derive(Debug, Default)]
pub(super) struct Outline {
    kept: Vec<u8>,
    depth: usize,
    /// Where the text that is being read begins in `kept`.
    text: Option<usize>,
    escaped: bool,
}

impl Outline {
    /// Takes the next piece of the line.
    pub(super) fn add(&mut self, piece: &[u8]) {
        piece.iter().for_each(|byte| self.step(*byte));
    }

    fn step(&mut self, byte: u8) {
        let depth = self.depth;
        let began = match (self.text, byte) {
            (None, b'"') => *self.text.insert(self.kept.len()),
            (None, _) => {
                match byte {
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.kept.len()
            }
            (Some(began), _) => {
                let ends = byte == b'"' && !self.escaped;
                self.escaped = byte == b'\\' && !self.escaped;
                if ends {
                    self.text = None;
                }
                began
            }
        };
        let is_long = self.kept.len() - began >= TEXT_BYTES;
        if is_long && self.text.is_none() {
            self.kept.truncate(began);
        } else if !is_long && depth.max(self.depth) <= 1 && self.kept.len() < OUTLINE_BYTES {
            self.kept.push(byte);
        }
    }

    /// The id of a request, or null. The id of a response is left out: the server chose it, and an answer
    /// with it could pass for the answer to a request of the client's.
    pub(super) fn id(&self) -> Value {
        let text = String::from_utf8_lossy(&self.kept);
        let is_response = ["result", "error"].iter().any(|name| member(&text, name).is_some());
        match member(&text, "id").filter(|_| text.trim_start().starts_with('{') && !is_response) {
            Some(rest) => id(rest).unwrap_or_default(),
            None => Value::Null,
        }
    }
}

/// Returns what follows a member's name and colon. Quotes within texts are escaped, so no text passes for a
/// name.
fn member<'a>(outline: &'a str, name: &str) -> Option<&'a str> {
    let quoted = format!("\"{name}\"");
    let mut names = outline.match_indices(&quoted).filter(|(at, _)| !outline[..*at].ends_with('\\'));
    names.find_map(|(at, _)| outline[at + quoted.len()..].trim_start().strip_prefix(':'))
}

/// The id at the beginning of a text, if it is complete.
fn id(text: &str) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let id = values.next()?.ok()?;
    let is_whole = text[values.byte_offset()..].trim_start().starts_with([',', '}']);
    (is_whole && (id.is_number() || id.is_string())).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The id of a line, which must not depend on how the line is split into pieces.
    fn id_of(line: &[u8]) -> Value {
        let mut whole = Outline::default();
        whole.add(line);
        let mut pieces = Outline::default();
        line.chunks(7).for_each(|piece| pieces.add(piece));
        assert_eq!(whole.id(), pieces.id());
        assert!(whole.kept.len() <= OUTLINE_BYTES, "{}", whole.kept.len());
        whole.id()
    }

    #[test]
    fn an_id_is_found_wherever_it_stands_and_whatever_is_wrong_elsewhere() {
        let long = "x\\\"".repeat(20_000);
        for (line, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":"{long}"}}"#), json!(7)),
            (format!(r#"{{"method":"m","params":"{long}","jsonrpc":"2.0","id":"a"}}"#), json!("a")),
            (format!(r#"{{"params":{{"id":3,"x":"{long}"}},"id" : 4}}"#), json!(4)),
            (format!(r#" {{"params":{}{},"id":5}}"#, "[".repeat(9_000), "]".repeat(9_000)), json!(5)),
            (r#"{"id":"é","params":["\ud83d",1e400,"}"],"method":"m"}"#.to_owned(), json!("é")),
            (r#"{"method":"id","id":6,"method":"#.to_owned(), json!(6)),
        ] {
            assert_eq!(id_of(line.as_bytes()), id, "{line:.100}");
        }
        assert_eq!(id_of(b"{\"params\":{\"text\":\"\xff\"},\"id\":8}"), 8);
    }

    #[test]
    fn what_is_no_id_of_a_request_is_none() {
        let long = "9".repeat(60_000);
        for line in [
            r#"{"method":"m","params":{"id":3,"text":"\ud83d"}}"#.to_owned(),
            r#"{"method":"m","params":"\"id\":3,"}"#.to_owned(),
            r#"{"id":3,"result":{"text":"\ud83d"}}"#.to_owned(),
            r#"[{"id":3,"method":"m"}]"#.to_owned(),
            r#"no JSON {"id":3}"#.to_owned(),
            r#"{"id":3"#.to_owned(),
            r#"{"id":1e400,"method":"m"}"#.to_owned(),
            r#"{"id":"\ud83d","method":"m"}"#.to_owned(),
            r#"{"id":[3],"method":"m"}"#.to_owned(),
            format!(r#"{{"id":"{long}","method":"m"}}"#),
            format!(r#"{{"id":{long},"method":"m"}}"#),
            long,
        ] {
            assert_eq!(id_of(line.as_bytes()), Value::Null, "{line:.100}");
        }
    }
}
