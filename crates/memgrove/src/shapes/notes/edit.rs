//! Changing the text of a note in place, with its metadata kept true.

use std::sync::atomic::Ordering;

use super::page::Page;
use super::paths::normal_path;
use super::{Guarded, Notes};
use crate::backend::Note;
use crate::error::Result;
use crate::memory::Done;

impl Notes {
    /// Replaces the text of a note with what `edit` makes of it, and updates its size and date.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if the note is not at the version that was expected; else as `edit` says.
    pub fn edit(
        &self,
        note: Note,
        path: &str,
        edit: &dyn Fn(&str) -> Result<String>,
        guarded: &Guarded,
    ) -> Result<Done<()>> {
        let path = normal_path(Some(path))?;
        let done = self.change(note, |draft, _| {
            draft.check(&path, guarded.expect.as_ref())?;
            match draft.page(&path)?.map(Page::render) {
                Some(text) => draft.put(&path, Page::parse(&edit(&text)?)),
                None => Err(self.missing(&path)?),
            }
        })?;
        self.moved.store(true, Ordering::Relaxed);
        Ok(done)
    }
}
