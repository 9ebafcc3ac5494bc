//! Where the store is, what carries it, and how often the cache helps.

use std::io;

use memgrove::backends::Cached;
use memgrove::backends::cached::Rates;
use memgrove::{Locator, Memory, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::context::Context;
use crate::mounts;
use crate::page::{Ink, Page, counted};
use crate::settings;

/// Show where the store is, what it holds, and how often the cache helps
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Status {}

/// The state of a store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusAnswer {
    store: String,
    found: &'static str,
    /// Whether it was made yet.
    exists: bool,
    backend: String,
    because: &'static str,
    /// Where the backend keeps it.
    location: String,
    files: usize,
    bytes: u64,
    /// What the history takes on this machine, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_bytes: Option<u64>,
    /// The records, where they are in a mounted folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<MountedRecords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, u64>>")]
    cache: Option<Rates>,
}

/// A folder that the store mounts.
#[derive(Debug, Serialize, JsonSchema)]
struct MountedRecords {
    location: String,
    files: usize,
    bytes: u64,
}

impl MountedRecords {
    fn of(cx: &Context) -> Result<Option<Self>> {
        let (Some(folder), Some(records)) = (mounts::folder(cx)?, mounts::mounted(cx)?) else {
            return Ok(None);
        };
        let (files, bytes) = held(records.memory())?;
        Ok(Some(MountedRecords { location: folder.display().to_string(), files, bytes }))
    }
}

/// How many files a memory holds, and their bytes.
fn held(memory: &Memory) -> Result<(usize, u64)> {
    let all = memory.store().list_all(&Locator::root())?;
    let own = [settings::FILE, settings::GITIGNORE_FILE];
    let files = || all.iter().filter(|info| !info.is_dir() && !own.contains(&info.locator.key()));
    Ok((files().count(), files().map(|info| info.size).sum()))
}

impl Verb for Status {
    const NAME: &'static str = "status";
    const TITLE: &'static str = "Show the status";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Http];
    type Answer = StatusAnswer;

    fn run(self, cx: &Context) -> Result<StatusAnswer> {
        let (files, bytes) = held(&cx.reading()?)?;
        let place = cx.place().ok_or_else(|| {
            memgrove::Error::new(memgrove::Kind::Invalid, "a folder that is used in place has no status")
        })?;
        let selected = cx.selected(place, &[])?;
        Ok(StatusAnswer {
            store: place.root.display().to_string(),
            found: place.how.because(),
            exists: cx.is_made()?,
            cache: selected.cache_folder()?.map(Cached::rates_in),
            history_bytes: selected.history_bytes(),
            backend: selected.protocol,
            because: selected.because,
            location: selected.location,
            files,
            bytes,
            records: MountedRecords::of(cx)?,
        })
    }

    fn show(answer: &StatusAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put("store ")?;
        page.ink(Ink::Strong, &answer.store)?;
        page.line(&format!(" ({})", answer.found))?;
        if !answer.exists {
            return page.line("there is no store yet: it is created on the first write");
        }
        page.line(&format!("backend uses {} ({})", answer.backend, answer.because))?;
        if answer.location != answer.store {
            page.line(&format!("kept at {}", answer.location))?;
        }
        page.line(&format!("{}, {} bytes", counted(answer.files, "file", "files"), answer.bytes))?;
        if let Some(bytes) = answer.history_bytes {
            page.line(&format!("history of {bytes} bytes"))?;
        }
        if let Some(MountedRecords { location, files, bytes }) = &answer.records {
            page.line(&format!("records are mounted from {location}: {files} files, {bytes} bytes"))?;
        }
        let Some(rates) = answer.cache else { return Ok(()) };
        let rate = rates
            .hit_rate()
            .map_or("no reads yet".to_owned(), |rate| format!("{:.0} % of reads", rate * 100.0));
        page.line(&format!(
            "cache helped with {rate}: {} without asking, {} after asking for the version, {} fetched; {} bytes saved",
            rates.hits, rates.checked, rates.misses, rates.bytes_saved
        ))
    }
}
