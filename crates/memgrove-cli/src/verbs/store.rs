//! The store itself: making one, and the backends there are.

use std::io;
use std::path::{Path, PathBuf};

use memgrove::backend::Capabilities;
use memgrove::backends::{anthropic, object, ram};
use memgrove::registry::DEFAULT_PROTOCOL;
use memgrove::{Error, Kind, Registry, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::config::{Environment, How, Place, STORE_FOLDER, is_url};
use crate::context::{Context, located, random_id, store_inside};
use crate::page::{Ink, Page};
use crate::settings::{self, Made, Settings};

/// Create a store
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Init {
    /// Where to create it [default: ./.memgrove]
    path: Option<PathBuf>,
}

/// Where the store is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InitAnswer {
    store: String,
    /// Whether it was made now.
    made: bool,
    /// The store at home, which was used here until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_now: Option<String>,
}

impl Verb for Init {
    const NAME: &'static str = "init";
    const TITLE: &'static str = "Create a store";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli];
    type Answer = InitAnswer;

    fn run(self, cx: &Context) -> Result<InitAnswer> {
        self.path.as_deref().map_or(Ok(()), check_nameable)?;
        let root = match (self.path, cx.place()) {
            (Some(path), Some(Place { root, how: How::Flag }))
                if cx.environment().absolute(&path)? != *root =>
            {
                let (one, other) = (path.display(), root.display());
                return Err(Error::new(
                    Kind::Invalid,
                    format!("two folders are given: `{one}` and `{other}`"),
                )
                .hint("leave out --store, or the folder"));
            }
            (Some(path), _) => cx.environment().absolute(&path)?,
            (None, Some(place)) if matches!(place.how, How::Flag | How::Variable) => place.root.clone(),
            (None, _) => cx.environment().absolute(STORE_FOLDER.as_ref())?,
        };
        check_nameable(&root)?;
        check_apart(cx.environment(), &root)?;
        let backend = cx.backend_flag().or(cx.environment().backend.as_deref());
        check_makeable(backend)?;
        let until_now = match cx.place() {
            Some(Place { root: home, how: How::Home }) => Settings::read(home)?.map(|_| home),
            _ => None,
        };
        let made = settings::make_store(&root, &random_id(), backend)? == Made::Now;
        let is_used_here = made && cx.environment().find_store(None)?.root == root;
        let until_now = until_now.filter(|_| is_used_here).map(|home| home.display().to_string());
        Ok(InitAnswer { store: root.display().to_string(), made, until_now })
    }

    fn show(answer: &InitAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.made { "created a store at " } else { "there is already a store at " })?;
        page.ink(Ink::Strong, &answer.store)?;
        page.put("\n")?;
        answer.until_now.iter().try_for_each(|home| {
            page.ink(Ink::Dim, &format!("[{home}, which was used here until now, stays as it is]\n"))
        })
    }
}

/// Refuses a backend whose store is not made in a folder, or that nobody knows, before anything is made.
fn check_makeable(backend: Option<&str>) -> Result<()> {
    let (why, hint) = match backend {
        Some(ram::PROTOCOL) => {
            ("would forget everything put into it", "leave the backend out: files keep memories")
        }
        Some(object::PROTOCOL) => ("is not created this way", "use it with --store s3://bucket/prefix"),
        Some(anthropic::PROTOCOL) => {
            ("is not created this way", "use it with --store anthropic://memstore_…")
        }
        _ => return Registry::standard().select(backend, None, &[]).map(drop),
    };
    let message = format!("a store of the backend `{}` {why}", backend.unwrap_or_default());
    Err(Error::new(Kind::Invalid, message).hint(hint))
}

/// Refuses what names no folder in which a store can be opened, before anything is made.
fn check_nameable(root: &Path) -> Result<()> {
    if is_url(root) {
        let root = root.display();
        return Err(Error::new(Kind::Invalid, "a store in a bucket is created by its first change")
            .hint(format!("use it with --store {root}")));
    }
    located(root).map(drop)
}

/// Refuses a store among memories, where it would be taken for some, and one around a store, where it would
/// not be found.
fn check_apart(environment: &Environment, root: &Path) -> Result<()> {
    if environment.is_used_in_place(root) {
        let why = format!("`{}` is used in place, with a history of its own", root.display());
        return Err(Error::new(Kind::Invalid, why)
            .hint(format!("go on using it with --memories {}, or choose another folder", root.display())));
    }
    if let Some(inside) = store_inside(root) {
        let why = format!("`{}` has a store already", root.display());
        return Err(
            Error::new(Kind::Exists, why).hint(format!("there is one inside: use `{}`", inside.display()))
        );
    }
    match root.parent().and_then(|parent| environment.store_around(parent)) {
        None => Ok(()),
        Some(outer) => Err(Error::new(Kind::Invalid, format!("`{}` lies within a store", root.display()))
            .hint(format!("use that one: --store {}", outer.display()))),
    }
}

/// List the backends, and which one is used and why
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Backends {
    /// Capabilities it must offer, such as concurrent_writers,encryption
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
pub(super) struct Selection {
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip)]
    pub(super) kind: Option<Kind>,
}

impl Selection {
    /// Selects as opening the store would, but tells instead of failing.
    pub(super) fn of(cx: &Context, requires: &[String]) -> Self {
        let chosen = || -> Result<(String, &'static str)> {
            let requires: Vec<&str> = requires.iter().map(String::as_str).collect();
            let Some(place) = cx.place() else {
                return Ok((cx.backend_flag().unwrap_or(DEFAULT_PROTOCOL).to_owned(), "a folder in place"));
            };
            let selected = cx.selected(place, &requires)?;
            selected.check_service(&requires)?;
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

    pub(super) fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
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
            return Err(Error::new(Kind::Invalid, format!("`{unknown}` is not a capability"))
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
