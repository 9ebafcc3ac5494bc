//! How the contents of nodes and connections are edited, by the six operations.

use serde::{Deserialize, Serialize};

use super::{Desk, Draft, File};
use crate::backend::Bytes;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::shapes::files;
use crate::shapes::graph::entry::{Entry, Storage, content_of};
use crate::shapes::graph::place::{Thing, content_key};
use crate::store;

/// The largest content.
const CONTENT_BYTES_MAX: usize = 256 << 20;

/// A change of a content. To view a content, read its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentEdit {
    /// Gives a content to what has none.
    Create {
        /// The content.
        content: String,
        /// Its kind.
        #[serde(default)]
        format: Option<String>,
    },
    /// Makes the content exactly these bytes.
    #[serde(skip)]
    Write {
        /// The content.
        content: Bytes,
        /// Its kind; `None` keeps the present one.
        format: Option<String>,
    },
    /// Replaces a text that is in it exactly once.
    #[serde(rename = "str_replace", alias = "replace")]
    Replace {
        /// The text that is there.
        old_str: String,
        /// The text to be there instead.
        new_str: String,
    },
    /// Inserts text before a line.
    Insert {
        /// The line, from 1.
        insert_line: usize,
        /// The text.
        new_str: String,
    },
    /// Removes the content; the node stays.
    Delete,
    /// Changes the kind of the content, and renames its file accordingly.
    Rename {
        /// The kind.
        format: String,
    },
}

impl ContentEdit {
    /// The operation's name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            ContentEdit::Create { .. } => "create",
            ContentEdit::Write { .. } => "write",
            ContentEdit::Replace { .. } => "str_replace",
            ContentEdit::Insert { .. } => "insert",
            ContentEdit::Delete => "delete",
            ContentEdit::Rename { .. } => "rename",
        }
    }
}

impl Draft<'_> {
    /// Changes the content of a node or connection, and returns its entry.
    pub(in crate::shapes::graph) fn edit(
        &mut self,
        thing: Thing,
        id: &str,
        edit: ContentEdit,
        expect: Option<&str>,
    ) -> Result<Entry> {
        self.mind(thing, id, expect)?;
        let entry = self.entry(thing, id)?;
        let old = match thing {
            Thing::Node => entry.node()?.storage,
            Thing::Connection => entry.connection()?.storage,
        };
        let own = self.own(thing, id, old.as_ref())?.map(|old| old.path.clone());
        let own = own.as_deref();
        let new = match edit {
            ContentEdit::Create { content, format } => {
                if let Some(old) = &old
                    && self.content(old)?.is_some()
                {
                    return Err(Error::new(
                        Kind::Exists,
                        format!("the {} `{id}` has content already", thing.noun()),
                    )
                    .code(code::FILE_EXISTS)
                    .hint("replace text in it, or write all of it"));
                }
                Some(self.store_content(thing, id, format.as_deref(), content.into(), own)?)
            }
            ContentEdit::Write { content, format } => {
                Some(self.rewrite(thing, id, old.as_ref(), format, content)?)
            }
            ContentEdit::Replace { old_str, new_str } => {
                let (old, text) = self.text(thing, id, old)?;
                let spliced =
                    files::replaced(&self.desk.layout.content(&old.path)?, &text, &old_str, &new_str)?;
                Some(self.rewrite(thing, id, Some(&old), None, spliced.bytes.into())?)
            }
            ContentEdit::Insert { insert_line, new_str } => {
                let (old, text) = self.text(thing, id, old)?;
                let spliced =
                    files::inserted(&self.desk.layout.content(&old.path)?, &text, insert_line, &new_str)?;
                Some(self.rewrite(thing, id, Some(&old), None, spliced.bytes.into())?)
            }
            ContentEdit::Delete => {
                self.present(thing, id, old.as_ref())?;
                self.drop_content(thing, id, old.as_ref())?;
                None
            }
            ContentEdit::Rename { format } => {
                let old = self.present(thing, id, old.as_ref())?;
                if own == Some(content_key(thing, id, &format)?.as_str())
                    && old.format.eq_ignore_ascii_case(&format)
                {
                    return Ok(entry);
                }
                let bytes = self.content(&old)?.unwrap_or_default().to_vec();
                Some(self.rewrite(thing, id, Some(&old), Some(format), bytes.into())?)
            }
        };
        let storage = new.map(|new| serde_json::to_string(&new).expect("a storage is plain data"));
        let changed = entry.with(&[("storage", storage)]);
        self.keep(thing, id, &entry, changed)
    }

    /// Writes a content, to another file if its kind has changed.
    fn rewrite(
        &mut self,
        thing: Thing,
        id: &str,
        old: Option<&Storage>,
        format: Option<String>,
        content: Bytes,
    ) -> Result<Storage> {
        // A content that belongs to another thing is left alone; this one gets a content of its own.
        let own = self.own(thing, id, old)?.cloned();
        let format = match (&own, old) {
            (None, Some(old)) => format.or_else(|| Some(old.format.clone()).filter(|old| !old.is_empty())),
            _ => format,
        };
        match (own.as_ref(), format) {
            (Some(old), None) => {
                check_size(thing, id, &content)?;
                let at = self.desk.layout.content(&old.path)?;
                let (size, hash) = (content.len() as u64, crate::backend::Version::of(&content));
                self.put(&at, Some(content))?;
                Ok(Storage { size, hash: hash.as_str().to_owned(), ..old.clone() })
            }
            (old, format) => {
                let format = format.as_deref();
                if let (Some(old), Some(format)) = (old, format)
                    && content_key(thing, id, format)? != old.path
                {
                    self.drop_content(thing, id, Some(old))?;
                }
                self.store_content(thing, id, format, content, old.map(|old| old.path.as_str()))
            }
        }
    }

    pub(super) fn content(&mut self, storage: &Storage) -> Result<Option<&[u8]>> {
        let at = self.desk.layout.content(&storage.path)?;
        self.bytes(&at)
    }

    /// Returns the content of a node or connection, and where it is.
    pub(in crate::shapes::graph) fn held(
        &mut self,
        thing: Thing,
        id: &str,
    ) -> Result<Option<(Storage, Vec<u8>)>> {
        let Some(storage) = self.entry(thing, id)?.storage() else { return Ok(None) };
        // An entry without a valid path has no content.
        let Ok(at) = self.desk.layout.content(&storage.path) else { return Ok(None) };
        Ok(self.bytes(&at)?.map(<[u8]>::to_vec).map(|bytes| (storage, bytes)))
    }

    /// Returns where a content is, if it exists.
    fn present(&mut self, thing: Thing, id: &str, storage: Option<&Storage>) -> Result<Storage> {
        if let Some(storage) = storage
            && self.content(storage)?.is_some()
        {
            return Ok(storage.clone());
        }
        Err(Error::new(Kind::NotFound, format!("the {} `{id}` has no content", thing.noun()))
            .code(code::FILE_NOT_FOUND)
            .hint("give it one with the operation `create`"))
    }

    fn text(&mut self, thing: Thing, id: &str, storage: Option<Storage>) -> Result<(Storage, String)> {
        let storage = self.present(thing, id, storage.as_ref())?;
        let at = self.desk.layout.content(&storage.path)?;
        let bytes = self.bytes(&at)?.unwrap_or_default().to_vec();
        Ok((storage, store::text(&at, bytes)?))
    }

    /// Returns where a content is, if it belongs to this thing alone. An entry that somebody copied by
    /// hand names the content of the original, which is not its own.
    fn own<'s>(
        &mut self,
        thing: Thing,
        id: &str,
        storage: Option<&'s Storage>,
    ) -> Result<Option<&'s Storage>> {
        let Some(storage) = storage else { return Ok(None) };
        let Ok(at) = self.desk.layout.content(&storage.path) else { return Ok(None) };
        let own = match self.desk.layout.held_by(&at) {
            Some(owner) if owner == (thing, id) => true,
            Some((other, owner)) if self.is_there(other, owner)? => false,
            _ => !self.is_shared(&at, thing, id)?,
        };
        Ok(own.then_some(storage))
    }

    /// Whether another entry that is not removed names a content too.
    fn is_shared(&mut self, at: &Locator, thing: Thing, id: &str) -> Result<bool> {
        self.catalog()?;
        let Desk { layout, shelf, .. } = &self.desk;
        for (other, named, text) in
            shelf.catalog.entries().filter(|(other, named, _)| (*other, *named) != (thing, id))
        {
            let names =
                content_of(text).is_some_and(|path| layout.content(&path).is_ok_and(|place| place == *at));
            let said = layout.meta(other, named)?;
            let gone =
                self.changed.contains(&said) && self.files.get(&said).is_some_and(|file| file.now.is_none());
            if names && !gone {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes a content's file, if it exists, without reading it.
    pub(super) fn drop_content(&mut self, thing: Thing, id: &str, storage: Option<&Storage>) -> Result<()> {
        let Some(storage) = self.own(thing, id, storage)? else { return Ok(()) };
        let at = self.desk.layout.content(&storage.path)?;
        if !self.files.contains_key(&at) {
            let before = self.desk.store.info_optional(&at)?.and_then(|info| info.version);
            // No later step of this draft needs what it held.
            let now = before.is_some().then(Bytes::new);
            self.files.insert(at.clone(), File { before, now });
        }
        if self.bytes(&at)?.is_some() {
            self.put(&at, None)?;
        }
        Ok(())
    }
}

pub(super) fn check_size(thing: Thing, id: &str, content: &[u8]) -> Result<()> {
    if content.len() <= CONTENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the content of the {} `{id}` would have {} bytes, and has at most {CONTENT_BYTES_MAX}",
        thing.noun(),
        content.len()
    );
    Err(Error::new(Kind::Invalid, message).code(code::TOO_LARGE).hint("split it into several nodes"))
}
