//! The rules of the house, as tests: whoever breaks one hears of it here, and not in a review.

mod documents;
mod layers;
mod licences;
mod sizes;

use std::path::{Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies two folders deep")
        .to_owned()
}

/// Every text beneath a folder of the repository, by its name from the root.
fn texts(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                found.push((path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// Every Rust file beneath a folder of the repository.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = texts(folder);
    found.retain(|(name, _)| name.ends_with(".rs"));
    found
}

/// A file of tests that no `mod` line names would compile to nothing, and pass.
#[test]
fn no_test_file_is_forgotten() {
    for folder in ["crates/memgrove/tests/it", "crates/memgrove-cli/tests/it"] {
        let files = sources(folder);
        for (name, _) in files.iter().filter(|(name, _)| !name.ends_with("/main.rs")) {
            let (parent, stem) = name.trim_end_matches(".rs").rsplit_once('/').unwrap();
            let owner = if parent == folder { format!("{folder}/main.rs") } else { format!("{parent}.rs") };
            let (_, text) =
                files.iter().find(|(file, _)| *file == owner).unwrap_or_else(|| panic!("{owner} is missing"));
            let named = text.lines().any(|line| line.ends_with(&format!("mod {stem};")));
            assert!(named, "{owner} does not name `mod {stem};`, so {name} is never run");
        }
    }
    for (name, _) in ["crates/memgrove/src", "crates/memgrove-cli/src"].into_iter().flat_map(sources) {
        let Some(parent) = name.strip_suffix("/tests.rs") else { continue };
        let owners = [format!("{parent}.rs"), format!("{parent}/mod.rs")];
        let named = owners.iter().any(|owner| {
            std::fs::read_to_string(root().join(owner)).is_ok_and(|text| text.contains("\nmod tests;\n"))
        });
        assert!(named, "neither of {owners:?} names `mod tests;`, so {name} is never run");
    }
}

/// A test that aims at a file of the machine does harm on the day it finds a mistake. They have canaries of their own.
#[test]
fn no_test_aims_at_a_file_of_the_machine() {
    let systems = ["etc/", "passwd", "root/.ssh"].map(|name| format!("/{name}"));
    let aims = |text: &str| systems.iter().any(|system| text.contains(system.as_str()));
    let folders = ["tests", "crates/memgrove/tests", "crates/memgrove-cli/tests"];
    let all: Vec<(String, String)> = folders.into_iter().flat_map(texts).collect();
    assert!(all.len() > 100, "only {} files", all.len());
    let wrong: Vec<&str> = all.iter().filter(|(_, text)| aims(text)).map(|(name, _)| name.as_str()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(aims(&["..", "etc", "hosts"].join("/")), "the rule can fail");
}

/// The mistakes that the local backend can be built with.
fn seeded(text: &str) -> Vec<&str> {
    let body = text.split_once("pub enum Bug {").expect("the list of mistakes").1;
    let body = body.split_once("\n}").expect("its end").0;
    body.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .filter_map(|line| line.strip_suffix(','))
        .collect()
}

/// A mistake that no test makes proves nothing.
#[test]
fn every_seeded_mistake_is_made_by_a_test() {
    let bugs = std::fs::read_to_string(root().join("crates/memgrove/src/backends/local/bug.rs")).unwrap();
    let tests = sources("crates/memgrove/tests/it");
    // A process that is told which mistake to make makes none by itself.
    let tests = tests.iter().filter(|(name, _)| !name.ends_with("/processes/child.rs"));
    let is_made = |bug: &str| tests.clone().any(|(_, text)| text.contains(&format!("Bug::{bug})")));
    let bugs = seeded(&bugs);
    assert!(bugs.len() >= 12, "{bugs:?}");
    let forgotten: Vec<&str> = bugs.into_iter().filter(|bug| !is_made(bug)).collect();
    assert!(forgotten.is_empty(), "no test makes {forgotten:?}");
    assert!(!is_made(&["No", "Where"].concat()), "the rule can fail");
}
