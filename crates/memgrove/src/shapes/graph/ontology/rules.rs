//! Which rules an ontology sets, and what breaks them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cardinality, Ontology, PropertyRule, PropertyType};
use crate::error::{Error, Kind, Result, code};
use crate::shapes::graph::entry::Properties;

/// How many characters of a value are shown.
const SHOWN_CHARS_MAX: usize = 60;

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The rule, by its place in the ontology.
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
    /// Returns the prefix of a type's ids: its own, else that of a type it extends.
    pub fn prefix(&self, kind: &str) -> Option<&str> {
        self.lineage(kind).find_map(|kind| self.node_types.get(kind)?.prefix.as_deref())
    }

    /// Returns a type and those that it extends, nearest first. A cycle is followed once.
    fn lineage<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let mut seen = BTreeSet::new();
        let parent = |kind: &&'a str| self.node_types.get(*kind)?.extends.as_deref();
        std::iter::successors(Some(kind), parent).take_while(move |kind| seen.insert(*kind))
    }

    /// Whether nodes of a type are also of another type.
    pub fn is_a(&self, kind: &str, wanted: &str) -> bool {
        self.lineage(kind).any(|kind| kind == wanted)
    }

    fn connection_lineage<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let mut seen = BTreeSet::new();
        let parent = |kind: &&'a str| self.connection_types.get(*kind)?.extends.as_deref();
        std::iter::successors(Some(kind), parent).take_while(move |kind| seen.insert(*kind))
    }

    /// Returns the rules of a type's properties: its own, else those of the types it extends.
    fn node_rules<'a>(&'a self, kind: &'a str) -> Rules<'a> {
        let known = |kind| Some((format!("node_types.{kind}"), &self.node_types.get(kind)?.properties));
        rules(self.lineage(kind).filter_map(known))
    }

    fn connection_rules<'a>(&'a self, kind: &'a str) -> Rules<'a> {
        let known =
            |kind| Some((format!("connection_types.{kind}"), &self.connection_types.get(kind)?.properties));
        rules(self.connection_lineage(kind).filter_map(known))
    }

    /// Sets the default values of a new node.
    pub fn complete_node(&self, kind: &str, properties: &mut Properties) {
        complete(&self.node_rules(kind), properties);
    }

    /// Sets the default values of a new connection.
    pub fn complete_connection(&self, kind: &str, properties: &mut Properties) {
        complete(&self.connection_rules(kind), properties);
    }

    /// Returns the rules that a node breaks.
    pub fn node_breaks(&self, kind: &str, properties: &Properties) -> Vec<Break> {
        if self.node_types.is_empty() {
            return Vec::new();
        }
        let Some(known) = self.node_types.get(kind) else {
            let names: Vec<&str> = self.node_types.keys().map(String::as_str).collect();
            let what = format!("`{}` is not a node type: {}", kind.escape_debug(), names.join(", "));
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

    /// Returns the rules that a connection breaks, except for cardinality.
    pub fn connection_breaks(&self, kind: &str, from: &str, to: &str, properties: &Properties) -> Vec<Break> {
        if self.connection_types.is_empty() {
            return Vec::new();
        }
        if !self.connection_types.contains_key(kind) {
            let names: Vec<&str> = self.connection_types.keys().map(String::as_str).collect();
            let what = format!("`{}` is not a connection type: {}", kind.escape_debug(), names.join(", "));
            return vec![Break::new("connection_types".to_owned(), what)];
        }
        let mut breaks = self.end_breaks(kind, from, to);
        let closed = self
            .connection_lineage(kind)
            .find(|kind| self.connection_types.get(*kind).is_some_and(|known| known.closed));
        let closed = closed.map(|kind| format!("connection_types.{kind}.closed"));
        breaks.extend(property_breaks(&self.connection_rules(kind), closed, properties));
        breaks
    }

    /// Returns the rules that the types of a connection's ends break.
    pub fn end_breaks(&self, kind: &str, from: &str, to: &str) -> Vec<Break> {
        let mut breaks = Vec::new();
        for (end, there) in [("from", from), ("to", to)] {
            let said = self.connection_lineage(kind).find_map(|kind| {
                let known = self.connection_types.get(kind)?;
                let allowed = if end == "from" { &known.from } else { &known.to };
                (!allowed.is_empty()).then_some((kind, allowed))
            });
            let Some((place, allowed)) = said else { continue };
            let fits = |allowed: &String| allowed == "*" || self.is_a(there, allowed);
            if !allowed.iter().any(fits) {
                let word = if end == "from" { "starts at" } else { "ends at" };
                let what =
                    format!("`{kind}` {word} {}, not at `{}`", allowed.join(", "), there.escape_debug());
                breaks.push(Break::new(format!("connection_types.{place}.{end}"), what));
            }
        }
        breaks
    }

    /// Refuses a node that breaks a rule.
    ///
    /// # Errors
    /// `Invalid` (`ONTOLOGY_RULE`), naming the rule.
    pub fn check_node(&self, kind: &str, properties: &Properties) -> Result<()> {
        self.refuse(self.node_breaks(kind, properties), &[])
    }

    /// Refuses what breaks a rule, unless it already broke it in the same way.
    ///
    /// # Errors
    /// `Invalid` (`ONTOLOGY_RULE`), naming the first such rule.
    pub fn refuse(&self, breaks: Vec<Break>, already: &[Break]) -> Result<()> {
        match breaks.into_iter().find(|one| !already.contains(one)) {
            None => Ok(()),
            Some(Break { rule, what }) => Err(Error::new(Kind::Invalid, format!("{what} (rule {rule})"))
                .code(code::ONTOLOGY_RULE)
                .hint("change it to what the ontology says: `memgrove graph ontology show` shows it")),
        }
    }

    /// Returns the type of connections that this is the inverse of, unless it is a type itself.
    pub fn inverted(&self, kind: &str) -> Option<&str> {
        if self.connection_types.contains_key(kind) {
            return None;
        }
        let found = self.connection_types.iter().find(|(_, known)| known.inverse.as_deref() == Some(kind));
        found.map(|(name, _)| name.as_str())
    }

    /// Returns the types that a type of connections stands for, each with whether it is read from end to
    /// start: itself, those that extend it, and the inverses of all of them, which older connections may
    /// still have.
    pub fn meant(&self, kind: &str) -> Vec<(String, bool)> {
        let (kind, turned) = self.inverted(kind).map_or((kind, false), |known| (known, true));
        let extends =
            |other: &&String| *other != kind && self.connection_lineage(other).any(|one| one == kind);
        let kinds = std::iter::once(kind)
            .chain(self.connection_types.keys().filter(extends).map(String::as_str))
            .collect::<Vec<_>>();
        let inverses = self.connection_types.iter().filter_map(|(name, known)| {
            let inverse = known.inverse.as_deref().filter(|inverse| self.inverted(inverse) == Some(name))?;
            kinds.contains(&name.as_str()).then(|| (inverse.to_owned(), !turned))
        });
        kinds.iter().map(|kind| ((*kind).to_owned(), turned)).chain(inverses).collect()
    }

    /// Returns the cardinality of a type of connections, and the type that sets it: this one, else the
    /// nearest that it extends.
    pub fn cardinality<'a>(&'a self, kind: &'a str) -> (&'a str, Cardinality) {
        let said = |kind: &'a str| Some((kind, self.connection_types.get(kind)?.cardinality));
        let mut said = self.connection_lineage(kind).filter_map(said);
        said.find(|(_, cardinality)| *cardinality != Cardinality::ManyToMany)
            .unwrap_or((kind, Cardinality::ManyToMany))
    }

    /// Returns the faults of the ontology itself.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut unknown = |place: &str, other: &BTreeMap<String, Value>, known: &[&str]| {
            for key in other.keys().filter(|key| !known.contains(&key.as_str())) {
                found.push(format!("`{place}{key}` is not known here"));
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
        self.inverse_problems(&mut found);
        self.rule_problems(&mut found);
        found
    }

    fn lineage_problems(&self, found: &mut Vec<String>) {
        let is_node = |kind: &String| self.node_types.contains_key(kind);
        let is_connection = |kind: &String| self.connection_types.contains_key(kind);
        for (kind, known) in &self.node_types {
            if let Some(parent) = known.extends.as_ref().filter(|parent| !is_node(parent)) {
                found.push(format!("`node_types.{kind}` extends `{parent}`, which is not a node type"));
            }
            let last = self.lineage(kind).last().unwrap_or(kind);
            if self.node_types.get(last).is_some_and(|last| last.extends.as_ref().is_some_and(is_node)) {
                found.push(format!("`node_types.{kind}` extends itself in a cycle"));
            }
        }
        for (kind, known) in &self.connection_types {
            if let Some(parent) = known.extends.as_ref().filter(|parent| !is_connection(parent)) {
                found.push(format!(
                    "`connection_types.{kind}` extends `{parent}`, which is not a connection type"
                ));
            }
            for (end, ends) in [("from", &known.from), ("to", &known.to)] {
                for there in ends.iter().filter(|there| *there != "*" && !is_node(there)) {
                    found.push(format!(
                        "`connection_types.{kind}.{end}` names `{there}`, which is not a node type"
                    ));
                }
            }
        }
    }

    /// Checks that each inverse belongs to exactly one type.
    fn inverse_problems(&self, found: &mut Vec<String>) {
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        for (kind, known) in &self.connection_types {
            let Some(inverse) = known.inverse.as_deref() else { continue };
            if let Some(other) = first.insert(inverse, kind) {
                found.push(format!(
                    "`connection_types.{kind}.inverse` is the inverse of `{other}` too: {inverse}"
                ));
            }
        }
    }

    fn rule_problems(&self, found: &mut Vec<String>) {
        let nodes = self.node_types.iter().map(|(kind, known)| (&known.properties, self.node_rules(kind)));
        let connections = self
            .connection_types
            .iter()
            .map(|(kind, known)| (&known.properties, self.connection_rules(kind)));
        for (properties, rules) in nodes.chain(connections) {
            // An inherited rule is reported at the type that sets it.
            for (name, rule) in rules.iter().filter(|(name, _)| properties.contains_key(**name)) {
                if let Some((at, values)) = &rule.values {
                    for value in values.iter().filter(|value| !rule.fits(value)) {
                        let kind = rule.kind.as_ref().map_or("value", |(_, kind)| kind.name());
                        found.push(format!("`{at}.enum` has {}, which is not a {kind}", shown(value)));
                    }
                }
                if let Some((at, default)) = &rule.default
                    && rule.breaks(name, default).is_some()
                {
                    found.push(format!("`{at}.default` breaks its own rule: {}", shown(default)));
                }
            }
        }
    }
}

/// The rules of a type by property.
type Rules<'a> = BTreeMap<&'a str, Rule<'a>>;

/// The rules of a property, each with the place of the nearest type that sets it.
#[derive(Default)]
struct Rule<'a> {
    kind: Option<(String, PropertyType)>,
    required: Option<String>,
    values: Option<(String, &'a [Value])>,
    default: Option<(String, &'a Value)>,
}

/// Combines the rules of several types, nearest first.
fn rules<'a>(types: impl Iterator<Item = (String, &'a BTreeMap<String, PropertyRule>)>) -> Rules<'a> {
    let mut rules = Rules::new();
    for (place, properties) in types {
        for (name, said) in properties {
            let at = || format!("{place}.properties.{name}");
            let rule = rules.entry(name.as_str()).or_default();
            if rule.kind.is_none() && said.kind != PropertyType::Any {
                rule.kind = Some((at(), said.kind));
            }
            if rule.required.is_none() && said.required {
                rule.required = Some(at());
            }
            if rule.values.is_none() && !said.values.is_empty() {
                rule.values = Some((at(), &said.values));
            }
            if let (None, Some(default)) = (&rule.default, &said.default) {
                rule.default = Some((at(), default));
            }
        }
    }
    rules
}

impl Rule<'_> {
    fn fits(&self, value: &Value) -> bool {
        self.kind.as_ref().is_none_or(|(_, kind)| kind.fits(value))
    }

    fn breaks(&self, name: &str, value: &Value) -> Option<Break> {
        if let Some((at, kind)) = &self.kind
            && !kind.fits(value)
        {
            let what =
                format!("the property `{name}` is of the type {}, and {} is not", kind.name(), shown(value));
            return Some(Break::new(format!("{at}.type"), what));
        }
        let (at, values) = self.values.as_ref().filter(|(_, values)| !values.contains(value))?;
        let values: Vec<String> = values.iter().map(shown).collect();
        let what =
            format!("the property `{name}` is one of {}, and {} is not", values.join(", "), shown(value));
        Some(Break::new(format!("{at}.enum"), what))
    }
}

fn complete(rules: &Rules<'_>, properties: &mut Properties) {
    for (name, rule) in rules {
        if let Some((_, default)) = &rule.default
            && !properties.contains_key(*name)
        {
            properties.insert((*name).to_owned(), (*default).clone());
        }
    }
}

fn property_breaks(rules: &Rules<'_>, closed: Option<String>, properties: &Properties) -> Vec<Break> {
    let mut breaks = Vec::new();
    for (name, rule) in rules {
        match (properties.get(*name), &rule.required) {
            (Some(value), _) => breaks.extend(rule.breaks(name, value)),
            (None, Some(at)) => {
                breaks
                    .push(Break::new(format!("{at}.required"), format!("the property `{name}` is missing")));
            }
            (None, None) => {}
        }
    }
    if let Some(closed) = closed {
        for name in properties.keys().filter(|name| !rules.contains_key(name.as_str())) {
            let names: Vec<&str> = rules.keys().copied().collect();
            let what =
                format!("`{}` is not one of its properties: {}", name.escape_debug(), names.join(", "));
            breaks.push(Break::new(closed.clone(), what));
        }
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
