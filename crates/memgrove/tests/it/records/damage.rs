//! Every kind of damage: loading goes on, nothing is dropped, the report names the line.

use memgrove::Kind;
use memgrove::backend::Level;
use memgrove::clock::Timestamp;
use memgrove::shapes::records::table::Table;
use memgrove::shapes::records::{Limits, NewRecord, Query, RecordType};
use memgrove::text::jsonl;
use proptest::prelude::*;

use super::{Folder, note};

fn line(id: u32, content: &str) -> String {
    format!(
        "{{\"id\":\"550e8400-e29b-41d4-a716-{id:012}\",\"type\":\"core\",\"content\":\"{content}\",\
         \"created_at\":\"2026-01-01T10:00:00Z\",\"updated_at\":\"2026-01-01T10:00:00Z\",\
         \"accessed_at\":\"2026-01-01T10:00:00Z\",\"access_count\":0,\"tags\":[],\"importance\":\"high\",\
         \"archived\":false}}"
    )
}

/// A file, what is read of it, what the check says (`line: what`), and what mending leaves.
fn check(bytes: &[u8], contents: &[&str], told: &[&str], mended: Option<&[u8]>) {
    let folder = Folder::holding(&[("core_memories.jsonl", bytes)]);
    assert_eq!(folder.contents(&Query::default()), contents);
    let findings = folder.records.check().unwrap();
    let said: Vec<String> = findings
        .iter()
        .map(|finding| format!("{}: {}", finding.at.rsplit(':').next().unwrap(), finding.what))
        .collect();
    assert_eq!(said, told);
    assert_eq!(folder.bytes("core_memories.jsonl"), bytes, "looking changes nothing");
    folder.records.mend(note("doctor")).unwrap();
    let now = folder.bytes("core_memories.jsonl");
    assert_eq!(String::from_utf8_lossy(&now), String::from_utf8_lossy(mended.unwrap_or(bytes)));
    if mended.is_some() {
        let backups = folder.records.backups().unwrap();
        assert_eq!(folder.bytes(&format!(".backup/{}", backups[0].name)), bytes, "the original is kept");
    }
    assert_eq!(folder.contents(&Query::default()).len(), contents.len().max(said_mendable(told)));
}

/// Mending names what has no id, so there may be one record more.
fn said_mendable(told: &[&str]) -> usize {
    1 + told.iter().filter(|told| told.contains("no `id`")).count()
}

#[test]
fn every_kind_of_damage() {
    let (a, b) = (line(1, "a"), line(2, "b"));
    check(format!("{a}\nnot json\n").as_bytes(), &["a"], &["2: it is not JSON: expected ident"], None);
    check(format!("{a}\n{}", &b[..60]).as_bytes(), &["a"], &["2: it is cut off"], None);
    check(
        format!("{a}\n\0\0\0\0").as_bytes(),
        &["a"],
        &["2: it is NUL bytes, as a power cut leaves them"],
        Some(format!("{a}\n").as_bytes()),
    );
    check(
        format!("{a}\n{}\0\0\n", &b[..60]).as_bytes(),
        &["a"],
        &["2: it is cut off", "2: it is NUL bytes, as a power cut leaves them"],
        Some(format!("{a}\n{}\n", &b[..60]).as_bytes()),
    );
    check(
        format!("\u{feff}{a}\n").as_bytes(),
        &["a"],
        &["1: a byte order mark stands before the first record"],
        Some(format!("{a}\n").as_bytes()),
    );
    check(format!("{a}\r\n{b}\r\n").as_bytes(), &["a", "b"], &[], None);
    check(
        format!("{a}{b}\n").as_bytes(),
        &["a", "b"],
        &["1: it holds several objects"],
        Some(format!("{a}\n{b}\n").as_bytes()),
    );
    check(
        format!("{}{b}\n", &a[..70]).as_bytes(),
        &["b"],
        &["1: it is cut off"],
        Some(format!("{}\n{b}\n", &a[..70]).as_bytes()),
    );
    check(&[a.as_bytes(), b"\n{\"id\":\"\xff\"}\n"].concat(), &["a"], &["2: it is not UTF-8 text"], None);
    check(
        format!("{a}\n{a}\n").as_bytes(),
        &["a"],
        &["2: its id 550e8400-e29b-41d4-a716-000000000001 came before"],
        Some(format!("{a}\n").as_bytes()),
    );
    let twin = line(1, "twin");
    check(
        format!("{a}\n{twin}\n").as_bytes(),
        &["a"],
        &["2: its id 550e8400-e29b-41d4-a716-000000000001 came before"],
        None,
    );
    check(format!("{a}\n[1]\n\n").as_bytes(), &["a"], &["2: it is not a JSON object"], None);
    let empty = line(3, "");
    check(format!("{a}\n{empty}\n").as_bytes(), &["a"], &["2: its `content` is empty"], None);
}

#[test]
fn schema_errors_are_corrected() {
    let poor = "{\"id\":\"550e8400-e29b-41d4-a716-000000000001\",\"content\":\"a\",\"x\":1,\
                \"created_at\":\"2026-01-01T10:00:00\",\"tags\":\"t\",\"importance\":\"HIGH\",\"access_count\":\"7\"}";
    let mended = "{\"id\":\"550e8400-e29b-41d4-a716-000000000001\",\"content\":\"a\",\"x\":1,\
                  \"created_at\":\"2026-01-01T10:00:00Z\",\"tags\":[\"t\"],\"importance\":\"high\",\"access_count\":7,\
                  \"type\":\"core\",\"updated_at\":\"2026-01-01T10:00:00Z\",\
                  \"accessed_at\":\"2026-01-01T10:00:00Z\",\"archived\":false}\n";
    let told = [
        "1: `type` is missing",
        "1: `created_at` is not a time of ISO 8601 with a zone",
        "1: `updated_at` is missing",
        "1: `accessed_at` is missing",
        "1: `access_count` is not a count",
        "1: `tags` is not a list of texts",
        "1: `importance` is not high, medium or low",
        "1: `archived` is missing",
    ];
    check(format!("{poor}\n").as_bytes(), &["a"], &told, Some(mended.as_bytes()));
    // What another program writes as null is as good as absent.
    let null = line(1, "a").replace("\"tags\"", "\"category\":null,\"task_metadata\":null,\"tags\"");
    check(null.as_bytes(), &["a"], &[], None);
}

#[test]
fn what_has_no_id_gets_one() {
    let nameless = line(1, "a").replacen("\"id\":\"550e8400-e29b-41d4-a716-000000000001\",", "", 1);
    let folder = Folder::holding(&[("core_memories.jsonl", format!("{nameless}\n").as_bytes())]);
    assert!(folder.contents(&Query::default()).is_empty());
    folder.records.mend(note("doctor")).unwrap();
    assert_eq!(folder.contents(&Query::default()), ["a"]);
    assert!(folder.records.check().unwrap().is_empty());
}

#[test]
fn a_ruined_file_comes_back_as_it_was_last_written() {
    let folder = Folder::new();
    let one = folder.add(RecordType::Core, "one");
    folder.records.delete(note("d"), &super::any(&one)).unwrap();
    folder.add(RecordType::Core, "two");
    folder.add(RecordType::Core, "three");
    for ruin in [&b"\0\0\0\0garbage"[..], b""] {
        folder.put("core_memories.jsonl", ruin);
        let findings = folder.records.check().unwrap();
        assert_eq!((findings.len(), findings[0].level), (1, Level::Error), "{ruin:?}");
        assert!(findings[0].hint.contains("restores 2 records from change "), "{findings:?}");
        assert_eq!(folder.records.list(&Query::default()).unwrap().total, 0, "loading does not fail");
        let done = folder.records.mend(note("doctor")).unwrap().outcome.done;
        assert!(done[0].contains("of the history: 2 records"), "{done:?}");
        assert_eq!(folder.contents(&Query::default()), ["three", "two"]);
    }
    let kept = folder
        .records
        .backups()
        .unwrap()
        .iter()
        .any(|backup| folder.bytes(&format!(".backup/{}", backup.name)) == b"\0\0\0\0garbage");
    assert!(kept, "the ruin itself is kept");
}

#[test]
fn records_that_vanish_at_once_are_missed_though_others_were_added_since() {
    for ruin in [Some(&b"\0\0\0\0"[..]), Some(b"{\"torn"), Some(b""), None] {
        let folder = Folder::new();
        let gone = folder.add(RecordType::Core, "gone");
        for text in ["one", "two", "three"] {
            folder.add(RecordType::Core, text);
        }
        folder.records.delete(note("d"), &super::any(&gone)).unwrap();
        match ruin {
            Some(bytes) => folder.put("core_memories.jsonl", bytes),
            None => folder.take_away("core_memories.jsonl"),
        }
        let told = |wanted: &str| {
            let findings = folder.records.check().unwrap();
            assert!(findings[0].hint.contains(wanted), "{ruin:?}: {findings:?}");
            assert_eq!(findings[0].level, Level::Error);
        };
        told("restores 3 records from change ");
        folder.records.list(&Query::default()).unwrap();
        assert_eq!(folder.records.take_warnings().len(), usize::from(ruin.is_some_and(|it| !it.is_empty())));
        folder.add(RecordType::Core, "four");
        told("restores 3 records from change ");
        folder.records.mend(note("doctor")).unwrap();
        assert_eq!(folder.contents(&Query::default()).len(), 4, "{ruin:?}");
        // What is taken out now stays out.
        let one = folder.records.list(&Query { text: Some("one".into()), ..Query::default() }).unwrap();
        folder.records.delete(note("d"), &super::any(&one.records[0])).unwrap();
        assert!(folder.records.mend(note("doctor")).unwrap().change.is_none(), "{ruin:?}");
    }
}

#[test]
fn what_a_person_takes_out_by_hand_stays_out() {
    let folder = Folder::new();
    for text in ["one", "two", "three"] {
        folder.add(RecordType::Core, text);
    }
    let text = folder.text("core_memories.jsonl");
    let (rest, _) = text.trim_end().rsplit_once('\n').unwrap();
    folder.put("core_memories.jsonl", format!("{rest}\n").as_bytes());
    folder.add(RecordType::Core, "four");
    assert!(folder.records.check().unwrap().is_empty());
    assert!(folder.records.mend(note("doctor")).unwrap().change.is_none());
}

#[test]
fn without_a_history_a_ruined_file_comes_back_from_its_backup_or_the_archive() {
    let backup = ".backup/core_memories.jsonl.backup.20260101_000000";
    let (sound, archive) = (line(1, "one"), "archive/2025/learning_memories_2025_Q4.jsonl");
    let learning = sound.replace("\"core\"", "\"learning\"");
    let torn_and_sound = format!("{{\"torn\n{sound}");
    for (files, told) in [
        (
            vec![("core_memories.jsonl", "\u{0}garbage"), (backup, &sound)],
            Some(format!("{backup}: 1 records")),
        ),
        // What is damaged stands in the backup too: the record beside it was taken out since.
        (vec![("core_memories.jsonl", "{\"torn\n"), (backup, &torn_and_sound)], None),
        (
            vec![("learnings.jsonl", "garbage"), (archive, &learning)],
            Some("the archive: 1 records".to_owned()),
        ),
        (vec![("learnings.jsonl", "garbage")], None),
    ] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        let folder = Folder::holding(&files);
        let done = folder.records.mend(note("doctor")).unwrap().outcome.done;
        let wanted = told.map(|told| format!("records/{}: restored from {told}", files[0].0));
        assert_eq!(done, Vec::from_iter(wanted));
    }
}

#[test]
fn what_was_taken_out_does_not_come_back_for_a_damaged_line_that_stayed() {
    let folder = Folder::new();
    let one = folder.add(RecordType::Learning, "one");
    let two = folder.add(RecordType::Learning, "two");
    let damaged = [folder.bytes("learnings.jsonl"), b"{\"torn\n".to_vec()].concat();
    folder.put("learnings.jsonl", &damaged);
    folder.records.delete(note("d"), &super::any(&one)).unwrap();
    folder.records.archive(note("a"), &[super::any(&two)]).unwrap();
    let findings = folder.records.check().unwrap();
    assert_eq!(findings.iter().map(|finding| &*finding.what).collect::<Vec<_>>(), ["it is cut off"]);
    assert!(folder.records.mend(note("doctor")).unwrap().change.is_none());
    assert_eq!(folder.text("learnings.jsonl"), "{\"torn\n");
}

#[test]
fn a_file_in_the_place_of_a_folder_is_told() {
    let folder = Folder::holding(&[(".backup", b"x")]);
    let findings = folder.records.check().unwrap();
    assert_eq!((findings[0].at.as_str(), findings[0].level), ("records/.backup", Level::Error));
}

#[test]
fn mending_keeps_what_others_say_of_a_task() {
    let odd = line(1, "x").replace("\"core\"", "\"task\"").replace(
        "\"content\"",
        "\"task_metadata\":{\"status\":\"completed\",\"n\":123456789012345678901234567890,\"n\":1},\"content\"",
    );
    let folder = Folder::holding(&[("tasks.jsonl", odd.as_bytes())]);
    folder.records.mend(note("doctor")).unwrap();
    let text = folder.text("tasks.jsonl");
    assert!(text.contains("\"n\":123456789012345678901234567890,\"n\":1,\"completed_at\":\""), "{text}");
}

#[test]
fn an_addition_closes_a_line_that_was_left_open() {
    let torn = &line(1, "a")[..50];
    let folder = Folder::holding(&[("core_memories.jsonl", torn.as_bytes())]);
    folder.add(RecordType::Core, "b");
    assert!(folder.text("core_memories.jsonl").starts_with(&format!("{torn}\n{{\"id\"")));
    assert_eq!(folder.contents(&Query::default()), ["b"]);
    let error = folder.records.get("550e8400-e29b-41d4-a716-000000000001").unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    folder.records.add(note("a"), &[NewRecord::new(RecordType::Core, "c")]).unwrap();
    assert_eq!(folder.text("core_memories.jsonl").lines().count(), 3);
}

/// Bytes that are often nearly records.
fn nearly_records() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(line(1, "a").into_bytes()),
        Just(line(2, "b").into_bytes()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\0\0".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"{\"id\":\"x\",".to_vec()),
        Just(b"{\"content\":\"c\"}".to_vec()),
        Just(br#"{"id":{"id":1,"content":2},"content":["#.to_vec()),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd_to_read(bytes in nearly_records()) {
        let whole: Vec<u8> = jsonl::lines(&bytes).flat_map(|line| bytes[line.whole].to_vec()).collect();
        prop_assert_eq!(&whole, &bytes);
        let (limits, now) = (Limits::default(), Timestamp::UNIX_EPOCH);
        let table = Table::parse(RecordType::Core, bytes.clone(), None, &limits, now);
        for row in &table.rows {
            table.reading(row, &limits);
        }
        // Growing line by line is reading at once.
        let mut grown = Table::parse(RecordType::Core, Vec::new(), None, &limits, now);
        for line in jsonl::lines(&bytes) {
            let more = bytes[..line.whole.end].to_vec();
            match grown.is_grown(&more) {
                true => grown.grow(more, None, &limits, now),
                false => grown = Table::parse(RecordType::Core, more, None, &limits, now),
            }
        }
        let ids = |table: &Table| table.rows.iter().map(|row| (row.id.clone(), row.line)).collect::<Vec<_>>();
        prop_assert_eq!(ids(&grown), ids(&table));
        prop_assert_eq!(&grown.problems, &table.problems);
    }

    #[test]
    fn mending_loses_no_record_and_is_done_once(bytes in nearly_records()) {
        let folder = Folder::holding(&[("core_memories.jsonl", &bytes)]);
        let before = folder.contents(&Query::default());
        folder.records.mend(note("doctor")).unwrap();
        let after = folder.contents(&Query::default());
        prop_assert!(before.iter().all(|content| after.contains(content)));
        let mended = folder.bytes("core_memories.jsonl");
        folder.beside().mend(note("doctor")).unwrap();
        prop_assert_eq!(folder.bytes("core_memories.jsonl"), mended);
    }
}

proptest! {
    /// Reading a changed file by what changed is reading it all.
    #[test]
    fn a_changed_file_is_read_as_a_whole_one(
        count in 0..40u32,
        blanks in proptest::collection::vec(0..40usize, 0..3),
        from in 0..40usize,
        gone in 0..4usize,
        put in proptest::collection::vec((0..45u32, 1..4u32), 0..4),
    ) {
        let record = |(id, form): (u32, u32)| {
            let tags = format!("\"tags\":[\"t{}\",\"all\"],\"category\":\"c{}\"", (id + form) % 5, form % 2);
            line(id, &"x".repeat((id * 7 + form) as usize + 1)).replace("\"tags\":[]", &tags) + "\n"
        };
        let mut old: Vec<String> = (0..count).map(|id| record((id, 0))).collect();
        for at in blanks {
            old.insert(at.min(old.len()), "\n".to_owned());
        }
        let mut new = old.clone();
        let from = from.min(new.len());
        new.splice(from..(from + gone).min(old.len()), put.into_iter().map(record));
        let (limits, now) = (Limits::default(), Timestamp::UNIX_EPOCH);
        let whole = Table::parse(RecordType::Core, new.concat().into(), None, &limits, now);
        let mut table = Table::parse(RecordType::Core, old.concat().into(), None, &limits, now);
        let before = format!("{table:?}");
        if !table.follow(&mut new.concat().into(), None, &limits, now) {
            prop_assert_eq!(format!("{table:?}"), before, "refused, and changed all the same");
            prop_assert!(whole.bytes.is_empty() || !whole.problems.is_empty());
            return Ok(());
        }
        let rows = |table: &Table| table.rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>();
        prop_assert_eq!(rows(&table), rows(&whole));
        prop_assert_eq!((&table.bytes, &table.problems), (&whole.bytes, &whole.problems));
        for id in 0..45 {
            let id = format!("550e8400-e29b-41d4-a716-{id:012}");
            prop_assert_eq!(table.find(&id), whole.find(&id));
        }
        for tag in ["t0", "t1", "t2", "t3", "t4", "all"] {
            prop_assert_eq!(table.tagged(tag), whole.tagged(tag));
        }
        for category in ["c0", "c1"] {
            prop_assert_eq!(table.of_category(category), whole.of_category(category));
        }
        let more = [&whole.bytes[..], b"more\n"].concat();
        prop_assert!(table.is_grown(&more));
    }
}
