//! Objects of the backend's own that are not what they were.

use memgrove::{Kind, Store};

use super::{append, at};
use crate::s3::Server;

fn open(server: &Server, prefix: &str) -> Store {
    Store::shared(server.open(prefix).unwrap())
}

/// A store with more changes than a fold holds.
fn folded(server: &Server) -> String {
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    for i in 1..=70 {
        store.apply(&append("log.md", &format!("{i}\n"))).unwrap();
    }
    prefix
}

fn spoil(server: &Server, key: &str, change: impl Fn(&str) -> String) {
    let mut all = server.objects.all();
    let object = all.get_mut(key).unwrap_or_else(|| panic!("{key}"));
    object.bytes = change(std::str::from_utf8(&object.bytes).unwrap()).into();
}

#[test]
fn a_log_of_another_store_is_no_store() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    open(server, &prefix).write(&at("a.md"), "a").unwrap();
    for within in [".memgrove", ".MemGrove/log"] {
        let refused = server.open(&format!("{prefix}/{within}")).map(drop).unwrap_err();
        assert_eq!(refused.kind(), Kind::Invalid, "{refused}");
        assert!(refused.message().contains("is the backend's own"), "{refused}");
    }
}

#[test]
fn a_record_with_another_number_is_damaged() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    for name in ["a.md", "b.md", "c.md"] {
        store.write(&at(name), name).unwrap();
    }
    spoil(server, &format!("{prefix}/.memgrove/log/{:016}", 2), |text| {
        text.replace("\"seq\":2", "\"seq\":7")
    });
    let error = server.open(&prefix).map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(error.message().ends_with("number 2: it says that it is number 7"), "{error}");
}

#[test]
fn a_damaged_fold_is_as_good_as_none_and_made_anew() {
    let server = Server::shared();
    let prefix = folded(server);
    let fold = format!("{prefix}/.memgrove/fold/1/{:012}", 0);
    let whole = server.objects.all()[&fold].bytes.clone();
    let spoilt: [&dyn Fn(&str) -> String; 4] = [
        &|_| String::new(),
        &|text| text[..text.len() / 2].to_owned(),
        &|text| text.lines().skip(1).map(|line| format!("{line}\n")).collect(),
        &|_| "no header\n".to_owned(),
    ];
    for change in spoilt {
        spoil(server, &fold, change);
        let store = open(server, &prefix);
        assert_eq!(store.read(&at("log.md")).unwrap().lines().count(), 70);
        assert_eq!(server.objects.all()[&fold].bytes, whole);
    }
}

#[test]
fn a_file_that_cannot_be_put_in_place_is_told() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = open(server, &prefix);
    store.write(&at("a.md"), "all of it").unwrap();
    spoil(server, &format!("{prefix}/.memgrove/log/{:016}", 1), |text| text.replace(" of it", ""));
    server.objects.all().remove(&format!("{prefix}/a.md"));
    let store = open(server, &prefix);
    assert_eq!(store.read(&at("a.md")).unwrap_err().kind(), Kind::Corrupt);
    let found = store.backend().check().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&*found[0].at, found[0].level), ("a.md", memgrove::backend::Level::Error));
    assert!(found[0].what.contains("cannot be put in place"), "{found:?}");
}
