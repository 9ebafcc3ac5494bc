//! How a memory is named: by its kind, a colon, and what tells it from the others of that kind.

use std::fmt;

use crate::error::code;

/// The kinds of memories that have addresses.
///
/// ```
/// use memgrove::address::Scheme;
///
/// assert_eq!(Scheme::split("entity:person/Alice"), Some((Scheme::Entity, "person/Alice")));
/// assert_eq!(Scheme::Node.address("mem_task_001"), "node:mem_task_001");
/// assert_eq!(Scheme::Note.bare("note:home/bike"), "home/bike");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// A file, by its path beneath `/memories`.
    File,
    /// A note, by its path.
    Note,
    /// A record, by its id.
    Record,
    /// An entity, by its type and name.
    Entity,
    /// A node of the graph, by its id.
    Node,
    /// A connection of the graph, by its id.
    Connection,
}

impl Scheme {
    /// Every kind.
    pub const ALL: [Scheme; 6] =
        [Scheme::File, Scheme::Note, Scheme::Record, Scheme::Entity, Scheme::Node, Scheme::Connection];

    /// What an address of this kind begins with, without the colon.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::File => "file",
            Scheme::Note => "note",
            Scheme::Record => "record",
            Scheme::Entity => "entity",
            Scheme::Node => "node",
            Scheme::Connection => "connection",
        }
    }

    /// The [code] of the error for one that does not exist.
    pub fn missing(self) -> &'static str {
        match self {
            Scheme::File => code::FILE_NOT_FOUND,
            Scheme::Note => code::NOTE_NOT_FOUND,
            Scheme::Record => code::RECORD_NOT_FOUND,
            Scheme::Entity => code::ENTITY_NOT_FOUND,
            Scheme::Node => code::NODE_NOT_FOUND,
            Scheme::Connection => code::CONNECTION_NOT_FOUND,
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// Splits an address into its kind and the part after the colon; `None` if it does not begin with a kind.
    pub fn split(address: &str) -> Option<(Scheme, &str)> {
        let (name, rest) = address.split_once(':')?;
        Some((Scheme::named(name)?, rest))
    }

    /// The address of a memory of this kind.
    pub fn address(self, rest: impl fmt::Display) -> String {
        format!("{}:{rest}", self.name())
    }

    /// The part after the colon in an address of this kind; `None` for any other.
    pub fn of(self, address: &str) -> Option<&str> {
        address.strip_prefix(self.name())?.strip_prefix(':')
    }

    /// The part after the colon, or all of `given` if it does not begin with this kind.
    pub fn bare(self, given: &str) -> &str {
        self.of(given).unwrap_or(given)
    }
}
