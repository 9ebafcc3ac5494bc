//! Records that are in the journal and not placed yet. A record that another process appended is kept as
//! bytes until it is needed: mostly another process places it first.

use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;

use super::record::{Decoded, Record, decode, json_of};
use crate::locator::{Locator, collision_key};

/// A record that is not placed yet.
#[derive(Clone)]
pub(super) struct Pending {
    /// Where it ends.
    pub(super) end: u64,
    /// Its number.
    pub(super) seq: u64,
    held: Held,
}

#[derive(Clone)]
enum Held {
    Read(Arc<Record>),
    /// The bytes of another process's record, not decoded yet.
    Told(Bytes),
}

impl Pending {
    /// A record that has been read, or was written here.
    pub(super) fn read(end: u64, record: Arc<Record>) -> Self {
        Pending { end, seq: record.header.seq, held: Held::Read(record) }
    }

    /// A record that another process has told of.
    pub(super) fn told(end: u64, seq: u64, frame: Bytes) -> Self {
        Pending { end, seq, held: Held::Told(frame) }
    }

    /// The record; `None` if it was damaged since it was written.
    pub(super) fn record(&self) -> Option<Arc<Record>> {
        match &self.held {
            Held::Read(record) => Some(Arc::clone(record)),
            Held::Told(frame) => match decode(frame) {
                Decoded::Record(record, len) if len == frame.len() => Some(Arc::from(record)),
                _ => None,
            },
        }
    }

    /// Whether it may be something other than a change: only such records have a `what` field.
    pub(super) fn may_be_special(&self) -> bool {
        match &self.held {
            Held::Read(_) => true,
            Held::Told(frame) => json_of(frame).is_none_or(|json| memmem::find(json, b"\"what\":").is_some()),
        }
    }

    /// Whether it is about one of these places, something in it, or a folder above it. One that is damaged is
    /// about everything.
    pub(super) fn touches(&self, places: &[&Locator]) -> bool {
        if !self.may_touch(places) {
            return false;
        }
        let Some(record) = self.record() else { return true };
        let related = |a: &Locator, b: &Locator| a.is_within(b) || b.is_within(a);
        let mut busy = record.header.edits.iter().flat_map(|entry| [Some(entry.at()), entry.to()]).flatten();
        busy.any(|busy| places.iter().any(|at| related(at, busy)))
    }

    /// Returns a place that the record names and that a new place beside it would differ from only in case or
    /// accents.
    pub(super) fn twin_of(&self, at: &Locator) -> Option<Locator> {
        if let Held::Told(frame) = &self.held
            && at.name().is_ascii()
            && let Some(json) = json_of(frame)
            && memmem::find(&json.to_ascii_lowercase(), at.name().to_ascii_lowercase().as_bytes()).is_none()
        {
            return None;
        }
        let (record, key) = (self.record()?, collision_key(at.name()));
        let is_twin = |place: &Locator| {
            place != at && place.parent() == at.parent() && collision_key(place.name()) == key
        };
        let mut named = record.header.edits.iter().flat_map(|entry| [Some(entry.at()), entry.to()]).flatten();
        named.find_map(|place| place.ancestors().chain([place.clone()]).find(|place| is_twin(place)))
    }

    /// Whether the undecoded header mentions one of these places, something beneath it or a folder above it:
    /// every place that a record touches stands in it between quotes.
    fn may_touch(&self, places: &[&Locator]) -> bool {
        let Held::Told(frame) = &self.held else { return true };
        let Some(json) = json_of(frame) else { return true };
        let spelled = |at: &Locator| serde_json::to_string(at).expect("a locator is always JSON");
        let is_there = |text: &str| memmem::find(json, text.as_bytes()).is_some();
        places.iter().any(|at| {
            is_there(spelled(at).trim_end_matches('"'))
                || at.ancestors().any(|folder| is_there(&spelled(&folder)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Entry, Header, What, encode};
    use super::*;
    use crate::backend::{Note, Version};
    use crate::clock::Timestamp;
    use proptest::prelude::*;

    fn record(what: What, reason: &str, edits: &[(&str, Option<&str>)]) -> Record {
        let at = |key: &str| Locator::new(key).unwrap();
        let entries = edits.iter().map(|(from, to)| match to {
            Some(to) => Entry::Rename { at: at(from), to: at(to), folder: false, inode: None, old: None },
            None => Entry::Write { at: at(from), old: None, new: Version::of(b"x"), len: 1, before: None },
        });
        let bodies = edits.iter().map(|(_, to)| match to {
            Some(_) => Default::default(),
            None => [Bytes::from_static(b"x"), Bytes::new()],
        });
        let note = Note { reason: Some(reason.to_owned()), ..Note::default() };
        let header = Header { seq: 7, time: Timestamp::UNIX_EPOCH, what, note, edits: entries.collect() };
        Record::new(header, bodies.collect())
    }

    fn told(record: &Record) -> Pending {
        Pending::told(0, record.header.seq, encode(record).concat().into())
    }

    #[test]
    fn what_is_only_told_is_about_the_same_as_what_is_read() {
        let keys = ["a", "a/b", "a/b/c.md", "a/bc", "ab", "b", "é \"q\" \\/x", "é \"q\" \\", "z/a/b"];
        for first in keys {
            for second in [None, Some("a/b"), Some("to/here.md")] {
                let written = record(What::Change, "a/b \"a\"", &[(first, second)]);
                let read = Pending::read(0, Arc::new(written.clone()));
                for key in keys.into_iter().chain(["to", "to/here.md/deeper"]) {
                    let place = Locator::new(key).unwrap();
                    let [told, read] = [&told(&written), &read].map(|one| one.touches(&[&place]));
                    assert_eq!(told, read, "`{first}` to {second:?}, asked of `{key}`");
                }
            }
        }
    }

    #[test]
    fn nobody_looks_at_a_record_that_spells_none_of_the_names() {
        let one = told(&record(What::Change, "", &[("notes/a.md", None)]));
        let at = |key: &str| Locator::new(key).unwrap();
        for (key, may) in
            [("notes/b.md", false), ("notes/a.md", true), ("notes", true), ("notes/a.md/x", true)]
        {
            assert_eq!(one.may_touch(&[&at(key)]), may, "{key}");
        }
    }

    proptest! {
        #[test]
        fn only_a_plain_change_passes_for_one(reason in ".{0,20}(\"what\":)?.{0,20}", special in any::<bool>()) {
            let what = if special { What::Abort(3) } else { What::Change };
            prop_assert_eq!(told(&record(what, &reason, &[("a", None)])).may_be_special(), special);
        }
    }

    #[test]
    fn a_damaged_record_is_none_and_about_everything() {
        let mut frame = encode(&record(What::Change, "", &[("a", None)])).concat();
        let body = frame.len() - 2;
        frame[body] ^= 1;
        let damaged = Pending::told(0, 7, frame.into());
        assert!(damaged.record().is_none());
        assert!(damaged.touches(&[&Locator::new("a").unwrap()]));
    }
}
