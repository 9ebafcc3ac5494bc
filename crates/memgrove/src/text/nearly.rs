//! Which bytes are text except for a few, as an editor with another encoding leaves them.

use std::borrow::Cow;
use std::iter::repeat_n;

/// At most one byte in this many may be invalid.
const ODD_SHARE: usize = 4;

/// Returns bytes that are mostly text as text. Each invalid byte becomes `?`, so that all others keep
/// their places. `None` for what was never text.
pub fn nearly_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let (mut text, mut odd) = (String::with_capacity(bytes.len()), 0);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(repeat_n('?', chunk.invalid().len()));
        odd += chunk.invalid().len();
    }
    (odd * ODD_SHARE <= bytes.len() && !bytes.contains(&0)).then_some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_bytes_keep_the_places_of_others() {
        for (bytes, told) in [
            (&b"plain"[..], Some("plain")),
            (b"caf\xe9 au lait", Some("caf? au lait")),
            (b"it was cut \xf0\x9f\x8c off", Some("it was cut ??? off")),
            (b"\xff\xfeT\0e\0a\0", None),
            (b"\x89\xd8\xff\xe0 JF", None),
        ] {
            assert_eq!(nearly_text(bytes).as_deref(), told, "{bytes:?}");
        }
        assert_eq!(nearly_text("é\0".as_bytes()).as_deref(), Some("é\0"));
    }
}
