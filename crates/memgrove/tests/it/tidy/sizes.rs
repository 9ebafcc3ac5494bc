//! How long files and functions may be. The lists only ever shrink.

use super::sources;

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// Files that are longer, and how long they may be: to be split when they are next worked on.
const LONG_FILES: &[(&str, usize)] = &[];

/// Lines of code and documentation, without the tests at the end.
fn length(text: &str) -> usize {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text).lines().count()
}

/// What may stand before `fn`, beside how visible it is.
const QUALIFIERS: &[&str] = &["const", "async", "unsafe", "extern", "\"C\""];

/// Whether a function begins here.
fn begins_function(code: &str) -> bool {
    let visibility = |word: &str| word.starts_with("pub") || word.ends_with(')');
    let mut words = code.split(' ').skip_while(|word| visibility(word) || QUALIFIERS.contains(word));
    words.next() == Some("fn")
}

/// The functions that are too long, with their lengths. Relies on the formatter's indentation.
fn long_functions(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if !begins_function(code) || code.ends_with([';', '}']) {
            continue;
        }
        let indent = " ".repeat(line.len() - code.len());
        let (body, declaration) = (format!("{indent}}}"), format!("{indent})"));
        let is_end = |line: &&str| **line == body || line.starts_with(&declaration) && line.ends_with(';');
        let end = lines[start..].iter().position(is_end).unwrap_or(0);
        if end > FUNCTION_LINES_MAX {
            found.push(format!("{name}:{} has {end} lines", start + 1));
        }
    }
    found
}

/// Where functions are to stay short: tests and benchmarks are read as well.
const FOLDERS: [&str; 6] = [
    "crates/memgrove/src",
    "crates/memgrove-cli/src",
    "crates/memgrove/tests",
    "crates/memgrove-cli/tests",
    "crates/memgrove/benches",
    "crates/memgrove-cli/benches",
];

#[test]
fn files_and_functions_stay_short() {
    let (mut wrong, mut long) = (Vec::new(), Vec::new());
    for (name, text) in FOLDERS.into_iter().flat_map(sources) {
        let allowed =
            LONG_FILES.iter().find(|(file, _)| *file == name).map_or(FILE_LINES_MAX, |(_, lines)| *lines);
        if name.contains("/src/") && length(&text) > allowed {
            wrong.push(format!("{name} has {} lines, more than {allowed}", length(&text)));
        }
        long.extend(long_functions(&name, &text));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(long.is_empty(), "functions of more than {FUNCTION_LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn a_long_function_is_noticed_however_it_is_declared() {
    let long = |head: &str| {
        let body = "    x();\n".repeat(FUNCTION_LINES_MAX);
        long_functions("sample", &format!("{head} {{\n{body}}}\n")).len()
    };
    for head in [
        "fn long()",
        "pub fn long()",
        "pub(crate) fn long()",
        "pub(super) async fn long()",
        "pub(in crate::backends) const fn long()",
        "pub unsafe extern \"C\" fn long()",
        "fn long<F: Fn(u8)>(f: F)",
    ] {
        assert_eq!(long(head), 1, "{head}");
    }
    for head in ["struct Long", "type Long = fn(u8); impl X", "const LONG: fn(u8) = "] {
        assert_eq!(long(head), 0, "{head}");
    }
}
