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
    /// Why the registry had to be made anew: it was lost, or damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Contents of nodes that somebody changed by hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// Files with content that belonged to no node, and are nodes now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<String>,
    /// Files that are called as a content of something that does not hold them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stray: Vec<String>,
    /// What the registry did not know, or knew otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// What the registry knew, and no file says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// What has lost the file that says what it is; a rebuild writes what the registry knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Nodes and connections whose content is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Connections with an end that does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dangling: Vec<String>,
    /// Files that cannot be read. A rebuild puts those aside that the registry knows better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// Files with git's conflict markers, which stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<String>,
    /// Where a rebuild has put what could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
    /// Entries of the registry that cannot be read, and stay there as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Files that say another id than their name does; the name counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misnamed: Vec<String>,
}
