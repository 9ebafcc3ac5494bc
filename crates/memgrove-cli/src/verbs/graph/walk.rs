//! Going through the graph.

use std::io;

use memgrove::Result;
use memgrove::shapes::graph::{Contents, Direction, Part, Step, Ways};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Context;
use crate::page::{Ink, Page};
use crate::portion;
use crate::verbs::node::{LIST_TOKENS_MAX, id_of, list_tokens_max};
use crate::verbs::{Effect, On, Verb};

/// How far a way is looked for, unless more is asked for.
const PATH_DEPTH_MAX: usize = 16;

fn one() -> usize {
    1
}

fn path_depth_max() -> usize {
    PATH_DEPTH_MAX
}

/// List the neighbours of a node, up to a depth
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphNeighbours {
    /// Node id
    id: String,
    /// How many connections to follow
    #[arg(long, default_value_t = 1)]
    #[serde(default = "one")]
    depth: usize,
    /// Follow only these types, or their inverses
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "types", default)]
    kinds: Vec<String>,
    /// out, in or both
    #[arg(long, default_value = "both")]
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    direction: Direction,
    /// Token budget
    #[arg(long, default_value_t = LIST_TOKENS_MAX)]
    #[serde(default = "list_tokens_max")]
    budget: usize,
}

/// Connections that were followed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepsAnswer {
    /// Whether there is a way at all.
    found: bool,
    #[schemars(with = "Vec<Value>")]
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl StepsAnswer {
    fn new(mut steps: Vec<Step>, budget: usize) -> Self {
        let (all, mut spent) = (steps.len(), 0);
        steps.retain(|step| {
            spent += portion::tokens(&line(step)) + 1;
            spent <= budget
        });
        let left = all - steps.len();
        let left_out = (left > 0).then(|| format!("{left} more: raise the budget, or name a type"));
        StepsAnswer { found: true, steps, left_out }
    }

    fn show(&self, empty: &str, page: &mut Page<'_>) -> io::Result<()> {
        self.steps.iter().try_for_each(|step| page.line(&line(step)))?;
        if self.steps.is_empty() && self.left_out.is_none() {
            page.ink(Ink::Dim, &format!("{empty}\n"))?;
        }
        self.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

fn line(step: &Step) -> String {
    let indent = "  ".repeat(step.depth.saturating_sub(1));
    let known = step.node_type.as_deref().map_or(" (not known)".to_owned(), |kind| format!(" ({kind})"));
    format!("{indent}{} -{}-> {} [{}] {}{known}", step.from, step.kind, step.to, step.id, step.node)
}

impl Verb for GraphNeighbours {
    const NAME: &'static str = "graph_neighbours";
    const TITLE: &'static str = "List neighbours";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = StepsAnswer;

    fn run(self, cx: &Context) -> Result<StepsAnswer> {
        let ways = Ways { direction: self.direction, kinds: self.kinds };
        let steps = cx.reading_graph()?.neighbours(id_of(&self.id), self.depth, &ways)?;
        Ok(StepsAnswer::new(steps, self.budget))
    }

    fn show(answer: &StepsAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show("no connections", page)
    }
}

/// Find the shortest path between two nodes
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphPath {
    /// Start node
    from: String,
    /// End node
    to: String,
    /// Maximum number of connections
    #[arg(long, default_value_t = PATH_DEPTH_MAX)]
    #[serde(default = "path_depth_max")]
    depth: usize,
    /// Follow only these types, or their inverses
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "types", default)]
    kinds: Vec<String>,
    /// out, in or both
    #[arg(long, default_value = "both")]
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    direction: Direction,
}

impl Verb for GraphPath {
    const NAME: &'static str = "graph_path";
    const TITLE: &'static str = "Find a path";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = StepsAnswer;

    fn run(self, cx: &Context) -> Result<StepsAnswer> {
        let ways = Ways { direction: self.direction, kinds: self.kinds };
        let route = cx.reading_graph()?.route(id_of(&self.from), id_of(&self.to), self.depth, &ways)?;
        let found = route.is_some();
        Ok(StepsAnswer { found, steps: route.unwrap_or_default(), left_out: None })
    }

    fn show(answer: &StepsAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(if answer.found { "it is the same node" } else { "no path" }, page)
    }
}

/// Show the part of the graph around given nodes
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphSubgraph {
    /// Node ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// How many connections to follow
    #[arg(long, default_value_t = 1)]
    #[serde(default = "one")]
    depth: usize,
    /// Token budget
    #[arg(long, default_value_t = LIST_TOKENS_MAX)]
    #[serde(default = "list_tokens_max")]
    budget: usize,
}

/// A part of the graph.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubgraphAnswer {
    /// Ids with their types.
    #[schemars(with = "Vec<Value>")]
    nodes: Vec<Value>,
    #[schemars(with = "Vec<Value>")]
    connections: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    #[serde(skip)]
    lines: Vec<String>,
}

impl Verb for GraphSubgraph {
    const NAME: &'static str = "graph_subgraph";
    const TITLE: &'static str = "Show a part of the graph";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = SubgraphAnswer;

    fn run(self, cx: &Context) -> Result<SubgraphAnswer> {
        let graph = cx.reading_graph()?;
        let ids: Vec<String> = self.ids.iter().map(|id| id_of(id).to_owned()).collect();
        let part: Part = graph.part(&ids, self.depth, &Ways::default())?;
        let snapshot = graph.snapshot(Some(&part), Contents::None)?;
        let mut spent = 0;
        let mut fits = |line: &str| {
            spent += portion::tokens(line) + 1;
            spent <= self.budget
        };
        let (mut nodes, mut connections, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for node in snapshot.nodes.iter().map(|node| &node.it) {
            let line = format!("node:{} {} {}", node.id, node.kind, Value::Object(node.properties.clone()));
            if fits(&line) {
                nodes.push(serde_json::to_value(node).expect("a node is plain data"));
                lines.push(line);
            }
        }
        for one in snapshot.connections.iter().map(|one| &one.it) {
            let line = format!("{} -{}-> {} [{}]", one.from, one.kind, one.to, one.id);
            if fits(&line) {
                connections.push(serde_json::to_value(one).expect("a connection is plain data"));
                lines.push(line);
            }
        }
        let left = snapshot.nodes.len() + snapshot.connections.len() - lines.len();
        let left_out = (left > 0).then(|| format!("{left} more: raise the budget, or lower the depth"));
        Ok(SubgraphAnswer { nodes, connections, left_out, lines })
    }

    fn show(answer: &SubgraphAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.lines.iter().try_for_each(|line| page.line(line))?;
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}
