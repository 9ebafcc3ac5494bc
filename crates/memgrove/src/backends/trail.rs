//! Which past changes touched a place, under the name it has now or had before.

use crate::backend::{Op, PastEdit};
use crate::locator::Locator;

/// Follows a place back through the history, newest change first.
pub(crate) struct Trail {
    names: Vec<Locator>,
}

impl Trail {
    /// The trail of what is at `at` now, and of everything beneath it.
    pub(crate) fn of(at: &Locator) -> Self {
        Trail { names: vec![at.clone()] }
    }

    /// Whether the next older change touched the place. Learns the earlier names from its renames.
    pub(crate) fn touched_by(&mut self, edits: &[PastEdit]) -> bool {
        let mut touched = false;
        for edit in edits.iter().rev() {
            touched |= self.meets(&edit.at);
            if let (Op::Rename, Some(to)) = (edit.op, &edit.to)
                && self.meets(to)
            {
                touched = true;
                self.follow(&edit.at, to);
            }
        }
        touched
    }

    fn meets(&self, at: &Locator) -> bool {
        self.names.iter().any(|name| at.is_within(name) || name.is_within(at))
    }

    /// Adds what the followed names were called before `from` was renamed to `to`. The present
    /// names stay: something else may have been there before.
    fn follow(&mut self, from: &Locator, to: &Locator) {
        for index in 0..self.names.len() {
            let name = &self.names[index];
            // Either the place was moved with its folder, or something was moved into the place.
            let earlier = name.rebased(to, from).or_else(|| to.is_within(name).then(|| from.clone()));
            if let Some(earlier) = earlier
                && !self.names.contains(&earlier)
            {
                self.names.push(earlier);
            }
        }
    }
}
