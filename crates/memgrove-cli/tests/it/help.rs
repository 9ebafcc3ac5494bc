//! Help, completions and the manual.

use super::sandbox::Sandbox;

/// Every command of the program, by its words.
fn commands(sandbox: &Sandbox, words: &[&str]) -> Vec<Vec<String>> {
    let mut asked = words.to_vec();
    asked.push("--help");
    let help = sandbox.run(&asked).ok();
    let Some((_, listed)) = help.split_once("Commands:\n") else {
        return vec![words.iter().map(|word| (*word).to_owned()).collect()];
    };
    // A line that is indented further goes on about the command above.
    let names = listed.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .flat_map(|name| {
            let mut below = words.to_vec();
            below.push(name);
            commands(sandbox, &below)
        })
        .collect()
}

#[test]
fn every_command_explains_itself() {
    let sandbox = Sandbox::empty();
    let all = commands(&sandbox, &[]);
    assert!(all.len() >= 20, "{all:?}");
    for words in all {
        let mut asked: Vec<&str> = words.iter().map(String::as_str).collect();
        asked.push("-h");
        let help = sandbox.run(&asked).ok();
        let about = help.lines().next().unwrap_or_default();
        assert!(about.len() > 5 && !about.starts_with("Usage"), "{words:?}: {help}");
        assert!(!about.ends_with('.'), "{words:?}: {about}");
        for line in help.lines().map(str::trim).filter(|line| line.starts_with('<') || line.starts_with("--"))
        {
            assert!(line.contains("  "), "{words:?} does not explain {line}");
        }
    }
}

/// What the documents show as commands of the program: lines of code blocks, and quotes.
fn shown(text: &str) -> Vec<Vec<&str>> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            found.push(line.trim().trim_start_matches("$ "));
        } else {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    let words = found.into_iter().filter_map(|line| line.strip_prefix("memgrove "));
    let ends = |word: &&str| !["|", "#", "<", ">", "&", "<<"].contains(word);
    words.map(|line| line.split_whitespace().take_while(ends).collect()).collect()
}

/// What is wrong with a command that is shown, if anything.
fn unknown(sandbox: &Sandbox, all: &[Vec<String>], words: &[&str]) -> Option<String> {
    let begins = |name: &str| all.iter().any(|known| known[0] == name);
    let Some(start) = words.iter().position(|word| begins(word)) else {
        let is_told = words.first().is_none_or(|word| word.starts_with('-') || *word == "…");
        return (!is_told).then(|| "no such command".to_owned());
    };
    let words = &words[start..];
    let fits =
        |known: &&Vec<String>| known.iter().zip(words).all(|(a, b)| a == b) && known.len() <= words.len();
    let Some(command) = all.iter().filter(fits).max_by_key(|known| known.len()) else {
        return (words.len() > 1 && !words[1].starts_with('-')).then(|| "no such subcommand".to_owned());
    };
    let mut asked: Vec<&str> = command.iter().map(String::as_str).collect();
    asked.push("--help");
    let help = sandbox.run(&asked).ok();
    let flags = words.iter().map(|word| word.split('=').next().unwrap_or_default());
    let mut flags = flags.filter(|word| word.starts_with("--") && word.len() > 2);
    flags.find(|flag| !help.contains(flag)).map(|flag| format!("no such option {flag}"))
}

#[test]
fn documents_show_only_commands_that_exist() {
    let sandbox = Sandbox::empty();
    let all = commands(&sandbox, &[]);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let beside = std::fs::read_dir(root.join("docs")).expect("the documents").flatten();
    let documents =
        beside.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "md"));
    let above = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    let mut wrong = Vec::new();
    for document in documents.chain(above) {
        let text = std::fs::read_to_string(&document).expect("a document");
        for words in shown(&text) {
            let why = unknown(&sandbox, &all, &words);
            let place = format!("{} shows `memgrove {}`", document.display(), words.join(" "));
            wrong.extend(why.map(|why| format!("{place}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (line, wrong) in [
        ("`memgrove recal x`", "no such command"),
        ("`memgrove file vew x`", "no such subcommand"),
        ("`memgrove file view --lnes 3`", "no such option --lnes"),
    ] {
        let [words] = &shown(line)[..] else { panic!("one command") };
        assert_eq!(unknown(&sandbox, &all, words).as_deref(), Some(wrong), "the rule can fail");
    }
}

#[test]
fn completions_for_every_shell() {
    let sandbox = Sandbox::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = sandbox.run(&["completions", shell]).ok();
        assert!(text.contains("memory-tool") && text.contains("replace"), "{shell}");
    }
    sandbox.run(&["completions", "basic"]).fails(2);
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let sandbox = Sandbox::empty();
    assert!(sandbox.run(&["man"]).ok().contains(".TH memgrove"));
    sandbox.run(&["man", "man"]).ok();
    for words in commands(&sandbox, &[]) {
        let page = sandbox.project().join(format!("man/memgrove-{}.1", words.join("-")));
        assert!(page.is_file(), "{} is missing", page.display());
    }
    std::fs::write(sandbox.project().join("taken"), "").expect("a file");
    assert!(sandbox.run(&["man", "taken"]).fails(4).starts_with("error: "));
}

#[test]
fn version_and_no_command() {
    let sandbox = Sandbox::empty();
    assert_eq!(sandbox.run(&["--version"]).ok(), format!("memgrove {}\n", env!("CARGO_PKG_VERSION")));
    assert!(sandbox.run(&[]).fails(2).contains("Usage: memgrove"));
    assert!(sandbox.run(&["nonsense"]).fails(2).contains("unrecognized"));
    assert_eq!(sandbox.run(&["help"]).ok(), sandbox.run(&["--help"]).ok());
    assert_eq!(sandbox.run(&["help", "file", "view"]).ok(), sandbox.run(&["file", "view", "--help"]).ok());
    let told = sandbox.run(&["--json", "recal", "x"]).fails(2);
    assert!(told.contains("a similar subcommand exists: 'recall'"), "{told}");
    for (words, nearest) in
        [(&["rember", "x"][..], "remember"), (&["serch", "x"], "recall"), (&["entity", "serch"], "search")]
    {
        let told = sandbox.run(words).fails(2);
        assert!(told.contains(&format!("exists: '{nearest}'")), "{told}");
    }
    for (words, either) in [
        (&["history", "prune"][..], "<--before <DATE>|--keep <COUNT>>"),
        (&["connection", "delete"], "<ID|--from <FROM>>"),
    ] {
        let told = sandbox.run(words).fails(2);
        assert!(told.contains(either), "{told}");
    }
}

/// What people type who do not know the words yet.
#[test]
fn other_names_of_verbs_are_understood() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(&["--json", "remember", "the lamp is green"]).json();
    assert_eq!(made["change"], "1");
    assert!(sandbox.run(&["search", "lamp"]).ok().contains("the lamp is green"));
    assert!(sandbox.run(&["find", "lamp"]).ok().ends_with(": the lamp is green\n"));
    let id = made["address"].as_str().and_then(|address| address.strip_prefix("record:")).expect("a record");
    assert!(sandbox.run(&["read", id]).fails(3).contains(&format!("did you mean `record:{id}`?")));
    sandbox.run(&["rm", &format!("record:{id}")]).ok();
    sandbox.run(&["remember", "sings", "--about", "Alice"]).ok();
    assert!(sandbox.run(&["read", "Alice"]).fails(3).contains("did you mean `entity:general/Alice`?"));
    let twin = sandbox.run(&["remember", "dances", "--about", "alice"]).ok();
    assert!(twin.contains("a different entity from entity:general/Alice"), "{twin}");
    assert!(!sandbox.run(&["remember", "hums", "--about", "alice"]).ok().contains("different"));
    for about in ["Alice ", " Alice\n"] {
        let said = sandbox.run(&["remember", &format!("is{about:?}"), "--about", about]).ok();
        assert!(said.contains("entity:general/Alice#"), "{about:?}: {said}");
    }
    sandbox.run(&["entity", "store", " Alice\n", "-o", "paints"]).ok();
    assert!(sandbox.run(&["read", "entity:general/Alice"]).ok().contains("4. paints"));
    for (about, address) in [
        ("entity:person/Ann", "entity:person/Ann#1"),
        ("person/Bob", "entity:person/Bob#1"),
        ("TCP/IP", "entity:general/TCP/IP#1"),
    ] {
        let said = sandbox.run(&["remember", "is new here", "--about", about]).ok();
        assert!(said.contains(address), "{about}: {said}");
    }
    for (verb, choices) in [("--type", "core, learning, task"), ("--importance", "high, medium, low")] {
        let told = sandbox.run(&["record", "add", "x", verb, "nonsense"]).fails(2);
        assert!(told.contains(choices), "{told}");
    }
    sandbox.run(&["file", "create", "a.md", "--text", "x"]).ok();
    assert!(sandbox.run(&["file", "create", "a.md", "--text", "x"]).fails(4).contains("--expect VERSION"));
    let empty = Sandbox::empty();
    empty.run(&["forget", "record:x"]).fails(3);
    assert!(!empty.home().join(".memgrove").exists(), "a store was made to forget something");
}

#[test]
fn colour_is_asked_for_and_never_surprises() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "x\n"]).ok();
    assert!(!sandbox.run(&["file", "view"]).ok().contains('\u{1b}'));
    assert!(sandbox.run(&["--color", "always", "file", "view"]).ok().contains('\u{1b}'));
    assert!(!sandbox.run(&["--color", "never", "file", "view"]).ok().contains('\u{1b}'));
    assert!(!sandbox.run(&["--color", "always", "read", "a.md"]).ok().contains('\u{1b}'));
    assert!(sandbox.run(&["--color", "always", "nonsense"]).fails(2).contains('\u{1b}'));
    assert!(!sandbox.run(&["--color=never", "nonsense"]).fails(2).contains('\u{1b}'));
}
