//! Every verb once: a struct whose doc comments are the help of the command line and the
//! description of the MCP tool. Adding a verb is one struct and one line in [`TABLE`].

pub(crate) mod conflict;
pub(crate) mod connection;
mod consent;
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod doctor;
mod done;
pub(crate) mod entity;
pub(crate) mod eval;
pub(crate) mod file;
pub(crate) mod graph;
pub(crate) mod index;
pub(crate) mod memory;
pub(crate) mod migrate;
mod more;
pub(crate) mod node;
pub(crate) mod note;
pub(crate) mod past;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod recall;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod remember;
pub(crate) mod several;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod undo;

use std::io;

use clap::ArgMatches;
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::{Context, is_blank};
use crate::page::Page;
use done::{show_change, show_facts};

/// The verbs, in the order in which help and tools list them.
pub(crate) const TABLE: &[Entry] = &[
    entry::<store::Init>(),
    entry::<remember::Remember>(),
    entry::<recall::Recall>(),
    entry::<read::Read>(),
    entry::<remember::Forget>(),
    entry::<recall::BriefVerb>(),
    entry::<recall::Similar>(),
    entry::<read::Find>(),
    entry::<note::NoteRead>(),
    entry::<note::NoteWrite>(),
    entry::<note::NoteSearch>(),
    entry::<note::NoteList>(),
    entry::<note::NoteGraph>(),
    entry::<note::NoteSplit>(),
    entry::<note::NoteMerge>(),
    entry::<note::NoteLog>(),
    entry::<record::Add>(),
    entry::<record::AddMany>(),
    entry::<record::Get>(),
    entry::<record::List>(),
    entry::<record::Update>(),
    entry::<record::Archive>(),
    entry::<record::Restore>(),
    entry::<record::Delete>(),
    entry::<record::Due>(),
    entry::<record::Stats>(),
    entry::<record::RestoreBackup>(),
    entry::<record::Migrate>(),
    entry::<entity::EntityStore>(),
    entry::<entity::EntityLoad>(),
    entry::<entity::EntitySearch>(),
    entry::<entity::EntityWalk>(),
    entry::<entity::EntityDelete>(),
    entry::<entity::EntityBatch>(),
    entry::<entity::EntityLearn>(),
    entry::<entity::EntityRole>(),
    entry::<entity::EntityPattern>(),
    entry::<node::NodeCreate>(),
    entry::<node::NodeRead>(),
    entry::<node::NodeUpdate>(),
    entry::<node::NodeEdit>(),
    entry::<node::NodeDelete>(),
    entry::<node::NodeList>(),
    entry::<connection::ConnectionCreate>(),
    entry::<connection::ConnectionRead>(),
    entry::<connection::ConnectionUpdate>(),
    entry::<connection::ConnectionEdit>(),
    entry::<connection::ConnectionDelete>(),
    entry::<connection::ConnectionList>(),
    entry::<graph::GraphNeighbours>(),
    entry::<graph::GraphPath>(),
    entry::<graph::GraphSubgraph>(),
    entry::<graph::GraphBatch>(),
    entry::<graph::GraphExport>(),
    entry::<graph::GraphImport>(),
    entry::<graph::GraphOntology>(),
    entry::<graph::GraphCheck>(),
    entry::<file::View>(),
    entry::<file::Create>(),
    entry::<file::Replace>(),
    entry::<file::Insert>(),
    entry::<file::Delete>(),
    entry::<file::Rename>(),
    entry::<file::Batch>(),
    entry::<memory::MemoryCommand>(),
    entry::<past::History>(),
    entry::<prune::HistoryPrune>(),
    entry::<diff::Diff>(),
    entry::<undo::Restore>(),
    entry::<undo::Undo>(),
    entry::<redact::Redact>(),
    entry::<status::Status>(),
    entry::<doctor::Doctor>(),
    entry::<index::Status>(),
    entry::<index::Rebuild>(),
    entry::<index::Verify>(),
    entry::<index::Watch>(),
    entry::<conflict::Conflicts>(),
    entry::<conflict::ConflictsMerge>(),
    entry::<conflict::MergeDriver>(),
    entry::<migrate::ImportMcpMemory>(),
    entry::<migrate::ImportSilicaV1>(),
    entry::<migrate::ExportMcpMemory>(),
    entry::<copy::Copy>(),
    entry::<store::Backends>(),
    entry::<eval::Retrieval>(),
];

/// Arguments that a verb's schema may leave out to save tokens in every conversation, with their types.
const UNTOLD: [(&str, &str); 6] = [
    ("expect", "string"),
    ("key", "string"),
    ("reason", "string"),
    ("limit", "integer"),
    ("all", "boolean"),
    ("explain", "boolean"),
];

/// One verb: what it takes, what it does, and how its answer reads.
pub(crate) trait Verb: clap::Args + DeserializeOwned + JsonSchema + std::fmt::Debug + Sized {
    /// The name on the wire; on the command line its words are separate: `memgrove file view`.
    const NAME: &'static str;
    /// The name of the MCP tool, where it differs.
    const TOOL: &'static str = Self::NAME;
    /// The name that people see in a client.
    const TITLE: &'static str;
    /// How it affects the store.
    const EFFECT: Effect;
    /// The arguments with which an otherwise read-only verb changes something.
    const CHANGES_BY: &'static [&'static str] = &[];
    /// Where it is offered.
    const ON: &'static [On];
    /// Whether agents get the answer as text only: as data too, it would cost them twice.
    const TEXT_ONLY: bool = false;
    /// Whether it reports what is wrong: finding something is then no failure of the verb.
    const REPORTS: bool = false;
    /// Whether it is nothing but a search: only a few searches run at once.
    const SEARCHES: bool = false;
    /// Whether its answer holds more than the version in it covers, so that no cache may reuse it.
    const TELLS_MORE: bool = false;
    /// What it answers.
    type Answer: Serialize + JsonSchema;

    /// Runs the verb.
    fn run(self, cx: &Context) -> Result<Self::Answer>;

    /// Shows the answer to a person, and as text to an agent.
    fn show(answer: &Self::Answer, page: &mut Page<'_>) -> io::Result<()>;

    /// The kind of failure that the answer itself reports, if any.
    fn failed(_answer: &Self::Answer) -> Option<Kind> {
        None
    }
}

/// What a verb does to the store, as clients want to know before they let an agent use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Read,
    /// It adds; nothing that was there is gone.
    Add,
    /// It may replace or remove (which the history keeps).
    Remove,
}

/// Where a verb is offered: at the command line, over HTTP, or in sets of MCP tools, which `--tools`
/// names and explains by these words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum On {
    /// The command line.
    #[value(skip)]
    Cli,
    /// The HTTP API, beside every verb that is an MCP tool.
    #[value(skip)]
    Http,
    /// What most agents need
    Core,
    /// For agents that know Anthropic's Memory Tool
    Files,
    /// For agents that keep records
    Records,
    /// For agents that keep entities and relations
    Entities,
    /// For agents that keep a graph of nodes and connections
    Graph,
    /// For agents that keep notes: one memory that grows
    Notes,
    /// Only the tools of the MCP memory server, on this store or the file at MEMORY_FILE_PATH
    Kg,
    /// Every tool except those of the MCP memory server
    All,
}

/// A verb as the surfaces see it.
pub(crate) struct Entry {
    /// As [`Verb::NAME`].
    pub(crate) name: &'static str,
    /// As [`Verb::TOOL`].
    pub(crate) tool: &'static str,
    /// As [`Verb::TITLE`].
    pub(crate) title: &'static str,
    /// As [`Verb::EFFECT`].
    pub(crate) effect: Effect,
    /// As [`Verb::CHANGES_BY`].
    pub(crate) changes_by: &'static [&'static str],
    /// As [`Verb::ON`].
    pub(crate) on: &'static [On],
    /// As [`Verb::TEXT_ONLY`].
    pub(crate) text_only: bool,
    /// As [`Verb::REPORTS`].
    pub(crate) reports: bool,
    /// As [`Verb::SEARCHES`].
    pub(crate) searches: bool,
    /// As [`Verb::TELLS_MORE`].
    pub(crate) tells_more: bool,
    /// Adds the verb's arguments and help to a command.
    pub(crate) augment: fn(clap::Command) -> clap::Command,
    /// The schema of what it takes.
    pub(crate) input: fn() -> schemars::Schema,
    /// The schema of what it answers.
    pub(crate) output: fn() -> schemars::Schema,
    /// Runs it with the arguments of a command line.
    pub(crate) run_matches: fn(&ArgMatches, &Context) -> Result<Box<dyn Reply>>,
    /// Runs it with the arguments of a tool call.
    pub(crate) run_json: fn(Value, &Context) -> Result<Box<dyn Reply>>,
}

/// An answer, whatever verb it is of.
pub(crate) trait Reply: Send {
    /// The answer as JSON.
    fn json(&self) -> Value;
    /// Writes the answer as JSON, its fields in their own order.
    fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()>;
    /// The answer for people.
    fn show(&self, page: &mut Page<'_>) -> io::Result<()>;
    /// The kind of failure that it reports, if any.
    fn failed(&self) -> Option<Kind>;
    /// Whether an agent is answered in text alone.
    fn is_text_only(&self) -> bool;
}

struct Replied<V: Verb>(V::Answer);

impl<V: Verb> Reply for Replied<V>
where
    V::Answer: Send,
{
    fn json(&self) -> Value {
        serde_json::to_value(&self.0).expect("answers are plain data with text keys")
    }

    fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        Ok(serde_json::to_writer(out, &self.0)?)
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        V::show(&self.0, page)
    }

    fn failed(&self) -> Option<Kind> {
        V::failed(&self.0)
    }

    fn is_text_only(&self) -> bool {
        V::TEXT_ONLY
    }
}

const fn entry<V>() -> Entry
where
    V: Verb + 'static,
    V::Answer: Send,
{
    Entry {
        name: V::NAME,
        tool: V::TOOL,
        title: V::TITLE,
        effect: V::EFFECT,
        changes_by: V::CHANGES_BY,
        on: V::ON,
        text_only: V::TEXT_ONLY,
        reports: V::REPORTS,
        searches: V::SEARCHES,
        tells_more: V::TELLS_MORE,
        augment: |command| <V as clap::Args>::augment_args(command),
        input: || schema::<V>(SchemaSettings::draft2020_12().for_deserialize()),
        output: || schema::<V::Answer>(SchemaSettings::draft2020_12().for_serialize()),
        run_matches: |matches, cx| {
            let verb = V::from_arg_matches(matches).map_err(|error| invalid(error.to_string()))?;
            let key = matches.try_get_one::<String>("key").ok().flatten();
            answered(verb, key.map(String::as_str), cx)
        },
        run_json: |arguments, cx| {
            let key = arguments.get("key").and_then(Value::as_str).map(str::to_owned);
            let verb: V = serde_json::from_value(arguments)
                .map_err(|error| invalid(format!("invalid arguments for `{}`: {error}", V::NAME)))?;
            answered(verb, key.as_deref(), cx)
        },
    }
}

/// Runs a verb. With a key, notes what was asked, so that another request does not pass for a repeat.
fn answered<V>(verb: V, key: Option<&str>, cx: &Context) -> Result<Box<dyn Reply>>
where
    V: Verb + 'static,
    V::Answer: Send,
{
    let asking = key.filter(|key| !is_blank(key)).map(|_| cx.asking(&verb));
    Ok(Box::new(Replied::<V>(verb.run(asking.as_ref().unwrap_or(cx))?)))
}

/// A schema without references.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> schemars::Schema {
    settings.with(|settings| settings.inline_subschemas = true).into_generator().into_root_schema_for::<T>()
}

fn invalid(message: String) -> Error {
    Error::new(Kind::Invalid, message)
}

impl Entry {
    /// Whether it is offered there.
    pub(crate) fn is_on(&self, on: On) -> bool {
        self.on.contains(&on)
    }

    /// The type of an argument that the verb takes but its schema leaves out.
    pub(crate) fn untold(&self, argument: &str) -> Option<&'static str> {
        let (_, kind) = UNTOLD.iter().find(|(name, _)| *name == argument)?;
        let command = (self.augment)(clap::Command::new(self.name));
        command.get_arguments().any(|known| known.get_id() == argument).then_some(*kind)
    }

    /// The schema with every argument, for readers to whom its length costs nothing.
    pub(crate) fn whole_input(&self) -> Value {
        let mut schema = (self.input)().to_value();
        let command = (self.augment)(clap::Command::new(self.name));
        for known in command.get_arguments() {
            let untold = UNTOLD.iter().find(|(name, _)| known.get_id() == *name);
            let Some((name, kind)) = untold.filter(|(name, _)| schema["properties"].get(name).is_none())
            else {
                continue;
            };
            let words = known.get_help().map(ToString::to_string).unwrap_or_default();
            schema["properties"][name] = serde_json::json!({"type": kind, "description": words});
        }
        schema
    }
}

/// The error for an argument that a verb does not take, which tells what it does take.
pub(crate) fn not_taken(verb: &str, argument: &str, known: Option<&serde_json::Map<String, Value>>) -> Error {
    let names: Vec<&str> = known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect();
    Error::new(Kind::Invalid, format!("`{verb}` takes no argument `{}`", argument.escape_default()))
        .hint(format!("it takes: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left out means the same at the command line and over HTTP and MCP.
    #[test]
    fn defaults_are_the_same_everywhere() {
        let mut compared = 0;
        for entry in TABLE {
            let schema = (entry.input)().to_value();
            let command = (entry.augment)(clap::Command::new(entry.name));
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                let (Some(said), Some(told)) = (
                    argument.get_default_values().first().and_then(|value| value.to_str()),
                    schema["properties"].get(argument.get_id().as_str()),
                ) else {
                    continue;
                };
                let told = match &told["default"] {
                    // The verb itself supplies the default.
                    Value::Null => continue,
                    Value::String(text) => text.clone(),
                    told => told.to_string(),
                };
                assert_eq!(told, said, "`{}` of {}", argument.get_id(), entry.name);
                compared += 1;
            }
        }
        assert!(compared > 15, "only {compared}");
    }
}
