//! A bucket that others write to as well: nothing of theirs is touched, and nothing of ours is lost.

use memgrove::backend::{Change, Depth, Edit, Expect, Note};
use memgrove::{Kind, Locator, Store};

use super::{append, at};
use crate::s3::Server;

fn open(server: &Server, prefix: &str) -> Store {
    Store::shared(server.open(prefix).unwrap())
}

fn keys(store: &Store) -> Vec<String> {
    let all = store.backend().list(&Locator::root(), Depth::All).unwrap();
    all.iter().filter(|info| !info.is_dir()).map(|info| info.locator.key().to_owned()).collect()
}

/// A store with three files, and what is at its place in the bucket.
fn three_files(server: &Server) -> String {
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    for name in ["a.md", "b.md", "c.md"] {
        store.write(&at(name), name).unwrap();
    }
    prefix
}

#[test]
fn a_copy_of_the_files_without_the_log_is_a_store() {
    let server = Server::shared();
    let (prefix, copy) = (three_files(server), server.fresh_prefix());
    {
        // Marks and all, as a bucket copies objects.
        let mut all = server.objects.all();
        for name in ["a.md", "b.md", "c.md"] {
            let object = all[&format!("{prefix}/{name}")].clone();
            all.insert(format!("{copy}/{name}"), object);
        }
    }
    for prefix in [&copy, &prefix] {
        let log = format!("{prefix}/.memgrove/");
        server.objects.all().retain(|key, _| !key.starts_with(&log));
        let store = open(server, prefix);
        store.backend().check().unwrap();
        assert_eq!(keys(&store), ["a.md", "b.md", "c.md"]);
        assert_eq!(store.read(&at("b.md")).unwrap(), "b.md");
        // Numbers of the new log are not those of the old one.
        store.write(&at("a.md"), "new").unwrap();
        let edits = vec![Edit::Delete { at: at("c.md"), expect: Expect::Any }];
        store.apply(&Change { edits, note: Note::default() }).unwrap();
        store.backend().check().unwrap();
        let again = open(server, prefix);
        assert_eq!(keys(&again), ["a.md", "b.md"]);
        assert_eq!(again.read(&at("a.md")).unwrap(), "new");
    }
}

#[test]
fn a_log_with_a_gap_is_damaged_and_nothing_is_removed() {
    let server = Server::shared();
    for missing in [1, 2] {
        let prefix = three_files(server);
        let record = format!("{prefix}/.memgrove/log/{missing:016}");
        let kept = server.objects.all().remove(&record).unwrap();
        let before = server.objects.all().keys().filter(|key| key.starts_with(&*prefix)).count();
        let error = server.open(&prefix).map(drop).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.message().contains(&format!("number {missing} is missing")), "{error}");
        let after = server.objects.all().keys().filter(|key| key.starts_with(&*prefix)).count();
        assert_eq!(after, before, "nothing was touched");
        server.objects.all().insert(record, kept);
        assert_eq!(keys(&open(server, &prefix)), ["a.md", "b.md", "c.md"]);
    }
}

#[test]
fn what_was_appended_meanwhile_is_not_lost_by_an_edit_of_the_object() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    for i in 1..=4 {
        store.apply(&append("log.md", &format!("line {i}\n"))).unwrap();
    }
    let key = format!("{prefix}/log.md");
    let edit = |change: &dyn Fn(&str) -> String| {
        let mut all = server.objects.all();
        let object = all.get_mut(&key).unwrap();
        let text = change(std::str::from_utf8(&object.bytes).unwrap());
        (object.bytes, object.metadata) = (text.into(), None);
    };
    assert_eq!(&*server.objects.all()[&key].bytes, b"line 1\n", "the rest is in the log alone");
    // Put there again as it was.
    edit(&|text| text.to_owned());
    assert_eq!(open(server, &prefix).read(&at("log.md")).unwrap(), "line 1\nline 2\nline 3\nline 4\n");
    for i in 5..=6 {
        store.apply(&append("log.md", &format!("line {i}\n"))).unwrap();
    }
    edit(&|text| format!("by hand\n{text}"));
    let whole = open(server, &prefix).read(&at("log.md")).unwrap();
    assert_eq!(whole, "by hand\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\n");
    assert_eq!(store.read(&at("log.md")).unwrap(), whole, "and every machine sees the same");
    // After a check people see all of it, so what they take out is out.
    store.apply(&append("log.md", "line 7\n")).unwrap();
    store.backend().check().unwrap();
    edit(&|text| text.replace("line 7\n", "").replace("line 2\n", ""));
    let whole = "by hand\nline 1\nline 3\nline 4\nline 5\nline 6\n";
    assert_eq!(open(server, &prefix).read(&at("log.md")).unwrap(), whole);
    assert_eq!(store.read(&at("log.md")).unwrap(), whole);
}

#[test]
fn what_others_keep_in_the_bucket_is_left_as_it_is() {
    let server = Server::shared();
    let (above, own) = (server.fresh_prefix(), "space");
    let deeper = format!("{above}/{own}");
    let store = open(server, &deeper);
    for i in 1..=5 {
        store.apply(&append("log.md", &format!("line {i}\n"))).unwrap();
    }
    let page = {
        let mut all = server.objects.all();
        let mut page = all[&format!("{deeper}/log.md")].clone();
        page.bytes = "<p>hello</p>".into();
        page.kind = Some("text/html".to_owned());
        page.metadata = Some([("theirs".to_owned(), "yes".to_owned())].into());
        all.insert(format!("{above}/index.html"), page.clone());
        page
    };
    let whole = open(server, &above);
    whole.backend().check().unwrap();
    assert_eq!(keys(&whole), ["index.html"], "a store that lies deeper is another one");
    assert_eq!(whole.read(&at("index.html")).unwrap(), "<p>hello</p>");
    whole.backend().check().unwrap();
    assert_eq!(keys(&open(server, &above)), ["index.html"]);
    let there = server.objects.all()[&format!("{above}/index.html")].clone();
    assert_eq!((there.kind, there.metadata, there.modified), (page.kind, page.metadata, page.modified));
    assert_eq!(open(server, &deeper).read(&at("log.md")).unwrap().lines().count(), 5);
    // What is changed through us is ours.
    whole.write(&at("index.html"), "ours").unwrap();
    assert_eq!(open(server, &above).read(&at("index.html")).unwrap(), "ours");
}

#[test]
fn objects_that_are_missing_or_old_are_put_in_place_again() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    let key = |name: &str| format!("{prefix}/{name}");
    store.write(&at("a.md"), "a").unwrap();
    store.write(&at("b.md"), "old").unwrap();
    let old = server.objects.all()[&key("b.md")].clone();
    store.write(&at("b.md"), "b").unwrap();
    let spoil = || {
        let mut all = server.objects.all();
        all.remove(&key("a.md"));
        all.insert(key("b.md"), old.clone());
    };
    let in_place = || ["a.md", "b.md"].map(|name| server.objects.all()[&key(name)].bytes.clone());
    spoil();
    let found = open(server, &prefix).backend().check().unwrap();
    assert!(found.iter().any(|finding| finding.what.contains("of 2 files were missing")), "{found:?}");
    assert_eq!(in_place(), ["a", "b"]);
    assert!(open(server, &prefix).backend().check().unwrap().is_empty());
    // And whoever only asks what is there, as a cache does.
    spoil();
    let other = open(server, &prefix);
    for name in ["a.md", "b.md"] {
        other.info(&at(name)).unwrap();
    }
    assert_eq!(in_place(), ["a", "b"]);
}

#[test]
fn a_key_that_no_client_can_list_keeps_nobody_from_the_rest() {
    let server = Server::shared();
    let (prefix, other) = (server.fresh_prefix(), three_files(server));
    let object = server.objects.all()[&format!("{other}/a.md")].clone();
    server.objects.all().insert(format!("{prefix}/reports//2026.csv"), object);
    let store = open(server, &prefix);
    store.write(&at("a.md"), "a").unwrap();
    assert_eq!(open(server, &prefix).read(&at("a.md")).unwrap(), "a");
    server.objects.all().remove(&format!("{prefix}/a.md"));
    let found = store.backend().check().unwrap();
    assert!(found[0].what.contains("reports//2026.csv"), "{found:?}");
    assert!(found[1].what.contains("of 1 files were missing"), "{found:?}");
    // A log that has lost its beginning is noticed all the same.
    server.objects.all().remove(&format!("{prefix}/.memgrove/log/{:016}", 1));
    store.write(&at("b.md"), "b").unwrap();
    assert_eq!(server.open(&prefix).map(drop).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn what_cannot_be_taken_in_is_not_said_to_be() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    store.write(&at("a.md"), "a").unwrap();
    let mut object = server.objects.all()[&format!("{prefix}/a.md")].clone();
    (object.bytes, object.metadata) = ("A".into(), None);
    server.objects.all().insert(format!("{prefix}/A.md"), object);
    for _ in 0..2 {
        let found = store.backend().check().unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].at == "A.md"
                && found[0].what.contains("cannot be adopted: another file has the same name")
        );
    }
    assert_eq!(keys(&store), ["a.md"]);
}
