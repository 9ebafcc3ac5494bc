//! A folder that is used in place as `/memories`.

use std::path::Path;
use std::sync::Arc;

use memgrove::clock::SystemClock;
use memgrove::{Backend, Error, Kind, Result};

use super::{Context, FILES, Shared, Target, located};
use crate::config::{How, Place, resolved};
use crate::opening;

impl Context {
    /// The same asker over a folder used as `/memories`, made if it is missing. Only memories are written
    /// into it: the journal and the lock lie in the state folder. The `files` of a store are opened through
    /// the store, which has a journal already.
    pub(crate) fn in_folder(&self, folder: &Path) -> Result<Self> {
        if let Some(Place { root, how: How::Flag }) = self.place() {
            let both = format!("both a folder and the store `{}` are given", root.display());
            return Err(Error::new(Kind::Invalid, both)
                .hint("leave out `--memories` or `--store` (MEMORY_FILE_PATH names a folder too)"));
        }
        let environment = self.shared.environment.clone();
        let given = environment.absolute(folder)?;
        if let Some(store) = environment.store_around(&given) {
            if resolved(&given) == store.join(FILES) {
                return self.over_store(&store, How::Other("named by --memories"));
            }
            let (given, store) = (given.display(), store.display());
            let inside =
                format!("`{given}` is, or lies in, the store `{store}`, which has a journal of its own");
            return Err(Error::new(Kind::Invalid, inside)
                .hint(format!("use `--store {store}` instead of `--memories`, or another folder")));
        }
        // Checked first, so that no folder is made that could not be opened.
        located(&given)?;
        let made = memgrove::vfs::RealFs::create_root(&given).and_then(|_| given.canonicalize());
        let folder = made.map_err(|error| Error::from_io(error, given.display()))?;
        // Fails at the start, rather than at a later request, if there is no place for the history.
        opening::state_in_place(&environment, &folder)?;
        let backend = self.shared.backend.clone();
        let shared = Arc::new(Shared::new(environment, Target::Folder(folder), backend));
        Ok(Context { shared, ..self.clone() })
    }

    /// As [`Context::in_folder`], for a folder that must exist.
    pub(crate) fn in_made_folder(&self, folder: &Path) -> Result<Self> {
        let given = self.shared.environment.absolute(folder)?;
        match given.is_dir() {
            true => self.in_folder(&given),
            false => Err(Error::new(Kind::NotFound, format!("there is no folder `{}`", given.display()))),
        }
    }

    /// A folder that itself is `/memories`: its journal lies elsewhere.
    pub(super) fn open_folder(&self, folder: &Path) -> Result<Arc<dyn Backend>> {
        opening::in_place(&self.shared.environment, folder, self.backend_flag(), Arc::new(SystemClock))
    }
}
