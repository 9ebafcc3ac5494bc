//! Reading, searching and looking at notes.

use std::io;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::clock::TimeZone;
use memgrove::shapes::notes::{Decision, Graph, NoteInfo, Proposal, Search, Searched, normal_path, picture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost;
use crate::context::{Context, Input};
use crate::page::{Ink, Page, counted};
use crate::portion;
use crate::verbs::more::More;
use crate::verbs::{Effect, On, Verb};
use crate::zone::clock_of;

/// What a read answers an agent with, in tokens, unless it asks for more.
const READ_TOKENS_MAX: usize = 8_000;
/// How many results a search gives.
const RESULTS: usize = 10;
/// How many decisions the log shows.
const DECISIONS: usize = 20;

/// Read a note
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteRead {
    /// Path of the note; the root memory by default
    path: Option<String>,
    /// Token budget
    #[arg(long)]
    budget: Option<usize>,
}

/// A note.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadAnswer {
    path: String,
    version: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for NoteRead {
    const NAME: &'static str = "note_read";
    const TOOL: &'static str = "read_memory";
    const TITLE: &'static str = "Read memory";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    const TEXT_ONLY: bool = true;
    type Answer = ReadAnswer;

    fn run(self, cx: &Context) -> Result<ReadAnswer> {
        let budget = self.budget.unwrap_or(match cx.input {
            Input::None => READ_TOKENS_MAX,
            Input::Terminal => usize::MAX,
        });
        let path = normal_path(self.path.as_deref())?;
        let (text, version) = cx.reading_notes()?.read(Some(&path))?;
        let version = version.as_str().to_owned();
        if portion::tokens(&text) <= budget {
            return Ok(ReadAnswer { path, version, text, left_out: None });
        }
        let (kept, left_out) = portion::start_of(text, budget);
        Ok(ReadAnswer { path, version, text: format!("{kept}\n"), left_out })
    }

    fn show(answer: &ReadAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.bytes(answer.text.as_bytes())?;
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// Search notes by following links from the root
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteSearch {
    /// What to search for
    query: String,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// Maximum number of results
    #[arg(long, alias = "limit", default_value_t = RESULTS)]
    #[serde(default = "results")]
    max_results: usize,
}

fn results() -> usize {
    RESULTS
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    #[serde(flatten)]
    #[schemars(with = "Found")]
    searched: Searched,
}

/// The part of a result that has a schema.
#[derive(JsonSchema)]
#[allow(dead_code)] // Its schema is all that is wanted.
struct Found {
    results: Vec<serde_json::Value>,
}

impl Verb for NoteSearch {
    const NAME: &'static str = "note_search";
    const TOOL: &'static str = "search_memory";
    const TITLE: &'static str = "Search memory";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    const TEXT_ONLY: bool = true;
    type Answer = SearchAnswer;

    fn run(self, cx: &Context) -> Result<SearchAnswer> {
        let search = Search { max_results: self.max_results, ..Search::new(self.more.behind(self.query)) };
        Ok(SearchAnswer { searched: cx.reading_notes()?.search(&search)? })
    }

    fn show(answer: &SearchAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let searched = &answer.searched;
        for result in &searched.results {
            page.ink(Ink::Strong, &Scheme::Note.address(&result.path))?;
            page.ink(Ink::Dim, &format!("  {:.2}  {}\n", result.relevance_score, result.context))?;
            page.line(&result.excerpt)?;
        }
        if searched.results.is_empty() {
            page.ink(Ink::Dim, "nothing found\n")?;
        }
        match searched.bounded {
            true => page.ink(
                Ink::Warning,
                &format!("[stopped after {}]\n", counted(searched.visited, "note", "notes")),
            ),
            false => Ok(()),
        }
    }
}

/// List all notes with their links
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteList {}

/// All notes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    #[schemars(with = "Vec<serde_json::Value>")]
    files: Vec<NoteInfo>,
    /// Notes whose split-off notes have stayed small.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    mergeable: Vec<Proposal>,
}

impl Verb for NoteList {
    const NAME: &'static str = "note_list";
    const TOOL: &'static str = "list_memory_files";
    const TITLE: &'static str = "List memory files";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    type Answer = ListAnswer;

    fn run(self, cx: &Context) -> Result<ListAnswer> {
        let notes = cx.reading_notes()?;
        Ok(ListAnswer { files: notes.list()?, mergeable: notes.proposals()? })
    }

    fn show(answer: &ListAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for info in &answer.files {
            page.ink(Ink::Strong, &Scheme::Note.address(&info.path))?;
            let day = info.last_updated.get(..10).unwrap_or(&info.last_updated);
            page.ink(Ink::Dim, &format!("  {}  {day}", portion::size(info.size_bytes)))?;
            let links = if info.links_to.is_empty() {
                String::new()
            } else {
                format!("  -> {}", info.links_to.join(", "))
            };
            page.line(&links)?;
        }
        if answer.files.is_empty() {
            page.ink(Ink::Dim, "no notes yet\n")?;
        }
        for proposal in &answer.mergeable {
            let hint = format!(
                "[small: `memgrove note merge {}` would merge {} back]\n",
                proposal.path,
                proposal.children.join(", ")
            );
            page.ink(Ink::Warning, &hint)?;
        }
        Ok(())
    }
}

/// Show how notes are linked, as a tree with sizes or a picture
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteGraph {
    /// Output SVG
    #[arg(long, conflicts_with_all = ["dot", "mermaid"])]
    #[serde(skip)]
    svg: bool,
    /// Output DOT for Graphviz
    #[arg(long, conflicts_with = "mermaid")]
    #[serde(skip)]
    dot: bool,
    /// Output Mermaid
    #[arg(long)]
    #[serde(skip)]
    mermaid: bool,
}

/// The graph of all notes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GraphAnswer {
    #[serde(flatten)]
    #[schemars(with = "Drawn")]
    graph: Graph,
    #[serde(skip)]
    picture: Option<String>,
}

/// The part of a graph that has a schema.
#[derive(JsonSchema)]
#[allow(dead_code)] // Its schema is all that is wanted.
struct Drawn {
    nodes: Vec<serde_json::Value>,
    edges: Vec<serde_json::Value>,
}

impl Verb for NoteGraph {
    const NAME: &'static str = "note_graph";
    const TOOL: &'static str = "get_memory_graph";
    const TITLE: &'static str = "Show the memory graph";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    type Answer = GraphAnswer;

    fn run(self, cx: &Context) -> Result<GraphAnswer> {
        let graph = cx.reading_notes()?.graph()?;
        let picture = match (self.svg, self.dot, self.mermaid) {
            (true, ..) => Some(picture::svg(&graph)),
            (_, true, _) => Some(picture::dot(&graph)),
            (_, _, true) => Some(picture::mermaid(&graph)),
            _ => None,
        };
        Ok(GraphAnswer { graph, picture })
    }

    fn show(answer: &GraphAnswer, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(picture) = &answer.picture {
            return page.put(picture);
        }
        for branch in picture::tree(&answer.graph) {
            page.ink(Ink::Dim, &branch.lines)?;
            page.ink(Ink::Strong, &branch.node.id)?;
            page.ink(Ink::Dim, &format!("  {}", portion::size(branch.node.size)))?;
            page.line(&if branch.label.is_empty() { String::new() } else { format!("  {}", branch.label) })?;
        }
        if answer.graph.nodes.is_empty() {
            page.ink(Ink::Dim, "no notes yet\n")?;
        }
        Ok(())
    }
}

/// Show decisions about notes, by whom and why
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteLog {
    /// Only about this note
    path: Option<String>,
    /// Maximum number of decisions
    #[arg(long, default_value_t = DECISIONS)]
    #[serde(default = "decisions")]
    limit: usize,
}

fn decisions() -> usize {
    DECISIONS
}

/// Decisions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogAnswer {
    #[schemars(with = "Vec<serde_json::Value>")]
    decisions: Vec<Decision>,
    /// Lines of the log that cannot be read.
    #[serde(skip_serializing_if = "is_zero")]
    damaged: usize,
    #[serde(skip)]
    zone: TimeZone,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Verb for NoteLog {
    const NAME: &'static str = "note_log";
    const TITLE: &'static str = "Show decisions about notes";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Http];
    type Answer = LogAnswer;

    fn run(self, cx: &Context) -> Result<LogAnswer> {
        let (mut decisions, damaged) = cx.reading_notes()?.decisions()?;
        if let Some(path) = self.path.as_deref() {
            let path = normal_path(Some(path))?;
            decisions.retain(|decision| {
                decision.path == path || decision.parts.iter().any(|part| part.path == path)
            });
        }
        decisions.truncate(self.limit);
        Ok(LogAnswer { decisions, damaged, zone: cx.environment().zone.zone() })
    }

    fn show(answer: &LogAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for decision in &answer.decisions {
            page.ink(Ink::Dim, &format!("{}  ", clock_of(&answer.zone, &decision.time)))?;
            page.ink(Ink::Strong, &format!("{} note:{}", decision.what, decision.path))?;
            let strategy =
                decision.strategy.map_or(String::new(), |strategy| format!(" by {}", strategy.name()));
            page.line(&format!(
                "{strategy}  {}: {}{}",
                decision.agent,
                decision.reason,
                cost(&decision.spent)
            ))?;
            for part in &decision.parts {
                let blocks = counted(part.blocks, "block", "blocks");
                page.line(&format!("    note:{} ({blocks})", part.path))?;
            }
            if let Some(refused) = &decision.refused {
                page.ink(Ink::Warning, &format!("    refused {}: {}\n", refused.agent, refused.reason))?;
            }
        }
        if answer.decisions.is_empty() {
            page.ink(Ink::Dim, "no decisions yet\n")?;
        }
        match answer.damaged {
            0 => Ok(()),
            damaged => {
                let lines = counted(damaged, "line of the log is", "lines of the log are");
                page.ink(Ink::Warning, &format!("[{lines} damaged]\n"))
            }
        }
    }
}
