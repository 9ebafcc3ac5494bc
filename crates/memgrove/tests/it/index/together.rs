//! Many threads of one process search at once, while files change.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::clock::SystemClock;
use memgrove::index::{Noticed, Place, Reach, Watch};
use memgrove::{Index, Locator};

use super::{at, check_true, found, kept, on_disk, over, store};

/// A watcher that tells, once, of every file that somebody has written.
#[derive(Default)]
struct Written(Mutex<Vec<Locator>>);

impl Watch for Written {
    fn noticed(&self) -> Noticed {
        match std::mem::take(&mut *self.0.lock().unwrap()) {
            files if files.is_empty() => Noticed::Nothing,
            files => Noticed::Files(files),
        }
    }

    fn attend(&self, _: &[Locator]) -> bool {
        true
    }
}

/// Letters alone, so that each is one word that no other begins with.
fn word(thread: usize, number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    format!("zq{}{}{}x", letter(thread), letter(number), letter(number / 26))
}

/// Every thread writes a file, searches for it, changes it, searches again, removes it, and so on.
fn crowd(index: &Index, threads: usize, rounds: usize, write: &(dyn Fn(&str, Option<&str>) + Sync)) {
    let searches = AtomicUsize::new(0);
    let find = |query: &str| {
        searches.fetch_add(1, Ordering::SeqCst);
        found(index, query)
    };
    thread::scope(|scope| {
        for thread in 0..threads {
            let find = &find;
            scope.spawn(move || {
                for number in 0..rounds {
                    let (name, address) =
                        (format!("{thread}-{number}.md"), format!("file:/memories/{thread}-{number}.md"));
                    let [first, second] = [word(thread, number), word(thread + 10, number)];
                    write(&name, Some(&format!("The word is {first}.\n")));
                    assert_eq!(find(&first), [address.as_str()], "what was written is found");
                    write(&name, Some(&format!("Now the word is {second}.\n")));
                    assert_eq!(find(&second), [address.as_str()], "what was changed is found");
                    if number % 3 == 0 {
                        write(&name, None);
                        assert!(!find(&second).contains(&address), "what was removed is not");
                    }
                }
            });
        }
    });
    assert!(searches.into_inner() >= threads * rounds * 2);
    check_true(index);
}

#[test]
fn every_search_sees_what_was_written_before_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(&folder.path().join("store"));
    let index = kept(&store, &folder.path().join("cache"));
    let root = folder.path().join("store/files");
    fs::create_dir_all(&root).unwrap();
    crowd(&index, 4, 12, &|name, text| match text {
        Some(text) => fs::write(root.join(name), text).unwrap(),
        None => fs::remove_file(root.join(name)).unwrap(),
    });
}

#[test]
fn every_search_sees_what_a_watcher_was_told_before_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(&folder.path().join("store"));
    let watch = Arc::new(Written::default());
    let index = kept(&store, &folder.path().join("cache")).staying(vec![watch.clone()]);
    let root = folder.path().join("store/files");
    fs::create_dir_all(&root).unwrap();
    crowd(&index, 6, 20, &|name, text| {
        match text {
            Some(text) => fs::write(root.join(name), text).unwrap(),
            None => fs::remove_file(root.join(name)).unwrap(),
        }
        watch.0.lock().unwrap().push(at(&format!("files/{name}")));
    });
}

#[test]
fn an_index_in_memory_is_searched_by_one_at_a_time() {
    let store = super::store(&[]);
    let index = over(&store, Place::Ram, Arc::new(memgrove::clock::SystemClock));
    crowd(&index, 4, 6, &|name, text| {
        let at = at(&format!("files/{name}"));
        let edit = match text {
            Some(text) => Edit::Write { at, bytes: text.to_owned().into(), expect: Expect::Any },
            None => Edit::Delete { at, expect: Expect::Any },
        };
        store.apply(&Change { edits: vec![edit], note: Note::default() }).unwrap();
    });
}

#[test]
fn what_is_remembered_is_never_older_than_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&[]);
    let stays = kept(&store, folder.path()).staying(Vec::new());
    let words = ["garden", "river", "deploy", "coffee"];
    // The same each time: a generator that needs no seed from outside.
    let mut state = 7u64;
    let mut dice = |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % sides
    };
    for step in 0..200 {
        let place = at(&format!("files/{}.md", dice(6)));
        match dice(5) {
            0 => {
                let edits = vec![Edit::Delete { at: place, expect: Expect::Any }];
                drop(store.apply(&Change { edits, note: Note::default() }));
            }
            // The same words, which may be put away: the document stays, and what is known of it changes.
            1 => {
                let away = ["archived: true", "archived: false"][dice(2) as usize];
                drop(store.write(&place, &format!("---\n{away}\n---\nThe garden by the river.\n")));
            }
            kind => {
                let tag = if kind == 2 { "---\ntags: [hot]\n---\n" } else { "" };
                let [one, other] = [dice(4), dice(4)].map(|word| words[word as usize]);
                drop(store.write(&place, &format!("{tag}# Step {step}\nThe {one} and the {other}.\n")));
            }
        }
        let asked = ["garden", "river coffee", "tag:hot", "what of the deploy?", "is:hidden garden"];
        let fresh = over(&store, Place::Ram, Arc::new(SystemClock));
        for query in asked {
            let [told, true_now] = [&stays, &fresh].map(|index| {
                let told = index.recall(query, Reach::All, 2_000, 50).unwrap().snippets.into_iter();
                let told = told.map(|told| (told.hit.address, told.text, told.hit.tags, told.hit.hidden));
                told.collect::<BTreeSet<_>>()
            });
            assert_eq!(told, true_now, "step {step}, {query}");
        }
    }
}
