//! How a deleted record is removed from the history for good.

use super::{Records, archive, backup};
use crate::backend::{Depth, Edit, Expect, FileKind, Note, upkeep};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::{Plan, REDACTION};
use crate::text::jsonl;

impl Records {
    /// Refuses to redact a record that still exists.
    ///
    /// # Errors
    /// `Conflict` while the record exists.
    pub fn check_forgotten(&self, id: &str) -> Result<()> {
        if self.view(id).is_err() {
            return Ok(());
        }
        let message = format!("the record `{id}` is still there");
        Err(Error::new(Kind::Conflict, message).hint(format!("`memgrove forget record:{id}` first")))
    }

    /// Removes a deleted record from the history and the backups for good, notes this in the history, and
    /// returns how many changes held it. The earlier states of other records in the same contents are lost
    /// with it, but not their present ones.
    ///
    /// # Errors
    /// `Conflict` while the record exists; as
    /// [`Backend::redact_holding`](crate::Backend::redact_holding).
    pub fn redact(&self, note: Note, id: &str) -> Result<usize> {
        self.check_forgotten(id)?;
        let holds = |bytes: &[u8]| jsonl::holds_id(bytes, id);
        let backups = self.root.child(backup::FOLDER)?;
        let of_copies = Note { verb: upkeep::REDACT_COPIES.into(), ..note.clone() };
        self.change(of_copies, |store, _| {
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
