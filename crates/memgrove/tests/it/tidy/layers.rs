//! Who may use whom, and what never crosses the seam.

use super::sources;

/// The modules of the library and what each may use: only what stands before it.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("clock", &[]),
    ("ids", &[]),
    ("wire", &["error"]),
    ("locator", &["error"]),
    ("address", &["error"]),
    ("backend", &["error", "clock", "locator"]),
    ("store", &["error", "locator", "backend"]),
    ("registry", &["error", "clock", "backend"]),
    ("tier", &["error", "clock", "locator"]),
    ("vfs", &["backend"]),
    ("backends", &["error", "clock", "locator", "backend", "registry", "vfs", "wire"]),
    ("conformance", &["error", "clock", "locator", "backend", "store"]),
    ("text", &["error"]),
    ("agent", &["error", "text", "wire"]),
    ("memory", &["error", "clock", "locator", "backend", "store", "text"]),
    ("copy", &["error", "locator", "backend", "store", "memory"]),
    (
        "shapes",
        &[
            "error", "clock", "ids", "locator", "backend", "store", "tier", "text", "agent", "memory", "vfs",
            "address",
        ],
    ),
    ("document", &["clock"]),
    (
        "index",
        &[
            "error", "clock", "locator", "backend", "store", "tier", "vfs", "text", "shapes", "document",
            "address",
        ],
    ),
];

/// What a module uses of the crate, tests aside.
fn uses(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found: Vec<String> = Vec::new();
    for piece in code.split("crate::").skip(1) {
        assert!(!piece.starts_with('{'), "`use crate::{{…}}` hides which modules are used");
        let name: String = piece.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if !name.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            && !found.contains(&name)
        {
            found.push(name);
        }
    }
    found
}

fn breaches(module: &str, text: &str) -> Vec<String> {
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
        return vec![format!("`{module}` has no place in the layers")];
    };
    let used = uses(text);
    used.into_iter().filter(|used| used != module && !allowed.contains(&used.as_str())).collect()
}

#[test]
fn dependencies_point_one_way() {
    let mut wrong = Vec::new();
    for (name, text) in sources("crates/memgrove/src") {
        let inside = name.trim_start_matches("crates/memgrove/src/");
        let module = inside.split(['/', '.']).next().unwrap();
        if module != "lib" {
            wrong.extend(breaches(module, &text).into_iter().map(|used| format!("{name} uses `{used}`")));
        }
    }
    for (index, (module, allowed)) in LAYERS.iter().enumerate() {
        let stands_before = |used: &&str| LAYERS[..index].iter().any(|(name, _)| name == used);
        let later = allowed.iter().filter(|used| !stands_before(used));
        wrong.extend(later.map(|used| format!("`{module}` may use `{used}`, which stands behind it")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(breaches("locator", "use crate::backend::Edit;"), ["backend"], "the rule can fail");
}

/// The surfaces of the program, and what starts them. Nothing else may know them.
const SURFACES: &[&str] = &["cli", "mcp", "http", "web", "memory_tool", "demo", "main"];

/// The surfaces that a module of the program uses and must not.
fn surfaces_used(module: &str, text: &str) -> Vec<String> {
    let used = uses(text).into_iter().filter(|used| SURFACES.contains(&used.as_str()));
    used.filter(|_| !SURFACES.contains(&module)).collect()
}

#[test]
fn only_surfaces_know_surfaces() {
    const FOLDER: &str = "crates/memgrove-cli/src/";
    let mut wrong = Vec::new();
    for (name, text) in sources(FOLDER) {
        let module = name.trim_start_matches(FOLDER).split(['/', '.']).next().unwrap();
        wrong.extend(surfaces_used(module, &text).into_iter().map(|used| format!("{name} uses `{used}`")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(surfaces_used("verbs", "use crate::http::keep;"), ["http"], "the rule can fail");
}

/// Words that mean the machine's own paths.
const PATH_WORDS: &[&str] = &["Path", "PathBuf", "OsStr", "OsString"];

/// Words that mean the machine's own files, or its time: `std::fs` and `rustix::fs`, however they are imported.
const MACHINE_WORDS: &[&str] = &["fs", "OpenOptions", "Instant", "SystemTime"];

/// Those of the words that the code of a file uses.
fn used(words: &[&str], text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    // What stands in quotes is said to people, not to the compiler.
    let spoken = code.flat_map(|line| line.split('"').step_by(2));
    let found = spoken.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'));
    found.filter(|word| words.contains(word)).map(str::to_owned).collect()
}

/// The one file that knows a provider's client, which has its own words and its own runtime.
const CLOUD: &str = "crates/memgrove/src/backends/object/cloud.rs";

/// Only the real disk knows paths; everything above it speaks of locators.
#[test]
fn no_path_crosses_the_seam() {
    for (name, text) in sources("crates/memgrove/src") {
        if name != "crates/memgrove/src/vfs/real.rs" && name != CLOUD {
            assert_eq!(used(PATH_WORDS, &text), Vec::<String>::new(), "{name} speaks of paths");
        }
    }
    let leak = "fn read(&self) -> std::path::PathBuf {";
    assert_eq!(used(PATH_WORDS, leak), ["PathBuf"], "the rule can fail");
}

/// All file access goes through `Vfs`, and all time through `Clock`: so tests can cut the power, and set the hour.
#[test]
fn only_the_real_disk_touches_the_machine() {
    for (name, text) in sources("crates/memgrove/src") {
        if !name.starts_with("crates/memgrove/src/vfs/real") {
            assert_eq!(
                used(MACHINE_WORDS, &text),
                Vec::<String>::new(),
                "{name} goes around `Vfs` or `Clock`"
            );
        }
    }
    for leak in [
        "std::fs::read(name)",
        "use std::{fs, io};",
        "rustix::fs::openat(folder, name, flags, mode)",
        "let began = Instant::now();",
        "SystemTime::now()",
    ] {
        assert_eq!(used(MACHINE_WORDS, leak).len(), 1, "the rule can fail: {leak}");
    }
}

/// Surfaces have no logic and the library has no surface: no terminal, no environment.
#[test]
fn the_library_neither_prints_nor_asks_its_environment() {
    for (name, text) in sources("crates/memgrove/src") {
        let waits = ["tokio", "async fn"].into_iter().filter(|_| name != CLOUD);
        for word in ["println!", "eprintln!", "std::env"].into_iter().chain(waits) {
            let used = text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word));
            assert!(!used, "{name} uses {word}");
        }
    }
}
