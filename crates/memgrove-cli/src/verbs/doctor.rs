//! What is wrong with a store, and mending it.

use std::io;

use memgrove::backend::{Finding, Level};
use memgrove::shapes::merging::{self, Conflict};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::Selection;
use super::{Effect, On, Verb};
use crate::config::{How, Place};
use crate::context::Context;
use crate::modes;
use crate::page::{Ink, Page, counted};
use crate::repository;
use crate::settings::{self, Settings};

/// Check the store, and say how to fix what is wrong
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Doctor {
    /// Fix what is safe to fix: file permissions, damaged records, note metadata
    #[arg(long)]
    #[serde(default)]
    fix: bool,
}

/// The state of a store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoctorAnswer {
    store: String,
    found: &'static str,
    exists: bool,
    #[serde(skip)]
    absent: bool,
    selection: Selection,
    #[schemars(with = "Vec<std::collections::BTreeMap<String, String>>")]
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mended: Option<usize>,
    /// What was mended of the records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mended_records: Vec<String>,
    /// What was mended of the notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mended_notes: Vec<String>,
}

impl Verb for Doctor {
    const NAME: &'static str = "doctor";
    const TITLE: &'static str = "Check the store";
    const EFFECT: Effect = Effect::Read;
    const CHANGES_BY: &'static [&'static str] = &["fix"];
    const ON: &'static [On] = &[On::Cli, On::Http];
    const REPORTS: bool = true;
    type Answer = DoctorAnswer;

    fn run(self, cx: &Context) -> Result<DoctorAnswer> {
        if self.fix {
            cx.may_write()?;
        }
        let mut answer = DoctorAnswer {
            store: cx.root().display().to_string(),
            found: cx.place().map_or("named by --memories", |place| place.how.because()),
            exists: cx.place().is_none(),
            absent: false,
            selection: Selection::of(cx, &[]),
            findings: Vec::new(),
            mended: None,
            mended_records: Vec::new(),
            mended_notes: Vec::new(),
        };
        let Some(place) = cx.place() else {
            answer.findings = cx.reading()?.store().backend().check()?;
            return Ok(answer);
        };
        match Settings::read(&place.root) {
            Ok(Some(settings)) => {
                answer.findings.extend(settings.unknown_keys().iter().map(|key| unknown_key(key)));
                answer.exists = true;
                self.examine(cx, place, &mut answer)?;
            }
            Ok(None) => {
                answer.findings.push(not_there(place));
                answer.absent = true;
            }
            Err(error) => answer.findings.push(failing(settings::FILE, &error)),
        }
        Ok(answer)
    }

    fn show(answer: &DoctorAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put("store ")?;
        page.ink(Ink::Strong, &answer.store)?;
        page.line(&format!(" ({})", answer.found))?;
        page.put("backend ")?;
        answer.selection.show(page)?;
        if let Some(mended) = answer.mended.filter(|mended| *mended > 0) {
            page.line(&format!(
                "fixed the permissions of {}",
                counted(mended, "file or folder", "files and folders")
            ))?;
        }
        for mended in answer.mended_records.iter().chain(&answer.mended_notes) {
            page.line(&format!("fixed {mended}"))?;
        }
        for finding in &answer.findings {
            let (ink, name) = match finding.level {
                Level::Error => (Ink::Removed, "error"),
                Level::Warning => (Ink::Warning, "warning"),
                Level::Info => (Ink::Dim, "note"),
            };
            page.ink(ink, name)?;
            page.line(&format!(": {}: {}", finding.at, finding.what))?;
            page.line(&format!("  hint: {}", finding.hint))?;
        }
        let well = answer.findings.is_empty() && answer.selection.kind.is_none();
        if well { page.ink(Ink::Added, "all is well\n") } else { Ok(()) }
    }

    fn failed(answer: &DoctorAnswer) -> Option<Kind> {
        let bad = answer.findings.iter().any(|finding| finding.level == Level::Error);
        let kind = if answer.absent { Kind::NotFound } else { Kind::Corrupt };
        answer.selection.kind.or(bad.then_some(kind))
    }
}

impl Doctor {
    /// Examines everything that a store holds. What cannot be examined is itself a finding.
    fn examine(&self, cx: &Context, place: &Place, answer: &mut DoctorAnswer) -> Result<()> {
        if self.fix && !place.is_url() {
            answer.mended = Some(modes::mend(&place.root)?);
        }
        // If the store cannot be opened at all, one finding says so already.
        if answer.selection.kind.is_some() {
            return Ok(());
        }
        let (records, done) = told("records", super::record::examine(cx, self.fix));
        answer.findings.extend(records);
        answer.mended_records = done;
        if !place.is_url() {
            answer.findings.extend(modes::check(&place.root)?);
            answer.findings.extend(repository::check(&place.root, cx.environment().home.as_deref()));
        }
        answer.findings.extend(cx.selected(place, &[]).ok().and_then(|selected| selected.twin()));
        let without_mending = [
            ("store", cx.reading().and_then(|memory| memory.store().backend().check())),
            ("knowledge", entities(cx)),
            ("memory_stores", crate::memory_stores::check(cx)),
            ("graph", cx.reading_graph().and_then(|graph| graph.check())),
            (settings::FILE, cx.index().and_then(|index| index.check())),
        ];
        for (at, found) in without_mending {
            answer.findings.extend(told(at, found.map(|found| (found, Vec::new()))).0);
        }
        let (notes, done) = told("notes", super::note::examine(cx, self.fix));
        answer.findings.extend(notes);
        answer.mended_notes = done;
        if !place.is_url() {
            match cx.with_copies().and_then(|memory| merging::find(memory.store())) {
                Ok(found) => found.into_iter().for_each(|conflict| tell(&mut answer.findings, conflict)),
                Err(error) => answer.findings.push(failing("conflicts", &error)),
            }
        }
        Ok(())
    }
}

fn unknown_key(key: &str) -> Finding {
    Finding {
        level: Level::Warning,
        at: settings::FILE.to_owned(),
        what: format!("the setting `{key}` is not known, and is ignored"),
        hint: "correct its name, or use a memgrove version that knows it".to_owned(),
    }
}

fn not_there(place: &Place) -> Finding {
    let at = place.root.display().to_string();
    match place.how {
        How::Home => Finding {
            level: Level::Info,
            at,
            what: "there is no store yet".to_owned(),
            hint: "it is created on the first write".to_owned(),
        },
        _ => Finding {
            level: Level::Error,
            hint: format!("create one with `memgrove init {at}`"),
            what: "there is no store here".to_owned(),
            at,
        },
    }
}

/// What was found and mended, or a finding that it could not be examined.
fn told(at: &str, examined: Result<(Vec<Finding>, Vec<String>)>) -> (Vec<Finding>, Vec<String>) {
    examined.unwrap_or_else(|error| (vec![failing(at, &error)], Vec::new()))
}

fn entities(cx: &Context) -> Result<Vec<Finding>> {
    // With read-only access the lists are checked as they are.
    if cx.may_write().is_ok() {
        cx.writing_knowledge()?.rebuild()?;
    }
    cx.reading_knowledge()?.check()
}

/// Reports a conflict unless the backend has; for a file with markers, replaces what follows from them.
fn tell(findings: &mut Vec<Finding>, conflict: Conflict) {
    match conflict {
        Conflict::Copy { at, of, by, .. } => {
            // By its name alone it may have been in doubt.
            findings
                .retain(|finding| finding.at != at || !finding.what.starts_with("perhaps a conflict copy"));
            let known = |finding: &Finding| finding.at == at && finding.what.contains("conflict copy");
            if !findings.iter().any(known) {
                let what = format!("a conflict copy of `{of}` by {by}");
                let hint = "`memgrove conflicts` shows and merges it".to_owned();
                findings.push(Finding { level: Level::Warning, at, what, hint });
            }
        }
        Conflict::Markers { at, lines } => {
            let follows = |finding: &Finding| finding.at.starts_with(&format!("{at}:"));
            let level = findings.iter().filter(|finding| follows(finding)).map(|finding| finding.level).max();
            findings.retain(|finding| !follows(finding));
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            findings.push(Finding {
                level: level.unwrap_or(Level::Warning),
                at,
                what: format!("git's conflict markers from line {}", lines.join(", ")),
                hint: "resolve the conflict in git, or by hand".to_owned(),
            });
        }
        Conflict::Perhaps { .. } | Conflict::Placeholder { .. } => {}
    }
}

fn failing(at: &str, error: &Error) -> Finding {
    Finding {
        level: Level::Error,
        at: at.to_owned(),
        what: error.message().to_owned(),
        hint: error.hint_text().unwrap_or("fix it, then run `memgrove doctor` again").to_owned(),
    }
}
