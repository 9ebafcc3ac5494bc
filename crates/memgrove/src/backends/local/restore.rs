//! Bringing one file to what the records since the last checkpoint say, whatever a power cut has left of it and
//! whoever writes it meanwhile.

use std::io;

use super::displaced::Displaced;
use super::journal::Journal;
use super::outcome::{Final, Outcome, Piece, is_torn};
use super::place::is_changed_by_others;
use super::{Bug, Core};
use crate::backend::Version;
use crate::locator::Locator;
use crate::vfs::{Open, VfsFile};

/// How far behind the clock of a program the time of a file may be.
const COARSE_NS: i128 = 20_000_000;
/// How long after a change was recorded it may be in its place at the latest, mostly.
const PLACED_NS: i128 = 500_000_000;
/// From so long after a change on, a file was touched by someone else.
const TOUCHED_LATER_NS: i128 = 2_000_000_000;

/// What is needed to do again what records say.
pub(super) struct Redoing<'a> {
    pub(super) journal: &'a mut Journal,
    pub(super) displaced: &'a mut Vec<Displaced>,
    pub(super) outcome: &'a Outcome,
}

impl Core {
    /// Brings a file to what the records say of it.
    pub(super) fn restore(&self, redoing: &mut Redoing<'_>, at: &Locator, wanted: &Final) -> io::Result<()> {
        let there = match self.tree.open(&self.spelled(at), Open::Read) {
            Ok(file) => Some(file),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                None
            }
            // A folder or a link has taken the place: that is someone else's doing.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        match (wanted, there) {
            (Final::Absent, None) => Ok(()),
            (Final::Absent, Some(file)) => self.take_away(redoing, at, &*file),
            (Final::Bytes(bytes), None) => self.bring(redoing, at, bytes, None),
            (Final::Bytes(bytes), Some(file)) => {
                let found = file.read_all()?;
                if found == *bytes || !self.may_replace(redoing, at, (&*file, &found))? {
                    return Ok(());
                }
                let version = Version::of(&found);
                self.keep_meant(redoing, at, (&*file, found))?;
                self.bring(redoing, at, bytes, Some(&version))
            }
            (Final::Grown(_), None) if self.is_removed_later(redoing, at) => Ok(()),
            (Final::Grown(pieces), None) => {
                let tails: Vec<&[u8]> = pieces.iter().map(|piece| &*piece.tail).collect();
                self.bring(redoing, at, &tails.concat(), None)
            }
            (Final::Grown(pieces), Some(file)) => {
                let mut pieces = pieces.iter();
                pieces.try_for_each(|piece| self.regrow(redoing, at, &*file, piece))
            }
        }
    }

    /// Removes a file that a record deleted, unless someone else has made it since.
    pub(super) fn take_away(
        &self,
        redoing: &mut Redoing<'_>,
        at: &Locator,
        file: &dyn VfsFile,
    ) -> io::Result<()> {
        let found = file.read_all()?;
        if !self.may_replace(redoing, at, (file, &found))? {
            return Ok(());
        }
        let version = Version::of(&found);
        self.keep_meant(redoing, at, (file, found))?;
        let temp = self.free_temp(redoing, at)?;
        self.place_delete(redoing.journal, redoing.displaced, at, &version, &temp)
    }

    /// Whether nobody has written what is there since the last record of the file: a power cut can have left it, or
    /// has brought back what others had written shortly before.
    fn may_replace(
        &self,
        redoing: &Redoing<'_>,
        at: &Locator,
        (file, found): (&dyn VfsFile, &[u8]),
    ) -> io::Result<bool> {
        Ok(redoing.outcome.explains(at, found)
            || self.seeded.has(Bug::RecoverOverHandEdit)
            || redoing.outcome.is_older(at, file.stat()?.ctime_ns))
    }

    /// Keeps what is about to be replaced, where a person may have meant it. It looks torn, but they
    /// may have cut it short; or it is what the file was before, but they may have put it back. By
    /// the clock alone that cannot be told from what a power cut left, so the change that was answered
    /// wins, and the history has both.
    fn keep_meant(
        &self,
        redoing: &mut Redoing<'_>,
        at: &Locator,
        (file, found): (&dyn VfsFile, Vec<u8>),
    ) -> io::Result<()> {
        let outcome = redoing.outcome;
        let cut_short = !outcome.knows(at, &found) && found.iter().any(|byte| *byte != 0);
        let put_back = file.stat()?.ctime_ns - outcome.time_ns >= TOUCHED_LATER_NS;
        if (cut_short || put_back) && !self.seeded.has(Bug::RecoverOverHandEdit) {
            self.journal_outside(redoing.journal, at, found)?;
        }
        Ok(())
    }

    /// Gives a file its content, by an exchange: what someone saves at this very moment is kept.
    fn bring(
        &self,
        redoing: &mut Redoing<'_>,
        at: &Locator,
        bytes: &[u8],
        found: Option<&Version>,
    ) -> io::Result<()> {
        let temp = self.free_temp(redoing, at)?;
        self.write_temp(&temp, bytes)?;
        self.keep_mode(at, None, &temp)?;
        let Redoing { journal, displaced, .. } = redoing;
        let placed =
            self.make_parents(at).and_then(|_| self.swap_in(journal, displaced, &temp, (at, found), None));
        match placed {
            // Someone has removed it at this moment.
            Err(error) if error.kind() == io::ErrorKind::NotFound && found.is_some() => {
                self.swap_in(journal, displaced, &temp, (at, None), None)
            }
            // A file or a link has taken the place of a folder above it, or a folder its own.
            Err(error) if is_changed_by_others(&error) => self.tree.remove_file(&temp),
            placed => placed,
        }
    }

    /// The temporary name by which a file is brought to its place: that of the last edit of it, so that whoever finds
    /// it there after another crash knows what it is of.
    fn free_temp(&self, redoing: &mut Redoing<'_>, at: &Locator) -> io::Result<String> {
        let Redoing { journal, outcome, .. } = redoing;
        let any = journal.temps.name(0, 0);
        let Some((seq, index)) = outcome.last_edit(at) else { return Ok(any) };
        let name = journal.temps.name(seq, index);
        let file = match self.tree.open(&name, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(name),
            opened => opened?,
        };
        if file.has_writers() == Some(true) {
            // An editor has it open: it is seen to when it is done.
            return Ok(any);
        }
        let bytes = file.read_all()?;
        let is_known = outcome.explains(at, &bytes);
        self.clear_temp(journal, &name, at, (bytes, is_known))?;
        journal.spent.retain(|spent| *spent != name);
        Ok(name)
    }

    /// Whether someone has removed a file that had grown, as far as can be told: long after the change, something was
    /// done to the names where it was.
    fn is_removed_later(&self, redoing: &Redoing<'_>, at: &Locator) -> bool {
        let mut folder = at.parent();
        while let Some(above) = folder {
            if let Ok(stat) = self.tree.stat(&self.spelled(&above)) {
                return stat.ctime_ns - redoing.outcome.time_ns >= TOUCHED_LATER_NS;
            }
            folder = above.parent();
        }
        false
    }

    /// Sees to it that a file holds what was added to it. Mostly a power cut has torn just that. But where others had
    /// written the file shortly before, it may have taken what they wrote: then the end is another.
    fn regrow(
        &self,
        redoing: &Redoing<'_>,
        at: &Locator,
        file: &dyn VfsFile,
        Piece { offset, tail }: &Piece,
    ) -> io::Result<()> {
        let stat = file.stat()?;
        // Whatever others have added behind it stays.
        let own = file.read_at(*offset, tail.len())?;
        if stat.size >= *offset && own == *tail {
            return Ok(());
        }
        let write = |at_byte: u64, bytes: &[u8]| {
            self.tree.open(&self.spelled(at), Open::Write)?.write_at(at_byte, bytes)
        };
        if stat.size >= *offset && is_torn(&own, tail, *offset) {
            return write(*offset, tail);
        }
        let content = file.read_all()?;
        let is_blank = content.last().is_none_or(|last| *last == 0);
        // Somebody who wrote it since has not meant to keep it. If in doubt, twice is better than not at all.
        let later_ns = stat.ctime_ns - redoing.outcome.time_of(at);
        if later_ns >= if is_blank { TOUCHED_LATER_NS } else { PLACED_NS } {
            return Ok(());
        }
        let start = start_of(tail, &content, redoing.outcome.is_older(at, stat.ctime_ns));
        if content[start..] == *tail {
            return Ok(());
        }
        let is_midway = start > 0 && content[start - 1] != b'\n' && tail.ends_with(b"\n");
        let added = [if is_midway { b"\n".as_slice() } else { b"" }, tail].concat();
        if start + added.len() < content.len() {
            self.tree.open(&self.spelled(at), Open::Write)?.set_len(start as u64)?;
        }
        write(start as u64, &added)
    }
}

impl Outcome {
    /// Whether a file that was last changed at a time has not been changed since its last record.
    fn is_older(&self, at: &Locator, ctime_ns: i128) -> bool {
        ctime_ns + COARSE_NS < self.time_of(at)
    }
}

/// Where in a content that lacks a tail that tail is to begin: where an earlier recovery has begun to write it, or
/// behind whatever there is but NUL bytes.
fn start_of(tail: &[u8], content: &[u8], is_older: bool) -> usize {
    let end = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if is_older {
        return end;
    }
    if content.ends_with(tail) {
        return content.len() - tail.len();
    }
    let is_start = |at: &usize| *at == 0 || content[at - 1] == b'\n';
    let mut starts = (content.len().saturating_sub(tail.len())..=end).filter(is_start);
    starts.find(|at| is_torn(&content[*at..], tail, *at as u64)).unwrap_or(end)
}
