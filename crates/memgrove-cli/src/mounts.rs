//! Folders elsewhere that a store uses in place: only files of the format itself are written there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memgrove::ids::{Ids, SystemIds};
use memgrove::registry::DEFAULT_PROTOCOL;
use memgrove::shapes::records::{self, FolderLock, Records};
use memgrove::vfs::{RealFs, Vfs};
use memgrove::{Error, Kind, Locator, Memory, Result, Store};

use crate::config::How;
use crate::context::Context;
use crate::opening;
use crate::settings::RecordSettings;

/// The folder of a store that holds its records.
pub(crate) const RECORDS: &str = "records";

/// Ids for stores whose git branches are merged: another branch gives out ids too.
pub(crate) struct Branching;

impl Ids for Branching {
    fn random(&self) -> [u8; 16] {
        SystemIds.random()
    }

    fn branches(&self) -> bool {
        true
    }
}

/// The records of a store: in its own folder, or in the one that its settings mount.
pub(crate) fn records(cx: &Context, memory: Memory) -> Result<Records> {
    let settings = cx.settings()?;
    let (own, mounted) = match settings {
        Some(settings) => (settings.records, settings.mounts.records),
        None => (RecordSettings::default(), None),
    };
    let at = Locator::new(RECORDS).expect("a plain name is a locator");
    let made = match mounted {
        Some(path) => mount(cx, memory, &at, &path)?,
        None => {
            let selected = cx.place().map(|place| cx.selected(place, &[])).transpose()?;
            let local = selected.is_some_and(|selected| selected.protocol == DEFAULT_PROTOCOL);
            let folder =
                cx.place().map(|place| place.root.join(RECORDS)).filter(|path| local && path.is_dir());
            let clock = Arc::clone(memory.clock());
            let made = Records::new(memory, at, Arc::new(SystemIds))?;
            match folder.map(|folder| opened(&folder)).transpose()? {
                Some(folder) if own.lock => {
                    let lock = FolderLock::new(Arc::clone(&folder), clock, std::process::id());
                    made.with_folder(folder).with_lock(lock)
                }
                Some(folder) => made.with_folder(folder),
                None => made,
            }
        }
    };
    Ok(made.with_limits(own.limits).for_actor(cx.actor.clone()))
}

/// The folder that a store mounts for its records, as its settings name it.
fn mounted_path(cx: &Context) -> Result<Option<String>> {
    let settings = cx.settings()?;
    Ok(settings.and_then(|settings| settings.mounts.records))
}

/// The records of a store, if they are in a folder that it mounts.
pub(crate) fn mounted(cx: &Context) -> Result<Option<Arc<Records>>> {
    mounted_path(cx)?.map(|_| cx.reading_records()).transpose()
}

/// The folder that a store mounts for its records.
pub(crate) fn folder(cx: &Context) -> Result<Option<PathBuf>> {
    mounted_path(cx)?.map(|path| resolved(cx, &path)).transpose()
}

/// Whether the records are in a mounted folder: only there they have a storage of their own.
pub(crate) fn is_mounted(records: &Records) -> bool {
    records.root().is_root()
}

/// What a place of the records is called in the store: `records/tasks.jsonl`, wherever they lie.
pub(crate) fn place_of(records: &Records, at: &Locator) -> Locator {
    let inside = || Locator::new(RECORDS).ok()?.child(at.key()).ok();
    let mounted = if is_mounted(records) { inside() } else { None };
    mounted.unwrap_or_else(|| at.clone())
}

/// Opens a folder of records that lies elsewhere, with its journal in the state folder.
fn mount(cx: &Context, memory: Memory, at: &Locator, path: &str) -> Result<Records> {
    let folder = resolved(cx, path)?;
    let clock = Arc::clone(memory.clock());
    let backend = opening::in_place(cx.environment(), &folder, None, Arc::clone(&clock))?;
    let mounted = Memory::new(Store::shared(backend), Arc::clone(&clock));
    let vfs = opened(&folder)?;
    let lock = FolderLock::new(Arc::clone(&vfs), clock, std::process::id());
    Ok(Records::new(mounted, Locator::root(), Arc::new(SystemIds))?
        .with_folder(vfs)
        .with_lock(lock)
        .with_log(memory, at.child(records::LOG)?))
}

/// The folder that a mount names. A store that was merely found must not reach outside its project, because
/// someone else may have written its settings.
fn resolved(cx: &Context, path: &str) -> Result<PathBuf> {
    let environment = cx.environment();
    let given = match (path.strip_prefix("~/"), &environment.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    let place =
        cx.place().ok_or_else(|| Error::new(Kind::Invalid, "a folder used in place has no mounts"))?;
    let given = if given.is_absolute() { given } else { place.root.join(given) };
    let folder = given.canonicalize().map_err(|error| {
        Error::from_io(error, given.display()).hint("create the folder, or correct [mounts] in memgrove.toml")
    })?;
    let project = place.project().and_then(|project| project.canonicalize().ok());
    if place.how == How::Upward && !project.is_some_and(|project| folder.starts_with(project)) {
        let message = format!("the store mounts `{}`, which lies outside its project", folder.display());
        return Err(Error::new(Kind::Denied, message)
            .hint("if you trust it, name the store with --store or MEMGROVE_STORE"));
    }
    Ok(folder)
}

fn opened(folder: &Path) -> Result<Arc<dyn Vfs>> {
    let opened = RealFs::open_root(folder).map_err(|error| Error::from_io(error, folder.display()))?;
    Ok(Arc::new(opened))
}
