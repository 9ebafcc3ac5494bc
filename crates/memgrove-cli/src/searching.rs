//! Where the index of a store lies on this machine, and what it covers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memgrove::backend::Version;
use memgrove::index::{Options, Place, Source, Watch};
use memgrove::registry::DEFAULT_PROTOCOL;
use memgrove::vfs::{RealFs, Vfs};
use memgrove::{Error, Index, Memory, Result};

use crate::context::{Context, Input, located};
use crate::mounts::RECORDS;
use crate::settings::Settings;

/// The index over a store and what it mounts.
pub(crate) fn index(cx: &Context, memory: Memory) -> Result<Arc<Index>> {
    let clock = Arc::clone(memory.clock());
    let mut sources = vec![Source { under: String::new(), store: memory.store().clone() }];
    let records = cx.reading_records()?;
    if records.root().is_root() {
        sources.push(Source { under: RECORDS.to_owned(), store: records.memory().store().clone() });
    }
    let place = match folder(cx)? {
        Some(folder) => {
            let location = located(&folder)?;
            let opener = move || -> Result<Arc<dyn Vfs>> {
                let opened = RealFs::create_root(&folder);
                Ok(Arc::new(opened.map_err(|error| {
                    Error::from_io(error, folder.display())
                        .hint("check the owner and the mode of the cache's folder; the memories are safe")
                })?))
            };
            Place::Folder(Arc::new(opener), location)
        }
        // Without a home, the index lasts only as long as the process.
        None => Place::Ram,
    };
    let watches = watches(cx, sources.len())?;
    let index = Index::new(place, sources, clock, options(cx)?)?;
    Ok(match cx.input {
        // A command asks once, while a server keeps its index.
        Input::Terminal => Arc::new(index),
        Input::None => index.staying(watches),
    })
}

/// Watches the store's files, if they lie on this machine and there is nothing mounted beside them.
fn watches(cx: &Context, sources: usize) -> Result<Vec<Arc<dyn Watch>>> {
    let mut found: Vec<Arc<dyn Watch>> = Vec::new();
    #[cfg(target_os = "linux")]
    if let Some(place) = cx.place().filter(|_| sources == 1 && cx.input == Input::None)
        && cx.selected(place, &[])?.protocol == DEFAULT_PROTOCOL
        && let Ok(root) = place.root.canonicalize()
    {
        found.extend(crate::watching::Folders::new(&root).map(|watch| Arc::new(watch) as Arc<dyn Watch>));
    }
    Ok(found)
}

/// The folder of the index, named after the store and its location, so that a copy of a store has its own
/// index. `None` for a store that does not exist yet.
pub(crate) fn folder(cx: &Context) -> Result<Option<PathBuf>> {
    let Some(place) = cx.place() else { return Ok(None) };
    let Some(settings) = Settings::read(&place.root)? else { return Ok(None) };
    let selected = cx.selected(place, &[])?;
    let root = Path::new(&selected.location).canonicalize();
    let named = root.map_or_else(|_| selected.identity(), |root| root.display().to_string());
    let hash = Version::of(format!("{}\n{named}", selected.protocol).as_bytes());
    let id: String =
        settings.id.unwrap_or_default().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let name = format!("{id}-{}", &hash.as_str()[..12]);
    Ok(cx.environment().cache_folder().map(|cache| cache.join(name.trim_start_matches('-'))))
}

/// How the store wants to be searched: `[search]` in its settings.
fn options(cx: &Context) -> Result<Options> {
    let settings = cx.settings()?;
    let search = settings.map(|settings| settings.search).unwrap_or_default();
    let zone = cx.environment().zone.zone();
    let mut options = Options { language: search.language, zone, ..Options::default() };
    if !search.embeddings {
        options.embedder = None;
    }
    Ok(options)
}
