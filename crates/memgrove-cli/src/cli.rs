//! The command line: a rendering of the table of verbs, and the commands that are surfaces
//! themselves.

mod texts;
mod words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use memgrove::backend::{Actor, Origin};
use memgrove::{Error, Kind, Result};

use crate::config::Environment;
use crate::context::{Context, Input};
use crate::demo::Demo;
use crate::http;
use crate::mcp;
use crate::memory_tool;
use crate::page::{Ink, Page, Paper};
use crate::status::{self, Report};
use crate::verbs::{self, Effect, Entry, On, Reply};
use words::{also_called, group_of, spelled};

const ABOUT: &str = "File-based memory for AI agents: plain files you own, safe under many agents at once";
const AFTER_HELP: &str = "\
The store is the one given by --store or MEMGROVE_STORE, else the nearest .memgrove/ in or above the
working folder, else ~/.memgrove. Answers go to standard output, everything else to standard error.
With --json, an answer is one JSON object, and an error is {\"error\":{kind,code,message,hint}} on
standard error. Exit codes:";

/// The argument that names a folder to use as `/memories`, and the verbs that take it: those that look back
/// or check the store.
const MEMORIES: &str = "memories";
const IN_PLACE: [&str; 6] = ["read", "history", "diff", "restore", "undo", "doctor"];

/// Runs the program.
pub(crate) fn main(arguments: impl IntoIterator<Item = OsString>, environment: Environment) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // `help COMMAND` means `COMMAND --help`, as in many programs.
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    let matches = match texts::understood(command().color(colour_of(&arguments)), &arguments) {
        Ok(matches) => matches,
        Err(error) => return misspoken(&words::nearest(error, &arguments), &arguments),
    };
    let look = Look::of(&matches);
    match run(&matches, environment, look) {
        Ok(code) => code,
        Err(error) => {
            report(&error, look);
            ExitCode::from(status::exit_code(error.kind()))
        }
    }
}

/// The colour that a command line asks for, found before the line is parsed.
fn colour_of(arguments: &[OsString]) -> clap::ColorChoice {
    let mut words =
        arguments.iter().filter_map(|word| word.to_str()).skip_while(|word| !word.starts_with("--color"));
    let told = words.next().and_then(|word| word.strip_prefix("--color=")).or_else(|| words.next());
    match told {
        Some("never") => clap::ColorChoice::Never,
        Some("always") => clap::ColorChoice::Always,
        _ => clap::ColorChoice::Auto,
    }
}

/// Reports a command line that cannot be understood; for help and version, prints them instead.
fn misspoken(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--json") {
        let text = error.to_string();
        // Which arguments are missing stands on lines of their own, up to a blank one.
        let sentence: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let sentence = sentence.join(" ");
        let sentence = sentence.trim_start_matches("error: ");
        let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
        let error = Error::new(Kind::Invalid, sentence);
        let error = error.hint(tip.unwrap_or("`memgrove --help` explains every command"));
        report(&error, Look { json: true, color: ColorChoice::Never });
    } else {
        let _ = error.print();
    }
    ExitCode::from(status::exit_code(Kind::Invalid))
}

fn run(matches: &ArgMatches, environment: Environment, look: Look) -> Result<ExitCode> {
    let (words, arguments) = spoken(matches);
    let session = environment.session.clone();
    let actor = Actor { origin: Origin::User, client: Some("cli".to_owned()), session };
    let store = matches.get_one::<PathBuf>("store").map(PathBuf::as_path);
    let backend = matches.get_one::<String>("backend").cloned();
    let cx = || Context::new(environment, store, backend, actor, Input::Terminal);
    if let Some(program) = Program::named(&words, arguments)? {
        return program.run(cx, look);
    }
    let mut cx = cx()?;
    if let Ok(Some(folder)) = arguments.try_get_one::<PathBuf>(MEMORIES) {
        cx = cx.in_made_folder(folder)?;
    }
    let entry = entry(&words)?;
    let reply = (entry.run_matches)(arguments, &cx)?;
    let answered = answer(reply.as_ref(), look);
    cx.settle();
    answered.map_err(|error| match entry.effect {
        Effect::Read => error,
        _ => error.hint("the change was made nevertheless: `memgrove history` shows it"),
    })?;
    Ok(ExitCode::from(reply.failed().map_or(0, status::exit_code)))
}

/// The words of the command, joined as the table of verbs names it, and its arguments.
fn spoken(matches: &ArgMatches) -> (String, &ArgMatches) {
    let (mut words, mut here) = (Vec::new(), matches);
    while let Some((word, below)) = here.subcommand() {
        words.push(word);
        here = below;
    }
    (words.join("_"), here)
}

/// Runs a verb with the words of a command line, in this process.
pub(crate) fn speak(words: &[&str], cx: &Context) -> Result<Box<dyn Reply>> {
    let given = std::iter::once("memgrove").chain(words.iter().copied());
    let wrong = |error: clap::Error| Error::new(Kind::Invalid, error.to_string());
    let matches = command().try_get_matches_from(given).map_err(wrong)?;
    let (words, arguments) = spoken(&matches);
    (entry(&words)?.run_matches)(arguments, cx)
}

fn entry(words: &str) -> Result<&'static Entry> {
    let unknown = || Error::new(Kind::Invalid, format!("`{words}` is not a verb"));
    entries().find(|entry| entry.name == words.replace('-', "_")).ok_or_else(unknown)
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    verbs::TABLE.iter().filter(|entry| entry.is_on(On::Cli))
}

/// The whole command line.
pub(crate) fn command() -> Command {
    let mut root = Command::new("memgrove")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(after_help())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .max_term_width(100)
        .args(global_arguments());
    for entry in entries() {
        root = match entry.name.split_once('_') {
            None => {
                let verb = (entry.augment)(Command::new(entry.name));
                root.subcommand(verb.aliases(also_called(entry.name)))
            }
            // One word of two, in no group.
            Some(("merge", "driver")) => root.subcommand((entry.augment)(Command::new("merge-driver"))),
            Some((group, verb)) => {
                let leaf = (entry.augment)(Command::new(spelled(verb)));
                if root.find_subcommand(group).is_none() {
                    root = root.subcommand(group_of(group));
                }
                root.mut_subcommand(group, |command| command.subcommand(leaf))
            }
        };
    }
    for verb in IN_PLACE {
        root = root.mut_subcommand(verb, |verb| verb.arg(memories()));
    }
    Program::commands().into_iter().fold(root, Command::subcommand)
}

fn memories() -> Arg {
    Arg::new(MEMORIES)
        .long(MEMORIES)
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("Use a folder of `memory-tool --memories` instead of the store")
}

fn global_arguments() -> [Arg; 4] {
    let global = |name: &'static str| Arg::new(name).long(name).global(true).help_heading("Global options");
    [
        global("store")
            .value_name("PATH")
            .value_parser(value_parser!(PathBuf))
            .help("The store: a folder, or s3://…, gs://…, az://…, anthropic://… [env: MEMGROVE_STORE]"),
        global("backend")
            .value_name("NAME")
            .help("The backend, instead of the store's own [env: MEMGROVE_BACKEND]"),
        global("json").action(ArgAction::SetTrue).help("Print answers and errors as JSON"),
        global("color")
            .value_name("WHEN")
            .value_parser(["auto", "always", "never"])
            .default_value("auto")
            .hide_possible_values(true)
            .help("When to use colour: auto, always or never"),
    ]
}

fn after_help() -> String {
    let codes = status::STATUS
        .iter()
        .map(|status| format!("  {:>2}  {:<12} {}", status.exit, status.kind.name(), status.advice));
    let lines: Vec<String> = std::iter::once(AFTER_HELP.to_owned()).chain(codes).collect();
    lines.join("\n")
}

/// How answers look.
#[derive(Debug, Clone, Copy)]
struct Look {
    json: bool,
    color: ColorChoice,
}

impl Look {
    fn of(matches: &ArgMatches) -> Self {
        let color = match matches.get_one::<String>("color").map(String::as_str) {
            Some("always") => ColorChoice::Always,
            Some("never") => ColorChoice::Never,
            _ => ColorChoice::Auto,
        };
        Look { json: matches.get_flag("json"), color }
    }

    fn paper(self, stream: &impl anstream::stream::RawStream) -> Paper {
        let choice = match self.color {
            ColorChoice::Auto => AutoStream::choice(stream),
            told => told,
        };
        if choice == ColorChoice::Never { Paper::Plain } else { Paper::Coloured }
    }
}

fn answer(reply: &dyn Reply, look: Look) -> Result<()> {
    let stdout = io::stdout();
    let paper = look.paper(&stdout);
    let mut out = io::BufWriter::new(stdout.lock());
    let told = if look.json {
        reply.write_json(&mut out).and_then(|()| writeln!(out))
    } else {
        reply.show(&mut Page::new(&mut out, paper))
    };
    written(told.and_then(|()| out.flush()))
}

/// Turns a failure to write the answer into an error. It says nothing of the store, whose work is done.
pub(crate) fn written(told: io::Result<()>) -> Result<()> {
    match told {
        // Whoever closed the pipe has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Error::new(Kind::Io, format!("the answer could not be written: {error}")).caused_by(error))
        }
        Ok(()) => Ok(()),
    }
}

fn report(error: &Error, look: Look) {
    let mut stderr = io::stderr().lock();
    // Whoever closed standard error does not want to know.
    let _ = if look.json {
        let report = serde_json::to_string(&Report::from(error)).expect("a report is plain data");
        writeln!(stderr, "{report}")
    } else {
        let paper = look.paper(&io::stderr());
        let mut page = Page::new(&mut stderr, paper);
        page.ink(Ink::Removed, "error").and_then(|()| page.line(&format!(": {}", error.message()))).and_then(
            |()| match error.hint_text() {
                Some(hint) => page.line(&format!("  hint: {hint}")),
                None => Ok(()),
            },
        )
    };
}

/// A command that is a surface itself, or that prints something about the program.
enum Program {
    Demo(Demo),
    MemoryTool(memory_tool::MemoryTool),
    Mcp(mcp::Serve),
    Serve(http::Serve),
    Completions(clap_complete::Shell),
    Man(Option<PathBuf>),
}

impl Program {
    fn commands() -> [Command; 6] {
        [
            Demo::augment_args(Command::new("demo")),
            memory_tool::MemoryTool::augment_args(Command::new("memory-tool")),
            mcp::Serve::augment_args(Command::new("mcp")),
            http::Serve::augment_args(Command::new("serve")),
            Command::new("completions").about("Print a shell completion script").arg(
                Arg::new("shell")
                    .value_name("SHELL")
                    .required(true)
                    .value_parser(value_parser!(clap_complete::Shell)),
            ),
            Command::new("man").about("Print the manual page, or write one per command").arg(
                Arg::new("folder")
                    .value_name("DIR")
                    .value_parser(value_parser!(PathBuf))
                    .help("Folder to write one page per command into"),
            ),
        ]
    }

    fn named(words: &str, matches: &ArgMatches) -> Result<Option<Self>> {
        let wrong = |error: clap::Error| Error::new(Kind::Invalid, error.to_string());
        Ok(Some(match words {
            "demo" => Program::Demo(Demo::from_arg_matches(matches).map_err(wrong)?),
            "memory-tool" => {
                Program::MemoryTool(memory_tool::MemoryTool::from_arg_matches(matches).map_err(wrong)?)
            }
            "mcp" => Program::Mcp(mcp::Serve::from_arg_matches(matches).map_err(wrong)?),
            "serve" => Program::Serve(http::Serve::from_arg_matches(matches).map_err(wrong)?),
            "completions" => {
                let shell = matches.get_one("shell").copied();
                Program::Completions(shell.unwrap_or(clap_complete::Shell::Bash))
            }
            "man" => Program::Man(matches.get_one("folder").cloned()),
            _ => return Ok(None),
        }))
    }

    fn run(self, cx: impl FnOnce() -> Result<Context>, look: Look) -> Result<ExitCode> {
        match self {
            Program::Demo(program) => {
                let stdout = io::stdout();
                let paper = look.paper(&stdout);
                program.run(&cx()?, &mut Page::new(&mut stdout.lock(), paper))?;
            }
            Program::MemoryTool(program) => program.run(&cx()?)?,
            Program::Mcp(program) => program.run(&cx()?)?,
            Program::Serve(program) => program.run(&cx()?, |link| {
                let told =
                    if look.json { serde_json::json!({"link": link}).to_string() } else { link.to_owned() };
                printed(format!("{told}\n").as_bytes())
            })?,
            Program::Completions(shell) => {
                let mut text = Vec::new();
                clap_complete::generate(shell, &mut command(), "memgrove", &mut text);
                printed(&text)?;
            }
            Program::Man(None) => {
                let mut text = Vec::new();
                clap_mangen::Man::new(command())
                    .render(&mut text)
                    .map_err(|error| Error::from_io(error, "the manual"))?;
                printed(&text)?;
            }
            Program::Man(Some(folder)) => std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(command(), &folder))
                .map_err(|error| Error::from_io(error, folder.display()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn printed(text: &[u8]) -> Result<()> {
    written(io::stdout().lock().write_all(text))
}
