//! What a survey of the graph's files found.

use serde::{Deserialize, Serialize};

/// What a survey found, by id or file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many connections there are.
    pub connections: usize,
    /// Why the registry had to be rebuilt: it was lost, or damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Contents of nodes that somebody changed by hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// Files with content that belonged to no node, and for which nodes were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<String>,
    /// Files named like the content of a node or connection that has another content or none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stray: Vec<String>,
    /// Ids that the registry did not have, or had with another entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// Ids that the registry had and no file has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Ids whose entry file is missing; a rebuild writes it from the registry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Nodes and connections whose content is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Connections with an end that does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dangling: Vec<String>,
    /// Files that cannot be read. A rebuild moves aside those for which the registry has an entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// Files with git's conflict markers, which stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<String>,
    /// Where a rebuild has moved files that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
    /// Entries of the registry that cannot be read, and stay there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Files that contain another id than their name; the name counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misnamed: Vec<String>,
}
