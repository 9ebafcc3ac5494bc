//! Lines that another program adds to a file just while memgrove replaces it.

use std::io;
use std::sync::{Arc, Mutex};

use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::ManualClock;
use memgrove::shapes::records::{Guarded, Patch, Query, RecordType, Records};
use memgrove::vfs::{Open, Rename, SimFs, Stat, Vfs, VfsFile};
use memgrove::{Kind, Store};

use super::{Counted, Folder, note};

const FILE: &str = "records/learnings.jsonl";

/// A disk on which another program appends lines right before a file takes its place.
struct Crowded {
    disk: SimFs,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Vfs for Crowded {
    fn rename(&self, from: &str, to: &str, how: Rename) -> io::Result<()> {
        if how == Rename::Exchange && to == FILE {
            for line in self.lines.lock().unwrap().drain(..) {
                let file = self.disk.open(to, Open::Write)?;
                file.write_at(file.stat()?.size, format!("{line}\n").as_bytes())?;
            }
        }
        self.disk.rename(from, to, how)
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
    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.disk.remove_file(name)
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

/// Records on such a disk, without and with the folder at hand, and the lines that will slip in.
fn crowded() -> (Folder, Records, Arc<Mutex<Vec<String>>>) {
    let (disk, lines) = (SimFs::new(), Arc::<Mutex<Vec<String>>>::default());
    disk.mkdir("records").unwrap();
    let (clock, ids) = (Arc::new(ManualClock::default()), Arc::new(Counted::default()));
    let tree = Arc::new(Crowded { disk: disk.clone(), lines: Arc::clone(&lines) });
    let options = LocalOptions { background: false, ..LocalOptions::new(tree, clock.clone()) };
    let folder = Folder::over(Store::new(Local::open(options).unwrap()), &clock, &ids);
    let at_hand = folder.beside().with_folder(Arc::new(disk.subtree("records").unwrap()));
    (folder, at_hand, lines)
}

fn line(content: &str) -> String {
    format!(
        "{{\"id\":\"550e8400-e29b-41d4-a716-0000000{content}\",\"type\":\"learning\",\
         \"content\":\"{content}\",\"created_at\":\"2026-01-01T10:00:00Z\",\
         \"updated_at\":\"2026-01-01T10:00:00Z\",\"accessed_at\":\"2026-01-01T10:00:00Z\",\
         \"access_count\":0,\"tags\":[],\"importance\":\"low\",\"archived\":false}}"
    )
}

fn update(records: &Records, id: &str, content: &str) {
    let patch = Patch { content: Some(content.to_owned()), ..Patch::default() };
    records.update(note("record_update"), &Guarded::any(id), &patch).unwrap();
}

fn said(folder: &Folder) -> Vec<String> {
    let mut said = folder.contents(&Query::default());
    said.sort_unstable();
    said
}

#[test]
fn what_slips_in_while_a_file_is_replaced_is_put_back_at_once() {
    let (folder, records, lines) = crowded();
    let own = folder.add(RecordType::Learning, "own");
    for round in 0..3 {
        lines.lock().unwrap().extend([line(&format!("a{round}111")), line(&format!("b{round}111"))]);
        update(&records, &own.id, &format!("own {round}"));
        let told = records.take_warnings();
        assert_eq!(told, ["another program wrote at the same time: 2 of its records were restored"]);
    }
    assert_eq!(said(&folder), ["a0111", "a1111", "a2111", "b0111", "b1111", "b2111", "own 2"]);
    assert!(records.check().unwrap().is_empty());

    // Who deletes one of them means it.
    records.delete(note("d"), &Guarded::any("550e8400-e29b-41d4-a716-0000000a1111")).unwrap();
    update(&records, &own.id, "own");
    assert!(records.check().unwrap().is_empty());
    assert!(folder.beside().mend(note("doctor")).unwrap().change.is_none());
    assert_eq!(said(&folder).len(), 6);
}

#[test]
fn what_was_not_put_back_at_once_is_told_and_mended_later() {
    let (folder, _, lines) = crowded();
    let own = folder.add(RecordType::Learning, "own");
    lines.lock().unwrap().push(line("1a7e1"));
    // Without the folder at hand it is not looked for.
    update(&folder.records, &own.id, "own 1");
    update(&folder.records, &own.id, "own 2");
    assert_eq!(
        folder.records.view("550e8400-e29b-41d4-a716-00000001a7e1").unwrap_err().kind(),
        Kind::NotFound
    );
    let findings = folder.records.check().unwrap();
    let told: Vec<&str> = findings.iter().map(|finding| &*finding.what).collect();
    assert_eq!(told, ["1 records that another program added are only in the history"]);
    let done = folder.records.mend(note("doctor")).unwrap().outcome.done;
    assert_eq!(done, ["records/learnings.jsonl: restored 1 records of another program"]);
    assert_eq!(said(&folder), ["1a7e1", "own 2"]);
    assert!(folder.records.check().unwrap().is_empty());
}
