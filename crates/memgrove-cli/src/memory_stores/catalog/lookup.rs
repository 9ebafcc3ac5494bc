//! Which memory and which version is meant: by place, content, change or id.

use memgrove::Locator;
use memgrove::backend::{Moment, Version};

use super::{Catalog, Lineage, Operation, VersionOf};

impl Catalog {
    /// The memory at a place.
    pub(crate) fn at(&self, at: &Locator) -> Option<&Lineage> {
        self.live.get(at).map(|memory| &self.memories[*memory])
    }

    /// The last version of a memory with this content at a place. The history tells of a change moments
    /// before it is in place, so a later version may be known already.
    pub(crate) fn holding(&self, at: &Locator, content: &Version) -> Option<(&Lineage, &VersionOf)> {
        let is_unread =
            |version: &VersionOf| version.content.is_none() && version.operation != Operation::Deleted;
        let last = self.at(at).and_then(|lineage| Some((lineage, lineage.versions.last()?)));
        last.filter(|(_, last)| is_unread(last))
            .or_else(|| self.version_at(at, |version| version.content.as_ref() == Some(content)))
    }

    /// The version of a memory that a change has left at a place.
    pub(crate) fn left_by(&self, change: &Moment, at: &Locator) -> Option<(&Lineage, &VersionOf)> {
        self.version_at(at, |version| version.moment == *change)
    }

    fn version_at(&self, at: &Locator, is_it: impl Fn(&VersionOf) -> bool) -> Option<(&Lineage, &VersionOf)> {
        let is_it = |version: &&VersionOf| is_it(version) && version.at == *at;
        // Mostly it belongs to the memory that is there now.
        let mut lineages = self.at(at).into_iter().chain(self.memories.iter().rev());
        lineages.find_map(|lineage| Some((lineage, lineage.versions.iter().rfind(is_it)?)))
    }

    /// The memory of an id, and where it is if it is still there.
    pub(crate) fn by_id(&self, id: &str) -> Option<(&Lineage, Option<&Locator>)> {
        let memory = *self.ids.get(id)?;
        Some((&self.memories[memory], self.place(memory)))
    }

    /// Where a memory is, if it is still there.
    pub(crate) fn place(&self, memory: usize) -> Option<&Locator> {
        match self.memories[memory].versions.last() {
            Some(last) => (last.operation != Operation::Deleted).then_some(&last.at),
            // Its whole past was pruned.
            None => self.live.iter().find(|(_, live)| **live == memory).map(|(at, _)| at),
        }
    }
}
