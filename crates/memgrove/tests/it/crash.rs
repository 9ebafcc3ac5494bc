//! That no power cut, at any instant, loses what was acknowledged or leaves half a change.
//!
//! The power is cut after every call that touches the disk, with many seeds for what survives;
//! the store is opened, checked and changed; then the power is cut once more, during that, and the
//! store is opened and checked again. A violation names its workload, instant and seeds.

pub(crate) mod explore;
pub(crate) mod model;
mod run;
pub(crate) mod workload;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use explore::{Layout, Plan, Stats, Violation, explore, mix};
use memgrove::backends::local::Bug;
use workload::{LETTERS, Workload};

/// Where the seeds of the bounded exploration start.
const SEED: u64 = 20_260_921;

/// What is explored, before it is known with which seed.
struct Errand {
    workload: Workload,
    layout: Layout,
    cuts: u64,
    from_nothing: bool,
}

/// Explores all errands on two threads and stops at the first violation.
fn campaign(errands: &[Errand], seed: u64, bug: Option<Bug>) -> Result<Stats, Violation> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let total = Mutex::new(Ok(Stats::default()));
    let work = || {
        while !stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(Errand { workload, layout, cuts, from_nothing }) = errands.get(index) else { return };
            let (layout, cuts, from_nothing) = (*layout, *cuts, *from_nothing);
            let seed = mix(seed, index as u64, 0);
            let explored = explore(Plan { workload, layout, bug, seed, cuts, from_nothing });
            let mut total = total.lock().unwrap();
            match (&mut *total, explored) {
                (Ok(total), Ok(stats)) => *total = *total + stats,
                (Ok(_), Err(violation)) => *total = Err(violation),
                (Err(_), _) => {}
            }
            stopped.store(total.is_err(), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    total.into_inner().unwrap()
}

/// Every workload of one and two steps in every layout, and some of more.
fn errands(cuts_single: u64, cuts_pair: u64, triples: u64, long: u64) -> Vec<Errand> {
    let mut errands = Vec::new();
    let mut add = |indexes: &[usize], layout, cuts, from_nothing| {
        let workload = Workload::of(indexes);
        errands.push(Errand { workload, layout, cuts, from_nothing });
    };
    for layout in Layout::ALL {
        add(&[], layout, cuts_single, true);
        for first in 0..LETTERS {
            add(&[first], layout, cuts_single, false);
            for second in 0..LETTERS {
                add(&[first, second], layout, cuts_pair, false);
            }
        }
    }
    let random = |number: u64, turn: u64| mix(SEED, number, turn) as usize % LETTERS;
    for number in 0..triples {
        let layout = Layout::ALL[number as usize % 3];
        add(&[0, 1, 2].map(|turn| random(number, turn)), layout, cuts_pair, false);
    }
    for number in 0..long {
        let layout = Layout::ALL[number as usize % 3];
        let indexes: Vec<_> = (0..24).map(|turn| random(triples + number, turn)).collect();
        add(&indexes, layout, cuts_pair, number % 4 == 0);
    }
    errands
}

#[test]
fn a_million_power_cuts_lose_nothing() {
    let stats = campaign(&errands(66, 10, 640, 12), SEED, None);
    let stats = stats.unwrap_or_else(|violation| panic!("base seed {SEED}: {violation}"));
    println!("{} power cuts at {} instants, base seed {SEED}: nothing lost", stats.cuts, stats.instants);
    assert!(stats.cuts >= 1_000_000, "only {} power cuts were tried", stats.cuts);
}

/// Fifty million power cuts, each round with other seeds.
#[test]
#[ignore = "takes hours"]
fn torture_power_cuts_lose_nothing() {
    let mut total = Stats::default();
    for round in 1.. {
        let seed = mix(SEED, round, 1);
        let stats = campaign(&errands(256, 32, 5_000, 200), seed, None);
        total = total + stats.unwrap_or_else(|violation| panic!("base seed {seed}: {violation}"));
        println!("round {round}, base seed {seed}: {} power cuts so far, nothing lost", total.cuts);
        if total.cuts >= 50_000_000 {
            return;
        }
    }
}

/// With the mistake made, the exploration must find it; else it proves nothing.
fn finds(bug: Bug) {
    let violation = campaign(&errands(64, 10, 0, 8), SEED, Some(bug));
    let violation = violation.expect_err("the exploration is blind to this mistake");
    println!("{bug:?}: {violation}");
    assert!(violation.is_of_a_cut(), "it was not a power cut that showed it");
}

#[test]
fn a_checkpoint_without_folder_syncs_is_found() {
    finds(Bug::NoFolderSync);
}

#[test]
fn a_checkpoint_without_file_syncs_is_found() {
    finds(Bug::NoFileSync);
}

#[test]
fn an_answer_before_the_sync_is_found() {
    finds(Bug::AckBeforeSync);
}

#[test]
fn placing_before_the_sync_is_found() {
    finds(Bug::PlaceBeforeSync);
}

#[test]
fn writing_in_place_is_found() {
    finds(Bug::InPlaceWrite);
}

#[test]
fn recovery_over_a_hand_edit_is_found() {
    finds(Bug::RecoverOverHandEdit);
}
