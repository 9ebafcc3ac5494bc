//! Records: the schema, the verbs, limits, archive, backups, damage, migrations, and a model.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod damage;
#[cfg(unix)]
mod lock;
mod model;
mod one;
mod past;
mod seed;
mod slipped;
mod traces;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memgrove::backend::{Actor, Edit, Expect, Note, Origin};
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::ids::Ids;
use memgrove::memory::Plan;
use memgrove::shapes::records::{Guarded, Importance, Limits, NewRecord, Query, Record, RecordType, Records};
use memgrove::{Locator, Memory, Store};

/// Ids that are the same in every run.
#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn random(&self) -> [u8; 16] {
        let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&count.to_be_bytes());
        bytes[8..].copy_from_slice(&count.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        bytes
    }
}

/// A folder of records in memory, with its clock.
struct Folder {
    records: Records,
    memory: Memory,
    clock: Arc<ManualClock>,
    ids: Arc<Counted>,
}

impl Folder {
    fn new() -> Self {
        Folder::limited(Limits::default())
    }

    fn limited(limits: Limits) -> Self {
        let folder = Folder::over(Store::new(Ram::default()), &Arc::default(), &Arc::default());
        let records = Folder::opened(&folder.memory, &folder.ids, limits);
        Folder { records, ..folder }
    }

    fn over(store: Store, clock: &Arc<ManualClock>, ids: &Arc<Counted>) -> Self {
        let memory = Memory::new(store, clock.clone());
        let records = Folder::opened(&memory, ids, Limits::default());
        Folder { records, memory, clock: Arc::clone(clock), ids: Arc::clone(ids) }
    }

    fn opened(memory: &Memory, ids: &Arc<Counted>, limits: Limits) -> Records {
        Records::new(memory.clone(), at("records"), ids.clone()).unwrap().with_limits(limits)
    }

    /// A second view on the same files, as another process has it.
    fn beside(&self) -> Records {
        Folder::opened(&self.memory, &self.ids, self.records.limits().clone())
    }

    fn holding(files: &[(&str, &[u8])]) -> Self {
        let folder = Folder::new();
        for (name, bytes) in files {
            folder.put(name, bytes);
        }
        folder
    }

    /// Writes a file past the records, as an editor would.
    fn put(&self, name: &str, bytes: &[u8]) {
        let at = at(&format!("records/{name}"));
        let edit = Edit::Write { at, bytes: bytes.to_vec().into(), expect: Expect::Any };
        let actor = Actor { origin: Origin::FileEdit, ..Actor::default() };
        let note = Note { actor, ..Note::default() };
        self.memory.apply(note, |_| Ok(Plan { edits: vec![edit.clone()], outcome: () })).unwrap();
    }

    /// Removes a file past the records.
    fn take_away(&self, name: &str) {
        let edit = Edit::Delete { at: at(&format!("records/{name}")), expect: Expect::Any };
        let actor = Actor { origin: Origin::FileEdit, ..Actor::default() };
        let note = Note { actor, ..Note::default() };
        self.memory.apply(note, |_| Ok(Plan { edits: vec![edit.clone()], outcome: () })).unwrap();
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        self.memory.store().read_bytes(&at(&format!("records/{name}"))).map_or(Vec::new(), |file| file.bytes)
    }

    fn names(&self, under: &str) -> Vec<String> {
        let infos = self.memory.store().list_all(&at(&format!("records/{under}"))).unwrap();
        infos.iter().filter(|info| !info.is_dir()).map(|info| info.locator.key()[8..].to_owned()).collect()
    }

    fn add(&self, kind: RecordType, content: &str) -> Record {
        self.add_one(NewRecord::new(kind, content))
    }

    fn add_one(&self, new: NewRecord) -> Record {
        self.records.add(note("record_add"), &[new]).unwrap().outcome.records.remove(0)
    }

    fn contents(&self, query: &Query) -> Vec<String> {
        self.records.list(query).unwrap().records.into_iter().map(|record| record.content).collect()
    }
}

fn at(key: &str) -> Locator {
    Locator::new(key).unwrap()
}

fn note(verb: &str) -> Note {
    Note { verb: verb.into(), ..Note::default() }
}

fn any(record: &Record) -> Guarded {
    Guarded::any(&record.id)
}

fn tagged(kind: RecordType, content: &str, tags: &[&str]) -> NewRecord {
    let tags = tags.iter().map(ToString::to_string).collect();
    NewRecord { tags, importance: Importance::High, ..NewRecord::new(kind, content) }
}
