//! That a call of the system that fails, whichever and however, is reported and harms nothing.
//!
//! Each operation is repeated with its first call failing, its second, and so on until none fails.

use std::sync::Arc;

use memgrove::backend::{Backend, Change, Note};
use memgrove::backends::local::{Bug, Local};
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, Recording, SimFs};
use memgrove::{Error, Kind, Result};

use crate::crash::explore::open;
use crate::crash::model::{Tree, difference, leftovers, observed};
use crate::crash::workload::{Step, base, letter, text, write};

/// The letters of the alphabet of steps that are operations of ours.
const OPERATIONS: [usize; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16];

/// How many power cuts follow each failure.
const CUTS: u64 = 4;

/// A store to fail in, as often as needed.
struct Bench {
    recording: Recording,
    tree: Tree,
}

impl Bench {
    fn new() -> Self {
        let disk = SimFs::new();
        let backend = open(Arc::new(disk.clone()), None, None).unwrap();
        let mut tree = Tree::new();
        // The last steps are not checkpointed, so that a checkpoint has something to do.
        for step in base().into_iter().chain([letter(3, 90).1, letter(4, 91).1, letter(1, 92).1]) {
            perform(&backend, &step).unwrap();
            tree = step.after(&tree).unwrap();
        }
        disk.record();
        Bench { recording: disk.recording(), tree }
    }

    /// A disk of its own with the store on it, which no process has open.
    fn disk(&self) -> SimFs {
        self.recording.kill(0)
    }
}

fn perform(backend: &Local, step: &Step) -> Result<()> {
    match step {
        Step::Change(edits) => {
            let note = Note { verb: "test".into(), ..Note::default() };
            backend.apply(&Change { edits: edits.clone(), note }).map(drop)
        }
        Step::Mkdir(folder) => backend.mkdir(folder),
        Step::Checkpoint => backend.checkpoint(),
        Step::Reopen | Step::HandEdit(..) => unreachable!("these are no operations of a backend"),
    }
}

/// What the store may hold now.
struct Allowed(Vec<Tree>);

impl Allowed {
    fn check(&self, when: &str, backend: &Local) -> std::result::Result<(), String> {
        let found = observed(backend).map_err(|error| format!("{when}: it cannot be read: {error}"))?;
        if self.0.iter().any(|tree| found == *tree || without_spare_folders(&found, tree) == *tree) {
            return Ok(());
        }
        let differences: Vec<_> = self.0.iter().map(|tree| difference(tree, &found)).collect();
        Err(format!("{when}:\n{}", differences.join("\nor\n")))
    }

    /// What may be there after one more change.
    fn and(&mut self, step: &Step) {
        self.0 = self.0.iter().map(|tree| step.after(tree).expect("the probe makes sense")).collect();
    }

    /// Opens the disk and checks it, and that it can be changed.
    fn check_opened(&self, when: &str, disk: &SimFs, bug: Option<Bug>) -> std::result::Result<(), String> {
        let opened = open(Arc::new(disk.clone()), None, bug);
        let backend = opened.map_err(|error| format!("{when}: it does not open: {error}"))?;
        self.check(when, &backend)?;
        for step in [probe("again.md"), Step::Checkpoint] {
            perform(&backend, &step).map_err(|error| format!("{when}: no change: {error}"))?;
        }
        // Temporary files may belong to a process that lives: only a checkpoint may tell.
        let left = leftovers(disk, "").map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(format!("{when}: temporary files are left: {left:?}")) }
    }
}

/// What was found without empty folders that are not expected: a change makes folders ahead, and
/// one that fails when the disk fails cannot always take them back.
fn without_spare_folders(found: &Tree, expected: &Tree) -> Tree {
    let mut tree = found.clone();
    for (folder, there) in found.iter().rev() {
        let is_used = tree.keys().any(|key| key.starts_with(&format!("{folder}/")));
        if there.is_none() && !is_used && !expected.contains_key(folder) {
            tree.remove(folder);
        }
    }
    tree
}

fn probe(key: &str) -> Step {
    Step::Change(vec![write(key, text("after the failure", 90))])
}

/// That an error says what the caller can act on.
fn check_error(error: &Error, fault: Fault) -> std::result::Result<(), String> {
    let kind = match fault {
        Fault::Enospc | Fault::Edquot | Fault::ShortWrite => Kind::Full,
        Fault::Eacces => Kind::Denied,
        Fault::Eio | Fault::Emfile => Kind::Io,
        Fault::Eintr => Kind::Busy,
    };
    let message = error.message();
    // Where nobody knows what is on the disk, only the machine can be mended.
    let is_kind = error.kind() == kind || ((is_unsure(error) || is_kept(error)) && error.kind() == Kind::Io);
    let is_readable = !message.is_empty() && !message.ends_with('.') && !message.contains(" { ");
    if is_kind && is_readable && error.hint_text().is_some() {
        Ok(())
    } else {
        Err(format!("the error is {error:?}"))
    }
}

/// Whether an error admits that nobody knows what is on the disk: then nothing more is written.
fn is_unsure(error: &Error) -> bool {
    error.hint_text().is_some_and(|hint| hint.contains("may or may not"))
}

/// Whether an error says that the change will be seen, and must not be repeated.
fn is_kept(error: &Error) -> bool {
    error.hint_text().is_some_and(|hint| hint.starts_with("do not repeat it"))
}

/// One operation that met one failure.
struct Trial<'a> {
    bench: &'a Bench,
    step: &'a Step,
    plan: FaultPlan,
    disk: SimFs,
    backend: Local,
    outcome: Result<()>,
    /// The call that failed.
    failed: Call,
}

impl<'a> Trial<'a> {
    /// `None` if the operation has no such call.
    fn run(bench: &'a Bench, step: &'a Step, plan: FaultPlan) -> Option<Self> {
        let disk = bench.disk();
        let faulty = FaultFs::new(Arc::new(disk.clone()));
        let backend = open(Arc::new(faulty.clone()), None, None).unwrap();
        faulty.plan(plan);
        let outcome = perform(&backend, step);
        faulty.heal();
        let failed = faulty.failed()?;
        Some(Trial { bench, step, plan, disk, backend, outcome, failed })
    }

    fn judge(self) -> std::result::Result<(), String> {
        let mut allowed = self.allowed()?;
        // Where it is unsure, the store must be opened again to be whole.
        if !self.outcome.as_ref().is_err_and(is_unsure) {
            allowed.check("after the failure", &self.backend)?;
        }
        for seed in 0..CUTS {
            allowed.check_opened(
                &format!("after a power cut with seed {seed}"),
                &self.disk.power_cut(seed),
                None,
            )?;
        }
        let next = perform(&self.backend, &probe("next.md"));
        match (&self.outcome, &next) {
            (Err(error), Ok(())) if is_unsure(error) => return Err("a change was taken after this".into()),
            (Ok(()), Err(error)) => {
                return Err(format!("no change after a failure that did no harm: {error}"));
            }
            (_, Ok(())) => allowed.and(&probe("next.md")),
            (Err(_), Err(_)) => {}
        }
        drop(self.backend);
        allowed.check_opened("after it was closed", &self.disk, None)
    }

    fn allowed(&self) -> std::result::Result<Allowed, String> {
        let after = self.step.after(&self.bench.tree).expect("the operation makes sense");
        let Err(error) = &self.outcome else { return Ok(Allowed(vec![after])) };
        check_error(error, self.plan.fault)?;
        let whole = (is_unsure(error) || self.plan.sticky).then_some(after);
        Ok(Allowed(whole.into_iter().chain([self.bench.tree.clone()]).collect()))
    }
}

#[test]
fn every_failing_call_of_every_operation_is_survived() {
    let bench = Bench::new();
    let (mut failures, mut reported, mut wrong) = (0, 0, Vec::new());
    let kinds = Fault::ALL.into_iter().flat_map(|fault| [(fault, false), (fault, true)]);
    for ((fault, sticky), operation) in kinds.flat_map(|kind| OPERATIONS.map(|operation| (kind, operation))) {
        let (name, step) = letter(operation, 0);
        for after in 0.. {
            let plan = FaultPlan { of: None, after, fault, sticky };
            let Some(trial) = Trial::run(&bench, &step, plan) else { break };
            failures += 1;
            reported += u64::from(trial.outcome.is_err());
            let (failed, said) = (trial.failed, format!("{:?}", trial.outcome));
            if let Err(what) = trial.judge() {
                let call =
                    format!("`{name}`, call {after} ({failed:?}) fails with {fault:?}, sticky {sticky}");
                wrong.push(format!("{call}: {said}: {what}"));
            }
        }
    }
    println!("{failures} failures in {} operations, {reported} reported, none harmful", OPERATIONS.len());
    assert!(
        wrong.is_empty(),
        "{} of {failures} did harm:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(failures > 2_000, "only {failures} failures were tried");
}

#[test]
fn every_failing_call_of_an_opening_is_survived() {
    let bench = Bench::new();
    let mut failures = 0;
    for seed in 0..8 {
        for fault in Fault::ALL {
            for (after, sticky) in (0..).flat_map(|after| [(after, false), (after, true)]) {
                let disk = bench.recording.power_cut(0, seed);
                let faulty = FaultFs::new(Arc::new(disk.clone()));
                faulty.plan(FaultPlan { of: None, after, fault, sticky });
                let opened = open(Arc::new(faulty.clone()), None, None);
                faulty.heal();
                if faulty.fired() == 0 {
                    break;
                }
                failures += 1;
                drop(opened);
                let allowed = Allowed(vec![bench.tree.clone()]);
                let checked = allowed.check_opened("opened again", &disk, None);
                checked
                    .unwrap_or_else(|what| panic!("seed {seed}, call {after}, {fault:?}, {sticky}: {what}"));
            }
        }
    }
    println!("{failures} failures while opening, none harmful");
}

/// Fails the n-th sync of a file as Linux does: what it should have written is never written,
/// although a second sync succeeds. Gives back how many were tried.
fn fail_syncs(bug: Option<Bug>) -> std::result::Result<u64, String> {
    let bench = Bench::new();
    let mut failures = 0;
    for operation in OPERATIONS {
        let (name, step) = letter(operation, 0);
        let after = step.after(&bench.tree).expect("the operation makes sense");
        for count in 0.. {
            let disk = bench.disk();
            let backend = open(Arc::new(disk.clone()), None, bug).map_err(|error| error.to_string())?;
            disk.fail_sync_after(count);
            let outcome = perform(&backend, &step);
            if disk.syncs_left().is_some() {
                break;
            }
            failures += 1;
            let allowed = match outcome {
                Ok(()) => Allowed(vec![after.clone()]),
                Err(_) => Allowed(vec![bench.tree.clone(), after.clone()]),
            };
            for seed in 0..16 {
                let when = format!("`{name}`, sync {count} failed, power cut with seed {seed}");
                allowed.check_opened(&when, &disk.power_cut(seed), bug)?;
            }
            let is_checkpoint = matches!(step, Step::Checkpoint);
            if outcome.is_err() && !is_checkpoint && perform(&backend, &probe("next.md")).is_ok() {
                return Err(format!("`{name}`: a change was taken after a failed sync"));
            }
        }
    }
    Ok(failures)
}

#[test]
fn a_failed_sync_is_never_believed() {
    let failures = fail_syncs(None).unwrap_or_else(|what| panic!("{what}"));
    println!("{failures} failed syncs, none believed");
    assert!(failures >= OPERATIONS.len() as u64);
}

#[test]
fn a_repeated_sync_is_found() {
    let what = fail_syncs(Some(Bug::RetrySync)).expect_err("the test is blind to this mistake");
    println!("{what}");
}

#[test]
fn a_full_disk_loses_nothing_and_is_left_by_freeing_space() {
    let bench = Bench::new();
    let (mut full, mut fitted) = (0, 0);
    for operation in OPERATIONS {
        let (name, step) = letter(operation, 0);
        let after = step.after(&bench.tree).unwrap();
        for free in (0..9_000).step_by(41) {
            let disk = bench.disk();
            let backend = open(Arc::new(disk.clone()), None, None).unwrap();
            disk.set_capacity(disk.used_bytes() + free);
            let outcome = perform(&backend, &step);
            let context = |what: String| panic!("`{name}` with {free} bytes free: {what}");
            let mut allowed = match outcome {
                Ok(()) => {
                    fitted += 1;
                    Allowed(vec![after.clone()])
                }
                Err(error) => {
                    full += 1;
                    assert_eq!(error.kind(), Kind::Full, "`{name}` with {free} bytes free: {error}");
                    Allowed(vec![bench.tree.clone()])
                }
            };
            allowed.check("after it", &backend).unwrap_or_else(context);
            allowed
                .check_opened("full, power cut", &with_room(disk.power_cut(free)), None)
                .unwrap_or_else(context);
            let disk = with_room(disk);
            perform(&backend, &probe("next.md")).unwrap_or_else(|error| context(error.to_string()));
            allowed.and(&probe("next.md"));
            drop(backend);
            allowed.check_opened("after it was closed", &disk, None).unwrap_or_else(context);
        }
    }
    println!("{full} operations on a disk too full for them, {fitted} that just fitted");
    assert!(full > 100 && fitted > 100);
}

fn with_room(disk: SimFs) -> SimFs {
    disk.set_capacity(1 << 30);
    disk
}
