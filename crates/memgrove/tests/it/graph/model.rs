//! Any sequence of operations against a simple model, with power cuts in the middle of them, lost
//! registries, and fresh processes between.

use std::collections::BTreeMap;
use std::sync::Arc;

use memgrove::Store;
use memgrove::backend::{Change, Edit, Expect};
use memgrove::backends::local::{Bug, Local, LocalOptions};
use memgrove::clock::ManualClock;
use memgrove::shapes::graph::{ContentEdit, Contents, Graph, NewNode, Properties, Removal, Update};
use memgrove::vfs::SimFs;
use proptest::prelude::*;
use serde_json::Value;

use super::{at, graph_over, link, note};

#[derive(Debug, Clone)]
enum Step {
    Create(String, Option<String>),
    Set(usize, String),
    Write(usize, String),
    Delete(usize, bool),
    Connect(usize, usize),
    Disconnect(usize),
    Fold,
    Rebuild,
    /// Somebody removes the registry.
    Lose,
    /// Another process takes over, with nothing in memory.
    Reopen,
}

/// A step, and perhaps a power cut at some instant of it.
type Cut = Option<(usize, u64)>;

fn steps() -> impl Strategy<Value = Vec<(Step, Cut)>> {
    let text = "[a-zé\"\\\\\n ]{0,10}";
    let step = prop_oneof![
        4 => (text, proptest::option::of(text)).prop_map(|(title, content)| Step::Create(title, content)),
        2 => (any::<usize>(), text).prop_map(|(node, value)| Step::Set(node, value)),
        1 => (any::<usize>(), text).prop_map(|(node, value)| Step::Write(node, value)),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(node, cascade)| Step::Delete(node, cascade)),
        3 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Connect(from, to)),
        1 => any::<usize>().prop_map(Step::Disconnect),
        2 => Just(Step::Fold),
        1 => Just(Step::Rebuild),
        1 => Just(Step::Lose),
        1 => Just(Step::Reopen),
    ];
    let cut = proptest::option::weighted(0.3, (any::<usize>(), any::<u64>()));
    proptest::collection::vec((step, cut), 1..24)
}

fn lose_registry(store: &Store) -> memgrove::Result<()> {
    let registry = at("graph/_system/registry.json");
    if store.exists(&registry)? {
        let edit = Edit::Delete { at: registry, expect: Expect::Any };
        store.apply(&Change { edits: vec![edit], note: note() })?;
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    nodes: BTreeMap<String, (Properties, Option<String>)>,
    connections: BTreeMap<String, (String, String)>,
}

impl Model {
    fn observed(graph: &Graph) -> Self {
        let snapshot = graph.snapshot(None, Contents::Whole).unwrap();
        Model {
            nodes: snapshot
                .nodes
                .into_iter()
                .map(|node| (node.it.id, (node.it.properties, node.content)))
                .collect(),
            connections: snapshot
                .connections
                .into_iter()
                .map(|one| (one.it.id, (one.it.from, one.it.to)))
                .collect(),
        }
    }

    fn nth<T>(all: &BTreeMap<String, T>, at: usize) -> Option<String> {
        (!all.is_empty()).then(|| all.keys().nth(at % all.len()).unwrap().clone())
    }
}

struct World {
    disk: SimFs,
    graph: Graph,
    model: Model,
    seed: u64,
}

fn opened(disk: &SimFs, seed: u64) -> Graph {
    opened_with(disk, seed, None)
}

fn opened_with(disk: &SimFs, seed: u64, bug: Option<Bug>) -> Graph {
    let options = LocalOptions::new(Arc::new(disk.clone()), Arc::new(ManualClock::default()));
    let options = LocalOptions { background: false, bug, ..options };
    graph_over(Store::new(Local::open(options).unwrap()), seed)
}

impl World {
    fn new() -> Self {
        let disk = SimFs::new();
        let graph = opened(&disk, 1);
        World { disk, graph, model: Model::default(), seed: 1 }
    }

    fn reopen(&mut self, disk: SimFs) {
        self.seed += 1;
        self.disk = disk;
        // The one before lets go of the disk first.
        self.graph = graph_over(Store::new(memgrove::backends::Ram::default()), 0);
        self.graph = opened(&self.disk, self.seed);
    }

    /// What the model says a step does, and the step done.
    fn perform(&self, step: &Step) -> memgrove::Result<Model> {
        let (graph, mut model) = (&self.graph, self.model.clone());
        match step {
            Step::Create(title, content) => {
                let mut properties = Properties::new();
                properties.insert("title".into(), Value::from(title.as_str()));
                let kind = if title.len() % 2 == 0 { "even" } else { "odd" };
                let bytes = content.clone().map(String::into_bytes);
                let new = NewNode {
                    kind: kind.into(),
                    properties: properties.clone(),
                    content: bytes.map(Into::into),
                    ..NewNode::default()
                };
                let id = graph.create(note(), new)?.outcome.id;
                assert!(
                    model.nodes.insert(id, (properties, content.clone())).is_none(),
                    "an id is used twice"
                );
            }
            Step::Set(node, value) => {
                let Some(id) = Model::nth(&model.nodes, *node) else { return Ok(model) };
                let mut set = Properties::new();
                set.insert("value".into(), Value::from(value.as_str()));
                graph.update(note(), &id, &Update { set: set.clone(), ..Update::default() }, None)?;
                model.nodes.get_mut(&id).unwrap().0.extend(set);
            }
            Step::Write(node, text) => {
                let Some(id) = Model::nth(&model.nodes, *node) else { return Ok(model) };
                let edit = ContentEdit::Write { content: text.clone().into(), format: None };
                graph.edit(note(), &id, edit, None)?;
                model.nodes.get_mut(&id).unwrap().1 = Some(text.clone());
            }
            Step::Delete(node, cascade) => {
                let Some(id) = Model::nth(&model.nodes, *node) else { return Ok(model) };
                let how = if *cascade { Removal::Cascade } else { Removal::Refuse };
                let before = model.connections.len();
                let done = graph.delete(note(), &id, how, None);
                model.connections.retain(|_, (from, to)| *from != id && *to != id);
                let had = before - model.connections.len();
                assert_eq!(done.is_ok(), *cascade || had == 0, "{done:?}");
                if done.is_err() {
                    return Ok(self.model.clone());
                }
                model.nodes.remove(&id);
            }
            Step::Connect(from, to) => {
                let ends = (Model::nth(&model.nodes, *from), Model::nth(&model.nodes, *to));
                let (Some(from), Some(to)) = ends else { return Ok(model) };
                let id = graph.connect(note(), &link(&from, "x", &to))?.outcome.id;
                assert!(model.connections.insert(id, (from, to)).is_none(), "an id is used twice");
            }
            Step::Disconnect(one) => {
                let Some(id) = Model::nth(&model.connections, *one) else { return Ok(model) };
                graph.disconnect(note(), &id, None)?;
                model.connections.remove(&id);
            }
            Step::Fold => graph.fold()?,
            Step::Rebuild => drop(graph.rebuild(note())?),
            Step::Lose => lose_registry(graph.memory().store())?,
            Step::Reopen => {}
        }
        Ok(model)
    }

    fn take(&mut self, step: &Step, cut: Cut) {
        let before = self.model.clone();
        if cut.is_some() {
            self.disk.record();
        }
        let after = self.perform(step).unwrap();
        let Some((instant, seed)) = cut else {
            self.model = after;
            if matches!(step, Step::Reopen) {
                self.reopen(self.disk.clone());
            }
            return self.check();
        };
        let recording = self.disk.recording();
        let instant = instant % (recording.ops() + 1);
        self.reopen(recording.power_cut(instant, seed));
        let found = Model::observed(&self.graph);
        let acknowledged = instant == recording.ops();
        assert!(found == after || (found == before && !acknowledged), "{step:?} cut at {instant}: {found:?}");
        self.model = found;
        self.check();
    }

    /// Both who was there and who has just come see what the model says, and the files agree.
    fn check(&self) {
        assert_eq!(Model::observed(&self.graph), self.model);
        let beside = graph_over(self.graph.memory().store().clone(), 99);
        assert_eq!(Model::observed(&beside), self.model);
        let report = beside.survey().unwrap();
        let wrong = [
            &report.stale,
            &report.gone,
            &report.missing,
            &report.dangling,
            &report.damaged,
            &report.adopted,
        ];
        assert!(wrong.iter().all(|ids| ids.is_empty()), "{report:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_with_power_cuts_is_what_the_model_says(steps in steps()) {
        let mut world = World::new();
        for (step, cut) in &steps {
            world.take(step, *cut);
        }
    }
}

/// Cuts the power at every instant of a fold, and says what is not there afterwards.
fn cut_folds(bug: Option<Bug>) -> Result<(), String> {
    let disk = SimFs::new();
    let graph = opened_with(&disk, 1, bug);
    let create = |title: &str| {
        let mut properties = Properties::new();
        properties.insert("title".into(), Value::from(title));
        let new = NewNode { kind: "x".into(), properties, ..NewNode::default() };
        graph.create(note(), new).unwrap().outcome.id
    };
    let (one, two) = (create("one"), create("two"));
    graph.connect(note(), &link(&one, "x", &two)).unwrap();
    let model = Model::observed(&graph);
    disk.record();
    graph.fold().unwrap();
    let recording = disk.recording();
    for instant in 0..=recording.ops() {
        for seed in 0..24 {
            let opened = opened(&recording.power_cut(instant, seed), 2);
            let found = Model::observed(&opened);
            // A registry that was half written is made anew; a tail that was removed too soon is lost.
            let why = opened.take_report().and_then(|report| report.registry).unwrap_or_default();
            if found != model || why.contains("was lost") {
                return Err(format!("instant {instant}, seed {seed}: {found:?} {why}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_fold_may_be_cut_off_anywhere() {
    cut_folds(None).unwrap();
}

#[test]
fn a_tail_removed_before_the_registry_is_durable_is_found() {
    let what = cut_folds(Some(Bug::NoDerivedSync)).expect_err("the test is blind to this mistake");
    println!("{what}");
}
