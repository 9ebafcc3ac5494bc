//! Changes that are sent more than once: P16.

use std::thread;

use super::steps::{
    append, apply, at, delete, ensure, history_case, holds, keyed, refused, rename, same, tree_is, write,
    write_if,
};
use super::{Case, Failure, Trial, Verdict};
use crate::backend::{Applied, Expect, HistoryQuery};
use crate::error::Kind;

pub(super) const CASES: &[Case] = &[
    history_case("P16", "a_key_is_applied_once", a_key_is_applied_once),
    history_case("P16", "a_repeat_is_answered_as_the_first_time", a_repeat_is_answered_as_the_first_time),
    history_case("P16", "a_repeat_minds_no_expectation", a_repeat_minds_no_expectation),
    history_case("P16", "a_repeat_undoes_nothing_later", a_repeat_undoes_nothing_later),
    history_case("P16", "an_unknown_key_was_not_applied", an_unknown_key_was_not_applied),
    history_case("P16", "a_refused_change_uses_up_no_key", a_refused_change_uses_up_no_key),
    history_case("P16", "keys_are_kept_across_openings", keys_are_kept_across_openings),
    history_case("P16", "one_of_many_at_once_is_applied", one_of_many_at_once_is_applied),
    history_case("P16", "a_key_needs_no_edits", a_key_needs_no_edits),
];

/// Proves that an answer is the first one again.
fn repeats(first: &Applied, again: &Applied) -> Verdict {
    ensure(!first.replayed, || "the first time counts as a repeat".into())?;
    ensure(again.replayed, || "the repeat does not say that it is one".into())?;
    same("the change", &again.change, &first.change)?;
    same("the versions", &again.versions, &first.versions)
}

fn a_key_is_applied_once(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let change = keyed("key", [append("a.md", b"once"), write("b.md", b"b")]);
    let first = backend.apply(&change)?;
    for _ in 0..3 {
        repeats(&first, &backend.apply(&change)?)?;
    }
    // The key decides, not the edits.
    repeats(&first, &backend.apply(&keyed("key", [delete("a.md")]))?)?;
    tree_is(&*backend, &["a.md=once", "b.md=b"])?;
    same("the count of changes", &backend.history(&HistoryQuery::default())?.len(), &1)?;
    backend.apply(&keyed("another key", [append("a.md", b", twice")]))?;
    holds(&*backend, "a.md", b"once, twice")
}

fn a_repeat_is_answered_as_the_first_time(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut change = keyed("key", [write("a.md", b"a"), append("a.md", b"b"), rename("a.md", "c.md")]);
    change.note.answer = Some("{\"said\":\"first\"}".into());
    let kept = change.note.answer.clone();
    let first = backend.apply(&change)?;
    change.note.answer = Some("{\"said\":\"second\"}".into());
    let again = backend.apply(&change)?;
    let known = backend.applied("key")?.ok_or_else(|| Failure("the key is not known".into()))?;
    for repeat in [again, known] {
        repeats(&first, &repeat)?;
        same("the answer", &repeat.answer, &kept)?;
    }
    Ok(())
}

fn a_repeat_minds_no_expectation(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let create = keyed("create", [write_if("a.md", b"a", Expect::Absent)]);
    let first = backend.apply(&create)?;
    repeats(&first, &backend.apply(&create)?)?;
    let version = backend.read(&at("a.md"))?.version;
    let update = keyed("update", [write_if("a.md", b"b", Expect::At(version))]);
    let first = backend.apply(&update)?;
    repeats(&first, &backend.apply(&update)?)?;
    let remove = keyed("remove", [delete("a.md")]);
    let first = backend.apply(&remove)?;
    repeats(&first, &backend.apply(&remove)?)
}

fn a_repeat_undoes_nothing_later(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let change = keyed("key", [write("a.md", b"first")]);
    backend.apply(&change)?;
    apply(&*backend, [write("a.md", b"later")])?;
    backend.apply(&change)?;
    holds(&*backend, "a.md", b"later")
}

fn an_unknown_key_was_not_applied(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    same("an unknown key", &backend.applied("key")?, &None)?;
    apply(&*backend, [write("a.md", b"without a key")])?;
    backend.apply(&keyed("key", [write("b.md", b"b")]))?;
    for key in ["", "Key", "ke", "key2", "key\n"] {
        same("a key that only looks alike", &backend.applied(key)?, &None)?;
    }
    Ok(())
}

fn a_refused_change_uses_up_no_key(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let change = keyed("key", [write("a.md", b"a"), rename("b.md", "c.md")]);
    refused("a change that cannot be", backend.apply(&change), Kind::NotFound)?;
    same("the key", &backend.applied("key")?, &None)?;
    apply(&*backend, [write("b.md", b"b")])?;
    let now = backend.apply(&change)?;
    ensure(!now.replayed, || "the first success counts as a repeat".into())?;
    tree_is(&*backend, &["a.md=a", "c.md=b"])
}

fn keys_are_kept_across_openings(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut change = keyed("key ✓ \"quoted\"", [append("a.md", b"once"), write("b.md", b"b")]);
    change.note.answer = Some("answer".into());
    let first = backend.apply(&change)?;
    drop(backend);
    let backend = trial.open()?;
    repeats(&first, &backend.apply(&change)?)?;
    let known = backend.applied("key ✓ \"quoted\"")?.ok_or_else(|| Failure("the key is not known".into()))?;
    repeats(&first, &known)?;
    tree_is(&*backend, &["a.md=once", "b.md=b"])
}

fn one_of_many_at_once_is_applied(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for round in 0..5 {
        let change = keyed(&format!("key {round}"), [append("a.md", format!("{round};"))]);
        let results: Vec<Applied> = thread::scope(|scope| {
            let running: Vec<_> = (0..8).map(|_| scope.spawn(|| backend.apply(&change))).collect();
            let joined = running.into_iter().map(|thread| thread.join());
            joined
                .map(|result| result.map_err(|_| Failure("a thread panicked".into()))?.map_err(Failure::from))
                .collect::<Result<_, Failure>>()
        })?;
        let first = results.iter().filter(|applied| !applied.replayed).count();
        same("how many were no repeats", &first, &1)?;
        ensure(results.iter().all(|applied| applied.change == results[0].change), || {
            "repeats name different changes".into()
        })?;
    }
    holds(&*backend, "a.md", b"0;1;2;3;4;")
}

fn a_key_needs_no_edits(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut change = keyed("key", []);
    change.note.answer = Some("nothing to do".into());
    let first = backend.apply(&change)?;
    repeats(&first, &backend.apply(&change)?)
}
