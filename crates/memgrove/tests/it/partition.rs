//! Two machines on one bucket, of which one is cut off for a time while both write.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use memgrove::backends::object::{Cloud, ObjectStore};
use memgrove::backends::{CacheOptions, Cached};
use memgrove::clock::SystemClock;
use memgrove::vfs::{RealFs, Vfs};
use memgrove::{Error, Kind, Locator, Store};

use crate::s3::{Conditions, Server};

/// One machine's way to the server. While it is cut, nothing passes and nothing is refused, as when a
/// cable is pulled.
struct Link {
    endpoint: String,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Link {
    fn to(server: &Server) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let far = server.endpoint.trim_start_matches("http://").to_owned();
        let link = Link { endpoint, cut: Arc::default(), open: Arc::default() };
        let (cut, open) = (Arc::clone(&link.cut), Arc::clone(&link.open));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&far) else { continue };
                open.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
                {
                    let cut = Arc::clone(&cut);
                    thread::spawn(move || {
                        let mut bytes = [0; 16 * 1024];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            // What is on its way when the cable is pulled never arrives.
                            if !cut.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        link
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    fn heal(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.cut.store(false, Ordering::SeqCst);
    }
}

/// What makes a machine give up soon.
const IMPATIENT: &[(&str, &str)] = &[("timeout_ms", "300"), ("retry_ms", "200")];

/// A machine with a cache folder of its own.
fn machine(
    server: &Server,
    endpoint: &str,
    prefix: &str,
    patience: &[(&str, &str)],
) -> (tempfile::TempDir, Store) {
    let mut settings = server.settings();
    let own = patience.iter().copied().chain([("endpoint", endpoint)]);
    settings.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let (cloud, _) = Cloud::connect("s3://bucket", &settings).unwrap();
    let store = ObjectStore::open(Arc::new(cloud), prefix, Arc::new(SystemClock)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Vfs> = Arc::new(RealFs::open_root(folder.path()).unwrap());
    let mut options = CacheOptions::new(Arc::new(SystemClock));
    options.disk = Some((disk, 1 << 20));
    (folder, Store::new(Cached::new(Arc::new(store), options)))
}

/// What one machine was told of its writes.
#[derive(Default)]
struct Told {
    answered: Vec<String>,
    /// Failed: it may be there or not, but not twice.
    doubtful: Vec<(String, Error)>,
    slowest: Duration,
}

/// Writes until the end; `failing` says meanwhile whether the latest write failed.
fn write_until(store: &Store, name: &str, end: &AtomicBool, failing: &AtomicBool) -> Told {
    let shared = Locator::new("shared.md").unwrap();
    let mut told = Told::default();
    for number in 0.. {
        if end.load(Ordering::SeqCst) {
            break;
        }
        let (line, start) = (format!("{name}-{number}\n"), Instant::now());
        let added = store.update(&shared, |old| Ok([old.unwrap_or_default(), line.as_bytes()].concat()));
        told.slowest = told.slowest.max(start.elapsed());
        failing.store(added.is_err(), Ordering::SeqCst);
        match added {
            Ok(_) => told.answered.push(line),
            Err(error) => told.doubtful.push((line, error)),
        }
        thread::sleep(Duration::from_millis(5));
    }
    told
}

/// Ends the writers even when a check fails before they were told to end.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn one_of_two_is_cut_off(for_how_long: Duration) {
    let server = Server::start(Conditions::Honoured);
    let (prefix, link) = (server.fresh_prefix(), Link::to(&server));
    let (_one, near) = machine(&server, &server.endpoint, &prefix, &[]);
    let (_two, far) = machine(&server, &link.endpoint, &prefix, IMPATIENT);
    let (end, shared) = (AtomicBool::new(false), Locator::new("shared.md").unwrap());
    let (near_fails, far_fails) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = |fails: bool| {
        let deadline = Instant::now() + Duration::from_secs(120);
        while far_fails.load(Ordering::SeqCst) != fails {
            assert!(
                Instant::now() < deadline,
                "the machine that is cut off fails, and writes again afterwards"
            );
            thread::sleep(Duration::from_millis(10));
        }
    };
    let (of_near, of_far, during) = thread::scope(|scope| {
        let ending = Ending(&end);
        let near_writes = scope.spawn(|| write_until(&near, "near", &end, &near_fails));
        let far_writes = scope.spawn(|| write_until(&far, "far", &end, &far_fails));
        thread::sleep(Duration::from_millis(600));
        link.cut();
        let start = Instant::now();
        let read = far.read(&shared).expect_err("a read that cannot be checked is no answer");
        assert_eq!(read.kind(), Kind::Busy, "{read}");
        near.write(&Locator::new("meanwhile.md").unwrap(), "written while the other was away").unwrap();
        let written = near.read(&shared).unwrap();
        thread::sleep(for_how_long.saturating_sub(start.elapsed()));
        until(true);
        let during = near.read(&shared).unwrap().lines().count() - written.lines().count();
        link.heal();
        until(false);
        drop(ending);
        (near_writes.join().unwrap(), far_writes.join().unwrap(), during)
    });
    println!(
        "cut off for {for_how_long:?}: near {} answered, {during} of them meanwhile; far {} answered, {} failed, the slowest in {:?}",
        of_near.answered.len(),
        of_far.answered.len(),
        of_far.doubtful.len(),
        of_far.slowest,
    );
    assert!(during > 0, "the other machine goes on");
    assert!(of_near.doubtful.is_empty(), "{:?}", of_near.doubtful);
    assert!(!of_far.doubtful.is_empty(), "the machine that was cut off was told so");
    for (line, error) in &of_far.doubtful {
        assert_eq!(error.kind(), Kind::Busy, "{line}: {error}");
        assert!(error.message().contains("cannot be reached") && error.hint_text().is_some(), "{error}");
    }
    let text = near.read(&shared).unwrap();
    assert_eq!(far.read(&shared).unwrap(), text, "both see the same");
    assert_eq!(far.read(&Locator::new("meanwhile.md").unwrap()).unwrap(), "written while the other was away");
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    text.split_inclusive('\n').for_each(|line| *times.entry(line).or_default() += 1);
    for line in of_near.answered.iter().chain(&of_far.answered) {
        assert_eq!(times.remove(line.as_str()), Some(1), "{line} was answered");
    }
    // What is left was in doubt, and was made once at most.
    for (line, count) in times {
        assert!(count == 1 && of_far.doubtful.iter().any(|(doubtful, _)| doubtful == line), "{line}");
    }
    let (after_heal, last) = (of_far.doubtful.last().unwrap(), of_far.answered.last().unwrap());
    let number = |line: &str| line.trim().rsplit('-').next().unwrap().parse::<usize>().unwrap();
    assert!(number(last) > number(&after_heal.0), "after the cable is back, it writes again");
}

#[test]
fn of_two_machines_one_is_cut_off_for_seconds_and_nothing_is_lost() {
    one_of_two_is_cut_off(Duration::from_secs(2));
}

#[test]
#[ignore = "a minute"]
fn torture_of_two_machines_one_is_cut_off_for_a_minute_and_nothing_is_lost() {
    one_of_two_is_cut_off(Duration::from_secs(60));
}
