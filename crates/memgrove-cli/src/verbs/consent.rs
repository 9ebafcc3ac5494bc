//! What the verbs take whose work cannot be undone.

use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::Guard;

/// Whether it is only to be told, or done, and why.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(super) struct Consent {
    /// Only show what would be removed
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    /// Confirm: this cannot be undone
    #[arg(long, conflicts_with = "dry_run")]
    #[serde(default)]
    yes: bool,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    reason: Option<String>,
}

impl Consent {
    /// Whether it is only planned.
    pub(super) fn is_planned(&self) -> bool {
        self.dry_run
    }

    /// Refuses unless it is a dry run or confirmed. `done` says what would happen: pruned, redacted.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn check(&self, done: &str) -> Result<()> {
        match self.dry_run || self.yes {
            true => Ok(()),
            false => Err(Error::new(Kind::Invalid, format!("what is {done} cannot be restored"))
                .hint("preview with --dry-run (`dry_run`), then confirm with --yes (`yes`)")),
        }
    }

    /// What the history is to remember.
    pub(super) fn guard(&self) -> Guard {
        Guard { reason: self.reason.clone(), ..Guard::default() }
    }
}
