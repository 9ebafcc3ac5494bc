//! Who owns the truth and what may be synced: the source, shared abstracts, the local index.

use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// One tier of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// The files that people and agents write: the truth that the others are rebuilt from.
    Source,
    /// Derived summaries for people, in plain files: may sync, rebuilt if lost.
    SharedAbstracts,
    /// The search index: device-local; a replicated database file is a corrupt one.
    LocalIndex,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Tier; 3] = [Tier::Source, Tier::SharedAbstracts, Tier::LocalIndex];

    /// The tier's name.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Source => "source",
            Tier::SharedAbstracts => "shared-abstracts",
            Tier::LocalIndex => "local-index",
        }
    }

    /// Whether a sync layer may replicate it: all but the local index.
    pub fn syncs(self) -> bool {
        self != Tier::LocalIndex
    }

    /// Whether it can be rebuilt from the source: all but the source.
    pub fn derived(self) -> bool {
        self != Tier::Source
    }
}

/// Where each tier lies. Placement only: making one creates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierLayout {
    source: Locator,
    shared_abstracts: Locator,
    local_index: Locator,
}

impl TierLayout {
    /// A layout of three distinct roots.
    ///
    /// # Errors
    /// `Invalid` if two roots are the same, so that a derived tier can never overwrite its source.
    pub fn new(source: Locator, shared_abstracts: Locator, local_index: Locator) -> Result<Self> {
        if source == shared_abstracts || source == local_index || shared_abstracts == local_index {
            return Err(Error::new(Kind::Invalid, "two tiers have the same root")
                .hint("give the source, the shared abstracts and the local index a folder each"));
        }
        Ok(TierLayout { source, shared_abstracts, local_index })
    }

    /// The root of a tier.
    pub fn root_for(&self, tier: Tier) -> &Locator {
        match tier {
            Tier::Source => &self.source,
            Tier::SharedAbstracts => &self.shared_abstracts,
            Tier::LocalIndex => &self.local_index,
        }
    }

    /// The one tree that must never be replicated.
    pub fn never_sync_root(&self) -> &Locator {
        &self.local_index
    }
}

impl Default for TierLayout {
    /// Roots named after their tiers.
    fn default() -> Self {
        let root = |tier: Tier| Locator::new(tier.name()).expect("a tier's name is a valid key");
        TierLayout {
            source: root(Tier::Source),
            shared_abstracts: root(Tier::SharedAbstracts),
            local_index: root(Tier::LocalIndex),
        }
    }
}

/// How a derived tier is kept true to the source.
pub trait DerivedMaintenance {
    /// Rebuilds a derived tier from the source.
    ///
    /// # Errors
    /// `Invalid` for [`Tier::Source`], which is not derived; else as the storage says.
    fn reindex(&self, tier: Tier) -> Result<()>;

    /// The source files modified after a moment.
    ///
    /// # Errors
    /// As the storage says.
    fn changed_since(&self, mtime: Timestamp) -> Result<Vec<Locator>>;
}
