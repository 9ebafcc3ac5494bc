//! What an ontology demands, and what breaks it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cardinality, Ontology, PropertyRule, PropertyType};
use crate::error::{Error, Kind, Result, code};
use crate::shapes::graph::entry::Properties;

/// How much of a value is shown.
const SHOWN_CHARS_MAX: usize = 60;

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The rule, as the place in the ontology where it stands.
    pub rule: String,
    /// What breaks it.
    pub what: String,
}

impl Break {
    fn new(rule: String, what: String) -> Self {
        Break { rule, what }
    }
}

impl Ontology {
    /// The prefix of a type's ids: its own, else that of what it extends.
    pub fn prefix(&self, kind: &str) -> Option<&str> {
        self.lineage(kind).find_map(|kind| self.node_types.get(kind)?.prefix.as_deref())
    }

    /// A type and those that it extends, nearest first. A circle is followed once.
    fn lineage<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let mut seen = BTreeSet::new();
        let parent = |kind: &&'a str| self.node_types.get(*kind)?.extends.as_deref();
        std::iter::successors(Some(kind), parent).take_while(move |kind| seen.insert(*kind))
    }

    /// Whether nodes of a type can take the place of those of another.
    pub fn is_a(&self, kind: &str, wanted: &str) -> bool {
        self.lineage(kind).any(|kind| kind == wanted)
    }

    fn connection_lineage<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let mut seen = BTreeSet::new();
        let parent = |kind: &&'a str| self.connection_types.get(*kind)?.extends.as_deref();
        std::iter::successors(Some(kind), parent).take_while(move |kind| seen.insert(*kind))
    }

    /// The rules of a type's properties, each with the type that it stands at.
    fn node_rules<'a>(&'a self, kind: &'a str) -> BTreeMap<&'a str, (String, &'a PropertyRule)> {
        let mut rules = BTreeMap::new();
        for kind in self.lineage(kind) {
            for (name, rule) in self.node_types.get(kind).into_iter().flat_map(|known| &known.properties) {
                let at = format!("node_types.{kind}.properties.{name}");
                rules.entry(name.as_str()).or_insert((at, rule));
            }
        }
        rules
    }

    fn connection_rules<'a>(&'a self, kind: &'a str) -> BTreeMap<&'a str, (String, &'a PropertyRule)> {
        let mut rules = BTreeMap::new();
        for kind in self.connection_lineage(kind) {
            for (name, rule) in
                self.connection_types.get(kind).into_iter().flat_map(|known| &known.properties)
            {
                let at = format!("connection_types.{kind}.properties.{name}");
                rules.entry(name.as_str()).or_insert((at, rule));
            }
        }
        rules
    }

    /// Gives a new node what it has where nobody says.
    pub fn complete_node(&self, kind: &str, properties: &mut Properties) {
        complete(&self.node_rules(kind), properties);
    }

    /// Gives a new connection what it has where nobody says.
    pub fn complete_connection(&self, kind: &str, properties: &mut Properties) {
        complete(&self.connection_rules(kind), properties);
    }

    /// The rules that a node breaks.
    pub fn node_breaks(&self, kind: &str, properties: &Properties) -> Vec<Break> {
        if self.node_types.is_empty() {
            return Vec::new();
        }
        let Some(known) = self.node_types.get(kind) else {
            let names: Vec<&str> = self.node_types.keys().map(String::as_str).collect();
            let what = format!("`{}` is not a type of nodes: {}", kind.escape_debug(), names.join(", "));
            return vec![Break::new("node_types".to_owned(), what)];
        };
        let mut breaks = Vec::new();
        if known.is_abstract {
            let what = format!("`{kind}` is abstract: use a type that extends it");
            breaks.push(Break::new(format!("node_types.{kind}.abstract"), what));
        }
        let closed =
            self.lineage(kind).find(|kind| self.node_types.get(*kind).is_some_and(|known| known.closed));
        let closed = closed.map(|kind| format!("node_types.{kind}.closed"));
        breaks.extend(property_breaks(&self.node_rules(kind), closed, properties));
        breaks
    }

    /// The rules that a connection breaks, cardinality aside.
    pub fn connection_breaks(&self, kind: &str, from: &str, to: &str, properties: &Properties) -> Vec<Break> {
        if self.connection_types.is_empty() {
            return Vec::new();
        }
        let Some(known) = self.connection_types.get(kind) else {
            let names: Vec<&str> = self.connection_types.keys().map(String::as_str).collect();
            let what =
                format!("`{}` is not a type of connections: {}", kind.escape_debug(), names.join(", "));
            return vec![Break::new("connection_types".to_owned(), what)];
        };
        let mut breaks = Vec::new();
        for (end, allowed, there) in [("from", &known.from, from), ("to", &known.to, to)] {
            let fits = |allowed: &String| allowed == "*" || self.lineage(there).any(|kind| kind == allowed);
            if !allowed.is_empty() && !allowed.iter().any(fits) {
                let word = if end == "from" { "starts at" } else { "ends at" };
                let what =
                    format!("`{kind}` {word} {}, not at `{}`", allowed.join(", "), there.escape_debug());
                breaks.push(Break::new(format!("connection_types.{kind}.{end}"), what));
            }
        }
        let closed = self
            .connection_lineage(kind)
            .find(|kind| self.connection_types.get(*kind).is_some_and(|known| known.closed));
        let closed = closed.map(|kind| format!("connection_types.{kind}.closed"));
        breaks.extend(property_breaks(&self.connection_rules(kind), closed, properties));
        breaks
    }

    /// Refuses a node that breaks a rule.
    ///
    /// # Errors
    /// `Invalid` (`ONTOLOGY_RULE`), naming the rule.
    pub fn check_node(&self, kind: &str, properties: &Properties) -> Result<()> {
        self.refuse(self.node_breaks(kind, properties), &[])
    }

    /// Refuses what breaks rules that were not broken already.
    ///
    /// # Errors
    /// `Invalid` (`ONTOLOGY_RULE`), naming the first such rule.
    pub fn refuse(&self, breaks: Vec<Break>, already: &[Break]) -> Result<()> {
        match breaks.into_iter().find(|one| !already.iter().any(|old| old.rule == one.rule)) {
            None => Ok(()),
            Some(Break { rule, what }) => Err(Error::new(Kind::Invalid, format!("{what} (rule {rule})"))
                .code(code::ONTOLOGY_RULE)
                .hint("change it to what the ontology says: `memgrove graph ontology show` shows it")),
        }
    }

    /// The type of connections that this is the inverse of, unless it is a type itself.
    pub fn inverted(&self, kind: &str) -> Option<&str> {
        if self.connection_types.contains_key(kind) {
            return None;
        }
        let found = self.connection_types.iter().find(|(_, known)| known.inverse.as_deref() == Some(kind));
        found.map(|(name, _)| name.as_str())
    }

    /// How many connections of a type there may be at an end.
    pub fn cardinality(&self, kind: &str) -> Cardinality {
        self.connection_types.get(kind).map(|known| known.cardinality).unwrap_or_default()
    }

    /// What is wrong with the ontology itself.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut unknown = |place: &str, other: &BTreeMap<String, Value>, known: &[&str]| {
            for key in other.keys().filter(|key| !known.contains(&key.as_str())) {
                found.push(format!("`{place}{key}` means nothing here"));
            }
        };
        unknown("", &self.other, &["version", "name", "description"]);
        for (kind, known) in &self.node_types {
            unknown(&format!("node_types.{kind}."), &known.other, &[]);
            for (name, rule) in &known.properties {
                unknown(&format!("node_types.{kind}.properties.{name}."), &rule.other, &[]);
            }
        }
        for (kind, known) in &self.connection_types {
            unknown(&format!("connection_types.{kind}."), &known.other, &[]);
            for (name, rule) in &known.properties {
                unknown(&format!("connection_types.{kind}.properties.{name}."), &rule.other, &[]);
            }
        }
        self.lineage_problems(&mut found);
        self.rule_problems(&mut found);
        found
    }

    fn lineage_problems(&self, found: &mut Vec<String>) {
        let is_node = |kind: &String| self.node_types.contains_key(kind);
        let is_connection = |kind: &String| self.connection_types.contains_key(kind);
        for (kind, known) in &self.node_types {
            if let Some(parent) = known.extends.as_ref().filter(|parent| !is_node(parent)) {
                found.push(format!("`node_types.{kind}` extends `{parent}`, which is no type of nodes"));
            }
            let last = self.lineage(kind).last().unwrap_or(kind);
            if self.node_types.get(last).is_some_and(|last| last.extends.as_ref().is_some_and(is_node)) {
                found.push(format!("`node_types.{kind}` extends itself in a circle"));
            }
        }
        for (kind, known) in &self.connection_types {
            if let Some(parent) = known.extends.as_ref().filter(|parent| !is_connection(parent)) {
                found.push(format!(
                    "`connection_types.{kind}` extends `{parent}`, which is no type of connections"
                ));
            }
            for (end, ends) in [("from", &known.from), ("to", &known.to)] {
                for there in ends.iter().filter(|there| *there != "*" && !is_node(there)) {
                    found.push(format!(
                        "`connection_types.{kind}.{end}` names `{there}`, which is no type of nodes"
                    ));
                }
            }
        }
    }

    fn rule_problems(&self, found: &mut Vec<String>) {
        let nodes =
            self.node_types.iter().map(|(kind, known)| (format!("node_types.{kind}"), &known.properties));
        let connections = self
            .connection_types
            .iter()
            .map(|(kind, known)| (format!("connection_types.{kind}"), &known.properties));
        for (place, properties) in nodes.chain(connections) {
            for (name, rule) in properties {
                let at = format!("{place}.properties.{name}");
                for value in rule.values.iter().filter(|value| !rule.kind.fits(value)) {
                    found.push(format!("`{at}.enum` has {}, which is no {}", shown(value), rule.kind.name()));
                }
                if let Some(default) = &rule.default
                    && !value_breaks(&at, rule, name, default).is_empty()
                {
                    found.push(format!("`{at}.default` breaks its own rule: {}", shown(default)));
                }
            }
        }
    }
}

fn complete(rules: &BTreeMap<&str, (String, &PropertyRule)>, properties: &mut Properties) {
    for (name, (_, rule)) in rules {
        if let Some(default) = &rule.default
            && !properties.contains_key(*name)
        {
            properties.insert((*name).to_owned(), default.clone());
        }
    }
}

fn property_breaks(
    rules: &BTreeMap<&str, (String, &PropertyRule)>,
    closed: Option<String>,
    properties: &Properties,
) -> Vec<Break> {
    let mut breaks = Vec::new();
    for (name, (at, rule)) in rules {
        match properties.get(*name) {
            Some(value) => breaks.extend(value_breaks(at, rule, name, value)),
            None if rule.required => {
                breaks
                    .push(Break::new(format!("{at}.required"), format!("the property `{name}` is missing")));
            }
            None => {}
        }
    }
    if let Some(closed) = closed {
        for name in properties.keys().filter(|name| !rules.contains_key(name.as_str())) {
            let names: Vec<&str> = rules.keys().copied().collect();
            let what = format!("`{}` is none of its properties: {}", name.escape_debug(), names.join(", "));
            breaks.push(Break::new(closed.clone(), what));
        }
    }
    breaks
}

fn value_breaks(at: &str, rule: &PropertyRule, name: &str, value: &Value) -> Vec<Break> {
    let mut breaks = Vec::new();
    if rule.kind != PropertyType::Any && !rule.kind.fits(value) {
        let what =
            format!("the property `{name}` is of the type {}, and {} is not", rule.kind.name(), shown(value));
        breaks.push(Break::new(format!("{at}.type"), what));
    } else if !rule.values.is_empty() && !rule.values.contains(value) {
        let values: Vec<String> = rule.values.iter().map(shown).collect();
        let what =
            format!("the property `{name}` is one of {}, and {} is not", values.join(", "), shown(value));
        breaks.push(Break::new(format!("{at}.enum"), what));
    }
    breaks
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
