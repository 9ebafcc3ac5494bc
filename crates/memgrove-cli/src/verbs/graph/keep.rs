//! Keeping the graph in order: its ontology, and its registry.

use std::io;
use std::path::PathBuf;

use memgrove::backend::{Finding, Level};
use memgrove::shapes::graph::ontology::Difference;
use memgrove::shapes::graph::{Graph, Misfit, Ontology, Report};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{Context, Guard, Marks};
use crate::page::{Ink, Page, counted};
use crate::verbs::{Effect, On, Verb};

/// How many misfits are shown.
const MISFITS_MAX: usize = 50;

/// Show, check, infer, compare or write the ontology
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphOntology {
    /// show, check (list violations), infer, diff or write
    #[arg(default_value = "show", value_parser = ["show", "check", "infer", "diff", "write"], hide_possible_values = true)]
    #[serde(default = "show")]
    action: String,
    /// For diff and write: the ontology as YAML
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
    /// Read it from a file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    #[serde(skip)]
    from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    marks: Marks,
}

fn show() -> String {
    "show".to_owned()
}

/// What was asked of the ontology.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct OntologyAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    yaml: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Value>")]
    differences: Option<Vec<Difference>>,
    /// What breaks a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Value>")]
    misfits: Option<Vec<Misfit>>,
    /// What is wrong with the ontology itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

impl GraphOntology {
    /// The ontology that was given, if one was.
    fn given(&self, cx: &Context) -> Result<Option<String>> {
        if self.text.is_none() && self.from.is_none() {
            return Ok(None);
        }
        let bytes = cx.text(self.text.clone(), self.from.as_deref())?;
        Context::utf8("the ontology", bytes).map(Some)
    }

    fn diff(&self, cx: &Context, graph: &Graph) -> Result<OntologyAnswer> {
        let other = match self.given(cx)? {
            None => graph.inferred()?,
            Some(text) => Ontology::parse(&text)
                .map_err(|why| Error::new(Kind::Invalid, format!("this is not an ontology: {why}")))?,
        };
        let (differences, misfits) = graph.compare(&other)?;
        let problems = other.problems();
        Ok(OntologyAnswer {
            differences: Some(differences),
            misfits: Some(misfits),
            problems,
            ..OntologyAnswer::default()
        })
    }

    fn write(&self, cx: &Context) -> Result<OntologyAnswer> {
        let text = match self.given(cx)? {
            Some(text) => text,
            None => Context::utf8("the ontology", cx.text(None, None)?)?,
        };
        if text.trim().is_empty() {
            return Err(Error::new(Kind::Invalid, "the ontology is empty: nothing was written")
                .hint("`{}` is an ontology that allows anything"));
        }
        let graph = cx.writing_graph()?;
        let done = graph.write_ontology(cx.note(Self::NAME, &self.marks.clone().into()), &text)?;
        let change = done.change.map(|change| change.as_str().to_owned());
        Ok(OntologyAnswer { change, ..checked(&graph)? })
    }
}

fn checked(graph: &Graph) -> Result<OntologyAnswer> {
    let (misfits, problems) = match graph.ontology()? {
        Some(ontology) => (graph.misfits(&ontology)?, ontology.problems()),
        None => (Vec::new(), vec!["there is no ontology: anything is allowed".to_owned()]),
    };
    Ok(OntologyAnswer { misfits: Some(misfits), problems, ..OntologyAnswer::default() })
}

impl Verb for GraphOntology {
    const NAME: &'static str = "graph_ontology";
    const TITLE: &'static str = "The ontology";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = OntologyAnswer;

    fn run(self, cx: &Context) -> Result<OntologyAnswer> {
        let graph = cx.reading_graph()?;
        let yaml = |yaml: String| OntologyAnswer { yaml: Some(yaml), ..OntologyAnswer::default() };
        match self.action.as_str() {
            "show" => Ok(yaml(
                graph.ontology_text()?.unwrap_or_else(|| "# there is none: anything fits\n".to_owned()),
            )),
            "check" => checked(&graph),
            "infer" => Ok(yaml(graph.inferred()?.print())),
            "diff" => self.diff(cx, &graph),
            "write" => self.write(cx),
            other => Err(Error::new(
                Kind::Invalid,
                format!("`{}` is not an action for an ontology", other.escape_debug()),
            )
            .hint("choose from: show, check, infer, diff, write")),
        }
    }

    fn show(answer: &OntologyAnswer, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(yaml) = &answer.yaml {
            page.put(yaml)?;
        }
        for one in answer.differences.iter().flatten() {
            match (&one.old, &one.new) {
                (Some(old), Some(new)) => page.line(&format!("~ {}: {old} -> {new}", one.at))?,
                (Some(old), None) => page.ink(Ink::Removed, &format!("- {}: {old}\n", one.at))?,
                (None, new) => {
                    page.ink(Ink::Added, &format!("+ {}: {}\n", one.at, new.as_deref().unwrap_or("")))?
                }
            }
        }
        answer.problems.iter().try_for_each(|problem| page.ink(Ink::Warning, &format!("{problem}\n")))?;
        if let Some(misfits) = &answer.misfits {
            for misfit in misfits.iter().take(MISFITS_MAX) {
                page.line(&format!("{}: {} (rule {})", misfit.id, misfit.broken.what, misfit.broken.rule))?;
            }
            match misfits.len() {
                0 => page.ink(Ink::Added, "everything fits\n")?,
                count if count > MISFITS_MAX => {
                    page.ink(Ink::Warning, &format!("[{} more]\n", count - MISFITS_MAX))?
                }
                _ => {}
            }
        }
        answer.change.iter().try_for_each(|change| page.ink(Ink::Dim, &format!("change {change}\n")))
    }
}

/// Check the graph against its files; rebuild its registry if asked
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct GraphCheck {
    /// Rebuild the registry from the files
    #[arg(long)]
    #[serde(default)]
    rebuild: bool,
}

/// The state of the graph.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckAnswer {
    #[schemars(with = "Value")]
    report: Report,
    #[schemars(with = "Vec<Value>")]
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

/// Said of a file that could not be read, and was put where it is out of the way.
fn put_aside(at: &str) -> Finding {
    Finding {
        level: Level::Warning,
        at: at.to_owned(),
        what: "it could not be read, and was put aside: the graph has what the registry knew".to_owned(),
        hint: "check whether it held more than `memgrove node read` shows".to_owned(),
    }
}

impl Verb for GraphCheck {
    const NAME: &'static str = "graph_check";
    const TITLE: &'static str = "Check the graph";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    const REPORTS: bool = true;
    type Answer = CheckAnswer;

    fn run(self, cx: &Context) -> Result<CheckAnswer> {
        if self.rebuild {
            cx.may_write()?;
        }
        // There is no registry where there is no store.
        if self.rebuild && cx.is_made()? {
            let graph = cx.writing_graph()?;
            let done = graph.rebuild(cx.note("graph_rebuild", &Guard::default()))?;
            let change = done.change.map(|change| change.as_str().to_owned());
            let (report, mut findings) = (done.outcome, graph.check()?);
            findings.extend(report.aside.iter().map(|at| put_aside(at)));
            return Ok(CheckAnswer { report, findings, change });
        }
        let graph = cx.reading_graph()?;
        Ok(CheckAnswer { report: graph.survey()?, findings: graph.check()?, change: None })
    }

    fn show(answer: &CheckAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let report = &answer.report;
        let done = if answer.change.is_some() { "rebuilt the registry: " } else { "" };
        let nodes = counted(report.nodes, "node", "nodes");
        page.line(&format!(
            "{done}{nodes} and {}",
            counted(report.connections, "connection", "connections")
        ))?;
        for (ids, what) in [
            (&report.edited, "content changed by hand"),
            (&report.adopted, "content that belonged to no node"),
            (&report.stale, "not what the registry said"),
            (&report.gone, "without a file"),
            (&report.lost, "`.meta.json` rewritten"),
        ] {
            if answer.change.is_some() && !ids.is_empty() {
                page.line(&format!("{what}: {}", ids.join(", ")))?;
            }
        }
        for finding in &answer.findings {
            let ink = if finding.level == Level::Error { Ink::Removed } else { Ink::Warning };
            page.ink(ink, &format!("{}: {}\n", finding.at, finding.what))?;
            page.line(&format!("  hint: {}", finding.hint))?;
        }
        if answer.findings.is_empty() { page.ink(Ink::Added, "all is well\n") } else { Ok(()) }
    }

    fn failed(answer: &CheckAnswer) -> Option<Kind> {
        answer.findings.iter().any(|finding| finding.level == Level::Error).then_some(Kind::Corrupt)
    }
}
