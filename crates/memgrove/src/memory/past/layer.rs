//! What files would hold after some edits, over files that stay as they are.

use std::collections::HashMap;

use crate::error::Result;
use crate::locator::Locator;

/// Reads what lies beneath a layer: a file's bytes, or `None` if there is no file.
pub(super) type Base<'a> = dyn Fn(&Locator) -> Result<Option<Vec<u8>>> + 'a;

/// Files, some of them changed or moved.
pub(super) struct Layer<'a> {
    base: Box<Base<'a>>,
    /// The content of places that the layer has set; `None` if the file was removed.
    files: HashMap<Locator, Option<Vec<u8>>>,
    moves: Vec<(Locator, Locator)>,
}

impl<'a> Layer<'a> {
    pub(super) fn over(base: impl Fn(&Locator) -> Result<Option<Vec<u8>>> + 'a) -> Self {
        Layer { base: Box::new(base), files: HashMap::new(), moves: Vec::new() }
    }

    /// The file at a place.
    pub(super) fn get(&self, at: &Locator) -> Result<Option<Vec<u8>>> {
        match (self.files.get(at), self.base_name(at)) {
            (Some(known), _) => Ok(known.clone()),
            (None, Some(name)) => (self.base)(&name),
            (None, None) => Ok(None),
        }
    }

    /// Returns the base's name for what is at a place; `None` if it was moved away from there.
    pub(super) fn base_name(&self, at: &Locator) -> Option<Locator> {
        self.moves.iter().rev().try_fold(at.clone(), |name, (from, to)| {
            name.rebased(to, from).or_else(|| (!name.is_within(from)).then_some(name))
        })
    }

    /// Returns the layer's name for what the base has at a name.
    pub(super) fn layer_name(&self, name: &Locator) -> Locator {
        self.moves.iter().fold(name.clone(), |name, (from, to)| name.rebased(from, to).unwrap_or(name))
    }

    /// Whether the layer itself has set what is at a place.
    pub(super) fn knows(&self, at: &Locator) -> bool {
        self.files.contains_key(at)
    }

    /// Puts a file at a place, or removes it.
    pub(super) fn set(&mut self, at: &Locator, bytes: Option<Vec<u8>>) {
        self.files.insert(at.clone(), bytes);
    }

    /// Moves a file or folder.
    pub(super) fn rename(&mut self, from: &Locator, to: &Locator) {
        // The place was free, so what the layer knows of it is outdated.
        self.files.retain(|at, _| !at.is_within(to));
        let moved: Vec<Locator> = self.files.keys().filter(|at| at.is_within(from)).cloned().collect();
        for at in moved {
            if let (Some(known), Some(place)) = (self.files.remove(&at), at.rebased(from, to)) {
                self.files.insert(place, known);
            }
        }
        self.moves.push((from.clone(), to.clone()));
    }

    /// The places beneath a folder (itself not included) where the layer has put a file.
    pub(super) fn put_beneath(&self, folder: &Locator) -> impl Iterator<Item = &Locator> {
        let files = self.files.iter().filter(move |(at, known)| known.is_some() && at.is_within(folder));
        files.map(|(at, _)| at).filter(move |at| *at != folder)
    }

    /// The places within a folder that something was moved to.
    pub(super) fn moved_into(&self, folder: &Locator) -> Vec<Locator> {
        let targets = self.moves.iter().enumerate().map(|(index, (_, to))| {
            let later = self.moves[index + 1..].iter();
            later.fold(to.clone(), |name, (from, to)| name.rebased(from, to).unwrap_or(name))
        });
        targets.filter(|place| place.is_within(folder)).collect()
    }
}
