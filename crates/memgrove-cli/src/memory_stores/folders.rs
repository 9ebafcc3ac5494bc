//! Which folder a new memory store gets, and how no other gets the same one, whichever process makes it.

use memgrove::backend::{Edit, Expect, FileKind, Version};
use memgrove::locator::collision_key;
use memgrove::{Error, Kind, Locator, Result, Store};

use super::{MemoryStore, place, roots};
use crate::address::{MEMORIES, file_at};
use crate::context::Context;

/// The metadata key that chooses an existing folder.
pub(crate) const CHOSEN: &str = "memgrove_folder";
/// Where memory stores claim their folders: each by a file with the folder's path and the store's id in it.
/// As nothing can exist beneath a file, neither the folder nor any around or within it can be claimed again.
const CLAIMS: &str = "memory_stores/folders";

/// The folder for a new memory store, and the edits that claim it.
pub(crate) fn claimed(cx: &Context, store: &Store, made: &MemoryStore) -> Result<(String, Vec<Edit>)> {
    let taken = roots(cx, store)?;
    let free = |at: &Locator| !taken.iter().any(|other| at.is_within(other) || other.is_within(at));
    if let Some(chosen) = made.metadata.get(CHOSEN) {
        let at = file_at(cx, chosen)?;
        check_folder(cx, store, &at)?;
        let edits = if free(&at) { claim(cx, store, &at, &made.id)? } else { None };
        return edits.map(|edits| (chosen.clone(), edits)).ok_or_else(|| another(chosen));
    }
    if taken.contains(&cx.files()) {
        return Err(another(MEMORIES));
    }
    let words: String =
        made.name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' }).collect();
    let words: Vec<&str> = words.split_whitespace().collect();
    let slug = if words.is_empty() { "store".to_owned() } else { words.join("-") };
    let slug: String = slug.chars().take(64).collect();
    let names = std::iter::once(slug.clone()).chain((2..).map(|number| format!("{slug}-{number}")));
    for folder in names.map(|name| format!("{MEMORIES}/{name}")) {
        let at = file_at(cx, &folder)?;
        if free(&at)
            && !store.exists(&at)?
            && let Some(edits) = claim(cx, store, &at, &made.id)?
        {
            return Ok((folder, edits));
        }
    }
    Err(Error::new(Kind::Full, "no free folder name is left"))
}

/// The error for a folder that overlaps another memory store's: deleting one would empty the other.
fn another(folder: &str) -> Error {
    let message = format!("`{}` is, or holds, or is in the folder of another", folder.escape_default());
    Error::new(Kind::Exists, message).hint("choose a folder that no other memory store is in")
}

/// Refuses what is not a folder, and what could not become one.
fn check_folder(cx: &Context, store: &Store, at: &Locator) -> Result<()> {
    let files = cx.files();
    let mut parts: Vec<Locator> = [at.clone()].into_iter().chain(at.ancestors()).collect();
    parts.retain(|part| part.is_within(&files) && *part != files);
    for part in parts.iter().rev() {
        match store.info_optional(part)? {
            Some(info) if info.kind == FileKind::Folder => {}
            Some(_) => {
                return Err(Error::new(Kind::Exists, format!("`{part}` is not a folder"))
                    .hint("a memory store is a folder: choose one, or one that is not there yet"));
            }
            None => {
                let beside = store.list(&part.parent().unwrap_or_default())?;
                let twin = |other: &&Locator| collision_key(other.name()) == collision_key(part.name());
                return match beside.iter().find(twin) {
                    None => part.check_creatable(),
                    Some(twin) => Err(Error::new(Kind::Exists, format!("`{twin}` is there already"))
                        .hint("choose that, or a name that differs in more than case")),
                };
            }
        }
    }
    Ok(())
}

/// Where a folder is claimed.
fn claim_of(cx: &Context, folder: &Locator) -> Result<Locator> {
    Locator::new(CLAIMS)?.child(folder.relative_to(&cx.files()).unwrap_or_default())
}

/// The edits by which a memory store claims a folder; `None` if it is claimed.
fn claim(cx: &Context, store: &Store, folder: &Locator, id: &str) -> Result<Option<Vec<Edit>>> {
    let at = claim_of(cx, folder)?;
    let (mut edits, mut expect) = (Vec::new(), Expect::Absent);
    match store.info_optional(&at)?.map(|info| info.kind) {
        None => {}
        Some(FileKind::Folder) => {
            for info in store.list_all(&at)?.into_iter().rev() {
                let expect = match info.kind {
                    FileKind::Folder => Expect::Any,
                    _ => match given_up(store, &info.locator)? {
                        Some(version) => Expect::At(version),
                        None => return Ok(None),
                    },
                };
                edits.push(Edit::Delete { at: info.locator, expect });
            }
            edits.push(Edit::Delete { at: at.clone(), expect: Expect::Any });
        }
        Some(_) => match given_up(store, &at)? {
            Some(version) => expect = Expect::At(version),
            None => return Ok(None),
        },
    }
    edits.push(Edit::Write { at, bytes: id.to_owned().into(), expect });
    Ok(Some(edits))
}

/// The version of an abandoned claim: its memory store no longer exists.
fn given_up(store: &Store, claim: &Locator) -> Result<Option<Version>> {
    let there = store.read_bytes(claim)?;
    let owner = str::from_utf8(&there.bytes).ok().and_then(|id| place(id.trim()).ok());
    let is_there = owner.map_or(Ok(false), |owner| store.exists(&owner))?;
    Ok((!is_there).then_some(there.version))
}

/// The edit by which a memory store gives up its claim, if it has one.
pub(crate) fn unclaimed(cx: &Context, store: &Store, folder: &Locator, id: &str) -> Result<Option<Edit>> {
    let at = claim_of(cx, folder)?;
    let there = store.read_file_optional(&at)?.filter(|there| there.bytes == id.as_bytes());
    Ok(there.map(|there| Edit::Delete { at, expect: Expect::At(there.version) }))
}
