//! Cuts the power at every instant of a workload and checks what the next opening makes of it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use memgrove::Result;
use memgrove::backend::{Backend, Change, ChangeId, Edit, HistoryQuery, Moment, Note};
use memgrove::backends::local::{Bug, Local, LocalOptions};
use memgrove::clock::ManualClock;
use memgrove::vfs::{Recording, SimFs, Vfs};

use super::model::{Tree, at, difference, hand_edit, leftovers, observed};
use super::workload::{Step, Workload, base, text, write};

/// Where the store lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The journal is in the tree.
    Inside,
    /// The journal is in another folder of the same disk.
    Outside,
    /// The journal is in the tree, and the file system cannot exchange two names.
    NoExchange,
}

impl Layout {
    pub(crate) const ALL: [Layout; 3] = [Layout::Inside, Layout::Outside, Layout::NoExchange];

    pub(crate) fn disk(self) -> SimFs {
        if self == Layout::NoExchange { SimFs::without_exchange() } else { SimFs::new() }
    }

    /// The tree of files and, where it is apart, the place of the journal.
    fn trees(self, disk: &SimFs) -> (SimFs, Option<Arc<dyn Vfs>>) {
        let subtree = |name| disk.subtree(name).expect("a simulated disk has room for a folder");
        match self {
            Layout::Inside | Layout::NoExchange => (disk.clone(), None),
            Layout::Outside => (subtree("tree"), Some(Arc::new(subtree("state")))),
        }
    }
}

/// What is explored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) layout: Layout,
    pub(crate) bug: Option<Bug>,
    /// The first seed; the others are made from it.
    pub(crate) seed: u64,
    /// How many power cuts are tried at each instant. Each is followed by a second one.
    pub(crate) cuts: u64,
    /// Whether the store is made while the power may go, or was made and checkpointed before.
    pub(crate) from_nothing: bool,
}

/// How much was explored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stats {
    pub(crate) instants: u64,
    pub(crate) cuts: u64,
}

impl std::ops::Add for Stats {
    type Output = Stats;

    fn add(self, other: Stats) -> Stats {
        Stats { instants: self.instants + other.instants, cuts: self.cuts + other.cuts }
    }
}

/// A promise that was broken, and how to see it again.
#[derive(Debug)]
pub(crate) struct Violation {
    workload: String,
    layout: Layout,
    moment: Option<(usize, Option<u64>)>,
    second: Option<(usize, u64)>,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload `{}`, layout {:?}", self.workload, self.layout)?;
        match self.moment {
            None => {}
            Some((after, None)) => write!(f, ", killed after {after} calls")?,
            Some((after, Some(seed))) => write!(f, ", power cut after {after} calls with seed {seed}")?,
        }
        if let Some((after, seed)) = self.second {
            write!(f, ", a second cut {after} calls into the recovery with seed {seed}")?;
        }
        write!(f, ":\n{}", self.what)
    }
}

/// Tries every instant of a plan.
pub(crate) fn explore(plan: Plan<'_>) -> std::result::Result<Stats, Violation> {
    let violation = |moment, second, what| Violation {
        workload: plan.workload.name.clone(),
        layout: plan.layout,
        moment,
        second,
        what,
    };
    let run = Run::record(plan).map_err(|what| violation(None, None, what))?;
    let mut stats = Stats::default();
    for after in (0..=run.recording.ops()).filter(|after| !run.is_hand_edit(*after)) {
        stats.instants += 1;
        for turn in 0..=plan.cuts {
            let seed = (turn > 0).then(|| mix(plan.seed, after as u64, turn));
            let mut second = None;
            let visited = run.visit(after, seed, &mut second);
            visited.map_err(|what| violation(Some((after, seed)), second, what))?;
            stats.cuts += 1 + u64::from(seed.is_some());
        }
    }
    Ok(stats)
}

/// A seed from three numbers.
pub(crate) fn mix(seed: u64, first: u64, second: u64) -> u64 {
    let mut mixed = seed ^ first.rotate_left(32) ^ second.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(factor);
    }
    mixed ^ (mixed >> 29)
}

pub(crate) fn open(tree: Arc<dyn Vfs>, state: Option<Arc<dyn Vfs>>, bug: Option<Bug>) -> Result<Local> {
    let options = LocalOptions::new(tree, Arc::new(ManualClock::default()));
    Local::open(LocalOptions {
        state,
        background: false,
        reserve_bytes: 700,
        segment_bytes: 3000,
        bug,
        ..options
    })
}

/// A workload that ran, with the disk at every instant.
struct Run<'a> {
    plan: Plan<'a>,
    recording: Recording,
    /// What each step left; the first is before all steps.
    trees: Vec<Tree>,
    /// The first and the last call of each step.
    spans: Vec<(usize, usize)>,
    /// Whether a step is a hand edit.
    by_hand: Vec<bool>,
    /// The changes that were acknowledged.
    done: Vec<Done>,
}

/// A change that was acknowledged.
#[derive(Debug, Clone)]
struct Done {
    step: usize,
    id: ChangeId,
    /// Whether it holds all bytes that it replaced: an append or a rename does not read them.
    is_whole: bool,
}

/// What may be found: a tree, and the changes in the history.
struct Expected<'a> {
    tree: &'a Tree,
    /// How many steps were made.
    steps: usize,
    /// Whether the change that is tried after a recovery is there.
    probe: bool,
}

fn verb(step: usize) -> String {
    format!("step-{step}")
}

fn check_leftovers(disk: &SimFs) -> std::result::Result<(), String> {
    let left = leftovers(disk, "").map_err(|error| error.to_string())?;
    if left.is_empty() { Ok(()) } else { Err(format!("temporary files are left: {left:?}")) }
}

const PROBE: &str = "probe";

fn probe_bytes() -> Vec<u8> {
    text("after the recovery", 100)
}

fn change(edits: &[Edit], verb: String) -> Change {
    Change { edits: edits.into(), note: Note { verb, ..Note::default() } }
}

impl<'a> Run<'a> {
    fn record(plan: Plan<'a>) -> std::result::Result<Run<'a>, String> {
        let disk = plan.layout.disk();
        let mut run = Run {
            plan,
            recording: SimFs::new().recording(),
            trees: vec![Tree::new()],
            spans: Vec::new(),
            by_hand: Vec::new(),
            done: Vec::new(),
        };
        let start = disk.ops();
        if plan.from_nothing {
            let _ = plan.layout.trees(&disk);
            disk.record();
        }
        let mut backend = run.open(&disk).map_err(|error| format!("it does not open: {error}"))?;
        let steps = base().into_iter().chain(plan.workload.steps.iter().cloned());
        let base_steps = base().len();
        for (number, step) in steps.enumerate() {
            if number == base_steps && !plan.from_nothing {
                disk.record();
            }
            let before = disk.ops();
            backend = run.perform(&disk, backend, number, &step)?;
            run.spans.push((before as usize, disk.ops() as usize));
            run.by_hand.push(matches!(step, Step::HandEdit(..)));
        }
        if base_steps == run.spans.len() && !plan.from_nothing {
            disk.record();
        }
        let end = disk.ops() as usize;
        run.recording = disk.recording();
        let _ = start;
        // Calls are counted from the start of the recording.
        let offset = end - run.recording.ops();
        for (first, last) in &mut run.spans {
            (*first, *last) = (first.saturating_sub(offset), last.saturating_sub(offset));
        }
        Ok(run)
    }

    fn open(&self, disk: &SimFs) -> Result<Local> {
        let (tree, state) = self.plan.layout.trees(disk);
        open(Arc::new(tree), state, self.plan.bug)
    }

    fn perform(
        &mut self,
        disk: &SimFs,
        backend: Local,
        number: usize,
        step: &Step,
    ) -> std::result::Result<Local, String> {
        let failed = |error: memgrove::Error| format!("step {number} failed: {error}");
        let mut backend = backend;
        match step {
            Step::Change(edits) => {
                let applied = backend.apply(&change(edits, verb(number))).map_err(failed)?;
                let is_whole = |edit: &Edit| matches!(edit, Edit::Write { .. } | Edit::Delete { .. });
                let is_whole = edits.iter().all(is_whole);
                self.done.push(Done { step: number, id: applied.change, is_whole });
            }
            Step::Mkdir(folder) => backend.mkdir(folder).map_err(failed)?,
            Step::Checkpoint => backend.checkpoint().map_err(failed)?,
            Step::Reopen => {
                drop(backend);
                backend = self.open(disk).map_err(failed)?;
            }
            Step::HandEdit(at, bytes, save) => {
                let (tree, _) = self.plan.layout.trees(disk);
                hand_edit(&tree, at, bytes, *save).expect("an editor can save");
            }
        }
        let before = self.trees.last().expect("the first tree is empty");
        let after = step.after(before).expect("the workload makes sense");
        let found = observed(&backend).map_err(failed)?;
        if found != after {
            return Err(format!("step {number} did not do as told:\n{}", difference(&after, &found)));
        }
        self.trees.push(after);
        Ok(backend)
    }

    /// Whether an editor was in the middle of saving: its bytes are nobody's promise yet.
    fn is_hand_edit(&self, after: usize) -> bool {
        let during = |(span, by_hand): (&(usize, usize), &bool)| *by_hand && span.0 < after && after < span.1;
        self.spans.iter().zip(&self.by_hand).any(during)
    }

    /// What may be found after so many calls: what was acknowledged, or with the step in flight.
    fn expected(&self, after: usize) -> Vec<Expected<'_>> {
        let steps = self.spans.iter().filter(|(_, last)| *last <= after).count();
        let is_in_flight = self.spans.get(steps).is_some_and(|(first, _)| *first < after);
        let expected = |steps: usize| Expected { tree: &self.trees[steps], steps, probe: false };
        (steps..=steps + usize::from(is_in_flight)).map(expected).collect()
    }

    /// Stops the machine after so many calls (without a seed: only its programs), opens the store,
    /// checks it, changes it, cuts the power somewhere in there, opens and checks again.
    fn visit(
        &self,
        after: usize,
        seed: Option<u64>,
        second: &mut Option<(usize, u64)>,
    ) -> std::result::Result<(), String> {
        let disk = match seed {
            Some(seed) => self.recording.power_cut(after, seed),
            None => self.recording.kill(after),
        };
        let start = disk.ops();
        let calls = || (disk.ops() - start) as usize;
        disk.record();
        let backend = self.open(&disk).map_err(|error| format!("it does not open: {error}"))?;
        let opened = calls();
        let mut expected = self.expected(after);
        let found = self.check(&backend, &expected, seed.unwrap_or(0))?;
        let probe = change(&[write("probe.md", probe_bytes())], PROBE.into());
        backend.apply(&probe).map_err(|error| format!("no change after the recovery: {error}"))?;
        let probed = calls();
        if seed.is_none() {
            // Temporary files may belong to a process that lives: only a checkpoint may tell.
            backend.checkpoint().map_err(|error| format!("no checkpoint: {error}"))?;
        }
        check_leftovers(&disk)?;
        let recording = disk.recording();
        drop(backend);

        let again = mix(seed.unwrap_or(self.plan.seed), after as u64, 1);
        let instant = again as usize % (recording.ops() + 1);
        *second = Some((instant, again));
        let disk = recording.power_cut(instant, again);
        let backend = self.open(&disk).map_err(|error| format!("it does not open: {error}"))?;
        // What a reader has seen once the store was open must stay. Only what a killed process was
        // about to do, and has not been seen, may still turn out either way until the next change.
        if instant >= opened && (seed.is_some() || found > 0 || instant >= probed) {
            expected = vec![expected.swap_remove(found)];
        }
        let base = if expected.len() > 1 && instant >= opened {
            &expected[found]
        } else {
            &expected[expected.len() - 1]
        };
        let probed_tree = super::model::applied(base.tree, &probe.edits).expect("the probe makes sense");
        let with_probe = Expected { tree: &probed_tree, steps: base.steps, probe: true };
        if instant >= probed {
            expected = vec![with_probe];
        } else if instant > opened {
            expected.push(with_probe);
        }
        self.check(&backend, &expected, again)?;
        check_leftovers(&disk)?;
        *second = None;
        Ok(())
    }

    /// Which of the expected states is there; a violation if none is, or if not all of it is.
    fn check(
        &self,
        backend: &Local,
        expected: &[Expected<'_>],
        seed: u64,
    ) -> std::result::Result<usize, String> {
        let failed = |error: memgrove::Error| format!("the store cannot be read: {error}");
        let tree = observed(backend).map_err(failed)?;
        let history = backend.history(&HistoryQuery::default()).map_err(failed)?;
        let ours = |verb: &str| verb.starts_with("step-") || verb == PROBE;
        let verbs: Vec<_> =
            history.iter().rev().map(|past| &*past.note.verb).filter(|verb| ours(verb)).collect();
        let fits = |expected: &Expected<'_>| {
            let fits =
                tree == *expected.tree || self.without_spare_folders(&tree, expected) == *expected.tree;
            fits && self.verbs(expected) == verbs
        };
        let Some(found) = expected.iter().position(fits) else {
            let shown = expected.iter().map(|expected| {
                let difference = difference(expected.tree, &tree);
                format!(
                    "not after {} steps (history {:?}):\n{difference}",
                    expected.steps,
                    self.verbs(expected)
                )
            });
            let shown: Vec<_> = shown.collect();
            return Err(format!("{}\nthe history is {verbs:?}", shown.join("\n")));
        };
        for past in history.iter().filter(|past| ours(&past.note.verb)) {
            let same = |done: &Done| verb(done.step) == past.note.verb && done.id != past.change;
            if self.done.iter().any(same) {
                return Err(format!("the change {} has another name now", past.note.verb));
            }
        }
        self.check_past(backend, expected[found].steps, seed)?;
        Ok(found)
    }

    /// The tree without the empty folders that the step in flight would have made: a change makes
    /// them ahead, and may leave them behind if it did not happen.
    fn without_spare_folders(&self, tree: &Tree, expected: &Expected<'_>) -> Tree {
        let mut tree = tree.clone();
        let Some(in_flight) = self.trees.get(expected.steps + 1) else { return tree };
        let is_spare = |key: &String| in_flight.get(key) == Some(&None) && !expected.tree.contains_key(key);
        let spare: Vec<_> = tree.keys().filter(|key| is_spare(key)).cloned().collect();
        for folder in spare.iter().rev() {
            if !tree.keys().any(|key| key.starts_with(&format!("{folder}/"))) {
                tree.remove(folder);
            }
        }
        tree
    }

    fn verbs(&self, expected: &Expected<'_>) -> Vec<String> {
        let steps = self.done.iter().filter(|done| done.step < expected.steps);
        steps.map(|done| verb(done.step)).chain(expected.probe.then(|| PROBE.to_owned())).collect()
    }

    /// That the history gives the bytes before and after a change: one file of one change by
    /// chance, and now and then all files of the last change.
    fn check_past(&self, backend: &Local, steps: usize, seed: u64) -> std::result::Result<(), String> {
        // What a hand edit left is known to the history only once something replaced it.
        let is_told = |done: &Done| done.is_whole || !self.by_hand.contains(&true);
        let done: Vec<_> = self.done.iter().filter(|done| done.step < steps && is_told(done)).collect();
        let Some(last) = done.last() else { return Ok(()) };
        if seed % 16 == 0 {
            return self.touched(last).into_iter().try_for_each(|key| self.check_moments(backend, last, key));
        }
        let one = done[(seed >> 8) as usize % done.len()];
        let touched = self.touched(one);
        let Some(key) = touched.get((seed >> 16) as usize % touched.len().max(1)) else { return Ok(()) };
        self.check_moments(backend, one, key)
    }

    /// The files that are not the same before and after a change.
    fn touched(&self, done: &Done) -> Vec<&str> {
        let (before, after) = (&self.trees[done.step], &self.trees[done.step + 1]);
        let keys = before.keys().chain(after.keys()).map(String::as_str);
        let touched: BTreeSet<_> = keys.filter(|key| file(before, key) != file(after, key)).collect();
        touched.into_iter().collect()
    }

    fn check_moments(&self, backend: &Local, done: &Done, key: &str) -> std::result::Result<(), String> {
        let (before, after) = (&self.trees[done.step], &self.trees[done.step + 1]);
        for (moment, then) in
            [(Moment::Before(done.id.clone()), before), (Moment::After(done.id.clone()), after)]
        {
            let what = || format!("the past of `{key}` at {moment:?}, step {}", done.step);
            let past =
                backend.read_past(&at(key), &moment).map_err(|error| format!("{}: {error}", what()))?;
            if past.as_deref() != file(then, key) {
                return Err(format!("{} is wrong", what()));
            }
        }
        Ok(())
    }
}

fn file<'a>(tree: &'a Tree, key: &str) -> Option<&'a [u8]> {
    tree.get(key)?.as_deref()
}
