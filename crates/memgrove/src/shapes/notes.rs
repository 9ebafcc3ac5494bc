//! How one note grows into a linked memory: `memory.md`, and the notes that were split from it.
//!
//! An agent decides where a fact belongs and how a note is split. This code moves the blocks, and checks
//! for every plan that each of them is still there, verbatim and exactly once.

mod advice;
mod beneath;
mod check;
mod decisions;
mod draft;
mod edit;
mod facts;
mod filing;
mod import;
mod known;
mod lead;
mod merge;
mod meta;
mod page;
mod paths;
pub mod picture;
mod relink;
mod reroute;
mod search;
mod signature;
mod split;
mod survey;
mod union;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use decisions::{Decision, Part, Refusal};
pub use import::{DeadLink, Imported, Moved, Skipped, Source, Structure};
pub use merge::MergeResult;
pub use paths::{ROOT, normal_path};
pub use search::{Accelerator, NOTES_MAX, Search, SearchResult, Searched};
pub use survey::{Edge, Graph, Node, NoteInfo, Proposal};
pub(in crate::shapes) use union::union;
pub use write::{Mode, WriteResult};

use self::advice::Advisor;
use self::draft::Draft;
use self::known::Known;
use self::survey::Survey;
use crate::agent::rules::Rules;
use crate::agent::{Agent, Spent};
use crate::backend::{Note, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::{Done, Memory, Plan};
use crate::store::{Store, text};
use crate::text::jsonl;

/// The size that no note should pass, in bytes.
pub const BYTES_MAX: usize = 10_240;

/// The notes of one memory. Clones share the agent.
#[derive(Clone)]
pub struct Notes {
    memory: Memory,
    root: Locator,
    agent: Arc<dyn Agent>,
    accelerator: Option<Arc<dyn Accelerator>>,
    bytes_max: usize,
    /// Whether links have changed since the graph was last written.
    moved: Arc<AtomicBool>,
}

/// The result of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitResult {
    /// The note.
    pub path: String,
    /// The new notes.
    pub new_files: Vec<String>,
    /// The size of the note now.
    pub size_bytes: usize,
    /// For each note that was split: by what, by whom and why.
    pub reasons: Vec<String>,
    /// What it cost to ask.
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
}

/// What must hold for a change to happen.
#[derive(Debug, Clone, Default)]
pub struct Guarded {
    /// The version that the note must be at.
    pub expect: Option<Version>,
}

impl Notes {
    /// Returns the notes beneath a folder of a memory, with the built-in rules as their agent.
    pub fn new(memory: Memory, root: Locator) -> Self {
        let agent = Arc::new(Rules);
        Notes { memory, root, agent, accelerator: None, bytes_max: BYTES_MAX, moved: Arc::default() }
    }

    /// Returns the notes with another agent.
    #[must_use]
    pub fn with_agent(self, agent: Arc<dyn Agent>) -> Self {
        Notes { agent, ..self }
    }

    /// Returns the notes with another size that none should pass.
    #[must_use]
    pub fn with_bytes_max(self, bytes_max: usize) -> Self {
        Notes { bytes_max: bytes_max.max(256), ..self }
    }

    /// Returns the notes with an index that speeds up searches.
    #[must_use]
    pub fn with_accelerator(self, accelerator: Arc<dyn Accelerator>) -> Self {
        Notes { accelerator: Some(accelerator), ..self }
    }

    /// Returns the notes in another memory, such as one for a dry run.
    #[must_use]
    pub fn over(&self, memory: Memory) -> Self {
        Notes { memory, moved: Arc::default(), ..self.clone() }
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The size that no note should pass.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Where the file of a note is.
    ///
    /// # Errors
    /// `Invalid` for a path that no note can have.
    pub fn locate(&self, path: &str) -> Result<Locator> {
        paths::note_at(&self.root, path)
    }

    /// Returns the path of the note in a file; `None` for a file that is not a note.
    pub fn path_of(&self, at: &Locator) -> Option<String> {
        paths::path_of(&self.root, at)
    }

    fn store(&self) -> &Store {
        self.memory.store()
    }

    fn change<T>(
        &self,
        note: Note,
        plan: impl Fn(&mut Draft<'_>, &Advisor<'_>) -> Result<T>,
    ) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let now = self.memory.clock().now();
        let mut attempt = 0;
        // No lock is held while an agent thinks. The plan expects versions, and is made again if somebody
        // was faster.
        self.memory.apply(note, |store| {
            let mut draft = Draft::new(store, &self.root, now);
            let advisor = Advisor::new(&*self.agent, attempt);
            attempt += 1;
            let outcome = plan(&mut draft, &advisor)?;
            draft.into_plan(outcome)
        })
    }

    /// Reads a note, exactly as it is.
    ///
    /// # Errors
    /// `NotFound`, naming a note that is close; `Invalid` for a path that no note can have.
    pub fn read(&self, path: Option<&str>) -> Result<(String, Version)> {
        let path = normal_path(path)?;
        let at = paths::note_at(&self.root, &path)?;
        let Some(content) = self.store().read_optional(&at)? else { return Err(self.missing(&path)?) };
        Ok((text(&at, content.bytes)?, content.version))
    }

    fn missing(&self, path: &str) -> Result<Error> {
        let paths = Survey::of(self.store(), &self.root)?.paths();
        let error =
            Error::new(Kind::NotFound, format!("there is no note `{path}`")).code(code::NOTE_NOT_FOUND);
        let near = paths::resolved(path, ROOT, &paths, &mut |_| None).map(str::to_owned);
        let near = near.or_else(|| {
            let shared =
                |other: &String| other.chars().zip(path.chars()).take_while(|(one, two)| one == two).count();
            paths.iter().max_by_key(|other| shared(other)).filter(|other| shared(other) > 2).cloned()
        });
        Ok(match near {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None if paths.is_empty() => {
                error.hint("nothing was written yet: `memgrove note write` creates the first note")
            }
            None => error.hint("`memgrove note list` lists all notes"),
        })
    }

    /// Writes to a note, and splits notes that have grown too large, all in one change.
    ///
    /// # Errors
    /// `Invalid` for empty content or a path that no note can have; `Conflict` if the note is not at
    /// the version that was expected; else as [`Memory::apply`].
    pub fn write(
        &self,
        note: Note,
        path: Option<&str>,
        content: &str,
        mode: Mode,
        guarded: &Guarded,
    ) -> Result<Done<WriteResult>> {
        let path = normal_path(path)?;
        let done = self.change(note, |draft, advisor| {
            draft.check(&path, guarded.expect.as_ref())?;
            write::write(draft, advisor, &path, content, mode, self.bytes_max)
        })?;
        if done.outcome.split_triggered || mode == Mode::Replace || content.contains("[[") {
            self.moved.store(true, Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Splits a note, whatever its size, and the resulting notes as far as needed.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` if nothing in it can be told apart; `Conflict` if the note is not at the
    /// version that was expected.
    pub fn split(&self, note: Note, path: Option<&str>, guarded: &Guarded) -> Result<Done<SplitResult>> {
        let path = normal_path(path)?;
        self.read(Some(&path))?;
        let done = self.change(note, |draft, advisor| {
            draft.check(&path, guarded.expect.as_ref())?;
            let new_files = split::split(draft, advisor, &path, self.bytes_max, split::When::Always)?;
            let reasons = draft.decisions.iter().map(|decision| {
                let strategy = decision.strategy.map_or("", crate::agent::Strategy::name);
                format!("{} by {strategy} ({}): {}", decision.path, decision.agent, decision.reason)
            });
            let reasons = reasons.collect();
            let (size_bytes, spent) = (draft.bytes(&path)?, draft.spent());
            Ok(SplitResult { path: path.clone(), new_files, size_bytes, reasons, spent })
        })?;
        self.moved.store(true, Ordering::Relaxed);
        Ok(done)
    }

    /// Merges notes back into the one that they were split from: those that are named, or all.
    ///
    /// # Errors
    /// `NotFound` if there are none; `Full` if the note would be too large, unless any size is allowed;
    /// `Conflict` if the note is not at the version that was expected.
    pub fn merge(
        &self,
        note: Note,
        path: Option<&str>,
        children: &[String],
        size: MergeSize,
        guarded: &Guarded,
    ) -> Result<Done<MergeResult>> {
        let path = normal_path(path)?;
        let children: Vec<String> =
            children.iter().map(|child| normal_path(Some(child))).collect::<Result<_>>()?;
        let most = match size {
            MergeSize::Any => None,
            MergeSize::Fitting => Some(self.bytes_max),
        };
        let done = self.change(note, |draft, _| {
            draft.check(&path, guarded.expect.as_ref())?;
            merge::merge(draft, &path, &children, most)
        })?;
        self.moved.store(true, Ordering::Relaxed);
        Ok(done)
    }

    /// Searches by following links from the root; an accelerator lets it skip notes that cannot answer.
    ///
    /// # Errors
    /// `Invalid` for an empty query; else as the store says.
    pub fn search(&self, search: &Search) -> Result<Searched> {
        if search.query.trim().is_empty() {
            return Err(Error::new(Kind::Invalid, "the query is empty").hint("give a word or two"));
        }
        // If the index fails, the search goes on without it.
        let holders = self.accelerator.as_ref().and_then(|index| index.holders(&search.query).ok().flatten());
        let known = Known::of(self.store(), &self.root)?;
        if known.is_old() {
            self.moved.store(true, Ordering::Relaxed);
        }
        search::Walk::new(self.store(), &self.root, &*self.agent, search, holders, known).run()
    }

    /// Lists all notes.
    ///
    /// # Errors
    /// As the store says.
    pub fn list(&self) -> Result<Vec<NoteInfo>> {
        Ok(Survey::of(self.store(), &self.root)?.list())
    }

    /// The graph of all notes.
    ///
    /// # Errors
    /// As the store says.
    pub fn graph(&self) -> Result<Graph> {
        Ok(Survey::of(self.store(), &self.root)?.graph())
    }

    /// Returns notes whose split-off notes have stayed so small that merging them would help.
    ///
    /// # Errors
    /// As the store says.
    pub fn proposals(&self) -> Result<Vec<Proposal>> {
        Ok(Survey::of(self.store(), &self.root)?.proposals(self.bytes_max))
    }

    /// Returns the note that a link in another note leads to, by the rules of Obsidian.
    ///
    /// # Errors
    /// As the store says.
    pub fn linked(&self, target: &str, from: &str) -> Result<Option<String>> {
        Ok(Known::of(self.store(), &self.root)?.leads(self.store(), &self.root, target, from))
    }

    /// Returns the decisions, newest first, and how many lines of the log are damaged.
    ///
    /// # Errors
    /// As the store says.
    pub fn decisions(&self) -> Result<(Vec<Decision>, usize)> {
        let at = self.root.child(paths::METADATA)?.child(decisions::DECISIONS)?;
        let bytes = self.store().read_optional(&at)?.map(|content| content.bytes).unwrap_or_default();
        let (mut found, mut damaged) = (Vec::new(), 0);
        for line in jsonl::lines(&bytes).filter(|line| !line.body.is_empty()) {
            match serde_json::from_slice(&bytes[line.body]) {
                Ok(decision) => found.push(decision),
                Err(_) => damaged += 1,
            }
        }
        found.reverse();
        Ok((found, damaged))
    }

    /// Imports the files of another system.
    ///
    /// # Errors
    /// As [`Memory::apply`]; nothing is changed unless every block of every file is in the result.
    pub fn import(&self, note: Note, sources: &[Source], structure: Structure) -> Result<Done<Imported>> {
        let done = self.change(note, |draft, advisor| {
            import::import(draft, advisor, sources, structure, self.bytes_max)
        })?;
        self.moved.store(true, Ordering::Relaxed);
        Ok(done)
    }

    /// Brings `.metadata/` up to date if links have changed, or a search found it outdated. It is derived:
    /// only the speed of the next search depends on it.
    ///
    /// # Errors
    /// As [`Memory::apply`].
    pub fn settle(&self) -> Result<()> {
        if self.moved.swap(false, Ordering::Relaxed) {
            self.keep_graph()?;
        }
        Ok(())
    }

    /// Brings `.metadata/` up to date in any case.
    ///
    /// # Errors
    /// As [`Memory::apply`].
    pub fn keep_graph(&self) -> Result<()> {
        let note = Note { verb: "note_graph".to_owned(), derived: true, ..Note::default() };
        let kept =
            |store: &Store| -> Result<Plan<()>> { Survey::of(store, &self.root)?.kept(store, &self.root) };
        self.memory.apply(note, kept).map(drop)
    }
}

/// How large a merged note may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeSize {
    /// No larger than any note.
    Fitting,
    /// Of any size: the next write splits it again.
    Any,
}
