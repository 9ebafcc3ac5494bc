//! Taking a record that was deleted out of the history for good.

use super::{Records, archive, backup};
use crate::backend::{Depth, Edit, Expect, FileKind, Note, upkeep};
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
