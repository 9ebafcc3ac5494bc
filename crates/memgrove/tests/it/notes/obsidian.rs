//! The notes as Obsidian sees them: its rules for files and links, written down here once more and apart
//! from our own, over folders that splits, merges, imports and people have made.

use std::collections::BTreeSet;

use memgrove::shapes::notes::{Source, Structure};
use unicode_normalization::UnicodeNormalization;

use super::*;

/// What Obsidian shows: no file that is hidden or in a hidden folder, and of the rest the notes.
fn vault(notes: &Notes) -> BTreeMap<String, String> {
    let shown = |(file, text): (String, String)| {
        let path = file.strip_prefix("notes/")?.strip_suffix(".md")?.to_owned();
        (!path.split('/').any(|part| part.starts_with('.'))).then_some((path, text))
    };
    files(notes).into_iter().filter_map(shown).collect()
}

/// Names that Obsidian takes for one: it minds neither case nor how a letter with a mark is put together.
fn folded(text: &str) -> String {
    text.nfc().collect::<String>().to_lowercase()
}

/// What stands between the brackets of each link.
fn links(text: &str) -> Vec<&str> {
    text.split("[[").skip(1).filter_map(|rest| rest.split_once("]]")).map(|(link, _)| link).collect()
}

/// The path of a link: before the alias, the heading and the block.
fn path_of(link: &str) -> &str {
    let path = link.split(['|', '#', '^']).next().unwrap_or("").trim();
    path.strip_suffix(".md").unwrap_or(path)
}

/// Where a click on a link leads.
fn opened<'a>(link: &str, from: &str, vault: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let path = folded(path_of(link));
    let (folder, _) = from.rsplit_once('/').unwrap_or(("", from));
    let wanted = match path.split_once('/') {
        Some(("." | "..", _)) => {
            let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
            for part in path.split('/').filter(|part| *part != ".") {
                match part {
                    ".." => drop(parts.pop()?),
                    part => parts.push(part),
                }
            }
            folded(&parts.join("/"))
        }
        _ => path.trim_start_matches('/').to_owned(),
    };
    if wanted.is_empty() {
        return vault.keys().map(String::as_str).find(|path| *path == from);
    }
    let exact = vault.keys().find(|path| folded(path) == wanted);
    let ends = |path: &&String| folded(path).ends_with(&format!("/{wanted}"));
    let near = |path: &&String| (!path.starts_with(&format!("{folder}/")), path.len(), (*path).clone());
    exact.or_else(|| vault.keys().filter(ends).min_by_key(near)).map(String::as_str)
}

/// Every link leads to a note, to the one that we mean, and the lines of the graph are these links.
fn check(notes: &Notes, when: &str) {
    let vault = vault(notes);
    for info in notes.list().unwrap() {
        let mut lines = BTreeSet::new();
        for link in links(&vault[&info.path]) {
            let target = opened(link, &info.path, &vault);
            assert!(target.is_some(), "{when}: [[{link}]] in {} leads nowhere", info.path);
            // A heading of the same note is no link between notes.
            if !path_of(link).is_empty() {
                let ours = notes.linked(path_of(link), &info.path).unwrap();
                assert_eq!(ours.as_deref(), target, "{when}: [[{link}]] in {}", info.path);
            }
            lines.extend(target.filter(|target| *target != info.path));
        }
        let drawn: BTreeSet<&str> =
            info.links_to.iter().map(String::as_str).filter(|path| *path != info.path).collect();
        assert_eq!(drawn, lines, "{when}: what {} is joined to", info.path);
    }
}

/// Sections of these headings, each large enough to become a note of its own.
fn sections(headings: &[&str]) -> String {
    let mut text = String::from("# Much\n");
    for heading in headings {
        text.push_str(&format!("\n## {heading}\n\n"));
        for number in 0..60 {
            text.push_str(&format!("- fact {number} that belongs to {heading} and to nothing else here\n"));
        }
    }
    text
}

const ODD: [&str; 5] = ["With spaces in it", "C# and F#", "a|b [c] ^d", "Cafe\u{301} Über Straße", "Plan"];

#[test]
fn every_link_that_we_write_leads_somewhere_in_obsidian() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    check(&notes, "after a split of the root");
    for path in ["Big Projects/Alpha Beta", "Cafe\u{301}/Übersicht", "plan"] {
        write(&notes, path, &sections(&ODD), Mode::Replace);
        check(&notes, path);
    }
    // The ways in which people write links.
    let by_hand = "- [[silica]], [[Silica|the project]], [[silica#Silica]], [[silica#^block]], [[/silica]]\n\
        - [[big projects/alpha beta]], [[ALPHA BETA.md]], [[alpha beta#Plan|its plan]]\n\
        - [[../garden]], [[./Alpha Beta]], [[café/übersicht]], [[cafe\u{301}/u\u{308}bersicht]], [[#Own]]\n";
    write(&notes, "Big Projects/hand", by_hand, Mode::Append);
    check(&notes, "with links by hand");
    notes.merge(noted(), Some("plan"), &[], MergeSize::Any, &Guarded::default()).unwrap();
    check(&notes, "after a merge");
    notes.merge(noted(), Some(""), &[], MergeSize::Any, &Guarded::default()).unwrap();
    check(&notes, "after a merge into the root");
    notes.split(noted(), Some(""), &Guarded::default()).unwrap();
    check(&notes, "after another split");
}

#[test]
fn names_that_no_link_can_hold_are_not_given() {
    let notes = notes();
    let refused = notes.write(noted(), Some("C# notes"), "x", Mode::Update, &Guarded::default()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.hint_text().is_some_and(|hint| hint.contains("`C_ notes`")), "{refused:?}");
    let source = |path: &str| Source { path: path.to_owned(), bytes: sections(&ODD).into_bytes() };
    let sources = ["langs/C#.md", "langs/x[1].md", "langs/a^b.md", "langs/plain.md"].map(source);
    notes.import(noted(), &sources, Structure::Preserve).unwrap();
    check(&notes, "after an import");
    // What someone else has named so stays, and what is split off from it can be linked to.
    notes.memory().store().write(&at("notes/F#.md"), &sections(&ODD)).unwrap();
    let new = notes.split(noted(), Some("F#"), &Guarded::default()).unwrap().outcome.new_files;
    assert!(!new.is_empty() && new.iter().all(|path| path.starts_with("F_/")), "{new:?}");
    check(&notes, "beside a note that no link can lead to");
}

#[test]
fn what_we_keep_beside_the_notes_is_hidden() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    notes.keep_graph().unwrap();
    let all = files(&notes);
    let (hidden, shown): (Vec<&String>, Vec<&String>) =
        all.keys().partition(|file| file.starts_with("notes/.metadata/"));
    assert!(hidden.len() >= 2, "{hidden:?}");
    assert!(shown.iter().all(|file| file.ends_with(".md")), "{shown:?}");
    assert_eq!(shown.len(), vault(&notes).len(), "Obsidian shows the notes and nothing else");
}

/// A vault of small files, which become sections of a few notes: what they say of each other stays true.
#[test]
fn links_of_a_vault_lead_to_where_its_files_are_now() {
    let notes = notes();
    let home = "---\ntags: [start]\n---\n# Home\n\nSee [[Plan]], [[Work/Plan|it]], [[Daily/2026-11-14|y]], \
        [[2026-11-14]], [[plan#Steps]], ![[Other]].\n\n`[[Plan]]` stays, [[Nobody]] is missing.\n";
    let files = [
        ("Home.md", home),
        ("Work/Plan.md", "---\nstatus: open\n---\n# Plan\n\n## Steps\n\nSee [[./Other]] and [[Home]].\n"),
        ("Work/Other.md", "Nothing but [[Plan]].\n"),
        ("daily/2026-11-14.md", "At [[Home]], read [[Big File]].\n"),
        ("Big File.md", &sections(&["One", "Two"])),
    ]
    .map(|(path, text)| Source { path: path.to_owned(), bytes: text.as_bytes().to_vec() });
    let done = notes.import(noted(), &files, Structure::Preserve).unwrap();
    let dead: Vec<(&str, &str)> =
        done.outcome.dead_links.iter().map(|dead| (dead.from.as_str(), dead.to.as_str())).collect();
    assert_eq!(dead, [("Home.md", "Nobody")]);
    let vault = vault(&notes);
    let root = &vault["memory"];
    assert!(root.contains("`[[Plan]]` stays, [[Nobody]] is missing."), "{root}");
    assert!(root.contains("[[work#Plan|Plan]], [[work#Plan|it]], [[daily#2026-11-14|y]]"), "{root}");
    assert!(root.contains("[[work#Steps|plan > Steps]], ![[work#Other|Other]]"), "{root}");
    let work = &vault["work"];
    assert!(work.contains("# Plan\n\n```yaml\nstatus: open\n```\n"), "front matter is told: {work}");
    assert!(work.contains("See [[work#Other|./Other]] and [["), "{work}");
    for (path, text) in &vault {
        for link in links(text).into_iter().filter(|link| !["Nobody", "Plan"].contains(link)) {
            assert!(opened(link, path, &vault).is_some(), "[[{link}]] in {path}");
        }
    }
    let again = notes.import(noted(), &files, Structure::Preserve).unwrap();
    assert!(again.change.is_none(), "nothing is new the second time");
}
