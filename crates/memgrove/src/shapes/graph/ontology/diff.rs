//! How one ontology differs from another.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Ontology;

/// One place where two ontologies differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The place, such as `node_types.project.prefix`.
    pub at: String,
    /// The value in the first, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The value in the second, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// Returns every place where the second ontology differs from the first.
pub fn differences(old: &Ontology, new: &Ontology) -> Vec<Difference> {
    let (old, new) = (places(old), places(new));
    let mut all: Vec<&String> = old.keys().chain(new.keys()).collect();
    all.sort();
    all.dedup();
    let difference =
        |at: &String| Difference { at: at.clone(), old: old.get(at).cloned(), new: new.get(at).cloned() };
    all.into_iter().filter(|at| old.get(*at) != new.get(*at)).map(difference).collect()
}

fn places(ontology: &Ontology) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let value = serde_json::to_value(ontology).expect("an ontology is plain data with text keys");
    collect(String::new(), &value, &mut found);
    found
}

fn collect(at: String, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let below = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                collect(below, value, found);
            }
        }
        value => drop(found.insert(at, value.to_string())),
    }
}
