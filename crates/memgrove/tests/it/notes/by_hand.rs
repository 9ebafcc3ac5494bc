//! What people write into notes stays, wherever they write it, and leads where it led.

use memgrove::backend::{Edit, Expect};
use memgrove::memory::{Plan, UndoScope};

use super::*;

fn put(notes: &Notes, path: &str, text: &str) {
    let path = if path.is_empty() { "memory" } else { path };
    notes.memory().store().write(&at(&format!("notes/{path}.md")), text).unwrap();
}

fn merge(notes: &Notes) -> memgrove::shapes::notes::MergeResult {
    notes.merge(noted(), None, &[], MergeSize::Any, &Guarded::default()).unwrap().outcome
}

fn changed(notes: &Notes, path: &str, from: &str, to: &str) {
    let text = read(notes, path);
    assert!(text.contains(from), "{text}");
    put(notes, path, &text.replace(from, to));
}

/// The line with which a note is listed in the root.
fn line_of(notes: &Notes, path: &str) -> String {
    let start = format!("- [[{path}]]");
    read(notes, "").lines().find(|line| line.starts_with(&start)).unwrap().to_owned()
}

#[test]
fn what_is_typed_beneath_the_metadata_is_found_and_kept() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let typed = read(&notes, "silica") + "owner: Bob\nThe zeppelin deadline is the 3rd of May\nand final\n";
    put(&notes, "silica", &typed);
    update(&notes, "Silica has a logo");
    let text = read(&notes, "silica");
    assert!(text.ends_with("owner: Bob\nThe zeppelin deadline is the 3rd of May\nand final\n"), "{text}");
    let found = notes.search(&Search::new("zeppelin deadline")).unwrap().results;
    assert!(found[0].excerpt.starts_with("The zeppelin deadline"), "{found:?}");
    merge(&notes);
    let text = read(&notes, "");
    assert!(text.contains("The zeppelin deadline is the 3rd of May\nand final\n"), "{text}");
    assert!(text.contains("\n\nowner: Bob\n\n"), "{text}");
}

#[test]
fn a_line_that_someone_wrote_into_the_list_of_links_stays() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let mine = "- [[silica|Stuff]] - mine own words\n  - call Bob";
    changed(&notes, "", &line_of(&notes, "silica"), mine);
    let own = line_of(&notes, "garden");
    // The next split puts more into the same notes.
    let more: String = three_projects().replace("# Memory\n\nWhat I know.\n", "").replace(" note ", " page ");
    write(&notes, "", &more, Mode::Append);
    assert!(read(&notes, "silica").contains("Silica page 7"), "{}", read(&notes, ""));
    assert!(read(&notes, "").contains(mine), "{}", read(&notes, ""));
    assert_ne!(line_of(&notes, "garden"), own, "what we wrote, we describe anew");
    write(&notes, "", "# Anew\n", Mode::Replace);
    assert!(read(&notes, "").contains(mine), "{}", read(&notes, ""));
    merge(&notes);
    let text = read(&notes, "");
    assert!(text.contains("- [[memory#Silica|Stuff]] - mine own words\n  - call Bob\n"), "{text}");
    assert!(!text.contains("[[garden]]"), "{text}");
}

#[test]
fn links_to_what_is_merged_lead_to_where_it_is() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let diary = "# Diary\n\n- saw [[silica]], [[Garden#Beds|the beds]], `[[silica]]` and [[nowhere]]\n\n```\n[[silica]]\n```\n";
    put(&notes, "diary", diary);
    put(&notes, "deep/er", "up to [[../website]]\n");
    let done = notes.merge(noted(), None, &[], MergeSize::Any, &Guarded::default()).unwrap();
    assert_eq!(done.outcome.relinked, ["deep/er", "diary"]);
    let text = read(&notes, "diary");
    let line = "- saw [[memory#Silica|silica]], [[memory#Beds|the beds]], `[[silica]]` and [[nowhere]]\n\n```\n[[silica]]\n```\n";
    assert!(text.contains(line), "{text}");
    assert!(read(&notes, "deep/er").starts_with("up to [[memory#Website|../website]]\n"));
    notes.memory().undo(noted(), &UndoScope::Change(done.change.unwrap())).unwrap();
    assert_eq!((read(&notes, "diary").as_str(), read(&notes, "silica").is_empty()), (diary, false));
}

#[test]
fn no_link_stands_in_the_way() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let far = format!("- [[{}]] - far\n- [[../memory]] - back\n- [[./silica]] - again\n", "x".repeat(300));
    changed(&notes, "", "## Links\n\n", &format!("## Links\n\n{far}"));
    changed(&notes, "silica", "## Metadata", &format!("## Links\n\n{far}\n## Metadata"));
    changed(&notes, "silica", "split_from: memory", "split_from: ../memory");
    assert_eq!(update(&notes, "Silica has a logo").path, "silica");
    changed(&notes, "silica", "split_from: ../memory", "split_from: memory");
    assert!(merge(&notes).merged.contains(&"silica".to_owned()));
    assert!(read(&notes, "").contains("- [[../memory]] - back\n"));
}

#[test]
fn relative_links_lead_where_they_led_before_a_split() {
    let notes = notes();
    put(&notes, "work/budget", "# Budget\n");
    put(&notes, "people", "# People\n");
    let text = three_projects()
        + "\n## Rest\n\n- see [[./budget]] and [[../people]]\n"
        + &"- the rest of the garden\n".repeat(90);
    write(&notes, "work/plan", &text, Mode::Replace);
    let list = notes.list().unwrap();
    let rest = list.iter().find(|info| info.path == "work/plan/rest").unwrap();
    assert_eq!(rest.links_to, ["work/budget", "people"]);
    assert!(read(&notes, "work/plan/rest").contains("[[./budget]] and [[../people]]"), "as it was written");
    assert_eq!(notes.linked("./budget", "work/plan/rest").unwrap().as_deref(), Some("work/budget"));
    let dead: Vec<_> =
        notes.check().unwrap().into_iter().filter(|f| f.what.contains("points to no")).collect();
    assert!(dead.is_empty(), "{dead:?}");
}

#[test]
fn a_version_that_is_expected_is_checked_by_splits_and_merges_too() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let (_, version) = notes.read(None).unwrap();
    let guarded = Guarded { expect: Some(version) };
    update(&notes, "something that fits nowhere");
    let refused = notes.merge(noted(), None, &[], MergeSize::Any, &guarded).unwrap_err();
    assert_eq!(refused.code_name(), Some("VERSION_MISMATCH"));
    assert_eq!(notes.split(noted(), None, &guarded).unwrap_err().code_name(), Some("VERSION_MISMATCH"));
    let guarded = Guarded { expect: Some(notes.read(None).unwrap().1) };
    notes.merge(noted(), None, &[], MergeSize::Any, &guarded).unwrap();
}

#[test]
fn files_of_other_machines_stay_as_they_are() {
    let notes = notes();
    put(&notes, "memory", "\u{feff}---\r\ntags: [a]\r\n---\r\n# Mine\r\n\r\n- one\r\n");
    update(&notes, "another fact");
    let text = read(&notes, "");
    assert!(
        text.starts_with("\u{feff}---\r\ntags: [a]\r\n---\r\n# Mine\r\n\r\n- one\r\n- another fact\r\n"),
        "{text:?}"
    );
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text:?}");
    let bytes = b"# Caf\xe9\n\n## Metadata\n\nsize_bytes: 1\n";
    let edit = Edit::Write { at: at("notes/latin.md"), bytes: bytes.to_vec().into(), expect: Expect::Any };
    notes.memory().apply(noted(), |_| Ok(Plan { edits: vec![edit.clone()], outcome: () })).unwrap();
    let found = notes.check().unwrap();
    assert!(
        found.iter().any(|found| found.at == "notes/latin.md" && found.what.contains("UTF-8")),
        "{found:?}"
    );
    assert_eq!(notes.mend(noted()).unwrap().change, None, "it is left alone");
    changed(&notes, "", "- one", "- [[latin]]");
    update(&notes, "a third fact");
}
