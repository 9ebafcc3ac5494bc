//! Looking after the index that searches use.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use memgrove::{Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::context::Context;
use crate::page::{Ink, Page, counted};
use crate::portion;

/// Show the state and location of the index
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Status {}

/// How an index stands.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusAnswer {
    documents: usize,
    files: usize,
    bytes: u64,
    folder: String,
    file: String,
    language: String,
    model: String,
    /// Files that were read anew just now.
    read: usize,
    removed: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

impl Verb for Status {
    const NAME: &'static str = "index_status";
    const TITLE: &'static str = "Show the index status";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Http];
    type Answer = StatusAnswer;

    fn run(self, cx: &Context) -> Result<StatusAnswer> {
        let status = cx.index()?.status()?;
        Ok(StatusAnswer {
            documents: status.documents,
            files: status.files,
            bytes: status.bytes,
            folder: crate::searching::folder(cx)?
                .map(|folder| folder.display().to_string())
                .unwrap_or_default(),
            file: status.file,
            language: status.language,
            model: status.model,
            read: status.synced.read,
            removed: status.synced.removed,
            unreadable: status.synced.unreadable,
        })
    }

    fn show(answer: &StatusAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let StatusAnswer { documents, files, bytes, folder, file, language, model, .. } = answer;
        page.line(&format!("{documents} documents from {files} files, {} on disk", portion::size(*bytes)))?;
        let model = if model.is_empty() { "words alone" } else { model };
        page.line(&format!("words are stemmed as {language}; meaning comes from {model}"))?;
        if file.is_empty() {
            page.ink(Ink::Dim, "it is in memory while this process runs\n")?;
        } else {
            page.ink(Ink::Dim, &format!("{folder}/{file}\n"))?;
        }
        for place in &answer.unreadable {
            page.ink(
                Ink::Warning,
                &format!("`{place}` cannot be read: what is known of it may be outdated\n"),
            )?;
        }
        Ok(())
    }
}

/// Rebuild the index, then switch to it
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Rebuild {}

/// What was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RebuildAnswer {
    documents: usize,
    files: usize,
    seconds: f64,
}

impl Verb for Rebuild {
    const NAME: &'static str = "index_rebuild";
    const TITLE: &'static str = "Rebuild the index";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli];
    type Answer = RebuildAnswer;

    fn run(self, cx: &Context) -> Result<RebuildAnswer> {
        let started = Instant::now();
        let index = cx.index()?;
        index.rebuild(&mut Bar::new("indexing").callback())?;
        let status = index.status()?;
        let seconds = (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        Ok(RebuildAnswer { documents: status.documents, files: status.files, seconds })
    }

    fn show(answer: &RebuildAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(&format!("indexed {} documents from {} files", answer.documents, answer.files))?;
        page.ink(Ink::Dim, &format!(" in {:.1} s\n", answer.seconds))
    }
}

/// Compare the index with a freshly built one
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Verify {}

/// What differs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifyAnswer {
    differences: Vec<String>,
}

impl Verb for Verify {
    const NAME: &'static str = "index_verify";
    const TITLE: &'static str = "Verify the index";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli];
    type Answer = VerifyAnswer;

    fn run(self, cx: &Context) -> Result<VerifyAnswer> {
        let found = cx.index()?.verify(&mut Bar::new("verifying").callback())?;
        Ok(VerifyAnswer { differences: found.into_iter().map(|difference| difference.what).collect() })
    }

    fn show(answer: &VerifyAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match answer.differences.len() {
            0 => page.ink(Ink::Added, "the index matches a freshly built one\n"),
            count => {
                for difference in answer.differences.iter().take(20) {
                    page.line(difference)?;
                }
                page.ink(Ink::Removed, &format!("{count} differences: `memgrove index rebuild` fixes them\n"))
            }
        }
    }

    fn failed(answer: &VerifyAnswer) -> Option<Kind> {
        (!answer.differences.is_empty()).then_some(Kind::Corrupt)
    }
}

/// Keep the index up to date while files change, until interrupted
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Watch {
    /// Milliseconds between checks
    #[arg(long, default_value_t = 500)]
    #[serde(default = "every")]
    every: u64,
    /// Stop after this many checks
    #[arg(long)]
    #[serde(default)]
    looks: Option<u64>,
}

fn every() -> u64 {
    500
}

/// What was seen.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WatchAnswer {
    looks: u64,
    read: usize,
    removed: usize,
}

impl Verb for Watch {
    const NAME: &'static str = "index_watch";
    const TITLE: &'static str = "Watch the files";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli];
    type Answer = WatchAnswer;

    /// One listing a look, through the seam: every storage can be watched, whoever changes it.
    fn run(self, cx: &Context) -> Result<WatchAnswer> {
        let index = cx.index()?;
        let mut answer = WatchAnswer { looks: 0, read: 0, removed: 0 };
        while self.looks.is_none_or(|looks| answer.looks < looks) {
            if answer.looks > 0 {
                std::thread::sleep(Duration::from_millis(self.every));
            }
            let synced = index.sync(&mut |_, _| ())?;
            if synced.read + synced.removed > 0 {
                let read = counted(synced.read, "file", "files");
                crate::notice(&format!("{read} read, {} gone", synced.removed));
            }
            answer.looks += 1;
            answer.read += synced.read;
            answer.removed += synced.removed;
        }
        Ok(answer)
    }

    fn show(answer: &WatchAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let checks = counted(answer.looks, "check", "checks");
        let read = counted(answer.read, "file", "files");
        page.line(&format!("{read} read, {} gone in {checks}", answer.removed))
    }
}

/// A bar on standard error, where a person can see it.
struct Bar {
    what: &'static str,
    shown: bool,
    last: Option<Instant>,
}

impl Bar {
    const WIDTH: usize = 30;

    fn new(what: &'static str) -> Self {
        Bar { what, shown: io::stderr().is_terminal(), last: None }
    }

    fn callback(&mut self) -> impl FnMut(usize, usize) + '_ {
        |done, total| {
            let due =
                self.last.is_none_or(|last| last.elapsed() > Duration::from_millis(50)) || done == total;
            if !self.shown || !due || total == 0 {
                return;
            }
            self.last = Some(Instant::now());
            let full = Self::WIDTH * done / total;
            let end = if done == total { "\n" } else { "" };
            let mut stderr = io::stderr().lock();
            // Whoever closed standard error does not want to know.
            let _ = write!(
                stderr,
                "\r{} [{}{}] {done} of {total} files{end}",
                self.what,
                "=".repeat(full),
                " ".repeat(Self::WIDTH - full)
            );
        }
    }
}
