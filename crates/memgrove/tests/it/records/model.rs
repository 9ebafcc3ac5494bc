//! Any sequence of operations against a simple model, with power cuts in the middle of them, hand
//! edits, and fresh processes between.

use std::collections::BTreeMap;
use std::sync::Arc;

use memgrove::Store;
use memgrove::backends::{Local, LocalOptions, Ram};
use memgrove::clock::ManualClock;
use memgrove::shapes::records::{
    Archived, Guarded, Importance, NewRecord, Patch, Query, RecordType, Records,
};
use memgrove::vfs::{SimFs, Vfs};
use proptest::prelude::*;

use super::{Counted, Folder, at, note};

#[derive(Debug, Clone)]
enum Step {
    Add(RecordType, String, Vec<String>),
    AddMany(Vec<String>),
    Get(usize),
    Update(usize, String),
    Archive(usize),
    Restore(usize),
    Delete(usize),
    /// Another process takes over, with nothing in memory.
    Reopen,
    /// An editor adds noise that nobody may lose.
    Noise(RecordType),
    Settle,
}

/// A step, and perhaps a power cut at some instant of it.
type Cut = Option<(usize, u64)>;

fn steps() -> impl Strategy<Value = Vec<(Step, Cut)>> {
    let kind = prop_oneof![Just(RecordType::Core), Just(RecordType::Learning), Just(RecordType::Task)];
    let text = "[a-zé\"\\\\\n ]{0,12}x";
    let step = prop_oneof![
        4 => (kind.clone(), text, proptest::collection::vec("[ab]", 0..3)).prop_map(|(kind, text, tags)| Step::Add(kind, text, tags)),
        1 => proptest::collection::vec(text, 1..4).prop_map(Step::AddMany),
        2 => any::<usize>().prop_map(Step::Get),
        3 => (any::<usize>(), text).prop_map(|(at, text)| Step::Update(at, text)),
        2 => any::<usize>().prop_map(Step::Archive),
        2 => any::<usize>().prop_map(Step::Restore),
        1 => any::<usize>().prop_map(Step::Delete),
        1 => Just(Step::Reopen),
        1 => kind.prop_map(Step::Noise),
        1 => Just(Step::Settle),
    ];
    let cut = proptest::option::weighted(0.3, (any::<usize>(), any::<u64>()));
    proptest::collection::vec((step, cut), 1..40)
}

#[derive(Debug, Clone, PartialEq)]
struct Known {
    kind: RecordType,
    content: String,
    tags: Vec<String>,
    archived: bool,
}

/// What must be there whatever happens.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    known: BTreeMap<String, Known>,
    noise: BTreeMap<&'static str, usize>,
}

impl Model {
    fn nth(&self, at: usize) -> Option<String> {
        (!self.known.is_empty()).then(|| self.known.keys().nth(at % self.known.len()).unwrap().clone())
    }

    fn observed(folder: &Folder, records: &Records) -> Self {
        let all = Query { archived: Archived::Any, ..Query::default() };
        let found = records.list(&all).unwrap();
        assert_eq!(found.total, found.records.len());
        let known: BTreeMap<String, Known> = found
            .records
            .into_iter()
            .map(|record| {
                let (kind, content, tags) = (record.kind, record.content, record.tags);
                (record.id, Known { kind, content, tags, archived: record.archived })
            })
            .collect();
        assert_eq!(known.len(), found.total, "an id is there twice");
        let noise = RecordType::ALL
            .map(|kind| (kind.file(), folder.text(kind.file()).matches("{\"noise\":").count()))
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect();
        Model { known, noise }
    }
}

struct World {
    disk: SimFs,
    clock: Arc<ManualClock>,
    ids: Arc<Counted>,
    folder: Folder,
    records: Records,
    model: Model,
    /// How often each was read. Readings wait in memory for a while, so a power cut may take some.
    reads: BTreeMap<String, u64>,
}

impl World {
    fn new() -> Self {
        let disk = SimFs::new();
        let (clock, ids) = (Arc::new(ManualClock::default()), Arc::new(Counted::default()));
        let (folder, records) = World::opened(&disk, &clock, &ids);
        World { disk, clock, ids, folder, records, model: Model::default(), reads: BTreeMap::new() }
    }

    /// A process that has just begun, with the folder at hand as the program has it.
    fn opened(disk: &SimFs, clock: &Arc<ManualClock>, ids: &Arc<Counted>) -> (Folder, Records) {
        let options = LocalOptions::new(Arc::new(disk.clone()), clock.clone());
        let local = Local::open(LocalOptions { background: false, ..options }).unwrap();
        let folder = Folder::over(Store::new(local), clock, ids);
        if disk.stat("records").is_err() {
            folder.memory.store().mkdir(&at("records")).unwrap();
        }
        let records = folder.beside().with_folder(Arc::new(disk.subtree("records").unwrap()));
        (folder, records)
    }

    fn reopen(&mut self, disk: SimFs) {
        self.disk = disk;
        // The one before lets go of the disk first.
        self.folder = Folder::over(Store::new(Ram::default()), &self.clock, &self.ids);
        self.records = self.folder.beside();
        (self.folder, self.records) = World::opened(&self.disk, &self.clock, &self.ids);
    }

    /// What the model says a step does, and the step done.
    fn perform(&mut self, step: Step) -> Model {
        let mut model = self.model.clone();
        match step {
            Step::Add(kind, text, tags) => {
                self.add(&mut model, &[NewRecord { tags, ..NewRecord::new(kind, text) }]);
            }
            Step::AddMany(texts) => {
                let kinds = texts.into_iter().zip(RecordType::ALL);
                let new: Vec<NewRecord> = kinds.map(|(text, kind)| NewRecord::new(kind, text)).collect();
                self.add(&mut model, &new);
            }
            Step::Get(at) => {
                let Some(id) = model.nth(at) else { return model };
                let reads = self.reads.entry(id.clone()).or_default();
                *reads += 1;
                assert_eq!(self.records.get(&id).unwrap().record.access_count, *reads);
            }
            Step::Update(at, text) => {
                let Some(id) = model.nth(at) else { return model };
                let known = model.known.get_mut(&id).unwrap();
                let importance = Some(Importance::Low);
                let patch = Patch { content: Some(text.clone()), importance, ..Patch::default() };
                let done = self.records.update(note("record_update"), &Guarded::any(&id), &patch);
                assert_eq!(done.is_ok(), !known.archived, "{done:?}");
                if done.is_ok() {
                    known.content = text;
                }
            }
            Step::Archive(at) => self.moved(&mut model, at, true),
            Step::Restore(at) => self.moved(&mut model, at, false),
            Step::Delete(at) => {
                let Some(id) = model.nth(at) else { return model };
                self.records.delete(note("record_delete"), &Guarded::any(&id)).unwrap();
                model.known.remove(&id);
            }
            Step::Noise(kind) => {
                let mut bytes = self.folder.bytes(kind.file());
                bytes.extend_from_slice(b"{\"noise\":");
                self.folder.put(kind.file(), &bytes);
                *model.noise.entry(kind.file()).or_default() += 1;
            }
            Step::Settle => self.records.settle().unwrap(),
            Step::Reopen => self.records.flush().unwrap(),
        }
        model
    }

    fn add(&mut self, model: &mut Model, new: &[NewRecord]) {
        for record in self.records.add(note("record_add"), new).unwrap().outcome.records {
            let (kind, content, tags) = (record.kind, record.content, record.tags);
            model.known.insert(record.id, Known { kind, content, tags, archived: false });
        }
    }

    fn moved(&mut self, model: &mut Model, at: usize, archived: bool) {
        let Some(id) = model.nth(at) else { return };
        let known = model.known.get_mut(&id).unwrap();
        let one = Guarded::any(&id);
        let done = match archived {
            true => self.records.archive(note("record_archive"), &[one]).map(drop),
            false => self.records.restore(note("record_restore"), &one).map(drop),
        };
        assert_eq!(done.is_ok(), known.archived != archived, "{done:?}");
        known.archived = archived;
    }

    fn take(&mut self, step: Step, cut: Cut) {
        let named = format!("{step:?}");
        let reopen = matches!(step, Step::Reopen);
        let before = self.model.clone();
        if cut.is_some() {
            self.disk.record();
        }
        let after = self.perform(step);
        let Some((instant, seed)) = cut else {
            self.model = after;
            if reopen {
                self.reopen(self.disk.clone());
            }
            return self.check();
        };
        let recording = self.disk.recording();
        let instant = instant % (recording.ops() + 1);
        self.reopen(recording.power_cut(instant, seed));
        let found = Model::observed(&self.folder, &self.records);
        let acknowledged = instant == recording.ops();
        assert!(found == after || (found == before && !acknowledged), "{named} cut at {instant}: {found:?}");
        self.model = found;
        self.recount();
        self.check();
    }

    /// Counts the readings that a power cut has left: never more than there were.
    fn recount(&mut self) {
        let all = Query { archived: Archived::Any, ..Query::default() };
        for record in self.records.list(&all).unwrap().records {
            let reads = self.reads.entry(record.id).or_default();
            assert!(record.access_count <= *reads, "{} of {reads} readings", record.access_count);
            *reads = record.access_count;
        }
    }

    /// Both who was there and who has just come see what the model says.
    fn check(&self) {
        for records in [&self.records, &self.folder.beside()] {
            assert_eq!(Model::observed(&self.folder, records), self.model);
            let tagged = records.list(&Query { tags: vec!["a".into()], ..Query::default() }).unwrap().total;
            let expected = |known: &&Known| !known.archived && known.tags.contains(&"a".to_owned());
            assert_eq!(tagged, self.model.known.values().filter(expected).count());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_with_power_cuts_is_what_the_model_says(steps in steps()) {
        let mut world = World::new();
        for (step, cut) in steps {
            world.take(step, cut);
        }
    }
}
