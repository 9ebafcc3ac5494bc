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

/// The functions that are too long, with their lengths. Relies on the formatter's indentation.
fn long_functions(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let head = code.split('(').next().unwrap_or("");
        // `fn` with a name behind it: not the type of a function.
        if !head.contains("fn ") || head.contains('"') || code.starts_with("//") || code.ends_with(';') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        let end = lines[start..].iter().position(|line| *line == closing).unwrap_or(0);
        if end > FUNCTION_LINES_MAX {
            found.push(format!("{name}:{} has {end} lines", start + 1));
        }
    }
    found
}

#[test]
fn files_and_functions_stay_short() {
    let (mut wrong, mut long) = (Vec::new(), Vec::new());
    for (name, text) in ["crates/memgrove/src", "crates/memgrove-cli/src"].into_iter().flat_map(sources) {
        let allowed =
            LONG_FILES.iter().find(|(file, _)| *file == name).map_or(FILE_LINES_MAX, |(_, lines)| *lines);
        if length(&text) > allowed {
            wrong.push(format!("{name} has {} lines, more than {allowed}", length(&text)));
        }
        long.extend(long_functions(&name, &text));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(long.is_empty(), "functions of more than {FUNCTION_LINES_MAX} lines:\n{}", long.join("\n"));
    let sample = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(80));
    assert_eq!(long_functions("sample", &sample).len(), 1, "the rule can fail");
}
