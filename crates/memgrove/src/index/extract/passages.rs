//! How a long text is cut into passages: at paragraphs, a long paragraph at sentences, and a text without
//! either wherever a passage is full.

use std::ops::Range;

use crate::index::analysis::is_east_asian;

/// The largest passage, in words.
pub(super) const WORDS_MAX: usize = 120;
/// This many bytes without white space count as one more word; so do two characters of Chinese, Japanese
/// or Korean.
const LONG_WORD: usize = 40;
/// The signs that end a sentence if white space follows, and those that always end one.
const ENDS: [char; 3] = ['.', '!', '?'];
const WIDE_ENDS: [char; 3] = ['\u{3002}', '\u{ff01}', '\u{ff1f}'];

/// The passages of a span.
pub(super) fn passages(text: &str, span: Range<usize>) -> Vec<Range<usize>> {
    if words(&text[span.clone()]) <= WORDS_MAX {
        return vec![span];
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for piece in paragraphs(text, span).into_iter().flat_map(|paragraph| sentences(text, paragraph)) {
        let size = words(&text[piece.clone()]);
        match found.last_mut() {
            Some(last) if held + size <= WORDS_MAX => {
                last.end = piece.end;
                held += size;
            }
            _ => {
                found.push(piece);
                held = size;
            }
        }
    }
    found
}

fn paragraphs(text: &str, span: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut at) = (span.start, span.start);
    for line in text[span.clone()].split_inclusive('\n') {
        at += line.len();
        if line.trim().is_empty() {
            found.push(start..at);
            start = at;
        }
    }
    found.push(start..span.end);
    found.retain(|part| !text[part.clone()].trim().is_empty());
    found
}

/// Cuts a paragraph into pieces that fit a passage.
fn sentences(text: &str, span: Range<usize>) -> Vec<Range<usize>> {
    if words(&text[span.clone()]) <= WORDS_MAX {
        return vec![span];
    }
    let (mut found, mut start) = (Vec::new(), span.start);
    while start < span.end {
        let end = start + fitting(&text[start..span.end]);
        found.push(start..end);
        start = end;
    }
    found
}

/// Returns how much of a text fits: up to the end of a sentence, else of a line, a word, or a character.
fn fitting(text: &str) -> usize {
    let (mut held, mut run, mut word, mut border) = (0, 0, 0, None);
    for (at, c) in text.char_indices() {
        if !c.is_whitespace() {
            word = if run == 0 { at } else { word };
            run += weight(c);
            if held + 1 + run / LONG_WORD > WORDS_MAX {
                return border.or((held > 0).then_some(word)).unwrap_or(at);
            }
            if WIDE_ENDS.contains(&c) {
                border = Some(at + c.len_utf8());
            }
        } else if run > 0 {
            held += 1 + run / LONG_WORD;
            run = 0;
            if c == '\n' || text[..at].ends_with(ENDS) {
                border = Some(at);
            }
            if held >= WORDS_MAX {
                return border.unwrap_or(at);
            }
        }
    }
    text.len()
}

/// Returns about how many words a text has; long runs without white space count as several.
fn words(text: &str) -> usize {
    text.split_whitespace().map(|word| 1 + word.chars().map(weight).sum::<usize>() / LONG_WORD).sum()
}

fn weight(c: char) -> usize {
    if is_east_asian(c) { LONG_WORD / 2 } else { c.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_nothing_is_lost() {
        let paragraph = "word ".repeat(70);
        for text in [
            format!("{paragraph}\n\n{paragraph}\n\n{}\n", "x ".repeat(500)),
            "\u{6211}\u{559c}\u{6b22}\u{7eff}\u{8336}\u{3002}".repeat(300),
            "\u{6771}".repeat(2_000),
            format!("{} {}", "one. ".repeat(118), "u".repeat(200)),
            "A1b2".repeat(5_000),
        ] {
            let found = passages(&text, 0..text.len());
            assert!(found.len() > 1 && found.iter().all(|part| words(&text[part.clone()]) <= WORDS_MAX));
            let back: String = found.iter().map(|part| &text[part.clone()]).collect();
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&back), bare(&text));
        }
    }

    #[test]
    fn sentences_end_passages() {
        let text = "\u{6211}\u{559c}\u{6b22}\u{7eff}\u{8336}\u{3002}".repeat(300);
        assert!(passages(&text, 0..text.len()).iter().all(|part| text[part.clone()].ends_with('\u{3002}')));
        let text = format!("{} {}", "one. ".repeat(118), "u".repeat(200));
        assert!(passages(&text, 0..text.len())[1].len() >= 200);
    }
}
