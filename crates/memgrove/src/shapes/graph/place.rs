//! Where the graph's files are, and what their names mean.

use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

/// The ending of the file that holds the entry of a node or connection.
pub const META: &str = ".meta.json";
/// All entries of the graph, for any reader.
pub(super) const REGISTRY: &str = "registry.json";
/// The entries that are newer than the registry, one line for each.
pub(super) const TAIL: &str = "registry.tail.jsonl";
/// A tail that is being folded into the registry.
pub(super) const FOLDING: &str = "registry.folding.jsonl";
/// Lines of a tail that could not be read.
pub(super) const UNREAD: &str = "registry.unread.jsonl";
/// The highest number given to an id of each prefix.
pub(super) const NUMBERS: &str = "numbers.json";
/// What the graph may contain.
pub(super) const ONTOLOGY: &str = "ontology.yaml";

/// Formats with a name of their own, and the extension of their files.
const FORMATS: &[(&str, &str)] = &[
    ("markdown", "md"),
    ("text", "txt"),
    ("binary", "bin"),
    ("jpeg", "jpg"),
    ("yaml", "yaml"),
    ("json", "json"),
    ("pdf", "pdf"),
];
const EXTENSION_CHARS_MAX: usize = 16;

/// The things that a graph is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Thing {
    Node,
    Connection,
}

impl Thing {
    /// Its name for people.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Thing::Node => "node",
            Thing::Connection => "connection",
        }
    }

    /// The folder of its files, relative to the graph's root.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Thing::Node => "_content/nodes",
            Thing::Connection => "_content/connections",
        }
    }

    pub(super) fn unknown(self, id: &str) -> Error {
        let code = match self {
            Thing::Node => code::NODE_NOT_FOUND,
            Thing::Connection => code::CONNECTION_NOT_FOUND,
        };
        Error::new(Kind::NotFound, format!("there is no {} `{}`", self.noun(), id.escape_debug())).code(code)
    }
}

/// The places of the graph's files.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) root: Locator,
}

impl Layout {
    /// A file of the graph's own.
    pub(super) fn system(&self, name: &str) -> Result<Locator> {
        self.root.child(format!("_system/{name}"))
    }

    /// The folder of the graph's own files.
    pub(super) fn system_folder(&self) -> Result<Locator> {
        self.root.child("_system")
    }

    /// The folder with the entries and contents of things of a kind.
    pub(super) fn folder(&self, thing: Thing) -> Result<Locator> {
        self.root.child(thing.folder())
    }

    /// The file with the entry of a node or connection.
    pub(super) fn meta(&self, thing: Thing, id: &str) -> Result<Locator> {
        self.root.child(format!("{}/{id}{META}", thing.folder()))
    }

    /// Returns the node or connection whose entry a file holds.
    pub(super) fn said_at<'a>(&self, at: &'a Locator) -> Option<(Thing, &'a str)> {
        let inside = at.relative_to(&self.root)?;
        [Thing::Node, Thing::Connection].into_iter().find_map(|thing| {
            let id = inside.strip_prefix(thing.folder())?.strip_prefix('/')?.strip_suffix(META)?;
            super::id::check(id).is_ok().then_some((thing, id))
        })
    }

    /// Returns the node or connection whose content a file holds, by its name.
    pub(super) fn held_by<'a>(&self, at: &'a Locator) -> Option<(Thing, &'a str)> {
        let inside = at.relative_to(&self.root)?;
        [Thing::Node, Thing::Connection].into_iter().find_map(|thing| {
            let name = inside.strip_prefix(thing.folder())?.strip_prefix('/')?;
            let (id, rest) = split_name(name);
            (rest != META && super::id::check(id).is_ok()).then_some((thing, id))
        })
    }

    /// Whether a file can be rebuilt from others.
    pub(super) fn is_derived(&self, at: &Locator) -> bool {
        let own = at.relative_to(&self.root).and_then(|inside| inside.strip_prefix("_system/"));
        own.is_some_and(|name| name == NUMBERS || name.starts_with("registry."))
    }

    /// Returns the file of a content, as an entry names it. It must be beneath `_content`, so that a false
    /// entry cannot lead anywhere else.
    pub(super) fn content(&self, path: &str) -> Result<Locator> {
        let contents = self.root.child("_content")?;
        let at = self.root.child(path)?;
        match at.is_within(&contents) && at != contents && !at.name().ends_with(META) {
            true => Ok(at),
            false => Err(Error::new(
                Kind::Corrupt,
                format!("`{}` is not a place for content", path.escape_debug()),
            )
            .code(code::INVALID_PATH)
            .hint("content must be under `_content`: correct `storage.path` of the entry")),
        }
    }
}

/// Returns the path of a content, relative to the graph's root.
pub(super) fn content_key(thing: Thing, id: &str, format: &str) -> Result<String> {
    Ok(format!("{}/{id}.{}", thing.folder(), extension(format)?))
}

/// Returns the extension of a format: its own, or else the format's name.
///
/// # Errors
/// `Invalid` if the name cannot be an extension.
pub fn extension(format: &str) -> Result<String> {
    let lower = format.to_ascii_lowercase();
    if let Some((_, extension)) = FORMATS.iter().find(|(name, _)| *name == lower) {
        return Ok((*extension).to_owned());
    }
    let fits = !lower.is_empty()
        && lower.len() <= EXTENSION_CHARS_MAX
        && lower.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match fits {
        true => Ok(lower),
        false => Err(Error::new(Kind::Invalid, format!("`{}` is not a format", format.escape_debug()))
            .hint("use markdown, json, text, binary, or an extension such as pdf or png")),
    }
}

/// Returns the format of a file by its extension; `None` without one.
pub fn format_of(name: &str) -> Option<String> {
    let (_, given) = name.rsplit_once('.')?;
    let lower = given.to_ascii_lowercase();
    let known = FORMATS.iter().find(|(_, extension)| *extension == lower).map(|(name, _)| (*name).to_owned());
    known.or_else(|| extension(&lower).ok())
}

/// Splits a file's name into the id and the rest: `mem_proj_001` and `.md`.
pub(super) fn split_name(name: &str) -> (&str, &str) {
    let end = name.find('.').unwrap_or(name.len());
    name.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_extensions() {
        let extensions = ["markdown", "PDF", "png", "text", "h264"].map(|format| extension(format).ok());
        assert_eq!(extensions, ["md", "pdf", "png", "txt", "h264"].map(|text| Some(text.to_owned())));
        for bad in ["", "a/b", "..", "meta.json", "an extension without end", "é"] {
            assert_eq!(extension(bad).map_err(|error| error.kind()), Err(Kind::Invalid), "{bad}");
        }
        assert_eq!(format_of("a.b.MD").as_deref(), Some("markdown"));
        assert_eq!(format_of("plan.png").as_deref(), Some("png"));
        assert_eq!((format_of("plan"), format_of("plan.")), (None, None));
    }

    #[test]
    fn content_lies_beneath_content() {
        let layout = Layout { root: Locator::new("graph").expect("a key") };
        assert!(layout.content("_content/nodes/mem_a_001.md").is_ok());
        for bad in ["_system/registry.json", "../files/a", "_content", "_content/nodes/x.meta.json", "a.md"] {
            assert!(layout.content(bad).is_err(), "{bad}");
        }
    }
}
