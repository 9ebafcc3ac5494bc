//! Batches: one change, all of it or nothing.

use super::*;

#[test]
fn a_batch_is_one_change_and_later_operations_see_earlier_ones() {
    let files = Files::holding(&[("old/a.md", "a\n"), ("old/deep/b.md", "b\n"), ("c.md", "c")]);
    let done = files
        .batch(
            r#"[
            {"type": "create", "path": "/new.md", "content": "one\nthree\n"},
            {"type": "insert", "path": "/new.md", "insert_line": 2, "new_str": "two"},
            {"type": "rename", "old_path": "/old", "new_path": "/kept"},
            {"type": "str_replace", "path": "/kept/a.md", "old_str": "a", "new_str": "A"},
            {"type": "create", "path": "/old", "content": "a file now"},
            {"type": "delete", "path": "/c.md"},
            {"type": "create", "path": "/c.md/in.md", "content": "a folder now"},
            {"type": "delete", "path": "/c.md/in.md"},
            {"type": "delete", "path": "/c.md"},
            {"type": "rename", "old_path": "/kept/deep/b.md", "new_path": "/kept/b.md"},
            {"type": "delete", "path": "/kept/deep"},
            {"type": "write", "path": "/kept/b.md", "content": "b again\n"}
        ]"#,
        )
        .unwrap();
    assert_eq!(done.outcome.len(), 12);
    assert!(done.change.is_some());
    let text = |bytes: &str| Some(bytes.as_bytes().to_vec());
    assert_eq!(
        files.everything(),
        [
            ("kept".to_owned(), None),
            ("kept/a.md".to_owned(), text("A\n")),
            ("kept/b.md".to_owned(), text("b again\n")),
            ("new.md".to_owned(), text("one\ntwo\nthree\n")),
            ("old".to_owned(), text("a file now")),
        ]
    );
}

#[test]
fn a_batch_that_fails_changes_nothing_and_names_the_operation() {
    let files = Files::holding(&[("a.md", "a"), ("dir/b.md", "b")]);
    let before = files.everything();
    let check = |last: &str, kind, code, message: &str| {
        let batch = format!(r#"[{{"type":"create","path":"n/n.md","content":"n"}},{last}]"#);
        let error = refused(files.batch(&batch), kind, code);
        assert_eq!(error.message(), message);
        assert_eq!(files.everything(), before, "{last}");
    };
    check(r#"{"type":"create","path":"n/n.md","content":""}"#, Kind::Exists, "FILE_EXISTS", {
        "operations[1] (create): `n/n.md` already exists"
    });
    check(r#"{"type":"create","path":"n","content":""}"#, Kind::Exists, "FILE_EXISTS", {
        "operations[1] (create): `n` already exists"
    });
    check(r#"{"type":"create","path":"n/n.md/x","content":""}"#, Kind::Invalid, "NOT_DIRECTORY", {
        "operations[1] (create): `n/n.md` is a file, so nothing can be beneath it"
    });
    check(r#"{"type":"delete","path":"n"}"#, Kind::Invalid, "DIRECTORY_NOT_EMPTY", {
        "operations[1] (delete): the folder `n` is not empty"
    });
    check(r#"{"type":"delete","path":"dir"}"#, Kind::Invalid, "DIRECTORY_NOT_EMPTY", {
        "operations[1] (delete): the folder `dir` is not empty"
    });
    check(
        r#"{"type":"str_replace","path":"n/n.md","old_str":"x","new_str":""}"#,
        Kind::Invalid,
        "STRING_NOT_FOUND",
        "operations[1] (str_replace): `n/n.md` does not contain the text to replace",
    );
    check(r#"{"type":"rename","old_path":"a.md","new_path":"n/n.md"}"#, Kind::Exists, "FILE_EXISTS", {
        "operations[1] (rename): `n/n.md` already exists"
    });
    check(r#"{"type":"delete","path":"nope","expect":"00"}"#, Kind::Conflict, "VERSION_MISMATCH", {
        "operations[1] (delete): `nope` is gone, not at version 00"
    });
}

#[test]
fn operations_are_written_as_in_the_specification() {
    let given = [
        r#"{"type":"create","path":"a","content":"c"}"#,
        r#"{"type":"write","path":"a","content":"c","expect":"00"}"#,
        r#"{"type":"str_replace","path":"a","old_str":"o","new_str":"n"}"#,
        r#"{"type":"insert","path":"a","insert_line":1,"new_str":"n"}"#,
        r#"{"type":"delete","path":"a"}"#,
        r#"{"type":"rename","old_path":"a","new_path":"b"}"#,
    ];
    for text in given {
        let operation: Operation = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&operation).unwrap(), text);
        let beneath = operation.beneath(&at("files")).unwrap();
        assert!(serde_json::to_string(&beneath).unwrap().contains(r#""files/a""#));
    }
    for text in [
        r#"{"type":"create","path":"../a","content":""}"#,
        r#"{"type":"create","path":"a"}"#,
        r#"{"type":"create","path":"a","content":"","contents":""}"#,
        r#"{"type":"frob","path":"a"}"#,
    ] {
        assert!(serde_json::from_str::<Operation>(text).is_err(), "{text}");
    }
}

#[test]
fn many_edits_of_one_file_are_one_edit() {
    let files = Files::holding(&[("a.md", "")]);
    let line = |n: usize| format!(r#"{{"type":"insert","path":"a.md","insert_line":1,"new_str":"{n}"}}"#);
    let batch: Vec<String> = (0..300).map(line).collect();
    let operations: Vec<Operation> = serde_json::from_str(&format!("[{}]", batch.join(","))).unwrap();
    let plan = files::batch(files.memory.store(), &operations, &files.limits).unwrap();
    assert_eq!((plan.edits.len(), plan.outcome.len()), (1, 300));
    files.apply(|store| files::batch(store, &operations, &files.limits)).unwrap();
    assert!(files.text("a.md").starts_with("299\n298\n"));
}
