//! One store in a bucket, shared by many machines: S3, Google Cloud Storage, Azure.
//!
//! Every change is one object of a numbered log, written only if that number is free: so changes have one
//! order, each happens whole or not at all, and the log is the history. A writer who finds its number taken
//! reads the record there and tries again on top of it, unless that record is *its own*: then only the answer
//! was lost.
//!
//! Beside the log every file is a plain object under its own key, for people and other programs.
//! The record of a change is its intent: the writer puts the plain objects in place before it
//! answers, and if it dies before, any reader finds the record and finishes the work. What an
//! object holds is told by a mark beside its bytes, so a late or repeated placement is recognised,
//! and an object without our mark is an edit by someone else, which is taken into the log.

mod bucket;
#[cfg(feature = "object")]
mod cloud;
#[cfg(feature = "object")]
mod faults;
mod fold;
mod leaf;
mod log;
mod placing;
mod probe;
mod reading;
mod record;
mod strays;
mod unmarked;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use bucket::{Answer, Bucket, Listed, Object, Request, Versioned, When};
#[cfg(feature = "object")]
pub use cloud::Cloud;
use leaf::Leaf;
#[cfg(feature = "memory-stores")]
pub(super) use log::random_id;

use super::ledger::{Draft, Entry, Ledger, Node};
use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, Edit, FileKind, Finding,
    HistoryQuery, Info, Keep, Moment, Past, Pruned, Pruning, Version, cannot_forget, cannot_prune,
    not_derivable, not_found,
};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Kind, Result, code};
use crate::locator::{Locator, collision_key};
#[cfg(feature = "object")]
use crate::registry::{OpenRequest, Registration};

/// The protocol name.
pub const PROTOCOL: &str = "object";
/// The folder of a bucket that is the backend's own.
pub(super) const OWN: &str = ".memgrove";
/// The longest key that every provider takes.
const KEY_BYTES_MAX: usize = 1024;

const CAPABILITIES: Capabilities =
    Capabilities { concurrent_writers: true, conflict_files: false, encryption: false, sync: false };

#[cfg(feature = "object")]
pub(crate) const REGISTRATION: Registration = Registration {
    open: open_request,
    capabilities: CAPABILITIES,
    about: "a bucket that many machines share: s3://bucket/prefix, gs://…, az://…",
};

/// A store in a bucket.
pub struct ObjectStore {
    bucket: Arc<dyn Bucket>,
    /// Put in front of every key; empty, or ends in `/`.
    prefix: String,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Writers of this process queue here, so that they compete only with other machines.
    turn: Mutex<()>,
    /// Whether the bucket honours conditions, once it is known.
    honours: OnceLock<bool>,
    unclaimed: usize,
}

struct State {
    ledger: Ledger<Arc<Leaf>>,
    /// The last record that was taken in.
    seq: u64,
    /// When it was made: times never go back.
    time: Timestamp,
    /// The headers since the last whole fold.
    headers: Vec<String>,
    /// Bodies of recent records.
    bodies: HashMap<u64, Arc<[u8]>>,
    bodies_len: usize,
    /// The plain object at a place as we last saw it: its tag and its mark.
    placed: BTreeMap<Locator, Seen>,
}

/// A plain object as it was seen.
#[derive(Clone, Debug)]
struct Seen {
    tag: String,
    mark: Option<String>,
    size: u64,
    /// Whether it was taken into the log as it was, and so lacks our mark.
    adopted: bool,
}

#[cfg(feature = "object")]
fn open_request(request: &OpenRequest) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(open(request)?))
}

/// Opens the store in the bucket that a request names.
///
/// # Errors
/// As [`Cloud::connect`] and [`ObjectStore::open`].
#[cfg(feature = "object")]
pub fn open(request: &OpenRequest) -> Result<ObjectStore> {
    let (cloud, prefix) = Cloud::connect(&request.location, &request.settings)?;
    ObjectStore::open(Arc::new(cloud), &prefix, Arc::clone(&request.clock))
}

impl ObjectStore {
    /// Opens the store beneath a prefix of a bucket, and learns its log.
    ///
    /// # Errors
    /// `Busy` or `Denied` as the bucket says; `Corrupt` for a log that cannot be understood; `Invalid` for
    /// a prefix within the log of a store.
    pub fn open(bucket: Arc<dyn Bucket>, prefix: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let prefix = prefix.trim_matches('/');
        if prefix.split('/').any(|part| collision_key(part) == OWN) {
            let why = format!("`{prefix}` in {} is the backend's own: another store's log", bucket.name());
            return Err(Error::new(Kind::Invalid, why).hint("name a place outside `.memgrove`"));
        }
        let state = State {
            ledger: Ledger::default(),
            seq: 0,
            time: Timestamp::UNIX_EPOCH,
            headers: Vec::new(),
            bodies: HashMap::new(),
            bodies_len: 0,
            placed: BTreeMap::new(),
        };
        let mut store = ObjectStore {
            bucket,
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            clock,
            state: Mutex::new(state),
            turn: Mutex::default(),
            honours: OnceLock::new(),
            unclaimed: 0,
        };
        store.learn()?;
        if store.has_no_log() {
            store.unclaimed = unless_denied(store.count_strays())?;
        }
        Ok(store)
    }

    /// How many objects were there at opening and belong to no store. [`Backend::check`] or the first change
    /// takes them in: a bucket that was merely looked at is left as it is.
    pub fn unclaimed(&self) -> usize {
        self.unclaimed
    }

    fn has_no_log(&self) -> bool {
        self.state().seq == 0 && self.bucket.versioned().is_none()
    }

    /// Before the first change, takes in what other programs put there: it comes first in the history.
    fn begin(&self) -> Result<()> {
        if self.has_no_log() { unless_denied(self.adopt_strays()).map(drop) } else { Ok(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A record is taken in whole or not at all, so a panic elsewhere left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a file's plain object.
    fn key(&self, at: &Locator) -> String {
        format!("{}{}", self.prefix, at.key())
    }

    /// The key of an object of the backend's own.
    fn own(&self, name: &str) -> String {
        format!("{}{OWN}/{name}", self.prefix)
    }

    fn check_place(&self, at: &Locator) -> Result<()> {
        let refused =
            |why: String, hint: &str| Err(Error::new(Kind::Invalid, why).code(code::INVALID_PATH).hint(hint));
        // A `.memgrove` folder further down belongs to another store in the same bucket.
        if at.parts().any(|part| collision_key(part) == OWN) {
            return refused(format!("`{at}` is the backend's own"), "choose a place outside `.memgrove`");
        }
        if self.prefix.len() + at.key().len() > KEY_BYTES_MAX {
            let why = format!("`{at}` is longer, with the bucket's prefix, than {KEY_BYTES_MAX} bytes");
            return refused(why, "use fewer or shorter folders, or a shorter prefix");
        }
        self.bucket.versioned().map_or(Ok(()), |bucket| bucket.check_key(&self.key(at)))
    }

    fn file_at(&self, at: &Locator) -> Result<Option<Arc<Leaf>>> {
        match self.state().ledger.tree.get(at) {
            None => Ok(None),
            Some(Node::Folder { .. }) => Err(crate::backend::is_folder(at)),
            Some(Node::File(leaf)) => Ok(Some(leaf)),
        }
    }
}

/// The folder of a bucket that an address names, if it can be one.
pub(super) fn checked_prefix<'a>(location: &str, prefix: &'a str) -> Result<&'a str> {
    let prefix = prefix.trim_matches('/');
    match !prefix.is_empty() && prefix.split('/').any(|folder| matches!(folder, "" | "." | "..")) {
        true => {
            let why =
                format!("`{location}` names no place in a bucket: a folder in it is empty, `.` or `..`");
            Err(Error::new(Kind::Invalid, why).hint("name every folder once, as in s3://bucket/team/space"))
        }
        false => Ok(prefix),
    }
}

/// Whoever may not list a bucket finds nothing in it.
fn unless_denied<T: Default>(found: Result<T>) -> Result<T> {
    found.or_else(|error| if error.kind() == Kind::Denied { Ok(T::default()) } else { Err(error) })
}

fn describe(at: &Locator, node: &Node<Arc<Leaf>>) -> Info {
    let locator = at.clone();
    match node {
        Node::Folder { mtime } => {
            Info { locator, kind: FileKind::Folder, size: 0, mtime: *mtime, stamp: 0, version: None }
        }
        Node::File(leaf) => Info {
            locator,
            kind: FileKind::File,
            size: leaf.len,
            mtime: leaf.mtime,
            stamp: leaf.stamp(),
            version: leaf.version.get().cloned(),
        },
    }
}

impl Backend for ObjectStore {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::Etag
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        let bytes = self.read_current(at)?.ok_or_else(|| not_found(at))?;
        let version = Version::of(&bytes);
        Ok(Content { bytes, version })
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        self.look(std::slice::from_ref(at))?;
        let node = self.state().ledger.tree.get(at).ok_or_else(|| not_found(at))?;
        if let Node::File(leaf) = &node
            && leaf.version.get().is_none()
        {
            let version = Version::of(&self.assemble(at, leaf)?);
            let _ = leaf.version.set(version);
        }
        Ok(describe(at, &node))
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        match self.bucket.versioned() {
            Some(bucket) => drop(self.reconcile(bucket)?),
            None => self.sync()?,
        }
        let state = self.state();
        let listed = state.ledger.list(under, depth);
        Ok(listed.into_iter().map(|Entry { at, node }| describe(at, node)).collect())
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.check_place(at)?;
        self.sync()?;
        self.begin()?;
        let is_new = {
            let state = self.state();
            Draft::new(&state.ledger.tree, state.time, &|at, leaf| self.version_of(at, leaf)).mkdir(at)?
        };
        if is_new { self.commit_mkdir(at) } else { Ok(()) }
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        for edit in &change.edits {
            self.check_place(edit.at())?;
            match (edit, self.bucket.versioned()) {
                (Edit::Rename { to, .. }, _) => self.check_place(to)?,
                (Edit::Write { at, bytes, .. } | Edit::Append { at, bytes, .. }, Some(bucket)) => {
                    bucket.check_bytes(&self.key(at), bytes)?;
                }
                _ => {}
            }
        }
        if change.note.derived {
            change.check_derived()?;
            for edit in change.edits.iter().filter(|edit| matches!(edit, Edit::Delete { .. })) {
                if self.info(edit.at()).is_ok_and(|info| info.is_dir()) {
                    return Err(not_derivable(edit.at()));
                }
            }
        }
        self.check_conditions()?;
        self.begin()?;
        self.commit(change)
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.sync()?;
        Ok(self.state().ledger.replay(key))
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.sync()?;
        self.state().ledger.history(query)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.sync()?;
        let leaf = self.state().ledger.past_file(at, moment)?;
        leaf.map(|leaf| self.logged(&leaf)).transpose()
    }

    fn redact(&self, at: &Locator, _moment: &Moment) -> Result<()> {
        Err(cannot_forget(at))
    }

    fn redact_holding(&self, under: &Locator, _holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        Err(cannot_forget(under))
    }

    fn prune(&self, _keep: Keep, _how: Pruning) -> Result<Pruned> {
        Err(cannot_prune())
    }

    fn check(&self) -> Result<Vec<Finding>> {
        self.sync()?;
        self.examine()
    }
}
