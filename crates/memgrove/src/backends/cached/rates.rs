//! How often a cache helped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::vfs::{Open, Vfs};

const FILE: &str = "rates.json";

/// How often a cache helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Reads that asked nobody.
    pub hits: u64,
    /// Reads that asked for the version alone.
    pub checked: u64,
    /// Reads that fetched the bytes.
    pub misses: u64,
    /// Bytes that were not fetched.
    pub bytes_saved: u64,
}

impl Rates {
    /// The share of reads that fetched no bytes, from 0 to 1; `None` before the first read.
    pub fn hit_rate(self) -> Option<f64> {
        let helped = self.hits + self.checked;
        let all = helped + self.misses;
        (all > 0).then(|| helped as f64 / all as f64)
    }
}

/// Counts, and adds the counts to a file when it is dropped. Only figures: a lost update is no harm.
pub(super) struct Counters {
    folder: Option<Arc<dyn Vfs>>,
    before: Mutex<Rates>,
    hits: AtomicU64,
    checked: AtomicU64,
    misses: AtomicU64,
    bytes_saved: AtomicU64,
}

impl Counters {
    pub(super) fn load(folder: Option<Arc<dyn Vfs>>) -> Self {
        let before = folder.as_deref().and_then(read).unwrap_or_default();
        Counters {
            folder,
            before: Mutex::new(before),
            hits: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            bytes_saved: AtomicU64::new(0),
        }
    }

    pub(super) fn hit(&self, bytes: usize) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        self.bytes_saved.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn checked(&self, bytes: usize) {
        self.checked.fetch_add(1, Ordering::Relaxed);
        self.bytes_saved.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn rates(&self) -> Rates {
        let before = *self.before.lock().unwrap_or_else(PoisonError::into_inner);
        self.since(before)
    }

    fn since(&self, before: Rates) -> Rates {
        Rates {
            hits: before.hits + self.hits.load(Ordering::Relaxed),
            checked: before.checked + self.checked.load(Ordering::Relaxed),
            misses: before.misses + self.misses.load(Ordering::Relaxed),
            bytes_saved: before.bytes_saved + self.bytes_saved.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let Some(folder) = &self.folder else { return };
        let rates = self.since(read(&**folder).unwrap_or_default());
        if self.since(Rates::default()) == Rates::default() {
            return;
        }
        if let (Ok(file), Ok(text)) = (folder.open(FILE, Open::WriteOrCreate), serde_json::to_vec(&rates)) {
            let _ = file.set_len(0).and_then(|()| file.write_at(0, &text));
        }
    }
}

fn read(folder: &dyn Vfs) -> Option<Rates> {
    serde_json::from_slice(&folder.open(FILE, Open::Read).ok()?.read_all().ok()?).ok()
}
