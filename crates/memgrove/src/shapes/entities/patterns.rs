//! Which kinds of entities agents store repeatedly: lessons, states of roles, and patterns that work.

use serde::{Deserialize, Serialize};

use super::{Entity, Facts, Observation, Relation};

/// A lesson that was learned from a mistake.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Learning {
    /// What kind of mistake.
    pub error_type: String,
    /// The error itself.
    pub error: String,
    /// What was being done.
    pub context: String,
    /// Who did it.
    pub role: String,
    /// What kind of task it was.
    pub task_type: String,
    /// What was learned.
    pub lesson: String,
    /// How to prevent it.
    pub prevention: String,
}

impl Learning {
    /// Returns the entity for it, on a day such as `2026-11-15`.
    pub fn entity(&self, day: &str) -> Entity {
        let relation = |kind: &str, to: &str| Relation {
            kind: kind.to_owned(),
            to: to.to_owned(),
            facts: Facts::default(),
        };
        let relations = [relation("learned-by", &self.role), relation("applies-to", &self.task_type)];
        Entity {
            name: format!("Learning-{}-{day}", self.error_type),
            kind: "Learning".to_owned(),
            observations: said([
                ("Error", &self.error),
                ("Context", &self.context),
                ("Learning", &self.lesson),
                ("Prevention", &self.prevention),
            ]),
            tags: tags(["learning", &self.error_type, &self.role]),
            relations: relations.into_iter().filter(|relation| !relation.to.is_empty()).collect(),
            ..Entity::default()
        }
    }
}

/// The state of a role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleState {
    /// The role's name.
    pub role: String,
    /// Its process score.
    pub p: i64,
    /// Its quality score.
    pub q: i64,
    /// What it is working on, as JSON or in words.
    pub active_context: String,
    /// How many tasks it has done.
    pub tasks: usize,
}

impl RoleState {
    /// The entity for it.
    pub fn entity(&self) -> Entity {
        Entity {
            name: format!("role-state-{}", self.role),
            kind: "RoleState".to_owned(),
            observations: said([
                ("Role", &self.role),
                ("Scores", &format!("P={}, Q={}", self.p, self.q)),
                ("Active Context", &self.active_context),
                ("Task History", &format!("{} tasks", self.tasks)),
            ]),
            tags: tags(["role-state", &self.role]),
            ..Entity::default()
        }
    }
}

/// A pattern that works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pattern {
    /// What kind of pattern.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Where it applies.
    pub context: String,
    /// What results from it.
    pub outcome: String,
    /// What to do.
    pub instructions: String,
    /// What it belongs to.
    pub category: String,
}

impl Pattern {
    /// Returns the entity for it, on a day such as `2026-11-15`.
    pub fn entity(&self, day: &str) -> Entity {
        Entity {
            name: format!("{}-Pattern-{}-{day}", self.kind, self.name),
            kind: format!("{}Pattern", self.kind),
            observations: said([
                ("Pattern", &self.description),
                ("Context", &self.context),
                ("Outcome", &self.outcome),
                ("Instructions", &self.instructions),
            ]),
            tags: tags(["pattern", &self.kind.to_lowercase(), &self.category]),
            ..Entity::default()
        }
    }
}

fn said<const N: usize>(lines: [(&str, &str); N]) -> Vec<Observation> {
    let given = lines.into_iter().filter(|(_, text)| !text.trim().is_empty());
    given.map(|(what, text)| Observation::from(format!("{what}: {text}").as_str())).collect()
}

fn tags<const N: usize>(tags: [&str; N]) -> Vec<String> {
    tags.into_iter().filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}
