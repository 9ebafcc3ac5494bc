//! The connections of the graph as verbs.

use std::io;

use clap::ArgGroup;
use memgrove::address::Scheme;
use memgrove::memory::Done;
use memgrove::shapes::graph::{Connection, NewConnection, Query, Update};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::node::{Changed, Editing, Given, Pair, id_of, properties, refuse_expect, show_properties};
use super::{Effect, On, Verb};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};
use crate::verbs::file::short;
use crate::verbs::node::{LIST_TOKENS_MAX, filters, fitted, left_out, limit_of, list_tokens_max};

/// The id that someone gives: itself, or the address of the connection.
fn connection_id(given: &str) -> &str {
    Scheme::Connection.bare(given)
}

fn changed(done: &'static str, outcome: Done<Connection>) -> Changed {
    let address = format!("connection:{}", outcome.outcome.id);
    Changed::new(done, address, &outcome.outcome, outcome.change, outcome.replayed)
}

/// Connect two nodes
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ConnectionCreate {
    /// Start node
    from: String,
    /// Connection type, such as depends_on
    #[serde(rename = "type")]
    kind: String,
    /// End node
    to: String,
    /// Properties to set
    #[arg(long, value_name = "JSON")]
    properties: Option<Given>,
    /// One property; the value may be JSON
    #[arg(long = "property", short = 'p', value_name = "NAME=VALUE")]
    #[serde(skip)]
    pairs: Vec<Pair>,
    /// Content, as markdown
    #[arg(long, allow_hyphen_values = true)]
    content: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for ConnectionCreate {
    const NAME: &'static str = "connection_create";
    const TITLE: &'static str = "Connect two nodes";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        refuse_expect(&self.guard, "connection")?;
        let new = NewConnection {
            kind: self.kind,
            from: id_of(&self.from).to_owned(),
            to: id_of(&self.to).to_owned(),
            properties: properties(self.properties, self.pairs),
            content: self.content.map(|text| cx.text(Some(text), None)).transpose()?.map(Into::into),
            ..NewConnection::default()
        };
        Ok(changed("created", cx.writing_graph()?.connect(cx.note(Self::NAME, &self.guard), &new)?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Read a connection: properties and content
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ConnectionRead {
    /// Connection id, such as conn_001
    id: String,
}

/// A connection and its content.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadAnswer {
    #[serde(flatten)]
    #[schemars(with = "Value")]
    connection: Connection,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Its content was changed by hand.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for ConnectionRead {
    const NAME: &'static str = "connection_read";
    const TITLE: &'static str = "Read a connection";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    const TELLS_MORE: bool = true;
    type Answer = ReadAnswer;

    fn run(self, cx: &Context) -> Result<ReadAnswer> {
        let graph = cx.reading_graph()?;
        let got = graph.connection(connection_id(&self.id))?;
        let mut answer = ReadAnswer {
            version: got.version.map(|version| version.as_str().to_owned()),
            edited: got.edited,
            content: None,
            left_out: None,
            connection: got.it,
        };
        if let Some(storage) = &answer.connection.storage {
            let id = &answer.connection.id;
            match graph.content(id, storage).map(|content| String::from_utf8(content.bytes)) {
                Ok(Ok(text)) => answer.content = Some(text),
                Ok(Err(_)) => {
                    let why = format!("not text: `memgrove read connection:{id}` gives the bytes");
                    answer.left_out = Some(why);
                }
                Err(error) => answer.left_out = Some(error.message().to_owned()),
            }
        }
        Ok(answer)
    }

    fn show(answer: &ReadAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let one = &answer.connection;
        page.ink(Ink::Strong, &one.id)?;
        page.put(&format!("  {} -{}-> {}", one.from, one.kind, one.to))?;
        let version = answer.version.as_deref().map(|version| format!("  version {}", short(version)));
        page.ink(Ink::Dim, &format!("{}\n", version.unwrap_or_default()))?;
        show_properties(&one.properties, page)?;
        if answer.edited {
            page.ink(Ink::Warning, "[the content was changed by hand]\n")?;
        }
        answer
            .content
            .iter()
            .try_for_each(|content| page.line(content.strip_suffix('\n').unwrap_or(content)))?;
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// Set or remove properties of a connection
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ConnectionUpdate {
    /// Connection id
    id: String,
    /// Properties to set
    #[arg(long, value_name = "JSON")]
    properties: Option<Given>,
    /// One property to set
    #[arg(long = "property", short = 'p', value_name = "NAME=VALUE")]
    #[serde(skip)]
    pairs: Vec<Pair>,
    /// Properties to remove
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    unset: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for ConnectionUpdate {
    const NAME: &'static str = "connection_update";
    const TITLE: &'static str = "Update a connection";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let note = cx.note(Self::NAME, &self.guard);
        let update =
            Update { set: properties(self.properties, self.pairs), unset: self.unset, ..Update::default() };
        let expect = self.guard.expect.as_deref();
        let id = connection_id(&self.id);
        Ok(changed("updated", cx.changing_graph()?.update_connection(note, id, &update, expect)?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Edit a connection's content, as with a node
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ConnectionEdit {
    /// Connection id
    id: String,
    #[command(flatten)]
    #[serde(flatten)]
    editing: Editing,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for ConnectionEdit {
    const NAME: &'static str = "connection_edit";
    const TITLE: &'static str = "Edit a connection's content";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let (edit, note) = (self.editing.edit(cx)?, cx.note(Self::NAME, &self.guard));
        let (id, expect) = (connection_id(&self.id), self.guard.expect.as_deref());
        Ok(changed("edited", cx.changing_graph()?.edit_connection(note, id, &edit, expect)?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Delete a connection by id or by what it connects
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(group = ArgGroup::new("which").required(true))]
pub(crate) struct ConnectionDelete {
    /// Connection id
    #[arg(group = "which")]
    id: Option<String>,
    /// Or: its start node
    #[arg(long, group = "which", requires = "to")]
    from: Option<String>,
    /// And its type, if several match
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type")]
    kind: Option<String>,
    /// And its end node
    #[arg(long)]
    to: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for ConnectionDelete {
    const NAME: &'static str = "connection_delete";
    const TITLE: &'static str = "Delete a connection";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let graph = cx.changing_graph()?;
        let id = match (self.id, &self.from, &self.to) {
            (Some(id), ..) => connection_id(&id).to_owned(),
            (None, Some(from), Some(to)) => {
                let query = Query {
                    kind: self.kind,
                    from: Some(id_of(from).to_owned()),
                    to: Some(id_of(to).to_owned()),
                    ..Query::default()
                };
                only(graph.connections(&query)?.found)?
            }
            _ => {
                return Err(
                    Error::new(Kind::Invalid, "which connection?").hint("give its id, or `from` and `to`")
                );
            }
        };
        let note = cx.note(Self::NAME, &self.guard);
        Ok(changed("deleted", graph.disconnect(note, &id, self.guard.expect.as_deref())?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

fn only(found: Vec<Connection>) -> Result<String> {
    match found.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => Err(Error::new(Kind::NotFound, "there is no such connection between these nodes")
            .code(memgrove::error::code::CONNECTION_NOT_FOUND)
            .hint("`memgrove connection list` shows the connections there are")),
        several => {
            let named: Vec<String> =
                several.iter().take(5).map(|one| format!("{} ({})", one.id, one.kind)).collect();
            Err(Error::new(Kind::Invalid, format!("there are {} such connections", several.len()))
                .hint(format!("give the id of one: {}", named.join(", "))))
        }
    }
}

/// List connections by type, end and property
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct ConnectionList {
    /// Only this type
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Only from this node
    #[arg(long)]
    from: Option<String>,
    /// Only to this node
    #[arg(long)]
    to: Option<String>,
    /// Filter such as weight>=0.5
    #[arg(long = "where", value_name = "FILTER", allow_hyphen_values = true)]
    #[serde(rename = "where", default)]
    filters: Vec<String>,
    /// Number to skip
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    #[serde(default)]
    skip: usize,
    /// Maximum number of connections
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    #[serde(default)]
    limit: usize,
    /// Token budget
    #[arg(long, default_value_t = LIST_TOKENS_MAX)]
    #[serde(default = "list_tokens_max")]
    budget: usize,
}

/// The connections that were found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    #[schemars(with = "Vec<Value>")]
    connections: Vec<Connection>,
    /// How many fit.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for ConnectionList {
    const NAME: &'static str = "connection_list";
    const TITLE: &'static str = "List connections";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = ListAnswer;

    fn run(self, cx: &Context) -> Result<ListAnswer> {
        let query = Query {
            kind: self.kind,
            filters: filters(&self.filters)?,
            from: self.from.as_deref().map(|id| id_of(id).to_owned()),
            to: self.to.as_deref().map(|id| id_of(id).to_owned()),
            skip: self.skip,
            limit: limit_of(self.limit, self.budget),
        };
        let found = cx.reading_graph()?.connections(&query)?;
        let mut connections = found.found;
        let shortened = fitted(&mut connections, self.budget, line, |one| &mut one.properties);
        let shown = self.skip + connections.len();
        let left_out = left_out(shown, found.total, shortened);
        Ok(ListAnswer { connections, total: found.total, left_out })
    }

    fn show(answer: &ListAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.connections.iter().try_for_each(|one| page.line(&line(one)))?;
        if answer.connections.is_empty() && answer.left_out.is_none() {
            page.ink(Ink::Dim, "no connections\n")?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// A connection on one line.
fn line(one: &Connection) -> String {
    let properties = if one.properties.is_empty() {
        String::new()
    } else {
        format!(" {}", Value::Object(one.properties.clone()))
    };
    format!("{} {} -{}-> {}{properties}", one.id, one.from, one.kind, one.to)
}
