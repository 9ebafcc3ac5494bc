//! What is there after the backend is opened again: P12.

use super::steps::{
    append, apply, at, case, change, delete, holds, is_gone, put, rename, same, tree, tree_is, write,
};
use super::{Case, Needs, Trial, Verdict, steps::case_with, steps::history_case};
use crate::backend::{HistoryQuery, Moment};

pub(super) const CASES: &[Case] = &[
    case("P12", "what_was_written_is_there_again", what_was_written_is_there_again),
    case_with(
        "P12",
        "bytes_that_are_no_text_are_there_again",
        Needs::Binary,
        bytes_that_are_no_text_are_there_again,
    ),
    case("P12", "every_kind_of_edit_is_there_again", every_kind_of_edit_is_there_again),
    case("P12", "versions_are_the_same_again", versions_are_the_same_again),
    case("P12", "a_store_lives_through_many_openings", a_store_lives_through_many_openings),
    history_case("P12", "the_history_is_there_again", the_history_is_there_again),
];

fn what_was_written_is_there_again(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for (name, bytes) in super::reading::texts() {
        put(&*backend, &format!("f/{name}.md"), bytes)?;
    }
    backend.mkdir(&at("empty"))?;
    let before = tree(&*backend)?;
    drop(backend);
    let backend = trial.open()?;
    same("the tree", &tree(&*backend)?, &before)?;
    super::reading::texts().try_for_each(|(name, bytes)| holds(&*backend, &format!("f/{name}.md"), bytes))
}

fn bytes_that_are_no_text_are_there_again(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for (name, bytes) in super::reading::SAMPLES {
        put(&*backend, &format!("f/{name}.bin"), bytes)?;
    }
    drop(backend);
    let backend = trial.open()?;
    let samples = super::reading::SAMPLES.iter();
    samples.clone().try_for_each(|(name, bytes)| holds(&*backend, &format!("f/{name}.bin"), bytes))
}

fn every_kind_of_edit_is_there_again(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"1"), write("b.md", b"2"), write("f/c.md", b"3"), write("d.md", b"4")])?;
    drop(backend);
    let backend = trial.open()?;
    apply(&*backend, [append("a.md", b"+"), delete("b.md"), rename("f", "g"), write("d.md", b"new")])?;
    apply(&*backend, [rename("d.md", "e.md")])?;
    drop(backend);
    let backend = trial.open()?;
    tree_is(&*backend, &["a.md=1+", "e.md=new", "g/", "g/c.md=3"])?;
    is_gone(&*backend, "b.md")
}

fn versions_are_the_same_again(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), append("a.md", b"b"), write("c.md", b"c")])?;
    let (a, c) = (backend.read(&at("a.md"))?.version, backend.read(&at("c.md"))?.version);
    drop(backend);
    let backend = trial.open()?;
    same("the version of `a.md`", &backend.read(&at("a.md"))?.version, &a)?;
    same("the version of `c.md`", &backend.info(&at("c.md"))?.version, &Some(c))
}

fn a_store_lives_through_many_openings(trial: &Trial<'_>) -> Verdict {
    for round in 0..12_u8 {
        let backend = trial.open()?;
        let wanted: Vec<u8> = (b'a'..b'a' + round).collect();
        if round > 0 {
            holds(&*backend, "log.md", &wanted)?;
        }
        apply(&*backend, [append("log.md", [b'a' + round]), write(&format!("{round}.md"), [round])])?;
    }
    let backend = trial.open()?;
    holds(&*backend, "log.md", b"abcdefghijkl")?;
    (0..12_u8).try_for_each(|round| holds(&*backend, &format!("{round}.md"), [round]))
}

fn the_history_is_there_again(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut first = change([write("a.md", b"one")]);
    first.note.reason = Some("because".into());
    let first = backend.apply(&first)?.change;
    apply(&*backend, [append("a.md", b" two"), write("b.md", b"b")])?;
    apply(&*backend, [rename("a.md", "c.md"), delete("b.md")])?;
    let before = backend.history(&HistoryQuery::default())?;
    drop(backend);
    let backend = trial.open()?;
    same("the history", &backend.history(&HistoryQuery::default())?, &before)?;
    let past = backend.read_past(&at("a.md"), &Moment::After(first))?;
    same("the bytes of the first change", &past, &Some(b"one".to_vec()))?;
    // New changes come after the old ones.
    let next = put(&*backend, "d.md", b"d")?.change;
    let after = backend.history(&HistoryQuery::default())?;
    same("the newest change", &after[0].change, &next)?;
    same("the older changes", &after[1..], &before[..])
}
