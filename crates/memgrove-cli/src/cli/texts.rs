//! How to tell a text that begins with a hyphen from an option: a list item or "-5 degrees is freezing" is a
//! text, while `--jsn` is a misspelled option and never a memory.

use std::ffi::{OsStr, OsString};

use clap::{ArgMatches, Command};

use super::spoken;

/// Parses a command line. What cannot be the name of an option is a text wherever a text is allowed; after
/// `--`, everything is.
pub(super) fn understood(command: Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let open = arguments.iter().take_while(|argument| *argument != "--");
    let (texts, options): (Vec<&OsString>, Vec<&OsString>) =
        open.filter(|argument| is_hyphened(argument)).partition(|argument| is_text(argument));
    if !texts.is_empty() {
        let lenient = taking_texts(command.clone());
        if let Ok(matches) = lenient.clone().try_get_matches_from(arguments)
            && !takes_one_of(&lenient, &matches, &options)
        {
            return Ok(matches);
        }
    }
    command.try_get_matches_from(arguments)
}

fn is_hyphened(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-")
}

/// Whether an argument cannot be an option, whose name begins with a letter and has no blanks.
fn is_text(argument: &OsStr) -> bool {
    let given = argument.to_string_lossy();
    let name = given.split('=').next().unwrap_or_default().trim_start_matches('-');
    let fits = |sign: char| sign.is_alphanumeric() || ['-', '_'].contains(&sign);
    !name.starts_with(char::is_alphabetic) || !name.chars().all(fits)
}

/// Returns the command with positional arguments that may begin with a hyphen.
fn taking_texts(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.is_positional() {
        true => arg.allow_hyphen_values(true),
        false => arg,
    });
    command.mut_subcommands(taking_texts)
}

/// Whether one of these options was taken for a text.
fn takes_one_of(command: &Command, matches: &ArgMatches, options: &[&OsString]) -> bool {
    let (words, arguments) = spoken(matches);
    let leaf = words.split('_').try_fold(command, |here, word| here.find_subcommand(word));
    let positionals = leaf.into_iter().flat_map(Command::get_positionals);
    let mut taken =
        positionals.filter_map(|arg| arguments.try_get_raw(arg.get_id().as_str()).ok().flatten()).flatten();
    taken.any(|value| options.iter().any(|option| option.as_os_str() == value))
}
