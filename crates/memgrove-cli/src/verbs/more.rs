//! Texts on the command line that need no quotes.

/// The further words of a text that a verb takes.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct More {
    /// Further words of it
    #[arg(hide = true)]
    more: Vec<String>,
}

impl More {
    /// The whole text: its first word, then the further ones.
    pub(super) fn behind(self, first: String) -> String {
        [vec![first], self.more].concat().join(" ")
    }

    /// As [`More::behind`], for a text that may be left out.
    pub(super) fn behind_any(self, first: Option<String>) -> Option<String> {
        first.map(|first| self.behind(first))
    }
}
