//! Getting entities back: by name, by words. Answers fit a budget and are sent once, as text.

use std::collections::BTreeMap;
use std::io;

use memgrove::address::Scheme;
use memgrove::error::code;
use memgrove::shapes::entities::{
    Entity, Facts, Hit, Knowledge, Loaded, Match, Observation, Relation, When, as_of,
};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address;
use crate::context::{Context, Input};
use crate::page::{Ink, Page, counted};
use crate::portion;
use crate::verbs::more::More;
use crate::verbs::{Effect, On, Verb};

/// How many tokens answers may cost an agent, unless it asks for more.
const SEARCH_TOKENS_MAX: usize = 800;
const LOAD_TOKENS_MAX: usize = 4_000;
/// How many hits are shown with their observations; of the others only the names.
const SHOWN_MAX: usize = 3;
/// How many more are named where none matches the whole query.
const NAMED_MAX: usize = 8;
/// How much of an observation a hit shows, in characters.
const SNIPPET_CHARS_MAX: usize = 70;

/// Find entities by question or keywords
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntitySearch {
    /// Question or keywords; empty lists the newest
    #[arg(default_value = "", hide_default_value = true)]
    query: String,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// Only this type
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type", default)]
    kind: Option<String>,
    /// What was true on this date
    #[arg(long, value_name = "DATE")]
    as_of: Option<String>,
    /// Token budget
    #[arg(long)]
    budget: Option<usize>,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    hits: Vec<SearchHit>,
    /// More that match, by address alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    /// All that match, shown or not.
    total: usize,
    /// Of these, those left out because others match as a whole.
    weaker: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchHit {
    address: String,
    date: String,
    text: String,
    /// Observations that are not shown.
    others: usize,
}

impl Verb for EntitySearch {
    const NAME: &'static str = "entity_search";
    const TITLE: &'static str = "Find entities";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Entities];
    const TEXT_ONLY: bool = true;
    type Answer = SearchAnswer;

    fn run(self, cx: &Context) -> Result<SearchAnswer> {
        let as_of = self.as_of.as_deref().map(as_of).transpose()?;
        let wanted = Match { query: self.more.behind(self.query), kind: self.kind, as_of };
        let budget = self.budget.unwrap_or(SEARCH_TOKENS_MAX);
        // Each name costs at least one token, so no more than the budget can be named.
        let found = cx.reading_knowledge()?.strongest(&wanted, budget.max(1))?;
        let weaker = found.matching - found.worth;
        let whole = found.hits.iter().any(|hit| hit.whole);
        let most = if whole { usize::MAX } else { SHOWN_MAX + NAMED_MAX };
        let (mut spent, mut hits, mut more) = (0, Vec::new(), Vec::new());
        for (index, hit) in found.hits.iter().take(most).enumerate() {
            if index < SHOWN_MAX {
                let shown = shown(hit, &wanted.query);
                let cost = portion::tokens(&shown.address) + portion::tokens(&shown.text) + 8;
                if index == 0 || spent + cost <= budget {
                    spent += cost;
                    hits.push(shown);
                    continue;
                }
            }
            let named = address(&hit.entity.kind, &hit.entity.name);
            spent += portion::tokens(&hit.entity.name) + 1;
            if spent > budget {
                break;
            }
            more.push(named);
        }
        Ok(SearchAnswer { hits, more, total: found.matching, weaker })
    }

    fn show(answer: &SearchAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for hit in &answer.hits {
            page.ink(Ink::Dim, &format!("{} ", hit.date))?;
            page.ink(Ink::Strong, &hit.address)?;
            let others = if hit.others > 0 { format!(" (+{})", hit.others) } else { String::new() };
            page.line(&format!(" {}{others}", hit.text))?;
        }
        let mut more: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for address in &answer.more {
            let (folder, name) = address.split_once('/').unwrap_or(("", address));
            more.entry(folder).or_default().push(name);
        }
        for (folder, names) in more {
            page.line(&format!("also {folder}/ {}", names.join(", ")))?;
        }
        let left = answer.total - answer.hits.len() - answer.more.len() - answer.weaker;
        match (left, answer.weaker) {
            _ if answer.total == 0 => page.ink(Ink::Dim, "nothing found\n"),
            (0, 0) => Ok(()),
            (0, weaker) => page.ink(Ink::Dim, &format!("[{weaker} weak matches left out]\n")),
            (left, _) => {
                page.ink(Ink::Warning, &format!("[{left} more: raise the budget, or be more specific]\n"))
            }
        }
    }
}

fn shown(hit: &Hit, query: &str) -> SearchHit {
    let entity = &hit.entity;
    let best = hit.best(query);
    let date = best.and_then(|best| best.facts.date.as_deref()).or(entity.updated.as_deref());
    let date = date.or(entity.created.as_deref()).unwrap_or("undated");
    SearchHit {
        address: address(&entity.kind, &entity.name),
        date: date.get(..10).unwrap_or(date).to_owned(),
        text: best.map_or(String::new(), |best| snippet(&best.text, query)),
        others: entity.observations.len().saturating_sub(1),
    }
}

/// The part of a text where the query stands, or else its beginning, on one line.
fn snippet(text: &str, query: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let chars = line.chars().count();
    if chars <= SNIPPET_CHARS_MAX {
        return line;
    }
    let stands = line.to_lowercase().find(&query.trim().to_lowercase()).unwrap_or(0);
    let before = line.char_indices().take_while(|(at, _)| *at < stands).count();
    let start = before.saturating_sub(SNIPPET_CHARS_MAX / 4).min(chars - SNIPPET_CHARS_MAX);
    let part: String = line.chars().skip(start).take(SNIPPET_CHARS_MAX).collect();
    let (head, tail) =
        (if start > 0 { "…" } else { "" }, if start + SNIPPET_CHARS_MAX < chars { "…" } else { "" });
    format!("{head}{}{tail}", part.trim())
}

/// Load entities by name, with all that is true of them
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityLoad {
    /// Entity names
    #[arg(required = true)]
    names: Vec<String>,
    /// Only this type
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type", default)]
    kind: Option<String>,
    /// What was true on this date
    #[arg(long, value_name = "DATE")]
    as_of: Option<String>,
    /// Token budget
    #[arg(long)]
    budget: Option<usize>,
}

/// Entities that were loaded.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LoadAnswer {
    #[schemars(with = "Vec<serde_json::Value>")]
    entities: Vec<LoadedEntity>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<String>,
    /// Entities of the same names and other types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namesakes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

#[derive(Debug, Serialize)]
struct LoadedEntity {
    address: String,
    version: String,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    observations: Vec<Numbered>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relations: Vec<Relation>,
}

impl LoadedEntity {
    /// What holds of an entity at a time, reduced to the observations worth showing.
    fn new(loaded: &Loaded, when: When, shown: impl FnMut(&Numbered) -> bool) -> (Self, usize) {
        let Entity { name, kind, created, updated, tags, relations, .. } = loaded.entity.holding(when);
        let numbered = |(number, one): (usize, &Observation)| Numbered { number, observation: one.clone() };
        let mut observations: Vec<Numbered> = loaded.entity.observed(when).map(numbered).collect();
        let all = observations.len();
        observations.retain(shown);
        let left_out = all - observations.len();
        let (address, version) = (address(&kind, &name), loaded.version.as_str().to_owned());
        let entity =
            LoadedEntity { address, version, name, kind, created, updated, tags, observations, relations };
        (entity, left_out)
    }
}

/// An observation, with the number in its address: some before it may no longer hold.
#[derive(Debug, Serialize)]
struct Numbered {
    number: usize,
    #[serde(flatten)]
    observation: Observation,
}

impl Verb for EntityLoad {
    const NAME: &'static str = "entity_load";
    const TITLE: &'static str = "Load entities";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Entities];
    const TEXT_ONLY: bool = true;
    type Answer = LoadAnswer;

    fn run(self, cx: &Context) -> Result<LoadAnswer> {
        let knowledge = cx.reading_knowledge()?;
        let past = self.as_of.as_deref().map(as_of).transpose()?;
        let when = past.map_or_else(|| When::Now(knowledge.memory().clock().now()), When::Past);
        let budget = match (self.budget, cx.input) {
            (Some(budget), _) => budget,
            (None, Input::None) => LOAD_TOKENS_MAX,
            (None, Input::Terminal) => usize::MAX,
        };
        let (mut entities, mut unknown, mut namesakes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut spent, mut cut) = (0, 0);
        for name in &self.names {
            let Some(loaded) = knowledge.load(name, self.kind.as_deref())? else {
                unknown.push(name.clone());
                continue;
            };
            let (entity, left_out) = LoadedEntity::new(&loaded, when, |one| {
                spent += portion::tokens(&one.observation.text) + 2;
                spent <= budget
            });
            cut += left_out;
            entities.push(entity);
            if self.kind.is_none() {
                let named = knowledge.namesakes(name)?;
                namesakes.extend(named.iter().skip(1).map(|other| Scheme::Entity.address(other)));
            }
        }
        if entities.is_empty() {
            return Err(unknown_entity(&knowledge, &unknown)?);
        }
        let left_out = (cut > 0)
            .then(|| format!("{} left out: raise the budget", counted(cut, "observation", "observations")));
        Ok(LoadAnswer { entities, unknown, namesakes, left_out })
    }

    fn show(answer: &LoadAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for entity in &answer.entities {
            page.ink(Ink::Strong, &entity.address)?;
            let day = entity.updated.as_deref().and_then(|updated| updated.get(..10)).unwrap_or("undated");
            page.ink(
                Ink::Dim,
                &format!("  updated {day}, version {}\n", crate::verbs::file::short(&entity.version)),
            )?;
            if !entity.tags.is_empty() {
                page.line(&format!("tags: {}", entity.tags.join(", ")))?;
            }
            for Numbered { number, observation } in &entity.observations {
                page.put(&format!("{number}. {}", observation.text))?;
                page.ink(Ink::Dim, &remark(&observation.facts))?;
                page.put("\n")?;
            }
            for relation in &entity.relations {
                page.line(&format!("- {}: {}", relation.kind, relation.to))?;
            }
        }
        if !answer.unknown.is_empty() {
            page.ink(Ink::Warning, &format!("[unknown: {}]\n", answer.unknown.join(", ")))?;
        }
        if !answer.namesakes.is_empty() {
            let others = answer.namesakes.join(", ");
            page.ink(
                Ink::Warning,
                &format!("[other entities have this name: {others}; choose one by its type]\n"),
            )?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// The error for names without an entity, with the one that may be meant.
pub(super) fn unknown_entity(knowledge: &Knowledge, names: &[String]) -> Result<Error> {
    let alike = |name: &String, other: &str| *name != other && name.to_lowercase() == other.to_lowercase();
    let mut hint = "`memgrove entity search` finds entities by words".to_owned();
    for name in names {
        let hits = knowledge.search_memory(name)?;
        if let Some(hit) = hits.iter().find(|hit| alike(name, &hit.entity.name)) {
            hint = format!("did you mean `{}`?", hit.entity.name);
        }
    }
    let message = format!("there is no entity `{}`", names.join("`, `"));
    Ok(Error::new(Kind::NotFound, message).code(code::ENTITY_NOT_FOUND).hint(hint))
}

/// What is known about an observation, in brackets.
fn remark(facts: &Facts) -> String {
    let parts = [("since", &facts.valid_from), ("until", &facts.valid_until), ("source", &facts.source)];
    let parts: Vec<String> =
        parts.iter().filter_map(|(word, value)| Some(format!("{word} {}", value.as_deref()?))).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}
