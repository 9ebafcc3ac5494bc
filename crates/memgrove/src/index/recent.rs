//! What was asked for lately, kept in bounded memory, because a long-lived process is asked for the same
//! things again.
//!
//! There are two halves. What is asked for goes into the young one; when that is full it becomes the old
//! one, and what was still in the old one is forgotten.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};

/// Values by their keys, as far as there is room for them.
pub(super) struct Recent<K, V, S = RandomState> {
    halves: Mutex<Halves<K, V, S>>,
    /// The weight that one half may hold.
    most: usize,
}

struct Halves<K, V, S> {
    young: HashMap<K, (V, usize), S>,
    old: HashMap<K, (V, usize), S>,
    weight: usize,
}

impl<K: Eq + Hash, V: Clone, S: BuildHasher + Default> Recent<K, V, S> {
    /// Makes room for values of this weight in total.
    pub(super) fn new(most: usize) -> Self {
        let halves = Halves { young: HashMap::default(), old: HashMap::default(), weight: 0 };
        Recent { halves: Mutex::new(halves), most: most / 2 }
    }

    /// Returns a value, if it is still kept, and counts it as asked for.
    pub(super) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let halves = &mut *self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((value, _)) = halves.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, weight)) = halves.old.remove_entry(key)?;
        halves.put(key, value.clone(), weight, self.most);
        Some(value)
    }

    /// Keeps a value of some weight, in place of any other under its key.
    pub(super) fn put(&self, key: K, value: V, weight: usize) {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner).put(key, value, weight, self.most);
    }
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> Halves<K, V, S> {
    fn put(&mut self, key: K, value: V, weight: usize, most: usize) {
        if self.weight + weight > most {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        // A value too large for a half would drive out everything else.
        if weight <= most {
            self.weight += weight;
            let before = self.young.insert(key, (value, weight));
            self.weight -= before.map_or(0, |(_, weight)| weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let recent: Recent<String, usize> = Recent::new(20);
        for number in 0..100 {
            recent.put(number.to_string(), number, 1);
            assert_eq!(recent.get("0"), Some(0), "asked for each time, after {number}");
        }
        assert_eq!((recent.get("99"), recent.get("50")), (Some(99), None));
        recent.put("99".into(), 1, 2);
        assert_eq!(recent.get("99"), Some(1));
        recent.put("large".into(), 1, 11);
        assert_eq!(recent.get("large"), None);
        let halves = recent.halves.lock().expect("nobody panicked");
        assert!(halves.weight <= 10 && halves.young.len() <= 10 && halves.old.len() <= 10);
    }
}
