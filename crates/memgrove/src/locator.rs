//! Where something is, as the seam names it: relative, normalised, never a path of the machine.

pub mod copies;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::error::{Error, Kind, Result, code};

/// The longest segment, in bytes, that every backend can hold.
pub const SEGMENT_BYTES_MAX: usize = 255;
/// The longest key, in bytes, that every backend can hold.
pub const KEY_BYTES_MAX: usize = 1024;

/// A place in a backend's namespace.
///
/// A locator is normalised when it is made, so it can never address anything outside the
/// backend's root:
///
/// | segment | result |
/// |---|---|
/// | empty, or `.` | dropped |
/// | leading `/` | dropped: a locator is always relative to the backend |
/// | `..` | refused |
/// | NUL or another control character, or over 255 bytes | refused |
/// | anything else | kept, in Unicode normal form C |
///
/// ```
/// use memgrove::Locator;
///
/// let at: Locator = "/notes//./projects/silica.md".parse()?;
/// assert_eq!(at.key(), "notes/projects/silica.md");
/// assert_eq!(at.name(), "silica.md");
/// assert!("notes/../../far".parse::<Locator>().is_err());
/// # Ok::<(), memgrove::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Locator {
    key: Box<str>,
}

impl Locator {
    /// The root of a backend.
    pub fn root() -> Self {
        Locator::default()
    }

    /// Makes a locator from a slash-separated key.
    ///
    /// # Errors
    /// `Invalid` (code `INVALID_PATH`) as the table above says.
    pub fn new(key: impl AsRef<str>) -> Result<Self> {
        Ok(Locator { key: normalize(key.as_ref())?.into() })
    }

    /// The normalised key: segments joined by `/`; empty for the root.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The key's segments; none for the root.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.key.split('/').filter(|part| !part.is_empty())
    }

    /// The final segment; empty for the root.
    pub fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or("")
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.key.is_empty()
    }

    /// The folder this is in; `None` for the root.
    pub fn parent(&self) -> Option<Locator> {
        if self.is_root() {
            return None;
        }
        let end = self.key.rfind('/').unwrap_or(0);
        Some(Locator { key: self.key[..end].into() })
    }

    /// Every folder above this, nearest first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Locator> {
        std::iter::successors(self.parent(), Locator::parent).take_while(|folder| !folder.is_root())
    }

    /// Derives a locator beneath this one.
    ///
    /// # Errors
    /// As [`Locator::new`].
    pub fn child(&self, part: impl AsRef<str>) -> Result<Locator> {
        Locator::new(format!("{}/{}", self.key, part.as_ref()))
    }

    /// Whether this is `folder` itself or lies beneath it.
    pub fn is_within(&self, folder: &Locator) -> bool {
        self.relative_to(folder).is_some()
    }

    /// The key of this locator seen from `folder`; empty when they are the same.
    pub fn relative_to(&self, folder: &Locator) -> Option<&str> {
        if folder.is_root() {
            return Some(&self.key);
        }
        let rest = self.key.strip_prefix(&*folder.key)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// The same place after `from` was renamed to `to`; `None` if it is not within `from`.
    pub fn rebased(&self, from: &Locator, to: &Locator) -> Option<Locator> {
        let rest = self.relative_to(from)?;
        let key = if rest.is_empty() || to.is_root() {
            format!("{}{rest}", to.key)
        } else {
            format!("{}/{rest}", to.key)
        };
        Some(Locator { key: key.into() })
    }

    /// Checks that something new may be made here: that every system can hold each of its names
    /// and that a person can see what they are.
    ///
    /// | name | why it is refused |
    /// |---|---|
    /// | `CON`, `PRN`, `AUX`, `NUL`, `COM1`…`COM9`, `LPT1`…`LPT9` (also with `¹²³`), `CONIN$`, `CONOUT$`, in any case, with any extension | a device on Windows |
    /// | ends in a dot or a space | Windows drops it |
    /// | has one of `< > : " \ \| ? *` in it | no file name on Windows |
    /// | has a bidirectional control or a zero-width character in it | it does not look like what it is |
    ///
    /// What is there already, made by other means, may still be read, overwritten, and moved away.
    ///
    /// # Errors
    /// `Invalid` (code `INVALID_PATH`) with a hint.
    pub fn check_creatable(&self) -> Result<()> {
        self.check_length()?;
        for name in self.parts() {
            if let Some((why, hint)) = unfit(name) {
                return Err(Error::new(Kind::Invalid, format!("`{}` {why}", self.key.escape_debug()))
                    .code(code::INVALID_PATH)
                    .hint(hint));
            }
        }
        Ok(())
    }

    /// Checks that the key is no longer than any may be. What lies in a folder can become so when it is moved.
    ///
    /// # Errors
    /// `Invalid` (code `INVALID_PATH`) with a hint.
    pub fn check_length(&self) -> Result<()> {
        match self.key.len() > KEY_BYTES_MAX {
            true => Err(too_long(&self.key)),
            false => Ok(()),
        }
    }
}

/// What a name is reduced to by systems that do not tell letter case apart. Two names with the
/// same key cannot both be in one folder on every system, so a backend refuses the second.
///
/// ```
/// use memgrove::locator::collision_key;
///
/// assert_eq!(collision_key("Straße.md"), collision_key("STRASSE.MD"));
/// assert_ne!(collision_key("a.md"), collision_key("b.md"));
/// ```
pub fn collision_key(name: &str) -> String {
    // Most names are plain, and a folder of thousands is compared for every new file.
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // Upper case first, for letters such as `ß` and `ſ` that only meet their twins there.
    let folded = name.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    folded.nfc().collect()
}

/// Why a name cannot be made, and what to do about it.
fn unfit(name: &str) -> Option<(&'static str, &'static str)> {
    if is_device(name) {
        return Some(("names a device on Windows", "choose another name, such as one with `_` in front"));
    }
    if name.ends_with(['.', ' ']) {
        return Some(("has a name that ends in a dot or a space", "drop the dot or space at the end"));
    }
    if name.contains(['<', '>', ':', '"', '\\', '|', '?', '*']) {
        return Some((
            "has a character in it that Windows cannot hold",
            "leave out `<`, `>`, `:`, `\"`, `\\`, `|`, `?` and `*`",
        ));
    }
    if name.chars().any(is_invisible) {
        return Some((
            "has an invisible character in it",
            "leave out text direction controls and zero-width characters",
        ));
    }
    None
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or("").trim_end_matches(' ').to_ascii_uppercase();
    if matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let Some(port) = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) else { return false };
    matches!(port, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "\u{b9}" | "\u{b2}" | "\u{b3}")
}

/// Whether a character takes no room or turns the direction of the text around it.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn too_long(key: &str) -> Error {
    let shown: String = key.chars().take(40).collect();
    Error::new(Kind::Invalid, format!("`{shown}…` is longer than {KEY_BYTES_MAX} bytes"))
        .code(code::INVALID_PATH)
        .hint("use fewer or shorter folders")
}

fn normalize(key: &str) -> Result<String> {
    let invalid =
        |why: String, hint: &str| Err(Error::new(Kind::Invalid, why).code(code::INVALID_PATH).hint(hint));
    let mut kept = String::with_capacity(key.len());
    for part in key.split('/') {
        match part {
            "" | "." => continue,
            ".." => {
                let why = format!("`{}` contains `..`", key.escape_default());
                return invalid(why, "write the path without `..`");
            }
            _ => {}
        }
        if part.chars().any(char::is_control) {
            let why = format!("`{}` has a control character in it", key.escape_default());
            return invalid(why, "use printable characters in names");
        }
        if !kept.is_empty() {
            kept.push('/');
        }
        let start = kept.len();
        if is_nfc(part) {
            kept.push_str(part)
        } else {
            kept.extend(part.nfc())
        }
        if kept.len() - start > SEGMENT_BYTES_MAX {
            let shown: String = part.chars().take(40).collect();
            let why = format!("the name `{shown}…` is longer than {SEGMENT_BYTES_MAX} bytes");
            return invalid(why, "use a shorter name");
        }
    }
    if kept.len() > KEY_BYTES_MAX {
        return Err(too_long(&kept));
    }
    Ok(kept)
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

impl Borrow<str> for Locator {
    fn borrow(&self) -> &str {
        &self.key
    }
}

impl FromStr for Locator {
    type Err = Error;

    fn from_str(key: &str) -> Result<Self> {
        Locator::new(key)
    }
}

impl TryFrom<String> for Locator {
    type Error = Error;

    fn try_from(key: String) -> Result<Self> {
        Locator::new(key)
    }
}

impl From<Locator> for String {
    fn from(at: Locator) -> String {
        at.key.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The normalisation table of the seam: what goes in, what is kept (`None`: refused).
    #[test]
    fn the_normalisation_table_holds() {
        let check = |given: &str, kept: Option<&str>| {
            assert_eq!(Locator::new(given).ok().as_ref().map(Locator::key), kept, "{given:?}");
        };
        check("", Some(""));
        check("/", Some(""));
        check(".", Some(""));
        check("a", Some("a"));
        check("/a", Some("a"));
        check("//a///b/", Some("a/b"));
        check("./a/./b", Some("a/b"));
        check("a/.hidden/...", Some("a/.hidden/..."));
        check("a\\b", Some("a\\b"));
        check("e\u{301}", Some("\u{e9}"));
        check("..", None);
        check("a/..", None);
        check("a/../b", None);
        check("/../a", None);
        check("a\0b", None);
        check("a\nb", None);
        check("a\u{7f}", None);
        check("a\u{85}", None);
        check(&"x".repeat(255), Some(&"x".repeat(255)));
        check(&"x".repeat(256), None);
        check(&"\u{e9}".repeat(128), None);
        check(&"ab/".repeat(400), None);
    }

    #[test]
    fn relations_between_locators() {
        let at = |key: &str| Locator::new(key).expect("a valid key");
        assert_eq!(at("a/b/c").parent(), Some(at("a/b")));
        assert_eq!(at("a").parent(), Some(Locator::root()));
        assert_eq!(Locator::root().parent(), None);
        assert_eq!(at("a/b/c").ancestors().collect::<Vec<_>>(), [at("a/b"), at("a")]);
        assert!(
            at("a/b").is_within(&at("a"))
                && at("a").is_within(&at("a"))
                && at("a").is_within(&Locator::root())
        );
        assert!(!at("ab").is_within(&at("a")));
        assert_eq!(at("a/b/c").rebased(&at("a/b"), &at("x")), Some(at("x/c")));
        assert_eq!(at("a/b").rebased(&at("a/b"), &at("x/y")), Some(at("x/y")));
        assert_eq!(at("ab").rebased(&at("a"), &at("x")), None);
        assert_eq!(at("a/b").child("../c").err().map(|e| e.kind()), Some(Kind::Invalid));
    }

    #[test]
    fn names_that_some_system_cannot_hold_are_not_made() {
        let refused = |key: &str| {
            let error = Locator::new(key).expect("a valid key").check_creatable().expect_err(key);
            assert_eq!((error.kind(), error.code_name()), (Kind::Invalid, Some(code::INVALID_PATH)), "{key}");
            assert!(error.hint_text().is_some(), "{key}");
        };
        for device in ["CON", "prn", "Aux", "nul", "COM1", "com9", "LPT1", "lpt9", "COM\u{b9}", "lpt\u{b3}"] {
            refused(device);
            refused(&format!("{device}.md"));
            refused(&format!("{device}.tar.gz"));
            refused(&format!("{device} .md"));
            refused(&format!("notes/{device}/a.md"));
        }
        refused("CONIN$");
        refused("conout$.txt");
        for end in ["a.", "a ", "...", "a. ", "folder./a.md", "folder /a.md"] {
            refused(end);
        }
        for c in ['<', '>', ':', '"', '\\', '|', '?', '*'] {
            refused(&format!("a{c}b.md"));
        }
        for c in
            ['\u{200b}', '\u{200d}', '\u{200e}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{61c}', '\u{e0041}']
        {
            refused(&format!("a{c}b.md"));
        }
    }

    #[test]
    fn names_that_every_system_can_hold_are_made() {
        for key in [
            "",
            "a.md",
            ".hidden",
            "-dash",
            "~tilde",
            "console.md",
            "COM10",
            "COM0",
            "com",
            "lpt.md",
            "auxiliary",
            "a.con",
            "a b.md",
            "(1) #2 & co; 50%.md",
            "日本語/ノート.md",
            "café",
            "\u{2764}\u{fe0f}.md",
        ] {
            Locator::new(key).expect("a valid key").check_creatable().expect(key);
        }
        let folder = Locator::new("f".repeat(200)).expect("a valid key");
        let far = (0..5).fold(folder.clone(), |at, _| at.rebased(&Locator::root(), &folder).expect("within"));
        assert_eq!(far.check_creatable().map_err(|e| e.kind()), Err(Kind::Invalid), "too long after a move");
    }

    #[test]
    fn twins_share_a_collision_key() {
        let twins = [
            ("a.md", "A.md"),
            ("é", "É"),
            ("e\u{301}", "\u{c9}"),
            ("ß", "SS"),
            ("σ", "ς"),
            ("K", "\u{212a}"),
        ];
        for (one, other) in twins {
            assert_eq!(collision_key(one), collision_key(other), "{one} {other}");
        }
        for (one, other) in [("a", "b"), ("e", "é"), ("a.md", "a_md"), ("i", "ı\u{307}x")] {
            assert_ne!(collision_key(one), collision_key(other), "{one} {other}");
        }
    }
}
