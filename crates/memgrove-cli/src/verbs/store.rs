//! The store itself: making one, checking one, and the backends there are.

use std::io;
use std::path::{Path, PathBuf};

use memgrove::backend::{Capabilities, Finding, Level};
use memgrove::backends::ram;
use memgrove::{Error, Kind, Registry, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::config::{How, Place, STORE_FOLDER};
use crate::context::{Context, random_id};
use crate::modes;
use crate::page::{Ink, Page};
use crate::settings::{self, Made, Settings};

/// Make a store
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Init {
    /// Its folder [default: ./.memgrove]
    path: Option<PathBuf>,
}

/// Where the store is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InitAnswer {
    store: String,
    /// Whether it was made now.
    made: bool,
}

impl Verb for Init {
    const NAME: &'static str = "init";
    const TITLE: &'static str = "Make a store";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli];
    type Answer = InitAnswer;

    fn run(self, cx: &Context) -> Result<InitAnswer> {
        let root = match (self.path, cx.place()) {
            (Some(path), Some(Place { root, how: How::Flag }))
                if cx.environment().absolute(&path)? != *root =>
            {
                let (one, other) = (path.display(), root.display());
                return Err(Error::new(
                    Kind::Invalid,
                    format!("two folders are named: `{one}` and `{other}`"),
                )
                .hint("leave out --store, or the folder"));
            }
            (Some(path), _) => cx.environment().absolute(&path)?,
            (None, Some(place)) if matches!(place.how, How::Flag | How::Variable) => place.root.clone(),
            (None, _) => cx.environment().absolute(STORE_FOLDER.as_ref())?,
        };
        if crate::config::is_url(&root) {
            return Err(Error::new(Kind::Invalid, "a store in a bucket is made by the first change in it")
                .hint(format!("use it with --store {}", root.display())));
        }
        check_apart(&root)?;
        // A backend that nobody knows is refused before anything is made.
        let backend = cx.backend_flag().or(cx.environment().backend.as_deref());
        if backend == Some(ram::PROTOCOL) {
            let message = "a store of the backend `ram` would forget all that is put into it";
            return Err(Error::new(Kind::Invalid, message).hint("leave the backend out: files keep memories"));
        }
        Registry::standard().select(backend, None, &[])?;
        let made = settings::make_store(&root, &random_id(), backend)?;
        Ok(InitAnswer { store: root.display().to_string(), made: made == Made::Now })
    }

    fn show(answer: &InitAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.made { "made a store at " } else { "there is a store already at " })?;
        page.ink(Ink::Strong, &answer.store)?;
        page.put("\n")
    }
}

/// Refuses a store within another, where its files would be taken for memories.
fn check_apart(root: &Path) -> Result<()> {
    let within = |folder: &&Path| folder.join(settings::FILE).is_file();
    match root.ancestors().skip(1).find(within) {
        None => Ok(()),
        Some(outer) => Err(Error::new(Kind::Invalid, format!("`{}` lies within a store", root.display()))
            .hint(format!("use that one: --store {}", outer.display()))),
    }
}

/// List the backends, and say which one is used and why
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Backends {
    /// What the backend must offer, such as concurrent_writers,encryption
    #[arg(long, value_delimiter = ',', value_name = "CAPABILITIES")]
    #[serde(default)]
    requires: Vec<String>,
}

/// The backends there are.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BackendsAnswer {
    backends: Vec<BackendRow>,
    selection: Selection,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BackendRow {
    name: String,
    about: &'static str,
    #[schemars(with = "std::collections::BTreeMap<String, bool>")]
    capabilities: Capabilities,
}

/// Which backend is used, or why none is.
#[derive(Debug, Serialize, JsonSchema)]
struct Selection {
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip)]
    kind: Option<Kind>,
}

impl Selection {
    /// Selects as opening the store would, but tells instead of failing.
    fn of(cx: &Context, requires: &[String]) -> Self {
        let chosen = || -> Result<(String, &'static str)> {
            let requires: Vec<&str> = requires.iter().map(String::as_str).collect();
            let place = cx.place().ok_or_else(|| Error::new(Kind::Invalid, "there is no store"))?;
            let selected = cx.selected(place, &requires)?;
            Ok((selected.protocol, selected.because))
        };
        let none = Selection { backend: None, because: None, problem: None, hint: None, kind: None };
        match chosen() {
            Ok((name, because)) => Selection { backend: Some(name), because: Some(because), ..none },
            Err(error) => Selection {
                problem: Some(error.message().to_owned()),
                hint: error.hint_text().map(str::to_owned),
                kind: Some(error.kind()),
                ..none
            },
        }
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        match (&self.backend, self.because, &self.problem) {
            (Some(name), Some(because), _) => {
                page.put("uses ")?;
                page.ink(Ink::Strong, name)?;
                page.line(&format!(" ({because})"))
            }
            (.., problem) => {
                page.ink(Ink::Removed, "cannot be used")?;
                page.line(&format!(": {}", problem.as_deref().unwrap_or("no backend")))?;
                self.hint.iter().try_for_each(|hint| page.line(&format!("  hint: {hint}")))
            }
        }
    }
}

impl Verb for Backends {
    const NAME: &'static str = "backends";
    const TITLE: &'static str = "List the backends";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Http];
    const REPORTS: bool = true;
    type Answer = BackendsAnswer;

    fn run(self, cx: &Context) -> Result<BackendsAnswer> {
        let known = Capabilities::default().entries().map(|(name, _)| name);
        if let Some(unknown) = self.requires.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::new(Kind::Invalid, format!("`{unknown}` is no capability"))
                .hint(format!("choose from: {}", known.join(", "))));
        }
        let registry = Registry::standard();
        let rows = registry.protocols().into_iter().filter_map(|name| {
            let registration = registry.get(name)?;
            let (about, capabilities) = (registration.about, registration.capabilities);
            Some(BackendRow { name: name.to_owned(), about, capabilities })
        });
        Ok(BackendsAnswer { backends: rows.collect(), selection: Selection::of(cx, &self.requires) })
    }

    fn show(answer: &BackendsAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for row in &answer.backends {
            page.ink(Ink::Strong, &format!("{:<14}", row.name))?;
            page.line(row.about)?;
            let offered = row.capabilities.entries().into_iter().filter(|(_, offered)| *offered);
            let names: Vec<&str> = offered.map(|(name, _)| name).collect();
            let names =
                if names.is_empty() { "nothing beyond the promises".to_owned() } else { names.join(", ") };
            page.ink(Ink::Dim, &format!("{:<14}offers {names}\n", ""))?;
        }
        page.put("\nthis store ")?;
        answer.selection.show(page)
    }

    fn failed(answer: &BackendsAnswer) -> Option<Kind> {
        answer.selection.kind
    }
}

/// Check the store, and say what to do about what is wrong
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Doctor {
    /// Mend what is safe to mend: who may read the files, damaged records, the metadata of notes
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
    const ON: &'static [On] = &[On::Cli, On::Http];
    const REPORTS: bool = true;
    type Answer = DoctorAnswer;

    fn run(self, cx: &Context) -> Result<DoctorAnswer> {
        if self.fix {
            cx.may_write()?;
        }
        let Some(place) = cx.place() else {
            return Err(Error::new(Kind::Invalid, "there is no store to check"));
        };
        let selection = Selection::of(cx, &[]);
        let mut findings = Vec::new();
        let exists = match Settings::read(&place.root) {
            Ok(Some(settings)) => {
                findings.extend(settings.unknown.keys().map(|key| unknown_key(key)));
                true
            }
            Ok(None) => {
                findings.extend(absent(place));
                false
            }
            Err(error) => {
                findings.push(failing(settings::FILE, &error));
                false
            }
        };
        let folder = exists && !place.is_url();
        let mended = if self.fix && folder { Some(modes::mend(&place.root)?) } else { None };
        let (mut mended_records, mut mended_notes) = (Vec::new(), Vec::new());
        if exists {
            match super::record::examine(cx, self.fix) {
                Ok((found, done)) => {
                    findings.extend(found);
                    mended_records = done;
                }
                Err(error) => findings.push(failing("records", &error)),
            }
            if folder {
                findings.extend(modes::check(&place.root)?);
            }
            match cx.reading().and_then(|memory| memory.store().backend().check()) {
                Ok(found) => findings.extend(found),
                Err(error) => findings.push(failing("store", &error)),
            }
            let entities = || -> Result<Vec<Finding>> {
                // Who may only read sees the lists as they are.
                if cx.may_write().is_ok() {
                    cx.knowledge()?.rebuild()?;
                }
                cx.reading_knowledge()?.check()
            };
            findings.extend(examined("knowledge", entities()));
            findings.extend(examined("graph", cx.reading_graph().and_then(|graph| graph.check())));
            if folder {
                let copies = super::conflict::examine(cx, &findings);
                findings.extend(examined("conflicts", copies));
            }
            match super::note::examine(cx, self.fix) {
                Ok((found, done)) => {
                    findings.extend(found);
                    mended_notes = done;
                }
                Err(error) => findings.push(failing("notes", &error)),
            }
        }
        let store = place.root.display().to_string();
        let found = place.how.because();
        Ok(DoctorAnswer { store, found, exists, selection, findings, mended, mended_records, mended_notes })
    }

    fn show(answer: &DoctorAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put("store ")?;
        page.ink(Ink::Strong, &answer.store)?;
        page.line(&format!(" ({})", answer.found))?;
        page.put("backend ")?;
        answer.selection.show(page)?;
        if let Some(mended) = answer.mended {
            page.line(&format!("mended the modes of {mended} files and folders"))?;
        }
        for mended in answer.mended_records.iter().chain(&answer.mended_notes) {
            page.line(&format!("mended {mended}"))?;
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
        if answer.findings.is_empty() { page.ink(Ink::Added, "all is well\n") } else { Ok(()) }
    }

    fn failed(answer: &DoctorAnswer) -> Option<Kind> {
        let bad = answer.findings.iter().any(|finding| finding.level == Level::Error);
        answer.selection.kind.or(bad.then_some(Kind::Corrupt))
    }
}

fn unknown_key(key: &str) -> Finding {
    Finding {
        level: Level::Warning,
        at: settings::FILE.to_owned(),
        what: format!("the setting `{key}` is not known, and is ignored"),
        hint: "correct its name, or use the memgrove that knows it".to_owned(),
    }
}

fn absent(place: &Place) -> Option<Finding> {
    let at = place.root.display().to_string();
    Some(match place.how {
        How::Home => Finding {
            level: Level::Info,
            at,
            what: "there is no store yet".to_owned(),
            hint: "it is made when something is first written".to_owned(),
        },
        _ => Finding {
            level: Level::Error,
            hint: format!("make one with `memgrove init {at}`"),
            what: "there is no store here".to_owned(),
            at,
        },
    })
}

/// What was found, or that nothing could be.
fn examined(at: &str, found: Result<Vec<Finding>>) -> Vec<Finding> {
    found.unwrap_or_else(|error| vec![failing(at, &error)])
}

fn failing(at: &str, error: &Error) -> Finding {
    Finding {
        level: Level::Error,
        at: at.to_owned(),
        what: error.message().to_owned(),
        hint: error.hint_text().unwrap_or("mend it, then run `memgrove doctor` again").to_owned(),
    }
}
