//! Conflict copies by their names: every family that sync tools make.
//!
//! Some names leave no doubt. Others (`name 2.md`, `name (1).md`, `name-HOST.md`) are names that
//! people choose too: such a file is a copy only if the file that it would be a copy of is there
//! and the two say that they are the same thing, which the caller finds out.

/// Who makes copies with such a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// `name (Ada's conflicted copy 2026-01-31).md`, in any language that keeps the date.
    Dropbox,
    /// `name (Conflicted copy laptop 202601311200).md`
    Obsidian,
    /// `name.sync-conflict-20260131-120000-ABCDEFG.md`
    Syncthing,
    /// `name (conflicted copy ada 2026-01-31 120000).md`, `name_conflict-20260131-120000.md`
    Nextcloud,
    /// `name (case clash from 2026-01-31 120000).md`
    CaseClash,
    /// `name (Conflicted copy 2026-01-31 for ada).md`
    SecuriSync,
    /// `name.md.conflict1`
    Rclone,
    /// `name.md.orig`, beside a file with conflict markers
    GitOriginal,
    /// `name (1).md`
    GoogleDrive,
    /// `name 2.md`
    ICloud,
    /// `name-LAPTOP.md`
    OneDrive,
}

impl Family {
    /// The tool's name.
    pub fn name(self) -> &'static str {
        match self {
            Family::Dropbox => "Dropbox",
            Family::Obsidian => "Obsidian Sync",
            Family::Syncthing => "Syncthing",
            Family::Nextcloud => "Nextcloud",
            Family::CaseClash => "Nextcloud (names that differ in case)",
            Family::SecuriSync => "SecuriSync",
            Family::Rclone => "rclone",
            Family::GitOriginal => "git",
            Family::GoogleDrive => "Google Drive",
            Family::ICloud => "iCloud Drive",
            Family::OneDrive => "OneDrive",
        }
    }

    /// Whether the name alone leaves no doubt.
    pub fn is_certain(self) -> bool {
        !matches!(
            self,
            Family::GoogleDrive | Family::ICloud | Family::OneDrive | Family::Rclone | Family::GitOriginal
        )
    }
}

/// A name that is a copy's, or may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// The name of the file that it is a copy of.
    pub base: String,
    /// Who made it.
    pub family: Family,
}

/// Whether a name is a conflict copy's beyond doubt.
pub fn is_certain(name: &str) -> bool {
    copy_of(name).is_some_and(|copy| copy.family.is_certain())
}

/// Whether a name is like that of a copy of a file whose own name ends so.
pub fn is_like_copy_of(name: &str, end: &str) -> bool {
    copy_of(name).is_some_and(|copy| copy.base.ends_with(end))
}

/// What a name is a copy of, if it is one or may be one.
pub fn copy_of(name: &str) -> Option<Copy> {
    let made =
        |base: String, family| (!base.is_empty() && !base.starts_with('.')).then_some(Copy { base, family });
    if let Some((base, family)) = parenthesised(name) {
        return made(base, family);
    }
    if let Some(base) = syncthing(name) {
        return made(base, Family::Syncthing);
    }
    if let Some(base) = old_nextcloud(name) {
        return made(base, Family::Nextcloud);
    }
    if let Some((base, number)) = name.rsplit_once(".conflict")
        && is_digits(number, 1..=3)
        && base.contains('.')
    {
        return made(base.to_owned(), Family::Rclone);
    }
    if let Some(base) = name.strip_suffix(".orig").filter(|base| base.contains('.')) {
        return made(base.to_owned(), Family::GitOriginal);
    }
    let (base, family) = doubtful(name)?;
    made(base, family)
}

/// The file that an iCloud placeholder stands for: `.name.md.icloud`.
pub fn placeholder(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(".icloud").filter(|name| !name.is_empty())
}

/// The name of the placeholder that stands for a file.
pub fn placeholder_of(name: &str) -> String {
    format!(".{name}.icloud")
}

/// A name in two: the stem, and the extension with its dot.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.').filter(|dot| *dot > 0) {
        Some(dot) => name.split_at(dot),
        None => (name, ""),
    }
}

fn is_digits(text: &str, count: std::ops::RangeInclusive<usize>) -> bool {
    count.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is like `0000-00-00`, `0` being any digit.
fn is_like(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

/// The families that put what they have to say into parentheses at the end of the stem. A repeat
/// of Dropbox adds ` (1)` behind them.
fn parenthesised(name: &str) -> Option<(String, Family)> {
    let (stem, extension) = split(name);
    let stem = match stem.strip_suffix(')').and_then(|stem| stem.rsplit_once(" (")) {
        Some((before, number)) if is_digits(number, 1..=3) && before.ends_with(')') => before,
        _ => stem,
    };
    let (base, said) = stem.strip_suffix(')')?.rsplit_once(" (")?;
    let family = family_of(said)?;
    (!base.trim().is_empty()).then(|| (format!("{base}{extension}"), family))
}

fn family_of(said: &str) -> Option<Family> {
    let lower = said.to_lowercase();
    let last_is = |pattern: &str| last_words_are(said, pattern);
    if let Some(rest) = lower.strip_prefix("case clash from ") {
        return is_like(rest, "0000-00-00 000000").then_some(Family::CaseClash);
    }
    if let Some(rest) = lower.strip_prefix("conflicted copy") {
        let rest = rest.trim_start();
        if let Some((date, _)) = rest.split_once(" for ").filter(|(_, user)| !user.is_empty())
            && is_like(date, "0000-00-00")
        {
            return Some(Family::SecuriSync);
        }
        if last_is("0000-00-00 000000") {
            return Some(Family::Nextcloud);
        }
        if last_is("000000000000") {
            return Some(Family::Obsidian);
        }
        return last_is("0000-00-00").then_some(Family::Dropbox);
    }
    if lower.contains("conflicted copy") {
        return Some(Family::Dropbox);
    }
    // Other languages: whose copy, in which words, and always the date at the end.
    let is_copy = COPY_WORDS.iter().any(|word| lower.contains(word));
    (is_copy && last_is("0000-00-00")).then_some(Family::Dropbox)
}

fn last_words_are(said: &str, pattern: &str) -> bool {
    let start = said.len().checked_sub(pattern.len());
    let Some(end) = start.and_then(|start| said.get(start..)) else { return false };
    let before = &said[..said.len() - pattern.len()];
    is_like(end, pattern) && (before.is_empty() || before.ends_with(' '))
}

/// How Dropbox says "conflicted copy", in lower case.
const COPY_WORDS: &[&str] = &[
    "in konflikt stehende kopie",
    "motstridiga kopia",
    "copie en conflit",
    "copia en conflicto",
    "copia in conflitto",
    "copia conflittuale",
    "cópia em conflito",
    "conflicterend exemplaar",
    "konfliktkopia",
    "motstridende kopi",
    "modstridende kopi",
    "ristiriitainen kopio",
    "kopia powodująca konflikt",
    "конфликтующая копия",
    "конфліктна копія",
    "競合コピー",
    "冲突副本",
    "衝突複本",
    "충돌된 사본",
];

/// `name.sync-conflict-20260131-120000-ABCDEFG.md`
fn syncthing(name: &str) -> Option<String> {
    let (base, rest) = name.split_once(".sync-conflict-")?;
    let (stamp, extension) = match rest.find('.') {
        Some(dot) => rest.split_at(dot),
        None => (rest, ""),
    };
    let (time, device) = (stamp.get(..15)?, stamp.get(15..)?.strip_prefix('-')?);
    let is_device =
        device.len() == 7 && device.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (is_like(time, "00000000-000000") && is_device).then(|| format!("{base}{extension}"))
}

/// `name_conflict-20260131-120000.md`
fn old_nextcloud(name: &str) -> Option<String> {
    let (stem, extension) = split(name);
    let (base, stamp) = stem.rsplit_once("_conflict-")?;
    is_like(stamp, "00000000-000000").then(|| format!("{base}{extension}"))
}

/// The families whose names people choose too.
fn doubtful(name: &str) -> Option<(String, Family)> {
    let (stem, extension) = split(name);
    if let Some((base, number)) = stem.strip_suffix(')').and_then(|stem| stem.rsplit_once('('))
        && is_digits(number, 1..=2)
        && number != "0"
    {
        let base = base.strip_suffix(' ').unwrap_or(base);
        return Some((format!("{base}{extension}"), Family::GoogleDrive));
    }
    if let Some((base, number)) = stem.rsplit_once(' ')
        && is_digits(number, 1..=2)
        && !matches!(number, "0" | "1")
        && !number.starts_with('0')
    {
        return Some((format!("{base}{extension}"), Family::ICloud));
    }
    // Nearly Syncthing's is not OneDrive's.
    let (base, _) =
        stem.rsplit_once('-').filter(|(base, host)| is_host(host) && !base.contains(".sync-conflict-"))?;
    // Windows names machines `DESKTOP-4F2K9QX`.
    let base = match base.rsplit_once('-') {
        Some((base, "DESKTOP" | "LAPTOP")) => base,
        _ => base,
    };
    Some((format!("{base}{extension}"), Family::OneDrive))
}

/// Whether a word is like a machine's name on Windows: capitals and digits, at most 15.
fn is_host(word: &str) -> bool {
    (3..=15).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
}
