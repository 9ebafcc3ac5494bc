//! Bytes by version: the most recently used in memory, more of them on a disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::backend::Version;
use crate::vfs::{Open, Rename, Vfs};

/// How a kept file is named: this, and the hash of its version.
const PREFIX: &str = "v-";
/// A kept file begins with the hash of its bytes, so that damage is a miss.
const HASH_LEN: usize = 32;
/// How a file is named until it is whole.
const NEW: &str = "n-";
/// A file with such a name that is older than this was left by a process that was killed.
const NEW_AGE_MAX_NS: i128 = 3_600 * 1_000_000_000;

pub(super) struct Shelf {
    memory: Lru<Version>,
    bytes: HashMap<Version, Arc<[u8]>>,
    disk: Option<Disk>,
}

struct Disk {
    folder: Arc<dyn Vfs>,
    names: Lru<String>,
}

impl Shelf {
    pub(super) fn new(memory_bytes_max: u64, disk: Option<(Arc<dyn Vfs>, u64)>) -> Self {
        let disk = disk.map(|(folder, bytes_max)| Disk::open(folder, bytes_max));
        Shelf { memory: Lru::new(memory_bytes_max), bytes: HashMap::new(), disk }
    }

    /// Whether nothing is kept, so that asking for a version first would be of no use.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.disk.as_ref().is_none_or(|disk| disk.names.is_empty())
    }

    pub(super) fn get(&mut self, version: &Version) -> Option<Vec<u8>> {
        if let Some(bytes) = self.bytes.get(version) {
            let bytes = bytes.to_vec();
            self.memory.used(version, bytes.len() as u64);
            return Some(bytes);
        }
        let bytes = self.disk.as_mut()?.get(version)?;
        self.put_in_memory(version, &bytes);
        Some(bytes)
    }

    pub(super) fn put(&mut self, version: &Version, bytes: &[u8]) {
        self.put_in_memory(version, bytes);
        if let Some(disk) = &mut self.disk {
            disk.put(version, bytes);
        }
    }

    fn put_in_memory(&mut self, version: &Version, bytes: &[u8]) {
        self.bytes.insert(version.clone(), bytes.into());
        self.memory.used(version, bytes.len() as u64);
        while let Some(oldest) = self.memory.over() {
            self.bytes.remove(&oldest);
        }
    }
}

impl Disk {
    fn open(folder: Arc<dyn Vfs>, bytes_max: u64) -> Self {
        let mut names = Lru::new(bytes_max);
        let mut there = folder.read_dir("").unwrap_or_default();
        there.sort_by_key(|(_, stat)| stat.mtime_ns);
        // The newest file stands in for the disk's clock.
        let now = there.last().map_or(0, |(_, stat)| stat.mtime_ns);
        for (name, stat) in there {
            match name {
                Ok(name) if name.starts_with(PREFIX) => names.used(&name, stat.size),
                Ok(name) if name.starts_with(NEW) && now - stat.mtime_ns > NEW_AGE_MAX_NS => {
                    let _ = folder.remove_file(&name);
                }
                _ => {}
            }
        }
        Disk { folder, names }
    }

    fn get(&mut self, version: &Version) -> Option<Vec<u8>> {
        let name = name_of(version);
        let write = self.folder.open(&name, Open::Write);
        let file = write.or_else(|_| self.folder.open(&name, Open::Read)).ok()?;
        let mut kept = file.read_all().ok()?;
        let whole = kept.len() >= HASH_LEN && kept[..HASH_LEN] == *blake3::hash(&kept[HASH_LEN..]).as_bytes();
        if !whole {
            self.remove(&name);
            return None;
        }
        self.names.used(&name, kept.len() as u64);
        // Updates the file's time, by which other processes see that it was used: the oldest go first.
        let _ = file.write_at(0, &kept[..1]);
        kept.drain(..HASH_LEN);
        Some(kept)
    }

    /// Keeps bytes; a disk that is full or read-only only means a miss later.
    fn put(&mut self, version: &Version, bytes: &[u8]) {
        let name = name_of(version);
        if self.names.contains(&name) {
            return;
        }
        let kept = [blake3::hash(bytes).as_bytes(), bytes].concat();
        let new = format!("{NEW}{name}");
        let written = self.folder.open(&new, Open::WriteOrCreate).and_then(|file| {
            file.set_len(0)?;
            file.write_at(0, &kept)
        });
        if written.and_then(|()| self.folder.rename(&new, &name, Rename::Replace)).is_err() {
            return;
        }
        self.names.used(&name, kept.len() as u64);
        while let Some(oldest) = self.names.over() {
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, name: &String) {
        self.names.forget(name);
        let _ = self.folder.remove_file(name);
    }
}

fn name_of(version: &Version) -> String {
    format!("{PREFIX}{}", Version::of(version.as_str().as_bytes()))
}

/// Which of some sized things were used least recently.
struct Lru<K> {
    bytes_max: u64,
    bytes: u64,
    clock: u64,
    by_key: HashMap<K, (u64, u64)>,
    by_use: BTreeMap<u64, K>,
}

impl<K: Clone + Eq + std::hash::Hash> Lru<K> {
    fn new(bytes_max: u64) -> Self {
        Lru { bytes_max, bytes: 0, clock: 0, by_key: HashMap::new(), by_use: BTreeMap::new() }
    }

    fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    fn contains(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    fn used(&mut self, key: &K, size: u64) {
        self.forget(key);
        self.clock += 1;
        self.bytes += size;
        self.by_key.insert(key.clone(), (self.clock, size));
        self.by_use.insert(self.clock, key.clone());
    }

    fn forget(&mut self, key: &K) {
        if let Some((when, size)) = self.by_key.remove(key) {
            self.by_use.remove(&when);
            self.bytes -= size;
        }
    }

    /// Returns what must go, least recently used first, as long as there is too much.
    fn over(&mut self) -> Option<K> {
        if self.bytes <= self.bytes_max {
            return None;
        }
        let key = self.by_use.values().next()?.clone();
        self.forget(&key);
        Some(key)
    }
}
