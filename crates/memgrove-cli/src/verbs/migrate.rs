//! Moving to memgrove, and away from it.

use std::io;
use std::path::PathBuf;

use memgrove::backend::{Actor, Origin};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};

/// Take over the file of an MCP memory server
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ImportMcpMemory {
    /// The server's file, such as memory.jsonl
    path: PathBuf,
    /// Say what would come of it, and change nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
}

/// What came of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportAnswer {
    entities: usize,
    relations: usize,
    /// Relations whose start does not exist.
    loose: usize,
    errors: Vec<String>,
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
        let imported = match self.dry_run {
            true => cx
                .reading_knowledge()?
                .rehearse_import(memgrove::Store::new(memgrove::backends::Ram::default()), &bytes)?,
            false => cx.knowledge()?.import(&cx.note(Self::NAME, &Guard::default()), &bytes)?,
        };
        let (entities, relations, loose) = (imported.entities, imported.relations, imported.loose);
        Ok(ImportAnswer { entities, relations, loose, errors: imported.errors, dry_run: self.dry_run })
    }

    fn show(answer: &ImportAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let done = if answer.dry_run { "would import" } else { "imported" };
        page.line(&format!(
            "{done} {} entities and {} relations, {} errors",
            answer.entities,
            answer.relations,
            answer.errors.len()
        ))?;
        if answer.loose > 0 {
            page.ink(
                Ink::Dim,
                &format!("{} relations start at entities that do not exist: kept\n", answer.loose),
            )?;
        }
        answer.errors.iter().try_for_each(|error| page.ink(Ink::Warning, &format!("{error}\n")))
    }

    fn failed(answer: &ImportAnswer) -> Option<Kind> {
        (!answer.errors.is_empty()).then_some(Kind::Corrupt)
    }
}

/// Write all entities as the file of an MCP memory server
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ExportMcpMemory {
    /// The file, which must not exist [default: standard output]
    path: Option<PathBuf>,
}

/// What was exported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExportAnswer {
    entities: usize,
    relations: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip)]
    bytes: Vec<u8>,
}

impl Verb for ExportMcpMemory {
    const NAME: &'static str = "export_mcp_memory";
    const TITLE: &'static str = "Export for an MCP memory server";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli];
    type Answer = ExportAnswer;

    fn run(self, cx: &Context) -> Result<ExportAnswer> {
        let (bytes, graph) = cx.reading_knowledge()?.export()?;
        let (entities, relations) = (graph.entities.len(), graph.relations.len());
        let Some(path) = self.path else {
            return Ok(ExportAnswer { entities, relations, path: None, bytes });
        };
        let path = cx.environment().absolute(&path)?;
        place_new(&path, &bytes)?;
        Ok(ExportAnswer { entities, relations, path: Some(path.display().to_string()), bytes: Vec::new() })
    }

    fn show(answer: &ExportAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match &answer.path {
            None => page.bytes(&answer.bytes),
            Some(path) => page.line(&format!(
                "wrote {} entities and {} relations to {path}",
                answer.entities, answer.relations
            )),
        }
    }
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
