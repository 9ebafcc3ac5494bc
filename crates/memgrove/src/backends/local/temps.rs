//! What temporary files are called. Each name holds the id of the journal that it belongs to: a tree that is
//! used with two state folders has two journals, which number their records alike, and neither may take the
//! other's file, or a person's, for its own.

use std::io;

use crate::backend::random_id;
use crate::vfs::{Open, Vfs, VfsFile};

/// How the names of temporary files begin.
pub const PREFIX: &str = ".mtmp-";
/// Where the id lies.
const ID: &str = ".journal/id";
const ID_CHARS: usize = 16;

/// The names of the temporary files of one journal.
pub(super) struct Temps {
    id: String,
}

impl Temps {
    /// Those of the journal that is there; `None` if it has no id yet.
    pub(super) fn read(state: &dyn Vfs) -> io::Result<Option<Self>> {
        match state.open(ID, Open::Read) {
            Ok(file) => Temps::of(&*file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Temps::read`], but gives a journal without an id a new one; durable, except for the file's name.
    pub(super) fn read_or_make(state: &dyn Vfs) -> io::Result<Self> {
        let file = state.open(ID, Open::WriteOrCreate)?;
        let temps = match Temps::of(&*file)? {
            Some(temps) => temps,
            None => {
                let id = random_id()[..ID_CHARS].to_owned();
                file.set_len(0)?;
                file.write_at(0, id.as_bytes())?;
                Temps { id }
            }
        };
        // Synced even if it was there: whoever made it may have died before syncing it.
        file.sync_data()?;
        Ok(temps)
    }

    fn of(file: &dyn VfsFile) -> io::Result<Option<Self>> {
        let bytes = file.read_at(0, ID_CHARS + 1)?;
        let whole = bytes.len() == ID_CHARS && bytes.iter().all(u8::is_ascii_hexdigit);
        Ok(String::from_utf8(bytes).ok().filter(|_| whole).map(|id| Temps { id }))
    }

    /// The name of the temporary file of an edit: known to every process, so that any can place it,
    /// and at the root of the tree, where it is found without a search.
    pub(super) fn name(&self, seq: u64, index: usize) -> String {
        format!("{PREFIX}{}-{seq}-{index}", self.id)
    }

    /// The numbers of the record and of the edit that a name tells of, if it is one of these.
    pub(super) fn numbers(&self, name: &str) -> Option<(u64, usize)> {
        let rest = name.strip_prefix(PREFIX)?.strip_prefix(&self.id)?.strip_prefix('-')?;
        let (seq, index) = rest.split_once('-')?;
        Some((seq.parse().ok()?, index.parse().ok()?))
    }
}
