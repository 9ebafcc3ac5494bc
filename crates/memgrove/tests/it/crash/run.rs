//! One workload, run once with the disk recorded, then visited at any instant: cut, opened, checked.

use std::collections::BTreeSet;
use std::sync::Arc;

use memgrove::Result;
use memgrove::backend::{Backend, Change, ChangeId, Edit, HistoryQuery, Moment, Note};
use memgrove::backends::local::Local;
use memgrove::vfs::{Recording, SimFs};

use super::explore::{Plan, mix, open_on};
use super::model::{
    Doubts, Tree, applied, at, difference, hand_edit, has_added, leftovers, observed, undoubted,
};
use super::workload::{Step, base, text, write};

/// A workload that ran, with the disk at every instant.
pub(super) struct Run<'a> {
    plan: Plan<'a>,
    pub(super) recording: Recording,
    /// What each step left; the first is before all steps.
    trees: Vec<Tree>,
    /// What is in doubt after each step.
    doubts: Vec<Doubts>,
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
    doubts: &'a Doubts,
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
/// How much time passes before a step, and before what a person does.
const STEP_MS: u64 = 25;
const BY_HAND_MS: u64 = 600;

fn probe_bytes() -> Vec<u8> {
    text("after the recovery", 100)
}

fn change(edits: &[Edit], verb: String) -> Change {
    Change { edits: edits.into(), note: Note { verb, ..Note::default() } }
}

impl<'a> Run<'a> {
    pub(super) fn record(plan: Plan<'a>) -> std::result::Result<Run<'a>, String> {
        let disk = plan.layout.disk();
        let mut run = Run {
            plan,
            recording: disk.recording(),
            trees: vec![Tree::new()],
            doubts: vec![Doubts::new()],
            spans: Vec::new(),
            by_hand: Vec::new(),
            done: Vec::new(),
        };
        if plan.from_nothing {
            // The folders that hold the store are there before it.
            let _ = plan.layout.trees(&disk);
            disk.record();
        }
        let mut backend = run.open(&disk).map_err(|error| format!("it does not open: {error}"))?;
        for (number, step) in base().iter().enumerate() {
            backend = run.perform(&disk, backend, number, step)?;
        }
        if !plan.from_nothing {
            disk.record();
        }
        for (number, step) in (base().len()..).zip(&plan.workload.steps) {
            backend = run.perform(&disk, backend, number, step)?;
        }
        run.recording = disk.recording();
        // Calls are counted from the start of the recording.
        let offset = disk.ops() as usize - run.recording.ops();
        for (first, last) in &mut run.spans {
            (*first, *last) = (first.saturating_sub(offset), last.saturating_sub(offset));
        }
        Ok(run)
    }

    fn open(&self, disk: &SimFs) -> Result<Local> {
        let (tree, state) = self.plan.layout.trees(disk);
        open_on(disk, Arc::new(tree), state, self.plan.bug)
    }

    fn perform(
        &mut self,
        disk: &SimFs,
        backend: Local,
        number: usize,
        step: &Step,
    ) -> std::result::Result<Local, String> {
        let failed = |error: memgrove::Error| format!("step {number} failed: {error}");
        disk.idle_ms(if matches!(step, Step::HandEdit(..)) { BY_HAND_MS } else { STEP_MS });
        let (mut backend, first) = (backend, disk.ops() as usize);
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
            Step::HandEdit(at, bytes, save, synced) => {
                let (tree, _) = self.plan.layout.trees(disk);
                hand_edit(&tree, at, bytes, (*save, *synced)).expect("an editor can save");
            }
        }
        let before = self.trees.last().expect("the first tree is empty");
        let after = step.after(before).expect("the workload makes sense");
        let found = observed(&backend).map_err(failed)?;
        if found != after {
            return Err(format!("step {number} did not do as told:\n{}", difference(&after, &found)));
        }
        self.trees.push(after);
        self.doubts.push(step.doubts_after(&self.doubts[self.doubts.len() - 1]));
        self.spans.push((first, disk.ops() as usize));
        self.by_hand.push(matches!(step, Step::HandEdit(..)));
        Ok(backend)
    }

    /// Whether an editor was in the middle of saving: its bytes are nobody's promise yet.
    pub(super) fn is_hand_edit(&self, after: usize) -> bool {
        let during = |(span, by_hand): (&(usize, usize), &bool)| *by_hand && span.0 < after && after < span.1;
        self.spans.iter().zip(&self.by_hand).any(during)
    }

    /// What may be found after so many calls: what was acknowledged, or with the step in flight.
    fn expected(&self, after: usize) -> Vec<Expected<'_>> {
        let steps = self.spans.iter().filter(|(_, last)| *last <= after).count();
        let is_in_flight = self.spans.get(steps).is_some_and(|(first, _)| *first < after);
        let expected = |steps: usize| {
            let (tree, doubts) = (&self.trees[steps], &self.doubts[steps]);
            Expected { tree, doubts, steps, probe: false }
        };
        (steps..=steps + usize::from(is_in_flight)).map(expected).collect()
    }

    /// Stops the machine after so many calls (without a seed: only its programs), opens the store,
    /// checks it, changes it, cuts the power somewhere in there, opens and checks again.
    pub(super) fn visit(
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
        let probed_tree = applied(base.tree, &probe.edits).expect("the probe makes sense");
        let with_probe = Expected { tree: &probed_tree, doubts: base.doubts, steps: base.steps, probe: true };
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
            let sure = |tree: Tree| undoubted(tree, expected.doubts);
            let wanted = sure(expected.tree.clone());
            let fits =
                sure(tree.clone()) == wanted || sure(self.without_spare_folders(&tree, expected)) == wanted;
            fits && has_added(&tree, expected.doubts) && self.verbs(expected) == verbs
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

    /// That the history gives the bytes before or after a change: one file of one change by
    /// chance, and now and then all files of the last change.
    fn check_past(&self, backend: &Local, steps: usize, seed: u64) -> std::result::Result<(), String> {
        // What a hand edit left is known to the history only once something replaced it.
        let is_told = |done: &Done| done.is_whole || !self.by_hand.contains(&true);
        let done: Vec<_> = self.done.iter().filter(|done| done.step < steps && is_told(done)).collect();
        let Some(last) = done.last() else { return Ok(()) };
        if seed.is_multiple_of(16) {
            let mut all = self.touched(last).into_iter();
            return all.try_for_each(|key| self.check_moment(backend, last, key, seed));
        }
        let one = done[(seed >> 8) as usize % done.len()];
        let touched = self.touched(one);
        let Some(key) = touched.get((seed >> 16) as usize % touched.len().max(1)) else { return Ok(()) };
        self.check_moment(backend, one, key, seed)
    }

    /// The files that are not the same before and after a change.
    fn touched(&self, done: &Done) -> Vec<&str> {
        let (before, after) = (&self.trees[done.step], &self.trees[done.step + 1]);
        let keys = before.keys().chain(after.keys()).map(String::as_str);
        let touched: BTreeSet<_> = keys.filter(|key| file(before, key) != file(after, key)).collect();
        touched.into_iter().collect()
    }

    fn check_moment(
        &self,
        backend: &Local,
        done: &Done,
        key: &str,
        seed: u64,
    ) -> std::result::Result<(), String> {
        let (moment, then) = match seed & 0x80 {
            0 => (Moment::Before(done.id.clone()), &self.trees[done.step]),
            _ => (Moment::After(done.id.clone()), &self.trees[done.step + 1]),
        };
        let what = || format!("the past of `{key}` at {moment:?}, step {}", done.step);
        let past = backend.read_past(&at(key), &moment).map_err(|error| format!("{}: {error}", what()))?;
        if past.as_deref() == file(then, key) { Ok(()) } else { Err(format!("{} is wrong", what())) }
    }
}

fn file<'a>(tree: &'a Tree, key: &str) -> Option<&'a [u8]> {
    tree.get(key)?.as_deref()
}
