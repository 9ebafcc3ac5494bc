//! Anthropic's memory stores API beside the command line: folders that move, changes that are undone, a
//! history that is pruned, and several servers of one store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use super::serve::{Answer, Server};

/// A memory store of a server.
struct Stored<'a> {
    server: &'a Server,
    path: String,
}

impl<'a> Stored<'a> {
    fn new(server: &'a Server, name: &str) -> Self {
        let made = server.post("/v1/memory_stores", &json!({"name": name}), &[]).json();
        Stored { server, path: format!("/v1/memory_stores/{}", text(&made["id"])) }
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.server.get(&format!("{}{path}", self.path), &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.json());
        answer.json()
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.server.post(&format!("{}{path}", self.path), body, &[])
    }

    /// Makes a memory and tells its id.
    fn make(&self, path: &str, content: &str) -> String {
        text(&self.post("/memories", &json!({"path": path, "content": content})).json()["id"])
    }

    fn update(&self, memory: &str, content: &str) {
        let answer = self.post(&format!("/memories/{memory}"), &json!({"content": content}));
        assert_eq!(answer.status, 200, "{}", answer.json());
    }

    fn delete(&self, path: &str) -> Answer {
        let (name, value) = self.server.bearer();
        self.server.send("DELETE", &format!("{}{path}", self.path), &[(name, value.as_str())], b"")
    }

    /// The memories: the path, the id, and when it was made.
    fn memories(&self) -> Vec<[String; 3]> {
        let listed = self.get("/memories?limit=100");
        each(&listed, |one| [text(&one["path"]), text(&one["id"]), text(&one["created_at"])])
    }

    fn versions(&self, query: &str) -> Vec<Value> {
        each(&self.get(&format!("/memory_versions?limit=20{query}")), Value::clone)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn each<T>(listed: &Value, of: impl Fn(&Value) -> T) -> Vec<T> {
    listed["data"].as_array().unwrap_or_else(|| panic!("{listed}")).iter().map(of).collect()
}

#[test]
fn what_moves_with_its_folder_has_versions_of_its_own() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    let made: BTreeMap<&str, String> = ["a", "b", "c"]
        .map(|name| (name, store.make(&format!("/dir/{name}.md"), &format!("secret of {name}"))))
        .into();
    sandbox.run(&["file", "rename", "/memories/s/dir", "/memories/s/moved"]).ok();
    let ids: BTreeSet<String> = store.versions("").iter().map(|version| text(&version["id"])).collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
    for (name, memory) in &made {
        let there = store.get(&format!("/memories/{memory}"));
        let version = store.get(&format!("/memory_versions/{}", text(&there["memory_version_id"])));
        assert_eq!((&version["memory_id"], &version["content"]), (&json!(memory), &there["content"]));
        assert_eq!(there["path"], format!("/moved/{name}.md"));
        store.update(memory, "clean");
    }
    let moved = text(&store.versions(&format!("&memory_id={}", made["c"]))[1]["id"]);
    let redacted = store.post(&format!("/memory_versions/{moved}/redact"), &json!({})).json();
    assert_eq!(redacted["memory_id"], made["c"], "{redacted}");
    let held = store.versions("&view=full");
    let left: BTreeSet<&str> = held.iter().filter_map(|version| version["content"].as_str()).collect();
    assert_eq!(left, ["clean", "secret of a", "secret of b"].into());
    server.end();
}

#[test]
fn what_an_undo_brings_back_is_the_same_memory() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    store.make("/dir/a.md", "a");
    store.make("/dir/b.md", "b");
    let before = store.memories();
    server.post("/api/memory", &json!({"command": "delete", "path": "/memories/s/dir"}), &[]);
    assert_eq!(store.memories(), Vec::<[String; 3]>::new());
    sandbox.run(&["undo"]).ok();
    assert_eq!(store.memories(), before);
    let told = store.versions("");
    assert!(told.iter().all(|version| !version["path"].to_string().contains("undo")), "{told:?}");
    assert_eq!(told.len(), 6, "made, deleted and brought back: {told:?}");
    server.end();
}

#[test]
fn ids_outlive_the_changes_that_are_pruned() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    let (a, _) = (store.make("/a.md", "one"), store.make("/dir/b.md", "b"));
    let gone = store.make("/gone.md", "gone");
    let prune =
        |how: [&str; 2]| sandbox.run(&[&["--json", "history", "prune", "--yes"], &how[..]].concat()).json();
    // The first only closes a part of the journal, which the second can take.
    prune(["--keep", "1"]);
    store.update(&a, "two");
    sandbox.run(&["file", "rename", "/memories/s/dir", "/memories/s/moved"]).ok();
    assert_eq!(store.delete(&format!("/memories/{gone}")).status, 200);
    let before = store.memories();
    store.versions("");
    assert_ne!(prune(["--keep", "1"])["changes"], 0, "something is pruned");
    let check = |store: &Stored<'_>| {
        assert_eq!(store.memories(), before);
        let told = store.versions("&view=full");
        let told: Vec<(String, &str)> = told
            .iter()
            .map(|version| (text(&version["memory_id"]), version["operation"].as_str().unwrap_or_default()))
            .collect();
        assert!(
            told.contains(&(gone.clone(), "deleted")) && told.contains(&(a.clone(), "modified")),
            "{told:?}"
        );
    };
    check(&store);
    let path = store.path.clone();
    server.end();
    let server = Server::start(&sandbox, &[]);
    let store = Stored { server: &server, path: path.clone() };
    check(&store);
    // Undoing still means what somebody did.
    assert!(sandbox.run(&["undo"]).ok().contains("gone.md"));
    store.delete(&format!("/memories/{gone}"));
    assert_ne!(prune(["--before", "2999-01-01"])["changes"], 0);
    assert_eq!(store.memories(), before);
    assert_eq!(store.versions(""), Vec::<Value>::new());
    store.update(&a, "three");
    sandbox.run(&["file", "rename", "/memories/s/moved", "/memories/s/dir"]).ok();
    server.end();
    let server = Server::start(&sandbox, &[]);
    let store = Stored { server: &server, path };
    let ids = |memories: Vec<[String; 3]>| {
        memories.into_iter().map(|[_, id, made]| [id, made]).collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(store.memories()), ids(before));
    server.end();
}

#[test]
fn two_servers_never_give_a_folder_twice() {
    let sandbox = Sandbox::in_memory();
    let servers = [Server::start(&sandbox, &[]), Server::start(&sandbox, &[])];
    let make = &|server: &Server| server.post("/v1/memory_stores", &json!({"name": "Same"}), &[]).status;
    let made: Vec<u16> = thread::scope(|scope| {
        let running: Vec<_> = (0..6)
            .map(|n| {
                let server = &servers[n % 2];
                scope.spawn(move || (0..6).map(|_| make(server)).collect::<Vec<_>>())
            })
            .collect();
        running.into_iter().flat_map(|run| run.join().expect("it asks")).collect()
    });
    assert_eq!(made, [200; 36]);
    let told = std::fs::read_dir(sandbox.store().join("memory_stores")).expect("a folder");
    let told = told.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some());
    let folders: BTreeSet<String> = told
        .map(|path| {
            let store: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
            text(&store["folder"])
        })
        .collect();
    assert_eq!(folders.len(), 36, "{folders:?}");
    servers.into_iter().for_each(|server| drop(server.end()));
}

#[test]
fn a_memory_store_is_a_folder_and_is_given_up_when_it_is_deleted() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for path in ["/memories/file.md", "/memories/Projects/a.md"] {
        server.post("/api/file_create", &json!({"path": path, "text": "x"}), &[]);
    }
    let over = |folder: &str| {
        let body = json!({"name": "n", "metadata": {"memgrove_folder": folder}});
        server.post("/v1/memory_stores", &body, &[])
    };
    for (folder, status) in [
        ("/memories/file.md", 409),
        ("/memories/file.md/deeper", 409),
        ("/memories/projects", 409),
        ("/memories/projects/deeper", 409),
        ("/memories/con", 400),
    ] {
        let refused = over(folder);
        assert_eq!(refused.status, status, "{folder}: {}", refused.json());
    }
    // One after the other they may lie in each other.
    for folder in ["/memories/new/deep", "/memories/new", "/memories", "/memories/new/deep"] {
        let made = over(folder).json();
        assert!(made["id"].is_string(), "{folder}: {made}");
        let store = Stored { server: &server, path: format!("/v1/memory_stores/{}", text(&made["id"])) };
        assert_eq!(over(folder).status, 409, "{folder}");
        assert_eq!(store.delete("").status, 200, "{folder}");
    }
    server.end();
}

#[test]
fn what_is_archived_or_deleted_stays_so() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    let (kept, gone) = (store.make("/kept.md", "kept"), store.make("/gone.md", "gone"));
    store.delete(&format!("/memories/{gone}"));
    let last = text(&store.versions(&format!("&memory_id={gone}&operation=deleted"))[0]["id"]);
    let redact = || store.post(&format!("/memory_versions/{last}/redact"), &json!({})).json();
    let redacted = redact();
    assert!(redacted["redacted_at"].is_string() && redacted["path"].is_null(), "{redacted}");
    assert_eq!((redact(), store.get(&format!("/memory_versions/{last}"))), (redacted.clone(), redacted));
    assert_eq!(store.versions("&service_account_id=svac_1"), Vec::<Value>::new());
    let unknown = server.get(&format!("{}/memory_versions?operation=moved", store.path), &[]);
    assert_eq!(unknown.status, 400, "{}", unknown.json());
    let archived = store.post("/archive", &json!({})).json();
    assert_eq!(store.post("/archive", &json!({})).json(), archived);
    let refused = store.delete(&format!("/memories/{kept}"));
    assert_eq!((refused.status, store.memories().len()), (400, 1), "{}", refused.json());
    server.end();
}

#[test]
fn what_is_sent_again_is_answered_as_it_was() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    let send = |path: &str, body: &Value, key: &str| {
        let answer =
            server.post(&format!("{}/memories{path}", store.path), body, &[("Idempotency-Key", key)]);
        assert_eq!(answer.status, 200, "{key}: {}", answer.json());
        answer.json()
    };
    let sent = json!({"path": "/a.md", "content": "one"});
    let made = send("?view=full", &sent, "make");
    let memory = format!("/{}", text(&made["id"]));
    let moved = send(&memory, &json!({"path": "/b.md", "content": "two"}), "move");
    send(&memory, &json!({"path": "/b.md", "content": "two"}), "move to where it is");
    store.make("/a.md", "another");
    assert_eq!(send("?view=full", &sent, "make"), made, "though another is there now");
    store.delete(&format!("/memories{memory}"));
    assert_eq!(
        send(&memory, &json!({"path": "/b.md", "content": "two"}), "move"),
        moved,
        "though it is gone"
    );
    server.end();
}

#[test]
fn a_memory_store_that_is_spoilt_is_told_and_its_folder_is_kept() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    let id = store.path.rsplit('/').next().expect("an id").to_owned();
    std::fs::write(sandbox.store().join(format!("memory_stores/{id}.json")), "{").expect("a file");
    let found = server.post("/api/doctor", &json!({}), &[]).json();
    assert!(found["findings"].to_string().contains(&id), "{found}");
    let other = Stored::new(&server, "s");
    other.make("/a.md", "x");
    assert!(sandbox.store().join("files/s-2/a.md").exists(), "it has another folder");
    server.end();
}

#[test]
fn an_answer_tells_what_was_asked_for_whatever_others_do() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]).listened_to();
    let store = Stored::new(&server, "s");
    let shared = store.make("/shared.md", "start");
    let done = AtomicBool::new(false);
    let write = |writer: usize| {
        for round in 0..80 {
            let content = format!("{writer}-{round}");
            let is_own = |answer: &Answer| {
                let told = answer.json();
                assert_eq!(told["content"], content.as_str(), "{told}");
                text(&told["memory_version_id"])
            };
            let updated = store.post(&format!("/memories/{shared}?view=full"), &json!({"content": content}));
            assert_eq!(updated.status, 200, "{}", updated.json());
            let version = store.get(&format!("/memory_versions/{}", is_own(&updated)));
            assert_eq!(version["content"], content.as_str(), "{version}");
            let made =
                store.post("/memories?view=full", &json!({"path": "/fleeting.md", "content": content}));
            match made.status {
                200 => drop(is_own(&made)),
                status => assert_eq!(status, 409, "{}", made.json()),
            }
        }
    };
    let clear = || {
        while !done.load(Ordering::SeqCst) {
            for memory in each(&store.get("/memories"), Value::clone) {
                let (id, version) = (text(&memory["id"]), text(&memory["memory_version_id"]));
                assert!(!id.starts_with("mem_p") && !version.starts_with("memver_e"), "{memory}");
                if memory["path"] == "/fleeting.md" {
                    let status = store.delete(&format!("/memories/{id}")).status;
                    assert!(matches!(status, 200 | 404), "{status}");
                }
            }
        }
    };
    thread::scope(|scope| {
        let clearing: Vec<_> = (0..2).map(|_| scope.spawn(clear)).collect();
        let writing: Vec<_> = (0..3).map(|writer| scope.spawn(move || write(writer))).collect();
        let written: Vec<_> = writing.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        let cleared = clearing.into_iter().map(std::thread::ScopedJoinHandle::join);
        assert!(cleared.chain(written).all(|ended| ended.is_ok()), "see above");
    });
}

#[test]
fn a_page_is_one_that_was_told() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let store = Stored::new(&server, "s");
    let other = Stored::new(&server, "t");
    for name in ["a", "b", "ü c"] {
        store.make(&format!("/{name}.md"), name);
        other.make(&format!("/{name}.md"), name);
    }
    let lists = ["/memories", "/memory_versions"].map(|list| format!("{}{list}", store.path));
    for list in lists.into_iter().chain(["/v1/memory_stores".to_owned()]) {
        let page = |query: &str| server.get(&format!("{list}?limit=1{query}"), &[]);
        for wrong in ["", "-1", "zzz", "2", "page_", "page_zz%21", "/a.md"] {
            let refused = page(&format!("&page={wrong}"));
            let told = refused.json();
            assert_eq!(
                (refused.status, &told["error"]["type"]),
                (400, &json!("invalid_request_error")),
                "{told}"
            );
            assert!(told["error"]["message"].to_string().contains("`page`"), "{told}");
        }
        let (mut seen, mut next) = (BTreeSet::new(), String::new());
        loop {
            let told = page(&next).json();
            assert!(seen.insert(text(&told["data"][0]["id"])), "each once: {told}");
            match told["next_page"].as_str() {
                Some(cursor) => next = format!("&page={cursor}"),
                None => break,
            }
        }
        assert!(seen.len() >= 2, "{list}: {seen:?}");
    }
    server.end();
}
