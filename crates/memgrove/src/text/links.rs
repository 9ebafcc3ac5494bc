//! Which `[[wiki links]]` a text has, as Obsidian writes them: `[[path]]`, `[[path|alias]]`,
//! `[[path#heading]]`, `![[embedded]]`. A link in code is not one.

use std::ops::Range;

use super::blocks::{BlockKind, blocks};

/// One link in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WikiLink<'a> {
    /// What it leads to, without `.md`; empty for a heading of the same text.
    pub target: &'a str,
    /// The heading or block within the target.
    pub heading: Option<&'a str>,
    /// What is shown instead of the target.
    pub alias: Option<&'a str>,
    /// Where it is, brackets included.
    pub at: Range<usize>,
}

/// Returns the links of a whole text, except in code.
pub fn links(text: &str) -> Vec<WikiLink<'_>> {
    let mut found = Vec::new();
    for block in blocks(text).into_iter().filter(|block| block.kind != BlockKind::Code) {
        let start = block.body.start;
        found.extend(
            links_in(&text[block.body])
                .into_iter()
                .map(|link| WikiLink { at: start + link.at.start..start + link.at.end, ..link }),
        );
    }
    found
}

/// Returns the links of one block, except in inline code.
pub fn links_in(block: &str) -> Vec<WikiLink<'_>> {
    let mut found = Vec::new();
    let bytes = block.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'`' => at = after_code(block, at),
            b'[' if block[at..].starts_with("[[") => match link_at(block, at) {
                Some(link) => {
                    at = link.at.end;
                    found.push(link);
                }
                None => at += 2,
            },
            _ => at += 1,
        }
    }
    found
}

/// Returns where the inline code that begins here ends; right after its backticks if it never ends.
fn after_code(block: &str, at: usize) -> usize {
    let length = block[at..].bytes().take_while(|byte| *byte == b'`').count();
    let inside = at + length;
    let mut close = inside;
    while let Some(next) = memchr::memchr(b'`', &block.as_bytes()[close..]) {
        close += next;
        let run = block[close..].bytes().take_while(|byte| *byte == b'`').count();
        if run == length {
            return close + run;
        }
        close += run;
    }
    inside
}

fn link_at(block: &str, at: usize) -> Option<WikiLink<'_>> {
    let inside = &block[at + 2..];
    let end = inside.find("]]")?;
    let words = &inside[..end];
    if words.contains(['\n', '[']) {
        return None;
    }
    let (target, alias) = match words.split_once('|') {
        Some((target, alias)) => (target.trim_end_matches('\\'), Some(alias.trim())),
        None => (words, None),
    };
    let (target, heading) = match target.split_once('#') {
        Some((target, heading)) => (target, Some(heading.trim())),
        None => (target, None),
    };
    let target = target.trim().trim_start_matches('/');
    let target = target.strip_suffix(".md").unwrap_or(target);
    if target.is_empty() && heading.is_none() {
        return None;
    }
    Some(WikiLink { target, heading, alias, at: at..at + 2 + end + 2 })
}

/// Reads a line of a list of links: `- [[path]] - description`.
pub fn listed(block: &str) -> Option<(WikiLink<'_>, &str)> {
    let start = super::blocks::bullet(block)?;
    let link = links_in(block).into_iter().next()?;
    if !block.get(start..link.at.start)?.trim_matches(['!', ' ']).is_empty() {
        return None;
    }
    let rest = block[link.at.end..].trim();
    let told = rest.strip_prefix(['-', '–', '—', ':']).unwrap_or(rest).trim();
    Some((link, told))
}

/// Whether a heading is that of a note's list of links.
pub fn is_links_heading(heading: &str) -> bool {
    heading.eq_ignore_ascii_case("links")
}

/// Whether a description is a list of single words, and no sentence: `kestrel, tools`.
pub fn are_words(description: &str) -> bool {
    description.split(", ").all(|word| !word.contains(char::is_whitespace))
}

/// Writes a line of a list of links.
pub fn listing(path: &str, description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    let told = words.join(" ").replace("[[", "[").replace("]]", "]");
    match told.is_empty() {
        true => format!("- [[{path}]]"),
        false => format!("- [[{path}]] - {told}"),
    }
}

/// Resolves a path from a folder, or from the top if it begins with a slash; `None` if it leads out of the
/// top.
pub fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => folder.split('/').filter(|part| !part.is_empty()).collect(),
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, Option<&str>, Option<&str>)]) {
        let found = links(text);
        let told: Vec<_> = found.iter().map(|link| (link.target, link.heading, link.alias)).collect();
        assert_eq!(told, expected, "{text:?}");
        assert!(
            found
                .iter()
                .all(|link| text[link.at.clone()].starts_with("[[") && text[link.at.clone()].ends_with("]]"))
        );
    }

    #[test]
    fn links_of_every_kind() {
        check("see [[a/b]] and [[c|the c]]", &[("a/b", None, None), ("c", None, Some("the c"))]);
        check("[[a.md#Part one|x]] ![[pic]]", &[("a", Some("Part one"), Some("x")), ("pic", None, None)]);
        check("[[#Here]] [[]] [[ ]]", &[("", Some("Here"), None)]);
        check("| [[a\\|b]] |", &[("a", None, Some("b"))]);
        check("`[[no]]` ``x ` [[no]]`` `[[yes]]", &[("yes", None, None)]);
        check("```\n[[no]]\n```\n\n[[yes]]", &[("yes", None, None)]);
        check("[[a\nb]] [[un[[c]]", &[("c", None, None)]);
        check("日本 [[語]]", &[("語", None, None)]);
    }

    #[test]
    fn lines_of_a_list_of_links() {
        let told = |line: &str| listed(line).map(|(link, told)| (link.target.to_owned(), told.to_owned()));
        assert_eq!(told("- [[a]] - what it is"), Some(("a".into(), "what it is".into())));
        assert_eq!(told("* [[a|x]]: y"), Some(("a".into(), "y".into())));
        assert_eq!(told("- [[a]]"), Some(("a".into(), String::new())));
        assert_eq!(told("- see [[a]]"), None);
        assert_eq!(told("[[a]] - b"), None);
        assert_eq!(listing("a", "b [[c]]\n d"), "- [[a]] - b [c] d");
        assert_eq!(told(&listing("a/b", "c")), Some(("a/b".into(), "c".into())));
    }

    #[test]
    fn paths_are_joined_and_lead_nowhere_outside() {
        assert_eq!(joined("notes/a", "b").as_deref(), Some("notes/a/b"));
        assert_eq!(joined("notes/a", "../b.md").as_deref(), Some("notes/b.md"));
        assert_eq!(joined("notes", "/files/x").as_deref(), Some("files/x"));
        assert_eq!(joined("notes", "../../far"), None);
    }
}
