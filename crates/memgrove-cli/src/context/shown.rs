//! What each asker was last shown at the address of a part: forgetting a part renumbers those after it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use memgrove::backend::{Actor, Version};
use memgrove::index::documents;
use memgrove::locator::Locator;
use memgrove::{Error, Kind, Result};

use super::{Context, Input};

/// How many parts are remembered; beyond that all are dropped, and nothing is checked against them.
const PARTS_MAX: usize = 10_000;
/// How much of a part an error shows.
const SAID_CHARS_MAX: usize = 80;

/// The versions of parts as they were last shown, by asker and address.
#[derive(Default)]
pub(super) struct Shown(Mutex<HashMap<(Asker, String), Version>>);

/// The client and the session of an asker.
type Asker = (Option<String>, Option<String>);

impl Shown {
    /// Remembers what an asker sees at an address, and returns what it saw there before.
    fn put(&self, actor: &Actor, address: &str, version: Version) -> Option<Version> {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= PARTS_MAX {
            shown.clear();
        }
        // Clients may give their sessions the same name.
        let asker = (actor.client.clone(), actor.session.clone());
        shown.insert((asker, address.to_owned()), version)
    }
}

impl Context {
    /// Remembers what was shown of a part, in a server whose asker may come back to it.
    pub(crate) fn note_shown(&self, address: &str, text: &str) {
        if self.input == Input::None && address.contains('#') {
            self.shared.shown.put(&self.actor, address, Version::of(text.as_bytes()));
        }
    }

    /// Refuses to forget a part that is not the one that the asker was shown at this address.
    pub(crate) fn check_shown(&self, address: &str) -> Result<()> {
        if self.input != Input::None || !address.contains('#') {
            return Ok(());
        }
        let Some(hit) = self.index()?.document(address)? else { return Ok(()) };
        let now = Version::of(hit.text.as_bytes());
        let before = self.shared.shown.put(&self.actor, address, now.clone());
        let Some(before) = before.filter(|before| *before != now) else { return Ok(()) };
        let bytes = self.reading()?.store().read_bytes(&Locator::new(&hit.file)?)?.bytes;
        let is_it = |text: &str| Version::of(text.as_bytes()) == before;
        let moved = documents(&hit.file, &bytes).into_iter().find(|document| is_it(&document.text));
        let said: String = hit.text.chars().take(SAID_CHARS_MAX).collect();
        Err(Error::new(Kind::Conflict, format!("`{address}` is `{}` by now", said.escape_debug())).hint(
            match moved {
                Some(document) => {
                    self.shared.shown.put(&self.actor, &document.address, before);
                    format!("what you were shown there is now `{}`", document.address)
                }
                None => {
                    "what you were shown there is gone; call again to forget what is there now".to_owned()
                }
            },
        ))
    }
}
