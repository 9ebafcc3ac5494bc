//! Markdown as a page shows it. Whoever wrote it may mean harm: raw HTML is shown as text, links lead
//! only where links may, images of other sites are not loaded, and nesting ends somewhere.

use std::borrow::Cow;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use memgrove::address::Scheme;

use super::frame::at_base;

/// How deep blocks and spans may lie in each other; what is deeper loses its form, never its text.
const DEPTH_MAX: usize = 32;
/// Where a link may lead beside other memories.
const SCHEMES: &[&str] = &["http", "https", "mailto"];
/// The images that are shown.
const IMAGES: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// Where a text lies, so that its links lead on from there.
pub(super) struct Here<'a> {
    /// What stands before every link.
    pub(super) base: &'a str,
    /// The place of the text.
    pub(super) at: &'a str,
}

/// A markdown text, rendered.
pub(super) fn rendered(text: &str, here: &Here<'_>) -> Markup {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_WIKILINKS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut tamed = Tamed { here, open: Vec::new(), depth: 0, table: Table::default() };
    let events = Parser::new_ext(text, options).flat_map(|event| tamed.event(event));
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events);
    PreEscaped(out)
}

/// What became of a tag that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    /// An image that is not loaded.
    Blocked,
}

struct Tamed<'a> {
    here: &'a Here<'a>,
    open: Vec<Fate>,
    depth: usize,
    table: Table,
}

/// The table that is being shown.
#[derive(Default)]
struct Table {
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

impl Table {
    /// The element of a cell that is not aligned as text is, with its class: an inline style is not allowed.
    fn aligned_cell(&self) -> Option<(&'static str, &'static str)> {
        let class = match self.columns.get(self.column)? {
            Alignment::Right => "right",
            Alignment::Center => "centre",
            Alignment::Left | Alignment::None => return None,
        };
        Some((if self.in_head { "th" } else { "td" }, class))
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Table(columns) => self.columns.clone_from(columns),
            Tag::TableHead | Tag::TableRow => {
                (self.column, self.in_head) = (0, matches!(tag, Tag::TableHead));
            }
            _ => {}
        }
    }
}

impl Tamed<'_> {
    fn event<'e>(&mut self, event: Event<'e>) -> Vec<Event<'e>> {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Html(raw) | Event::InlineHtml(raw) => vec![Event::Text(raw)],
            Event::TaskListMarker(done) => vec![Event::Text(if done { "☑ " } else { "☐ " }.into())],
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => Vec::new(),
            plain => vec![plain],
        }
    }

    fn start<'e>(&mut self, tag: Tag<'e>) -> Vec<Event<'e>> {
        self.table.start(&tag);
        let blocked = matches!(&tag, Tag::Image { dest_url, .. } if self.image(dest_url).is_none());
        let tag = if blocked { None } else { self.tamed(tag) };
        let fate = match tag {
            None if blocked => Fate::Blocked,
            Some(_) if self.depth < DEPTH_MAX => Fate::Kept,
            _ => Fate::Dropped,
        };
        self.open.push(fate);
        match (fate, tag) {
            (Fate::Kept, Some(tag)) => {
                self.depth += 1;
                match (&tag, self.table.aligned_cell()) {
                    (Tag::TableCell, Some((cell, class))) => {
                        vec![Event::Html(format!("<{cell} class=\"{class}\">").into())]
                    }
                    // What is too wide for the page is moved, not broken.
                    (Tag::Table(_), _) => {
                        let around =
                            "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">";
                        vec![Event::Html(around.into()), Event::Start(tag)]
                    }
                    _ => vec![Event::Start(tag)],
                }
            }
            (Fate::Blocked, _) => vec![Event::Html("<span class=\"blocked\">image not loaded: ".into())],
            _ => Vec::new(),
        }
    }

    fn end<'e>(&mut self, end: TagEnd) -> Vec<Event<'e>> {
        let cell = self.table.aligned_cell().filter(|_| end == TagEnd::TableCell);
        if end == TagEnd::TableCell {
            self.table.column += 1;
        }
        match (self.open.pop(), cell) {
            (Some(Fate::Kept), Some((cell, _))) => {
                self.depth -= 1;
                vec![Event::Html(format!("</{cell}>").into())]
            }
            (Some(Fate::Kept), None) if end == TagEnd::Table => {
                self.depth -= 1;
                vec![Event::End(end), Event::Html("</div>\n".into())]
            }
            (Some(Fate::Kept), None) => {
                self.depth -= 1;
                vec![Event::End(match end {
                    TagEnd::HtmlBlock => TagEnd::Paragraph,
                    TagEnd::MetadataBlock(_) => TagEnd::CodeBlock,
                    TagEnd::Heading(level) => TagEnd::Heading(lower(level)),
                    end => end,
                })]
            }
            (Some(Fate::Blocked), _) => vec![Event::Html("</span>".into())],
            _ => Vec::new(),
        }
    }

    /// The tag as it is shown; `None` if only what is in it is.
    fn tamed<'e>(&self, tag: Tag<'e>) -> Option<Tag<'e>> {
        Some(match tag {
            Tag::HtmlBlock => Tag::Paragraph,
            Tag::MetadataBlock(_) => Tag::CodeBlock(CodeBlockKind::Fenced("yaml".into())),
            // Alignment would be an inline style: cells have a class instead.
            Tag::Table(columns) => Tag::Table(vec![Alignment::None; columns.len()]),
            // The page itself has the first heading.
            Tag::Heading { level, .. } => {
                Tag::Heading { level: lower(level), id: None, classes: Vec::new(), attrs: Vec::new() }
            }
            Tag::Link { link_type, dest_url, title, id } => {
                Tag::Link { link_type, dest_url: self.link(&dest_url)?, title, id }
            }
            Tag::Image { link_type, dest_url, title, id } => {
                Tag::Image { link_type, dest_url: self.image(&dest_url)?, title, id }
            }
            tag => tag,
        })
    }

    /// Where a link leads; `None` if it may not lead there.
    fn link(&self, to: &str) -> Option<CowStr<'static>> {
        let outward = plain(to);
        if outward.starts_with('#')
            || scheme(&outward).is_some_and(|scheme| SCHEMES.contains(&scheme.as_str()))
        {
            return Some(outward.into_owned().into());
        }
        let query = [("link", &*inward(to)?), ("from", self.here.at)];
        Some(at_base(self.here.base, "/read", &query).into())
    }

    /// Where an image is loaded from: the files of this store, and nowhere else.
    fn image(&self, from: &str) -> Option<CowStr<'static>> {
        let from = plain(from);
        let lower = from.to_ascii_lowercase();
        let shown = IMAGES.iter().any(|end| lower.ends_with(end));
        if !shown || scheme(&from).is_some() || from.starts_with("//") || from.contains(['\\', '#', '?']) {
            return None;
        }
        let folder = self.here.at.rsplit_once('/').map_or("", |(folder, _)| folder);
        let inside = folder.strip_prefix("files").unwrap_or_default().trim_start_matches('/');
        let path = match from.strip_prefix('/') {
            Some(rest) => rest.strip_prefix("memories/")?.to_owned(),
            None if inside.is_empty() => from.trim_start_matches("./").to_owned(),
            None => format!("{inside}/{}", from.trim_start_matches("./")),
        };
        if !self.here.at.starts_with("files/") || path.split('/').any(|part| part == "..") {
            return None;
        }
        let address = format!("file:/memories/{path}");
        Some(at_base(self.here.base, "/api/content", &[("address", &address)]).into())
    }
}

/// What a link leads to in the store; `None` if it leads elsewhere.
pub(super) fn inward(to: &str) -> Option<Cow<'_, str>> {
    let to = plain(to);
    let is_elsewhere = match scheme(&to) {
        Some(scheme) => Scheme::named(&scheme).is_none(),
        None => to.starts_with("//") || to.starts_with('#') || to.contains('\\'),
    };
    Some(to).filter(|_| !is_elsewhere)
}

/// An address without what browsers ignore in one.
fn plain(text: &str) -> Cow<'_, str> {
    let ignored = |c: char| c.is_control() || c.is_whitespace() && c != ' ';
    match text.contains(ignored) || text.starts_with(' ') || text.ends_with(' ') {
        true => text.replace(ignored, "").trim().to_owned().into(),
        false => text.into(),
    }
}

/// The scheme of an address, in small letters.
fn scheme(address: &str) -> Option<String> {
    let (before, _) = address.split_once(':')?;
    (!before.contains(['/', '?', '#'])).then(|| before.trim().to_ascii_lowercase())
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        HeadingLevel::H4 => HeadingLevel::H5,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let here = Here { base: "", at: "files/a/b.md" };
        assert_eq!(rendered(text, &here).into_string().trim(), expected, "{text}");
    }

    #[test]
    fn raw_html_is_text() {
        check("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>");
        check("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>");
    }

    #[test]
    fn links_lead_only_where_links_may() {
        check("[x](https://a.example/)", "<p><a href=\"https://a.example/\">x</a></p>");
        check("[x](javascript:alert(1))", "<p>x</p>");
        check("[x](<java\tscript:alert(1)>)", "<p>x</p>");
        check("[x](JaVaScRiPt:alert(1))", "<p>x</p>");
        check("[x](data:text/html,hi)", "<p>x</p>");
        check("[x](//evil.example)", "<p>x</p>");
        check("<javascript:alert(1)>", "<p>javascript:alert(1)</p>");
        check("[x](c.md)", "<p><a href=\"/read?link=c.md&amp;from=files%2Fa%2Fb.md\">x</a></p>");
        check("[[c|x]]", "<p><a href=\"/read?link=c&amp;from=files%2Fa%2Fb.md\">x</a></p>");
    }

    #[test]
    fn images_come_from_this_store_alone() {
        let blocked = "<p><span class=\"blocked\">image not loaded: x</span></p>";
        check("![x](https://a.example/a.png)", blocked);
        check("![x](//a.example/a.png)", blocked);
        check("![x](../../../a.png)", blocked);
        check(
            "![x](c.png)",
            "<p><img src=\"/api/content?address=file%3A%2Fmemories%2Fa%2Fc.png\" alt=\"x\" /></p>",
        );
    }

    #[test]
    fn nesting_ends_somewhere_and_loses_no_text() {
        let here = Here { base: "", at: "files/a.md" };
        let deep = format!("{}bottom", "> ".repeat(5_000));
        let shown = rendered(&deep, &here).into_string();
        assert!(shown.contains("bottom"));
        assert!(shown.matches("<blockquote>").count() <= DEPTH_MAX);
        assert_eq!(shown.matches("<blockquote>").count(), shown.matches("</blockquote>").count());
    }

    #[test]
    fn nothing_needs_an_inline_style() {
        check(
            "|a|b|\n|-:|-|\n|c|d|\n|e|",
            "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><thead><tr>\
             <th class=\"right\">a</th><th>b</th></tr></thead><tbody>\n\
             <tr><td class=\"right\">c</td><td>d</td></tr>\n\
             <tr><td class=\"right\">e</td><td></td></tr>\n</tbody></table>\n</div>",
        );
        let here = Here { base: "", at: "files/a.md" };
        let deep = format!("{}|a|\n{}|-:|\n", "> ".repeat(31), "> ".repeat(31));
        let shown = rendered(&deep, &here).into_string();
        for (open, close) in [("<div", "</div>"), ("<table", "</table>"), ("<th ", "</th>")] {
            assert_eq!(shown.matches(open).count(), shown.matches(close).count(), "{shown}");
        }
    }
}
