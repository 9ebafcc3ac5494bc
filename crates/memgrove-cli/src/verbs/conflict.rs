//! Conflicts: what sync tools and git leave behind when two machines change one file.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use memgrove::shapes::merging::{self, Conflict, Side, Texts};
use memgrove::{Error, Kind, Locator, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page, counted};

/// List conflict copies, likely copies, git conflict markers, and files not on this machine
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Conflicts {}

/// What needs somebody's eye.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConflictsAnswer {
    #[schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>")]
    conflicts: Vec<Conflict>,
}

impl Verb for Conflicts {
    const NAME: &'static str = "conflicts";
    const TITLE: &'static str = "List conflicts";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Http];
    type Answer = ConflictsAnswer;

    fn run(self, cx: &Context) -> Result<ConflictsAnswer> {
        Ok(ConflictsAnswer { conflicts: merging::find(cx.with_copies()?.store())? })
    }

    fn show(answer: &ConflictsAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for conflict in &answer.conflicts {
            match conflict {
                Conflict::Copy { at, of, base_exists, by } => {
                    page.ink(Ink::Strong, at)?;
                    let gone = if *base_exists { "" } else { ", which is gone" };
                    page.line(&format!(": a copy of {of}{gone}, made by {by}"))?;
                }
                Conflict::Perhaps { at, of, by } => {
                    page.ink(Ink::Strong, at)?;
                    page.line(&format!(
                        ": perhaps a copy of {of}, made by {by}; if so, name it and use --take"
                    ))?;
                }
                Conflict::Markers { at, lines } => {
                    page.ink(Ink::Strong, at)?;
                    let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                    page.line(&format!(": git's conflict markers from line {}", lines.join(", ")))?;
                }
                Conflict::Placeholder { at, of } => {
                    page.ink(Ink::Strong, at)?;
                    page.line(&format!(": {of} is not on this machine"))?;
                }
            }
        }
        if answer.conflicts.is_empty() {
            return page.line("no conflicts");
        }
        let copies = answer.conflicts.iter().any(|conflict| matches!(conflict, Conflict::Copy { .. }));
        if copies { page.line("merge copies with `memgrove conflicts merge`") } else { Ok(()) }
    }
}

/// Merge conflict copies into their files
///
/// Records are merged by id, entities by observation, notes by block, other files line by line from
/// their common version. What cannot be merged is left as it is and reported. The history keeps every
/// version.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ConflictsMerge {
    /// Copies to merge [default: all]
    #[serde(default)]
    copies: Vec<String>,
    /// Take this side as a whole instead of merging
    #[arg(long, value_parser = ["ours", "theirs"])]
    #[serde(default)]
    take: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

/// What came of each copy.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MergeAnswer {
    copies: Vec<MergedCopy>,
    /// How many files hold git's conflict markers, which are git's to resolve.
    #[serde(skip_serializing_if = "is_none")]
    marked: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Debug, Serialize, JsonSchema)]
struct MergedCopy {
    at: String,
    /// How it was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip)]
    kind: Option<Kind>,
}

impl MergedCopy {
    fn new(at: String, done: Result<String>) -> Self {
        match done {
            Ok(by) => MergedCopy { at, by: Some(by), problem: None, hint: None, kind: None },
            Err(error) => MergedCopy {
                at,
                by: None,
                problem: Some(error.message().to_owned()),
                hint: error.hint_text().map(str::to_owned),
                kind: Some(error.kind()),
            },
        }
    }
}

impl Verb for ConflictsMerge {
    const NAME: &'static str = "conflicts_merge";
    const TITLE: &'static str = "Merge conflict copies";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli];
    type Answer = MergeAnswer;

    fn run(self, cx: &Context) -> Result<MergeAnswer> {
        let memory = cx.with_copies()?;
        let take = self.take.as_deref().map(|side| if side == "ours" { Side::Ours } else { Side::Theirs });
        let (mut named, mut marked) = (self.copies.clone(), 0);
        if named.is_empty() {
            for conflict in merging::find(memory.store())? {
                match conflict {
                    Conflict::Copy { at, .. } => named.push(at),
                    Conflict::Markers { .. } => marked += 1,
                    Conflict::Perhaps { .. } | Conflict::Placeholder { .. } => {}
                }
            }
        }
        // A copy that cannot be merged must not keep others from being merged.
        let merge = |at: &str| {
            let mut note = cx.note(Self::NAME, &self.guard);
            // Each copy is a change of its own, so each needs a key of its own.
            note.key = note.key.map(|key| format!("{key} {at}"));
            Ok(merging::merge_copy(&memory, note, &Locator::new(at)?, take)?.outcome.by)
        };
        let copies: Vec<MergedCopy> =
            named.into_iter().map(|at| MergedCopy::new(at.clone(), merge(&at))).collect();
        let of_entities = copies.iter().any(|copy| copy.by.is_some() && copy.at.starts_with("knowledge/"));
        // The merge stands, even if the lists cannot be updated.
        if of_entities && let Err(error) = cx.writing_knowledge().and_then(|knowledge| knowledge.rebuild()) {
            crate::notice(&format!("the lists of entities are not up to date: {error}"));
        }
        Ok(MergeAnswer { copies, marked })
    }

    fn show(answer: &MergeAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for copy in &answer.copies {
            page.ink(Ink::Strong, &copy.at)?;
            match (&copy.by, &copy.problem) {
                (Some(by), _) => page.line(&format!(": {}", done(by)))?,
                (None, problem) => page.line(&format!(": {}", problem.as_deref().unwrap_or("not merged")))?,
            }
            copy.hint.iter().try_for_each(|hint| page.line(&format!("  hint: {hint}")))?;
        }
        match answer.marked {
            0 if answer.copies.is_empty() => page.line("no conflict copies"),
            0 => Ok(()),
            marked => {
                let files = counted(marked, "file", "files");
                page.line(&format!("{files} with git's conflict markers: resolve them in git"))
            }
        }
    }

    fn failed(answer: &MergeAnswer) -> Option<Kind> {
        answer.copies.iter().find_map(|copy| copy.kind)
    }
}

/// What was done with a copy, in words.
fn done(by: &str) -> String {
    match by {
        "sameness" => "identical to its file, removed".to_owned(),
        "place" => "took the place of its missing file".to_owned(),
        "ours" => "removed; its file stays as it was".to_owned(),
        "theirs" => "replaced its file".to_owned(),
        by => format!("merged by {by}"),
    }
}

/// Merge two branches' versions of a file, as a git merge driver
///
/// Add `*.jsonl merge=memgrove`, `knowledge/entities/** merge=memgrove` and `notes/** merge=memgrove` to
/// the store's .gitattributes, then run `git config merge.memgrove.driver "memgrove merge-driver %O %A
/// %B %P"`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct MergeDriver {
    /// The common version (%O)
    base: PathBuf,
    /// Our version, which becomes the merged one (%A)
    ours: PathBuf,
    /// Their version (%B)
    theirs: PathBuf,
    /// Path of the file in the repository (%P)
    path: String,
}

/// What came of the merge.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DriverAnswer {
    by: String,
    clashes: usize,
}

impl Verb for MergeDriver {
    const NAME: &'static str = "merge_driver";
    const TITLE: &'static str = "Merge for git";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli];
    type Answer = DriverAnswer;

    fn run(self, _: &Context) -> Result<DriverAnswer> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|error| Error::from_io(error, path.display()))
        };
        let (base, ours, theirs) = (read(&self.base)?, read(&self.ours)?, read(&self.theirs)?);
        // git gives an empty common version where both branches added the file.
        let texts = Texts { base: Some(&base), ours: &ours, theirs: &theirs };
        let merged = merging::merge(&Locator::new(&self.path)?, &texts)?;
        // This file is git's own, made for this merge.
        let written = OpenOptions::new().write(true).truncate(true).open(&self.ours);
        written
            .and_then(|mut file| file.write_all(merged.text.as_bytes()))
            .map_err(|error| Error::from_io(error, self.ours.display()))?;
        Ok(DriverAnswer { by: merged.by, clashes: merged.clashes })
    }

    fn show(answer: &DriverAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match answer.clashes {
            0 => Ok(()),
            clashes => page.line(&format!("conflicts left to resolve: {clashes}")),
        }
    }

    fn failed(answer: &DriverAnswer) -> Option<Kind> {
        (answer.clashes > 0).then_some(Kind::Conflict)
    }
}
