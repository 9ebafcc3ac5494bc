//! Cuts the power at every instant of a workload and checks what the next opening makes of it.

use std::fmt;
use std::sync::Arc;

use memgrove::Result;
use memgrove::backends::local::{Bug, Local, LocalOptions};
use memgrove::clock::{Clock, ManualClock, Timestamp};
use memgrove::vfs::{SimFs, Vfs};

use super::run::Run;
use super::workload::Workload;

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
    pub(super) fn trees(self, disk: &SimFs) -> (SimFs, Option<Arc<dyn Vfs>>) {
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

impl Violation {
    /// Whether it took a power cut to break the promise.
    pub(crate) fn is_of_a_cut(&self) -> bool {
        self.second.is_some() || matches!(self.moment, Some((_, Some(_))))
    }
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

/// The clock of a machine, which its disk goes by.
struct DiskClock(SimFs);

impl Clock for DiskClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanosecond(self.0.now_ns()).expect("a simulated disk stays within the calendar")
    }
}

pub(crate) fn open(tree: Arc<dyn Vfs>, state: Option<Arc<dyn Vfs>>, bug: Option<Bug>) -> Result<Local> {
    open_by(Arc::new(ManualClock::default()), tree, state, bug)
}

/// As [`open`], by the clock of a machine.
pub(super) fn open_on(
    disk: &SimFs,
    tree: Arc<dyn Vfs>,
    state: Option<Arc<dyn Vfs>>,
    bug: Option<Bug>,
) -> Result<Local> {
    open_by(Arc::new(DiskClock(disk.clone())), tree, state, bug)
}

fn open_by(
    clock: Arc<dyn Clock>,
    tree: Arc<dyn Vfs>,
    state: Option<Arc<dyn Vfs>>,
    bug: Option<Bug>,
) -> Result<Local> {
    Local::open(LocalOptions {
        state,
        background: false,
        reserve_bytes: 700,
        segment_bytes: 3000,
        bug,
        ..LocalOptions::new(tree, clock)
    })
}
