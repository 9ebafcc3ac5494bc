//! How people and agents name a memory: `file:/memories/a.md`, and where that is in the store.

use memgrove::error::code;
use memgrove::{Error, Kind, Locator, Result};

use crate::context::Context;

/// The root of the files, as the Memory Tool calls it.
pub(crate) const MEMORIES: &str = "/memories";

/// The place of a file that is named by a path: `/memories/…`, or relative to it.
///
/// # Errors
/// `Invalid` (`INVALID_PATH`) for any other absolute path, and as [`Locator::new`].
pub(crate) fn file_at(cx: &Context, path: &str) -> Result<Locator> {
    let inside = match path.strip_prefix(MEMORIES) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if path.starts_with('/') => {
            let message = format!("`{}` is not beneath {MEMORIES}", path.escape_default());
            return Err(wrong(message, "paths look like /memories/notes.md, or notes.md"));
        }
        _ if path.is_empty() => return Err(wrong("the path is empty".into(), "the root is /memories")),
        _ => path,
    };
    let inside = Locator::new(inside).map_err(|error| in_memories(cx, error))?;
    cx.files().child(inside.key()).map_err(|error| in_memories(cx, error))
}

/// The place of a memory that is named by its address, or by its path alone.
///
/// # Errors
/// As [`file_at`]; `Invalid` for a kind of memory that does not exist.
pub(crate) fn memory_at(cx: &Context, address: &str) -> Result<Locator> {
    if let Some(path) = address.strip_prefix("file:") {
        return file_at(cx, path);
    }
    if let Some(named) = address.strip_prefix("entity:") {
        return entity_at(cx, named);
    }
    if let Some(id) = address.strip_prefix("node:") {
        return cx.reading_graph()?.locate(id);
    }
    if let Some(id) = address.strip_prefix("connection:") {
        return cx.reading_graph()?.locate_connection(id);
    }
    if let Some(path) = address.strip_prefix("note:") {
        return cx.reading_notes()?.locate(&memgrove::shapes::notes::normal_path(Some(path))?);
    }
    match address.split_once(':') {
        Some((kind, _)) if !kind.contains(['/', '.']) && !address.starts_with('/') => Err(wrong(
            format!("`{}` is not a kind of memory", kind.escape_default()),
            "addresses look like file:/memories/notes.md",
        )),
        _ => file_at(cx, address),
    }
}

/// The place by which the past of a memory is known: a node or connection has its own, also when it is
/// deleted.
///
/// # Errors
/// As [`memory_at`].
pub(crate) fn past_at(cx: &Context, address: &str) -> Result<Locator> {
    match address.split_once(':') {
        Some(("node", id)) => cx.reading_graph()?.past_of(id),
        Some(("connection", id)) => cx.reading_graph()?.past_of_connection(id),
        _ => memory_at(cx, address),
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
        true => format!("file:{}", path_of(cx, at)),
        false => note().map_or_else(|| at.key().to_owned(), |path| format!("note:{path}")),
    }
}

/// What is made of the memories, and comes back if it is deleted.
const DERIVED: &[&str] =
    &["knowledge/indexes/", "knowledge/relations/", "records/index.json", "graph/_system/"];

/// Whether a place holds a memory: what begins with a dot is the machine's, and an index says nothing new.
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
            .replace(&format!("`{files}`"), &format!("`{MEMORIES}`")),
    };
    let mut made = Error::new(error.kind(), told(error.message()));
    if let Some(hint) = error.hint_text() {
        made = made.hint(told(hint));
    }
    if let Some(code) = error.code_name() {
        made = made.code(code);
    }
    made.source(error)
}

fn wrong(message: String, hint: &str) -> Error {
    Error::new(Kind::Invalid, message).code(code::INVALID_PATH).hint(hint)
}
