//! What others do meanwhile: a person puts back what a file was, an editor has it open, a process holds
//! the lock, dies, or fills a folder. Nothing that someone meant is lost.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memgrove::backend::{Applied, Change, Depth, Edit, Expect, HistoryQuery, Moment, Note, OUTSIDE};
use memgrove::backends::{Local, LocalOptions, Ram};
use memgrove::clock::{ManualClock, SystemClock};
use memgrove::error::code;
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, Open, RealFs, SimFs, Vfs};
use memgrove::{Backend, Kind, Locator, Result, Store};

use super::{at, mode, open, options};
use crate::hooked::{Hook, Hooked};

pub(super) fn write(key: &str, text: &str) -> Edit {
    Edit::Write { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any }
}

pub(super) fn delete(key: &str) -> Edit {
    Edit::Delete { at: at(key), expect: Expect::Any }
}

pub(super) fn did(local: &Local, edits: impl Into<Vec<Edit>>) -> Result<Applied> {
    local.apply(&Change { edits: edits.into(), note: Note::default() })
}

/// A store on a disk, which makes a checkpoint only when it is told to.
pub(super) fn on(disk: &Arc<impl Vfs + 'static>) -> LocalOptions {
    let mut options = LocalOptions::new(disk.clone(), Arc::new(ManualClock::default()));
    options.background = false;
    options
}

/// What the history kept of what others wrote, the oldest first.
pub(super) fn outside(local: &Local) -> Vec<(String, String)> {
    let past = local.history(&HistoryQuery::default()).unwrap().into_iter().rev();
    let kept = past.filter(|past| past.note.verb == OUTSIDE).map(|past| {
        let at = past.edits[0].at.clone();
        let bytes = local.read_past(&at, &Moment::After(past.change)).unwrap().unwrap();
        (at.key().to_owned(), String::from_utf8(bytes).unwrap())
    });
    kept.collect()
}

/// Waits for something that another thread does, for as long as a loaded machine may take.
pub(super) fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A stop of the machine may have left what a file was before, and a person may have put it back: the
/// answered change wins, and what it takes away is in the history.
#[test]
fn what_recovery_takes_away_is_in_the_history() {
    let root = tempfile::tempdir().unwrap();
    let mut then = options(root.path());
    (then.background, then.clock) = (false, Arc::new(ManualClock::default()));
    let local = Local::open(then).unwrap();
    did(&local, ["a.md", "d.md", "e.md"].map(|key| write(key, "version one\n"))).unwrap();
    local.checkpoint().unwrap();
    did(&local, [write("a.md", "version two\n")]).unwrap();
    did(&local, [delete("d.md"), delete("e.md")]).unwrap();
    // It is killed, and its files are put back or cut short.
    std::mem::forget(local);
    for (name, text) in [("a.md", "version one\n"), ("d.md", "version one\n"), ("e.md", "version")] {
        std::fs::write(root.path().join(name), text).unwrap();
    }
    std::fs::remove_file(root.path().join(".journal/mark")).unwrap();
    let local = open(root.path());
    assert_eq!(local.read(&at("a.md")).unwrap().bytes, b"version two\n");
    assert_eq!(local.list(&Locator::root(), Depth::All).unwrap().len(), 1);
    let kept = [("a.md", "version one\n"), ("d.md", "version one\n"), ("e.md", "version")];
    assert_eq!(outside(&local), kept.map(|(key, text)| (key.to_owned(), text.to_owned())));
}

/// Who only reads makes the checkpoint that a dead writer left undone: from then on no stop of the
/// machine brings back what a person has changed.
#[test]
fn a_reader_closes_the_gap_of_a_dead_writer() {
    let disk = Arc::new(SimFs::new());
    let local = Local::open(on(&disk)).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    did(&local, [write("a.md", "two")]).unwrap();
    std::mem::forget(local);
    let later = Arc::new(ManualClock::default());
    later.advance_ms(60_000);
    let reader = Local::open(LocalOptions { clock: later, background: true, ..on(&disk) }).unwrap();
    assert_eq!(reader.read(&at("a.md")).unwrap().bytes, b"two");
    drop(reader);
    let file = disk.open("a.md", Open::Write).unwrap();
    file.write_at(0, b"one").and_then(|()| file.sync_data()).unwrap();
    let local = Local::open(on(&Arc::new(disk.power_cut(1)))).unwrap();
    assert_eq!(local.read(&at("a.md")).unwrap().bytes, b"one");
}

/// When a change is durable, a lock that others hold delays it, and nothing more.
#[test]
fn a_lock_that_others_hold_stops_no_store() {
    for sticky in [false, true] {
        let disk = SimFs::new();
        let faulty = Arc::new(FaultFs::new(Arc::new(disk.clone())));
        let local = Local::open(on(&faulty)).unwrap();
        faulty.plan(FaultPlan { of: Some(Call::Lock), after: 1, fault: Fault::Eintr, sticky });
        let answer = did(&local, [write("a.md", "one")]);
        assert!(faulty.fired() > 0);
        faulty.heal();
        assert_eq!(answer.is_err(), sticky);
        if let Err(error) = answer {
            assert_eq!(error.kind(), Kind::Io);
            assert!(error.hint_text().unwrap().starts_with("do not repeat it"), "{error}");
        }
        did(&local, [write("b.md", "two")]).expect("the store goes on");
        assert_eq!(local.read(&at("a.md")).unwrap().bytes, b"one");
        assert_eq!(local.history(&HistoryQuery::default()).unwrap().len(), 2);
    }
}

/// Whoever has the turn to sync and to place may have been stopped there: others wait a moment, and go on.
#[test]
fn a_turn_that_does_not_end_stops_no_store() {
    let disk = Arc::new(SimFs::new());
    let local = Local::open(on(&disk)).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    let stopped = disk.open(".journal/mark", Open::Write).unwrap();
    stopped.lock(Duration::ZERO).unwrap();
    did(&local, [write("a.md", "two")]).unwrap();
    assert_eq!(local.read(&at("a.md")).unwrap().bytes, b"two");
}

/// What is derived has no number of its own, so that its temporary names come back: each is free again when
/// the lock is, and nobody takes away another's.
#[test]
fn two_that_derive_do_not_take_each_others_temporary_files() {
    let disk = Arc::new(SimFs::new());
    std::thread::scope(|scope| {
        for who in 0..2 {
            let local = Local::open(on(&disk)).unwrap();
            scope.spawn(move || {
                for i in 0..300 {
                    let note = Note { derived: true, ..Note::default() };
                    let edits = vec![write("list.md", &format!("{who} {i}"))];
                    local.apply(&Change { edits, note }).unwrap();
                }
            });
        }
    });
    let left = disk.names("", usize::MAX).unwrap();
    assert!(left.iter().all(|name| !name.starts_with(".mtmp-")), "{left:?}");
}

#[test]
fn a_checkpoint_that_met_a_lock_is_made_later() {
    let faulty = Arc::new(FaultFs::new(Arc::new(SimFs::new())));
    let local = Local::open(LocalOptions { background: true, ..on(&faulty) }).unwrap();
    faulty.plan(FaultPlan { of: Some(Call::Lock), after: 2, fault: Fault::Eintr, sticky: false });
    did(&local, [write("a.md", "one")]).unwrap();
    until(|| faulty.calls() > 3);
}

/// An editor has a file open when a change replaces it, and saves into it when the store is closed.
#[test]
fn what_an_editor_saves_after_the_store_was_closed_is_kept() {
    for change in [write("a.md", "two"), delete("a.md")] {
        let disk = Arc::new(SimFs::new());
        let opened = || Local::open(LocalOptions { background: true, ..on(&disk) }).unwrap();
        let local = opened();
        did(&local, [write("a.md", "one"), write("b.md", "one")]).unwrap();
        let editor = disk.open("a.md", Open::Write).unwrap();
        did(&local, [change]).unwrap();
        drop(local);
        editor.write_at(0, b"by hand").unwrap();
        let busy = opened();
        did(&busy, [write("b.md", "two")]).unwrap();
        drop(busy);
        editor.write_at(7, b", and more").unwrap();
        drop(editor);
        let local = opened();
        did(&local, [write("b.md", "three")]).unwrap();
        drop(local);
        let local = opened();
        assert_eq!(outside(&local), [("a.md".to_owned(), "by hand, and more".to_owned())]);
        let left: Vec<_> = disk.names("", usize::MAX).unwrap();
        assert!(left.iter().all(|name| !name.starts_with(".mtmp-")), "{left:?}");
    }
}

/// While the store is open, an editor may take its time; and where the system does not tell who
/// writes, a moment.
#[test]
fn what_an_editor_saves_beside_an_open_store_is_kept() {
    for (disk, tells) in [(SimFs::new(), true), (SimFs::without_exchange(), false)] {
        let (disk, clock) = (Arc::new(disk), Arc::new(ManualClock::default()));
        let local = Local::open(LocalOptions { clock: clock.clone(), ..on(&disk) }).unwrap();
        did(&local, [write("a.md", "one")]).unwrap();
        let editor = disk.open("a.md", Open::Write).unwrap();
        did(&local, [write("a.md", "two")]).unwrap();
        if tells {
            clock.advance_ms(3_600_000);
        }
        local.checkpoint().unwrap();
        editor.write_at(0, b"by hand").unwrap();
        drop(editor);
        clock.advance_ms(2_000);
        local.checkpoint().unwrap();
        assert_eq!(outside(&local), [("a.md".to_owned(), "by hand".to_owned())]);
    }
}

#[test]
fn an_idle_store_looks_for_what_editors_save() {
    let root = tempfile::tempdir().unwrap();
    let local = open(root.path());
    did(&local, [write("a.md", "one")]).unwrap();
    let editor = std::fs::OpenOptions::new().write(true).open(root.path().join("a.md")).unwrap();
    did(&local, [write("a.md", "two")]).unwrap();
    std::io::Write::write_all(&mut &editor, b"by hand").unwrap();
    drop(editor);
    until(|| !outside(&local).is_empty());
    assert_eq!(outside(&local), [("a.md".to_owned(), "by hand".to_owned())]);
}

/// What a person puts where a file is about to be deleted is theirs: it stays, and the change did not happen.
#[test]
fn what_takes_the_place_of_a_deleted_file_stays() {
    for is_link in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let faulty = Arc::new(FaultFs::new(options(root.path()).tree));
        let local = Local::open(on(&faulty)).unwrap();
        did(&local, [write("a.md", "one")]).unwrap();
        // The change is durable, and not in its place.
        faulty.plan(FaultPlan { of: Some(Call::Lock), after: 1, fault: Fault::Eintr, sticky: true });
        did(&local, [delete("a.md")]).unwrap_err();
        faulty.heal();
        let place = root.path().join("a.md");
        std::fs::rename(&place, root.path().join("theirs.md")).unwrap();
        match is_link {
            true => std::os::unix::fs::symlink("theirs.md", &place).unwrap(),
            false => std::fs::create_dir_all(place.join("inner")).unwrap(),
        }
        did(&local, [write("b.md", "two")]).unwrap();
        drop(local);
        let meta = std::fs::symlink_metadata(&place).expect("it is where they put it");
        assert!(meta.is_symlink() == is_link && (is_link || place.join("inner").is_dir()));
        let past = open(root.path()).history(&HistoryQuery::default()).unwrap();
        assert_eq!(past.len(), 2, "{past:?}");
    }
}

/// Puts a file into a folder just before it is deleted.
struct Filling {
    ram: Ram,
    filled: AtomicBool,
}

impl Hook for Filling {
    fn inner(&self) -> &dyn Backend {
        &self.ram
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        if !self.filled.swap(true, Ordering::SeqCst) {
            self.ram.apply(&Change { edits: vec![write("d/late.md", "x")], note: Note::default() })?;
        }
        self.ram.apply(change)
    }
}

#[test]
fn a_folder_that_fills_while_it_is_deleted_is_deleted_all_the_same() {
    let ram = Ram::default();
    ram.apply(&Change { edits: vec![write("d/a.md", "x")], note: Note::default() }).unwrap();
    let store = Store::new(Hooked(Filling { ram, filled: AtomicBool::new(false) }));
    let plan = || {
        let children = store.list(&at("d"))?.into_iter().chain([at("d")]);
        let edits = children.map(|at| Edit::Delete { at, expect: Expect::Any }).collect();
        Ok((Change { edits, note: Note::default() }, ()))
    };
    store.commit(plan).unwrap();
    assert_eq!(store.list(&Locator::root()).unwrap(), []);
}

/// A name that is no text is nothing that a change could delete with its folder.
#[test]
fn a_folder_with_a_name_that_is_no_text_stays_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("d");
    std::fs::create_dir(&folder).unwrap();
    let decomposed = folder.join("e\u{301}.md");
    for path in [folder.join(OsStr::from_bytes(b"caf\xe9.md")), decomposed.clone()] {
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    }
    let local = Local::open(options(root.path())).unwrap();
    let error = did(&local, [delete("d/\u{e9}.md"), delete("d")]).unwrap_err();
    assert_eq!((error.kind(), error.code_name()), (Kind::Invalid, Some(code::DIRECTORY_NOT_EMPTY)));
    assert!(error.hint_text().unwrap().contains("memgrove doctor"), "{error}");
    assert_eq!(mode(&decomposed), 0o640);
    assert_eq!(local.history(&HistoryQuery::default()).unwrap(), []);
}

/// What cannot be read is a finding, and hides no other.
#[test]
fn what_cannot_be_read_is_found_by_the_check() {
    for (of, after, at) in [(Call::List, 2, "d"), (Call::Open, 5, "d/a.md")] {
        let faulty = Arc::new(FaultFs::new(Arc::new(SimFs::new())));
        let local = Local::open(on(&faulty)).unwrap();
        did(&local, [write("d/a.md", "one")]).unwrap();
        // The journal and the root come first; or the lock, what tries to write, and the journal.
        faulty.plan(FaultPlan { of: Some(of), after, fault: Fault::Eacces, sticky: false });
        let found: Vec<_> = local.check().unwrap().into_iter().map(|finding| finding.at).collect();
        assert_eq!((found, faulty.fired()), (vec![at.to_owned()], 1));
    }
}

/// The journal is filled ahead where there is room; where there is not, what fits is done.
#[test]
fn a_nearly_full_disk_takes_what_fits() {
    let disk = Arc::new(SimFs::with_capacity(8_192));
    let local = Local::open(on(&disk)).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    did(&local, [delete("a.md")]).unwrap();
    assert_eq!(did(&local, [write("b.md", &"x".repeat(9_000))]).unwrap_err().kind(), Kind::Full);
    did(&local, [write("c.md", "two")]).unwrap();
    let local = Local::open(on(&Arc::new(disk.power_cut(3)))).unwrap();
    assert_eq!(local.read(&at("c.md")).unwrap().bytes, b"two");
    assert_eq!(local.history(&HistoryQuery::default()).unwrap().len(), 3);
}

/// Where a sync takes long, those who write at once wait for each other before it: all of them share few syncs,
/// and nothing is lost or doubled.
#[test]
fn writers_on_a_slow_disk_share_its_syncs() {
    const STORES: usize = 2;
    const WRITERS: usize = 4;
    const EACH: usize = 15;
    let root = tempfile::tempdir().unwrap();
    let disk = RealFs::open_root(root.path()).unwrap();
    let disk = FaultFs::new(Arc::new(disk)).with_sync_delay(Duration::from_millis(3));
    let opened = |_| {
        let mut options = LocalOptions::new(Arc::new(disk.clone()), Arc::new(SystemClock));
        options.background = false;
        Store::new(Local::open(options).unwrap())
    };
    let stores: [Store; STORES] = std::array::from_fn(opened);
    stores[0].write(&at("shared.md"), "").unwrap();
    // It never fails: it only counts.
    disk.plan(FaultPlan { of: Some(Call::Sync), after: u64::MAX, fault: Fault::Eio, sticky: false });
    std::thread::scope(|scope| {
        for writer in 0..STORES * WRITERS {
            let store = &stores[writer % STORES];
            scope.spawn(move || {
                for round in 0..EACH {
                    store.write(&at(&format!("{writer}.md")), &format!("{round}")).unwrap();
                }
                let line = format!("{writer}\n");
                let add = |old: Option<&[u8]>| Ok([old.unwrap_or_default(), line.as_bytes()].concat());
                store.update(&at("shared.md"), add).unwrap();
            });
        }
    });
    let syncs = disk.calls();
    assert!(syncs < (STORES * WRITERS * EACH / 2) as u64, "{syncs} syncs");
    let mut lines: Vec<usize> =
        stores[0].read(&at("shared.md")).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..STORES * WRITERS).collect::<Vec<_>>());
    for writer in 0..STORES * WRITERS {
        assert_eq!(stores[1].read(&at(&format!("{writer}.md"))).unwrap(), (EACH - 1).to_string());
    }
}
