//! What can be made again from other files: P18.

use super::steps::{
    anything, append, at, case, change, delete, history_case, holds, is_gone, put, refused, rename, same,
    write, write_if,
};
use super::{Case, Trial, Verdict};
use crate::backend::{Applied, Backend, Edit, Expect, HistoryQuery, Version};
use crate::error::{Kind, Result};

pub(super) const CASES: &[Case] = &[
    case("P18", "what_is_derived_is_seen_at_once", what_is_derived_is_seen_at_once),
    case("P18", "what_is_derived_minds_what_it_expects", what_is_derived_minds_what_it_expects),
    case("P18", "only_files_are_derived", only_files_are_derived),
    history_case("P18", "what_is_derived_is_not_in_the_history", what_is_derived_is_not_in_the_history),
];

fn derive(backend: &dyn Backend, edits: impl Into<Vec<Edit>>) -> Result<Applied> {
    let mut change = change(edits);
    change.note.derived = true;
    backend.apply(&change)
}

fn what_is_derived_is_seen_at_once(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let applied = derive(&*backend, [write("lists/a.md", b"one"), write("lists/b.md", b"two")])?;
    holds(&*backend, "lists/a.md", b"one")?;
    let there = Some(backend.read(&at("lists/b.md"))?.version);
    same("the version of a derived file", &applied.versions[1], &there)?;
    derive(&*backend, [write("lists/a.md", b"three"), delete("lists/b.md")])?;
    holds(&*backend, "lists/a.md", b"three")?;
    is_gone(&*backend, "lists/b.md")?;
    drop(backend);
    holds(&*trial.open()?, "lists/a.md", b"three")
}

fn what_is_derived_minds_what_it_expects(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"old")?;
    let stale = Expect::At(Version::new("stale"));
    let late = derive(&*backend, [write("b.md", b"b"), write_if("a.md", b"new", stale)]);
    refused("a derived write over another version", late, Kind::Conflict)?;
    holds(&*backend, "a.md", b"old")?;
    is_gone(&*backend, "b.md")?;
    let known = Expect::At(backend.read(&anything())?.version);
    derive(&*backend, [write_if("a.md", b"new", known)])?;
    holds(&*backend, "a.md", b"new")
}

fn only_files_are_derived(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    backend.mkdir(&at("folder"))?;
    for edit in [append("a.md", b"b"), rename("a.md", "b.md"), delete("folder")] {
        refused(&format!("{edit:?} as derived"), derive(&*backend, [edit.clone()]), Kind::Invalid)?;
    }
    holds(&*backend, "a.md", b"a")
}

fn what_is_derived_is_not_in_the_history(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let first = put(&*backend, "a.md", b"one")?.change;
    derive(&*backend, [write("a.md", b"two"), write("list.md", b"a list")])?;
    let last = put(&*backend, "a.md", b"three")?.change;
    let past = backend.history(&HistoryQuery::default())?;
    let listed: Vec<_> = past.into_iter().map(|past| past.change).collect();
    same("the changes", &listed, &vec![last.clone(), first])?;
    let before = backend.read_past(&anything(), &crate::backend::Moment::Before(last))?;
    same("what a change found where a derived one had been", &before, &Some(b"two".to_vec()))
}
