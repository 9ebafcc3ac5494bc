//! The words of the command line: how verbs are spelled there, what else they are called, and what
//! the groups of them are about.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue};

/// Other names by which people look for a verb.
const ALSO_CALLED: [(&str, &str); 4] =
    [("search", "recall"), ("delete", "forget"), ("rm", "forget"), ("log", "history")];

/// What each group of verbs is about.
const GROUPS: [(&str, &str); 11] = [
    ("file", "Work with files, which agents see as /memories"),
    ("record", "Manage records: core memories, learnings and tasks, one line each"),
    ("entity", "Manage entities: people, projects, lessons, and their relations"),
    ("node", "Manage the nodes of the graph"),
    ("connection", "Manage the connections of the graph"),
    ("graph", "Explore, change, export, import and check the graph"),
    ("note", "Manage notes: one memory that grows into many, linked and searchable"),
    ("import", "Import memories from other tools"),
    ("export", "Export memories for other tools"),
    ("eval", "Measure search quality"),
    ("index", "Maintain the search index"),
];

/// What a verb is also called, though help does not say so.
pub(super) fn also_called(verb: &str) -> impl Iterator<Item = &'static str> {
    ALSO_CALLED.iter().filter(move |(_, known)| *known == verb).map(|(name, _)| *name)
}

/// Reduces an error's suggestions for a misspelled verb to the nearest one, by the name that help shows.
pub(super) fn nearest(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) else {
        return error;
    };
    // The nearest one comes last.
    if let Some(nearest) = names.pop() {
        let below = |group: Command, word| group.find_subcommand(word).cloned().unwrap_or(group);
        let group = arguments.iter().fold(super::command(), below);
        let verb = group.find_subcommand(&nearest).map_or(nearest.as_str(), Command::get_name);
        let verb = ContextValue::Strings(vec![verb.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, verb);
    }
    error
}

/// A verb's words as the command line spells them.
pub(super) fn spelled(verb: &'static str) -> &'static str {
    match verb {
        "add_many" => "add-many",
        "mcp_memory" => "mcp-memory",
        "restore_backup" => "restore-backup",
        "silica_v1" => "silica-v1",
        verb => verb,
    }
}

/// A group of verbs.
pub(super) fn group_of(group: &'static str) -> Command {
    let about = GROUPS.iter().find(|(name, _)| *name == group).map_or("", |(_, about)| about);
    Command::new(group).about(about).subcommand_required(true).arg_required_else_help(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn check(command: &Command) {
        for below in command.get_subcommands() {
            let name = below.get_name();
            assert!(!name.contains('_'), "`{name}` is not spelled as a command is");
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty(), "`{name}` says nothing of what it is about");
            check(below);
        }
    }

    #[test]
    fn every_command_is_spelled_and_described() {
        check(&command());
    }

    #[test]
    fn other_names_lead_to_verbs_and_hide_none() {
        let command = command();
        for (name, verb) in ALSO_CALLED {
            let found = command.find_subcommand(name).map(Command::get_name);
            assert_eq!(found, Some(verb), "{name}");
        }
    }
}
