//! Taking a record that was deleted out of the history for good.

use serde_json::Value;

use super::{Records, archive, backup};
use crate::backend::{Depth, Edit, Expect, FileKind, Note};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::{Plan, REDACTION};
use crate::text::jsonl;

impl Records {
    /// Takes a record that was deleted out of the history and out of the backups for good, and keeps in
    /// the history that this was done. Gives back how many changes kept it. What other records of its
    /// file were at those times goes with it; what they are now does not.
    ///
    /// # Errors
    /// `Conflict` while it is there; as
    /// [`Backend::redact_holding`](crate::Backend::redact_holding).
    pub fn redact(&self, note: Note, id: &str) -> Result<usize> {
        if self.view(id).is_ok() {
            let message = format!("the record `{id}` is still there");
            return Err(
                Error::new(Kind::Conflict, message).hint(format!("`memgrove forget record:{id}` first"))
            );
        }
        let holds = |bytes: &[u8]| holds(bytes, id);
        let backups = self.root.child(backup::FOLDER)?;
        self.change(note.clone(), |store, _| {
            let mut edits = Vec::new();
            for info in store.backend().list(&backups, Depth::All)? {
                if info.kind == FileKind::File && holds(&store.read_bytes(&info.locator)?.bytes) {
                    edits.push(Edit::Delete { at: info.locator, expect: Expect::Any });
                }
            }
            Ok(Plan { edits, outcome: () })
        })?;
        let files = super::RecordType::ALL.map(|kind| self.root.child(kind.file()));
        let folders = [self.root.child(archive::FOLDER), Ok(backups)];
        let places = files.into_iter().chain(folders).collect::<Result<Vec<Locator>>>()?;
        let backend = self.memory.store().backend();
        let found = places.iter().map(|at| backend.redact_holding(at, &holds)).sum::<Result<usize>>()?;
        if found > 0 {
            let key = format!("{REDACTION} record:{id}");
            let note = Note { key: Some(key), ..note };
            self.change(note, |_, _| Ok(Plan { edits: Vec::new(), outcome: () }))?;
        }
        Ok(found)
    }
}

/// Whether lines of JSON, or what was answered to a key, hold the record.
fn holds(bytes: &[u8], id: &str) -> bool {
    memchr::memmem::find(bytes, id.as_bytes()).is_some()
        && jsonl::lines(bytes).any(|line| {
            serde_json::from_slice::<Value>(&bytes[line.body]).is_ok_and(|value| is_within(&value, id))
        })
}

fn is_within(value: &Value, id: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get("id").is_some_and(|given| given == id)
                || members.values().any(|value| is_within(value, id))
        }
        Value::Array(values) => values.iter().any(|value| is_within(value, id)),
        _ => false,
    }
}
