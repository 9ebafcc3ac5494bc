//! Batches: one change, all of it or nothing.

use proptest::prelude::*;

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
    check(r#"{"type":"delete","path":"nope","expect":"00000000"}"#, Kind::Conflict, "VERSION_MISMATCH", {
        "operations[1] (delete): `nope` is gone, not at version 00000000"
    });
}

#[test]
fn operations_are_written_as_in_the_specification() {
    let given = [
        r#"{"type":"create","path":"a","content":"c"}"#,
        r#"{"type":"create","path":"a","content_base64":"AJ+Slg=="}"#,
        r#"{"type":"write","path":"a","content":"c","expect":"00"}"#,
        r#"{"type":"write","path":"a","content_base64":"/w=="}"#,
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
        r#"{"type":"create","path":"a","content":"","expect":"00"}"#,
        r#"{"type":"create","path":"a","content":"","content_base64":""}"#,
        r#"{"type":"write","path":"a","content_base64":"no base64"}"#,
        r#"{"type":"write","path":"a"}"#,
        r#"{"type":"frob","path":"a"}"#,
    ] {
        assert!(serde_json::from_str::<Operation>(text).is_err(), "{text}");
    }
}

#[test]
fn a_batch_holds_bytes_of_any_kind() {
    let files = Files::holding(&[("old.bin", "text")]);
    let bytes: Vec<u8> = (0..=255).collect();
    let operations = [
        Operation::Create { path: at("new.bin"), content: bytes.clone() },
        Operation::Write { path: at("old.bin"), content: vec![0xff, 0], expect: None },
    ];
    let told = serde_json::to_string(&operations).unwrap();
    assert!(told.contains(r#""content_base64":"/wA=""#), "{told}");
    files.batch(&told).unwrap();
    assert_eq!(files.memory.store().read_bytes(&at("new.bin")).unwrap().bytes, bytes);
    assert_eq!(files.memory.store().read_bytes(&at("old.bin")).unwrap().bytes, [0xff, 0]);
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

/// Operations on a few names, so that they meet.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let path = || prop::sample::select(vec!["a", "b", "a/x", "a/y", "b/x", "b/x/deep", "c/d"]).prop_map(at);
    let text = || prop::sample::select(vec!["", "one", "one\ntwo\n", "two"]).prop_map(str::to_owned);
    let expect = || {
        let versions = ["", "one", "one\ntwo\n"].map(|text| Some(Version::of(text.as_bytes())));
        prop_oneof![8 => Just(None), 1 => prop::sample::select(versions.to_vec())]
    };
    let operation = prop_oneof![
        3 => (path(), text()).prop_map(|(path, content)| Operation::Create { path, content: content.into() }),
        2 => (path(), text(), expect())
            .prop_map(|(path, content, expect)| Operation::Write { path, content: content.into(), expect }),
        2 => (path(), text(), text(), expect())
            .prop_map(|(path, old_str, new_str, expect)| Operation::Replace { path, old_str, new_str, expect }),
        2 => (path(), 0..4usize, text(), expect())
            .prop_map(|(path, insert_line, new_str, expect)| Operation::Insert { path, insert_line, new_str, expect }),
        3 => (path(), expect()).prop_map(|(path, expect)| Operation::Delete { path, expect }),
        3 => (path(), path(), expect())
            .prop_map(|(old_path, new_path, expect)| Operation::Rename { old_path, new_path, expect }),
    ];
    prop::collection::vec(operation, 1..10)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// A batch does what its operations do one after the other, up to the first that fails; and
    /// then it does nothing.
    #[test]
    fn a_batch_is_its_operations_in_order(given in operations(), skipped in any::<u16>()) {
        let start = [("a/x", "one"), ("b", "one\ntwo\n"), ("c/d", "")];
        let (batched, single) = (Files::holding(&start), Files::holding(&start));
        // Most operations of a random batch fail; without some of those, batches get longer.
        let mut given = given;
        let (mut outcomes, mut failure) = (Vec::new(), None);
        let mut index = 0;
        while index < given.len() {
            let one = &given[index..=index];
            match single.apply(|store| files::batch(store, one, &single.limits)) {
                Ok(done) => outcomes.extend(done.outcome),
                Err(_) if skipped >> (index % 16) & 3 != 0 => {
                    given.remove(index);
                    continue;
                }
                Err(error) => {
                    failure = Some((index, error));
                    break;
                }
            }
            index += 1;
        }
        let before = batched.everything();
        let together = batched.apply(|store| files::batch(store, &given, &batched.limits));
        match (together, failure) {
            (Ok(done), None) => {
                prop_assert_eq!(done.outcome, outcomes);
                prop_assert_eq!(batched.everything(), single.everything());
            }
            (Err(error), Some((index, alone))) => {
                prop_assert_eq!((error.kind(), error.code_name()), (alone.kind(), alone.code_name()));
                let message = alone.message().replacen("operations[0]", &format!("operations[{index}]"), 1);
                prop_assert_eq!(error.message(), message);
                prop_assert_eq!(batched.everything(), before);
            }
            (together, failure) => prop_assert!(false, "together {together:?}, alone {failure:?}: {given:?}"),
        }
    }
}
