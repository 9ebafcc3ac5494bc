//! The names in a folder, as a careless file system would compare them.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

use crate::locator::collision_key;

/// The names in a folder, or as many as are compared.
#[derive(Default)]
pub(super) struct Names {
    spelled: Vec<String>,
    /// The names by collision key, built at the second lookup: most changes make one file, and scanning the
    /// names once is faster than indexing them.
    by_key: Option<HashMap<String, String>>,
    asked: bool,
    are_cut: bool,
    removed: HashSet<String>,
}

impl Names {
    /// These names, and perhaps more that are not compared.
    pub(super) fn new(spelled: Vec<String>, are_cut: bool) -> Self {
        Names { spelled, are_cut, ..Names::default() }
    }

    /// Whether there are more.
    pub(super) fn are_cut(&self) -> bool {
        self.are_cut
    }

    /// Whether a name was taken away.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.removed.contains(name)
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
        self.removed.remove(name);
        match &mut self.by_key {
            Some(keys) => drop(keys.insert(collision_key(name), name.to_owned())),
            None => self.spelled.push(name.to_owned()),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.removed.insert(name.to_owned());
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

/// Other ways to write a name: all lower case, all upper case, each word capitalised. Keeps the extension.
pub(super) fn likely_spellings(name: &str) -> [String; 3] {
    let (stem, ending) = name.rfind('.').map_or((name, ""), |dot| name.split_at(dot));
    let mut begins = true;
    let titled: String = stem
        .chars()
        .flat_map(|letter| {
            let spelled: String = match std::mem::replace(&mut begins, !letter.is_alphanumeric()) {
                true => letter.to_uppercase().collect(),
                false => letter.to_lowercase().collect(),
            };
            spelled.chars().collect::<Vec<_>>()
        })
        .collect();
    [stem.to_lowercase(), stem.to_uppercase(), titled].map(|stem| stem + ending)
}

/// Whether the disk's spelling of a name, in whatever Unicode form, is this name.
fn is_same(spelled: &str, name: &str) -> bool {
    spelled == name || (!spelled.is_ascii() && spelled.nfc().eq(name.chars()))
}

fn is_like(name: &str, key: &str) -> bool {
    if name.is_ascii() { name.eq_ignore_ascii_case(key) } else { collision_key(name) == key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_each_other_whoever_is_asked_first() {
        let mut names = Names::new(vec!["Alice.md".into(), "STRASSE.md".into(), "e\u{301}.md".into()], false);
        assert_eq!(names.like("bob.md"), None);
        names.add("Bob.md");
        assert_eq!(names.like("bob.md").as_deref(), Some("Bob.md"));
        assert_eq!(names.like("straße.md").as_deref(), Some("STRASSE.md"));
        names.remove("alice.md");
        assert_eq!(names.like("alice.md").as_deref(), Some("Alice.md"), "only the name itself is taken away");
        names.remove("Alice.md");
        assert_eq!(names.like("alice.md"), None);
        names.remove("\u{e9}.md");
        assert_eq!(names.like("\u{c9}.md"), None, "in whatever form the disk spells it");
    }

    #[test]
    fn people_spell_a_name_in_three_ways() {
        let spellings = ["alice-smith.md", "ALICE-SMITH.md", "Alice-Smith.md"];
        assert_eq!(likely_spellings("aLICE-smith.md"), spellings);
        assert_eq!(likely_spellings("élan"), ["élan", "ÉLAN", "Élan"]);
    }
}
