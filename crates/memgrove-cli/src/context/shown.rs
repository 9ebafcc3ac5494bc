//! What askers were shown at the addresses of parts, which are counted anew when one before them is forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use memgrove::backend::{Actor, Version};
use memgrove::index::{Hit, documents};
use memgrove::locator::Locator;
use memgrove::{Error, Kind, Result};

use super::{Context, Input};

/// How many parts are remembered; with more, all are forgotten, and nothing is held to what was shown.
const PARTS_MAX: usize = 10_000;
/// How much of a part an error shows.
const SAID_CHARS_MAX: usize = 80;

/// The versions of parts as they were shown, by asker and address.
#[derive(Default)]
pub(super) struct Shown(Mutex<HashMap<(Option<String>, String), Version>>);

impl Shown {
    /// Remembers what an asker sees there, and gives back what it saw before.
    fn put(&self, actor: &Actor, hit: &Hit) -> Option<Version> {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= PARTS_MAX {
            shown.clear();
        }
        let asker = actor.session.clone().or_else(|| actor.client.clone());
        shown.insert((asker, hit.address.clone()), Version::of(hit.text.as_bytes()))
    }
}

impl Context {
    /// Remembers what is shown to the asker, in a server that may be asked again.
    pub(crate) fn note_shown<'a>(&self, hits: impl Iterator<Item = &'a Hit>) {
        for hit in hits.filter(|hit| self.input == Input::None && hit.address.contains('#')) {
            self.shared.shown.put(&self.actor, hit);
        }
    }

    /// Refuses to forget a part that is another by now than the asker was shown at this address.
    pub(crate) fn check_shown(&self, address: &str) -> Result<()> {
        if self.input != Input::None || !address.contains('#') {
            return Ok(());
        }
        let Some(hit) = self.index()?.document(address)? else { return Ok(()) };
        let now = Version::of(hit.text.as_bytes());
        let Some(before) = self.shared.shown.put(&self.actor, &hit).filter(|before| *before != now) else {
            return Ok(());
        };
        let bytes = self.reading()?.store().read_bytes(&Locator::new(&hit.file)?)?.bytes;
        let is_it = |text: &str| Version::of(text.as_bytes()) == before;
        let moved = documents(&hit.file, &bytes).into_iter().find(|document| is_it(&document.text));
        let said: String = hit.text.chars().take(SAID_CHARS_MAX).collect();
        Err(Error::new(Kind::Conflict, format!("`{address}` is `{}` by now", said.escape_debug())).hint(
            match moved {
                Some(document) => format!("what you were shown there is now `{}`", document.address),
                None => {
                    "what you were shown there is gone; call again to forget what is there now".to_owned()
                }
            },
        ))
    }
}
