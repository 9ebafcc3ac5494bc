//! The documents name only things that exist.

use super::{root, sources};

/// The documents that speak of the present state of things.
fn documents() -> Vec<String> {
    let beside = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        format!("docs/{name}")
    });
    let above = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned);
    above.into_iter().chain(beside.filter(|name| name.ends_with(".md"))).collect()
}

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

/// Whether a file is there, as named from the root of the repository, of its crate or of its sources; or by
/// its bare name.
fn path_exists(quote: &str, names: &[String]) -> bool {
    root().join(quote.trim_end_matches('/')).exists()
        || names.iter().any(|name| {
            let in_crate =
                name.trim_start_matches("crates/").split_once('/').map_or("", |(_, inside)| inside);
            let bare = name.rsplit('/').next().unwrap_or_default();
            [in_crate, in_crate.trim_start_matches("src/"), bare].contains(&quote)
        })
}

#[test]
fn documents_name_only_what_exists() {
    let files: Vec<_> = ["crates/memgrove", "crates/memgrove-cli"].into_iter().flat_map(sources).collect();
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let code: String =
        files.iter().filter(|(name, _)| name.contains("/src/")).map(|(_, text)| text.as_str()).collect();
    let mut missing = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(root().join(&document)).unwrap();
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
