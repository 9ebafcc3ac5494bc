//! What search knows of one memory: small, addressed, and described without the terms of any shape.

use std::ops::Range;

use crate::clock::Timestamp;

/// One thing that can be found: a section of a file, a record, an observation of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// What `read` takes; unique in its file.
    pub address: String,
    /// The shape that it comes from.
    pub shape: Shape,
    /// The kind of thing within its shape: a record's type, an entity's type.
    pub kind: String,
    /// What it is called.
    pub title: String,
    /// Who says it or whom it is about, where the text itself tells.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// Words that someone has chosen to find it by.
    pub tags: Vec<String>,
    /// When it is from; without one, its file's time counts.
    pub date: Option<Timestamp>,
    /// How much it matters.
    pub importance: Weight,
    /// How often it was read.
    pub uses: u64,
    /// Names and addresses of what it refers to.
    pub links: Vec<String>,
    /// The name by which links refer to it; empty where none can.
    pub name: String,
    /// Whether it holds no longer, or was put away: found only when asked for.
    pub hidden: bool,
    /// From when until just before when it holds, if it says so: at other times it is hidden.
    pub holds: Option<(Timestamp, Timestamp)>,
    /// The group that it belongs to: one conversation, one note or one entity.
    pub group: String,
    /// Where it stands in its file, in bytes.
    pub span: Range<usize>,
}

/// A shape, as documents name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Shape {
    /// Files of any kind.
    #[default]
    Files,
    /// One-line memories.
    Records,
    /// Entities and what is known of them.
    Entities,
    /// Nodes and connections.
    Graph,
    /// Notes that link to each other.
    Notes,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 5] = [Shape::Files, Shape::Records, Shape::Entities, Shape::Graph, Shape::Notes];

    /// The shape's name, as `shape:` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Files => "files",
            Shape::Records => "records",
            Shape::Entities => "entities",
            Shape::Graph => "graph",
            Shape::Notes => "notes",
        }
    }

    /// The shape of a name; a singular will do.
    pub fn named(name: &str) -> Option<Shape> {
        let fits = |shape: &Shape| {
            let full = shape.name();
            full == name || full.trim_end_matches('s') == name || (full == "entities" && name == "entity")
        };
        Shape::ALL.into_iter().find(fits)
    }
}

/// How much a document matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Weight {
    /// Less than others.
    Low,
    /// As usual.
    #[default]
    Medium,
    /// More than others.
    High,
}

impl Weight {
    /// Every weight, lightest first.
    pub const ALL: [Weight; 3] = [Weight::Low, Weight::Medium, Weight::High];

    /// The weight's name, as `importance:` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Weight::Low => "low",
            Weight::Medium => "medium",
            Weight::High => "high",
        }
    }

    /// The weight of a name.
    pub fn named(name: &str) -> Option<Weight> {
        Weight::ALL.into_iter().find(|weight| weight.name() == name.to_lowercase())
    }

    /// The weight as a number: -1, 0 or 1.
    pub fn points(self) -> i64 {
        self as i64 - 1
    }

    /// The weight of such a number.
    pub fn of_points(points: i64) -> Weight {
        Weight::ALL.into_iter().find(|weight| weight.points() == points).unwrap_or_default()
    }
}
