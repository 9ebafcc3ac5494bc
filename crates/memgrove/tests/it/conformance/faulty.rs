//! Backends with one mistake each: the suite must notice every one of them, by a case that is
//! named here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memgrove::backend::{
    Applied, Capabilities, Change, ChangeId, ConflictStrategy, Content, Depth, Edit, Expect, Finding,
    HistoryQuery, Info, Keep, Moment, Note, PROMISES, Past, Pruned, Pruning, Version,
};
use memgrove::backends::Ram;
use memgrove::conformance::{self, CASES, Needs, Outcome, Storage, Subject};
use memgrove::{Backend, Error, Kind, Locator, Result};

use super::opens;

/// A mistake that a backend can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    NewlinesAreTranslated,
    BytesBecomeText,
    LongFilesAreCut,
    AbsenceIsEmpty,
    FoldersReadAsEmpty,
    VersionIsTheLength,
    InfoHasNoVersion,
    AppendForgetsExpect,
    WriteForgetsAbsent,
    ConflictIsCalledInvalid,
    HalfAChange,
    LastEditWinsOnly,
    DeleteOfAbsenceSucceeds,
    DeleteTakesFullFolders,
    RenameReplaces,
    ListIsUnsorted,
    ListLeavesOutFolders,
    ListOfAbsenceFails,
    ListMatchesPrefixes,
    MkdirTwiceFails,
    WritesToTheRootAreAccepted,
    ForgetsAtClose,
    ReadThenWrite,
    TearsFiles,
    HistoryIsOldestFirst,
    HistoryForgetsReasons,
    HistoryIgnoresPlaces,
    HistoryIgnoresLimits,
    PastIsThePresent,
    BeforeIsAfter,
    KeepsNoKeys,
    DerivedIsHistory,
    RepeatsAreNotMarked,
    HoldsAnyName,
    FollowsUpperCase,
    RefusesWithoutAHint,
    HistoryWithoutPast,
    AppendNeedsItsFile,
    RedactionIsOnlySaid,
    PruningIsOnlySaid,
}

/// Each mistake with a case that must fail because of it.
const CAUGHT: &[(Mistake, &str)] = &[
    (Mistake::NewlinesAreTranslated, "any_bytes_come_back"),
    (Mistake::BytesBecomeText, "any_bytes_come_back"),
    (Mistake::LongFilesAreCut, "large_content_comes_back"),
    (Mistake::AbsenceIsEmpty, "what_is_absent_is_not_found"),
    (Mistake::FoldersReadAsEmpty, "a_folder_is_described_but_not_read"),
    (Mistake::VersionIsTheLength, "different_bytes_have_different_versions"),
    (Mistake::InfoHasNoVersion, "read_and_info_and_apply_agree_on_the_version"),
    (Mistake::AppendForgetsExpect, "append_minds_what_it_expects"),
    (Mistake::WriteForgetsAbsent, "write_minds_what_it_expects"),
    (Mistake::ConflictIsCalledInvalid, "delete_minds_what_it_expects"),
    (Mistake::HalfAChange, "a_failing_last_edit_undoes_all"),
    (Mistake::LastEditWinsOnly, "edits_see_the_edits_before_them"),
    (Mistake::DeleteOfAbsenceSucceeds, "delete_of_what_is_absent_is_not_found"),
    (Mistake::DeleteTakesFullFolders, "delete_spares_full_folders"),
    (Mistake::RenameReplaces, "rename_needs_a_free_place"),
    (Mistake::ListIsUnsorted, "children_are_listed_in_order"),
    (Mistake::ListLeavesOutFolders, "everything_beneath_is_listed_in_order"),
    (Mistake::ListOfAbsenceFails, "a_listing_of_what_is_absent_is_empty"),
    (Mistake::ListMatchesPrefixes, "a_listing_stays_in_its_folder"),
    (Mistake::MkdirTwiceFails, "mkdir_twice_is_no_error"),
    (Mistake::WritesToTheRootAreAccepted, "the_root_stays"),
    (Mistake::ForgetsAtClose, "what_was_written_is_there_again"),
    (Mistake::ReadThenWrite, "updates_of_one_file_lose_nothing"),
    (Mistake::TearsFiles, "readers_see_whole_files"),
    (Mistake::HistoryIsOldestFirst, "the_history_is_newest_first"),
    (Mistake::HistoryForgetsReasons, "the_history_keeps_the_note"),
    (Mistake::HistoryIgnoresPlaces, "the_history_of_a_place_is_of_it_alone"),
    (Mistake::HistoryIgnoresLimits, "the_history_comes_in_pages"),
    (Mistake::PastIsThePresent, "the_past_of_a_write"),
    (Mistake::BeforeIsAfter, "the_past_of_an_append"),
    (Mistake::KeepsNoKeys, "a_key_is_applied_once"),
    (Mistake::DerivedIsHistory, "what_is_derived_is_not_in_the_history"),
    (Mistake::RepeatsAreNotMarked, "a_repeat_is_answered_as_the_first_time"),
    (Mistake::HoldsAnyName, "device_names_are_refused"),
    (Mistake::FollowsUpperCase, "another_case_is_another_name"),
    (Mistake::RefusesWithoutAHint, "reserved_characters_are_refused"),
    (Mistake::HistoryWithoutPast, "the_past_of_a_write"),
    (Mistake::AppendNeedsItsFile, "append_makes_the_file_it_needs"),
    (Mistake::RedactionIsOnlySaid, "what_is_redacted_is_gone"),
    (Mistake::PruningIsOnlySaid, "what_is_pruned_is_the_oldest"),
];

/// A sound backend with one mistake laid over it.
struct Faulty {
    inner: Ram,
    mistake: Mistake,
    torn: AtomicBool,
}

impl Faulty {
    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    /// What a write keeps of its bytes.
    fn kept(&self, bytes: &[u8]) -> Vec<u8> {
        match self.mistake {
            Mistake::NewlinesAreTranslated => bytes
                .split_inclusive(|b| *b == b'\n')
                .flat_map(|line| match line {
                    [rest @ .., b'\r', b'\n'] => [rest, b"\n"].concat(),
                    line => line.to_vec(),
                })
                .collect(),
            Mistake::BytesBecomeText => String::from_utf8_lossy(bytes).into_owned().into_bytes(),
            Mistake::LongFilesAreCut => bytes[..bytes.len().min(64 * 1024)].to_vec(),
            _ => bytes.to_vec(),
        }
    }

    /// A locator with its names changed by the mistake, both when writing and when reading.
    fn place(&self, at: &Locator) -> Locator {
        match self.mistake {
            Mistake::FollowsUpperCase => Locator::new(at.key().to_lowercase()).expect("a valid key"),
            _ => at.clone(),
        }
    }

    fn edit(&self, edit: &Edit) -> Edit {
        let mut edit = edit.clone();
        match &mut edit {
            Edit::Write { at, bytes, expect } => {
                *at = self.place(at);
                *bytes = self.kept(bytes).into();
                if self.is(Mistake::WriteForgetsAbsent) && *expect == Expect::Absent {
                    *expect = Expect::Any;
                }
                if self.is(Mistake::ReadThenWrite)
                    && let Expect::At(version) = expect
                    && self.inner.info(at).is_ok_and(|info| info.version.as_ref() == Some(version))
                {
                    std::thread::yield_now();
                    *expect = Expect::Any;
                }
            }
            Edit::Append { at, expect, .. } => {
                *at = self.place(at);
                if self.is(Mistake::AppendForgetsExpect) {
                    *expect = Expect::Any;
                }
            }
            Edit::Delete { at, .. } => *at = self.place(at),
            Edit::Rename { from, to, .. } => (*from, *to) = (self.place(from), self.place(to)),
        }
        edit
    }

    /// Does what comes before the change proper, by mistake; `Some` if that is all.
    fn stumble(&self, change: &Change) -> Option<Result<Applied>> {
        let alone =
            |edit: &Edit| self.inner.apply(&Change { edits: vec![edit.clone()], note: Note::default() });
        match (self.mistake, change.edits.last()) {
            (Mistake::HalfAChange, _) if change.edits.len() > 1 => {
                let mut versions = Vec::new();
                for edit in &change.edits {
                    match alone(edit) {
                        Ok(applied) => versions.extend(applied.versions),
                        Err(error) => return Some(Err(error)),
                    }
                }
                let note = change.note.clone();
                Some(
                    self.inner
                        .apply(&Change { edits: vec![], note })
                        .map(|applied| Applied { versions, ..applied }),
                )
            }
            (Mistake::LastEditWinsOnly, Some(last)) => Some(alone(last)),
            (Mistake::DeleteOfAbsenceSucceeds, Some(Edit::Delete { at, .. }))
                if self.inner.info(at).is_err() =>
            {
                Some(self.inner.apply(&Change { edits: vec![], note: change.note.clone() }))
            }
            (Mistake::DeleteTakesFullFolders, Some(Edit::Delete { at, .. })) => {
                let beneath = self.inner.list(at, Depth::All).unwrap_or_default();
                for info in beneath.iter().rev() {
                    let _ = alone(&Edit::Delete { at: info.locator.clone(), expect: Expect::Any });
                }
                None
            }
            (Mistake::RenameReplaces, Some(Edit::Rename { to, .. })) => {
                let _ = alone(&Edit::Delete { at: to.clone(), expect: Expect::Any });
                None
            }
            (Mistake::WritesToTheRootAreAccepted, Some(Edit::Write { at, .. })) if at.is_root() => {
                Some(self.inner.apply(&Change { edits: vec![], note: change.note.clone() }))
            }
            (Mistake::AppendNeedsItsFile, Some(Edit::Append { at, .. })) if self.inner.info(at).is_err() => {
                Some(Err(memgrove::backend::not_found(at)))
            }
            (Mistake::HoldsAnyName, Some(Edit::Write { at, .. })) if at.check_creatable().is_err() => {
                Some(self.inner.apply(&Change { edits: vec![], note: change.note.clone() }))
            }
            _ => None,
        }
    }
}

impl Backend for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.inner.conflict_strategy()
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        let result = self.inner.read(&self.place(at));
        let empty = || Content { bytes: Vec::new(), version: Version::of(b"") };
        match (self.mistake, result) {
            (Mistake::AbsenceIsEmpty, Err(error)) if error.kind() == Kind::NotFound => Ok(empty()),
            (Mistake::FoldersReadAsEmpty, Err(error)) if error.kind() == Kind::Invalid => Ok(empty()),
            (Mistake::VersionIsTheLength, Ok(content)) => {
                Ok(Content { version: Version::new(content.bytes.len().to_string()), ..content })
            }
            (Mistake::TearsFiles, Ok(mut content)) if self.torn.load(Ordering::SeqCst) => {
                content.bytes.truncate(content.bytes.len() / 2);
                Ok(content)
            }
            (_, result) => result,
        }
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        let mut info = self.inner.info(&self.place(at))?;
        if self.is(Mistake::InfoHasNoVersion) {
            info.version = None;
        }
        Ok(info)
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let mut listed = self.inner.list(&self.place(under), depth)?;
        match self.mistake {
            Mistake::ListIsUnsorted => listed.reverse(),
            Mistake::ListLeavesOutFolders => listed.retain(|info| !info.is_dir()),
            Mistake::ListOfAbsenceFails => {
                self.inner.info(under)?;
            }
            Mistake::ListMatchesPrefixes => {
                listed = self.inner.list(&Locator::root(), Depth::All)?;
                listed.retain(|info| info.locator.key().starts_with(under.key()) && info.locator != *under);
            }
            _ => {}
        }
        Ok(listed)
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        if self.is(Mistake::MkdirTwiceFails) && self.inner.info(at).is_ok() {
            return Err(memgrove::backend::exists(at));
        }
        self.inner.mkdir(at)
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        let mut change = Change {
            edits: change.edits.iter().map(|edit| self.edit(edit)).collect(),
            note: change.note.clone(),
        };
        if self.is(Mistake::KeepsNoKeys) {
            change.note.key = None;
        }
        if self.is(Mistake::DerivedIsHistory) {
            change.note.derived = false;
        }
        if self.is(Mistake::HistoryForgetsReasons) {
            change.note.reason = None;
        }
        if let Some(result) = self.stumble(&change) {
            return result;
        }
        self.torn.store(true, Ordering::SeqCst);
        let result = self.inner.apply(&change);
        if self.is(Mistake::TearsFiles) {
            std::thread::yield_now();
        }
        self.torn.store(false, Ordering::SeqCst);
        match (self.mistake, result) {
            (Mistake::ConflictIsCalledInvalid, Err(error)) if error.kind() == Kind::Conflict => {
                Err(Error::new(Kind::Invalid, error.message()))
            }
            (Mistake::RefusesWithoutAHint, Err(error)) if error.kind() == Kind::Invalid => {
                let bare = Error::new(Kind::Invalid, error.message());
                Err(error
                    .code_name()
                    .map_or(bare, |code| Error::new(Kind::Invalid, error.message()).code(code)))
            }
            (Mistake::RepeatsAreNotMarked, Ok(applied)) => Ok(Applied { replayed: false, ..applied }),
            (_, result) => result,
        }
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.inner.applied(key)
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        let mut query = query.clone();
        match self.mistake {
            Mistake::HistoryIgnoresPlaces => query.at = None,
            Mistake::HistoryIgnoresLimits => query.limit = 0,
            _ => {}
        }
        let mut past = self.inner.history(&query)?;
        if self.is(Mistake::HistoryIsOldestFirst) {
            past.reverse();
        }
        Ok(past)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        match (self.mistake, moment) {
            (Mistake::PastIsThePresent, _) => Ok(self.inner.read(at).ok().map(|content| content.bytes)),
            (Mistake::BeforeIsAfter, Moment::Before(change)) => {
                self.inner.read_past(at, &Moment::After(change.clone()))
            }
            (Mistake::HistoryWithoutPast, _) => Err(Error::new(Kind::Unsupported, "the past is not kept")),
            _ => self.inner.read_past(at, moment),
        }
    }

    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        match self.mistake {
            Mistake::RedactionIsOnlySaid => Ok(()),
            _ => self.inner.redact(at, moment),
        }
    }

    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        match self.mistake {
            Mistake::RedactionIsOnlySaid => Ok(1),
            _ => self.inner.redact_holding(under, holds),
        }
    }

    fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned> {
        match self.mistake {
            Mistake::PruningIsOnlySaid => Ok(Pruned { changes: 1, bytes: 100 }),
            _ => self.inner.prune(keep, how),
        }
    }

    fn check(&self) -> Result<Vec<Finding>> {
        self.inner.check()
    }
}

/// Storage of a backend with a mistake.
fn storage(mistake: Mistake) -> Result<Box<dyn Storage>> {
    let ram = Ram::default();
    opens(move || {
        let inner = if mistake == Mistake::ForgetsAtClose { Ram::default() } else { ram.clone() };
        Ok(Arc::new(Faulty { inner, mistake, torn: AtomicBool::new(false) }))
    })
}

#[test]
fn every_mistake_is_noticed() {
    let mut unnoticed = Vec::new();
    for (mistake, case) in CAUGHT {
        let case = CASES.iter().find(|known| known.name == *case).expect("the case exists");
        // A race may need more than one attempt to show.
        let noticed = (0..50).any(|_| {
            let storage = storage(*mistake).expect("it opens");
            matches!(conformance::run_on(&*storage, &[], case), Outcome::Failed(_))
        });
        if !noticed {
            unnoticed.push((mistake, case.name));
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

#[test]
fn every_promise_can_be_broken() {
    let promise = |name: &str| CASES.iter().find(|case| case.name == name).map(|case| case.promise);
    let broken: BTreeSet<&str> = CAUGHT.iter().filter_map(|(_, case)| promise(case)).collect();
    let promised: BTreeSet<&str> = PROMISES.iter().map(|(number, _)| *number).collect();
    assert_eq!(broken, promised);
}

#[test]
fn without_a_mistake_nothing_fails() {
    let storage: fn() -> Result<Box<dyn Storage>> = || storage(Mistake::None);
    let report = conformance::run(&Subject { name: "no mistake", storage, reserved: &[] });
    assert_eq!(report.failures(), Vec::<String>::new());
}

/// A backend without a history.
struct Forgetful(Ram);

fn unsupported<T>() -> Result<T> {
    Err(Error::new(Kind::Unsupported, "this backend keeps no history"))
}

impl Backend for Forgetful {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn conflict_strategy(&self) -> ConflictStrategy {
        self.0.conflict_strategy()
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        self.0.read(at)
    }
    fn info(&self, at: &Locator) -> Result<Info> {
        self.0.info(at)
    }
    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        self.0.list(under, depth)
    }
    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.0.mkdir(at)
    }
    fn apply(&self, change: &Change) -> Result<Applied> {
        Ok(Applied { change: ChangeId::new("-"), ..self.0.apply(change)? })
    }
    fn applied(&self, _: &str) -> Result<Option<Applied>> {
        unsupported()
    }
    fn history(&self, _: &HistoryQuery) -> Result<Vec<Past>> {
        unsupported()
    }
    fn read_past(&self, _: &Locator, _: &Moment) -> Result<Option<Vec<u8>>> {
        unsupported()
    }
    fn redact(&self, _: &Locator, _: &Moment) -> Result<()> {
        unsupported()
    }
    fn redact_holding(&self, _: &Locator, _: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        unsupported()
    }
    fn prune(&self, _: Keep, _: Pruning) -> Result<Pruned> {
        unsupported()
    }
    fn check(&self) -> Result<Vec<Finding>> {
        self.0.check()
    }
}

#[test]
fn a_backend_without_history_refuses_to_show_it_and_is_told_so() {
    let storage: fn() -> Result<Box<dyn Storage>> = || {
        let ram = Ram::default();
        opens(move || Ok(Arc::new(Forgetful(ram.clone()))))
    };
    let report = conformance::run(&Subject { name: "forgetful", storage, reserved: &[] });
    assert_eq!(report.failures(), Vec::<String>::new());
    let missing: BTreeSet<&str> = report.not_offered().into_iter().collect();
    for case in CASES {
        let needed = [Needs::History, Needs::Redaction, Needs::Pruning].contains(&case.needs);
        assert_eq!(missing.contains(case.name), needed || case.name == "several_openings_lose_nothing");
    }
    assert!(format!("{report}").starts_with("forgetful: "), "{report}");
}

#[test]
fn a_backend_that_panics_fails_its_cases() {
    let storage: fn() -> Result<Box<dyn Storage>> = || opens(|| panic!("no disk"));
    let subject = Subject { name: "panics", storage, reserved: &[] };
    let outcome = conformance::run_case(&subject, &CASES[0]);
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.0, "it panicked: no disk");
}
