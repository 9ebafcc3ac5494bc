//! The program as its users meet it: one binary of tests over the built `memgrove`.

// Tests make and spoil files of their own, and read where the built program is.
#![allow(clippy::disallowed_methods, missing_docs)]

mod sandbox;

mod anthropic;
mod conflicts;
mod crowds;
mod entities;
mod errors;
mod graph;
mod help;
mod hostile;
mod json;
mod large;
mod mcp;
mod mcp_guards;
mod memory_stores;
mod memory_tool;
mod mounted;
mod notes;
mod past;
mod recall;
mod records;
mod serve;
mod serve_beside;
mod serve_forms;
mod serve_guards;
mod serve_pages;
mod texts;
mod transcripts;
mod umask;
mod vaults;

/// A file that is not named above would never run.
#[test]
fn no_test_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).expect("this file");
    for entry in std::fs::read_dir(&folder).expect("this folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
        let stem = name.trim_end_matches(".rs");
        assert!(stem == "main" || main.contains(&format!("mod {stem};")), "{name} is not part of main.rs");
    }
}
