//! Many machines on one bucket, over a network that fails.

mod damage;
mod strangers;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use memgrove::backend::{Change, Depth, Edit, Expect, HistoryQuery, Note, Origin};
use memgrove::backends::cached::{Freshness, TTL};
use memgrove::backends::{CacheOptions, Cached, ObjectStore};
use memgrove::clock::SystemClock;
use memgrove::vfs::{RealFs, Vfs};
use memgrove::{Backend, Kind, Locator, Store};

use crate::s3::{Conditions, Server};

fn at(key: &str) -> Locator {
    Locator::new(key).unwrap()
}

fn append(key: &str, text: &str) -> Change {
    let edit = Edit::Append { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any };
    Change { edits: vec![edit], note: Note { verb: "test".into(), ..Note::default() } }
}

/// Lets 16 machines add 100 lines each by compare-and-swap, and proves that each line is there once.
fn sixteen_writers(key_of: fn(usize) -> String) {
    let (writers, each) = (16, 100);
    let server = Server::start(Conditions::Honoured);
    let prefix = server.fresh_prefix();
    let stores: Vec<Store> = (0..writers).map(|_| Store::shared(server.open(&prefix).unwrap())).collect();
    server.faults.per_mille.store(60, Ordering::SeqCst);
    thread::scope(|scope| {
        for (writer, store) in stores.iter().enumerate() {
            let key = at(&key_of(writer));
            scope.spawn(move || {
                for i in 0..each {
                    let line = format!("{writer}-{i}\n");
                    let added =
                        store.update(&key, |old| Ok([old.unwrap_or_default(), line.as_bytes()].concat()));
                    added.unwrap_or_else(|error| panic!("{line} was not taken: {error}"));
                }
            });
        }
    });
    let faults: Vec<u64> = server.faults.met.iter().map(|met| met.load(Ordering::SeqCst)).collect();
    server.faults.per_mille.store(0, Ordering::SeqCst);
    let fresh = Store::shared(server.open(&prefix).unwrap());
    let keys: BTreeSet<String> = (0..writers).map(key_of).collect();
    let texts: Vec<String> = keys.iter().map(|key| fresh.read(&at(key)).unwrap()).collect();
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    let distinct: BTreeSet<&str> = lines.iter().copied().collect();
    println!(
        "16 writers x 100 on {} objects: {} lines, {} distinct, {} requests, faults {faults:?}",
        keys.len(),
        lines.len(),
        distinct.len(),
        server.faults.requests.load(Ordering::SeqCst),
    );
    assert_eq!((lines.len(), distinct.len()), (writers * each, writers * each), "none lost, none twice");
    assert!(faults.iter().all(|met| *met > 0), "every kind of fault was met: {faults:?}");
    // Each writer's lines are in its own order, and the history has one change for each.
    for writer in 0..writers {
        let own = lines.iter().filter_map(|line| line.strip_prefix(&format!("{writer}-")));
        assert!(own.map(|i| i.parse::<usize>().unwrap()).eq(0..each));
    }
    assert_eq!(fresh.backend().history(&HistoryQuery::default()).unwrap().len(), writers * each);
    plain_objects_are_right(&server, &prefix, &fresh);
}

/// What other programs see in the bucket is what the store says, once it has settled.
fn plain_objects_are_right(server: &Server, prefix: &str, store: &Store) {
    store.backend().check().unwrap();
    for info in store.list_all(&Locator::root()).unwrap().iter().filter(|info| !info.is_dir()) {
        let there = server.objects.all()[&format!("{prefix}/{}", info.locator)].clone();
        assert_eq!(there.bytes, store.read_bytes(&info.locator).unwrap().bytes, "{}", info.locator);
        assert_eq!(there.kind.as_deref(), Some("text/plain; charset=utf-8"));
    }
}

#[test]
fn sixteen_machines_on_one_object_lose_nothing_on_a_failing_network() {
    sixteen_writers(|_| "log.md".to_owned());
}

#[test]
fn sixteen_machines_on_many_objects_lose_nothing_on_a_failing_network() {
    sixteen_writers(|writer| format!("logs/{writer}.md"));
}

#[test]
fn an_endpoint_that_ignores_conditions_is_not_written_to() {
    let server = Server::start(Conditions::Ignored);
    let prefix = server.fresh_prefix();
    let store = Store::shared(server.open(&prefix).unwrap());
    let refused = store.write(&at("a.md"), "a").unwrap_err();
    assert_eq!(refused.kind(), Kind::Unsupported);
    assert!(refused.message().ends_with("so machines that share it would lose changes"), "{refused}");
    assert!(refused.hint_text().unwrap().contains("If-None-Match"));
    let asked = ObjectStore::open(server.connect(), &prefix, Arc::new(SystemClock)).unwrap();
    assert_eq!(
        asked.check_conditions().unwrap_err().message(),
        refused.message(),
        "who asks is told the same"
    );
    assert!(!store.exists(&at("a.md")).unwrap(), "reading is well");
    assert!(!server.objects.all().contains_key(&format!("{prefix}/a.md")));
    let said = store.backend().check().unwrap();
    assert_eq!(said.last().map(|finding| &*finding.what), Some(refused.message()), "doctor says the same");
}

/// A cache folder of its own, as another machine has one.
fn machine(server: &Server, prefix: &str, freshness: Freshness) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Vfs> = Arc::new(RealFs::open_root(folder.path()).unwrap());
    let mut options = CacheOptions::new(Arc::new(SystemClock));
    (options.freshness, options.disk) = (freshness, Some((disk, 1 << 20)));
    let cached = Cached::new(server.open(prefix).unwrap(), options);
    (folder, Store::new(cached))
}

#[test]
fn each_machine_sees_the_others_write_at_its_next_read() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let (_a, one) = machine(server, &prefix, Freshness::Checked);
    let (_b, two) = machine(server, &prefix, Freshness::Checked);
    for round in 0..20 {
        one.write(&at("shared.md"), &format!("one {round}")).unwrap();
        assert_eq!(two.read(&at("shared.md")).unwrap(), format!("one {round}"));
        two.update(&at("shared.md"), |old| Ok([old.unwrap(), b", two"].concat())).unwrap();
        assert_eq!(one.read(&at("shared.md")).unwrap(), format!("one {round}, two"));
        assert_eq!(one.list_all(&Locator::root()).unwrap(), two.list_all(&Locator::root()).unwrap());
    }
}

#[test]
fn a_machine_that_is_cut_off_says_so_and_loses_nothing() {
    let server = Server::start(Conditions::Honoured);
    let prefix = server.fresh_prefix();
    let mut settings = server.settings();
    settings.extend([("timeout_ms", "400"), ("retry_ms", "300")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    let open = || {
        let (cloud, _) = memgrove::backends::object::Cloud::connect("s3://bucket", &settings).unwrap();
        memgrove::backends::ObjectStore::open(Arc::new(cloud), &prefix, Arc::new(SystemClock))
    };
    let store = Store::new(open().unwrap());
    let mut answered = Vec::new();
    for i in 0..30 {
        // Nothing gets through for the middle third.
        server.faults.cut.store((10..20).contains(&i), Ordering::SeqCst);
        match store.apply(&append("log.md", &format!("{i}\n"))) {
            Ok(_) => answered.push(i.to_string()),
            Err(error) => {
                assert!((10..20).contains(&i), "{i}: {error}");
                assert_eq!(error.kind(), Kind::Busy, "{error}");
                assert!(error.message().contains("cannot be reached"), "{error}");
            }
        }
    }
    assert_eq!(answered.len(), 20);
    let lines = Store::new(open().unwrap()).read(&at("log.md")).unwrap();
    for line in &answered {
        assert_eq!(lines.lines().filter(|there| there == line).count(), 1, "{line}");
    }
}

#[test]
fn edits_by_other_programs_are_taken_in_and_kept() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = Store::shared(server.open(&prefix).unwrap());
    store.write(&at("a.md"), "ours").unwrap();
    let version = store.info(&at("a.md")).unwrap().version.unwrap();
    let overwrite = |key: &str, text: &'static str| {
        let mut all = server.objects.all();
        let mut object = all[&format!("{prefix}/a.md")].clone();
        (object.bytes, object.metadata) = (text.into(), None);
        all.insert(format!("{prefix}/{key}"), object);
    };
    overwrite("a.md", "by hand");
    let edit = Edit::Write { at: at("a.md"), bytes: b"late".to_vec().into(), expect: Expect::At(version) };
    let late = store.apply(&Change { edits: vec![edit], note: Note::default() });
    assert_eq!(late.unwrap_err().kind(), Kind::Conflict, "the hand edit counts");
    assert_eq!(store.read(&at("a.md")).unwrap(), "by hand");
    overwrite("a.md", "again");
    assert_eq!(store.read(&at("a.md")).unwrap(), "again");
    store.write(&at("a.md"), "ours again").unwrap();
    let past = store.backend().history(&HistoryQuery::default()).unwrap();
    let origins: Vec<Origin> = past.iter().map(|past| past.note.actor.origin).collect();
    assert_eq!(origins, [Origin::Tool, Origin::FileEdit, Origin::FileEdit, Origin::Tool]);
    // A file that is new comes in with a check, also as a copy with our own mark on it.
    overwrite("new.md", "new");
    let copy = server.objects.all()[&format!("{prefix}/a.md")].clone();
    server.objects.all().insert(format!("{prefix}/copy.md"), copy);
    let found = store.backend().check().unwrap();
    assert_eq!(found.iter().map(|finding| &*finding.at).collect::<Vec<_>>(), ["copy.md", "new.md"]);
    assert_eq!(store.read(&at("new.md")).unwrap(), "new");
    assert_eq!(store.read(&at("copy.md")).unwrap(), "ours again");
}

#[test]
fn a_bucket_that_was_filled_by_other_means_is_a_store() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let first = Store::shared(server.open(&server.fresh_prefix()).unwrap());
    first.write(&at("x.md"), "x").unwrap();
    {
        let mut all = server.objects.all();
        let mut object = all.values().next().unwrap().clone();
        (object.bytes, object.metadata) = ("# Silica\n".into(), None);
        all.insert(format!("{prefix}/projects/silica.md"), object);
    }
    // Who merely looks leaves the bucket as it is.
    let looking = ObjectStore::open(server.connect(), &prefix, Arc::new(SystemClock)).unwrap();
    assert_eq!(looking.unclaimed(), 1);
    assert!(looking.list(&Locator::root(), Depth::All).unwrap().is_empty());
    assert_eq!(server.objects.all().keys().filter(|key| key.starts_with(&prefix)).count(), 1);
    // Before the first change it becomes a store.
    let store = Store::shared(server.open(&prefix).unwrap());
    store.mkdir(&at("own")).unwrap();
    assert_eq!(store.read(&at("projects/silica.md")).unwrap(), "# Silica\n");
    let all = store.backend().list(&Locator::root(), Depth::All).unwrap();
    assert_eq!(
        all.iter().map(|info| info.locator.key()).collect::<Vec<_>>(),
        ["own", "projects", "projects/silica.md"]
    );
}

#[test]
fn a_change_whose_writer_died_is_finished_by_the_next_reader() {
    let server = Server::shared();
    let prefix = server.fresh_prefix();
    let store = Store::shared(server.open(&prefix).unwrap());
    store.write(&at("a.md"), "old").unwrap();
    let before = server.objects.all()[&format!("{prefix}/a.md")].clone();
    let edits = ["a.md", "b.md"].map(|key| Edit::Write {
        at: at(key),
        bytes: b"new".to_vec().into(),
        expect: Expect::Any,
    });
    store.apply(&Change { edits: edits.to_vec(), note: Note::default() }).unwrap();
    {
        // As it is when the writer dies after its record and before the plain objects.
        let mut all = server.objects.all();
        all.insert(format!("{prefix}/a.md"), before);
        all.remove(&format!("{prefix}/b.md"));
    }
    let other = Store::shared(server.open(&prefix).unwrap());
    for key in ["a.md", "b.md"] {
        assert_eq!(other.read(&at(key)).unwrap(), "new");
        assert_eq!(server.objects.all()[&format!("{prefix}/{key}")].bytes, "new", "{key} is in place again");
    }
}

#[test]
fn a_log_of_many_lines_is_not_rewritten_for_each() {
    let server = Server::start(Conditions::Honoured);
    let prefix = server.fresh_prefix();
    let backend = server.open(&prefix).unwrap();
    let (lines, line) = (1000, "x".repeat(99) + "\n");
    for _ in 0..lines {
        backend.apply(&append("log.md", &line)).unwrap();
    }
    let written = server.faults.bytes_written.load(Ordering::SeqCst);
    let rewriting = (lines * (lines + 1) / 2 * line.len()) as u64;
    println!("{lines} lines: {written} bytes written, {rewriting} if each were a rewrite");
    assert!(written * 20 < rewriting, "{written} of {rewriting}");
    assert_eq!(server.open(&prefix).unwrap().read(&at("log.md")).unwrap().bytes.len(), lines * line.len());
    // A new machine learns the log from folds: a few requests, not a thousand.
    let before = server.faults.requests.load(Ordering::SeqCst);
    server.open(&prefix).unwrap();
    let opening = server.faults.requests.load(Ordering::SeqCst) - before;
    println!("opening a log of {lines} records: {opening} requests");
    assert!(opening < 120, "{opening} requests");
}

#[test]
fn a_cache_is_worth_its_while_at_a_distance() {
    let server = Server::start(Conditions::Honoured);
    let prefix = server.fresh_prefix();
    let plain = Store::shared(server.open(&prefix).unwrap());
    let edits = (0..1000).map(|i| Edit::Write {
        at: at(&format!("{i}.md")),
        bytes: vec![b'x'; 500].into(),
        expect: Expect::Any,
    });
    plain.apply(&Change { edits: edits.collect(), note: Note::default() }).unwrap();
    let (_folder, cached) = machine(&server, &prefix, Freshness::For(TTL));
    server.faults.latency_ms.store(20, Ordering::SeqCst);
    // The quickest of several, so that a busy machine does not count.
    let timed = |store: &Store| -> Duration {
        let times = (0..20).map(|i| {
            let start = Instant::now();
            store.read(&at(&format!("{i}.md"))).unwrap();
            start.elapsed()
        });
        times.min().unwrap()
    };
    let uncached = timed(&plain);
    timed(&cached);
    let warm = timed(&cached);
    // Cold, all of them: what an index does.
    let fresh = Store::shared(server.open(&prefix).unwrap());
    let places: Vec<Locator> = (0..1000).map(|i| at(&format!("{i}.md"))).collect();
    let attempts = (0..3).map(|_| {
        let start = Instant::now();
        let all = fresh.read_many(&places);
        let took = start.elapsed();
        assert!(all.iter().all(|content| content.as_ref().is_ok_and(|content| content.bytes.len() == 500)));
        took
    });
    let together = attempts.min().unwrap();
    println!(
        "at 20 ms: read {uncached:?}, warm {warm:?} ({:.0}x), 1000 together {together:?} ({:.0}x)",
        uncached.as_secs_f64() / warm.as_secs_f64(),
        uncached.as_secs_f64() * 1000.0 / together.as_secs_f64(),
    );
    assert!(warm * 50 <= uncached, "warm {warm:?}, uncached {uncached:?}");
    assert!(together * 10 <= uncached * 1000, "together {together:?}, one {uncached:?}");
}

/// The figures of docs/scaling.md: requests for each operation, and how fast one space can change.
#[test]
fn what_each_operation_costs() {
    let server = Server::start(Conditions::Honoured);
    let prefix = server.fresh_prefix();
    let store = Store::shared(server.open(&prefix).unwrap());
    let (_folder, cached) = machine(&server, &prefix, Freshness::Checked);
    store.write(&at("first.md"), "the probe is done").unwrap();
    let counted = |what: &str, most: (u64, u64), work: &dyn Fn()| {
        let before =
            (server.faults.requests.load(Ordering::SeqCst), server.faults.writes.load(Ordering::SeqCst));
        work();
        let all = server.faults.requests.load(Ordering::SeqCst) - before.0;
        let puts = server.faults.writes.load(Ordering::SeqCst) - before.1;
        println!("{what}: {puts} puts, {} gets and heads", all - puts);
        assert!(puts <= most.0 && all - puts <= most.1, "{what}: {puts} puts, {} others", all - puts);
    };
    counted("a new file", (2, 1), &|| drop(store.write(&at("a.md"), "a").unwrap()));
    counted("a file again", (2, 2), &|| drop(store.write(&at("a.md"), "b").unwrap()));
    counted("an append", (1, 2), &|| drop(store.apply(&append("a.md", "c")).unwrap()));
    counted("a read", (0, 2), &|| drop(store.read(&at("first.md")).unwrap()));
    cached.read(&at("first.md")).unwrap();
    counted("a read with a cache", (0, 2), &|| drop(cached.read(&at("first.md")).unwrap()));
    counted("a listing", (0, 1), &|| drop(store.list_all(&Locator::root()).unwrap()));
    counted("the history", (0, 1), &|| drop(store.backend().history(&HistoryQuery::default()).unwrap()));
    server.faults.latency_ms.store(20, Ordering::SeqCst);
    for machines in [1, 4] {
        let stores: Vec<Store> =
            (0..machines).map(|_| Store::shared(server.open(&prefix).unwrap())).collect();
        let (start, each) = (Instant::now(), 40 / machines);
        thread::scope(|scope| {
            for (number, store) in stores.iter().enumerate() {
                scope.spawn(move || {
                    for i in 0..each {
                        store.write(&at(&format!("{number}/{i}.md")), "x").unwrap();
                    }
                });
            }
        });
        let rate = f64::from(each * machines) / start.elapsed().as_secs_f64();
        println!("at 20 ms, {machines} machines on one space: {rate:.1} changes a second");
    }
}
