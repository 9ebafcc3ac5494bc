//! The backend `anthropic` on the program's own memory stores API: all promises, and two views of one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use memgrove::backend::{Change, Edit, Expect, HistoryQuery, Moment, Note};
use memgrove::backends::anthropic::Memories;
use memgrove::backends::{CacheOptions, Cached, ObjectStore};
use memgrove::clock::SystemClock;
use memgrove::conformance::{self, CASES, Outcome, Storage};
use memgrove::error::code;
use memgrove::{Backend, Kind, Locator, Result, Store};
use serde_json::json;

use super::sandbox::Sandbox;
use super::serve::Server;

/// What a memory store cannot hold or forget, as the names of the cases that need it.
const NOT_OFFERED: &[&str] = &[
    "any_bytes_come_back",
    "any_bytes_can_be_appended",
    "large_content_comes_back",
    "bytes_that_are_no_text_are_there_again",
    "deep_folders_are_held",
    "what_is_redacted_is_gone",
    "what_holds_something_is_gone",
    "what_is_pruned_is_the_oldest",
    "what_is_pruned_frees_its_keys",
];

const RESERVED: &[&str] = &[".memgrove", ".MemGrove"];

/// How many cases share a server: a long history of other cases would slow each down.
const CASES_PER_SERVER: usize = 6;

/// A server, and what a client needs to know of it.
struct Service {
    server: Server,
    /// Goes with it.
    _sandbox: Sandbox,
}

impl Service {
    fn start() -> Self {
        let sandbox = Sandbox::in_memory();
        Service { server: Server::start(&sandbox, &[]).listened_to(), _sandbox: sandbox }
    }

    fn base(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// A new memory store.
    fn memory_store(&self) -> String {
        let made = self.server.post("/v1/memory_stores", &json!({"name": "case"}), &[]).json();
        made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// Opens the backend beneath a prefix, as a machine of its own.
    fn open(&self, id: &str, prefix: &str) -> Result<Arc<dyn Backend>> {
        let memories = Memories::new(id, prefix, Some(&self.base()), &self.server.token)?;
        Ok(Arc::new(ObjectStore::open(Arc::new(memories), prefix, Arc::new(SystemClock))?))
    }
}

/// Storage for one case.
struct MemoryStore<'a> {
    service: &'a Service,
    id: String,
    cached: bool,
}

impl Storage for MemoryStore<'_> {
    fn open(&self) -> Result<Arc<dyn Backend>> {
        if !self.cached {
            return self.service.open(&self.id, "");
        }
        let far = self.service.open(&self.id, "team/space/")?;
        Ok(Arc::new(Cached::new(far, CacheOptions::new(Arc::new(SystemClock)))))
    }
}

#[test]
fn anthropic_keeps_every_promise() {
    let work: Vec<_> =
        [false, true].into_iter().flat_map(|cached| CASES.iter().map(move |case| (cached, case))).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        let (mut ran, mut service) = (Vec::new(), Service::start());
        while let Some((cached, case)) = work.get(next.fetch_add(1, Ordering::SeqCst)) {
            if ran.len() % CASES_PER_SERVER == 0 {
                service = Service::start();
            }
            let storage = MemoryStore { service: &service, id: service.memory_store(), cached: *cached };
            ran.push((*cached, case.name, conformance::run_on(&storage, RESERVED, case)));
        }
        ran
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..6).map(|_| scope.spawn(run)).collect();
        running.into_iter().flat_map(|run| run.join().expect("a run reports panics")).collect()
    });
    assert_eq!(outcomes.len(), 2 * CASES.len(), "the product was run whole");
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|(_, case, outcome)| match outcome {
            Outcome::Passed => NOT_OFFERED.contains(case),
            Outcome::NotOffered => !NOT_OFFERED.contains(case),
            Outcome::Failed(_) => true,
        })
        .map(|(cached, case, outcome)| format!("{case} (cached: {cached}): {outcome:?}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), outcomes.len(), wrong.join("\n"));
}

#[test]
fn what_others_do_in_the_memory_store_is_taken_in() {
    let service = Service::start();
    let id = service.memory_store();
    let open = || Store::shared(service.open(&id, "").expect("it opens"));
    let (store, at) = (open(), |key: &str| Locator::new(key).expect("a key"));
    let memories = format!("/v1/memory_stores/{id}/memories");
    let memory = |path: &str| {
        let listed = service.server.get(&format!("{memories}?limit=100"), &[]).json();
        let found =
            listed["data"].as_array().expect("a list").iter().find(|memory| memory["path"] == path).cloned();
        found.map(|memory| memory["id"].as_str().expect("an id").to_owned())
    };
    let change = |path: &str, body: serde_json::Value| {
        let of = memory(path).unwrap_or_else(|| panic!("{path} is no memory"));
        assert_eq!(service.server.post(&format!("{memories}/{of}"), &body, &[]).status, 200);
    };
    store.write(&at("a.md"), "one").expect("it is held");
    store.write(&at("a.md"), "two").expect("it is held");
    // Put back to what it was: not a placement of ours that is late, but somebody's wish.
    change("/a.md", json!({"content": "one"}));
    assert_eq!(store.read(&at("a.md")).expect("it is there"), "one");
    assert_eq!(open().read(&at("a.md")).expect("it is there"), "one");
    store.update(&at("a.md"), |old| Ok([old.unwrap_or_default(), b" and two"].concat())).expect("it is held");
    change("/a.md", json!({"path": "/moved/b.md"}));
    let listed = |store: &Store| -> Vec<String> {
        let all = store.list_all(&Locator::root()).expect("a listing");
        all.iter().map(|info| info.locator.key().to_owned()).collect()
    };
    assert_eq!(listed(&store), ["moved", "moved/b.md"]);
    assert_eq!(listed(&open()), ["moved", "moved/b.md"]);
    assert_eq!(store.read(&at("moved/b.md")).expect("it is there"), "one and two");
    let made = service.server.post(&memories, &json!({"path": "/new.md", "content": "new"}), &[]);
    assert_eq!(made.status, 200);
    assert_eq!(store.read(&at("new.md")).expect("it is taken in"), "new");
    let past = store.backend().history(&HistoryQuery::default()).expect("a history");
    let verbs: Vec<&str> = past.iter().rev().map(|past| past.note.verb.as_str()).collect();
    assert_eq!(verbs.iter().filter(|verb| **verb == "file_edit").count(), 4, "{verbs:?}");
    // One that was taken in is moved: it is not where it was, on this machine and on any other.
    change("/new.md", json!({"path": "/moved/new.md"}));
    let wanted = ["moved", "moved/b.md", "moved/new.md"];
    assert_eq!(
        (listed(&open()), listed(&store)),
        (wanted.map(str::to_owned).into(), wanted.map(str::to_owned).into())
    );
    assert_eq!(memory("/new.md"), None);
    // What was before is in the history, from the versions of the service.
    let first = Moment::After(past.last().expect("a change").change.clone());
    let held = store.backend().read_past(&at("a.md"), &first).expect("it is kept");
    assert_eq!(held.as_deref(), Some(&b"one"[..]));
}

#[test]
fn what_a_memory_store_cannot_hold_is_refused_and_said() {
    let service = Service::start();
    let store = Store::shared(service.open(&service.memory_store(), "").expect("it opens"));
    let at = |key: &str| Locator::new(key).expect("a key");
    let refused =
        |key: &str, bytes: &[u8]| store.update(&at(key), |_| Ok(bytes.to_vec())).expect_err("it is refused");
    store.write(&at("most.md"), &"x".repeat(102_400)).expect("so much is held");
    let large = refused("more.md", &[b'x'; 102_401]);
    assert_eq!((large.kind(), large.code_name()), (Kind::Unsupported, Some(code::TOO_LARGE)));
    assert!(large.message().contains("would have 102401 bytes"), "{large}");
    let binary = refused("image.png", b"\x89PNG\xff");
    assert_eq!((binary.kind(), binary.code_name()), (Kind::Unsupported, Some(code::NOT_TEXT)));
    let deep = refused(&["d"; 21].join("/"), b"deep");
    assert_eq!((deep.kind(), deep.code_name()), (Kind::Invalid, Some(code::INVALID_PATH)));
    assert!(deep.message().contains("21 segments, at most 20"), "{deep}");
    assert_eq!(store.list_all(&Locator::root()).expect("a listing").len(), 1, "nothing of them is there");
    let (memories, clock) =
        (Memories::new("memstore_nowhere", "", Some(&service.base()), &service.server.token), SystemClock);
    let nowhere = ObjectStore::open(Arc::new(memories.expect("it is an address")), "", Arc::new(clock));
    let nowhere = nowhere.err().expect("there is no such store");
    assert!(nowhere.kind() == Kind::NotFound && nowhere.message().ends_with("does not exist"), "{nowhere}");
    let archived = service.memory_store();
    let there = Store::shared(service.open(&archived, "").expect("it opens"));
    there.write(&at("a.md"), "a").expect("it is held");
    let path = format!("/v1/memory_stores/{archived}/archive");
    assert_eq!(service.server.post(&path, &json!({}), &[]).status, 200);
    let closed = there.write(&at("a.md"), "b").expect_err("it is archived");
    assert_eq!(
        (closed.kind(), there.read(&at("a.md")).expect("it is there")),
        (Kind::Denied, "a".to_owned())
    );
    let unsafe_to_ask =
        Memories::new("memstore_1", "", Some("http://example.com"), "key").err().expect("it is refused");
    assert!(unsafe_to_ask.message().contains("not safe to send a key to"), "{unsafe_to_ask}");
}

#[test]
fn what_a_memory_store_cannot_hold_stays_behind_when_a_store_is_copied() {
    let (service, sandbox) = (Service::start(), Sandbox::new());
    let to = format!("anthropic://{}", service.memory_store());
    for n in 0..5 {
        sandbox.run(&["file", "create", &format!("{n}.md"), "--text", "text"]).ok();
    }
    std::fs::write(sandbox.store().join("files/image.png"), b"\x89PNG\xff").expect("a file");
    std::fs::write(sandbox.store().join("files/large.md"), "x".repeat(102_401)).expect("a file");
    let copy = || {
        let mut command = sandbox.memgrove(&["--json", "copy", "--to", &to]);
        command.env("ANTHROPIC_BASE_URL", service.base()).env("ANTHROPIC_API_KEY", &service.server.token);
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    for (files, same) in [(5, 0), (0, 5)] {
        let copied = copy();
        assert_eq!((&copied["files"], &copied["same"]), (&json!(files), &json!(same)), "{copied}");
        let refused = copied["refused"].to_string();
        assert!(
            refused.contains("image.png` is not text") && refused.contains("would have 102401 bytes"),
            "{refused}"
        );
    }
}

#[test]
fn what_was_told_of_a_version_is_not_told_when_it_is_redacted() {
    let service = Service::start();
    let base = format!("/v1/memory_stores/{}", service.memory_store());
    let post = |path: &str, body| service.server.post(&format!("{base}{path}"), &body, &[]).json();
    let made = post("/memories", json!({"path": "/a.md", "content": "one"}));
    let memory = made["id"].as_str().expect("an id");
    post(&format!("/memories/{memory}"), json!({"content": "two!"}));
    let listed = || service.server.get(&format!("{base}/memory_versions"), &[]).json()["data"].clone();
    let first = listed();
    assert_eq!((&first[0]["content_size_bytes"], &first[1]["content_size_bytes"]), (&json!(4), &json!(3)));
    assert_eq!(listed(), first, "told again as it was found");
    let version = first[1]["id"].as_str().expect("an id");
    post(&format!("/memory_versions/{version}/redact"), json!({}));
    let now = listed();
    assert_eq!(
        (&now[1]["content_sha256"], &now[1]["content_size_bytes"]),
        (&json!(null), &json!(null)),
        "{now}"
    );
    assert_eq!(now[0], first[0]);
}

#[test]
fn a_store_in_a_folder_of_the_memory_store_is_left_alone() {
    let service = Service::start();
    let id = service.memory_store();
    let at = |key: &str| Locator::new(key).expect("a key");
    let open = |prefix: &str| Store::shared(service.open(&id, prefix).expect("it opens"));
    let (inner, outer) = (open("team/space/"), open(""));
    inner.write(&at("files/a.md"), "one").expect("it is held");
    outer.write(&at("files/b.md"), "two").expect("it is held");
    inner.write(&at("files/a.md"), "three").expect("it is held");
    let listed = outer.list_all(&Locator::root()).expect("a listing");
    let keys: Vec<&str> = listed.iter().map(|info| info.locator.key()).collect();
    assert_eq!(keys, ["files", "files/b.md"]);
    let theirs = at("team/space/files/a.md");
    assert!(!outer.exists(&theirs).expect("an answer") && outer.read(&theirs).is_err());
    for key in ["team/space/files/a.md", "team/space/.memgrove/log/head"] {
        assert_eq!(outer.write(&at(key), "x").expect_err("it is another's").kind(), Kind::Invalid);
    }
    assert!(outer.backend().check().expect("a check").is_empty());
    assert_eq!(outer.backend().history(&HistoryQuery::default()).expect("a history").len(), 1);
    assert_eq!(open("team/space/").read(&at("files/a.md")).expect("it is there"), "three");
}

#[test]
fn what_a_change_costs_does_not_grow_with_the_history() {
    let sandbox = Sandbox::in_memory();
    let (server, asked) = Server::start(&sandbox, &["--log-format", "json"]).counted();
    let service = Service { server, _sandbox: sandbox };
    let id = service.memory_store();
    let at = Locator::new("records/tasks.jsonl").expect("a key");
    // Every append by a machine that knows nothing yet, as at the command line.
    let cost = |line: &str| {
        let before = asked.load(Ordering::SeqCst);
        let store = Store::shared(service.open(&id, "").expect("it opens"));
        store.list_all(&Locator::root()).expect("a listing");
        let edits = vec![Edit::Append { at: at.clone(), bytes: line.to_owned().into(), expect: Expect::Any }];
        let applied = store.apply(&Change { edits, note: Note::default() }).expect("it is held");
        assert_eq!(applied.versions, [None]);
        asked.load(Ordering::SeqCst) - before
    };
    let costs: Vec<usize> = (0..30).map(|i| cost(&format!("line {i}\n"))).collect();
    println!("requests for each append: {costs:?}");
    // What is told of a request may come a moment later.
    let [early, late] = [2..7, 25..30].map(|five| costs[five].iter().sum::<usize>());
    assert!(early > 0 && late < early + 15, "{costs:?}");
    let whole = service.open(&id, "").expect("it opens").read(&at).expect("it is there");
    assert_eq!(whole.bytes.iter().filter(|byte| **byte == b'\n').count(), 30);
}
