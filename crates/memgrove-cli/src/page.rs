//! What people read: text with restrained colour, and exact bytes where they are asked for.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// What a piece of text is, so that every verb looks the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// What the eye should find first: an address, a heading.
    Strong,
    /// What may be skipped: versions, times, line numbers.
    Dim,
    /// Something added, or well.
    Added,
    /// Something removed, or wrong.
    Removed,
    /// Something to look at.
    Warning,
}

impl Ink {
    fn style(self) -> Style {
        match self {
            Ink::Strong => Style::new().bold(),
            Ink::Dim => Style::new().dimmed(),
            Ink::Added => AnsiColor::Green.on_default(),
            Ink::Removed => AnsiColor::Red.on_default(),
            Ink::Warning => AnsiColor::Yellow.on_default(),
        }
    }
}

/// A count with its noun, in the singular or the plural.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, several: &str) -> String {
    format!("{count} {}", if count == N::from(1) { one } else { several })
}

/// Whether a page may carry colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paper {
    /// Text alone: a pipe, a file, an agent.
    Plain,
    /// A terminal that shows colour.
    Coloured,
}

/// Where a verb shows its answer.
pub(crate) struct Page<'a> {
    out: &'a mut dyn Write,
    paper: Paper,
}

impl<'a> Page<'a> {
    /// A page over any output.
    pub(crate) fn new(out: &'a mut dyn Write, paper: Paper) -> Self {
        Page { out, paper }
    }

    /// Shows a text.
    pub(crate) fn put(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(shown(text, self.paper).as_bytes())
    }

    /// Shows a text in an ink.
    pub(crate) fn ink(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        match self.paper {
            Paper::Plain => self.put(text),
            Paper::Coloured => {
                let style = ink.style();
                write!(self.out, "{style}{}{style:#}", shown(text, self.paper))
            }
        }
    }

    /// Shows a text and ends the line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.put(text)?;
        self.put("\n")
    }

    /// Hands over bytes exactly as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }
}

/// The text as a terminal may be given it: a memory must not move the cursor or rename the window.
fn shown(text: &str, paper: Paper) -> std::borrow::Cow<'_, str> {
    let harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if paper == Paper::Plain || text.chars().all(harmless) {
        return text.into();
    }
    text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect()
}

/// Returns a word quoted for a shell, where that is needed.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/.:".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.trim_end().replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paged(paper: Paper, show: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        show(&mut Page::new(&mut out, paper)).expect("a vector takes everything");
        String::from_utf8(out).expect("it was given text")
    }

    #[test]
    fn colour_only_on_coloured_paper() {
        assert_eq!(paged(Paper::Plain, |page| page.ink(Ink::Strong, "a")), "a");
        assert_eq!(paged(Paper::Coloured, |page| page.ink(Ink::Strong, "a")), "\u{1b}[1ma\u{1b}[0m");
    }

    #[test]
    fn a_memory_cannot_steer_the_terminal() {
        let trick = "a\u{1b}]0;owned\u{7}b\tc\n";
        assert_eq!(paged(Paper::Coloured, |page| page.put(trick)), "a\u{fffd}]0;owned\u{fffd}b\tc\n");
        assert_eq!(paged(Paper::Plain, |page| page.put(trick)), trick);
    }
}
