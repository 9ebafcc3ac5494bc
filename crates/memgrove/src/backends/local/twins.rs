//! The names in a folder, as a careless file system would compare them.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use crate::locator::collision_key;

/// The names in a folder.
pub(super) struct Names {
    spelled: Vec<String>,
    /// The same by how they are compared, made for the second question: most changes make one file,
    /// and looking through the names once is faster than sorting them.
    by_key: Option<HashMap<String, String>>,
    asked: bool,
}

impl Names {
    pub(super) fn new(spelled: Vec<String>) -> Self {
        Names { spelled, by_key: None, asked: false }
    }

    /// A name that a careless file system takes for this one; perhaps the name itself.
    pub(super) fn like(&mut self, name: &str) -> Option<String> {
        let key = collision_key(name);
        if !std::mem::replace(&mut self.asked, true) {
            return self.spelled.iter().find(|there| is_like(there, &key)).cloned();
        }
        self.keys().get(&key).cloned()
    }

    pub(super) fn add(&mut self, name: &str) {
        match &mut self.by_key {
            Some(keys) => drop(keys.insert(collision_key(name), name.to_owned())),
            None => self.spelled.push(name.to_owned()),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        match &mut self.by_key {
            Some(keys) => {
                let key = collision_key(name);
                if keys.get(&key).is_some_and(|there| is_same(there, name)) {
                    keys.remove(&key);
                }
            }
            None => self.spelled.retain(|there| !is_same(there, name)),
        }
    }

    fn keys(&mut self) -> &mut HashMap<String, String> {
        self.by_key.get_or_insert_with(|| {
            std::mem::take(&mut self.spelled).into_iter().map(|name| (collision_key(&name), name)).collect()
        })
    }
}

/// Whether the disk's spelling of a name, in whatever Unicode form, is this name.
fn is_same(spelled: &str, name: &str) -> bool {
    spelled == name || (!spelled.is_ascii() && spelled.nfc().eq(name.chars()))
}

fn is_like(name: &str, key: &str) -> bool {
    if name.is_ascii() { name.eq_ignore_ascii_case(key) } else { collision_key(name) == key }
}
