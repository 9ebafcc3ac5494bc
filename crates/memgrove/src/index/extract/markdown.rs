//! How files and notes become documents: one for each section, with long sections cut into passages.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::passages::passages;
use super::{Source, links, speaker};
use crate::address::Scheme;
use crate::clock::Timestamp;
use crate::document::{Document, Shape, Weight};
use crate::index::analysis::folded;
use crate::index::dates;
use crate::text::links::{are_words, is_links_heading, listed};
use crate::text::metadata::metadata;
use crate::text::nearly::nearly_text;

/// What a front matter says about a whole file.
#[derive(Default)]
struct Front {
    title: Option<String>,
    kind: String,
    tags: Vec<String>,
    date: Option<Timestamp>,
    importance: Weight,
    hidden: bool,
}

/// A heading and the span of the text beneath it.
struct Section {
    heading: Option<String>,
    span: Range<usize>,
}

impl Section {
    /// Whether the section says anything, in its text or by its heading. A heading that is the file's
    /// title does not count, because the title of every document repeats it.
    fn says(&self, text: &str, title: &str) -> bool {
        let itself = self.heading.as_deref().filter(|heading| *heading != title);
        itself.is_some_and(|heading| !heading.is_empty()) || !text[self.span.clone()].trim().is_empty()
    }
}

impl Section {
    /// Whether it is only the list of links that memgrove maintains, each with a few words of the note it
    /// leads to. A line in someone's own words makes it a section like any other.
    fn lists_links(&self, text: &str) -> bool {
        let is_called_so = self.heading.as_deref().is_some_and(is_links_heading);
        let mut lines = text[self.span.clone()].lines().filter(|line| !line.trim().is_empty());
        is_called_so && lines.all(|line| listed(line).is_some_and(|(_, told)| are_words(told)))
    }
}

/// The anchors of one file, each used once.
#[derive(Default)]
struct Anchors {
    given: HashSet<String>,
    times: HashMap<String, usize>,
}

impl Anchors {
    /// Returns an anchor for a heading: `log`, or `log-2` if `log` is taken.
    fn new_for(&mut self, heading: &str) -> String {
        let slug = Some(slug(heading)).filter(|slug| !slug.is_empty()).unwrap_or("section".to_owned());
        let times = self.times.entry(slug.clone()).or_default();
        loop {
            *times += 1;
            let anchor = if *times == 1 { slug.clone() } else { format!("{slug}-{times}") };
            if self.given.insert(anchor.clone()) {
                return anchor;
            }
        }
    }
}

/// The documents of one file.
pub(super) fn documents(source: &Source<'_>, shape: Shape) -> Vec<Document> {
    let stem = source.inside.rsplit('/').next().unwrap_or(source.inside);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let blank = Document {
        address: address(source, shape),
        shape,
        title: stem.to_owned(),
        name: folded(&name(source.inside)),
        group: source.key.to_owned(),
        ..Document::default()
    };
    sections_of(source, blank)
}

/// Returns the documents of one file: copies of `blank`, filled in with what the text says.
pub(super) fn sections_of(source: &Source<'_>, blank: Document) -> Vec<Document> {
    let (base, stem) = (blank.address.clone(), blank.title.clone());
    let blank = Document { span: 0..source.bytes.len(), ..blank };
    let Some(text) = nearly_text(source.bytes) else { return vec![blank] };
    let text = &*text;
    let (front, body) = front(text);
    let is_markdown = blank.shape == Shape::Notes || !has_other_ending(source.inside);
    let mut sections = if is_markdown {
        sections(text, body)
    } else {
        vec![Section { heading: None, span: body..text.len() }]
    };
    let mut leads_to = Vec::new();
    if blank.shape == Shape::Notes {
        sections = sections.into_iter().flat_map(|section| without_metadata(text, section)).collect();
        sections.retain(|section| {
            let is_list = section.lists_links(text);
            leads_to.extend(is_list.then(|| links(&text[section.span.clone()])).into_iter().flatten());
            !is_list
        });
    }
    let top = sections.iter().find_map(|section| section.heading.clone());
    let title = front.title.clone().or(top).unwrap_or_else(|| stem.clone());
    sections.retain(|section| section.says(text, &title));
    let mut anchors = Anchors::default();
    let mut found = Vec::new();
    for section in &sections {
        let anchor = section.heading.as_deref().filter(|_| sections.len() > 1).map(|it| anchors.new_for(it));
        let whole = match &section.heading {
            Some(heading) if *heading != title => format!("{title} > {heading}"),
            _ => title.clone(),
        };
        let date = section.heading.as_deref().and_then(dates::written).or(front.date);
        let parts = passages(text, section.span.clone());
        // An address without an anchor is that of the file, and must not stand for a part of it.
        let alone = sections.len() == 1 && parts.len() == 1;
        for (part, span) in parts.into_iter().enumerate() {
            let anchor = match (&anchor, part) {
                (None, _) if alone => String::new(),
                (None, part) => format!("#~{}", part + 1),
                (Some(anchor), 0) => format!("#{anchor}"),
                (Some(anchor), part) => format!("#{anchor}~{}", part + 1),
            };
            // A heading with nothing beneath it is its own text.
            let said = match text[span.clone()].trim() {
                "" => section.heading.as_deref().unwrap_or_default(),
                said => said,
            };
            found.push(Document {
                address: format!("{base}{anchor}"),
                kind: front.kind.clone(),
                title: whole.clone(),
                subject: speaker(said).unwrap_or_default().to_owned(),
                text: said.to_owned(),
                tags: front.tags.clone(),
                date,
                importance: front.importance,
                links: links(said),
                hidden: front.hidden,
                span,
                name: if found.is_empty() { blank.name.clone() } else { String::new() },
                ..blank.clone()
            });
        }
    }
    if found.is_empty() {
        found.push(Document { title, kind: front.kind, tags: front.tags, date: front.date, ..blank });
    }
    found[0].links.extend(leads_to);
    found
}

/// Returns a section without the metadata lines that memgrove writes into a note: people search for what
/// they have written themselves.
fn without_metadata(text: &str, section: Section) -> Vec<Section> {
    let is_metadata =
        section.heading.as_deref().is_some_and(|heading| heading.eq_ignore_ascii_case("metadata"));
    let found = metadata(&text[section.span.clone()]).filter(|_| is_metadata);
    let Some(lines) = found else { return vec![section] };
    let Range { start, end } = section.span;
    let others = [start..start + lines.start, start + lines.end..end].into_iter();
    let others = others.filter(|span| !text[span.clone()].trim().is_empty());
    others.map(|span| Section { heading: section.heading.clone(), span }).collect()
}

fn address(source: &Source<'_>, shape: Shape) -> String {
    match shape {
        Shape::Files => format!("file:/memories/{}", source.inside),
        Shape::Notes => Scheme::Note.address(name(source.inside)),
        _ => source.key.to_owned(),
    }
}

/// Returns the name that links use for a file: its path without `.md`.
fn name(inside: &str) -> String {
    inside.strip_suffix(".md").unwrap_or(inside).to_owned()
}

fn has_other_ending(inside: &str) -> bool {
    let name = inside.rsplit('/').next().unwrap_or(inside);
    name.rsplit_once('.').is_some_and(|(_, ending)| !matches!(ending, "md" | "markdown" | "mdx"))
}

/// Reads the front matter of a text, and returns where the rest begins.
fn front(text: &str) -> (Front, usize) {
    let mut front = Front::default();
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut lines = text[start..].split_inclusive('\n');
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return (front, start);
    }
    let mut at = start + text[start..].split_inclusive('\n').next().map_or(0, str::len);
    let mut key = String::new();
    for line in lines {
        at += line.len();
        let line = line.trim_end();
        if line == "---" {
            return (front, at);
        }
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            if key == "tags" {
                front.tags.push(bare(item).to_owned());
            }
        } else if let Some((name, value)) =
            line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#']))
        {
            key = name.trim().to_lowercase();
            front.set(&key, bare(value));
        }
    }
    // A first line of dashes that is never closed is text.
    (Front::default(), start)
}

impl Front {
    fn set(&mut self, key: &str, value: &str) {
        match key {
            "title" | "name" => self.title = (!value.is_empty()).then(|| value.to_owned()),
            "type" | "kind" => self.kind = value.to_owned(),
            "tags" => {
                let inside = value.trim_start_matches('[').trim_end_matches(']');
                let tags = inside.split(',').map(bare).filter(|tag| !tag.is_empty());
                self.tags = tags.map(str::to_owned).collect();
            }
            "updated" | "modified" => self.date = dates::written(value).or(self.date),
            "date" | "created" => self.date = self.date.or_else(|| dates::written(value)),
            "importance" | "priority" => self.importance = Weight::named(value).unwrap_or_default(),
            "archived" | "superseded" => self.hidden = value == "true",
            "status" => self.hidden = matches!(value, "archived" | "superseded"),
            _ => {}
        }
    }
}

fn bare(value: &str) -> &str {
    value.trim().trim_matches(['"', '\'']).trim()
}

/// Returns the sections of a text from `body` on. Within a code fence there are no headings.
fn sections(text: &str, body: usize) -> Vec<Section> {
    let mut found = Vec::new();
    let (mut open, mut at, mut fence) = (Section { heading: None, span: body..body }, body, None);
    // A line that `===` or `----` beneath it would make a heading, because it stands alone, and where it
    // begins.
    let (mut alone, mut before): (Option<(usize, &str)>, &str) = (None, "");
    for line in text[body..].split_inclusive('\n') {
        let code = line.trim_start();
        let ticks = ["```", "~~~"].into_iter().find(|ticks| code.starts_with(ticks));
        if let Some(ticks) = ticks {
            fence = match fence {
                None => Some(ticks),
                Some(open) if open == ticks => None,
                open => open,
            };
        }
        let above = alone.take().filter(|_| fence.is_none() && is_underline(line));
        let heading = above.or_else(|| Some((at, hashed(line)?)).filter(|_| fence.is_none()));
        if let Some((from, heading)) = heading {
            open.span.end = from;
            let (heading, start) = (Some(heading.to_owned()), at + line.len());
            found.push(std::mem::replace(&mut open, Section { heading, span: start..start }));
        }
        let stands_alone = before.trim().is_empty() && heading.is_none() && is_plain(line);
        alone = stands_alone.then(|| (at, line.trim()));
        before = if heading.is_some() { "" } else { line };
        at += line.len();
    }
    open.span.end = text.len();
    found.push(open);
    found
}

/// Returns the words of a heading that begins with `#`.
fn hashed(line: &str) -> Option<&str> {
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let is_heading = (1..=6).contains(&hashes) && line[hashes..].starts_with([' ', '\t']);
    is_heading.then(|| line[hashes..].trim().trim_end_matches('#').trim_end())
}

/// Whether a line makes the one above it a heading. Three dashes do not: people use them as separators.
fn is_underline(line: &str) -> bool {
    let line = line.trim_end();
    [('=', 3), ('-', 4)].iter().any(|(sign, least)| line.len() >= *least && line.chars().all(|c| c == *sign))
}

/// Whether a line may be a heading if it is underlined: it is short, and no list item, quote, table row or
/// code.
fn is_plain(line: &str) -> bool {
    const BYTES_MAX: usize = 80;
    line.len() <= BYTES_MAX
        && line.starts_with(char::is_alphanumeric)
        && !line.contains('|')
        && !is_item(line)
}

/// Whether a line is an item of a numbered list.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(['.', ')'])
}

/// Turns a heading into an anchor.
fn slug(heading: &str) -> String {
    let mut slug = String::new();
    for c in heading.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() || c == '_' => slug.push(c),
            _ if !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Document> {
        documents(&Source { key: "files/a.md", inside: "a.md", bytes: text.as_bytes() }, Shape::Files)
    }

    #[test]
    fn sections_are_documents_with_addresses() {
        let text = "---\ntitle: Tea\ntags: [a, b]\ndate: 2024-05-01\n---\nintro\n# One\nfirst\n```\n# no heading\n```\n## Two words!\nAnn: second\n";
        let found = of(text);
        let told: Vec<_> =
            found.iter().map(|d| (d.address.as_str(), d.title.as_str(), d.subject.as_str())).collect();
        assert_eq!(
            told,
            [
                ("file:/memories/a.md#~1", "Tea", ""),
                ("file:/memories/a.md#one", "Tea > One", ""),
                ("file:/memories/a.md#two-words", "Tea > Two words!", "Ann"),
            ]
        );
        assert!(found.iter().all(|d| d.tags == ["a", "b"] && d.date.is_some()));
        assert!(found.iter().all(|d| text[d.span.clone()].contains(&d.text)));
        assert_eq!(found[1].text, "first\n```\n# no heading\n```");
    }

    #[test]
    fn what_people_write_beside_the_metadata_of_a_note_is_found() {
        let of = |text: &str| -> Vec<String> {
            let source = Source { key: "notes/a.md", inside: "a.md", bytes: text.as_bytes() };
            documents(&source, Shape::Notes).into_iter().map(|document| document.text).collect()
        };
        assert_eq!(of("# A\nfact\n\n## Metadata\n\nsize_bytes: 1\n"), ["fact"]);
        let typed = "# A\nfact\n\n## Metadata\n\nsize_bytes: 1\nThe deadline is in May\n";
        assert_eq!(of(typed), ["fact", "The deadline is in May"]);
        assert_eq!(of("# A\nfact\n\n## Metadata\n\nauthor: Ann\n"), ["fact", "author: Ann"]);
    }

    #[test]
    fn every_document_of_a_file_has_an_address_of_its_own() {
        let long = "word ".repeat(150);
        for (text, told) in [
            (format!("# Log\n{long}\n# Log\nshort\n"), vec!["#log", "#log~2", "#log-2"]),
            ("# A\n1\n# A\n2\n# A 2\n3\n".to_owned(), vec!["#a", "#a-2", "#a-2-2"]),
            (
                format!("{long}\n# !\n{long}\n# ?\n1\n"),
                vec!["#~1", "#~2", "#section", "#section~2", "#section-2"],
            ),
            (long.clone(), vec!["#~1", "#~2"]),
            ("# A\n1\n".to_owned(), vec![""]),
        ] {
            let found = of(&text);
            let anchors: Vec<&str> =
                found.iter().map(|d| d.address.trim_start_matches("file:/memories/a.md")).collect();
            assert_eq!(anchors, told, "{text}");
        }
    }

    #[test]
    fn headings_say_something_themselves() {
        let titles = |text: &str| -> Vec<(String, String)> {
            of(text).into_iter().map(|d| (d.title, d.text)).collect()
        };
        let pair = |title: &str, text: &str| (title.to_owned(), text.to_owned());
        assert_eq!(titles("# Zephyr\n\n## Setup\nmake\n"), [pair("Zephyr > Setup", "make")]);
        assert_eq!(
            titles("# Todo\n\n## Call the plumber\n"),
            [pair("Todo > Call the plumber", "Call the plumber")]
        );
        assert_eq!(titles("# Only\n"), [pair("Only", "")]);
    }

    #[test]
    fn lines_beneath_make_headings_too() {
        for (text, told) in [
            (
                "Tea\n===\nBrew it.\n\nCoffee\n------\nGrind it.\n",
                &[("Tea", "Brew it."), ("Tea > Coffee", "Grind it.")][..],
            ),
            ("# A\nB\n----\nc\n", &[("A > B", "c")]),
            ("one\n---\ntwo\n", &[("a", "one\n---\ntwo")]),
            // A rule beneath a paragraph, an item, a table or a long line is none.
            ("one\ntwo\n----\nthree\n", &[("a", "one\ntwo\n----\nthree")]),
            ("- one\n----\ntwo\n", &[("a", "- one\n----\ntwo")]),
            ("1. one\n----\ntwo\n", &[("a", "1. one\n----\ntwo")]),
            ("one\n\n----\ntwo\n", &[("a", "one\n\n----\ntwo")]),
            ("a | b\n---|---\n1 | 2\n", &[("a", "a | b\n---|---\n1 | 2")]),
            ("```\none\n----\n```\n", &[("a", "```\none\n----\n```")]),
        ] {
            let found = of(text);
            let titled: Vec<(&str, &str)> =
                found.iter().map(|d| (d.title.as_str(), d.text.as_str())).collect();
            assert_eq!(titled, told, "{text}");
        }
    }

    #[test]
    fn files_without_text_are_known_by_name() {
        let found =
            documents(&Source { key: "files/p.png", inside: "p.png", bytes: &[255, 0] }, Shape::Files);
        assert_eq!((found.len(), found[0].title.as_str(), found[0].text.as_str()), (1, "p", ""));
        let bytes = b"# Tea\nbrew it in a caf\xe9\n# Two\nsecond\n";
        let found = documents(&Source { key: "files/a.md", inside: "a.md", bytes }, Shape::Files);
        assert_eq!(found[0].text, "brew it in a caf?");
        assert_eq!(&bytes[found[1].span.clone()], b"second\n");
        assert_eq!(of("").len(), 1);
        assert_eq!(of("---\nno end").len(), 1);
    }
}
