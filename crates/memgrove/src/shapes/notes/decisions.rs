//! What was decided about notes, by whom and why: `.metadata/decisions.jsonl`.

use serde::{Deserialize, Serialize};

use super::advice::Decided;
use crate::agent::{Spent, Strategy};
use crate::clock::Timestamp;

/// The file of the decisions, beside the notes.
pub(super) const DECISIONS: &str = "decisions.jsonl";

/// One decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub time: String,
    /// What: `place`, `split`, `merge` or `import`.
    pub what: String,
    /// The note that it is about.
    pub path: String,
    /// Who decided.
    pub agent: String,
    /// Why.
    pub reason: String,
    /// How a note was split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// The notes that resulted or that were combined, with how many blocks of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Facts that were not stored, because a model found them in the note in other words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// Whose answer was refused first, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// What it cost to ask.
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
}

/// A note and how many blocks it took or gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The note.
    pub path: String,
    /// The blocks.
    pub blocks: usize,
}

/// An answer that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Whose answer.
    pub agent: String,
    /// Why.
    pub reason: String,
}

impl Decision {
    /// Makes a decision about a note with only its maker and reason.
    pub(super) fn new<T>(what: &str, path: &str, now: Timestamp, decided: &Decided<T>) -> Self {
        Decision {
            time: format!("{now:.0}"),
            what: what.to_owned(),
            path: path.to_owned(),
            agent: decided.agent.clone(),
            reason: decided.advice.reason.clone(),
            strategy: None,
            parts: Vec::new(),
            known: Vec::new(),
            refused: decided.refused.clone(),
            spent: decided.advice.spent,
        }
    }

    /// Returns the decision as a line of the log.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
