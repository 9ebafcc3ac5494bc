//! How people and agents name a memory: `file:/memories/a.md`, and where that is in the store.

mod lines;

use memgrove::address::Scheme;
use memgrove::backend::HistoryQuery;
use memgrove::error::code;
use memgrove::index;
use memgrove::shapes::entities;
use memgrove::{Error, Kind, Locator, Result};

use crate::context::Context;
use crate::journals::Journals;
use crate::page::quoted;

pub(crate) use lines::Addresses;

/// The root of the files, as the Memory Tool calls it.
pub(crate) const MEMORIES: &str = "/memories";
/// The folders of a store that hold memories.
pub(crate) const FOLDERS: [&str; 6] = ["files", "records", "knowledge", "graph", "notes", "memory_stores"];

/// The place of the file with this path, which starts with `/memories` or is relative to it, or this address.
///
/// # Errors
/// `Invalid` (`INVALID_PATH`) for any other absolute path, and as [`Locator::new`].
pub(crate) fn file_at(cx: &Context, path: &str) -> Result<Locator> {
    let path = Scheme::File.bare(path);
    let inside = match path.strip_prefix(MEMORIES) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if path.starts_with('/') => {
            let message = format!("`{}` is not under {MEMORIES}", path.escape_default());
            return Err(wrong(message, "paths look like /memories/notes.md, or notes.md"));
        }
        _ if path.is_empty() => return Err(wrong("the path is empty".into(), "the root is /memories")),
        _ => path,
    };
    // The error shows the path as it was given.
    let given = |text: &str| text.replace(&format!("`{inside}`"), &format!("`{path}`"));
    let inside = Locator::new(inside).map_err(|error| in_memories(cx, error.reworded(given)))?;
    cx.files().child(inside.key()).map_err(|error| in_memories(cx, error))
}

/// The place of the memory with this address, or of the file with this path.
///
/// # Errors
/// As [`file_at`]; `Invalid` for a kind of memory that does not exist.
pub(crate) fn memory_at(cx: &Context, address: &str) -> Result<Locator> {
    match Scheme::split(address) {
        Some((Scheme::Entity, named)) => entity_at(cx, named),
        Some((Scheme::Node, id)) => cx.reading_graph()?.locate(id),
        Some((Scheme::Connection, id)) => cx.reading_graph()?.locate_connection(id),
        Some((Scheme::Note, path)) => {
            cx.reading_notes()?.locate(&memgrove::shapes::notes::normal_path(Some(path))?)
        }
        Some((Scheme::Record, _)) => Err(wrong(
            format!("`{}` is a line of a file, not a file", address.escape_default()),
            "`record_get` reads a record, and `record_update` changes it",
        )),
        Some((Scheme::File, path)) => file_at(cx, path),
        None => match address.split_once(':') {
            Some((kind, _)) if !kind.contains(['/', '.']) => Err(wrong(
                format!("`{}` is not a kind of memory", kind.escape_default()),
                "addresses look like file:/memories/notes.md",
            )),
            _ => file_at(cx, address),
        },
    }
}

/// The place under which the history knows a memory's changes: for a node or connection its own, whether or
/// not it has content, and also after it was deleted.
///
/// # Errors
/// As [`past_at`].
pub(crate) fn changes_at(cx: &Context, address: &str) -> Result<Locator> {
    match Scheme::split(address) {
        Some((Scheme::Node, id)) => cx.reading_graph()?.past_of(id),
        Some((Scheme::Connection, id)) => cx.reading_graph()?.past_of_connection(id),
        _ => past_at(cx, address),
    }
}

/// The place of a memory whose past is asked for: it may be gone by now. What is no memory of its own may
/// also be named as in the history, by its place in the store.
///
/// # Errors
/// As [`memory_at`]; `Invalid` for a record, which is no file.
pub(crate) fn past_at(cx: &Context, address: &str) -> Result<Locator> {
    let found = match memory_at(cx, address) {
        Err(error) if error.kind() == Kind::NotFound => {
            return gone_at(cx, address)?.ok_or(error);
        }
        found => found?,
    };
    let named = address.contains(':') || address.starts_with('/') || cx.files().is_root();
    if !named
        && let Ok(place) = Locator::new(address)
        && FOLDERS.contains(&place.parts().next().unwrap_or_default())
        && !was_ever(cx, &found)?
        && was_ever(cx, &place)?
    {
        return Ok(place);
    }
    Ok(found)
}

/// Whether something is at a place, or was.
pub(crate) fn was_ever(cx: &Context, at: &Locator) -> Result<bool> {
    let journals = Journals::reading(cx)?;
    let (journal, inside) = journals.of_place(at);
    let query = HistoryQuery { at: Some(inside.clone()), before: None, limit: 1 };
    Ok(journal.memory.store().exists(&inside)? || !journal.memory.history(&query)?.is_empty())
}

/// The file of an entity, a node or a connection that was deleted, as the history knows it.
fn gone_at(cx: &Context, address: &str) -> Result<Option<Locator>> {
    let (folder, stem) = match Scheme::split(address) {
        Some((Scheme::Entity, named)) => {
            let Some((folder, name)) = named.split_once('/') else { return Ok(None) };
            (format!("knowledge/entities/{folder}"), entities::file_name(name))
        }
        Some((Scheme::Node, id)) => ("graph/_content/nodes".to_owned(), id.to_owned()),
        Some((Scheme::Connection, id)) => ("graph/_content/connections".to_owned(), id.to_owned()),
        _ => return Ok(None),
    };
    let folder = Locator::new(folder)?;
    let fits = |at: &Locator| {
        at.parent().as_ref() == Some(&folder)
            && at.name().strip_prefix(&stem).is_some_and(|end| end.starts_with('.'))
    };
    let query = HistoryQuery { at: Some(folder.clone()), ..HistoryQuery::default() };
    let past = cx.reading()?.history(&query)?;
    let mut places = past.iter().flat_map(|past| &past.edits).map(|edit| &edit.at).filter(|at| fits(at));
    // Its content says more than the file that describes it.
    let first = places.next();
    let content = first.into_iter().chain(places).find(|at| !at.name().ends_with(".meta.json"));
    Ok(content.or(first).cloned())
}

/// How hints begin that point to the list of one shape.
const LISTS: [&str; 6] =
    ["file view", "note list", "record list", "entity search", "node list", "connection list"];

/// The error for a name that leads nowhere, for verbs that take any address: since any shape may be meant,
/// the hint must not point to the list of one. A hint that names something nearer stays.
pub(crate) fn by_words(error: Error) -> Error {
    let lists = |hint: &str| LISTS.iter().any(|list| hint.starts_with(&format!("`memgrove {list}`")));
    match error.kind() == Kind::NotFound && error.hint_text().is_none_or(lists) {
        true => error.hint("`memgrove recall` finds addresses by words"),
        false => error,
    }
}

/// The error for an address where nothing is; if something was, the hint points to its history.
pub(crate) fn gone(cx: &Context, address: &str, at: &Locator) -> Error {
    let error = Error::new(Kind::NotFound, format!("`{address}` does not exist"))
        .code(Scheme::split(address).map_or(code::FILE_NOT_FOUND, |(kind, _)| kind.missing()));
    match was_ever(cx, at) {
        Ok(true) => error.hint(format!("`memgrove history {}` shows what became of it", quoted(address))),
        _ => error,
    }
}

/// Returns an entity's, node's or connection's address as given; for others, the address of their place.
pub(crate) fn called(cx: &Context, given: &str, at: &Locator) -> String {
    match Scheme::split(given) {
        Some((Scheme::Entity | Scheme::Node | Scheme::Connection, _)) => given.to_owned(),
        _ => address_of(cx, at),
    }
}

/// The folder of the type and the name that an address of an entity gives.
pub(crate) fn entity_named(named: &str) -> Result<(&str, &str)> {
    named.split_once('/').ok_or_else(|| {
        wrong(
            format!("`entity:{}` names no type", named.escape_debug()),
            "addresses look like entity:person/Alice",
        )
    })
}

/// The file of an entity that is named by its type and name.
fn entity_at(cx: &Context, named: &str) -> Result<Locator> {
    let (folder, name) = entity_named(named)?;
    cx.reading_knowledge()?.locate(folder, name)?.ok_or_else(|| {
        Error::new(
            Kind::NotFound,
            format!("there is no entity `{}` of the type `{}`", name.escape_debug(), folder.escape_debug()),
        )
        .code(code::ENTITY_NOT_FOUND)
        .hint("`memgrove entity search` finds entities by words")
    })
}

/// The path of a file in the words of its users.
pub(crate) fn path_of(cx: &Context, at: &Locator) -> String {
    match at.relative_to(&cx.files()) {
        Some("") => MEMORIES.to_owned(),
        Some(inside) => format!("{MEMORIES}/{inside}"),
        None => at.key().to_owned(),
    }
}

/// The address of a memory.
pub(crate) fn address_of(cx: &Context, at: &Locator) -> String {
    let note = || cx.reading_notes().ok().and_then(|notes| notes.path_of(at));
    match at.is_within(&cx.files()) {
        true => Scheme::File.address(path_of(cx, at)),
        false => note().map_or_else(|| at.key().to_owned(), |path| Scheme::Note.address(path)),
    }
}

/// Whether a file holds memories that can be searched: not derived files, nor settings.
pub(crate) fn holds_memories(cx: &Context, at: &Locator) -> bool {
    at.is_within(&cx.files()) || index::is_searched(at.key())
}

/// Files derived from the memories, which come back if they are deleted.
const DERIVED: &[&str] =
    &["knowledge/indexes/", "knowledge/relations/", "records/index.json", "graph/_system/"];

/// Whether a place holds a memory: names with a dot belong to the machine, and an index says nothing new.
pub(crate) fn is_memory(at: &Locator) -> bool {
    !at.parts().any(|part| part.starts_with('.')) && !DERIVED.iter().any(|start| at.key().starts_with(start))
}

/// The same error in the words of the files' users: a locator of the store is a path beneath
/// `/memories`.
pub(crate) fn in_memories(cx: &Context, error: Error) -> Error {
    let files = cx.files();
    let told = |text: &str| match files.is_root() {
        true => text.to_owned(),
        false => text
            .replace(&format!("`{files}/"), &format!("`{MEMORIES}/"))
            .replace(&format!("`{files}`"), &format!("`{MEMORIES}`"))
            .replace(&format!("restore {files}/"), &format!("restore file:{MEMORIES}/"))
            .replace(&format!("diff {files}/"), &format!("diff file:{MEMORIES}/")),
    };
    error.reworded(told)
}

fn wrong(message: String, hint: &str) -> Error {
    Error::new(Kind::Invalid, message).code(code::INVALID_PATH).hint(hint)
}
