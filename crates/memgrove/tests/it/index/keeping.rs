//! The index is a cache: it may be deleted, garbled, shared and outgrown at any time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use memgrove::backend::{ConflictStrategy, Content, Depth, Info};
use memgrove::backends::Ram;
use memgrove::clock::{ManualClock, SystemClock, Timestamp};
use memgrove::index::{Noticed, Place, Watch};
use memgrove::tier::{DerivedMaintenance, Tier};
use memgrove::{Backend, Error, Kind, Locator, Result, Store};

use super::{at, check_true, first, found, kept, kept_by, on_disk, over};
use crate::hooked::{Hook, Hooked};

const TEA: &str = "file:/memories/tea.md";

struct Machine {
    folder: tempfile::TempDir,
    store: memgrove::Store,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = on_disk(&folder.path().join("store"));
        store.write(&at("files/tea.md"), "Green tea at eighty degrees.\n").unwrap();
        Machine { folder, store }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn index(&self) -> memgrove::Index {
        kept(&self.store, &self.cache())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("store/files").join(name)
    }

    fn databases(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "db")).collect()
    }
}

fn texts(index: &memgrove::Index, query: &str) -> Vec<String> {
    index.search(query, 10).unwrap().hits.into_iter().map(|hit| hit.text).collect()
}

#[test]
fn outside_edits_renames_and_deletions_are_seen_by_the_next_search() {
    let machine = Machine::new();
    let index = machine.index();
    assert_eq!(first(&index, "tea"), TEA);
    fs::write(machine.file("tea.md"), "Now about coffee.\n").unwrap();
    assert_eq!(texts(&index, "tea"), ["Now about coffee."], "by meaning, and as it is now");
    fs::rename(machine.file("tea.md"), machine.file("coffee.md")).unwrap();
    assert_eq!(found(&index, "coffee"), ["file:/memories/coffee.md"]);
    fs::remove_file(machine.file("coffee.md")).unwrap();
    assert!(found(&index, "coffee").is_empty());
    // Twice in one tick of the clock, with the same size: the stamp may be the same.
    for i in 0..50 {
        fs::write(machine.file("fast.md"), format!("value{i:02}\n")).unwrap();
        assert_eq!(found(&index, &format!("value{i:02}")), ["file:/memories/fast.md"], "{i}");
    }
    check_true(&index);
}

#[test]
fn a_deleted_index_comes_back() {
    let machine = Machine::new();
    let index = machine.index();
    assert_eq!(first(&index, "tea"), TEA);
    fs::remove_dir_all(machine.cache()).unwrap();
    assert_eq!(first(&index, "tea"), TEA);
    drop(index);
    fs::remove_dir_all(machine.cache()).unwrap();
    assert_eq!(first(&machine.index(), "tea"), TEA);
}

/// Garbles a file in one of several ways.
fn garble(path: &Path, how: usize) {
    let bytes = fs::read(path).unwrap();
    let garbled = match how {
        0 => Vec::new(),
        1 => b"this is no database".to_vec(),
        2 => bytes[..bytes.len() / 2].to_vec(),
        3 => bytes
            .iter()
            .enumerate()
            .map(|(at, byte)| if at % 97 == 0 { byte ^ 0x5a } else { *byte })
            .collect(),
        4 => vec![0; bytes.len()],
        _ => {
            let database = rusqlite::Connection::open(path).unwrap();
            return database.execute_batch("ALTER TABLE docs DROP COLUMN says").unwrap();
        }
    };
    fs::write(path, garbled).unwrap();
}

#[test]
fn a_garbled_index_heals() {
    for how in 0..6 {
        let machine = Machine::new();
        for i in 0..30 {
            machine
                .store
                .write(&at(&format!("files/{i}.md")), &format!("Filler number {i} of many.\n"))
                .unwrap();
        }
        drop(machine.index().status().unwrap());
        machine.databases().iter().for_each(|path| garble(path, how));
        let index = machine.index();
        assert_eq!(first(&index, "tea"), TEA, "{how}");
        assert_eq!(found(&index, "filler").len(), 10, "{how}");
        check_true(&index);
    }
}

#[test]
fn a_text_that_was_changed_in_the_index_is_never_shown() {
    let machine = Machine::new();
    drop(machine.index().status().unwrap());
    let file = machine.databases().remove(0);
    let bytes = fs::read(&file).unwrap();
    let at = bytes.windows(6).position(|part| part == b"eighty").expect("the text is there");
    fs::write(&file, [&bytes[..at], b"ninety", &bytes[at + 6..]].concat()).unwrap();
    let index = machine.index();
    assert!(!index.verify(&mut |_, _| ()).unwrap().is_empty());
    assert_eq!(texts(&index, "tea"), ["Green tea at eighty degrees."]);
    check_true(&index);
}

#[test]
fn indexes_of_other_formats_are_removed_once_they_are_old() {
    let machine = Machine::new();
    fs::create_dir_all(machine.cache()).unwrap();
    let [old, log, young, other] =
        ["mg1-english-words.2.db", "mg1-english-words.2.db-wal", "mg2-english-words.1.db", "mgx-notes.db"]
            .map(|name| machine.cache().join(name));
    for path in [&old, &log, &young, &other] {
        fs::write(path, "").unwrap();
        if *path != young {
            let long_ago = std::time::SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
            fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        }
    }
    assert_eq!(first(&machine.index(), "tea"), TEA);
    assert_eq!([old, log, young, other].map(|path| path.exists()), [false, false, true, true]);
}

/// Something that happens once.
type Event = Box<dyn FnOnce() + Send>;

/// A storage in which something happens right after it was listed.
struct Meanwhile {
    inner: Arc<dyn Backend>,
    happens: Arc<Mutex<Option<Event>>>,
    listings: Arc<AtomicUsize>,
}

impl Hook for Meanwhile {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }
    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let listed = self.inner.list(under, depth);
        self.listings.fetch_add(1, Ordering::SeqCst);
        let happens = self.happens.lock().unwrap().take();
        if let Some(happens) = happens {
            happens();
        }
        listed
    }
}

#[test]
fn a_file_that_came_back_while_another_process_looked_stays() {
    let machine = Machine::new();
    let (other, happens) = (machine.index(), Arc::new(Mutex::default()));
    let backend = Hooked(Meanwhile {
        inner: Arc::clone(machine.store.backend()),
        happens: Arc::clone(&happens),
        listings: Arc::default(),
    });
    let index = kept(&Store::new(backend), &machine.cache());
    assert_eq!(first(&index, "tea"), TEA);
    fs::remove_file(machine.file("tea.md")).unwrap();
    let file = machine.file("tea.md");
    *happens.lock().unwrap() = Some(Box::new(move || {
        fs::write(file, "Green tea again.\n").unwrap();
        assert_eq!(first(&other, "tea"), TEA);
    }));
    let synced = index.sync(&mut |_, _| ()).unwrap();
    assert_eq!((synced.removed, texts(&index, "tea")), (0, vec!["Green tea again.".to_owned()]));
    check_true(&index);
}

#[test]
fn what_another_process_wrote_meanwhile_is_looked_at_again() {
    let machine = Machine::new();
    let (other, listings) = (machine.index(), Arc::new(AtomicUsize::new(0)));
    let backend = Hooked(Meanwhile {
        inner: Arc::clone(machine.store.backend()),
        happens: Arc::default(),
        listings: Arc::clone(&listings),
    });
    let index = kept(&Store::new(backend), &machine.cache());
    let mut written = false;
    index
        .sync(&mut |_, _| {
            if !std::mem::replace(&mut written, true) {
                fs::write(machine.file("new.md"), "Something new.\n").unwrap();
                other.sync(&mut |_, _| ()).unwrap();
            }
        })
        .unwrap();
    assert_eq!((written, listings.load(Ordering::SeqCst)), (true, 2));
    check_true(&index);
}

#[test]
fn a_garbled_index_heals_beneath_a_running_process() {
    for how in 0..5 {
        let machine = Machine::new();
        let index = machine.index();
        assert_eq!(first(&index, "tea"), TEA);
        machine.databases().iter().for_each(|path| garble(path, how));
        machine.store.write(&at("files/new.md"), "Something new.\n").unwrap();
        // What a process has in its cache may still answer; the next one must see the truth.
        let _ = index.search("tea", 5);
        drop(index);
        assert_eq!(first(&machine.index(), "something new"), "file:/memories/new.md", "{how}");
        check_true(&machine.index());
    }
}

#[test]
fn busy_is_not_corrupt() {
    let machine = Machine::new();
    let index = machine.index();
    assert_eq!(first(&index, "tea"), TEA);
    let database = machine.databases().remove(0);
    let other = rusqlite::Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Nothing to write: readers are not disturbed.
    assert_eq!(first(&index, "tea"), TEA);
    machine.store.write(&at("files/new.md"), "Something new.\n").unwrap();
    let waiting = std::thread::spawn(move || first(&index, "something new"));
    std::thread::sleep(Duration::from_millis(300));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(waiting.join().unwrap(), "file:/memories/new.md");
    assert_eq!(machine.databases(), [database], "it is still the same index");
}

/// A storage whose folder `files/deep` cannot be read, whoever asks: tests may run as root.
struct Shut {
    inner: Arc<dyn Backend>,
    shut: Arc<AtomicBool>,
    /// How often everything was listed.
    listings: Arc<AtomicUsize>,
}

impl Shut {
    fn check(&self, under: &Locator, depth: Depth) -> Result<()> {
        let deep = at("files/deep");
        let meets = under.is_within(&deep) || (depth == Depth::All && deep.is_within(under));
        match meets && self.shut.load(Ordering::SeqCst) {
            true => Err(Error::new(Kind::Denied, "`files/deep` may not be read")),
            false => Ok(()),
        }
    }
}

impl Hook for Shut {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        self.check(at, Depth::Children)?;
        self.inner.read(at)
    }
    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        self.check(under, depth)?;
        self.listings.fetch_add(1, Ordering::SeqCst);
        self.inner.list(under, depth)
    }
}

#[test]
fn an_unreadable_folder_is_not_an_empty_one() {
    let machine = Machine::new();
    machine.store.write(&at("files/deep/secret.md"), "The treasure is buried.\n").unwrap();
    let shut = Arc::new(AtomicBool::new(false));
    let backend = Hooked(Shut {
        inner: Arc::clone(machine.store.backend()),
        shut: Arc::clone(&shut),
        listings: Arc::default(),
    });
    let index = kept(&Store::new(backend), &machine.cache());
    assert_eq!(first(&index, "treasure"), "file:/memories/deep/secret.md");
    shut.store(true, Ordering::SeqCst);
    machine.store.write(&at("files/new.md"), "Something new.\n").unwrap();
    fs::remove_file(machine.file("tea.md")).unwrap();
    let search = index.search("treasure", 5).unwrap();
    assert_eq!(search.hits[0].address, "file:/memories/deep/secret.md");
    assert_eq!(search.unreadable, ["files/deep"]);
    // What can be read is still looked at.
    assert_eq!(first(&index, "something new"), "file:/memories/new.md");
    assert!(!found(&index, "tea").contains(&TEA.to_owned()));
    shut.store(false, Ordering::SeqCst);
    fs::remove_file(machine.file("deep/secret.md")).unwrap();
    assert!(!found(&index, "treasure").contains(&"file:/memories/deep/secret.md".to_owned()));
    check_true(&index);
}

#[test]
fn a_rebuild_takes_the_place_of_the_old_one_and_others_follow() {
    let machine = Machine::new();
    let (index, other) = (machine.index(), machine.index());
    let before = (index.status().unwrap().file, other.status().unwrap().file);
    assert_eq!(before.0, before.1);
    index.reindex(Tier::LocalIndex).unwrap();
    let after = (index.status().unwrap().file, other.status().unwrap().file);
    assert_eq!(after.0, after.1);
    assert_ne!(before.0, after.0);
    assert_eq!(machine.databases().len(), 1);
    assert_eq!(index.reindex(Tier::Source).map_err(|error| error.kind()), Err(Kind::Invalid));
    assert_eq!(index.changed_since(Timestamp::UNIX_EPOCH).unwrap(), [at("files/tea.md")]);
    check_true(&other);
}

/// A watcher that says what the test tells it to.
#[derive(Default)]
struct Told(Mutex<Option<Noticed>>);

impl Told {
    fn say(&self, noticed: Noticed) {
        *self.0.lock().unwrap() = Some(noticed);
    }
}

impl Watch for Told {
    fn noticed(&self) -> Noticed {
        self.0.lock().unwrap().take().unwrap_or(Noticed::Nothing)
    }
    fn attend(&self, _: &[Locator]) -> bool {
        true
    }
}

#[test]
fn what_a_watcher_notices_is_looked_at_and_nothing_else() {
    let machine = Machine::new();
    let (watch, listings) = (Arc::new(Told::default()), Arc::new(AtomicUsize::new(0)));
    let backend = Hooked(Shut {
        inner: Arc::clone(machine.store.backend()),
        shut: Arc::default(),
        listings: Arc::clone(&listings),
    });
    // It stands still, a little later than the files: how long a watcher is believed does not depend on the machine.
    let clock = Arc::new(ManualClock::new(Timestamp::now() + Duration::from_secs(60)));
    let index = kept_by(&Store::new(backend), &machine.cache(), clock.clone()).staying(vec![watch.clone()]);
    let listed = |what: &dyn Fn()| {
        let before = listings.load(Ordering::SeqCst);
        what();
        listings.load(Ordering::SeqCst) - before
    };
    assert_eq!(first(&index, "tea"), TEA);
    assert_eq!(listed(&|| assert_eq!(first(&index, "tea"), TEA)), 0, "nothing has happened");
    fs::write(machine.file("tea.md"), "Now about coffee.\n").unwrap();
    fs::write(machine.file("new.md"), "Something new.\n").unwrap();
    watch.say(Noticed::Files(vec![at("files/tea.md"), at("files/new.md"), at("files/never.md")]));
    assert_eq!(listed(&|| assert_eq!(texts(&index, "coffee")[0], "Now about coffee.")), 0);
    assert_eq!(first(&index, "something new"), "file:/memories/new.md");
    fs::remove_file(machine.file("new.md")).unwrap();
    watch.say(Noticed::Files(vec![at("files/new.md")]));
    assert_eq!(listed(&|| assert!(!found(&index, "new").contains(&"file:/memories/new.md".to_owned()))), 0);
    fs::remove_file(machine.file("tea.md")).unwrap();
    watch.say(Noticed::Anything);
    assert_eq!(listed(&|| assert!(found(&index, "coffee").is_empty())), 1);
    // Another process has changed the index: what this one has seen is not what there is.
    let other = machine.index();
    fs::write(machine.file("late.md"), "Something late.\n").unwrap();
    assert_eq!(first(&other, "late"), "file:/memories/late.md");
    assert_eq!(listed(&|| assert_eq!(first(&index, "late"), "file:/memories/late.md")), 1);
    // A watcher is only a hint: what it does not notice is found a little later, and nobody waits for that.
    first(&index, "late");
    let begun = listings.load(Ordering::SeqCst);
    fs::write(machine.file("missed.md"), "Something missed.\n").unwrap();
    clock.advance_ms(2_100);
    let soon = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        found(&index, "missed").contains(&"file:/memories/missed.md".to_owned())
    });
    assert!(soon && listings.load(Ordering::SeqCst) > begun);
    // Nor does anyone believe it for long.
    fs::remove_file(machine.file("missed.md")).unwrap();
    clock.advance_ms(4_100);
    assert!(!found(&index, "missed").contains(&"file:/memories/missed.md".to_owned()));
    check_true(&index);
}

#[test]
fn what_was_taken_out_is_in_no_file_of_the_index() {
    let machine = Machine::new();
    let index = machine.index();
    // Letters alone, so that each is one word.
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    let secret = |i: usize| format!("sekrit{}{}word", letter(i), letter(i / 26));
    for i in 0..40 {
        let text = format!("# Title {}\n{} and filler number {i}.\n", secret(i), secret(i + 200));
        machine.store.write(&at(&format!("files/{i}.md")), &text).unwrap();
    }
    assert_eq!(found(&index, &secret(3)).first().map(String::as_str), Some("file:/memories/3.md"));
    let holding = || {
        let files =
            fs::read_dir(machine.cache()).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
        files.filter(|bytes| bytes.to_ascii_lowercase().windows(6).any(|part| part == b"sekrit")).count()
    };
    assert!(holding() > 0, "the test would see it");
    for i in 0..40 {
        machine.store.write(&at(&format!("files/{i}.md")), &format!("Clean filler number {i}.\n")).unwrap();
    }
    index.scrub().unwrap();
    assert_eq!(holding(), 0);
    assert_eq!(first(&index, "tea"), TEA);
    check_true(&index);
}

#[test]
fn an_edit_that_hides_its_time_and_size_is_seen() {
    let machine = Machine::new();
    let index = machine.index();
    let old = Timestamp::from_second(1_700_000_000).unwrap();
    let hidden = |text: &str| {
        fs::write(machine.file("tea.md"), text).unwrap();
        let file = fs::File::options().write(true).open(machine.file("tea.md")).unwrap();
        file.set_modified(std::time::SystemTime::from(old)).unwrap();
    };
    hidden("The walrus.\n");
    assert_eq!(texts(&index, "walrus"), ["The walrus."]);
    std::thread::sleep(Duration::from_millis(20));
    hidden("The badger.\n");
    assert_eq!(texts(&index, "badger"), ["The badger."]);
}

#[test]
fn where_no_index_can_be_kept_it_is_made_in_memory() {
    let machine = Machine::new();
    // A file where the folder should be: nobody, not even root, can write into it.
    for garbage in ["", "folder"] {
        let index = match garbage {
            "" => {
                let place = memgrove::index::Place::Folder(
                    Arc::new(|| Err(Error::new(Kind::Denied, "the folder may not be made"))),
                    "/nowhere".to_owned(),
                );
                super::over(&machine.store, place, Arc::new(memgrove::clock::SystemClock))
            }
            _ => {
                let index = machine.index();
                assert_eq!(first(&index, "tea"), TEA);
                let file = machine.databases().remove(0);
                drop(index);
                fs::remove_dir_all(machine.cache()).unwrap();
                fs::create_dir_all(file).unwrap();
                machine.index()
            }
        };
        assert_eq!(first(&index, "tea"), TEA);
        machine.store.write(&at("files/new.md"), "A walrus.\n").unwrap();
        assert_eq!(texts(&index, "walrus"), ["A walrus."]);
        assert!(index.trouble().is_some() && index.trouble().is_none());
        let status = index.status().unwrap();
        assert_eq!((status.file.as_str(), status.bytes), ("", 0));
    }
}

/// A storage that is far away, and in which a read waits until another is beside it.
#[derive(Default)]
struct Far {
    inner: Ram,
    reading: Mutex<Reading>,
    another: Condvar,
}

#[derive(Default)]
struct Reading {
    now: usize,
    most: usize,
    alone: bool,
}

impl Hook for Far {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }
    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::Etag
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        let mut reading = self.reading.lock().unwrap();
        reading.now += 1;
        reading.most = reading.most.max(reading.now);
        self.another.notify_all();
        let waits = |reading: &mut Reading| reading.most < 2 && !reading.alone;
        let (mut reading, waited) =
            self.another.wait_timeout_while(reading, Duration::from_secs(30), waits).unwrap();
        reading.alone |= waited.timed_out();
        reading.now -= 1;
        match reading.alone {
            true => Err(Error::new(Kind::Busy, "files that are far away are read one by one")),
            false => self.inner.read(at),
        }
    }
}

#[test]
fn files_that_are_far_away_are_read_side_by_side() {
    let store = Store::new(Hooked(Far::default()));
    for i in 0..64 {
        store.write(&at(&format!("files/{i}.md")), &format!("word{i}")).unwrap();
    }
    let index = over(&store, Place::Ram, Arc::new(SystemClock));
    assert_eq!(first(&index, "word63"), "file:/memories/63.md");
}
