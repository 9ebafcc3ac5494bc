//! Finding things: what a search finds, and that the index is what the files say, whatever happens.

mod asking;
mod finding;
mod keeping;
mod ranking;
mod showing;
mod together;
mod truth;

use std::path::Path;
use std::sync::Arc;

use memgrove::backends::{Local, LocalOptions, Ram};
use memgrove::clock::{Clock, SystemClock};
use memgrove::index::{Options, Place, Source};
use memgrove::vfs::RealFs;
use memgrove::{Index, Locator, Store};

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

/// A store in memory with these files.
fn store(files: &[(&str, &str)]) -> Store {
    let store = Store::new(Ram::default());
    for (key, text) in files {
        store.write(&at(key), text).unwrap();
    }
    store
}

fn over(store: &Store, place: Place, clock: Arc<dyn Clock>) -> Index {
    let sources = vec![Source { under: String::new(), store: store.clone() }];
    Index::new(place, sources, clock, Options::default()).unwrap()
}

/// An index in memory over these files.
fn indexed(files: &[(&str, &str)]) -> Index {
    over(&store(files), Place::Ram, Arc::new(SystemClock))
}

/// A store on disk.
fn on_disk(root: &Path) -> Store {
    let tree = RealFs::create_root(root).unwrap();
    Store::new(Local::open(LocalOptions::new(Arc::new(tree), Arc::new(SystemClock))).unwrap())
}

/// An index in a folder of the machine.
fn kept(store: &Store, folder: &Path) -> Index {
    kept_by(store, folder, Arc::new(SystemClock))
}

fn kept_by(store: &Store, folder: &Path, clock: Arc<dyn Clock>) -> Index {
    let location = folder.to_str().unwrap().to_owned();
    let folder = folder.to_owned();
    over(
        store,
        Place::Folder(Arc::new(move || Ok(Arc::new(RealFs::create_root(&folder).unwrap()))), location),
        clock,
    )
}

/// The addresses of what a query finds.
fn found(index: &Index, query: &str) -> Vec<String> {
    index.search(query, 10).unwrap().hits.into_iter().map(|hit| hit.address).collect()
}

/// The address of what a query finds first.
fn first(index: &Index, query: &str) -> String {
    found(index, query).into_iter().next().unwrap_or_default()
}

fn check_true(index: &Index) {
    let differences = index.verify(&mut |_, _| ()).unwrap();
    assert!(differences.is_empty(), "{:?}", &differences[..differences.len().min(5)]);
}
