//! How the items of a file, observations and relations, are updated: missing ones are removed, the facts
//! of those that stay are rewritten, and new ones are added after the last. Nothing else moves.

use super::reading::marker;
use super::{Document, OBSERVATIONS, Piece, RELATIONS, What};
use crate::shapes::entities::escape::{escaped, escaped_text};
use crate::shapes::entities::{Facts, Observation, Relation};

/// How far the facts of an item without a list marker are indented.
const INDENT: usize = 2;

/// A kind of item: an observation or a relation.
pub(super) trait Item: Clone + PartialEq {
    /// The section where new items go.
    const SECTION: &'static str;
    fn of(piece: &Piece) -> Option<&Self>;
    /// Whether it is the same statement, whatever its facts are.
    fn says(&self, other: &Self) -> bool;
    fn facts(&self) -> &Facts;
    fn into_what(self) -> What;
    /// Returns its lines without its facts.
    fn print(&self, number: usize, newline: &str) -> String;
}

impl Item for Observation {
    const SECTION: &'static str = OBSERVATIONS;

    fn of(piece: &Piece) -> Option<&Self> {
        match &piece.what {
            What::Observation(observation) => Some(observation),
            _ => None,
        }
    }

    fn says(&self, other: &Self) -> bool {
        self.text == other.text
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn into_what(self) -> What {
        What::Observation(self)
    }

    fn print(&self, number: usize, newline: &str) -> String {
        let mark = format!("{number}. ");
        let indent = " ".repeat(mark.len());
        let mut raw = mark;
        for (index, line) in self.text.split('\n').enumerate() {
            if index > 0 {
                raw.push_str(&indent);
            }
            raw.push_str(&escaped_text(line));
            raw.push_str(newline);
        }
        raw
    }
}

impl Item for Relation {
    const SECTION: &'static str = RELATIONS;

    fn of(piece: &Piece) -> Option<&Self> {
        match &piece.what {
            What::Relation(relation) => Some(relation),
            _ => None,
        }
    }

    fn says(&self, other: &Self) -> bool {
        (&self.kind, &self.to) == (&other.kind, &other.to)
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn into_what(self) -> What {
        What::Relation(self)
    }

    fn print(&self, _: usize, newline: &str) -> String {
        let kind = escaped(&self.kind).replace(":**", "&#58;**");
        format!("- **{kind}:** {}{newline}", escaped(&self.to))
    }
}

impl Document {
    /// Makes these the items of the file, in this order.
    pub(super) fn set_items<T: Item>(&mut self, to: &[T]) {
        let now: Vec<T> = self.pieces.iter().filter_map(T::of).cloned().collect();
        if now == to {
            return;
        }
        let becomes = aligned(&now, to);
        let (newline, mut met, mut stay) = (self.newline, 0, 0);
        self.pieces.retain_mut(|piece| {
            if T::of(piece).is_none() {
                return true;
            }
            met += 1;
            let Some(item) = becomes[met - 1] else { return false };
            stay += 1;
            piece.restate(item, newline);
            piece.renumber::<T>(met, stay, newline);
            true
        });
        let made = to[stay..].iter().zip(stay + 1..).map(|(item, number)| made(item, number, newline));
        self.add(T::SECTION, made.collect());
    }

    /// Adds items after the last item of a section, which is added too if it is missing.
    fn add(&mut self, section: &str, made: Vec<Piece>) {
        if made.is_empty() {
            return;
        }
        let head = |piece: &Piece| matches!(&piece.what, What::Section(name) if name == section);
        if !self.pieces.iter().any(head) {
            self.begin(section);
        }
        let start = self.pieces.iter().rposition(head).expect("it was just made sure of") + 1;
        let next = self.pieces[start..].iter().position(|piece| matches!(piece.what, What::Section(_)));
        let end = next.map_or(self.pieces.len(), |next| start + next);
        // After the last item; other text that follows it stays where it is.
        let item = self.pieces[start..end].iter().rposition(is_item).map_or(start, |at| start + at + 1);
        self.end_line_before(item);
        self.pieces.splice(item..item, made);
    }
}

/// Returns for each present item the new one that makes the same statement, in the same order, or `None`
/// if it is gone. New items that match none are added at the end.
fn aligned<'a, T: Item>(now: &[T], to: &'a [T]) -> Vec<Option<&'a T>> {
    let mut becomes: Vec<Option<&T>> = vec![None; now.len()];
    let same = now.iter().zip(to).take_while(|(a, b)| a == b).count();
    let ends = now[same..].iter().rev().zip(to[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (now.len() - ends, to.len() - ends);
    becomes.iter_mut().zip(&to[..same]).for_each(|(becomes, item)| *becomes = Some(item));
    let (mut old, mut new) = (same, same);
    while new < new_end
        && let Some(found) = now[old..old_end].iter().position(|known| known.says(&to[new]))
    {
        becomes[old + found] = Some(&to[new]);
        (old, new) = (old + found + 1, new + 1);
    }
    if new == new_end {
        becomes[old_end..].iter_mut().zip(&to[new_end..]).for_each(|(becomes, item)| *becomes = Some(item));
    }
    becomes
}

fn made<T: Item>(item: &T, number: usize, newline: &str) -> Piece {
    let mut piece = Piece::new(item.print(number, newline), item.clone().into_what());
    piece.state(item.facts(), newline);
    piece
}

fn is_item(piece: &Piece) -> bool {
    matches!(piece.what, What::Observation(_) | What::Relation(_))
}

impl Piece {
    /// Replaces the facts of an item; the statement itself stays as it is written.
    fn restate<T: Item>(&mut self, item: &T, newline: &str) {
        if T::of(self) == Some(item) {
            return;
        }
        self.raw.truncate(self.said);
        if !self.raw.ends_with('\n') {
            self.raw.push_str(newline);
            self.said = self.raw.len();
        }
        self.what = item.clone().into_what();
        self.state(item.facts(), newline);
    }

    fn state(&mut self, facts: &Facts, newline: &str) {
        let indent = " ".repeat(marker(&self.raw).unwrap_or(INDENT));
        for (key, value) in facts.entries() {
            if let Some(value) = value {
                self.raw.push_str(&format!("{indent}- {key}: {}{newline}", escaped(value)));
            }
        }
    }

    /// Gives the item at place `was` its new number, if it had the number of its place; a number that
    /// someone chose differently stays.
    fn renumber<T: Item>(&mut self, was: usize, is: usize, newline: &str) {
        let (old, new) = (format!("{was}. "), format!("{is}. "));
        let Some(rest) = self.raw.strip_prefix(&old).filter(|_| was != is) else { return };
        match (old.len() == new.len(), T::of(self)) {
            (true, _) => self.raw = format!("{new}{rest}"),
            // The width of the number has changed, and with it the indentation of further lines.
            (false, Some(item)) => *self = made(&item.clone(), is, newline),
            (false, None) => {}
        }
    }
}
