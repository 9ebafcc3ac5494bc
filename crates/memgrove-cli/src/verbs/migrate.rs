//! Moving to memgrove, and away from it.

use std::io;
use std::path::PathBuf;

use memgrove::address::Scheme;
use memgrove::backend::{Actor, Origin};
use memgrove::shapes::entities::{Era, Exported};
use memgrove::shapes::notes::{Imported, Source, Structure};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page, counted};

/// How many links that lead nowhere are shown one by one.
const DEAD_LINKS_MAX: usize = 20;

/// Import the file of an MCP memory server
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ImportMcpMemory {
    /// The server's file, such as memory.jsonl
    path: PathBuf,
    /// Show what would happen, but change nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
}

/// What came of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportAnswer {
    entities: usize,
    /// Of these, entities that were there already.
    merged: usize,
    relations: usize,
    /// Relations whose start does not exist.
    loose: usize,
    /// Entities and relations of which nothing was new.
    known: usize,
    errors: Vec<String>,
    /// What has no place here and stays in the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    dry_run: bool,
}

impl Verb for ImportMcpMemory {
    const NAME: &'static str = "import_mcp_memory";
    const TITLE: &'static str = "Import from an MCP memory server";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli];
    type Answer = ImportAnswer;

    fn run(self, cx: &Context) -> Result<ImportAnswer> {
        let bytes = cx.text(None, Some(&self.path))?;
        let cx = cx.asked_by(Actor { origin: Origin::Import, ..cx.actor.clone() });
        let rehearse = || {
            let scratch = memgrove::Store::new(memgrove::backends::Ram::default());
            cx.reading_knowledge()?.rehearse_import(scratch, &bytes)
        };
        let planned = (self.dry_run || !cx.is_made()?).then(rehearse).transpose()?;
        let imported = match planned {
            // No store is made for an import of nothing.
            Some(planned) if self.dry_run || planned.entities + planned.relations == 0 => planned,
            _ => cx.writing_knowledge()?.import(&cx.note(Self::NAME, &Guard::default()), &bytes)?,
        };
        Ok(ImportAnswer {
            entities: imported.entities,
            merged: imported.merged,
            relations: imported.relations,
            loose: imported.loose,
            known: imported.known,
            errors: imported.errors,
            left_out: imported.left_out,
            dry_run: self.dry_run,
        })
    }

    fn show(answer: &ImportAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let done = if answer.dry_run { "would import" } else { "imported" };
        let what = match (answer.entities + answer.relations, answer.known) {
            (0, 1..) => "nothing is new".to_owned(),
            _ => format!(
                "{done} {} and {}",
                counted(answer.entities, "entity", "entities"),
                counted(answer.relations, "relation", "relations")
            ),
        };
        page.line(&format!("{what}, {}", counted(answer.errors.len(), "error", "errors")))?;
        if answer.merged > 0 {
            let merged = counted(answer.merged, "entity was", "entities were");
            page.ink(Ink::Dim, &format!("{merged} there: merged\n"))?;
        }
        if answer.known > 0 {
            let known = counted(answer.known, "entity or relation was", "entities and relations were");
            page.ink(Ink::Dim, &format!("{known} known already\n"))?;
        }
        if answer.loose > 0 {
            let loose = counted(answer.loose, "relation starts", "relations start");
            page.ink(Ink::Dim, &format!("{loose} at entities that do not exist: kept\n"))?;
        }
        for left_out in &answer.left_out {
            page.ink(Ink::Warning, &format!("left out: {left_out}\n"))?;
        }
        answer.errors.iter().try_for_each(|error| page.ink(Ink::Warning, &format!("{error}\n")))
    }

    fn failed(answer: &ImportAnswer) -> Option<Kind> {
        (!answer.errors.is_empty()).then_some(Kind::Corrupt)
    }
}

/// Import a folder of text files as notes, such as a Silica V1 memory
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(override_usage = "memgrove import silica-v1 [OPTIONS] <DIR>")]
pub(crate) struct ImportSilicaV1 {
    /// Folder to import
    #[arg(value_name = "DIR", required_unless_present = "from")]
    path: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "DIR", conflicts_with = "path", hide = true)]
    from: Option<PathBuf>,
    /// Put everything into the root memory, which splits again as needed
    #[arg(long)]
    #[serde(default)]
    flatten: bool,
    /// Show what would go where, but change nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
}

/// What went where.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportNotesAnswer {
    #[serde(flatten)]
    #[schemars(with = "serde_json::Value")]
    imported: Imported,
    dry_run: bool,
}

impl Verb for ImportSilicaV1 {
    const NAME: &'static str = "import_silica_v1";
    const TITLE: &'static str = "Import a folder of text files";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli];
    type Answer = ImportNotesAnswer;

    fn run(self, cx: &Context) -> Result<ImportNotesAnswer> {
        let given = self.path.or(self.from).unwrap_or_default();
        let folder = cx.environment().absolute(&given)?;
        let mut sources = Vec::new();
        gather(&folder, "", &mut sources)?;
        let cx = cx.asked_by(Actor { origin: Origin::Import, ..cx.actor.clone() });
        let notes = if self.dry_run { cx.rehearsing_notes()? } else { cx.writing_notes()? };
        let structure = if self.flatten { Structure::Flatten } else { Structure::Preserve };
        let done = notes.import(cx.note(Self::NAME, &Guard::default()), &sources, structure)?;
        if done.outcome.moved.is_empty() {
            let message = format!("there is no text to import in `{}`", given.display());
            let hint = match done.outcome.skipped.first() {
                Some(skipped) => format!("`{}` was left where it is: {}", skipped.path, skipped.why),
                None => "name a folder that contains text files".to_owned(),
            };
            return Err(Error::new(Kind::NotFound, message).hint(hint));
        }
        Ok(ImportNotesAnswer { imported: done.outcome, dry_run: self.dry_run })
    }

    fn show(answer: &ImportNotesAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let imported = &answer.imported;
        for moved in &imported.moved {
            let to: Vec<String> = moved.to.iter().map(|path| Scheme::Note.address(path)).collect();
            let blocks = counted(moved.blocks, "block", "blocks");
            page.line(&format!("{} -> {} ({blocks})", moved.from, to.join(", ")))?;
        }
        for skipped in &imported.skipped {
            page.ink(Ink::Warning, &format!("{} left where it is: {}\n", skipped.path, skipped.why))?;
        }
        for dead in imported.dead_links.iter().take(DEAD_LINKS_MAX) {
            page.ink(Ink::Warning, &format!("{}: [[{}]] points to no note\n", dead.from, dead.to))?;
        }
        if let Some(more) = imported.dead_links.len().checked_sub(DEAD_LINKS_MAX).filter(|more| *more > 0) {
            let more = counted(more, "more link points", "more links point");
            page.ink(Ink::Warning, &format!("{more} to no note\n"))?;
        }
        let done = if answer.dry_run { "would import" } else { "imported" };
        page.line(&format!(
            "{done} {}: {} in the result, {}",
            counted(imported.moved.len(), "file", "files"),
            match imported.blocks {
                1 => "its block is".to_owned(),
                blocks => format!("all {blocks} blocks are"),
            },
            counted(imported.new_files.len(), "new note", "new notes")
        ))
    }
}

/// Reads every file beneath a folder. Links are not followed, and what is hidden is left alone.
fn gather(folder: &std::path::Path, under: &str, sources: &mut Vec<Source>) -> Result<()> {
    let wrong = |error: io::Error| Error::from_io(error, folder.display());
    let mut entries: Vec<_> = std::fs::read_dir(folder).and_then(Iterator::collect).map_err(wrong)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            let message = format!("`{}` has a name that is not UTF-8", entry.path().display());
            return Err(Error::new(Kind::Invalid, message).hint("rename it first"));
        };
        let kind = entry.file_type().map_err(wrong)?;
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        if name.starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            gather(&entry.path(), &path, sources)?;
        } else if kind.is_file() {
            let bytes =
                std::fs::read(entry.path()).map_err(|error| Error::from_io(error, entry.path().display()))?;
            sources.push(Source { path, bytes });
        }
    }
    Ok(())
}

/// Export all entities as the file of an MCP memory server
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ExportMcpMemory {
    /// New file to write to, or - for standard output [default: -]
    path: Option<PathBuf>,
    /// Include what was superseded or has ended
    #[arg(long)]
    #[serde(default)]
    all: bool,
}

/// What was exported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExportAnswer {
    entities: usize,
    relations: usize,
    /// Observations and relations that hold no longer, and were left out.
    left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The file, unless it was written somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Verb for ExportMcpMemory {
    const NAME: &'static str = "export_mcp_memory";
    const TITLE: &'static str = "Export for an MCP memory server";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli];
    type Answer = ExportAnswer;

    fn run(self, cx: &Context) -> Result<ExportAnswer> {
        let era = if self.all { Era::Ever } else { Era::Now };
        let Exported { bytes, graph, left_out } = cx.reading_knowledge()?.export(era)?;
        let (entities, relations) = (graph.entities.len(), graph.relations.len());
        let answer = ExportAnswer { entities, relations, left_out, path: None, text: None };
        let Some(path) = self.path.filter(|path| path.as_os_str() != "-") else {
            if left_out > 0 {
                crate::notice(&past_left_out(left_out));
            }
            return Ok(ExportAnswer { text: Some(String::from_utf8_lossy(&bytes).into_owned()), ..answer });
        };
        let path = cx.environment().absolute(&path)?;
        place_new(&path, &bytes)?;
        Ok(ExportAnswer { path: Some(path.display().to_string()), ..answer })
    }

    fn show(answer: &ExportAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match &answer.path {
            None => page.bytes(answer.text.as_deref().unwrap_or_default().as_bytes()),
            Some(path) => {
                page.line(&format!(
                    "wrote {} and {} to {path}",
                    counted(answer.entities, "entity", "entities"),
                    counted(answer.relations, "relation", "relations")
                ))?;
                match answer.left_out {
                    0 => Ok(()),
                    left_out => page.ink(Ink::Warning, &format!("{}\n", past_left_out(left_out))),
                }
            }
        }
    }
}

fn past_left_out(count: usize) -> String {
    format!("left out what is no longer true ({count}): `--all` includes it")
}

/// Writes a file outside the store, where nothing is yet.
pub(super) fn place_new(path: &std::path::Path, bytes: &[u8]) -> Result<()> {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = opened.and_then(|mut file| {
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::new(Kind::Exists, format!("`{}` already exists", path.display()))
                .hint("name a file that does not exist yet")
        }
        _ => Error::from_io(error, path.display()),
    })
}
