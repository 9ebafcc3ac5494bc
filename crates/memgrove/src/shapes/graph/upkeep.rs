//! How a graph is kept in order: folding, the check, rebuilding, and comparison with an ontology.

use std::sync::PoisonError;

use serde::Serialize;

use super::entry::{read_connection, read_node};
use super::ontology::{Break, Difference, Ontology, differences, infer};
use super::place::{FOLDING, NUMBERS, ONTOLOGY, REGISTRY, TAIL};
use super::report::Report;
use super::shelf::Glance;
use super::survey::Survey;
use super::{Graph, fold, tail, wrapped};
use crate::backend::{Edit, Expect, Finding, Level, Note, upkeep};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::{Done, Plan};

/// How many ids a finding names.
const NAMED_MAX: usize = 5;

/// A node or connection that an ontology does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// The node or connection.
    pub id: String,
    /// The rule that it breaks, and how.
    #[serde(flatten)]
    pub broken: Break,
}

impl Graph {
    /// Folds the tail into the registry if the tail has grown enough.
    ///
    /// # Errors
    /// As the store says; what was not folded is folded the next time.
    pub fn settle(&self) -> Result<()> {
        match fold::is_due(&Glance::of(self.store(), &self.layout)?) {
            true => self.fold(),
            false => Ok(()),
        }
    }

    /// Folds the tail into the registry.
    ///
    /// # Errors
    /// As the store says.
    pub fn fold(&self) -> Result<()> {
        let note = Note { verb: upkeep::GRAPH_FOLD.into(), ..Note::default() };
        let mark = tail::mark(self.ids.random());
        self.memory.apply(note.clone(), |store| fold::freeze(store, &self.layout, &mark))?;
        let behind = Note { derived: true, ..note.clone() };
        let done = self.memory.apply(behind, |store| fold::fold(store, &self.layout, &mut self.shelf()))?;
        if let Some(folded) = done.outcome {
            let registry = done.versions.first().and_then(Option::as_ref);
            self.memory.apply(note, |store| fold::clear(store, &self.layout, &folded, registry))?;
            return Ok(());
        }
        // What cannot be folded is rebuilt.
        let lost = self.shelf().loss.is_some();
        if lost { self.look(|_| Ok(())) } else { Ok(()) }
    }

    /// Returns the files that are made from others, and are of no use to another graph.
    ///
    /// # Errors
    /// If the root is too long.
    pub fn derived_files(&self) -> Result<Vec<Locator>> {
        [REGISTRY, TAIL, FOLDING, NUMBERS].iter().map(|name| self.layout.system(name)).collect()
    }

    /// Returns the entries that only the registry has, because another program wrote them, as the entry
    /// files that are missing.
    ///
    /// # Errors
    /// As the store says.
    pub fn unwritten(&self) -> Result<Vec<(Locator, String)>> {
        self.look(|catalog| Ok(Survey::of(self.store(), &self.layout, catalog, &self.now())?.unwritten()))
    }

    /// Returns, once, the report of rebuilding a registry that was found lost or damaged.
    pub fn take_report(&self) -> Option<Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Compares the registry with the files, without changing anything.
    ///
    /// # Errors
    /// As the store says.
    pub fn survey(&self) -> Result<Report> {
        self.look(|catalog| Ok(Survey::of(self.store(), &self.layout, catalog, &self.now())?.report))
    }

    /// Rebuilds the registry from the files, and reports where they differed.
    ///
    /// # Errors
    /// As the store says.
    pub fn rebuild(&self, note: Note) -> Result<Done<Report>> {
        let (now, mark) = (self.now(), tail::mark(self.ids.random()));
        let done = self.memory.apply(note, |store| {
            let mut shelf = self.shelf();
            shelf.forget();
            shelf.refresh(store, &self.layout)?;
            let survey = Survey::of(store, &self.layout, &shelf.catalog, &now)?;
            survey.into_plan(store, &self.layout, &shelf, &mark)
        });
        done.map_err(|error| wrapped(error, "rebuilding the registry"))
    }

    /// Returns the faults of the graph that a person should know of.
    ///
    /// # Errors
    /// As the store says.
    pub fn check(&self) -> Result<Vec<Finding>> {
        let seen = Glance::of(self.store(), &self.layout)?;
        if super::shelf::is_fresh(self.store(), &self.layout, &seen)? && !seen.has(ONTOLOGY) {
            return Ok(Vec::new());
        }
        let report = self.survey()?;
        let mut findings = Vec::new();
        let mut found = |level: Level, ids: &[String], what: &str, hint: &str| {
            if !ids.is_empty() {
                let named = ids.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
                let more = if ids.len() > NAMED_MAX { ", …" } else { "" };
                let what = format!("{} {what}: {named}{more}", ids.len());
                findings.push(Finding {
                    level,
                    at: self.layout.root.key().to_owned(),
                    what,
                    hint: hint.to_owned(),
                });
            }
        };
        let rebuild = "`memgrove graph check --rebuild` takes over what is in the files";
        found(Level::Info, &report.edited, "contents were changed by hand", rebuild);
        found(Level::Warning, &report.adopted, "files with content belong to no node", rebuild);
        let hint = "move them away, or give them an id of their own and rebuild";
        found(Level::Info, &report.stray, "files are named like content, but belong to nothing", hint);
        found(Level::Warning, &report.stale, "entries of the registry are not what the files say", rebuild);
        found(Level::Warning, &report.gone, "entries of the registry have no file", rebuild);
        let hint = "`memgrove graph check --rebuild` rewrites them";
        found(
            Level::Warning,
            &report.lost,
            "things have lost their `.meta.json`, and only the registry knows what it said",
            hint,
        );
        found(
            Level::Warning,
            &report.missing,
            "contents are missing",
            "restore them with `memgrove restore`",
        );
        found(Level::Warning, &report.dangling, "connections have an end that does not exist", "delete them");
        let hint = "fix them by hand; `memgrove graph check --rebuild` sets aside those the registry knows";
        found(Level::Error, &report.damaged, "files cannot be read", hint);
        let hint = "resolve them in git, or by hand; then `memgrove graph check --rebuild`";
        found(Level::Error, &report.marked, "files have git's conflict markers", hint);
        let hint = "fix them in the registry, or give them files of their own; until then they stay there";
        found(Level::Error, &report.unread, "entries of the registry cannot be read", hint);
        let hint = "the name counts: `memgrove graph check --rebuild` writes it into them";
        found(Level::Warning, &report.misnamed, "files have an id that differs from their name", hint);
        findings.extend(self.ontology_findings()?);
        Ok(findings)
    }

    fn ontology_findings(&self) -> Result<Vec<Finding>> {
        let at = self.layout.system(ONTOLOGY)?.key().to_owned();
        let finding = |level: Level, what: String, hint: &str| Finding {
            level,
            at: at.clone(),
            what,
            hint: hint.to_owned(),
        };
        let ontology = match self.ontology() {
            Ok(Some(ontology)) => ontology,
            Ok(None) => return Ok(Vec::new()),
            Err(error) if error.kind() == Kind::Corrupt => {
                let hint = error.hint_text().unwrap_or_default();
                return Ok(vec![finding(Level::Error, error.message().to_owned(), hint)]);
            }
            Err(error) => return Err(error),
        };
        let mut findings: Vec<Finding> = ontology
            .problems()
            .into_iter()
            .map(|what| finding(Level::Warning, what, "correct the ontology"))
            .collect();
        let misfits = self.misfits(&ontology)?;
        if let Some(first) = misfits.first() {
            let what = format!(
                "{} things do not fit the ontology: {} ({})",
                misfits.len(),
                first.id,
                first.broken.what
            );
            findings.push(finding(Level::Warning, what, "`memgrove graph ontology check` lists them"));
        }
        Ok(findings)
    }

    /// Returns the nodes and connections that an ontology does not allow.
    ///
    /// # Errors
    /// As the store says.
    pub fn misfits(&self, ontology: &Ontology) -> Result<Vec<Misfit>> {
        self.look(|catalog| {
            let mut found = Vec::new();
            for (id, _, text) in catalog.nodes() {
                let node = read_node(id, text)?;
                let broken = ontology.node_breaks(&node.kind, &node.properties);
                found.extend(broken.into_iter().map(|broken| Misfit { id: id.to_owned(), broken }));
            }
            let mut ends = std::collections::HashMap::new();
            for (row, text) in catalog.connections() {
                let one = read_connection(&row.id, text)?;
                let (from, to) = (catalog.node_kind(row.from), catalog.node_kind(row.to));
                let mut broken = ontology.connection_breaks(&one.kind, from, to, &one.properties);
                // The type of an end that does not exist is unknown.
                for (end, node) in [(".from", row.from), (".to", row.to)] {
                    broken.retain(|broken| catalog.is_node(node) || !broken.rule.ends_with(end));
                }
                let (place, cardinality) = ontology.cardinality(&one.kind);
                let limits = [
                    (cardinality.has_one_to(), "from", row.from),
                    (cardinality.has_one_from(), "to", row.to),
                ];
                for (_, end, node) in limits.into_iter().filter(|(limited, ..)| *limited) {
                    if let Some(first) = ends.insert((place.to_owned(), end, node), row.id.clone()) {
                        let rule = format!("connection_types.{place}.cardinality");
                        let what =
                            format!("`{}` is {}, and `{first}` is there too", one.kind, cardinality.name());
                        broken.push(Break { rule, what });
                    }
                }
                found.extend(broken.into_iter().map(|broken| Misfit { id: row.id.to_string(), broken }));
            }
            Ok(found)
        })
    }

    /// Returns the ontology that the present nodes and connections follow.
    ///
    /// # Errors
    /// As the store says.
    pub fn inferred(&self) -> Result<Ontology> {
        self.look(|catalog| {
            let nodes =
                catalog.nodes().map(|(id, _, text)| read_node(id, text)).collect::<Result<Vec<_>>>()?;
            let connections = catalog.connections().map(|(row, text)| read_connection(&row.id, text));
            Ok(infer(&nodes, &connections.collect::<Result<Vec<_>>>()?))
        })
    }

    /// Returns how an ontology differs from the present one, and what would no longer fit.
    ///
    /// # Errors
    /// As the store says.
    pub fn compare(&self, other: &Ontology) -> Result<(Vec<Difference>, Vec<Misfit>)> {
        let present = self.ontology()?;
        let present = present.as_deref().cloned().unwrap_or_default();
        Ok((differences(&present, other), self.misfits(other)?))
    }

    /// Returns the text of the ontology; `None` if there is none.
    ///
    /// # Errors
    /// As the store says.
    pub fn ontology_text(&self) -> Result<Option<String>> {
        let at = self.layout.system(ONTOLOGY)?;
        let content = self.store().read_optional(&at)?;
        content.map(|content| crate::store::text(&at, content.bytes)).transpose()
    }

    /// Writes the ontology. Nodes and connections stay as they are.
    ///
    /// # Errors
    /// `Invalid` (`ONTOLOGY_RULE`) if the text is not an ontology, or contradicts itself.
    pub fn write_ontology(&self, note: Note, text: &str) -> Result<Done<()>> {
        let invalid = |what: String| {
            Error::new(Kind::Invalid, what)
                .code(code::ONTOLOGY_RULE)
                .hint("nothing was written: correct it, then try again")
        };
        let ontology =
            Ontology::parse(text).map_err(|why| invalid(format!("this is not an ontology: {why}")))?;
        if let Some(problem) = ontology.problems().into_iter().next() {
            return Err(invalid(problem));
        }
        let at = self.layout.system(ONTOLOGY)?;
        self.memory.apply(note, |store| {
            let there = store.read_optional(&at)?;
            if there.as_ref().is_some_and(|content| content.bytes == text.as_bytes()) {
                return Ok(Plan { edits: Vec::new(), outcome: () });
            }
            let expect = there.map_or(Expect::Absent, |content| Expect::At(content.version));
            Ok(Plan {
                edits: vec![Edit::Write { at: at.clone(), bytes: text.to_owned().into(), expect }],
                outcome: (),
            })
        })
    }
}
