//! The past of one record, found by its id however that is written, and one place for every id.

use memgrove::backend::Version;
use memgrove::backends::{Local, LocalOptions};
use memgrove::memory::{Point, Restored, UndoScope};
use memgrove::shapes::records::{
    Archived, Guarded, NewRecord, Patch, Query, Record, RecordType, Status, Which,
};
use memgrove::vfs::{Open, SimFs, Vfs};
use memgrove::{Kind, Store};

use super::{Folder, any, note};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Folder {
    fn change(&self, record: &Record, content: &str) {
        let patch = Patch { content: Some(content.to_owned()), ..Patch::default() };
        self.records.update(note("record_update"), &any(record), &patch).unwrap();
    }

    fn verbs(&self, id: &str) -> Vec<String> {
        let past = self.records.history_of(id, 0).unwrap();
        let verbs = past.changes.into_iter().map(|past| past.note.verb);
        verbs.filter(|verb| !verb.is_empty()).collect()
    }

    fn version(&self, record: &Record) -> Version {
        self.records.view(&record.id).unwrap().version
    }

    /// On a disk that others write to as well.
    fn on_disk() -> (Self, SimFs) {
        let (disk, folder) = (SimFs::new(), Folder::new());
        let options = LocalOptions::new(std::sync::Arc::new(disk.clone()), folder.clock.clone());
        let local = Local::open(LocalOptions { background: false, ..options }).unwrap();
        (Folder::over(Store::new(local), &folder.clock, &folder.ids), disk)
    }
}

fn replace(disk: &SimFs, edit: impl Fn(String) -> String) {
    let file = disk.open("records/learnings.jsonl", Open::Write).unwrap();
    let text = edit(String::from_utf8(file.read_all().unwrap()).unwrap());
    file.set_len(0).unwrap();
    file.write_at(0, text.as_bytes()).unwrap();
}

#[test]
fn a_record_is_brought_back_by_any_spelling_of_its_id_and_by_every_version() {
    for escaped in [false, true] {
        for upper in [false, true] {
            let folder = Folder::new();
            let [a, b] = ["a", "b"].map(|text| folder.add(RecordType::Learning, text));
            if escaped {
                let text = folder.text("learnings.jsonl").replace("\"id\":\"0", "\"id\":\"\\u0030");
                folder.put("learnings.jsonl", text.as_bytes());
            }
            let mut versions = vec![folder.version(&a)];
            for text in ["a1", "a2"] {
                folder.change(&a, text);
                folder.change(&b, text);
                folder.records.get(&a.id).unwrap();
                folder.records.flush().unwrap();
                versions.push(folder.version(&a));
            }
            let id = if upper { a.id.to_ascii_uppercase() } else { a.id.clone() };
            assert_eq!(folder.verbs(&id), ["record_update", "record_update", "record_add"], "{id} {escaped}");
            for (version, text) in versions.iter().zip(["a", "a1", "a2"]) {
                let point = Point::Version(Version::new(&version.as_str()[..12]));
                let restore = || folder.records.restore_past(note("restore"), &Guarded::any(&id), &point);
                assert_eq!(restore().unwrap().outcome, Restored::Written, "{text}");
                assert_eq!(folder.records.view(&id).unwrap().record.content, text);
                assert_eq!(restore().unwrap().outcome, Restored::Unchanged);
            }
        }
    }
}

#[test]
fn a_line_that_was_added_by_hand_came_with_no_change() {
    let (folder, disk) = Folder::on_disk();
    let a = folder.add(RecordType::Learning, "a");
    let by_hand = a.id.replace("-4001-", "-4009-");
    assert_ne!(by_hand, a.id);
    replace(&disk, |text| text.clone() + &text.replace(&a.id, &by_hand));
    folder.add(RecordType::Learning, "c");
    folder.change(&a, "A");
    assert_eq!(folder.verbs(&by_hand), Vec::<String>::new());
    assert_eq!(folder.verbs(&a.id), ["record_update", "record_add"]);
    let point = Point::Version(folder.records.view(&by_hand).unwrap().version);
    folder.records.delete(note("record_delete"), &Guarded::any(&by_hand)).unwrap();
    assert_eq!(folder.verbs(&by_hand), ["record_delete"]);
    folder.records.restore_past(note("restore"), &Guarded::any(&by_hand), &point).unwrap();
    assert_eq!(folder.records.view(&by_hand).unwrap().record.content, "a");
}

#[test]
fn appends_are_undone_though_another_program_strips_newlines_or_writes_all_lines_anew() {
    let (folder, disk) = Folder::on_disk();
    let a = folder.add(RecordType::Learning, "a");
    let strip = |text: String| text.trim_end().to_owned();
    replace(&disk, strip);
    folder.add(RecordType::Learning, "b");
    replace(&disk, strip);
    folder.memory.undo(note("undo"), &UndoScope::Last).unwrap();
    assert_eq!(folder.contents(&Query::default()), ["a"]);
    folder.change(&a, "A");
    replace(&disk, |text| text.replace("\":", "\": ").replace(",\"", ", \""));
    folder.memory.undo(note("undo"), &UndoScope::Last).unwrap();
    assert_eq!(folder.contents(&Query::default()), ["a"]);
}

#[test]
fn an_id_is_in_one_place_however_it_was_put_away_and_brought_back() {
    let folder = Folder::new();
    let a = folder.add(RecordType::Learning, "v1");
    let archive = || folder.records.archive(note("archive"), &[any(&a)]).unwrap();
    let backup = || folder.records.restore_backup(note("r"), &Which::Newest(RecordType::Learning)).unwrap();
    let all = || folder.contents(&Query { archived: Archived::Any, ..Query::default() });
    archive();
    backup();
    assert_eq!(all(), ["v1"], "what a backup brings back is no longer put away");
    folder.change(&a, "v2");
    archive();
    assert_eq!(folder.records.view(&a.id).unwrap().record.content, "v2");

    // As other programs, or older versions, may have left it: here and there, in two quarters.
    let line = folder.records.view(&a.id).unwrap().text;
    for file in ["learnings.jsonl", "archive/2020/learnings_2020_Q1.jsonl"] {
        folder.put(file, (line.replace("v2", "v3").replace("true", "false") + "\n").as_bytes());
    }
    archive();
    assert_eq!(all(), ["v3"]);
    folder.put("learnings.jsonl", (line + "\n").as_bytes());
    folder.records.delete(note("record_delete"), &any(&a)).unwrap();
    assert_eq!(folder.records.view(&a.id).unwrap_err().kind(), Kind::NotFound);
    assert!(all().is_empty());
}

#[test]
fn what_is_changed_is_in_use_and_upkeep_is_not_in_the_way_of_an_undo() {
    let folder = Folder::new();
    let old = folder.add(RecordType::Learning, "old");
    folder.clock.advance_ms(91 * DAY_MS);
    folder.change(&old, "new");
    folder.records.settle().unwrap();
    assert_eq!(folder.contents(&Query::default()), ["new"], "it was changed just now");
    folder.clock.advance_ms(91 * DAY_MS);
    folder.records.settle().unwrap();
    assert!(folder.contents(&Query::default()).is_empty());
    let undone = folder.memory.undo(note("undo"), &UndoScope::Last).unwrap().outcome;
    assert_eq!(undone.changes.len(), 2, "with what was archived on the side");
    assert_eq!(folder.contents(&Query::default()), ["old"]);
}

#[test]
fn what_other_programs_name_otherwise_is_understood() {
    let folder = Folder::new();
    let a = folder.add(RecordType::Learning, "a");
    let line = folder.text("learnings.jsonl");
    folder.put(".backup/learning_memories.jsonl.backup.20260101_100000", line.as_bytes());
    folder.put("learnings.jsonl", line.replace("\"a\"", "\"b\"").as_bytes());
    let which = Which::Newest(RecordType::Learning);
    let done = folder.records.restore_backup(note("r"), &which).unwrap().outcome;
    assert_eq!((done.file.as_str(), done.records), ("learnings.jsonl", 1));
    assert_eq!(folder.contents(&Query::default()), ["a"]);

    folder.put("archive/2025/learning_memories_2025_Q4.jsonl", line.replace(&a.id, "other").as_bytes());
    let only = Query { archived: Archived::Only, ..Query::default() };
    assert_eq!(folder.contents(&only), ["a"], "whatever its line says");
    assert!(folder.records.view("other").unwrap().record.archived);
}

#[test]
fn a_task_is_found_by_what_it_waits_for_and_what_came_of_it() {
    let folder = Folder::new();
    let task = |content: &str| NewRecord::new(RecordType::Task, content);
    folder.add_one(NewRecord { blockers: vec!["Quorum of editors".into()], ..task("one") });
    let done = NewRecord { status: Some(Status::Completed), outcome: Some("Shipped".into()), ..task("two") };
    folder.add_one(done);
    for (words, found) in [("quorum", "one"), ("SHIPPED", "two")] {
        assert_eq!(folder.contents(&Query { text: Some(words.into()), ..Query::default() }), [found]);
    }
}
