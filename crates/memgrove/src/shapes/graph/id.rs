//! How nodes and connections are named: readably, and never twice the same.
//!
//! An id is a prefix and a number: `mem_project_001`. The number is one more than the highest known. That
//! it is free is proved by its file, which must be absent when it is created: of two who choose the same
//! number, one chooses again, a little further on. A number is not used again after its node is deleted.
//! Where absence cannot be proved, in a store that a sync tool replicates or a repository whose branches
//! may be merged, an id also ends in six random letters and digits.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::error::{Error, Kind, Result, code};

/// What every id of a node begins with.
const MEM: &str = "mem";
/// What every id of a connection begins with.
pub(super) const CONN: &str = "conn";
const PREFIX_CHARS_MAX: usize = 24;
const ID_CHARS_MAX: usize = 120;
/// The highest number that counts; one with more digits was not given by memgrove.
const NUMBER_MAX: u64 = 999_999_999_999;
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Returns the prefix of ids for nodes of a type: `mem_`, and the ontology's prefix or the type's name
/// reduced to letters and digits, without accents.
pub(super) fn node_prefix(prefix: Option<&str>, kind: &str) -> String {
    format!("{MEM}_{}", reduced(prefix.unwrap_or(kind)))
}

fn reduced(name: &str) -> String {
    let mut reduced = String::new();
    for c in name.nfkd().filter(|c| !is_combining_mark(*c)).take(PREFIX_CHARS_MAX) {
        match c {
            c if c.is_ascii_alphanumeric() => reduced.push(c.to_ascii_lowercase()),
            _ if reduced.ends_with('_') => {}
            _ => reduced.push('_'),
        }
    }
    let trimmed = reduced.trim_matches('_');
    if trimmed.is_empty() { "node".to_owned() } else { trimmed.to_owned() }
}

/// Refuses an invalid id.
///
/// # Errors
/// `Invalid`, naming what an id is made of.
pub(super) fn check(id: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.len() <= ID_CHARS_MAX && id.bytes().all(fits) && !id.starts_with('-') {
        return Ok(());
    }
    let shown: String = id.chars().take(40).collect();
    Err(Error::new(Kind::Invalid, format!("`{}` cannot be an id", shown.escape_debug()))
        .code(code::INVALID_PATH)
        .hint("an id has letters, digits, `_` and `-`, at most 120 of them, such as mem_project_001"))
}

/// Writes an id.
pub(super) fn spelled(prefix: &str, number: u64, random: Option<[u8; 16]>) -> String {
    let mut id = format!("{prefix}_{number:03}");
    if let Some(random) = random {
        id.push('_');
        id.extend(random.iter().take(6).map(|byte| char::from(LETTERS[usize::from(byte % 32)])));
    }
    id
}

/// Returns the prefix and the number of an id, if it has them.
fn parts(id: &str) -> Option<(&str, u64)> {
    let numbered = |id: &'_ str| -> Option<usize> {
        let (prefix, digits) = id.rsplit_once('_')?;
        (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(prefix.len())
    };
    let (end, head) = match numbered(id) {
        Some(end) => (end, id),
        None => {
            let (head, _) = id.rsplit_once('_')?;
            (numbered(head)?, head)
        }
    };
    let number = head[end + 1..].parse().ok().filter(|number| *number <= NUMBER_MAX)?;
    Some((&id[..end], number))
}

/// Returns the prefix of a node's id without `mem_`: the ontology's prefix, or the type.
pub(super) fn kind_prefix(id: &str) -> Option<&str> {
    parts(id)?.0.strip_prefix(MEM)?.strip_prefix('_')
}

/// The content of the file that remembers given numbers, so that the registry need not be read for them.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Given {
    #[serde(flatten)]
    pub(super) numbers: Numbers,
    /// The length of the tail up to which the numbers are complete. Without it, the tail may contain more.
    #[serde(rename = "registry.tail.jsonl", default, skip_serializing_if = "Option::is_none")]
    pub(super) tail: Option<u64>,
}

impl Given {
    /// Reads such a file; `None` if it cannot be read.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn print(&self) -> String {
        serde_json::to_string(self).expect("numbers are plain data") + "\n"
    }
}

/// The highest number of each prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Numbers(BTreeMap<String, u64>);

impl Numbers {
    /// Takes in an id.
    pub(super) fn note(&mut self, id: &str) {
        let Some((prefix, number)) = parts(id) else { return };
        match self.0.get_mut(prefix) {
            Some(highest) => *highest = (*highest).max(number),
            None => drop(self.0.insert(prefix.to_owned(), number)),
        }
    }

    /// Takes in all other numbers.
    pub(super) fn join(&mut self, others: &Numbers) {
        for (prefix, number) in &others.0 {
            let highest = self.0.entry(prefix.clone()).or_default();
            *highest = (*highest).max(*number);
        }
    }

    /// Returns the number after the highest.
    pub(super) fn next(&self, prefix: &str) -> u64 {
        self.0.get(prefix).copied().unwrap_or(0).min(NUMBER_MAX) + 1
    }

    /// Takes in the ids in the lines of a tail, without parsing them.
    pub(super) fn scan(&mut self, lines: &[u8]) {
        for key in [&b"\"id\":\""[..], b"\"deleted_node\":\"", b"\"deleted_connection\":\""] {
            for start in memchr::memmem::find_iter(lines, key) {
                let rest = &lines[start + key.len()..];
                let end = rest.iter().take(ID_CHARS_MAX + 1).position(|byte| *byte == b'"').unwrap_or(0);
                if let Ok(id) = std::str::from_utf8(&rest[..end]) {
                    self.note(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_plain() {
        let check = |kind: &str, expected: &str| assert_eq!(node_prefix(None, kind), expected, "{kind:?}");
        check("project", "mem_project");
        check("Code Review!", "mem_code_review");
        check("../../far", "mem_far");
        check("人", "mem_node");
        check("", "mem_node");
        check("Ärger", "mem_arger");
        assert_eq!(node_prefix(Some("proj"), "project"), "mem_proj");
    }

    #[test]
    fn numbers_of_ids() {
        let mut numbers = Numbers::default();
        for id in
            ["mem_proj_007", "mem_proj_3", "conn_12", "mem_proj_009_abcdef", "odd", "mem_proj_99999999999999"]
        {
            numbers.note(id);
        }
        assert_eq!((numbers.next("mem_proj"), numbers.next("conn"), numbers.next("new")), (10, 13, 1));
        numbers.scan(
            b"{\"node\":{\"id\":\"mem_proj_041\"}}\n{\"deleted_connection\":\"conn_050\"}\n{\"id\":\"mem_pr",
        );
        assert_eq!((numbers.next("mem_proj"), numbers.next("conn")), (42, 51));
    }

    #[test]
    fn ids_that_are_refused() {
        for bad in ["", "a b", "a/b", "a.b", "..", "é", "-a", &"x".repeat(121)] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check("mem_proj_001").is_ok() && check("A-1").is_ok());
        assert_eq!(spelled("conn", 7, None), "conn_007");
        assert_eq!(spelled("conn", 1234, Some([0; 16])), "conn_1234_aaaaaa");
    }
}
