//! Carrying a store to another place, or to another backend.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use memgrove::backends::ram;
use memgrove::clock::SystemClock;
use memgrove::copy::{Copied, Differing, Progress, copy};
use memgrove::registry::OpenRequest;
use memgrove::{Error, Kind, Locator, Memory, Registry, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Effect, On, Verb};
use crate::context::{Context, Guard, Input, random_id};
use crate::page::{Ink, Page};
use crate::portion;
use crate::settings;

/// What every store has of its own.
const OWN: [&str; 2] = [settings::FILE, ".gitignore"];

/// Copy all memories of a store into another, on any backend
///
/// A store is a folder, an address such as s3://bucket/prefix, or PROTOCOL:FOLDER (`memgrove backends`
/// lists the protocols). Every file is read back and compared by its hash. Copy again to go on where a copy
/// was cut off. Settings stay with each store; the history does not go along.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Copy {
    /// The store to copy [default: this one]
    #[arg(long, value_name = "STORE")]
    from: Option<String>,
    /// The store to copy into; a folder is made
    #[arg(long, value_name = "STORE")]
    to: String,
    /// Replace files that are there already and differ
    #[arg(long)]
    #[serde(default)]
    replace: bool,
}

/// What was copied.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CopyAnswer {
    #[serde(flatten)]
    #[schemars(with = "Value")]
    copied: Copied,
    to: String,
}

impl Verb for Copy {
    const NAME: &'static str = "copy";
    const TITLE: &'static str = "Copy a store";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli];
    type Answer = CopyAnswer;

    fn run(self, cx: &Context) -> Result<CopyAnswer> {
        let from = match &self.from {
            Some(given) => opened(cx, given, Made::Before)?,
            None => cx.reading()?,
        };
        let to = opened(cx, &self.to, Made::Now)?;
        if Arc::ptr_eq(from.store().backend(), to.store().backend()) || self.from.as_ref() == Some(&self.to) {
            return Err(Error::new(Kind::Invalid, "a store cannot be copied into itself")
                .hint("name another with --to"));
        }
        let skip = OWN.map(|name| Locator::new(name).expect("a plain name is a locator"));
        let differing = if self.replace { Differing::Replace } else { Differing::Keep };
        let note = cx.note(
            Self::NAME,
            &Guard { reason: self.from.map(|from| format!("from {from}")), ..Guard::default() },
        );
        let mut bar = Bar::new();
        let copied = copy(from.store(), &to, &note, differing, &skip, &mut |progress| bar.show(progress));
        bar.clear();
        Ok(CopyAnswer { copied: copied?, to: self.to })
    }

    fn show(answer: &CopyAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let Copied { files, bytes, replaced, same, differing, refused, passed_over } = &answer.copied;
        page.put(&format!("copied {files} files ({}) to ", portion::size(*bytes)))?;
        page.ink(Ink::Strong, &answer.to)?;
        page.line(&format!(": each read back and the same; {same} were there already, {replaced} replaced"))?;
        for at in differing {
            page.ink(
                Ink::Warning,
                &format!("{at}: another file is there, and stays: --replace replaces it\n"),
            )?;
        }
        for why in refused {
            page.ink(Ink::Warning, &format!("not copied: {why}\n"))?;
        }
        passed_over
            .iter()
            .try_for_each(|at| page.ink(Ink::Warning, &format!("{at}: no regular file, not copied\n")))
    }

    fn failed(answer: &CopyAnswer) -> Option<Kind> {
        match (answer.copied.refused.is_empty(), answer.copied.differing.is_empty()) {
            (false, _) => Some(Kind::Invalid),
            (true, false) => Some(Kind::Exists),
            (true, true) => None,
        }
    }
}

/// When a store that is a folder must have been made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Before,
    Now,
}

/// The memory of a store that is named by its folder, or by a protocol and a location.
fn opened(cx: &Context, given: &str, made: Made) -> Result<Memory> {
    let (environment, registry) = (cx.environment().clone(), Registry::standard());
    let over = |place: &Path, backend: Option<&str>| {
        let there = Context::new(
            environment.clone(),
            Some(place),
            backend.map(str::to_owned),
            cx.actor.clone(),
            Input::None,
        )?;
        match made {
            Made::Before => there.reading(),
            Made::Now => there.writing(),
        }
    };
    if given.contains("://") {
        return over(Path::new(given), None);
    }
    let named = given.split_once(':').filter(|(protocol, _)| registry.contains(protocol));
    if let Some((protocol @ ram::PROTOCOL, location)) = named
        && let Some(registration) = registry.get(protocol)
    {
        let clock = Arc::new(SystemClock);
        let (location, settings) = (location.to_owned(), BTreeMap::new());
        let request = OpenRequest { location, state: None, settings, clock: clock.clone() };
        return Ok(Memory::new(Store::shared((registration.open)(&request)?), clock));
    }
    let (protocol, folder) = named.map_or((None, given), |(protocol, folder)| (Some(protocol), folder));
    let root = environment.absolute(Path::new(folder))?;
    if made == Made::Now {
        settings::make_store(&root, &random_id(), protocol)?;
    }
    over(&root, protocol)
}

/// How far it has come, on a terminal alone.
struct Bar {
    shown: bool,
    percent: Option<u64>,
}

impl Bar {
    fn new() -> Self {
        Bar { shown: io::stderr().is_terminal(), percent: None }
    }

    fn show(&mut self, progress: &Progress) {
        let percent = progress.bytes * 100 / progress.bytes_total.max(1);
        if !self.shown || self.percent == Some(percent) {
            return;
        }
        self.percent = Some(percent);
        let filled = usize::try_from(percent / 5).unwrap_or(20).min(20);
        let (files, total) = (progress.files, progress.files_total);
        let line = format!(
            "\r[{}{}] {percent:>3}%  {files} of {total} files",
            "#".repeat(filled),
            "-".repeat(20 - filled)
        );
        // Whoever closed standard error does not want to know.
        let _ = io::stderr().write_all(line.as_bytes());
    }

    fn clear(&self) {
        if self.shown && self.percent.is_some() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
