//! Which changes the history lists, and in which order: P15.

use super::steps::{
    append, apply, at, change, delete, ensure, history_case, put, refused, rename, same, write, write_if,
};
use super::{Case, Trial, Verdict};
use crate::backend::{Actor, Backend, ChangeId, Expect, HistoryQuery, Note, Op, Origin, Past};
use crate::error::{Kind, Result};

pub(super) const CASES: &[Case] = &[
    history_case("P15", "a_new_history_is_empty", a_new_history_is_empty),
    history_case("P15", "the_history_is_newest_first", the_history_is_newest_first),
    history_case("P15", "the_history_keeps_the_note", the_history_keeps_the_note),
    history_case("P15", "the_history_keeps_every_edit", the_history_keeps_every_edit),
    history_case("P15", "a_refused_change_is_not_in_the_history", a_refused_change_is_not_in_the_history),
    history_case("P15", "the_history_comes_in_pages", the_history_comes_in_pages),
    history_case("P15", "an_unknown_change_is_not_found", an_unknown_change_is_not_found),
    history_case("P15", "the_history_of_a_place_is_of_it_alone", the_history_of_a_place_is_of_it_alone),
    history_case("P15", "the_history_follows_a_file", the_history_follows_a_file),
    history_case("P15", "the_history_follows_a_folder", the_history_follows_a_folder),
    history_case("P15", "the_history_does_not_follow_the_old_name", the_history_does_not_follow_the_old_name),
    history_case("P15", "a_place_is_followed_in_pages", a_place_is_followed_in_pages),
];

fn everything(backend: &dyn Backend) -> Result<Vec<Past>> {
    backend.history(&HistoryQuery::default())
}

fn of(backend: &dyn Backend, key: &str) -> Result<Vec<ChangeId>> {
    let query = HistoryQuery { at: Some(at(key)), ..HistoryQuery::default() };
    Ok(backend.history(&query)?.into_iter().map(|past| past.change).collect())
}

/// Applies a change and gives back its name.
fn did(backend: &dyn Backend, edits: impl Into<Vec<crate::backend::Edit>>) -> Result<ChangeId> {
    Ok(apply(backend, edits)?.change)
}

/// Proves which changes a place's history lists, newest first.
fn lists(backend: &dyn Backend, key: &str, wanted: &[&ChangeId]) -> Verdict {
    let found = of(backend, key)?;
    let found: Vec<&ChangeId> = found.iter().collect();
    same(&format!("the history of `{key}`"), &*found, wanted)
}

fn a_new_history_is_empty(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    same("the history", &everything(&*backend)?, &Vec::new())?;
    same("the history of a place", &of(&*backend, "a.md")?, &Vec::new())
}

fn the_history_is_newest_first(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut applied = Vec::new();
    for i in 0..20 {
        applied.insert(0, did(&*backend, [write(&format!("{}.md", i % 3), i.to_string())])?);
    }
    let past = everything(&*backend)?;
    let listed: Vec<ChangeId> = past.iter().map(|past| past.change.clone()).collect();
    same("the changes", &listed, &applied)?;
    ensure(past.windows(2).all(|two| two[0].time >= two[1].time), || "the times are not in order".into())
}

fn the_history_keeps_the_note(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let session = Some("session 7".to_owned());
    let actor = Actor { origin: Origin::Agent, client: Some("some client ✓".into()), session };
    let reason = Some("it asked: \"why\\not\"\r\n\tand so on…".to_owned());
    let full = Note {
        verb: "file_create".into(),
        actor,
        reason,
        key: Some("k-1".into()),
        request: Some("0123456789abcdef".into()),
        answer: Some("{}".into()),
        job: Some("job 1".into()),
        derived: false,
    };
    let bare = Note { verb: "bare".into(), ..Note::default() };
    for note in [&full, &bare] {
        let mut change = change([write("a.md", &note.verb)]);
        change.note = note.clone();
        backend.apply(&change)?;
    }
    let past = everything(&*backend)?;
    let notes: Vec<&Note> = past.iter().map(|past| &past.note).collect();
    same("the notes", &notes, &vec![&bare, &full])
}

fn the_history_keeps_every_edit(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let first = put(&*backend, "a.md", b"a")?.versions[0].clone();
    let edits = [
        write("a.md", b"b"),
        append("a.md", b"c"),
        rename("a.md", "f/d.md"),
        write("e.md", b"e"),
        delete("e.md"),
    ];
    let second = apply(&*backend, edits)?.versions[0].clone();
    let past = everything(&*backend)?;
    let edits: Vec<_> = past[0]
        .edits
        .iter()
        .map(|edit| (edit.op, edit.at.key(), edit.to.as_ref().map(|to| to.key())))
        .collect();
    let wanted = [
        (Op::Write, "a.md", None),
        (Op::Append, "a.md", None),
        (Op::Rename, "a.md", Some("f/d.md")),
        (Op::Write, "e.md", None),
        (Op::Delete, "e.md", None),
    ];
    same("the edits", &*edits, &wanted)?;
    // A version may be left out where it would cost a read, but must not be wrong.
    let write = &past[0].edits[0];
    ensure(write.old.is_none() || write.old == first, || "the version before is wrong".into())?;
    ensure(write.new.is_none() || write.new == second, || "the version after is wrong".into())?;
    ensure(past[1].edits[0].old.is_none(), || "a new file has a version before".into())
}

fn a_refused_change_is_not_in_the_history(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let first = did(&*backend, [write("a.md", b"a")])?;
    let late = apply(&*backend, [write("b.md", b"b"), write_if("a.md", b"b", Expect::Absent)]);
    refused("a write where something is", late, Kind::Exists)?;
    let past = everything(&*backend)?;
    same("the count of changes", &past.len(), &1)?;
    lists(&*backend, "a.md", &[&first])?;
    lists(&*backend, "b.md", &[])
}

fn the_history_comes_in_pages(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for i in 0..10 {
        put(&*backend, "a.md", [i])?;
    }
    let all = everything(&*backend)?;
    let mut paged = Vec::new();
    let mut before = None;
    loop {
        let query = HistoryQuery { before: before.clone(), limit: 3, ..HistoryQuery::default() };
        let page = backend.history(&query)?;
        ensure(page.len() <= 3, || format!("a page of {} where 3 is the limit", page.len()))?;
        let Some(last) = page.last() else { break };
        before = Some(last.change.clone());
        paged.extend(page);
    }
    same("the pages together", &paged, &all)
}

fn an_unknown_change_is_not_found(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    let query = HistoryQuery { before: Some(ChangeId::new("no such change")), ..HistoryQuery::default() };
    refused("a page before an unknown change", backend.history(&query), Kind::NotFound).map(drop)
}

fn the_history_of_a_place_is_of_it_alone(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let one = did(&*backend, [write("f/a.md", b"1")])?;
    let two = did(&*backend, [write("f/g/b.md", b"2")])?;
    let three = did(&*backend, [write("f-x.md", b"3")])?;
    let four = did(&*backend, [append("f/a.md", b"4"), write("c.md", b"4")])?;
    let five = did(&*backend, [delete("f/a.md")])?;
    lists(&*backend, "f/a.md", &[&five, &four, &one])?;
    lists(&*backend, "f", &[&five, &four, &two, &one])?;
    lists(&*backend, "f/g", &[&two])?;
    lists(&*backend, "f-x.md", &[&three])?;
    lists(&*backend, "c.md", &[&four])?;
    lists(&*backend, "f/a", &[])?;
    lists(&*backend, "nowhere.md", &[])?;
    lists(&*backend, "", &[&five, &four, &three, &two, &one])
}

fn the_history_follows_a_file(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("a.md", b"a")])?;
    did(&*backend, [write("other.md", b"x")])?;
    let moved = did(&*backend, [rename("a.md", "f/b.md")])?;
    let grown = did(&*backend, [append("f/b.md", b"b")])?;
    let again = did(&*backend, [rename("f/b.md", "c.md"), write("other.md", b"y")])?;
    let last = did(&*backend, [write("c.md", b"c")])?;
    lists(&*backend, "c.md", &[&last, &again, &grown, &moved, &made])
}

fn the_history_follows_a_folder(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("f/g/a.md", b"a")])?;
    let other = did(&*backend, [write("f/b.md", b"b")])?;
    did(&*backend, [write("aside.md", b"x")])?;
    let moved = did(&*backend, [rename("f", "x/y")])?;
    let grown = did(&*backend, [append("x/y/g/a.md", b"+")])?;
    let again = did(&*backend, [rename("x/y/g", "z")])?;
    lists(&*backend, "z/a.md", &[&again, &grown, &moved, &made])?;
    lists(&*backend, "x/y/b.md", &[&moved, &other])?;
    lists(&*backend, "z", &[&again, &grown, &moved, &made])
}

fn the_history_does_not_follow_the_old_name(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("a.md", b"a")])?;
    let moved = did(&*backend, [rename("a.md", "b.md")])?;
    let new = did(&*backend, [write("a.md", b"another")])?;
    // What came to the old name later is no part of what was moved away.
    lists(&*backend, "b.md", &[&moved, &made])?;
    let found = of(&*backend, "a.md")?;
    ensure(found.first() == Some(&new), || format!("the history of `a.md` begins with {:?}", found.first()))
}

fn a_place_is_followed_in_pages(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    apply(&*backend, [rename("a.md", "b.md")])?;
    for i in 0..6 {
        put(&*backend, if i % 2 == 0 { "b.md" } else { "other.md" }, [i])?;
    }
    let all = of(&*backend, "b.md")?;
    same("the count of changes", &all.len(), &5)?;
    let mut paged = Vec::new();
    let mut before = None;
    while paged.len() < all.len() {
        let query = HistoryQuery { at: Some(at("b.md")), before: before.clone(), limit: 2 };
        let page: Vec<ChangeId> = backend.history(&query)?.into_iter().map(|past| past.change).collect();
        ensure(!page.is_empty() && page.len() <= 2, || format!("a page of {}", page.len()))?;
        before = page.last().cloned();
        paged.extend(page);
    }
    same("the pages together", &paged, &all)
}
