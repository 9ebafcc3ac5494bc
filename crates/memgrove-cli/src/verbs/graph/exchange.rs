//! Several changes at once, and the graph handed on and taken over.

use std::io;
use std::path::PathBuf;

use memgrove::address::Scheme;
use memgrove::backend::{Actor, Origin};
use memgrove::shapes::graph::{Contents, Existing, Form, Imported, Operation, Outcome, Ways};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{Context, Guard, Input};
use crate::page::{Ink, Page, counted};
use crate::verbs::migrate::place_new;
use crate::verbs::node::id_of;
use crate::verbs::several::{Kin, Several};
use crate::verbs::{Effect, On, Verb};

/// Apply several graph changes as one: all or none
///
/// Operations, each an object with `op`: create_node (type), update_node and edit_node (id, set, unset, edit),
/// delete_node (id, cascade), connect (from, type, to), update_connection, edit_connection, disconnect (id).
/// A step with `"as": "a"` gives what it makes a name; later steps refer to it as `@a`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphBatch {
    /// {"op":"create_node","as":"a","type":…}, {"op":"connect","from":"@a","type":…,"to":…}; also update_node (id, set, unset), edit_node (id, edit), delete_node (id, cascade), update_connection, edit_connection, disconnect (id)
    #[arg(skip)]
    operations: Vec<Value>,
    #[command(flatten)]
    #[serde(flatten)]
    several: Several,
}

/// How many ids are named.
const NAMED_MAX: usize = 5;

const OPERATIONS: Kin =
    Kin { name: "operations", example: r#"{"op":"create_node","as":"a","type":"project"}"# };

/// What a batch did, operation by operation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BatchAnswer {
    #[schemars(with = "Vec<Value>")]
    results: Vec<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for GraphBatch {
    const NAME: &'static str = "graph_batch";
    const TITLE: &'static str = "Change the graph in one batch";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = BatchAnswer;

    fn run(self, cx: &Context) -> Result<BatchAnswer> {
        let read =
            |value| serde_json::from_value::<Operation>(value).map_err(|error| OPERATIONS.unfit(&error));
        let operations = self.several.each(cx, &OPERATIONS, self.operations, read)?;
        let done = cx.writing_graph()?.batch(cx.note(Self::NAME, &self.several.guard()), &operations)?;
        let change = done.change.map(|change| change.as_str().to_owned());
        Ok(BatchAnswer { results: done.outcome, change, replayed: done.replayed })
    }

    fn show(answer: &BatchAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for result in &answer.results {
            match result {
                Outcome::Node(node) => page.line(&Scheme::Node.address(&node.id))?,
                Outcome::Connection(one) => {
                    page.line(&format!("{} ({} -{}-> {})", one.id, one.from, one.kind, one.to))?;
                }
                Outcome::Removed(removed) => page.line(&format!("deleted node:{}", removed.id))?,
            }
        }
        match (&answer.change, answer.replayed) {
            (_, true) => page.ink(Ink::Dim, "done before with this key\n"),
            (Some(change), _) => page.ink(Ink::Dim, &format!("all in change {change}\n")),
            (None, _) => page.line("nothing to do"),
        }
    }
}

/// Export the graph as JSON, GraphML, DOT or Mermaid
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphExport {
    /// json, graphml, dot or mermaid
    #[arg(long, default_value = "json", value_parser = Form::ALL.map(Form::name), hide_possible_values = true)]
    #[serde(default = "json")]
    form: String,
    /// Only the part around these nodes
    #[arg(long = "around", value_name = "ID")]
    #[serde(default)]
    around: Vec<String>,
    /// How many connections to follow
    #[arg(long, default_value_t = 1)]
    #[serde(default = "one")]
    depth: usize,
    /// New file to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    to: Option<PathBuf>,
}

fn json() -> String {
    "json".to_owned()
}

fn one() -> usize {
    1
}

/// What was exported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExportAnswer {
    nodes: usize,
    connections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Verb for GraphExport {
    const NAME: &'static str = "graph_export";
    const TITLE: &'static str = "Export the graph";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = ExportAnswer;

    fn run(self, cx: &Context) -> Result<ExportAnswer> {
        let form = Form::ALL.into_iter().find(|form| form.name() == self.form).ok_or_else(|| {
            Error::new(Kind::Invalid, format!("`{}` is not a form", self.form.escape_debug()))
                .hint("choose from: json, graphml, dot, mermaid")
        })?;
        let graph = cx.reading_graph()?;
        let ids: Vec<String> = self.around.iter().map(|id| id_of(id).to_owned()).collect();
        let part = match ids.is_empty() {
            true => None,
            false => Some(graph.part(&ids, self.depth, &Ways::default())?),
        };
        let snapshot = graph
            .snapshot(part.as_ref(), if form == Form::Json { Contents::Whole } else { Contents::None })?;
        let text = form.print(&snapshot);
        let (nodes, connections) = (snapshot.nodes.len(), snapshot.connections.len());
        let Some(path) = self.to else {
            return Ok(ExportAnswer { nodes, connections, path: None, text: Some(text) });
        };
        let path = cx.environment().absolute(&path)?;
        place_new(&path, text.as_bytes())?;
        Ok(ExportAnswer { nodes, connections, path: Some(path.display().to_string()), text: None })
    }

    fn show(answer: &ExportAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match (&answer.path, &answer.text) {
            (Some(path), _) => page.line(&format!(
                "wrote {} and {} to {path}",
                counted(answer.nodes, "node", "nodes"),
                counted(answer.connections, "connection", "connections")
            )),
            (None, text) => page.bytes(text.as_deref().unwrap_or_default().as_bytes()),
        }
    }
}

/// Import a graph from JSON: an export or a registry
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphImport {
    /// {"nodes":[{id,type,properties,content}],"connections":[{type,from,to}]}
    #[arg(skip)]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    graph: Option<Value>,
    /// JSON file to import [default: standard input]
    #[serde(skip)]
    path: Option<PathBuf>,
    /// If an entry exists: skip, replace or refuse
    #[arg(long, default_value = "skip", value_parser = ["skip", "replace", "refuse"], hide_possible_values = true)]
    #[serde(default = "skip")]
    existing: String,
}

fn skip() -> String {
    "skip".to_owned()
}

/// What came of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportAnswer {
    #[serde(flatten)]
    #[schemars(with = "Value")]
    imported: Imported,
}

impl Verb for GraphImport {
    const NAME: &'static str = "graph_import";
    const TITLE: &'static str = "Import a graph";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = ImportAnswer;

    fn run(self, cx: &Context) -> Result<ImportAnswer> {
        let existing =
            serde_json::from_value::<Existing>(Value::from(self.existing.as_str())).map_err(|_| {
                Error::new(
                    Kind::Invalid,
                    format!("`{}` is not skip, replace or refuse", self.existing.escape_debug()),
                )
            })?;
        let bytes = match (self.graph, cx.input) {
            (Some(graph), _) => graph.to_string().into_bytes(),
            (None, Input::Terminal) => cx.text(None, self.path.as_deref())?,
            (None, Input::None) => return Err(Error::new(Kind::Invalid, "`graph` is missing")),
        };
        let cx = cx.asked_by(Actor { origin: Origin::Import, ..cx.actor.clone() });
        let note = cx.note(Self::NAME, &Guard::default());
        Ok(ImportAnswer { imported: cx.writing_graph()?.import(&note, &bytes, existing)? })
    }

    fn show(answer: &ImportAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let Imported { nodes, connections, replaced, skipped, without_content, errors } = &answer.imported;
        page.line(&format!(
            "imported {nodes} nodes and {connections} connections, replaced {replaced}, skipped {skipped}, {} errors",
            errors.len()
        ))?;
        if !without_content.is_empty() {
            let shown = without_content.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            let more = if without_content.len() > NAMED_MAX { ", …" } else { "" };
            let what = format!("[imported without content, which the file does not have: {shown}{more}]\n");
            page.ink(Ink::Warning, &what)?;
        }
        errors.iter().try_for_each(|error| page.ink(Ink::Warning, &format!("{error}\n")))
    }

    fn failed(answer: &ImportAnswer) -> Option<Kind> {
        (!answer.imported.errors.is_empty()).then_some(Kind::Invalid)
    }
}
