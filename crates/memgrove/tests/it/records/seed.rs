//! The format's words, one by one.

use memgrove::Kind;
use memgrove::backend::Version;
use memgrove::shapes::records::backup::Which;
use memgrove::shapes::records::index::Standing;
use memgrove::shapes::records::migrate::Splices;
use memgrove::shapes::records::{
    Archived, Guarded, Importance, Limits, Migration, NewRecord, Patch, Query, RecordType, Sort, Status,
};

use super::{Folder, any, note, tagged};

const DAY_MS: i64 = 86_400_000;

#[test]
fn a_record_is_one_line_of_the_schema() {
    let folder = Folder::new();
    let record = folder.add_one(NewRecord {
        category: Some("preference".into()),
        ..tagged(RecordType::Core, "User prefers pytest\nover unittest", &["python", "testing"])
    });
    let line = folder.text("core_memories.jsonl");
    let expected = format!(
        "{{\"id\":\"{}\",\"type\":\"core\",\"content\":\"User prefers pytest\\nover unittest\",\
         \"category\":\"preference\",\"created_at\":\"{t}\",\"updated_at\":\"{t}\",\"accessed_at\":\"{t}\",\
         \"access_count\":0,\"tags\":[\"python\",\"testing\"],\"importance\":\"high\",\"archived\":false}}\n",
        record.id,
        t = record.created_at,
    );
    assert_eq!(line, expected);
    assert_eq!(record.created_at, "2026-01-01T00:00:00Z");
    folder.add(RecordType::Core, "two");
    assert_eq!(folder.text("core_memories.jsonl").lines().count(), 2);
    assert_eq!(folder.names(""), ["core_memories.jsonl"]);
}

#[test]
fn what_breaks_the_schema_is_refused_by_field() {
    let folder = Folder::new();
    let check = |new: NewRecord, message: &str| {
        let error = folder.records.add(note("record_add"), &[new]).unwrap_err();
        assert_eq!((error.kind(), error.message()), (Kind::Invalid, message));
    };
    let core = |content: &str| NewRecord::new(RecordType::Core, content);
    check(core(" "), "`content` is empty");
    check(core(&"x".repeat(5001)), "`content` has 5001 characters, and 5000 are allowed");
    check(core(&"日".repeat(5000)), "the record's line has 15259 bytes, and 10240 are allowed");
    check(
        NewRecord { category: Some("c".repeat(51)), ..core("x") },
        "`category` has 51 characters, and 50 are allowed",
    );
    let tags: Vec<String> = (0..11).map(|tag| tag.to_string()).collect();
    check(NewRecord { tags, ..core("x") }, "`tags` has 11 tags, and 10 are allowed");
    check(
        NewRecord { tags: vec!["t".repeat(31)], ..core("x") },
        "`tags` has a tag of 31 characters, and 30 are allowed",
    );
    check(
        NewRecord { status: Some(Status::InProgress), ..core("x") },
        "`status` is for tasks only, and this is a core record",
    );
    check(
        NewRecord { outcome: Some("o".into()), ..core("x") },
        "`outcome` is for tasks only, and this is a core record",
    );
    let task = |status| NewRecord { status: Some(status), ..NewRecord::new(RecordType::Task, "x") };
    check(task(Status::Blocked), "`blockers` is missing, though the task is blocked");
    check(
        NewRecord { blockers: vec!["b".into()], ..task(Status::InProgress) },
        "`blockers` is for blocked tasks only",
    );
    check(
        NewRecord { outcome: Some("o".into()), ..task(Status::InProgress) },
        "`outcome` is for completed tasks only",
    );
    let error = folder.records.add(note("record_add"), &[core("good"), core("")]).unwrap_err();
    assert_eq!(error.message(), "records[1]: `content` is empty");
    assert!(folder.names("").is_empty(), "nothing was written");
}

#[test]
fn a_task_moves_from_status_to_status() {
    let folder = Folder::new();
    let task = folder.add_one(NewRecord {
        blockers: vec!["review".into()],
        status: Some(Status::Blocked),
        ..NewRecord::new(RecordType::Task, "ship")
    });
    let update = |patch: Patch| {
        folder
            .records
            .update(note("record_update"), &any(&task), &patch)
            .unwrap()
            .outcome
            .record
            .task_metadata
    };
    let moved = update(Patch { status: Some(Status::InProgress), ..Patch::default() }).unwrap();
    assert_eq!((moved.status, moved.blockers), (Status::InProgress, None));
    let done = update(Patch {
        outcome: Some("shipped".into()),
        status: Some(Status::Completed),
        ..Patch::default()
    });
    let done = done.unwrap();
    assert!(done.completed_at.is_some() && done.outcome.as_deref() == Some("shipped"));
    let again = update(Patch { status: Some(Status::InProgress), ..Patch::default() }).unwrap();
    assert_eq!((again.completed_at, again.outcome), (None, None));
}

#[test]
fn reading_counts_without_rewriting() {
    let folder = Folder::new();
    let record = folder.add(RecordType::Learning, "x");
    let before = folder.bytes("learnings.jsonl");
    for count in 1..=3 {
        assert_eq!(folder.records.get(&record.id).unwrap().record.access_count, count);
    }
    assert_eq!(folder.bytes("learnings.jsonl"), before);
    folder.records.flush().unwrap();
    assert_eq!(folder.text(".access.jsonl").lines().count(), 3);
    let beside = folder.beside();
    assert_eq!(beside.get(&record.id.to_uppercase()).unwrap().record.access_count, 4, "the log is read");
    beside.flush().unwrap();
    let other = folder.add(RecordType::Learning, "y");
    beside.update(note("u"), &any(&other), &Patch { content: Some("z".into()), ..Patch::default() }).unwrap();
    assert!(folder.text("learnings.jsonl").contains("\"access_count\":4"), "folded in with the rewrite");
    let record = folder.records.get(&record.id).unwrap().record;
    assert_eq!(record.access_count, 5, "what is folded in is not counted twice");
}

#[test]
fn queries_by_everything() {
    let folder = Folder::new();
    folder.add_one(NewRecord {
        category: Some("fact".into()),
        ..tagged(RecordType::Core, "Black formats with 88 columns", &["python", "black"])
    });
    folder.add_one(tagged(RecordType::Learning, "Ruff is faster", &["python"]));
    let task =
        NewRecord { status: Some(Status::InProgress), ..NewRecord::new(RecordType::Task, "Move to ruff") };
    let task = folder.add_one(task);
    let check = |query: Query, expected: &[&str]| assert_eq!(folder.contents(&query), expected, "{query:?}");
    let all = Query::default();
    check(all.clone(), &["Move to ruff", "Ruff is faster", "Black formats with 88 columns"]);
    check(Query { kinds: vec![RecordType::Core], ..all.clone() }, &["Black formats with 88 columns"]);
    let python = Query { tags: vec!["python".into()], ..all.clone() };
    check(python.clone(), &["Ruff is faster", "Black formats with 88 columns"]);
    check(
        Query { tags: vec!["python".into(), "black".into()], ..all.clone() },
        &["Black formats with 88 columns"],
    );
    check(Query { category: Some("fact".into()), ..all.clone() }, &["Black formats with 88 columns"]);
    check(Query { importance: Some(Importance::Medium), ..all.clone() }, &["Move to ruff"]);
    check(Query { status: Some(Status::InProgress), ..all.clone() }, &["Move to ruff"]);
    check(Query { text: Some("RUFF fast".into()), ..all.clone() }, &["Ruff is faster"]);
    check(Query { sort: Sort::Oldest, limit: 1, ..all.clone() }, &["Black formats with 88 columns"]);
    check(Query { sort: Sort::Importance, limit: 1, ..all.clone() }, &["Ruff is faster"]);
    let moment = task.created_at.parse().unwrap();
    check(Query { since: Some(moment), ..all.clone() }, &["Move to ruff"]);
    check(Query { until: Some(moment), ..python }, &["Ruff is faster", "Black formats with 88 columns"]);
    assert_eq!(folder.records.list(&Query { limit: 1, ..all.clone() }).unwrap().total, 3);
    folder.records.archive(note("record_archive"), &[any(&task)]).unwrap();
    check(Query { archived: Archived::Only, ..all.clone() }, &["Move to ruff"]);
    assert_eq!(folder.contents(&all).len(), 2);
    assert_eq!(folder.contents(&Query { archived: Archived::Any, ..all }).len(), 3);
}

#[test]
fn an_update_touches_its_line_alone_and_minds_versions() {
    let odd = "{ \"id\" : \"550e8400-e29b-41d4-a716-446655440000\",\"x\":1,\"x\":123456789012345678901234567890, \
               \"type\":\"core\",\"content\":\"a\",\"category\":null,\"created_at\":\"2026-01-01T10:00:00+01:00\",\
               \"updated_at\":\"2026-01-01T10:00:00Z\",\"accessed_at\":\"2026-01-01T10:00:00Z\",\
               \"access_count\":5,\"tags\":[],\"importance\":\"high\",\"archived\":false }";
    let other = odd.replace("440000", "440001");
    let folder =
        Folder::holding(&[("core_memories.jsonl", format!("{odd}\r\n{other}\r\n\r\nnoise").as_bytes())]);
    let got = folder.records.get("550e8400-e29b-41d4-a716-446655440000").unwrap();
    let said = odd.replace("\"accessed_at\":\"2026-01-01T10:00:00Z\",\"access_count\":5,", "");
    assert_eq!((got.version.clone(), got.line), (Version::of(said.as_bytes()), 1));
    let patch = Patch { content: Some("b".into()), ..Patch::default() };
    let stale = Guarded { id: got.record.id.clone(), expect: Some("0123456789ab".into()) };
    let error = folder.records.update(note("u"), &stale, &patch).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    let fresh = Guarded { id: got.record.id, expect: Some(got.version.as_str()[..8].to_owned()) };
    let done = folder.records.update(note("u"), &fresh, &patch).unwrap().outcome;
    let text = folder.text("core_memories.jsonl");
    let changed = odd.replace("\"content\":\"a\"", "\"content\":\"b\"").replace(
        "\"updated_at\":\"2026-01-01T10:00:00Z\"",
        &format!("\"updated_at\":\"{}\"", done.record.updated_at),
    );
    let (first, rest) = text.split_once("\r\n").unwrap();
    assert_eq!(rest, format!("{other}\r\n\r\nnoise"), "every other byte is as it was");
    let without_access = |text: &str| {
        let start = text.find("\"accessed_at\"").unwrap();
        let end = text.find(",\"tags\"").unwrap();
        format!("{}{}", &text[..start], &text[end..])
    };
    assert_eq!(without_access(first), without_access(&changed), "unknown members and their order stay");
}

#[test]
fn backups_come_before_changes_and_rotate() {
    let folder = Folder::new();
    let record = folder.add(RecordType::Core, "0");
    for round in 1..=7 {
        let before = folder.bytes("core_memories.jsonl");
        let patch = Patch { content: Some(round.to_string()), ..Patch::default() };
        folder.records.update(note("u"), &any(&record), &patch).unwrap();
        let backups = folder.records.backups().unwrap();
        assert_eq!(backups.len(), round.min(5));
        assert_eq!(folder.bytes(&format!(".backup/{}", backups.last().unwrap().name)), before);
        // Several in one second, and then a second each.
        folder.clock.advance_ms(if round < 6 { 0 } else { 1_000 });
    }
    let names = folder.names(".backup");
    assert!(names[0].starts_with(".backup/core_memories.jsonl.backup.20260101_0000"), "{names:?}");
    let restored =
        folder.records.restore_backup(note("r"), &Which::Newest(RecordType::Core)).unwrap().outcome;
    assert_eq!((restored.file.as_str(), restored.records), ("core_memories.jsonl", 1));
    assert_eq!(folder.contents(&Query::default()), ["6"]);
    let error = folder.records.restore_backup(note("r"), &Which::Named("no".into())).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
}

#[test]
fn the_archive_is_by_year_and_quarter() {
    let folder = Folder::new();
    let learning = folder.add(RecordType::Learning, "old");
    let task = folder
        .add_one(NewRecord { status: Some(Status::Completed), ..NewRecord::new(RecordType::Task, "done") });
    folder.add(RecordType::Core, "kept");
    folder.clock.advance_ms(31 * DAY_MS);
    let due = folder.records.due().unwrap().records;
    assert_eq!(
        due.iter().map(|due| (&due.id, &*due.why)).collect::<Vec<_>>(),
        [(&task.id, "completed 31 days ago")]
    );
    folder.clock.advance_ms(60 * DAY_MS);
    assert_eq!(folder.records.due().unwrap().records.len(), 2);
    folder.records.settle().unwrap();
    assert_eq!(
        folder.names("archive"),
        ["archive/2026/learnings_2026_Q2.jsonl", "archive/2026/tasks_2026_Q2.jsonl"]
    );
    assert_eq!(folder.text("learnings.jsonl"), "");
    let got = folder.records.get(&learning.id).unwrap();
    assert!(got.record.archived && got.file.key().contains("archive/2026"));
    let statistics = folder.records.statistics().unwrap();
    assert_eq!((statistics.total_memories, statistics.archived_count), (1, 2));
    let error = folder.records.archive(note("a"), &[any(&learning)]).unwrap_err();
    assert_eq!(error.message(), format!("the record `{}` is already archived", learning.id));
    let back = folder.records.restore(note("r"), &any(&learning)).unwrap().outcome.record;
    assert!(!back.archived);
    assert_eq!(folder.contents(&Query { kinds: vec![RecordType::Learning], ..Query::default() }), ["old"]);
    assert!(folder.records.due().unwrap().records.is_empty(), "it was read just now");
    assert!(folder.records.restore(note("r"), &any(&learning)).is_err());
}

#[test]
fn a_hard_limit_refuses_and_a_soft_one_archives() {
    let limits =
        Limits { core_records_max: 2, learnings_records_max: 20, tasks_records_max: 1, ..Limits::default() };
    let folder = Folder::limited(limits);
    folder.add(RecordType::Core, "a");
    folder.add(RecordType::Core, "b");
    let error = folder.records.add(note("a"), &[NewRecord::new(RecordType::Core, "c")]).unwrap_err();
    assert_eq!(error.kind(), Kind::Full);
    assert!(error.message().starts_with("`core_memories.jsonl` is full: 2 of 2 records"), "{error}");
    assert!(error.hint_text().unwrap().contains("such as record:"));
    let first = folder.add(RecordType::Learning, "0");
    for at in 1..20 {
        folder.add(RecordType::Learning, &at.to_string());
    }
    folder.records.get(&first.id).unwrap();
    let done = folder.records.add(note("a"), &[NewRecord::new(RecordType::Learning, "20")]).unwrap();
    assert_eq!(done.outcome.archived.len(), 2, "a tenth at once");
    assert!(!done.outcome.archived.contains(&first.id), "what was read stays");
    assert_eq!(done.outcome.warnings, ["`learnings.jsonl` had reached its limit: 2 records were archived"]);
    let learnings = Query { kinds: vec![RecordType::Learning], ..Query::default() };
    assert_eq!(folder.contents(&learnings).len(), 19);
    let most = |count| Limits { learnings_records_max: count, ..Limits::default() };
    let weighty = Folder::limited(most(10));
    for at in 0..9 {
        weighty.add_one(tagged(RecordType::Learning, &format!("weighty {at}"), &[]));
    }
    let light = weighty.add(RecordType::Learning, "light");
    let more =
        |at: usize| weighty.records.add(note("a"), &[tagged(RecordType::Learning, &at.to_string(), &[])]);
    assert_eq!(more(0).unwrap().outcome.archived, [light.id], "what matters goes last");
    assert_eq!(more(1).unwrap().outcome.archived.len(), 1, "it goes where nothing else is left");
    folder.add(RecordType::Task, "open");
    let done = folder.records.add(note("a"), &[NewRecord::new(RecordType::Task, "more")]).unwrap().outcome;
    assert_eq!(done.warnings, ["`tasks.jsonl` is over its limit, and nothing in it is done"]);
}

#[test]
fn the_index_is_in_the_form_of_the_format_and_never_trusted() {
    let folder = Folder::new();
    let one = folder
        .add_one(NewRecord { category: Some("fact".into()), ..tagged(RecordType::Core, "a", &["x", "y"]) });
    let two = folder.add_one(tagged(RecordType::Learning, "b", &["x"]));
    folder.records.settle().unwrap();
    let index: serde_json::Value = serde_json::from_slice(&folder.bytes("index.json")).unwrap();
    let bytes = folder.bytes("core_memories.jsonl").len() + folder.bytes("learnings.jsonl").len();
    let mut expected = serde_json::json!({
        "version": "1.0.0",
        "last_updated": "",
        "statistics": {"total_memories": 2, "by_type": {"core": 1, "learning": 1, "task": 0},
            "archived_count": 0, "total_storage_bytes": bytes},
        "tags_index": {"x": [one.id, two.id], "y": [one.id]},
        "category_index": {"fact": [one.id]},
        "importance_index": {"high": [one.id, two.id], "medium": [], "low": []},
    });
    expected["last_updated"] = index["last_updated"].clone();
    assert_eq!(index, expected);
    assert_eq!(folder.records.index_standing().unwrap(), Standing::Current);
    folder.put("index.json", serde_json::to_string(&index).unwrap().as_bytes());
    assert_eq!(folder.records.index_standing().unwrap(), Standing::Current, "another spelling is as good");
    for (bytes, standing) in [
        (&b"{\"version\":\"1.0.0\""[..], "Damaged"),
        (b"{\"version\":\"0.9.0\"}", "OtherVersion"),
        (b"\0\0", "Damaged"),
    ] {
        folder.put("index.json", bytes);
        assert!(format!("{:?}", folder.records.index_standing().unwrap()).starts_with(standing));
        assert_eq!(folder.contents(&Query { tags: vec!["x".into()], ..Query::default() }), ["b", "a"]);
        folder.records.settle().unwrap();
        assert_eq!(folder.records.index_standing().unwrap(), Standing::Current);
    }
    folder.add(RecordType::Core, "c");
    assert_eq!(folder.records.index_standing().unwrap(), Standing::Stale);
    folder.records.settle_if_due().unwrap();
    assert_eq!(folder.records.index_standing().unwrap(), Standing::Stale, "not yet");
    folder.clock.advance_ms(61_000);
    folder.records.settle_if_due().unwrap();
    assert_eq!(folder.records.index_standing().unwrap(), Standing::Current);
}

#[test]
fn a_key_that_was_used_adds_nothing_again() {
    let folder = Folder::new();
    let keyed = || memgrove::backend::Note { key: Some("k1".into()), ..note("record_add") };
    let new = [NewRecord::new(RecordType::Core, "once")];
    let first = folder.records.add(keyed(), &new).unwrap();
    let again = folder.records.add(keyed(), &new).unwrap();
    assert!(again.replayed && again.outcome == first.outcome);
    assert_eq!(folder.text("core_memories.jsonl").lines().count(), 1);
}

/// The format's own example of a migration, and a second step after it.
fn add_field(record: &serde_json::Value) -> Splices {
    match record.get("new_field") {
        None => vec![("new_field", Some("\"default_value\"".into()))],
        Some(_) => Vec::new(),
    }
}

fn rename_field(record: &serde_json::Value) -> Splices {
    let value = record.get("new_field").map(ToString::to_string);
    vec![("new_field", None), ("renamed", value)]
}

static CHAIN: &[Migration] = &[
    Migration { from: "2.0.0", to: "2.1.0", about: "renames it", apply: rename_field },
    Migration { from: "1.0.0", to: "2.0.0", about: "adds `new_field`", apply: add_field },
];

fn spoil(_: &serde_json::Value) -> Splices {
    vec![("new_field", Some("no json".into()))]
}

static BAD_CHAIN: &[Migration] =
    &[Migration { from: "1.0.0", to: "2.0.0", about: "spoils everything", apply: spoil }];

#[test]
fn a_chain_of_migrations_is_walked_whole_or_not_at_all() {
    let folder = Folder::new();
    let put_away = folder.add(RecordType::Learning, "archived");
    folder.add(RecordType::Core, "a");
    folder.records.archive(note("a"), &[any(&put_away)]).unwrap();
    folder.records.settle().unwrap();
    let before = folder.bytes("core_memories.jsonl");
    let bad = folder.beside().with_migrations("2.0.0", BAD_CHAIN);
    assert_eq!(bad.migrate(note("record_migrate")).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(folder.bytes("core_memories.jsonl"), before);
    let next = folder.beside().with_migrations("2.1.0", CHAIN);
    let done = next.migrate(note("record_migrate")).unwrap().outcome;
    assert_eq!((done.from.as_str(), done.to.as_str(), done.records), ("1.0.0", "2.1.0", 2));
    assert_eq!(done.steps, ["1.0.0 to 2.0.0: adds `new_field`", "2.0.0 to 2.1.0: renames it"]);
    for name in ["core_memories.jsonl".to_owned(), folder.names("archive").remove(0)] {
        assert!(folder.text(&name).ends_with(",\"renamed\":\"default_value\"}\n"), "{name}");
    }
    assert!(folder.text("index.json").contains("\"version\": \"2.1.0\""));
    assert!(
        folder
            .records
            .backups()
            .unwrap()
            .iter()
            .any(|backup| { folder.bytes(&format!(".backup/{}", backup.name)) == before })
    );
    let again = next.migrate(note("record_migrate")).unwrap();
    assert_eq!(again.outcome.to_string(), "the records have version 2.1.0: nothing to do");
    assert!(again.change.is_none());
}
