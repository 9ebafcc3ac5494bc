//! The past of one record among many in a file.

use memgrove::backend::{ChangeId, Moment};
use memgrove::memory::{Point, Restored};
use memgrove::shapes::records::{Got, Guarded, Patch, RecordType};
use memgrove::{Kind, Result};

use super::{Folder, any, note};

fn changes(folder: &Folder, id: &str) -> Result<Vec<String>> {
    Ok(folder.records.history_of(id, 0)?.changes.into_iter().map(|past| past.change.to_string()).collect())
}

fn after(change: &str) -> Point {
    Moment::After(ChangeId::new(change)).into()
}

fn content(folder: &Folder, id: &str, point: &Point) -> Result<Option<String>> {
    let line = folder.records.read_past(id, point)?;
    Ok(line.map(|line| {
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        value["content"].as_str().unwrap().to_owned()
    }))
}

#[test]
fn a_record_has_a_past_of_its_own() -> Result<()> {
    let folder = Folder::new();
    let mut records: Vec<_> =
        (0..9).map(|at| folder.add(RecordType::Learning, &format!("fact {at}"))).collect();
    let it = records.remove(4);
    let patch = |text: &str| Patch { content: Some(text.to_owned()), ..Patch::default() };
    folder.records.update(note("u"), &any(&it), &patch("fact four"))?;
    folder.records.update(note("u"), &any(&records[0]), &patch("another"))?;
    folder.add(RecordType::Task, "something else");
    folder.records.archive(note("a"), &[any(&it)])?;
    assert_eq!(changes(&folder, &it.id)?, ["13", "10", "5"]);
    assert_eq!(folder.records.history_of(&it.id, 2)?.changes.len(), 2);
    folder.records.restore(note("r"), &any(&it))?;
    folder.records.delete(note("d"), &any(&it))?;
    assert_eq!(changes(&folder, &it.id)?, ["15", "14", "13", "10", "5"]);
    for (change, wanted) in [("4", None), ("5", Some("fact 4")), ("12", Some("fact four")), ("15", None)] {
        assert_eq!(content(&folder, &it.id, &after(change))?.as_deref(), wanted, "after {change}");
    }
    assert_eq!(changes(&folder, "never").expect_err("there was none").kind(), Kind::NotFound);
    Ok(())
}

#[test]
fn a_record_comes_back_as_it_was() -> Result<()> {
    let folder = Folder::new();
    let it = folder.add(RecordType::Learning, "one");
    let Got { text: line, version, .. } = folder.records.view(&it.id)?;
    let patch = Patch { content: Some("two".to_owned()), ..Patch::default() };
    folder.records.update(note("u"), &any(&it), &patch)?;
    folder.add(RecordType::Learning, "beside it");
    let back = |to: &Point| folder.records.restore_past(note("restore"), &any(&it), to);
    assert_eq!(back(&after("1"))?.outcome, Restored::Written);
    assert_eq!(folder.records.view(&it.id)?.text, line);
    assert_eq!(back(&after("1"))?.outcome, Restored::Unchanged);
    folder.records.delete(note("d"), &any(&it))?;
    assert_eq!(back(&version.into())?.outcome, Restored::Written);
    folder.records.archive(note("a"), &[any(&it)])?;
    assert_eq!(back(&after("2"))?.outcome, Restored::Written);
    assert_eq!(folder.text("learnings.jsonl").matches(&it.id).count(), 1);
    assert_eq!(folder.text("learnings.jsonl").lines().count(), 2);
    let wrong = Guarded { id: it.id.clone(), expect: Some("00000000".to_owned()) };
    let refused = folder.records.restore_past(note("restore"), &wrong, &after("1"));
    assert_eq!(refused.expect_err("another version").kind(), Kind::Conflict);
    // Before it was made there was none.
    let before = Moment::Before(ChangeId::new("1")).into();
    assert_eq!(back(&before)?.outcome, Restored::Deleted);
    assert_eq!(back(&before)?.outcome, Restored::Unchanged);
    Ok(())
}
