//! What the history is made to forget, or refuses to: P19, P20.

use super::steps::{append, apply, at, case_with, delete, ensure, keyed, put, refused, same, tree, write};
use super::{Case, Failure, Needs, Trial, Verdict};
use crate::backend::{Backend, ChangeId, HistoryQuery, Keep, Moment, Past, Pruning};
use crate::error::{Kind, Result};
use crate::locator::Locator;

pub(super) const CASES: &[Case] = &[
    case_with("P19", "what_is_redacted_is_gone", Needs::Redaction, what_is_redacted_is_gone),
    case_with("P19", "what_holds_something_is_gone", Needs::Redaction, what_holds_something_is_gone),
    case_with("P20", "what_is_pruned_is_the_oldest", Needs::Pruning, what_is_pruned_is_the_oldest),
    case_with("P20", "what_is_pruned_frees_its_keys", Needs::Pruning, what_is_pruned_frees_its_keys),
];

const SECRET: &str = "secret";

fn holds_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
}

fn history(backend: &dyn Backend) -> Result<Vec<Past>> {
    backend.history(&HistoryQuery::default())
}

fn names(past: &[Past]) -> Vec<ChangeId> {
    past.iter().map(|past| past.change.clone()).collect()
}

/// Counts the moments at which a place can be read as holding the secret.
fn secrets_of(backend: &dyn Backend, key: &str) -> Result<usize> {
    let mut found = 0;
    for past in history(backend)? {
        for moment in [Moment::Before(past.change.clone()), Moment::After(past.change.clone())] {
            match backend.read_past(&at(key), &moment) {
                Err(error) if error.kind() == Kind::NotFound => {}
                bytes => found += usize::from(bytes?.is_some_and(|bytes| holds_secret(&bytes))),
            }
        }
    }
    Ok(found)
}

/// Whether a backend with a history can redact; if not, it must say so and take nothing out.
pub(super) fn redacts(trial: &Trial<'_>) -> std::result::Result<bool, Failure> {
    let backend = trial.open()?;
    if backend.redact_holding(&Locator::root(), &|_| false).is_ok() {
        return Ok(true);
    }
    let told = put(&*backend, "a.md", SECRET)?.change;
    put(&*backend, "a.md", "plain")?;
    let before = secrets_of(&*backend, "a.md")?;
    unsupported("redacting", backend.redact(&at("a.md"), &Moment::After(told)))?;
    unsupported("redacting what holds something", backend.redact_holding(&at("a.md"), &holds_secret))?;
    same("moments at which it can be read", &secrets_of(&*backend, "a.md")?, &before)?;
    Ok(false)
}

/// Whether a backend with a history can prune it; if not, it must say so and take nothing out.
pub(super) fn prunes(trial: &Trial<'_>) -> std::result::Result<bool, Failure> {
    let backend = trial.open()?;
    if backend.prune(Keep::Changes(0), Pruning::Planned).is_ok() {
        return Ok(true);
    }
    put(&*backend, "a.md", "one")?;
    put(&*backend, "a.md", "two")?;
    for how in [Pruning::Planned, Pruning::Done] {
        unsupported("pruning", backend.prune(Keep::Changes(0), how))?;
        same("how many changes there are", &history(&*backend)?.len(), &2)?;
    }
    Ok(false)
}

/// Proves that a call was refused as one that the backend never does, with a hint.
fn unsupported<T>(what: &str, done: Result<T>) -> Verdict {
    let error = refused(what, done, Kind::Unsupported)?;
    ensure(error.hint_text().is_some(), || format!("{what} was refused without a hint"))
}

fn what_is_redacted_is_gone(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let told = put(&*backend, "a.md", SECRET)?.change;
    put(&*backend, "b.md", SECRET)?;
    put(&*backend, "a.md", "plain")?;
    let (changes, files) = (names(&history(&*backend)?), tree(&*backend)?);
    let (told_of_it, beside) = (secrets_of(&*backend, "a.md")?, secrets_of(&*backend, "b.md")?);
    ensure(told_of_it > 0 && beside > 0, || "the past is not there to begin with".into())?;
    backend.redact(&at("a.md"), &Moment::After(told))?;
    for backend in [backend, trial.open()?] {
        same("moments at which it can be read", &secrets_of(&*backend, "a.md")?, &0)?;
        same("moments of another place", &secrets_of(&*backend, "b.md")?, &beside)?;
        same("the changes", &names(&history(&*backend)?), &changes)?;
        same("the files", &tree(&*backend)?, &files)?;
    }
    Ok(())
}

fn what_holds_something_is_gone(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "d/a.md", "plain")?;
    apply(&*backend, [append("d/a.md", " and secret")])?;
    apply(&*backend, [write("d/a.md", "plain again"), write("d/b.md", "another secret")])?;
    apply(&*backend, [delete("d/b.md"), write("e.md", SECRET)])?;
    let (changes, files) = (names(&history(&*backend)?), tree(&*backend)?);
    let count = |backend: &dyn Backend| -> Result<[usize; 3]> {
        Ok([secrets_of(backend, "d/a.md")?, secrets_of(backend, "d/b.md")?, secrets_of(backend, "e.md")?])
    };
    let before = count(&*backend)?;
    ensure(before.iter().all(|count| *count > 0), || format!("not all is there to begin with: {before:?}"))?;
    let kept_by = backend.redact_holding(&at("d"), &holds_secret)?;
    ensure(kept_by > 0, || "it is said to have been kept nowhere".into())?;
    for backend in [backend, trial.open()?] {
        same("moments at which it can be read", &count(&*backend)?, &[0, 0, before[2]])?;
        same("the changes", &names(&history(&*backend)?), &changes)?;
        same("the files", &tree(&*backend)?, &files)?;
    }
    Ok(())
}

fn what_is_pruned_is_the_oldest(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for round in 0..6 {
        put(&*backend, "a.md", format!("round {round}"))?;
    }
    let (changes, files) = (names(&history(&*backend)?), tree(&*backend)?);
    backend.prune(Keep::Changes(0), Pruning::Planned)?;
    same("the changes while it is only planned", &names(&history(&*backend)?), &changes)?;
    for keep in [4, 0] {
        let before = history(&*backend)?.len();
        let gone = backend.prune(Keep::Changes(keep), Pruning::Done)?.changes;
        let left = names(&history(&*backend)?);
        same("the changes that are left", &left.len(), &(before - gone))?;
        ensure(left.len() >= keep, || format!("{} are left of {keep} to be kept", left.len()))?;
        ensure(keep > 0 || gone > 0, || "nothing is gone though nothing is to be kept".into())?;
        same("those that are left", &left[..], &changes[..left.len()])?;
        same("the files", &tree(&*trial.open()?)?, &files)?;
    }
    Ok(())
}

fn what_is_pruned_frees_its_keys(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for key in ["one", "two"] {
        backend.apply(&keyed(key, [append("a.md", key)]))?;
    }
    backend.prune(Keep::Changes(0), Pruning::Done)?;
    let left = history(&*backend)?.len();
    for key in ["one", "two"] {
        let known = backend.applied(key)?.is_some();
        let again = backend.apply(&keyed(key, [append("a.md", key)]))?;
        same("whether a key that is known is applied again", &again.replayed, &known)?;
        ensure(known || left < 2, || format!("the change of `{key}` is kept, and its key is not"))?;
    }
    Ok(())
}
