//! The folder on this machine for what belongs to a store and must not lie in it: its journal and its lock.
//!
//! Its name holds the store's `id` and a hash of the place where the store lies, and a file in it tells that
//! place. So a store made anew in the place of another begins without history, a moved store takes its
//! history along, and each of two copies on one machine has its own.

use std::path::{Path, PathBuf};

use memgrove::backend::Version;
use memgrove::vfs::{Open, RealFs, Rename, Vfs};
use memgrove::{Error, Result};

use crate::settings::{Settings, read_small};

/// The file that tells where the store lies.
const PLACE: &str = "place";
/// How many digits of a place's hash are part of the name.
const HASH_DIGITS: usize = 12;

/// Where the state of a store is kept.
pub(super) struct State {
    base: PathBuf,
    name: String,
    /// Its name until the store is next opened, if the store was moved or an earlier version of this program
    /// named the folder.
    former: Option<String>,
    /// Where the store lies, if its id is known, or the folder that is used in place.
    place: Option<String>,
    /// Where another store with the same id lies.
    pub(super) twin: Option<String>,
}

fn named(text: &[u8]) -> String {
    Version::of(text).as_str().to_owned()
}

impl State {
    /// The state of something that one text alone identifies.
    pub(super) fn of(base: PathBuf, text: &[u8]) -> Self {
        State { base, name: named(text), former: None, place: None, twin: None }
    }

    /// The state of a folder used in place. Its file that tells the place distinguishes it from the state of
    /// a store without an id, which has the same name.
    pub(super) fn in_place(base: PathBuf, folder: &str) -> Self {
        State { place: Some(folder.to_owned()), ..State::of(base, folder.as_bytes()) }
    }

    /// Whether its file tells where the folder or the store lies.
    pub(super) fn tells_place(&self) -> bool {
        self.folder().join(PLACE).is_file()
    }

    /// Finds the state of a store in the folder `base` of this machine.
    pub(super) fn find(base: PathBuf, id: Option<&str>, root: &str) -> Self {
        let place = Path::new(root).canonicalize().ok();
        let place = place.as_deref().and_then(Path::to_str).unwrap_or(root).to_owned();
        let is_there = |name: &String| base.join(name).is_dir();
        let by_path = [named(place.as_bytes()), named(root.as_bytes())];
        let id = id.map(spelled).unwrap_or_default();
        if id.is_empty() {
            let [name, other] = by_path;
            let former = Some(other).filter(|other| !is_there(&name) && is_there(other));
            return State { base, name, former, place: None, twin: None };
        }
        let name = format!("{id}-{}", &named(place.as_bytes())[..HASH_DIGITS]);
        let (live, gone): (Vec<_>, Vec<_>) = relatives(&base, &id)
            .into_iter()
            .filter(|(other, _)| *other != name)
            .partition(|(_, at)| holds(at, &id));
        let former = gone.into_iter().map(|(other, _)| other).next().or(by_path.into_iter().find(is_there));
        let former = former.filter(|_| !is_there(&name));
        let twin = live.into_iter().map(|(_, at)| at).next();
        State { base, name, former, place: Some(place), twin }
    }

    /// The state folder as it is named until the store is opened.
    pub(super) fn folder(&self) -> PathBuf {
        self.base.join(self.former.as_ref().unwrap_or(&self.name))
    }

    /// Renames the state folder if needed, and writes down where the store lies now.
    pub(super) fn settle(&self) -> Result<PathBuf> {
        let folder = self.base.join(&self.name);
        let failed = |error| Error::from_io(error, folder.display());
        if let Some(former) = &self.former {
            let base = RealFs::create_root(&self.base).map_err(failed)?;
            // If another process was faster, it did the same.
            let moved = base.rename(former, &self.name, Rename::NoReplace);
            moved.or_else(|error| if folder.is_dir() { Ok(()) } else { Err(error) }).map_err(failed)?;
        }
        if let Some(place) = &self.place {
            let vfs = RealFs::create_root(&folder).map_err(failed)?;
            if read_small(&folder.join(PLACE)).ok().as_deref() != Some(place.as_str()) {
                tell(&vfs, place).map_err(failed)?;
            }
        }
        Ok(folder)
    }
}

/// The states of all stores with an id, and where each lies, the last used first.
fn relatives(base: &Path, id: &str) -> Vec<(String, String)> {
    let Ok(all) = RealFs::open_root(base).and_then(|base| base.read_dir("")) else { return Vec::new() };
    let is_hash = |text: &str| text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let of_id =
        |name: &str| name.strip_prefix(id).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_hash);
    let mut found: Vec<_> = all
        .into_iter()
        .filter_map(|(name, stat)| Some((name.ok().filter(|name| of_id(name))?, stat.mtime_ns)))
        .collect();
    found.sort_by_key(|(_, changed)| std::cmp::Reverse(*changed));
    let told = |(name, _): (String, _)| Some((read_small(&base.join(&name).join(PLACE)).ok()?, name));
    found.into_iter().filter_map(told).map(|(at, name)| (name, at)).collect()
}

/// Whether the store with this id lies in a place.
fn holds(at: &str, id: &str) -> bool {
    let settings = Settings::read(Path::new(at)).ok().flatten();
    settings.and_then(|settings| settings.id).is_some_and(|found| spelled(&found) == id)
}

/// An id as part of a name.
fn spelled(id: &str) -> String {
    id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

fn tell(folder: &RealFs, place: &str) -> std::io::Result<()> {
    let new = format!("{PLACE}.{}.new", std::process::id());
    let file = folder.open(&new, Open::WriteOrCreate)?;
    file.set_len(0)?;
    file.write_at(0, place.as_bytes())?;
    file.sync_data()?;
    folder.rename(&new, PLACE, Rename::Replace)
}
