//! Taking changes of records back, versions that readings leave alone, and what is done on the side.

use memgrove::Kind;
use memgrove::memory::UndoScope;
use memgrove::shapes::records::{
    Guarded, Limits, NewRecord, Patch, Query, Record, RecordType, Status, Which,
};

use super::{Folder, any, note};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn content(text: &str) -> Patch {
    Patch { content: Some(text.to_owned()), ..Patch::default() }
}

impl Folder {
    fn update(&self, record: &Record, patch: &Patch) -> memgrove::backend::ChangeId {
        self.records.update(note("record_update"), &any(record), patch).unwrap().change.unwrap()
    }

    fn undo(&self, scope: &UndoScope) -> memgrove::Result<()> {
        self.memory.undo(note("undo"), scope).map(drop)
    }

    fn said(&self) -> Vec<String> {
        let mut said = self.contents(&Query::default());
        said.sort_unstable();
        said
    }
}

#[test]
fn a_change_is_undone_though_others_came_to_the_same_file() {
    let folder = Folder::new();
    let [a, b] = ["a", "b"].map(|text| folder.add(RecordType::Core, text));
    let updated = folder.update(&a, &content("A"));
    folder.records.get(&a.id).unwrap();
    folder.add(RecordType::Core, "c");
    // More changes than there are backups, and readings that are counted on the way.
    for round in 0..8 {
        folder.update(&b, &content(&format!("b{round}")));
    }
    folder.undo(&UndoScope::Change(updated)).unwrap();
    assert_eq!(folder.said(), ["a", "b7", "c"]);
    assert_eq!(folder.records.view(&a.id).unwrap().record.access_count, 1, "readings stay");

    let deleted = folder.records.delete(note("d"), &any(&a)).unwrap().change.unwrap();
    folder.update(&b, &content("b"));
    folder.undo(&UndoScope::Change(deleted)).unwrap();
    assert_eq!(folder.said(), ["a", "b", "c"]);
    let put_away = folder.records.archive(note("a"), &[any(&a)]).unwrap().change.unwrap();
    folder.update(&b, &content("B"));
    folder.undo(&UndoScope::Change(put_away)).unwrap();
    assert_eq!(folder.said(), ["B", "a", "c"]);
    assert!(folder.names("archive").iter().all(|name| folder.bytes(name).is_empty()));
}

#[test]
fn a_record_that_was_changed_again_is_not_undone_past_that() {
    let folder = Folder::new();
    let a = folder.add(RecordType::Core, "a");
    let first = folder.update(&a, &content("b"));
    folder.update(&a, &content("c"));
    let error = folder.undo(&UndoScope::Change(first)).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert_eq!(folder.said(), ["c"]);
}

#[test]
fn an_undo_passes_over_what_nobody_asked_for() {
    let folder = Folder::new();
    let old = folder.add(RecordType::Learning, "old");
    folder.clock.advance_ms(91 * DAY_MS);
    let new = folder.add(RecordType::Learning, "new");
    folder.records.settle().unwrap();
    folder.update(&new, &content("newer"));
    folder.records.get(&new.id).unwrap();
    folder.records.flush().unwrap();
    folder.undo(&UndoScope::Last).unwrap();
    assert_eq!(folder.said(), ["new"], "the update, not the reading");
    folder.undo(&UndoScope::Last).unwrap();
    assert_eq!(folder.said(), Vec::<String>::new(), "the addition, not what was archived on the side");
    assert!(folder.records.view(&old.id).unwrap().record.archived);
}

#[test]
fn reading_changes_no_version_and_an_update_tells_what_is_there() {
    let folder = Folder::new();
    let [a, b] = ["a", "b"].map(|text| folder.add(RecordType::Core, text));
    let seen = [&a, &b].map(|record| folder.records.get(&record.id).unwrap());
    folder.records.get(&b.id).unwrap();
    for got in &seen {
        let which = Guarded { id: got.record.id.clone(), expect: Some(got.version.as_str().to_owned()) };
        let done = folder.records.update(note("u"), &which, &content("changed")).unwrap().outcome;
        let there = folder.records.view(&got.record.id).unwrap();
        assert_eq!((Some(there.version), there.record), (done.version, done.record));
    }
}

#[test]
fn a_task_that_was_restored_stays() {
    let folder = Folder::new();
    let new = NewRecord { status: Some(Status::Completed), ..NewRecord::new(RecordType::Task, "done") };
    let task = folder.add_one(new);
    folder.clock.advance_ms(31 * DAY_MS);
    folder.records.settle().unwrap();
    assert_eq!(folder.said(), Vec::<String>::new());
    folder.records.restore(note("r"), &any(&task)).unwrap();
    folder.records.settle().unwrap();
    assert_eq!(folder.said(), ["done"]);
    folder.clock.advance_ms(31 * DAY_MS);
    folder.records.settle().unwrap();
    assert_eq!(folder.said(), Vec::<String>::new(), "but not for ever");
}

#[test]
fn a_backup_goes_back_to_where_it_is_from() {
    let folder = Folder::new();
    let [a, b] = ["a", "b"].map(|text| folder.add(RecordType::Learning, text));
    folder.records.archive(note("a"), &[any(&a), any(&b)]).unwrap();
    folder.records.delete(note("d"), &any(&a)).unwrap();
    let archive = folder.names("archive").remove(0);
    let (_, file) = archive.rsplit_once('/').unwrap();
    let backup = folder.records.backups().unwrap().into_iter().find(|backup| backup.file == file).unwrap();
    let named = |name: &str| folder.records.restore_backup(note("r"), &Which::Named(name.to_owned()));
    assert_eq!(named(&backup.name).unwrap().outcome.records, 2);
    assert_eq!(folder.text(&archive).lines().count(), 2);
    assert!(folder.bytes(file).is_empty());
    folder.put(".backup/notes.txt.backup.20260101_000000", b"x");
    assert_eq!(named("notes.txt.backup.20260101_000000").unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn many_readings_are_counted_in_the_files_and_then_forgotten() {
    let folder = Folder::new();
    let [kept, put_away] = ["kept", "put away"].map(|text| folder.add(RecordType::Core, text));
    folder.records.archive(note("a"), &[any(&put_away)]).unwrap();
    for _ in 0..300 {
        folder.clock.advance_ms(1);
        folder.records.get(&kept.id).unwrap();
        folder.records.get(&put_away.id).unwrap();
    }
    let logged = folder.text(".access.jsonl");
    assert!(logged.lines().count() < 300, "{} of 600", logged.lines().count());
    for record in [&kept, &put_away] {
        assert_eq!(folder.records.view(&record.id).unwrap().record.access_count, 300);
    }
}

#[test]
fn limits_hold_for_changes_too() {
    let limits = Limits { core_bytes_max: 1_000, core_records_max: 50, ..Limits::default() };
    let folder = Folder::limited(limits);
    let done = folder.records.add(note("a"), &[NewRecord::new(RecordType::Core, "a")]).unwrap().outcome;
    assert_eq!(done.warnings, Vec::<String>::new(), "1 of 50 is not nearly full");
    let a = &done.records[0];
    let grown = folder.records.update(note("u"), &any(a), &content(&"x".repeat(900)));
    assert_eq!(grown.unwrap_err().kind(), Kind::Full);

    let folder = Folder::new();
    let a = folder.add(RecordType::Learning, "a");
    let text = folder.text("learnings.jsonl");
    let filled = text.replace("\"content\"", &format!("\"more\":\"{}\",\"content\"", "x".repeat(9_000)));
    folder.put("learnings.jsonl", filled.as_bytes());
    let error = folder.records.update(note("u"), &any(&a), &content(&"y".repeat(2_000))).unwrap_err();
    assert!(error.message().starts_with("the record's line has "), "{error}");
}

#[test]
fn words_are_found_however_their_letters_are_written() {
    let folder = Folder::new();
    folder.add(RecordType::Core, "Cafe\u{301} in Koln");
    for words in ["CAF\u{c9}", "cafe\u{301}"] {
        assert_eq!(
            folder.contents(&Query { text: Some(words.into()), ..Query::default() }).len(),
            1,
            "{words}"
        );
    }
}
