//! The cache in front of a storage that is far away: what it believes, and what it leaves behind.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use memgrove::backends::cached::{Freshness, TTL};
use memgrove::backends::{CacheOptions, Cached, Ram};
use memgrove::clock::ManualClock;
use memgrove::vfs::RealFs;
use memgrove::{Locator, Store};

#[test]
fn nothing_is_believed_of_a_time_that_is_still_to_come() {
    let (far, clock) = (Store::new(Ram::default()), Arc::new(ManualClock::default()));
    let mut options = CacheOptions::new(clock.clone());
    options.freshness = Freshness::For(TTL);
    let near = Store::new(Cached::new(Arc::clone(far.backend()), options));
    let at = Locator::new("a.md").unwrap();
    far.write(&at, "one").unwrap();
    assert_eq!(near.read(&at).unwrap(), "one");
    far.write(&at, "two").unwrap();
    assert_eq!(near.read(&at).unwrap(), "one", "it is believed for a while");
    // A clock that was an hour ahead is set right.
    clock.advance_ms(-3_600_000);
    assert_eq!(near.read(&at).unwrap(), "two");
}

#[test]
fn what_a_killed_process_has_left_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let place = |name: &str, age: u64| {
        let path = folder.path().join(name);
        std::fs::write(&path, "x").unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    };
    place("n-v-old", 7_200);
    place("n-v-young", 10);
    place("v-kept", 0);
    let mut options = CacheOptions::new(Arc::new(ManualClock::default()));
    options.disk = Some((Arc::new(RealFs::open_root(folder.path()).unwrap()), 1_000));
    drop(Cached::new(Arc::new(Ram::default()), options));
    let left = |name: &str| folder.path().join(name).exists();
    assert_eq!(["n-v-old", "n-v-young", "v-kept"].map(left), [false, true, true]);
}
