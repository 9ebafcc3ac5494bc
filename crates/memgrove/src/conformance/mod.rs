//! What every backend must do: cases, each of which proves one promise of [`crate::backend`].
//!
//! The suite is public, so that a backend that lives elsewhere can be held to the same contract:
//!
//! ```
//! use std::sync::Arc;
//! use memgrove::backends::Ram;
//! use memgrove::conformance::{self, Storage, Subject};
//! use memgrove::{Backend, Result};
//!
//! struct Shared(Ram);
//!
//! impl Storage for Shared {
//!     fn open(&self) -> Result<Arc<dyn Backend>> {
//!         Ok(Arc::new(self.0.clone()))
//!     }
//! }
//!
//! let subject = Subject { name: "ram", storage: || Ok(Box::new(Shared(Ram::default()))), reserved: &[] };
//! let report = conformance::run(&subject);
//! assert_eq!(report.failures(), Vec::<String>::new());
//! assert_eq!(report.outcomes.len(), conformance::CASES.len());
//! ```

mod changing;
mod concurrency;
mod derived;
mod expecting;
mod folders;
mod forgetting;
mod history;
mod keys;
mod moving;
mod names;
mod past_bytes;
mod reading;
mod reopening;
mod sequences;
mod steps;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::backend::{Backend, HistoryQuery, Keep, Moment, Pruning};
use crate::error::{Error, Kind, Result};
use steps::{anything, refused};

/// Every case, in the order in which they are run.
pub const CASES: &[Case] = &joined();

const THEMES: &[&[Case]] = &[
    reading::CASES,
    expecting::CASES,
    changing::CASES,
    sequences::CASES,
    moving::CASES,
    folders::CASES,
    reopening::CASES,
    concurrency::CASES,
    history::CASES,
    past_bytes::CASES,
    keys::CASES,
    forgetting::CASES,
    derived::CASES,
    names::CASES,
];

const fn count() -> usize {
    let (mut theme, mut count) = (0, 0);
    while theme < THEMES.len() {
        count += THEMES[theme].len();
        theme += 1;
    }
    count
}

const fn joined() -> [Case; count()] {
    let mut all = [THEMES[0][0]; count()];
    let (mut theme, mut next) = (0, 0);
    while theme < THEMES.len() {
        let mut index = 0;
        while index < THEMES[theme].len() {
            all[next] = THEMES[theme][index];
            next += 1;
            index += 1;
        }
        theme += 1;
    }
    all
}

/// One thing that every backend must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// A name that says what is so.
    pub name: &'static str,
    /// The promise that it proves, as in [`PROMISES`](crate::backend::PROMISES).
    pub promise: &'static str,
    /// What the backend must offer for the case to apply.
    pub needs: Needs,
    /// Proves it on new, empty storage.
    pub run: fn(&Trial<'_>) -> Verdict,
}

/// What a backend must offer for a case to apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: every backend must.
    Nothing,
    /// A history. A backend without one must refuse to show it, and that is proved instead.
    History,
    /// A history out of which content can be taken. A backend without it must refuse with `Unsupported` and a
    /// hint, and take out nothing; one without a history must refuse to show it.
    Redaction,
    /// A history of which the oldest can be taken away; otherwise as [`Needs::Redaction`].
    Pruning,
    /// The capability `concurrent_writers`.
    ConcurrentWriters,
    /// Room for content that is no text. A backend without it must refuse with `Unsupported`, and keep
    /// nothing of the change.
    Binary,
    /// Room for a file of a mebibyte; otherwise as [`Needs::Binary`].
    LargeFiles,
    /// Room for hundreds of folders in each other. A backend without it must refuse the key, as P17 says.
    DeepFolders,
}

/// How a case went: nothing, or why it failed.
pub type Verdict = std::result::Result<(), Failure>;

/// Why a case failed, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<Error> for Failure {
    /// An error where the case needs none.
    fn from(error: Error) -> Self {
        Failure(format!("unexpectedly {}: {error}", error.kind().name()))
    }
}

/// A backend that is put to the test.
#[derive(Clone, Copy)]
pub struct Subject {
    /// Its name in reports.
    pub name: &'static str,
    /// Makes new, empty storage that shares nothing with any other.
    pub storage: fn() -> Result<Box<dyn Storage>>,
    /// Keys that the backend keeps for itself: it must refuse to write them, and never list them.
    pub reserved: &'static [&'static str],
}

/// Somewhere that a backend keeps its files.
pub trait Storage: Sync {
    /// Opens the backend on what earlier openings left behind.
    ///
    /// # Errors
    /// As the backend says.
    fn open(&self) -> Result<Arc<dyn Backend>>;
}

/// What a case works on.
pub struct Trial<'a> {
    storage: &'a dyn Storage,
    reserved: &'static [&'static str],
}

impl Trial<'_> {
    /// Opens the backend: empty the first time, then with what is there.
    ///
    /// # Errors
    /// As the backend says.
    pub fn open(&self) -> Result<Arc<dyn Backend>> {
        self.storage.open()
    }

    /// Keys that the backend keeps for itself.
    pub fn reserved(&self) -> &'static [&'static str] {
        self.reserved
    }
}

/// What came of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is so.
    Passed,
    /// The backend does not offer what the case needs, and says so.
    NotOffered,
    /// It is not so.
    Failed(Failure),
}

/// What came of all cases.
pub struct Report {
    /// The subject's name.
    pub subject: &'static str,
    /// Every case with its outcome.
    pub outcomes: Vec<(&'static Case, Outcome)>,
}

impl Report {
    /// The cases that failed, one line each.
    pub fn failures(&self) -> Vec<String> {
        let line = |(case, outcome): &(&Case, Outcome)| match outcome {
            Outcome::Failed(Failure(why)) => {
                Some(format!("{}: {} ({}): {why}", self.subject, case.name, case.promise))
            }
            _ => None,
        };
        self.outcomes.iter().filter_map(line).collect()
    }

    /// The names of the cases that the subject does not offer.
    pub fn not_offered(&self) -> Vec<&'static str> {
        let outcomes = self.outcomes.iter();
        outcomes.filter(|(_, outcome)| *outcome == Outcome::NotOffered).map(|(case, _)| case.name).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failures, not_offered) = (self.failures(), self.not_offered());
        let passed = self.outcomes.len() - failures.len() - not_offered.len();
        write!(
            f,
            "{}: {passed} passed, {} not offered, {} failed",
            self.subject,
            not_offered.len(),
            failures.len()
        )?;
        failures.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

/// Runs every case, each on new storage.
pub fn run(subject: &Subject) -> Report {
    let outcomes = CASES.iter().map(|case| (case, run_case(subject, case))).collect();
    Report { subject: subject.name, outcomes }
}

/// Runs one case on new storage of the subject.
pub fn run_case(subject: &Subject, case: &Case) -> Outcome {
    match (subject.storage)() {
        Ok(storage) => run_on(&*storage, subject.reserved, case),
        Err(error) => Outcome::Failed(error.into()),
    }
}

/// Runs one case on storage that is new and empty. A panic is a failure of the case.
pub fn run_on(storage: &dyn Storage, reserved: &'static [&'static str], case: &Case) -> Outcome {
    let attempt = || -> std::result::Result<Outcome, Failure> {
        let trial = Trial { storage, reserved };
        if !offers(&trial, case.needs)? {
            return Ok(Outcome::NotOffered);
        }
        (case.run)(&trial).map(|()| Outcome::Passed)
    };
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(failure)) => Outcome::Failed(failure),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            Outcome::Failed(Failure(format!("it panicked: {said}")))
        }
    }
}

/// Whether the backend offers what a case needs; if it has no history, it must refuse to show it.
fn offers(trial: &Trial<'_>, needs: Needs) -> std::result::Result<bool, Failure> {
    match needs {
        Needs::Nothing => Ok(true),
        Needs::ConcurrentWriters => Ok(trial.open()?.capabilities().concurrent_writers),
        Needs::Binary => has_room(trial, "a.bin", b"\xff\xfe\x00", Kind::Unsupported),
        Needs::LargeFiles => has_room(trial, "a.md", &[b'x'; 1024 * 1024], Kind::Unsupported),
        Needs::DeepFolders => has_room(trial, &["d"; 300].join("/"), b"deep", Kind::Invalid),
        Needs::Redaction => Ok(offers(trial, Needs::History)? && forgetting::redacts(trial)?),
        Needs::Pruning => Ok(offers(trial, Needs::History)? && forgetting::prunes(trial)?),
        Needs::History => {
            let backend = trial.open()?;
            match backend.history(&HistoryQuery::default()) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == Kind::Unsupported => {
                    let applied = steps::put(&*backend, "a.md", b"kept without a history")?;
                    let moment = Moment::After(applied.change);
                    refused("reading the past", backend.read_past(&anything(), &moment), Kind::Unsupported)?;
                    refused("redacting", backend.redact(&anything(), &moment), Kind::Unsupported)?;
                    let pruned = backend.prune(Keep::Changes(0), Pruning::Done);
                    refused("pruning", pruned, Kind::Unsupported)?;
                    refused("asking for a key", backend.applied("key"), Kind::Unsupported)?;
                    Ok(false)
                }
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// Whether a backend holds a file; if not, it must say so and hold nothing of the change.
fn has_room(trial: &Trial<'_>, key: &str, bytes: &[u8], refusal: Kind) -> std::result::Result<bool, Failure> {
    let backend = trial.open()?;
    let edits = [steps::write("room/beside.md", b"text"), steps::write(&format!("room/{key}"), bytes)];
    match steps::apply(&*backend, edits) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == refusal && error.hint_text().is_some() => {
            steps::tree_is(&*backend, &[])?;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
