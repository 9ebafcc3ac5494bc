//! How a verb tells what its change left behind.

use std::io;

use crate::page::{Ink, Page};

/// What is said of a change that a key names and that was made before.
const REPLAYED: &str = "done before with this key";

/// Shows what a change left behind, after the words that say what was done, and ends the line.
pub(super) fn show_facts(
    page: &mut Page<'_>,
    version: Option<&str>,
    change: Option<&str>,
    replayed: bool,
) -> io::Result<()> {
    let version = version.map(|version| format!("version {}", super::file::short(version)));
    let change = change.map(|change| format!("change {change}"));
    let replayed = replayed.then(|| REPLAYED.to_owned());
    let facts: Vec<String> = version.into_iter().chain(change).chain(replayed).collect();
    if !facts.is_empty() {
        page.ink(Ink::Dim, &format!(" ({})", facts.join(", ")))?;
    }
    page.put("\n")
}

/// Shows which change it was, on a line of its own.
pub(super) fn show_change(change: Option<&str>, replayed: bool, page: &mut Page<'_>) -> io::Result<()> {
    match (change, replayed) {
        (_, true) => page.ink(Ink::Dim, &format!("{REPLAYED}\n")),
        (Some(change), _) => page.ink(Ink::Dim, &format!("change {change}\n")),
        (None, _) => Ok(()),
    }
}
