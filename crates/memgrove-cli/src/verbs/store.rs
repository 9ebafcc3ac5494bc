//! The store itself: making one, checking one, and the backends there are.

use std::io;
use std::path::PathBuf;

use memgrove::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::config::{How, STORE_FOLDER};
use crate::context::{Context, random_id};
use crate::page::{Ink, Page};
use crate::settings::{self, Made};

/// Make a store
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Init {
    /// Its folder [default: ./.memgrove]
    path: Option<PathBuf>,
}

/// Where the store is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InitAnswer {
    store: String,
    /// Whether it was made now.
    made: bool,
}

impl Verb for Init {
    const NAME: &'static str = "init";
    const TITLE: &'static str = "Make a store";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli];
    type Answer = InitAnswer;

    fn run(self, cx: &Context) -> Result<InitAnswer> {
        let root = match (self.path, cx.place()) {
            (Some(path), _) => cx.environment().absolute(&path)?,
            (None, Some(place)) if matches!(place.how, How::Flag | How::Variable) => place.root.clone(),
            (None, _) => cx.environment().absolute(STORE_FOLDER.as_ref())?,
        };
        // A backend that nobody knows is refused before anything is made.
        memgrove::Registry::standard().select(cx.backend_flag(), None, &[])?;
        let made = settings::make_store(&root, &random_id(), cx.backend_flag())?;
        Ok(InitAnswer { store: root.display().to_string(), made: made == Made::Now })
    }

    fn show(answer: &InitAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.made { "made a store at " } else { "there is a store already at " })?;
        page.ink(Ink::Strong, &answer.store)?;
        page.put("\n")
    }
}
