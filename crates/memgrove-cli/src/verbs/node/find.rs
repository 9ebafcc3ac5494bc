//! Reading and listing nodes.

use std::io;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::shapes::graph::{Filter, Node, Properties, Query, Ways};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{about, id_of, show_properties};
use crate::context::{Context, Input};
use crate::page::{Ink, Page};
use crate::portion::{self, LineRange};
use crate::verbs::file::short;
use crate::verbs::{Effect, On, Verb};

/// What a node answers an agent with, in tokens, unless it asks for more.
const READ_TOKENS_MAX: usize = 4_000;
/// What a list answers with, in tokens, unless it is asked for more.
pub(in crate::verbs) const LIST_TOKENS_MAX: usize = 1_500;

/// How much of a long property is shown where it does not fit.
const SHORTENED_CHARS: usize = 200;

/// Read a node: properties, connections and content
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NodeRead {
    /// Node id, such as mem_project_001
    id: String,
    /// Only these lines of the content, such as 10:20
    #[arg(long, value_name = "FROM:TO")]
    lines: Option<LineRange>,
    /// Token budget for the content
    #[arg(long)]
    budget: Option<usize>,
}

/// A node, its connections and its content.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadAnswer {
    #[serde(flatten)]
    #[schemars(with = "Value")]
    node: Node,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Its content was changed by hand.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    #[schemars(with = "Vec<Value>")]
    connections: Vec<memgrove::shapes::graph::Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for NodeRead {
    const NAME: &'static str = "node_read";
    const TITLE: &'static str = "Read a node";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    const TELLS_MORE: bool = true;
    type Answer = ReadAnswer;

    fn run(self, cx: &Context) -> Result<ReadAnswer> {
        let graph = cx.reading_graph()?;
        let got = graph.node(id_of(&self.id))?;
        let budget = self.budget.unwrap_or(match cx.input {
            Input::None => READ_TOKENS_MAX,
            Input::Terminal => usize::MAX,
        });
        let connections = graph.neighbours(&got.it.id, 1, &Ways::default()).unwrap_or_default();
        let mut answer = ReadAnswer {
            version: got.version.map(|version| version.as_str().to_owned()),
            edited: got.edited,
            connections,
            content: None,
            left_out: None,
            node: got.it,
        };
        if let Some(storage) = &answer.node.storage {
            let read = graph.content(&answer.node.id, storage);
            match read.map(|content| String::from_utf8(content.bytes)) {
                Ok(Ok(text)) => {
                    let (kept, left_out) = portion::lines_of(text, self.lines.unwrap_or_default(), budget);
                    (answer.left_out, answer.content) = (left_out, Some(kept));
                }
                Ok(Err(_)) => {
                    answer.left_out =
                        Some(format!("not text: `memgrove read node:{}` gives the bytes", answer.node.id));
                }
                Err(error) => answer.left_out = Some(error.message().to_owned()),
            }
        }
        Ok(answer)
    }

    fn show(answer: &ReadAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let node = &answer.node;
        page.ink(Ink::Strong, &Scheme::Node.address(&node.id))?;
        let version = answer
            .version
            .as_deref()
            .map_or(String::new(), |version| format!(", version {}", short(version)));
        let content = node.storage.as_ref().map_or(String::new(), |storage| format!(", {}", about(storage)));
        page.ink(Ink::Dim, &format!("  {}{content}{version}\n", node.kind))?;
        show_properties(&node.properties, page)?;
        for step in &answer.connections {
            page.line(&format!("- {} {} -{}-> {}", step.id, step.from, step.kind, step.to))?;
        }
        if answer.edited {
            page.ink(Ink::Warning, "[the content was changed by hand]\n")?;
        }
        if let Some(content) = &answer.content {
            page.line(content)?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// List nodes by type and property
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NodeList {
    /// Only this type and types that extend it
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Filter such as status=active; also !=, <, <=, >, >=, ~ (contains)
    #[arg(long = "where", value_name = "FILTER", allow_hyphen_values = true)]
    #[serde(rename = "where", default)]
    filters: Vec<String>,
    /// Number to skip
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    #[serde(default)]
    skip: usize,
    /// Maximum number of nodes
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    #[serde(default)]
    limit: usize,
    /// Token budget
    #[arg(long, default_value_t = LIST_TOKENS_MAX)]
    #[serde(default = "list_tokens_max")]
    budget: usize,
}

pub(in crate::verbs) fn list_tokens_max() -> usize {
    LIST_TOKENS_MAX
}

/// How many items are read for a list: no more than can fit the budget.
pub(in crate::verbs) fn limit_of(limit: usize, budget: usize) -> usize {
    let most = budget.max(1);
    if limit == 0 { most } else { limit.min(most) }
}

/// Parses filters.
pub(in crate::verbs) fn filters(given: &[String]) -> Result<Vec<Filter>> {
    let wrong = |why: String| memgrove::Error::new(memgrove::Kind::Invalid, why);
    given.iter().map(|filter| filter.parse().map_err(wrong)).collect()
}

/// Cuts a list to what fits a budget, but keeps the first item, if need be with its long properties
/// shortened. Returns whether they were.
pub(in crate::verbs) fn fitted<T>(
    found: &mut Vec<T>,
    budget: usize,
    line: impl Fn(&T) -> String,
    properties: impl Fn(&mut T) -> &mut Properties,
) -> bool {
    let mut spent = 0;
    let fit = found.iter().take_while(|one| {
        spent += portion::tokens(&line(one)) + 1;
        spent <= budget
    });
    let fit = fit.count();
    found.truncate(fit.max(1));
    let Some(first) = found.first_mut().filter(|_| fit == 0) else { return false };
    for value in properties(first).values_mut() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some((end, _)) = text.char_indices().nth(SHORTENED_CHARS) {
            *value = Value::from(format!("{}…", &text[..end]));
        }
    }
    true
}

/// What a list leaves out, and how to get it.
pub(in crate::verbs) fn left_out(shown: usize, total: usize, shortened: bool) -> Option<String> {
    let more = (shown < total).then(|| format!("{} more: skip the first {shown}", total - shown));
    let short = shortened.then(|| "long properties are shortened: read shows them in full".to_owned());
    let told: Vec<String> = short.into_iter().chain(more).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The nodes that were found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    #[schemars(with = "Vec<Value>")]
    nodes: Vec<Node>,
    /// How many fit.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for NodeList {
    const NAME: &'static str = "node_list";
    const TITLE: &'static str = "List nodes";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = ListAnswer;

    fn run(self, cx: &Context) -> Result<ListAnswer> {
        let query = Query {
            kind: self.kind,
            filters: filters(&self.filters)?,
            skip: self.skip,
            limit: limit_of(self.limit, self.budget),
            ..Query::default()
        };
        let found = cx.reading_graph()?.list(&query)?;
        let mut nodes = found.found;
        let shortened = fitted(&mut nodes, self.budget, line, |node| &mut node.properties);
        let shown = self.skip + nodes.len();
        let left_out = left_out(shown, found.total, shortened);
        Ok(ListAnswer { nodes, total: found.total, left_out })
    }

    fn show(answer: &ListAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for node in &answer.nodes {
            page.ink(Ink::Strong, &Scheme::Node.address(&node.id))?;
            page.line(&line(node)[node.id.len()..])?;
        }
        if answer.nodes.is_empty() && answer.left_out.is_none() {
            page.ink(Ink::Dim, "no nodes\n")?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// A node on one line.
fn line(node: &Node) -> String {
    let properties = Value::Object(node.properties.clone());
    let content = node.storage.as_ref().map_or(String::new(), |storage| format!(" ({})", about(storage)));
    format!("{} {} {properties}{content}", node.id, node.kind)
}
