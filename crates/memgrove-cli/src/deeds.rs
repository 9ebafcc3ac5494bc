//! What past changes did, in terms of memories: which record or entity, not just which file.

use std::collections::HashSet;

use memgrove::backend::{Moment, Op, Past, PastEdit};
use memgrove::document::Document;
use memgrove::index;
use memgrove::text::jsonl;

use crate::address::{address_of, is_memory};
use crate::context::Context;
use crate::journals::{Journal, Journals};

/// How many past states are looked up for one answer, and how much journal may be read for them in all.
const LOOKS_MAX: u64 = 100;
const LOOKED_BYTES_MAX: u64 = 512 << 20;
/// The most that is shown of what a memory says, in characters.
const WORDS_CHARS_MAX: usize = 80;

/// What one edit did to one memory.
pub(crate) struct Deed {
    /// What was done.
    pub(crate) op: Op,
    /// To which memory, or to which place where that cannot be told.
    pub(crate) address: String,
    /// What it says, or said: the first words.
    pub(crate) words: Option<String>,
}

/// Tells what changes did, within a budget for looking up the past.
pub(crate) struct Teller<'a> {
    cx: &'a Context,
    journals: &'a Journals,
    /// How many lookups are left; `None` before the first.
    looks: Option<u64>,
}

impl<'a> Teller<'a> {
    /// A teller for the changes in these journals.
    pub(crate) fn new(cx: &'a Context, journals: &'a Journals) -> Self {
        Teller { cx, journals, looks: None }
    }

    /// What an edit of a change did. Both are given by the store's names.
    pub(crate) fn deeds(&mut self, past: &Past, edit: &PastEdit) -> Vec<Deed> {
        let shape = edit.at.parts().next().filter(|_| index::is_searched(edit.at.key()));
        let compared = match (shape, edit.op) {
            (_, Op::Rename) => None,
            (Some("records"), _) => self.compared(past, edit).map(|two| records(edit.op, two)),
            (Some("knowledge"), _) => {
                self.compared(past, edit).map(|two| entity(edit.op, two.map(|held| held.documents)))
            }
            (Some("graph"), _) => Some(thing(edit).into_iter().collect()),
            _ => None,
        };
        let place = || Deed { op: edit.op, address: address_of(self.cx, &edit.at), words: None };
        compared.filter(|deeds: &Vec<Deed>| !deeds.is_empty()).unwrap_or_else(|| vec![place()])
    }

    /// A file before a change and after it.
    fn compared(&mut self, past: &Past, edit: &PastEdit) -> Option<[Held; 2]> {
        let looks = self.looks.get_or_insert_with(|| looks_in(self.cx));
        *looks = looks.checked_sub(2)?;
        let (journal, change) = self.journals.of_change(past.change.as_str());
        let (before, after) = (Moment::Before(change.clone()), Moment::After(change));
        let (_, inside) = self.journals.of_place(&edit.at);
        let held = |moment| {
            let bytes = journal.memory.store().backend().read_past(&inside, &moment).ok()?;
            let bytes = bytes.unwrap_or_default();
            Some(Held { documents: index::documents(edit.at.key(), &bytes), bytes })
        };
        Some([held(before)?, held(after)?])
    }

    /// The memories that changes of one journal touched, in the order of the changes.
    pub(crate) fn touched(&mut self, journal: &Journal, changes: &[Past]) -> Vec<String> {
        let mut touched = Vec::new();
        for past in changes {
            let past = journal.told(past.clone());
            let all_aside = past.edits.iter().all(|edit| !is_memory(&edit.at));
            let told = past.edits.iter().filter(|edit| all_aside || is_memory(&edit.at));
            for deed in told.flat_map(|edit| self.deeds(&past, edit)) {
                if !touched.contains(&deed.address) {
                    touched.push(deed.address);
                }
            }
        }
        touched
    }
}

/// How many lookups this store allows: the longer its history, the fewer.
fn looks_in(cx: &Context) -> u64 {
    let journal = cx.place().and_then(|place| cx.selected(place, &[]).ok()?.history_bytes());
    (LOOKED_BYTES_MAX / journal.unwrap_or_default().max(1)).min(LOOKS_MAX)
}

/// A file as it was just before or after a change.
struct Held {
    bytes: Vec<u8>,
    documents: Vec<Document>,
}

impl Held {
    /// What of a record counts when two states are compared: all that is written but its readings.
    fn as_known<'a>(&self, one: &'a Document) -> (&'a str, String) {
        let written = self.bytes.get(one.span.clone()).unwrap_or_default();
        (&one.address, jsonl::beside_readings(&String::from_utf8_lossy(written)))
    }
}

/// The records that came, went or changed.
fn records(op: Op, [before, after]: [Held; 2]) -> Vec<Deed> {
    let deed = |op, one: &Document| Deed { op, address: one.address.clone(), words: words(&one.text) };
    let stay: HashSet<&str> = after.documents.iter().map(|one| one.address.as_str()).collect();
    let gone = before.documents.iter().filter(|one| !stay.contains(one.address.as_str()));
    let gone = gone.map(|one| deed(Op::Delete, one));
    let known: HashSet<_> = before.documents.iter().map(|one| before.as_known(one)).collect();
    let said = after.documents.iter().filter(|one| !known.contains(&after.as_known(one)));
    gone.chain(said.map(|one| deed(op, one))).collect()
}

/// The entity of a file, and what is new of it. Observations have addresses within that of their entity.
fn entity(op: Op, [before, after]: [Vec<Document>; 2]) -> Vec<Deed> {
    let news = |old: &[Document], new: &[Document]| {
        let differs = |one: &&Document| !old.iter().any(|other| other.text == one.text);
        let mut said = new.iter().filter(|one| one.address != one.group);
        said.find(differs).and_then(|one| words(&one.text))
    };
    let (words, whole) = match op {
        Op::Delete => (news(&after, &before), before.first()),
        _ => {
            let gone = || Some(format!("no longer: {}", news(&after, &before)?));
            (news(&before, &after).or_else(gone), after.first())
        }
    };
    whole.map(|one| Deed { op, address: one.group.clone(), words }).into_iter().collect()
}

/// The node or connection of a file, which is named after it.
fn thing(edit: &PastEdit) -> Option<Deed> {
    let first = index::documents(edit.at.key(), &[]).into_iter().next()?;
    let address = first.address.split('#').next()?.to_owned();
    Some(Deed { op: edit.op, address, words: None })
}

/// The first words of a text, on one line.
fn words(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut words: String = line.chars().take(WORDS_CHARS_MAX).collect();
    if words.len() < line.len() {
        words.push('…');
    }
    (!words.is_empty()).then_some(words)
}
