//! What a change replaced or removed, and what someone else had written there meanwhile.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::journal::Journal;
use super::record::{Entry, Header, Record, What};
use super::{Core, Inner};
use crate::backend::{Actor, Note, OUTSIDE, Origin, Version};
use crate::clock::Timestamp;
use crate::locator::Locator;
use crate::vfs::VfsFile;

/// How long a file that was just replaced may still be written to by an editor that has it open.
const GRACE_MS: i64 = 2_000;
/// How many replaced files are watched at once.
const DISPLACED_MAX: usize = 128;

/// A file that a change has replaced or deleted. An editor may still have it open.
pub(super) struct Displaced {
    file: Box<dyn VfsFile>,
    at: Locator,
    version: Version,
    since: Timestamp,
}

impl Core {
    /// Keeps in the journal what someone else wrote, and watches the file for a while.
    pub(super) fn keep_displaced(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        file: Box<dyn VfsFile>,
        at: &Locator,
        (expected, there): (Option<&Version>, Version),
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        if expected != Some(&there) {
            self.journal_outside(journal, at, bytes)?;
        }
        if displaced.len() >= DISPLACED_MAX {
            let oldest = displaced.remove(0);
            self.settle_displaced(journal, &oldest)?;
        }
        displaced.push(Displaced { file, at: at.clone(), version: there, since: self.clock.now() });
        Ok(())
    }

    /// Puts content that someone else wrote into the journal, durably.
    pub(super) fn journal_outside(
        &self,
        journal: &mut Journal,
        at: &Locator,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        let new = Version::of(&bytes);
        let entry = Entry::Write { at: at.clone(), old: None, new, len: bytes.len() as u64, before: None };
        let actor = Actor { origin: Origin::FileEdit, ..Actor::default() };
        let header = Header {
            seq: journal.mark.next_seq,
            time: self.clock.now(),
            what: What::Outside,
            note: Note { verb: OUTSIDE.into(), actor, ..Note::default() },
            edits: vec![entry],
        };
        journal
            .append(&Arc::new(Record::new(header, vec![[bytes.into(), Bytes::new()]])), self.reserve_bytes)?;
        // The tree no longer has it, so its only copy must not wait.
        journal.file.sync_data()
    }

    pub(super) fn settle_displaced(&self, journal: &mut Journal, displaced: &Displaced) -> io::Result<()> {
        let bytes = displaced.file.read_all()?;
        // An editor that opens a file truncates it first: empty is not what it meant to save.
        if bytes.is_empty() || Version::of(&bytes) == displaced.version {
            return Ok(());
        }
        self.journal_outside(journal, &displaced.at, bytes)
    }

    /// Looks once more at the files that were replaced a while ago, and keeps what an editor wrote
    /// into them since.
    pub(super) fn settle_old_displaced(&self, inner: &mut Inner) -> io::Result<()> {
        let now = self.clock.now().as_millisecond();
        let Inner { journal: Some(journal), displaced, .. } = inner else { return Ok(()) };
        let ready = displaced.iter().take_while(|old| now - old.since.as_millisecond() >= GRACE_MS).count();
        for old in displaced.drain(..ready).collect::<Vec<_>>() {
            self.settle_displaced(journal, &old)?;
        }
        Ok(())
    }

    /// At close: waits for editors that were caught in the middle of a save, then looks for the
    /// last time.
    pub(super) fn settle_all_displaced(&self, inner: &mut Inner, pause: impl Fn()) -> io::Result<()> {
        let Inner { journal: Some(journal), displaced, .. } = inner else { return Ok(()) };
        let truncated = |old: &Displaced| old.version == Version::of(b"");
        if displaced.iter().any(truncated) {
            pause();
        }
        for old in std::mem::take(displaced) {
            self.settle_displaced(journal, &old)?;
        }
        Ok(())
    }
}
