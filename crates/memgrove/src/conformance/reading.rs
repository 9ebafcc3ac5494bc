//! Reading back what was applied: P1, P2, P3.

use super::steps::{append, apply, at, case, case_with, coded, holds, put, refused, same, write};
use super::{Case, Needs, Trial, Verdict, steps::ensure};
use crate::backend::{FileKind, Version};
use crate::error::{Kind, code};
use crate::locator::Locator;

pub(super) const CASES: &[Case] = &[
    case("P1", "any_text_comes_back", any_text_comes_back),
    case("P1", "any_text_can_be_appended", any_text_can_be_appended),
    case_with("P1", "any_bytes_come_back", Needs::Binary, any_bytes_come_back),
    case_with("P1", "any_bytes_can_be_appended", Needs::Binary, any_bytes_can_be_appended),
    case_with("P1", "large_content_comes_back", Needs::LargeFiles, large_content_comes_back),
    case("P1", "shorter_content_leaves_nothing_of_longer", shorter_content_leaves_nothing_of_longer),
    case("P1", "many_files_come_back", many_files_come_back),
    case("P2", "what_is_absent_is_not_found", what_is_absent_is_not_found),
    case("P2", "a_folder_is_described_but_not_read", a_folder_is_described_but_not_read),
    case("P2", "a_file_is_described", a_file_is_described),
    case("P3", "different_bytes_have_different_versions", different_bytes_have_different_versions),
    case("P3", "read_and_info_and_apply_agree_on_the_version", everyone_agrees_on_the_version),
];

/// Texts that a careless storage changes, and bytes that are no text.
pub(super) const SAMPLES: &[(&str, &[u8])] = &[
    ("empty", b""),
    ("one line", b"one line\n"),
    ("no final newline", b"first\nlast"),
    ("LF", b"one\ntwo\n\nthree\n"),
    ("CRLF", b"one\r\ntwo\r\n\r\nthree\r\n"),
    ("CR", b"one\rtwo\r"),
    ("mixed newlines", b"one\r\ntwo\nthree\rfour\n\r"),
    ("only newlines", b"\n\r\n\n"),
    ("surrounding space", b"  \t text \t  \n  "),
    ("byte order mark", b"\xef\xbb\xbf# Title\n"),
    ("accents, composed", "caf\u{e9} \u{fc}ber\n".as_bytes()),
    ("accents, decomposed", "cafe\u{301} u\u{308}ber\n".as_bytes()),
    ("Japanese", "記憶は木立である。\n".as_bytes()),
    ("Arabic and Hebrew", "ذاكرة זיכרון\n".as_bytes()),
    ("emoji", "🌳 👩\u{200d}💻 ❤\u{fe0f}\n".as_bytes()),
    ("line separators", "one\u{2028}two\u{2029}three\u{85}four\n".as_bytes()),
    ("zero byte", b"before\0after\n"),
    ("only zero bytes", b"\0\0\0\0"),
    ("Latin-1", b"caf\xe9\n"),
    ("broken UTF-8", b"\xc3\x28 \xf0\x9f\x8c \xff\xfe\n"),
    ("PDF header", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
    ("control characters", b"\x1b[31mred\x07\x1a\x04\n"),
];

/// The samples that are text.
pub(super) fn texts() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    SAMPLES.iter().copied().filter(|(_, bytes)| std::str::from_utf8(bytes).is_ok())
}

fn any_text_comes_back(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for (name, bytes) in texts() {
        put(&*backend, &format!("{name}.md"), bytes)?;
        holds(&*backend, &format!("{name}.md"), bytes)?;
    }
    // Again, after everything else was written.
    texts().try_for_each(|(name, bytes)| holds(&*backend, &format!("{name}.md"), bytes))
}

fn any_text_can_be_appended(trial: &Trial<'_>) -> Verdict {
    appended(trial, texts())
}

fn any_bytes_come_back(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for (name, bytes) in SAMPLES {
        let key = format!("{name}.md");
        put(&*backend, &key, bytes)?;
        holds(&*backend, &key, bytes)?;
    }
    let all: Vec<u8> = (0..=255).cycle().take(1024).collect();
    put(&*backend, "all.bin", &all)?;
    // Again, after everything else was written.
    holds(&*backend, "all.bin", &all)?;
    SAMPLES.iter().try_for_each(|(name, bytes)| holds(&*backend, &format!("{name}.md"), bytes))
}

fn any_bytes_can_be_appended(trial: &Trial<'_>) -> Verdict {
    appended(trial, SAMPLES.iter().copied())
}

fn appended(trial: &Trial<'_>, samples: impl Iterator<Item = (&'static str, &'static [u8])>) -> Verdict {
    let backend = trial.open()?;
    let mut wanted = Vec::new();
    for (_, bytes) in samples {
        apply(&*backend, [append("log.bin", bytes)])?;
        wanted.extend_from_slice(bytes);
        holds(&*backend, "log.bin", &wanted)?;
    }
    Ok(())
}

fn large_content_comes_back(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    // Not periodic in any power of two, so that a lost or doubled block shows.
    let large: Vec<u8> = (0..1024 * 1024_u32).map(|i| (i % 251) as u8 ^ (i >> 12) as u8).collect();
    put(&*backend, "large.bin", &large)?;
    holds(&*backend, "large.bin", &large)?;
    apply(&*backend, [append("large.bin", b"and a tail")])?;
    holds(&*backend, "large.bin", [&large[..], b"and a tail"].concat())?;
    let size = backend.info(&at("large.bin"))?.size;
    same("the size", &size, &(large.len() as u64 + 10))
}

fn shorter_content_leaves_nothing_of_longer(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a long line of text\n".repeat(500))?;
    put(&*backend, "a.md", b"short")?;
    holds(&*backend, "a.md", b"short")?;
    put(&*backend, "a.md", b"")?;
    holds(&*backend, "a.md", b"")
}

fn many_files_come_back(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let edits: Vec<_> =
        (0..100).map(|i| write(&format!("{}/{}.md", i % 10, i), format!("file {i}\n"))).collect();
    apply(&*backend, edits)?;
    (0..100).try_for_each(|i| holds(&*backend, &format!("{}/{}.md", i % 10, i), format!("file {i}\n")))
}

fn what_is_absent_is_not_found(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "folder/a.md", b"a")?;
    for key in ["b.md", "folder/b.md", "nowhere/b.md", "folder/a.md/beneath", "fold", "folder/a"] {
        refused(&format!("reading `{key}`"), backend.read(&at(key)), Kind::NotFound)?;
        refused(&format!("describing `{key}`"), backend.info(&at(key)), Kind::NotFound)?;
    }
    Ok(())
}

fn a_folder_is_described_but_not_read(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    backend.mkdir(&at("empty"))?;
    put(&*backend, "full/a.md", b"a")?;
    for folder in [Locator::root(), at("empty"), at("full")] {
        let error = refused(&format!("reading `{folder}`"), backend.read(&folder), Kind::Invalid)?;
        coded(&error, code::IS_DIRECTORY)?;
        let info = backend.info(&folder)?;
        same("the locator", &info.locator, &folder)?;
        same("the kind", &info.kind, &FileKind::Folder)?;
        same("the size of a folder", &info.size, &0)?;
        same("the version of a folder", &info.version, &None)?;
    }
    Ok(())
}

fn a_file_is_described(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for (key, bytes) in [("a.md", &b"12345"[..]), ("folder/b.md", b""), ("folder/deeper/c.bin", b"\0\r\n")] {
        put(&*backend, key, bytes)?;
        let info = backend.info(&at(key))?;
        same("the locator", &info.locator, &at(key))?;
        same("the kind", &info.kind, &FileKind::File)?;
        same("the size", &info.size, &(bytes.len() as u64))?;
        ensure(info.version.is_some(), || format!("`{key}` is described without its version"))?;
    }
    let before = backend.info(&at("a.md"))?;
    put(&*backend, "a.md", b"54321")?;
    let after = backend.info(&at("a.md"))?;
    ensure(before.stamp != after.stamp, || "the stamp stayed when the content changed".into())?;
    ensure(before.mtime <= after.mtime, || "the time of modification went back".into())
}

fn different_bytes_have_different_versions(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut seen: Vec<(Version, &str)> = Vec::new();
    for (name, bytes) in texts() {
        put(&*backend, "a.md", bytes)?;
        let version = backend.read(&at("a.md"))?.version;
        if let Some((_, other)) = seen.iter().find(|(earlier, _)| *earlier == version) {
            return ensure(false, || format!("`{name}` and `{other}` have the same version {version}"));
        }
        seen.push((version, name));
    }
    Ok(())
}

fn everyone_agrees_on_the_version(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for (name, bytes) in texts() {
        let applied = put(&*backend, "a.md", bytes)?;
        let read = backend.read(&at("a.md"))?.version;
        same(&format!("versions of the change ({name})"), &applied.versions, &vec![Some(read.clone())])?;
        same(&format!("version of info ({name})"), &backend.info(&at("a.md"))?.version, &Some(read))?;
    }
    apply(&*backend, [append("a.md", b"more")])?;
    let read = backend.read(&at("a.md"))?.version;
    same("version of info after an append", &backend.info(&at("a.md"))?.version, &Some(read.clone()))?;
    // A listing may leave the version out, but must not tell a wrong one.
    for info in backend.list(&Locator::root(), crate::backend::Depth::All)? {
        if let Some(version) = info.version {
            same("version in a listing", &version, &read)?;
        }
    }
    Ok(())
}
