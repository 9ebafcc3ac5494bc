//! Which entities a session has loaded lately: a bounded number, each for a limited time, the least
//! recently used dropped first. A file that has changed since is read again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Entity;
use crate::backend::Version;
use crate::clock::Timestamp;
use crate::locator::Locator;

/// How many entities are kept.
const ENTRIES_MAX: usize = 100;
/// How long each is kept.
const SECONDS_MAX: i64 = 300;

/// Entities by the key that they were loaded with.
#[derive(Default)]
pub struct SessionCache {
    kept: Mutex<HashMap<String, Kept>>,
}

struct Kept {
    path: Locator,
    version: Version,
    entity: Arc<Entity>,
    expires: Timestamp,
    used: Timestamp,
}

impl SessionCache {
    /// Returns what was loaded with this key and has not expired: its file, its version, the entity.
    pub fn get(&self, key: &str, now: Timestamp) -> Option<(Locator, Version, Arc<Entity>)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.get(key).is_some_and(|entry| now > entry.expires) {
            kept.remove(key);
        }
        let entry = kept.get_mut(key)?;
        entry.used = now;
        Some((entry.path.clone(), entry.version.clone(), Arc::clone(&entry.entity)))
    }

    /// Keeps what was loaded.
    pub fn set(&self, key: &str, path: Locator, version: Version, entity: Arc<Entity>, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= ENTRIES_MAX && !kept.contains_key(key) {
            let oldest = kept.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| kept.remove(&key));
        }
        let expires = Timestamp::from_second(now.as_second() + SECONDS_MAX).unwrap_or(Timestamp::MAX);
        kept.insert(key.to_owned(), Kept { path, version, entity, expires, used: now });
    }

    /// Forgets what was loaded under this key.
    pub fn remove(&self, key: &str) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// How many entities are kept.
    pub fn len(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_and_time_ends() {
        let cache = SessionCache::default();
        let at = |second: i64| Timestamp::from_second(second).expect("a moment");
        let entity = Arc::new(Entity::default());
        let set =
            |key: &str, now| cache.set(key, Locator::root(), Version::new("v"), entity.clone(), at(now));
        for index in 0..100 {
            set(&index.to_string(), index);
        }
        assert!(cache.get("0", at(100)).is_some());
        set("new", 101);
        assert_eq!(cache.len(), 100);
        assert!(cache.get("0", at(102)).is_some() && cache.get("1", at(102)).is_none());
        assert!(cache.get("new", at(401)).is_some() && cache.get("new", at(402)).is_none());
    }
}
