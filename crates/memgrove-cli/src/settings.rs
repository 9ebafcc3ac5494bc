//! `memgrove.toml`: what a store says of itself. Holds only settings that are safe to obey even if someone
//! else wrote the repository.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use memgrove::backends::{anthropic, object};
use memgrove::registry::DEFAULT_PROTOCOL;
use memgrove::shapes::records::Limits;
use memgrove::vfs::RealFs;
use memgrove::{Error, Kind, Locator, Result};
use serde::Deserialize;

use crate::context::FILES;

/// The file's name, in the root of a store.
pub(crate) const FILE: &str = "memgrove.toml";
/// The file beside it that keeps out of a repository what belongs to this machine alone.
pub(crate) const GITIGNORE_FILE: &str = ".gitignore";
/// The newest format of a store that this program knows.
pub(crate) const FORMAT: u32 = 1;
/// What a store keeps out of its git repository: derived files would conflict on every merge.
const GITIGNORE: &str = "\
# What memgrove keeps for this machine alone.
.journal/
.lock
.mtmp-*
/records/.access.jsonl
/records/.backup/
# What is made of the memories, and comes back if it is deleted.
/records/index.json
/knowledge/indexes/
/knowledge/relations/
/notes/.metadata/graph.json
/notes/.metadata/index.json
";
/// Whether a place belongs to this machine alone or is derived, so that neither a repository nor a copy needs
/// it. Never true for the files that agents keep.
pub(crate) fn is_kept_out(at: &Locator) -> bool {
    if at.parts().next() == Some(FILES) {
        return false;
    }
    let mut lines = GITIGNORE.lines().filter(|line| !line.starts_with('#'));
    lines.any(|line| match line.strip_prefix('/') {
        Some(place) => Locator::new(place.trim_end_matches('/')).is_ok_and(|place| at.is_within(&place)),
        None => at.parts().any(|part| part == line.trim_end_matches('/')),
    })
}

const SETTINGS_BYTES_MAX: u64 = 64 * 1024;

/// The settings of one store.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Settings {
    /// The format of the store's folders and files.
    pub(crate) format: u32,
    /// Identifies the store, wherever its folder is moved.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// The protocol of its backend.
    #[serde(default)]
    pub(crate) backend: Option<String>,
    /// What the records may hold.
    #[serde(default)]
    pub(crate) records: RecordSettings,
    /// How large notes may be.
    #[serde(default)]
    pub(crate) notes: NoteSettings,
    /// How memories are found.
    #[serde(default)]
    pub(crate) search: SearchSettings,
    /// Folders elsewhere that are used in place.
    #[serde(default)]
    pub(crate) mounts: Mounts,
    /// Which bucket the backend `object` uses.
    #[serde(default)]
    pub(crate) object: BucketSettings,
    /// Which memory store the backend `anthropic` uses.
    #[serde(default)]
    pub(crate) anthropic: MemoryStoreSettings,
    /// Keys that this program does not know; kept as they are, and reported by `memgrove doctor`.
    #[serde(flatten)]
    pub(crate) unknown: toml::Table,
}

/// `[search]`: the language of the words, and whether meaning counts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct SearchSettings {
    /// The language whose words are stemmed; `none` stems nothing.
    pub(crate) language: String,
    /// Whether memories are also found by what they mean.
    pub(crate) embeddings: bool,
    /// What this program does not know of it, as in every section.
    #[serde(flatten)]
    unknown: toml::Table,
}

impl Default for SearchSettings {
    fn default() -> Self {
        SearchSettings { language: "english".to_owned(), embeddings: true, unknown: toml::Table::new() }
    }
}

/// `[records]`: the limits, and whether the folder's `.lock` is taken.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(try_from = "toml::Table")]
pub(crate) struct RecordSettings {
    /// The limits.
    pub(crate) limits: Limits,
    /// Whether to take the `.lock`; for a mounted folder it always is.
    pub(crate) lock: bool,
    unknown: toml::Table,
}

impl TryFrom<toml::Table> for RecordSettings {
    type Error = String;

    fn try_from(mut table: toml::Table) -> Result<Self, String> {
        let lock = match table.remove("lock") {
            None => false,
            Some(toml::Value::Boolean(lock)) => lock,
            Some(_) => return Err("`lock` of [records] is true or false".to_owned()),
        };
        let known = toml::Table::try_from(Limits::default()).map_err(|error| error.to_string())?;
        let (limits, unknown): (toml::Table, toml::Table) =
            table.into_iter().partition(|(key, _)| known.contains_key(key));
        let limits = limits.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        Ok(RecordSettings { limits, lock, unknown })
    }
}

/// `[notes]`: the size that no note should pass.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NoteSettings {
    /// In bytes.
    pub(crate) bytes_max: Option<usize>,
    #[serde(flatten)]
    unknown: toml::Table,
}

/// `[mounts]`: folders elsewhere that are used in place.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Mounts {
    /// The folder of the records.
    pub(crate) records: Option<String>,
    #[serde(flatten)]
    unknown: toml::Table,
}

/// `[object]`: which bucket. No credentials: those come from the environment alone.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BucketSettings {
    /// `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    pub(crate) location: Option<String>,
    /// The region.
    pub(crate) region: Option<String>,
    /// The service, if it is not the provider's own.
    pub(crate) endpoint: Option<String>,
    /// Whether the bucket stands in the path of an address rather than in its host.
    pub(crate) path_style: Option<bool>,
    #[serde(flatten)]
    unknown: toml::Table,
}

/// `[anthropic]`: which memory store. The key and the service come from the environment alone.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryStoreSettings {
    /// `anthropic://memstore_…`, or a folder of it.
    pub(crate) location: Option<String>,
    #[serde(flatten)]
    unknown: toml::Table,
}

impl Settings {
    /// The keys that this program does not know, with the section in front.
    pub(crate) fn unknown_keys(&self) -> Vec<String> {
        let sections = [
            ("records", &self.records.unknown),
            ("notes", &self.notes.unknown),
            ("search", &self.search.unknown),
            ("mounts", &self.mounts.unknown),
            ("object", &self.object.unknown),
            ("anthropic", &self.anthropic.unknown),
        ];
        let within = |(section, unknown): (&str, &toml::Table)| {
            unknown.keys().map(|key| format!("{section}.{key}")).collect::<Vec<_>>()
        };
        self.unknown.keys().cloned().chain(sections.into_iter().flat_map(within)).collect()
    }

    /// Reads the settings of a store; `None` where there are none.
    ///
    /// # Errors
    /// `Corrupt` for a file that cannot be understood; `Unsupported` for a newer format.
    pub(crate) fn read(root: &Path) -> Result<Option<Settings>> {
        if crate::config::is_url(root) {
            // The address itself says everything.
            let backend = match root.to_str().is_some_and(|text| text.starts_with(anthropic::SCHEME)) {
                true => anthropic::PROTOCOL,
                false => object::PROTOCOL,
            };
            let text = format!("format = {FORMAT}\nbackend = \"{backend}\"\n");
            return Ok(Some(toml::from_str(&text).expect("these are settings")));
        }
        let path = root.join(FILE);
        let text = match read_small(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(Error::new(Kind::Corrupt, format!("`{}` is not UTF-8 text", path.display()))
                    .hint("fix it by hand: it needs at least `format = 1`"));
            }
            Err(error) => return Err(Error::from_io(error, path.display())),
        };
        let settings: Settings = toml::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let hint = match line.filter(|_| !error.message().contains("missing field")) {
                Some(line) => format!("fix line {line} by hand"),
                None => "fix it by hand: it needs at least `format = 1`".to_owned(),
            };
            Error::new(Kind::Corrupt, format!("`{}`: {}", path.display(), error.message())).hint(hint)
        })?;
        if settings.format > FORMAT {
            return Err(Error::new(
                Kind::Unsupported,
                format!(
                    "the store has format {}, but this memgrove supports at most {FORMAT}",
                    settings.format
                ),
            )
            .hint("use a newer memgrove; nothing was changed"));
        }
        Ok(Some(settings))
    }
}

/// What came of making a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// There was none before.
    Now,
    /// There was one already, and it was left alone.
    Before,
}

/// Makes a store in a folder, unless one is there. Several processes may do this at once.
///
/// # Errors
/// `Denied`, `Full` or `Io` as the machine says; `Invalid` where a file is in the way.
pub(crate) fn make_store(root: &Path, id: &str, backend: Option<&str>) -> Result<Made> {
    if Settings::read(root)?.is_some() {
        return Ok(Made::Before);
    }
    RealFs::create_root(root).map_err(|error| Error::from_io(error, root.display()))?;
    let backend = backend.unwrap_or(DEFAULT_PROTOCOL);
    let text = format!("format = {FORMAT}\nid = \"{id}\"\nbackend = \"{backend}\"\n");
    let ignored = match place(root, GITIGNORE_FILE, GITIGNORE, id) {
        Ok(Made::Before) => ignore_too(&root.join(GITIGNORE_FILE)),
        placed => placed.map(drop),
    };
    ignored.and_then(|()| place(root, FILE, &text, id)).map_err(|error| Error::from_io(error, root.display()))
}

/// Adds the missing lines to a file that may be the user's own.
fn ignore_too(path: &Path) -> std::io::Result<()> {
    let there = fs::read(path)?;
    let is_said =
        |line: &str| there.split(|byte| *byte == b'\n').any(|said| said.trim_ascii() == line.as_bytes());
    let missing: Vec<&str> = GITIGNORE.lines().filter(|line| !is_said(line)).collect();
    if missing.iter().all(|line| line.starts_with('#')) {
        return Ok(());
    }
    let gap = if there.is_empty() || there.ends_with(b"\n") { "" } else { "\n" };
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(format!("{gap}{}\n", missing.join("\n")).as_bytes())?;
    file.sync_all()
}

/// Puts a complete file in place, unless one is there: readers never see half of it.
#[allow(clippy::disallowed_methods)] // These two files make the store, so they cannot go through it.
fn place(root: &Path, name: &str, text: &str, id: &str) -> std::io::Result<Made> {
    let new = root.join(format!(".{name}.{id}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| match fs::hard_link(&new, root.join(name)) {
        Ok(()) => Ok(Made::Now),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Made::Before),
        // A file system without hard links.
        Err(_) => fs::rename(&new, root.join(name)).map(|()| Made::Now),
    });
    let _ = fs::remove_file(&new);
    fs::File::open(root)?.sync_all()?;
    placed
}

/// Reads a small file of text whole.
pub(crate) fn read_small(path: &Path) -> std::io::Result<String> {
    let not_text = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    String::from_utf8(read_bytes(path)?).map_err(not_text)
}

/// Reads a small file whole, whatever is in it.
pub(crate) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(SETTINGS_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Settings>> {
        let root = tempfile::tempdir().expect("a temporary folder");
        place(root.path(), FILE, text, "x").expect("an empty folder takes a file");
        Settings::read(root.path())
    }

    #[test]
    fn a_made_store_reads_back_and_is_made_once() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let store = root.path().join("a/.memgrove");
        assert_eq!(make_store(&store, "one", None).expect("made"), Made::Now);
        assert_eq!(make_store(&store, "two", None).expect("kept"), Made::Before);
        let settings = Settings::read(&store).expect("readable").expect("there");
        assert_eq!(settings.id.as_deref(), Some("one"));
        assert_eq!(settings.backend.as_deref(), Some("device-local"));
        let mut names: Vec<_> = fs::read_dir(&store)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        assert_eq!(names, [".gitignore", "memgrove.toml"]);
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // It is somebody's own file.
    fn a_list_of_ignored_files_is_completed() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let path = root.path().join(GITIGNORE_FILE);
        let rest = GITIGNORE.replace(".lock\n", "");
        for (theirs, whole) in [
            ("target\n.lock\r\n", format!("target\n.lock\r\n{rest}")),
            ("target", format!("target\n{GITIGNORE}")),
            (GITIGNORE, GITIGNORE.to_owned()),
        ] {
            fs::write(&path, theirs).expect("a file");
            for id in ["one", "two"] {
                make_store(root.path(), id, None).expect("made");
                assert_eq!(fs::read_to_string(&path).expect("a file"), whole);
                fs::remove_file(root.path().join(FILE)).expect("settings");
            }
        }
    }

    #[test]
    fn what_is_kept_out_of_a_repository_is_no_memory() {
        let is_out = |key: &str| is_kept_out(&Locator::new(key).expect("a key"));
        let out = ["records/index.json", "knowledge/indexes/a/b.json", ".journal/1", "records/.lock"];
        assert!(out.into_iter().all(is_out));
        let memories = ["records/core.jsonl", "files/.lock", "files/records/index.json", "notes/a.md"];
        assert!(!memories.into_iter().any(is_out));
    }

    #[test]
    fn unknown_keys_are_kept_and_bad_files_refused() {
        let settings = read("format = 1\nfuture = true\n").expect("readable").expect("there");
        assert!(settings.unknown_keys() == ["future"] && settings.backend.is_none());
        for section in ["records", "notes", "search", "mounts", "object", "anthropic"] {
            let settings =
                read(&format!("format = 1\n[{section}]\nzzz = 1\n")).expect(section).expect("there");
            assert_eq!(settings.unknown_keys(), [format!("{section}.zzz")]);
        }
        let wrong = ["[notes]\nbytes_max = \"x\"", "[mounts]\nrecords = 1", "[records]\ntags_max = \"x\""];
        for wrong in wrong {
            assert_eq!(read(&format!("format = 1\n{wrong}\n")).expect_err(wrong).kind(), Kind::Corrupt);
        }
        assert_eq!(read("format = 2\n").expect_err("newer").kind(), Kind::Unsupported);
        assert_eq!(read("id = \"x\"\n").expect_err("no format").kind(), Kind::Corrupt);
        assert_eq!(read("nonsense").expect_err("no toml").kind(), Kind::Corrupt);
    }
}
