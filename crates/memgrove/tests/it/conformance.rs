//! Every backend against every case, and proof that the cases notice what they are there for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use memgrove::backend::PROMISES;
use memgrove::backends::cached::Freshness;
use memgrove::backends::object::{Cloud, ObjectStore};
use memgrove::backends::{CacheOptions, Cached, Local, LocalOptions, Ram, Scoped, Vault};
use memgrove::clock::SystemClock;
use memgrove::conformance::{self, CASES, Report, Storage, Subject};
use memgrove::vfs::{RealFs, SimFs, Vfs};
use memgrove::{Backend, Result, Store};
use tempfile::TempDir;

mod faulty;

use crate::s3::Server;

/// Every backend of this crate, wrappers included, with the cases whose need it does not offer.
const BACKENDS: &[(Subject, &[&str])] = &[
    (Subject { name: "ram", storage: ram, reserved: &[] }, OF_ONE_PROCESS),
    (Subject { name: "scoped over ram", storage: scoped_over_ram, reserved: &[] }, OF_ONE_PROCESS),
    (Subject { name: "local", storage: local, reserved: LOCAL_RESERVED }, &[]),
    (Subject { name: "local, state outside", storage: local_state_outside, reserved: &[] }, &[]),
    (Subject { name: "local, simulated disk", storage: local_simulated, reserved: LOCAL_RESERVED }, &[]),
    (
        Subject {
            name: "local, disk that cannot exchange",
            storage: local_without_exchange,
            reserved: LOCAL_RESERVED,
        },
        &[],
    ),
    (Subject { name: "scoped over local", storage: scoped_over_local, reserved: &[] }, PRUNING),
    (Subject { name: "cached over ram", storage: cached_over_ram, reserved: &[] }, OF_ONE_PROCESS),
    (
        Subject { name: "cached over local, on disk", storage: cached_over_local, reserved: LOCAL_RESERVED },
        &[],
    ),
    (Subject { name: "vault", storage: vault, reserved: &[] }, &[]),
    (Subject { name: "object", storage: object, reserved: OBJECT_RESERVED }, FORGETTING),
    (
        Subject { name: "object on Google's interface", storage: google, reserved: OBJECT_RESERVED },
        FORGETTING,
    ),
    (
        Subject { name: "cached over object", storage: cached_over_object, reserved: OBJECT_RESERVED },
        FORGETTING,
    ),
];

/// What is over a history that is of more than the subject.
const PRUNING: &[&str] = &["what_is_pruned_is_the_oldest", "what_is_pruned_frees_its_keys"];

/// What is over a history that cannot be rewritten.
const FORGETTING: &[&str] = &[
    "what_is_redacted_is_gone",
    "what_holds_something_is_gone",
    "what_is_pruned_is_the_oldest",
    "what_is_pruned_frees_its_keys",
];

/// The same in the memory of one process, which no other can open.
const OF_ONE_PROCESS: &[&str] = &[
    "several_openings_lose_nothing",
    "what_is_redacted_is_gone",
    "what_holds_something_is_gone",
    "what_is_pruned_is_the_oldest",
    "what_is_pruned_frees_its_keys",
];

/// What the object backend keeps in its bucket, in the spellings that a careless check lets through.
const OBJECT_RESERVED: &[&str] = &[".memgrove", ".MemGrove"];

/// What the local backend keeps in its tree, in the spellings that a careless check lets through.
const LOCAL_RESERVED: &[&str] = &[".journal", ".lock", ".JOURNAL", ".Lock"];

/// Storage that is opened by a closure.
struct Opens<F>(F);

impl<F: Fn() -> Result<Arc<dyn Backend>> + Sync> Storage for Opens<F> {
    fn open(&self) -> Result<Arc<dyn Backend>> {
        (self.0)()
    }
}

fn opens(open: impl Fn() -> Result<Arc<dyn Backend>> + Sync + 'static) -> Result<Box<dyn Storage>> {
    Ok(Box::new(Opens(open)))
}

fn ram() -> Result<Box<dyn Storage>> {
    let ram = Ram::default();
    opens(move || Ok(Arc::new(ram.clone())))
}

/// A store in a folder of another, with neighbours whose names begin alike.
fn scoped(inner: Arc<dyn Backend>) -> Result<Arc<dyn Backend>> {
    let store = Store::shared(Arc::clone(&inner));
    for neighbour in ["deep/fold/a.md", "deep/folder.md", "a.md"] {
        let at = neighbour.parse()?;
        if !store.exists(&at)? {
            store.write(&at, "a neighbour")?;
        }
    }
    Ok(Arc::new(Scoped::new(inner, "deep/folder".parse()?)))
}

fn scoped_over_ram() -> Result<Box<dyn Storage>> {
    let ram = Ram::default();
    opens(move || scoped(Arc::new(ram.clone())))
}

fn scoped_over_local() -> Result<Box<dyn Storage>> {
    let tree = tempfile::tempdir().expect("a temporary folder");
    opens(move || scoped(open_local(&tree, None)?))
}

/// A backend on the machine's disk, in a folder that goes with the storage.
fn open_local(tree: &TempDir, state: Option<&TempDir>) -> Result<Arc<dyn Backend>> {
    let root =
        |folder: &TempDir| -> Arc<dyn Vfs> { Arc::new(RealFs::open_root(folder.path()).expect("it exists")) };
    let mut options = LocalOptions::new(root(tree), Arc::new(SystemClock));
    options.state = state.map(root);
    Ok(Arc::new(Local::open(options)?))
}

fn local() -> Result<Box<dyn Storage>> {
    let tree = tempfile::tempdir().expect("a temporary folder");
    opens(move || open_local(&tree, None))
}

fn local_state_outside() -> Result<Box<dyn Storage>> {
    let (tree, state) =
        (tempfile::tempdir().expect("a temporary folder"), tempfile::tempdir().expect("a temporary folder"));
    opens(move || open_local(&tree, Some(&state)))
}

/// A backend on a disk in memory.
fn open_simulated(disk: &SimFs) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(Local::open(LocalOptions::new(Arc::new(disk.clone()), Arc::new(SystemClock)))?))
}

fn local_simulated() -> Result<Box<dyn Storage>> {
    let disk = SimFs::new();
    opens(move || open_simulated(&disk))
}

fn local_without_exchange() -> Result<Box<dyn Storage>> {
    let disk = SimFs::without_exchange();
    opens(move || open_simulated(&disk))
}

/// A cache that believes what it saw for the usual time: nobody else writes.
fn cached_over_ram() -> Result<Box<dyn Storage>> {
    let ram = Ram::default();
    opens(move || {
        let mut options = CacheOptions::new(Arc::new(SystemClock));
        options.freshness = Freshness::For(memgrove::backends::cached::TTL);
        Ok(Arc::new(Cached::new(Arc::new(ram.clone()), options)))
    })
}

/// A cache that checks each read, and keeps a few bytes on a disk that several openings share.
fn cached_over_local() -> Result<Box<dyn Storage>> {
    let (tree, cache) =
        (tempfile::tempdir().expect("a temporary folder"), tempfile::tempdir().expect("a temporary folder"));
    opens(move || {
        let mut options = CacheOptions::new(Arc::new(SystemClock));
        let folder: Arc<dyn Vfs> = Arc::new(RealFs::open_root(cache.path()).expect("it exists"));
        (options.memory_bytes_max, options.disk) = (50_000, Some((folder, 200_000)));
        Ok(Arc::new(Cached::new(open_local(&tree, None)?, options)))
    })
}

fn vault() -> Result<Box<dyn Storage>> {
    let (tree, state) =
        (tempfile::tempdir().expect("a temporary folder"), tempfile::tempdir().expect("a temporary folder"));
    opens(move || {
        let root = |folder: &TempDir| -> Arc<dyn Vfs> {
            Arc::new(RealFs::open_root(folder.path()).expect("it exists"))
        };
        let mut options = LocalOptions::new(root(&tree), Arc::new(SystemClock));
        options.state = Some(root(&state));
        Ok(Arc::new(Vault::open(options)?))
    })
}

fn object() -> Result<Box<dyn Storage>> {
    let prefix = Server::shared().fresh_prefix();
    opens(move || Server::shared().open(&prefix))
}

fn google() -> Result<Box<dyn Storage>> {
    let prefix = Server::shared().fresh_prefix();
    opens(move || {
        let bucket = Server::shared().connect_as_google();
        Ok(Arc::new(ObjectStore::open(bucket, &prefix, Arc::new(SystemClock))?))
    })
}

fn cached_over_object() -> Result<Box<dyn Storage>> {
    let prefix = Server::shared().fresh_prefix();
    opens(move || {
        let options = CacheOptions::new(Arc::new(SystemClock));
        Ok(Arc::new(Cached::new(Server::shared().open(&prefix)?, options)))
    })
}

#[test]
fn every_backend_keeps_every_promise() {
    let reports: Vec<Report> = thread::scope(|scope| {
        let running: Vec<_> =
            BACKENDS.iter().map(|(subject, _)| scope.spawn(|| conformance::run(subject))).collect();
        running.into_iter().map(|run| run.join().expect("a run reports panics")).collect()
    });
    for report in &reports {
        println!("{report}");
    }
    let failures: Vec<String> = reports.iter().flat_map(Report::failures).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The product was run whole.
    let ran: usize = reports.iter().map(|report| report.outcomes.len()).sum();
    assert_eq!(ran, BACKENDS.len() * CASES.len());
    assert!(CASES.len() >= 100, "{} cases", CASES.len());
    for (report, (_, expected)) in reports.iter().zip(BACKENDS) {
        assert_eq!(report.not_offered(), *expected, "{}", report.subject);
    }
}

/// `make torture` starts servers of other people's making, which are slow, and names a bucket.
#[test]
#[ignore = "needs MEMGROVE_TEST_BUCKET; `make torture` runs it"]
fn object_keeps_every_promise_on_another_server() {
    let subject = Subject { name: "object on another server", storage: elsewhere, reserved: OBJECT_RESERVED };
    let report = conformance::run(&subject);
    println!("{report}");
    assert_eq!(report.failures(), Vec::<String>::new());
    assert_eq!((report.outcomes.len(), &report.not_offered()[..]), (CASES.len(), FORGETTING));
}

fn elsewhere() -> Result<Box<dyn Storage>> {
    let bucket = std::env::var("MEMGROVE_TEST_BUCKET").expect("MEMGROVE_TEST_BUCKET names a bucket");
    let settings =
        std::env::var("MEMGROVE_TEST_SETTINGS").expect("MEMGROVE_TEST_SETTINGS says how to reach it");
    let settings = serde_json::from_str(&settings).expect("settings are a JSON object of strings");
    let prefix = Server::shared().fresh_prefix();
    opens(move || {
        let (cloud, _) = Cloud::connect(&bucket, &settings)?;
        Ok(Arc::new(ObjectStore::open(Arc::new(cloud), &prefix, Arc::new(SystemClock))?))
    })
}

#[test]
fn every_promise_is_cited_and_every_citation_is_a_promise() {
    let cited: BTreeSet<&str> = CASES.iter().map(|case| case.promise).collect();
    let promised: BTreeSet<&str> = PROMISES.iter().map(|(number, _)| *number).collect();
    assert_eq!(cited, promised);
    assert_eq!(promised.len(), PROMISES.len(), "no number is given twice");
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
}
