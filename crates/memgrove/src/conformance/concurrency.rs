//! Several writers, and readers beside them: P13, P14.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use super::steps::{append, apply, at, case, case_with, change, ensure, put, rename, same, write_if};
use super::{Case, Failure, Needs, Trial, Verdict};
use crate::backend::{Backend, Change, Depth, Expect, Version};
use crate::error::Kind;
use crate::store::Store;

pub(super) const CASES: &[Case] = &[
    case("P13", "one_write_per_version_wins", one_write_per_version_wins),
    case("P13", "one_creator_wins", one_creator_wins),
    case("P13", "one_mover_wins", one_mover_wins),
    case("P13", "updates_of_one_file_lose_nothing", updates_of_one_file_lose_nothing),
    case("P13", "appends_lose_nothing", appends_lose_nothing),
    case("P13", "changes_of_two_files_stay_whole", changes_of_two_files_stay_whole),
    case_with(
        "P13",
        "several_openings_lose_nothing",
        Needs::ConcurrentWriters,
        several_openings_lose_nothing,
    ),
    case("P14", "readers_see_whole_files", readers_see_whole_files),
    case("P14", "listings_beside_writers_are_in_order", listings_beside_writers_are_in_order),
];

const THREADS: usize = 8;

/// Runs the same step on several threads at once; the first failure counts.
fn together<T: Send>(
    threads: usize,
    step: impl Fn(usize) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let start = Barrier::new(threads);
    let run = |thread| {
        start.wait();
        step(thread)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let run = &run;
                    move || run(thread)
                })
            })
            .collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined.map(|result| result.unwrap_or_else(|_| Err(Failure("a thread panicked".into())))).collect()
    })
}

/// Lets several threads apply a change each; exactly one must win, the others be refused as `loss`.
fn one_wins(
    backend: &dyn Backend,
    change_of: impl Fn(usize) -> Change + Sync,
    loss: &[Kind],
) -> Result<usize, Failure> {
    let results = together(THREADS, |thread| match backend.apply(&change_of(thread)) {
        Ok(_) => Ok(Some(thread)),
        Err(error) if loss.contains(&error.kind()) => Ok(None),
        Err(error) => Err(error.into()),
    })?;
    let winners: Vec<usize> = results.into_iter().flatten().collect();
    ensure(winners.len() == 1, || format!("{} of {THREADS} won: {winners:?}", winners.len()))?;
    Ok(winners[0])
}

fn one_write_per_version_wins(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"start")?;
    for round in 0..10 {
        let version = backend.read(&at("a.md"))?.version;
        let text = |thread| format!("round {round}, thread {thread}");
        let write = |thread| change([write_if("a.md", text(thread), Expect::At(version.clone()))]);
        let winner = one_wins(&*backend, write, &[Kind::Conflict])?;
        super::steps::holds(&*backend, "a.md", text(winner))?;
    }
    Ok(())
}

fn one_creator_wins(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for round in 0..10 {
        let key = format!("new/{round}.md");
        let write = |thread: usize| change([write_if(&key, thread.to_string(), Expect::Absent)]);
        let winner = one_wins(&*backend, write, &[Kind::Exists])?;
        super::steps::holds(&*backend, &key, winner.to_string())?;
    }
    Ok(())
}

fn one_mover_wins(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for round in 0..10 {
        let from = format!("{round}.md");
        put(&*backend, &from, b"moved")?;
        let to = |thread| format!("{round}-{thread}.md");
        let winner = one_wins(&*backend, |thread| change([rename(&from, &to(thread))]), &[Kind::NotFound])?;
        super::steps::holds(&*backend, &to(winner), b"moved")?;
    }
    let there = backend.list(&crate::Locator::root(), Depth::All)?.len();
    same("the count of files", &there, &10)
}

/// Adds numbered lines to one file from several threads, and proves that each is there once.
fn add_lines(stores: &[Store], key: &str, each: usize) -> Verdict {
    together(stores.len(), |thread| {
        for i in 0..each {
            stores[thread].update(&at(key), |old| {
                let mut bytes = old.unwrap_or_default().to_vec();
                bytes.extend_from_slice(format!("{thread}-{i}\n").as_bytes());
                Ok(bytes)
            })?;
        }
        Ok(())
    })?;
    every_line_is_there(&stores[0].read(&at(key))?, stores.len(), each)
}

fn every_line_is_there(text: &str, threads: usize, each: usize) -> Verdict {
    let lines: Vec<&str> = text.lines().collect();
    let distinct: BTreeSet<&str> = lines.iter().copied().collect();
    let all = (0..threads).flat_map(|thread| (0..each).map(move |i| format!("{thread}-{i}")));
    let lost: Vec<String> = all.filter(|line| !distinct.contains(&**line)).collect();
    ensure(lost.is_empty(), || format!("{} of {} lines were lost: {lost:?}", lost.len(), threads * each))?;
    same("the count of lines", &lines.len(), &(threads * each))
}

fn updates_of_one_file_lose_nothing(trial: &Trial<'_>) -> Verdict {
    let store = Store::shared(trial.open()?);
    add_lines(&vec![store; THREADS], "counter.md", 25)
}

fn several_openings_lose_nothing(trial: &Trial<'_>) -> Verdict {
    let open = |_| trial.open().map(Store::shared);
    let stores = (0..4).map(open).collect::<crate::Result<Vec<_>>>()?;
    add_lines(&stores, "counter.md", 25)?;
    let last: Vec<String> =
        stores.iter().map(|store| store.read(&at("counter.md"))).collect::<crate::Result<_>>()?;
    ensure(last.windows(2).all(|two| two[0] == two[1]), || "two openings read different bytes".into())
}

fn appends_lose_nothing(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let (threads, each) = (4, 25);
    together(threads, |thread| {
        for i in 0..each {
            apply(&*backend, [append("log.md", format!("{thread}-{i}\n"))])?;
        }
        Ok(())
    })?;
    let bytes = backend.read(&at("log.md"))?.bytes;
    every_line_is_there(&String::from_utf8_lossy(&bytes), threads, each)
}

/// Two counters always sum to zero, however many change both at once.
fn changes_of_two_files_stay_whole(trial: &Trial<'_>) -> Verdict {
    let store = Store::shared(trial.open()?);
    apply(
        &**store.backend(),
        [write_if("plus.md", b"0", Expect::Absent), write_if("minus.md", b"0", Expect::Absent)],
    )?;
    let step = |key: &str, by: i64| -> crate::Result<(String, Version)> {
        let content = store.read_bytes(&at(key))?;
        let number: i64 = String::from_utf8_lossy(&content.bytes).parse().unwrap_or(i64::MIN / 2);
        Ok(((number + by).to_string(), content.version))
    };
    let (threads, each) = (4, 20);
    together(threads, |_| {
        for _ in 0..each {
            store.commit(|| {
                let ((plus, at_plus), (minus, at_minus)) = (step("plus.md", 1)?, step("minus.md", -1)?);
                let edits = [
                    write_if("plus.md", plus, Expect::At(at_plus)),
                    write_if("minus.md", minus, Expect::At(at_minus)),
                ];
                Ok((change(edits), ()))
            })?;
        }
        Ok(())
    })?;
    let total = threads * each;
    same("plus", &store.read(&at("plus.md"))?, &total.to_string())?;
    same("minus", &store.read(&at("minus.md"))?, &format!("-{total}"))
}

/// Runs a step over and over on another thread, until `work` is done.
fn beside(work: impl FnOnce() -> Verdict, step: impl Fn() -> Verdict + Sync) -> Verdict {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = || -> Verdict {
            while !done.load(Ordering::SeqCst) {
                step()?;
            }
            step()
        };
        let watching: Vec<_> = (0..3).map(|_| scope.spawn(watch)).collect();
        let worked = work();
        done.store(true, Ordering::SeqCst);
        let seen = watching
            .into_iter()
            .map(|thread| thread.join())
            .try_for_each(|result| result.unwrap_or_else(|_| Err(Failure("a reader panicked".into()))));
        worked.and(seen)
    })
}

fn readers_see_whole_files(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    // Each text is of one letter, and its length says which.
    let text = |i: usize| vec![b'a' + (i % 7) as u8; 20_000 + (i % 7) * 9_000];
    let versions: Vec<Version> = (0..7)
        .map(|i| put(&*backend, "a.md", text(i)).map(|applied| applied.versions[0].clone()))
        .collect::<crate::Result<Option<_>>>()?
        .ok_or_else(|| Failure("a write gave no version".into()))?;
    let read = || -> Verdict {
        let content = backend.read(&at("a.md"))?;
        let i = content.bytes.first().map_or(usize::MAX, |first| usize::from(first - b'a'));
        ensure(i < 7 && content.bytes == text(i), || {
            format!("a torn file of {} bytes", content.bytes.len())
        })?;
        same("the version beside the bytes", &content.version, &versions[i])
    };
    let write = || -> Verdict {
        for i in 0..60 {
            put(&*backend, "a.md", text(i))?;
        }
        Ok(())
    };
    beside(write, read)
}

fn listings_beside_writers_are_in_order(trial: &Trial<'_>) -> Verdict {
    let backend: Arc<dyn Backend> = trial.open()?;
    put(&*backend, "f/always.md", b"here")?;
    let list = || -> Verdict {
        let listed: Vec<String> =
            backend.list(&at("f"), Depth::All)?.into_iter().map(|info| info.locator.key().into()).collect();
        ensure(listed.is_sorted(), || format!("not in order: {listed:?}"))?;
        ensure(listed.iter().any(|key| key == "f/always.md"), || {
            "a listing left out a file that stayed".into()
        })?;
        ensure(listed.iter().all(|key| key.ends_with(".md")), || {
            format!("a stray file is listed: {listed:?}")
        })
    };
    let write = || -> Verdict {
        for i in 0..40 {
            put(&*backend, &format!("f/{}.md", i % 5), b"x")?;
            if i % 5 == 4 {
                apply(
                    &*backend,
                    [
                        super::steps::delete("f/0.md"),
                        rename("f/1.md", "f/z.md"),
                        super::steps::delete("f/z.md"),
                    ],
                )?;
            }
        }
        Ok(())
    };
    beside(write, list)
}
