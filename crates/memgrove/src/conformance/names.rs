//! Names that a backend keeps for itself or that not every system can hold: P17.

use super::steps::{
    append, apply, at, case, case_with, coded, delete, ensure, holds, put, refused, rename, same, tree,
    tree_is, write,
};
use super::{Case, Needs, Trial, Verdict};
use crate::backend::{Backend, Depth};
use crate::error::{Kind, code};
use crate::locator::{Locator, SEGMENT_BYTES_MAX};

pub(super) const CASES: &[Case] = &[
    case("P17", "device_names_are_refused", device_names_are_refused),
    case("P17", "trailing_dots_and_spaces_are_refused", trailing_dots_and_spaces_are_refused),
    case("P17", "reserved_characters_are_refused", reserved_characters_are_refused),
    case("P17", "invisible_characters_are_refused", invisible_characters_are_refused),
    case("P17", "the_backends_own_keys_are_refused", the_backends_own_keys_are_refused),
    case("P17", "unusual_names_that_fit_are_held", unusual_names_that_fit_are_held),
    case("P17", "long_names_are_held", long_names_are_held),
    case_with("P17", "deep_folders_are_held", Needs::DeepFolders, deep_folders_are_held),
    case("P17", "a_move_makes_no_key_too_long", a_move_makes_no_key_too_long),
    case("P17", "twins_are_refused", twins_are_refused),
    case("P17", "twins_of_folders_are_refused", twins_of_folders_are_refused),
    case("P17", "a_twin_may_come_when_the_first_has_gone", a_twin_may_come_when_the_first_has_gone),
    case("P17", "another_case_is_another_name", another_case_is_another_name),
];

/// Proves that nothing can be made at a key, in any way, and that trying leaves no trace.
fn refuses(backend: &dyn Backend, key: &str) -> Verdict {
    let before = tree(backend)?;
    for edit in [write(key, b"x"), append(key, b"x"), rename("a.md", key), rename("f", key)] {
        let what = format!("{edit:?}");
        let error = refused(&what, apply(backend, [write("new/b.md", b"b"), edit]), Kind::Invalid)?;
        coded(&error, code::INVALID_PATH)?;
        ensure(error.hint_text().is_some(), || format!("no hint for {what}"))?;
    }
    refused(&format!("making the folder {key:?}"), backend.mkdir(&at(key)), Kind::Invalid)?;
    same("the tree after refusals", &tree(backend)?, &before)
}

fn refuse_each(trial: &Trial<'_>, names: impl IntoIterator<Item = String>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("f/b.md", b"b")])?;
    for name in names {
        refuses(&*backend, &name)?;
        // Nor is it allowed as the name of a folder, or within one.
        refused("a file beneath", apply(&*backend, [write(&format!("{name}/c.md"), b"c")]), Kind::Invalid)?;
        refused("a file in a folder", apply(&*backend, [append(&format!("f/{name}"), b"c")]), Kind::Invalid)?;
        // But asking for what is not there is allowed.
        refused("reading it", backend.read(&at(&name)), Kind::NotFound)?;
        same("a listing of it", &backend.list(&at(&name), Depth::All)?, &Vec::new())?;
    }
    tree_is(&*backend, &["a.md=a", "f/", "f/b.md=b"])
}

fn device_names_are_refused(trial: &Trial<'_>) -> Verdict {
    let plain = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].map(String::from);
    let digits = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "\u{b9}", "\u{b2}", "\u{b3}"];
    let ports = ["COM", "LPT"].iter().flat_map(|port| digits.map(|digit| format!("{port}{digit}")));
    let devices: Vec<String> = plain.into_iter().chain(ports).collect();
    let spellings = devices.iter().flat_map(|device| {
        let lower = device.to_lowercase();
        [
            device.clone(),
            lower.clone(),
            format!("{device}.md"),
            format!("{lower}.tar.gz"),
            format!("{device} .md"),
        ]
    });
    refuse_each(trial, spellings)
}

fn trailing_dots_and_spaces_are_refused(trial: &Trial<'_>) -> Verdict {
    refuse_each(trial, ["a.", "a.md.", "a ", "a.md ", "...", "a. .", " "].map(String::from))
}

fn reserved_characters_are_refused(trial: &Trial<'_>) -> Verdict {
    let characters = ["<", ">", ":", "\"", "\\", "|", "?", "*"];
    let spellings = characters.iter().flat_map(|c| [format!("{c}a"), format!("a{c}b.md"), format!("a{c}")]);
    let streams = ["a.md::$DATA", "C:", "C:\\a", "..\\a", "\\\\?\\a"].map(String::from);
    refuse_each(trial, spellings.chain(streams))
}

fn invisible_characters_are_refused(trial: &Trial<'_>) -> Verdict {
    let controls = [
        '\u{ad}',
        '\u{61c}',
        '\u{180e}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{200e}',
        '\u{200f}',
        '\u{202a}',
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{feff}',
        '\u{e0041}',
    ];
    refuse_each(trial, controls.iter().flat_map(|c| [format!("a{c}b.md"), format!("{c}a.md")]))
}

fn the_backends_own_keys_are_refused(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("f/b.md", b"b")])?;
    trial.reserved().iter().try_for_each(|key| {
        refuses(&*backend, key)?;
        refuses(&*backend, &format!("{key}/beneath.md"))?;
        refused(&format!("deleting `{key}`"), apply(&*backend, [delete(key)]), Kind::Invalid)?;
        refused(&format!("moving `{key}`"), apply(&*backend, [rename(key, "x")]), Kind::Invalid).map(drop)
    })
}

const UNUSUAL: &[&str] = &[
    ".hidden",
    "..a",
    ".a.b",
    "-rf",
    "--",
    "~",
    "~a",
    "#a#",
    "a b  c",
    " leading",
    "(1)",
    "a;b",
    "a&b",
    "$HOME",
    "%2e%2e",
    "%",
    "a'b",
    "`a`",
    "{a}",
    "[a]",
    "!a",
    "@a",
    "a=b",
    "a,b",
    "a+b",
    "^",
    "console.md",
    "COM10",
    "nul-l",
    "com0",
    "日本語",
    "Ελληνικά",
    "кириллица",
    "العربية",
    "עברית",
    "한국어",
    "❤\u{fe0f}",
    "🌳",
    "ﬁ",
    "．．",
    "‥",
    "index.json",
    "Thumbs.db",
    "a.tmp",
    "a~",
    "a.swp",
    "4913",
];

fn unusual_names_that_fit_are_held(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for name in UNUSUAL {
        put(&*backend, name, name)?;
        put(&*backend, &format!("f/{name}x/{name}"), name)?;
    }
    for name in UNUSUAL {
        holds(&*backend, name, name)?;
        holds(&*backend, &format!("f/{name}x/{name}"), name)?;
    }
    let mut wanted: Vec<Locator> = UNUSUAL.iter().map(|name| at(name)).chain([at("f")]).collect();
    wanted.sort();
    let listed = backend.list(&Locator::root(), Depth::Children)?;
    same("the listing", &listed.into_iter().map(|info| info.locator).collect(), &wanted)
}

fn long_names_are_held(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let plain = "x".repeat(SEGMENT_BYTES_MAX);
    let japanese = "記".repeat(SEGMENT_BYTES_MAX / 3);
    for name in [&plain, &japanese] {
        put(&*backend, name, b"long")?;
        apply(&*backend, [append(name, b"er")])?;
        holds(&*backend, name, b"longer")?;
        apply(&*backend, [rename(name, &format!("f/{name}"))])?;
        holds(&*backend, &format!("f/{name}"), b"longer")?;
    }
    Ok(())
}

fn deep_folders_are_held(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let deep = ["d"; 300].join("/");
    put(&*backend, &deep, b"deep")?;
    holds(&*backend, &deep, b"deep")
}

fn a_move_makes_no_key_too_long(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let (name, folder) = ("n".repeat(200), "f".repeat(200));
    let deep = format!("{name}/{name}/{name}/a.md");
    put(&*backend, &deep, b"a")?;
    let far = format!("{folder}/{folder}/{folder}/{folder}");
    refused("moving it too deep", apply(&*backend, [rename(&name, &far)]), Kind::Invalid)?;
    holds(&*backend, &deep, b"a")?;
    same("the count of entries", &tree(&*backend)?.len(), &4)
}

/// Proves that a second name is refused beside the first, with a hint that names the first.
fn twin_refused(backend: &dyn Backend, first: &str, twin: &str) -> Verdict {
    let before = tree(backend)?;
    for edit in [write(twin, b"x"), append(twin, b"x"), rename("other.md", twin)] {
        let what = format!("{edit:?}");
        let error = refused(&what, apply(backend, [edit]), Kind::Exists)?;
        let hint = error.hint_text().unwrap_or_default();
        ensure(hint.contains(first), || format!("the hint for {what} does not name `{first}`: {hint}"))?;
    }
    refused(&format!("making the folder `{twin}`"), backend.mkdir(&at(twin)), Kind::Exists)?;
    same("the tree after refusals", &tree(backend)?, &before)
}

fn twins_are_refused(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "other.md", b"other")?;
    let twins = [
        ("a.md", "A.md"),
        ("README.md", "readme.md"),
        ("é.md", "É.md"),
        ("straße.md", "STRASSE.md"),
        ("σ.md", "ς.md"),
    ];
    for (first, twin) in twins {
        put(&*backend, first, b"first")?;
        twin_refused(&*backend, first, twin)?;
        put(&*backend, &format!("f/{first}"), b"first")?;
        twin_refused(&*backend, &format!("f/{first}"), &format!("f/{twin}"))?;
    }
    // Elsewhere it is no twin.
    put(&*backend, "g/A.md", b"not a twin")?;
    holds(&*backend, "g/A.md", b"not a twin")
}

fn twins_of_folders_are_refused(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("Notes/a.md", b"a"), write("other.md", b"other")])?;
    twin_refused(&*backend, "Notes", "notes")?;
    twin_refused(&*backend, "Notes", "notes/b.md")?;
    twin_refused(&*backend, "Notes", "NOTES/a.md")?;
    // Nor can a folder be moved into its own twin.
    refused("a folder moved into its twin", apply(&*backend, [rename("Notes", "notes/x")]), Kind::Exists)?;
    tree_is(&*backend, &["Notes/", "Notes/a.md=a", "other.md=other"])
}

fn a_twin_may_come_when_the_first_has_gone(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"1"), write("b.md", b"2"), write("f/c.md", b"3")])?;
    apply(&*backend, [delete("a.md"), write("A.md", b"new"), rename("b.md", "x.md"), write("B.md", b"new")])?;
    apply(&*backend, [rename("f", "g"), write("F/c.md", b"new")])?;
    tree_is(&*backend, &["A.md=new", "B.md=new", "F/", "F/c.md=new", "g/", "g/c.md=3", "x.md=2"])
}

fn another_case_is_another_name(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "f/a.md", b"a")?;
    for key in ["f/A.md", "F/a.md", "F"] {
        refused(&format!("reading `{key}`"), backend.read(&at(key)), Kind::NotFound)?;
        refused(&format!("describing `{key}`"), backend.info(&at(key)), Kind::NotFound)?;
        refused(&format!("deleting `{key}`"), apply(&*backend, [delete(key)]), Kind::NotFound)?;
        refused(&format!("moving `{key}`"), apply(&*backend, [rename(key, "b.md")]), Kind::NotFound)?;
        same(&format!("the listing of `{key}`"), &backend.list(&at(key), Depth::All)?, &Vec::new())?;
    }
    tree_is(&*backend, &["f/", "f/a.md=a"])
}
