//! What others write, not yet on the disk, before a change and a stop of the machine; or at the very moment at which
//! recovery, or taking back, gives a file its content.

use std::io;
use std::sync::{Arc, Mutex};

use memgrove::Backend;
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::{Clock, ManualClock, Timestamp};
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, Open, Rename, SimFs, Stat, Vfs, VfsFile};

use super::at;
use super::beside::{delete, did, on, outside, write};
use super::between::{append, by_hand, read};

type Meddling = Box<dyn FnOnce(&SimFs) + Send>;

/// A disk on which somebody does something right before a call that changes what a name leads to.
struct Meddled {
    disk: SimFs,
    name: &'static str,
    meddling: Mutex<Option<Meddling>>,
}

impl Meddled {
    fn new(disk: &SimFs, name: &'static str, meddling: impl FnOnce(&SimFs) + Send + 'static) -> Arc<Self> {
        Arc::new(Meddled { disk: disk.clone(), name, meddling: Mutex::new(Some(Box::new(meddling))) })
    }

    fn meddle(&self, names: &[&str]) {
        if names.contains(&self.name)
            && let Some(meddling) = self.meddling.lock().unwrap().take()
        {
            meddling(&self.disk);
        }
    }
}

impl Vfs for Meddled {
    fn rename(&self, from: &str, to: &str, how: Rename) -> io::Result<()> {
        self.meddle(&[from, to]);
        self.disk.rename(from, to, how)
    }
    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.meddle(&[name]);
        self.disk.remove_file(name)
    }
    fn stat(&self, name: &str) -> io::Result<Stat> {
        self.disk.stat(name)
    }
    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn VfsFile>> {
        self.disk.open(name, how)
    }
    fn read_dir(&self, name: &str) -> io::Result<Vec<(Result<String, String>, Stat)>> {
        self.disk.read_dir(name)
    }
    fn names(&self, name: &str, max: usize) -> io::Result<Vec<String>> {
        self.disk.names(name, max)
    }
    fn mkdir(&self, name: &str) -> io::Result<()> {
        self.disk.mkdir(name)
    }
    fn remove_dir(&self, name: &str) -> io::Result<()> {
        self.disk.remove_dir(name)
    }
    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.disk.sync_dir(name)
    }
    fn sync_tree(&self) -> io::Result<()> {
        self.disk.sync_tree()
    }
    fn set_mode(&self, name: &str, mode: u32) -> io::Result<()> {
        self.disk.set_mode(name, mode)
    }
    fn boot_id(&self) -> Option<String> {
        self.disk.boot_id()
    }
}

/// The clock of a machine, which its disk goes by.
struct DiskClock(SimFs);

impl Clock for DiskClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanosecond(self.0.now_ns()).unwrap()
    }
}

fn open_on(disk: &SimFs) -> Local {
    let clock = Arc::new(DiskClock(disk.clone()));
    Local::open(LocalOptions { clock, ..on(&Arc::new(disk.clone())) }).unwrap()
}

fn one(key: &str, text: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), text.to_owned())]
}

/// How somebody saved a file shortly before a change, and not durably.
fn saved(disk: &SimFs, key: &str, text: &str) {
    let swap = format!("{key}~");
    by_hand(disk, &swap, text);
    disk.rename(&swap, key, Rename::Replace).unwrap();
    disk.idle_ms(100);
}

/// What is found after a power cut that took what was not synced of the files and their names, but the journal is
/// there.
fn cut(disk: &SimFs, local: Local) -> SimFs {
    std::mem::forget(local);
    let journal = disk.open(".journal/0000000000000001.log", Open::Read).unwrap();
    journal.sync_data().unwrap();
    // The seed is searched, because which of the names survive is a matter of chance.
    let lost = |seed: &u64| {
        let names = disk.power_cut(*seed);
        names.stat("a.md").map_or(true, |stat| stat.size == "base, and longer\n".len() as u64)
    };
    disk.power_cut((0..1_000).find(lost).expect("a cut that takes the edit"))
}

/// A power cut takes what somebody had saved, and the file is as it was before: what was answered since is in it all
/// the same.
#[test]
fn what_was_answered_behind_a_lost_edit() {
    for theirs in ["short\n", "theirs, and longer than the base\n"] {
        for (edit, expected) in [
            (append("a.md", "ours\n"), "base, and longer\nours\n"),
            (write("a.md", "ours\n"), "ours\n"),
            (delete("a.md"), ""),
        ] {
            let disk = SimFs::new();
            let local = open_on(&disk);
            did(&local, [write("a.md", "base, and longer\n")]).unwrap();
            local.checkpoint().unwrap();
            saved(&disk, "a.md", theirs);
            did(&local, [edit.clone()]).unwrap();
            let disk = cut(&disk, local);
            let local = open_on(&disk);
            let found = local.read(&at("a.md")).map_or_else(|_| Vec::new(), |content| content.bytes);
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{theirs:?}, {edit:?}");
            // Once, however often.
            let disk = disk.power_cut(3);
            drop(local);
            let local = open_on(&disk);
            let found = local.read(&at("a.md")).map_or_else(|_| Vec::new(), |content| content.bytes);
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{theirs:?}, {edit:?}");
        }
    }
}

/// A file that somebody had made is gone: what was added to it is not. One that somebody has removed long after does not
/// come back.
#[test]
fn what_was_added_to_a_file_that_is_lost() {
    for removed in [false, true] {
        let disk = SimFs::new();
        let local = open_on(&disk);
        did(&local, [write("d/b.md", "one")]).unwrap();
        local.checkpoint().unwrap();
        by_hand(&disk, "d/a.md", "theirs\n");
        disk.idle_ms(100);
        did(&local, [append("d/a.md", "ours\n")]).unwrap();
        std::mem::forget(local);
        if removed {
            disk.idle_ms(5_000);
        }
        disk.remove_file("d/a.md").unwrap();
        disk.sync_tree().unwrap();
        let disk = disk.power_cut(1);
        drop(open_on(&disk));
        let found = disk.stat("d/a.md").map(|_| read(&disk, "d/a.md")).ok();
        assert_eq!(found, (!removed).then(|| "ours\n".to_owned()));
    }
}

/// What is torn at the end of a file is no beginning for a line.
#[test]
fn what_was_added_behind_a_torn_line() {
    let disk = SimFs::new();
    let local = open_on(&disk);
    did(&local, [write("a.md", "base\n")]).unwrap();
    local.checkpoint().unwrap();
    by_hand(&disk, "a.md", "base\ntheirs, a long line\n");
    disk.idle_ms(100);
    did(&local, [append("a.md", "ours\n")]).unwrap();
    std::mem::forget(local);
    by_hand(&disk, "a.md", "base\nthei\0\0\0\0");
    disk.sync_tree().unwrap();
    let disk = disk.power_cut(1);
    drop(open_on(&disk));
    assert_eq!(read(&disk, "a.md"), "base\nthei\nours\n");
}

/// Somebody saves a file at the moment at which recovery gives it its content, or takes it away.
#[test]
fn what_is_saved_beside_a_recovery() {
    for (edit, expected) in [(write("a.md", "two"), Some("two")), (delete("a.md"), None)] {
        let disk = SimFs::new();
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        did(&local, [write("a.md", "one")]).unwrap();
        local.checkpoint().unwrap();
        did(&local, [edit]).unwrap();
        std::mem::forget(local);
        by_hand(&disk, "a.md", "one");
        disk.sync_tree().unwrap();
        let disk = disk.power_cut(1);
        let meddled = Meddled::new(&disk, "a.md", |disk| by_hand(disk, "a.md", "by hand"));
        drop(Local::open(on(&meddled)).unwrap());
        assert!(meddled.meddling.lock().unwrap().is_none(), "nobody has meddled");
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        let found = disk.stat("a.md").map(|_| read(&disk, "a.md")).ok();
        assert_eq!(found.as_deref(), expected);
        assert!(outside(&local).contains(&one("a.md", "by hand")[0]), "{:?}", outside(&local));
    }
}

/// Somebody makes a file at the moment at which recovery makes it.
#[test]
fn what_is_made_beside_a_recovery() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    std::mem::forget(local);
    disk.remove_file("a.md").unwrap();
    disk.sync_tree().unwrap();
    let disk = disk.power_cut(1);
    let meddled = Meddled::new(&disk, "a.md", |disk| by_hand(disk, "a.md", "by hand"));
    drop(Local::open(on(&meddled)).unwrap());
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    assert_eq!(read(&disk, "a.md"), "one");
    assert_eq!(outside(&local), one("a.md", "by hand"));
}

/// Somebody saves a file at the moment at which a change that failed is taken back, by a process that did not make it.
#[test]
fn what_is_saved_beside_taking_back() {
    for made in [false, true] {
        let disk = SimFs::new();
        let dying = Arc::new(FaultFs::new(Arc::new(disk.clone())));
        let local = Local::open(on(&dying)).unwrap();
        did(&local, [write("b.md", "one")]).unwrap();
        if !made {
            did(&local, [write("a.md", "one")]).unwrap();
        }
        dying.plan(FaultPlan { of: Some(Call::Rename), after: 1, fault: Fault::Eio, sticky: true });
        did(&local, [write("a.md", "two"), write("b.md", "two")]).unwrap_err();
        std::mem::forget(local);
        let ours = |name: &String| name.starts_with(".mtmp-") && name.ends_with("-0");
        disk.names("", usize::MAX).unwrap().iter().filter(|name| ours(name)).for_each(|name| {
            disk.remove_file(name).unwrap();
        });
        disk.remove_file("b.md").and_then(|()| disk.mkdir("b.md")).unwrap();
        let meddled = Meddled::new(&disk, "a.md", |disk| by_hand(disk, "a.md", "by hand"));
        let clock = Arc::new(ManualClock::default());
        let local = Local::open(LocalOptions { clock, ..on(&meddled) }).unwrap();
        did(&local, [write("c.md", "three")]).unwrap();
        assert!(meddled.meddling.lock().unwrap().is_none(), "nobody has meddled");
        assert!(outside(&local).contains(&one("a.md", "by hand")[0]), "{made}: {:?}", outside(&local));
    }
}
