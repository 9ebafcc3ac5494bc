//! The documents name only things that exist.

use super::{root, sources};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/format.md",
    "docs/format-records.md",
    "docs/format-entities.md",
    "docs/serve.md",
    "docs/memory-stores.md",
];

/// What stands in backticks, code blocks aside.
fn quoted(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// Whether a quoted thing claims to be a file of the repository.
fn is_path(quote: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let named = ["crates/", "docs/", "tests/", "src/", ".ci/"].iter().any(|start| quote.starts_with(start));
    quote.chars().all(fits) && (named || quote.ends_with(".rs"))
}

/// Whether a quoted thing claims to be a type or a trait.
fn is_type(quote: &str) -> bool {
    let mut chars = quote.chars();
    chars.next().is_some_and(char::is_uppercase)
        && quote.chars().all(char::is_alphanumeric)
        && chars.any(char::is_lowercase)
}

fn path_exists(quote: &str, names: &[String]) -> bool {
    root().join(quote.trim_end_matches('/')).exists()
        || names.iter().any(|name| name.ends_with(&format!("/{quote}")))
}

#[test]
fn documents_name_only_what_exists() {
    let files: Vec<_> = ["crates/memgrove", "crates/memgrove-cli"].into_iter().flat_map(sources).collect();
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let code: String =
        files.iter().filter(|(name, _)| name.contains("/src/")).map(|(_, text)| text.as_str()).collect();
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(document))
            .unwrap_or_else(|_| panic!("{document} is missing"));
        for quote in quoted(&text) {
            let known = match quote {
                path if is_path(path) => path_exists(path, &names),
                name if is_type(name) => code.contains(name),
                _ => true,
            };
            if !known {
                missing.push(format!("{document} names `{quote}`"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(is_path("crates/nowhere.rs") && !path_exists("crates/nowhere.rs", &names), "the rule can fail");
    assert!(is_type("NoSuchThing") && !code.contains(&["NoSuch", "Thing"].concat()), "the rule can fail");
}

/// Commands that the documents show are commands that the program has.
#[test]
fn documents_show_only_commands_that_exist() {
    let help: String = sources("crates/memgrove-cli/src").into_iter().map(|(_, text)| text).collect();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        for line in text.lines().filter_map(|line| line.trim_start_matches("$ ").strip_prefix("memgrove ")) {
            let word = line.split_whitespace().find(|word| !word.starts_with('-')).unwrap_or("");
            assert!(help.contains(word), "{document} shows `memgrove {word}`");
        }
    }
}
