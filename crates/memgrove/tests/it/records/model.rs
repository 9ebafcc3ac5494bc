//! Any sequence of operations against a simple model, with hand edits and fresh openings between.

use std::collections::BTreeMap;

use memgrove::shapes::records::{Archived, Importance, NewRecord, Patch, Query, RecordType, Records};
use proptest::prelude::*;

use super::{Folder, note};
use memgrove::shapes::records::Guarded;

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

fn steps() -> impl Strategy<Value = Vec<Step>> {
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
    proptest::collection::vec(step, 1..40)
}

#[derive(Debug, Clone, PartialEq)]
struct Known {
    kind: RecordType,
    content: String,
    tags: Vec<String>,
    archived: bool,
    reads: u64,
}

struct World {
    folder: Folder,
    records: Records,
    known: BTreeMap<String, Known>,
    order: Vec<String>,
    noise: BTreeMap<&'static str, usize>,
}

impl World {
    fn id(&self, at: usize) -> Option<String> {
        (!self.order.is_empty()).then(|| self.order[at % self.order.len()].clone())
    }

    fn add(&mut self, new: &[NewRecord]) {
        let done = self.records.add(note("record_add"), new).unwrap().outcome;
        for record in done.records {
            let known = Known {
                kind: record.kind,
                content: record.content,
                tags: record.tags,
                archived: false,
                reads: 0,
            };
            self.order.push(record.id.clone());
            self.known.insert(record.id, known);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Add(kind, text, tags) => self.add(&[NewRecord { tags, ..NewRecord::new(kind, text) }]),
            Step::AddMany(texts) => {
                let new: Vec<NewRecord> = texts
                    .into_iter()
                    .zip(RecordType::ALL)
                    .map(|(text, kind)| NewRecord::new(kind, text))
                    .collect();
                self.add(&new);
            }
            Step::Get(at) => {
                let Some(id) = self.id(at) else { return };
                let known = self.known.get_mut(&id).unwrap();
                known.reads += 1;
                assert_eq!(self.records.get(&id).unwrap().record.access_count, known.reads);
            }
            Step::Update(at, text) => {
                let Some(id) = self.id(at) else { return };
                let known = self.known.get_mut(&id).unwrap();
                let patch = Patch {
                    content: Some(text.clone()),
                    importance: Some(Importance::Low),
                    ..Patch::default()
                };
                let done = self.records.update(note("record_update"), &Guarded::any(&id), &patch);
                assert_eq!(done.is_ok(), !known.archived, "{done:?}");
                if done.is_ok() {
                    known.content = text;
                }
            }
            Step::Archive(at) => self.moved(at, true),
            Step::Restore(at) => self.moved(at, false),
            Step::Delete(at) => {
                let Some(id) = self.id(at) else { return };
                self.records.delete(note("record_delete"), &Guarded::any(&id)).unwrap();
                self.known.remove(&id);
                self.order.retain(|there| *there != id);
            }
            Step::Reopen => {
                self.records.flush().unwrap();
                self.records = self.folder.beside();
            }
            Step::Noise(kind) => {
                let mut bytes = self.folder.bytes(kind.file());
                bytes.extend_from_slice(b"{\"noise\":");
                self.folder.put(kind.file(), &bytes);
                *self.noise.entry(kind.file()).or_default() += 1;
            }
            Step::Settle => self.records.settle().unwrap(),
        }
    }

    fn moved(&mut self, at: usize, archived: bool) {
        let Some(id) = self.id(at) else { return };
        let known = self.known.get_mut(&id).unwrap();
        let one = Guarded::any(&id);
        let done = match archived {
            true => self.records.archive(note("record_archive"), &[one]).map(drop),
            false => self.records.restore(note("record_restore"), &one).map(drop),
        };
        assert_eq!(done.is_ok(), known.archived != archived, "{done:?}");
        known.archived = archived;
    }

    fn check(&self) {
        for records in [&self.records, &self.folder.beside()] {
            let all = Query { archived: Archived::Any, ..Query::default() };
            let found = records.list(&all).unwrap();
            assert_eq!(found.total, self.known.len());
            for record in found.records {
                let known = &self.known[&record.id];
                let said = (record.kind, &record.content, &record.tags, record.archived);
                assert_eq!(said, (known.kind, &known.content, &known.tags, known.archived));
            }
            let tagged = records.list(&Query { tags: vec!["a".into()], ..Query::default() }).unwrap().total;
            let expected = |known: &&Known| !known.archived && known.tags.contains(&"a".to_owned());
            assert_eq!(tagged, self.known.values().filter(expected).count());
        }
        for (file, count) in &self.noise {
            assert_eq!(self.folder.text(file).matches("{\"noise\":").count(), *count, "{file}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_is_what_the_model_says(steps in steps()) {
        let folder = Folder::new();
        let records = folder.beside();
        let mut world =
            World { folder, records, known: BTreeMap::new(), order: Vec::new(), noise: BTreeMap::new() };
        for step in steps {
            world.take(step);
            world.check();
        }
    }
}
