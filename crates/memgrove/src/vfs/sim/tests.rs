//! That the simulated disk forgets what it may and nothing else.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use super::*;

const SEEDS: u64 = 2_000;

fn write(disk: &SimFs, name: &str, bytes: &[u8]) -> Box<dyn VfsFile> {
    let file = disk.open(name, Open::WriteOrCreate).unwrap();
    file.write_at(0, bytes).unwrap();
    file
}

fn read(disk: &SimFs, name: &str) -> Option<Vec<u8>> {
    disk.open(name, Open::Read).ok().map(|file| file.read_all().unwrap())
}

/// Everything that may be found under these names after a power cut.
fn outcomes(disk: &SimFs, names: &[&str]) -> BTreeSet<Vec<Option<Vec<u8>>>> {
    let seen = |seed| {
        let left = disk.power_cut(seed);
        names.iter().map(|name| read(&left, name)).collect()
    };
    (0..SEEDS).map(seen).collect()
}

fn some(text: &[u8]) -> Option<Vec<u8>> {
    Some(text.to_vec())
}

#[test]
fn what_is_synced_survives_and_nothing_else_must() {
    let disk = SimFs::new();
    let file = write(&disk, "a", b"one");
    let all = outcomes(&disk, &["a"]);
    assert_eq!(
        all,
        [[None].into(), [some(b"")].into(), [some(b"\0\0\0")].into(), [some(b"one")].into()].into()
    );
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk, &["a"]), [[None].into(), [some(b"one")].into()].into());
    disk.sync_dir("").unwrap();
    assert_eq!(outcomes(&disk, &["a"]), [[some(b"one")].into()].into());
}

#[test]
fn a_folder_must_be_synced_in_its_own_parent() {
    let disk = SimFs::new();
    disk.mkdir("d").unwrap();
    write(&disk, "d/a", b"one").sync_data().unwrap();
    disk.sync_dir("d").unwrap();
    assert_eq!(outcomes(&disk, &["d/a"]), [[None].into(), [some(b"one")].into()].into());
    disk.sync_dir("").unwrap();
    assert_eq!(outcomes(&disk, &["d/a"]), [[some(b"one")].into()].into());
}

#[test]
fn sectors_survive_apart_and_an_append_may_leave_zeros() {
    let disk = SimFs::new();
    let file = write(&disk, "a", &[1; 600]);
    disk.sync_tree().unwrap();
    file.write_at(0, &[2; 1200]).unwrap();
    let all = outcomes(&disk, &["a"]);
    let whole: Vec<Vec<u8>> = all.into_iter().flatten().flatten().collect();
    assert!(whole.contains(&vec![1; 600]) && whole.contains(&vec![2; 1200]));
    assert!(whole.contains(&[vec![1; 512], vec![2; 88]].concat()), "the second sector alone");
    assert!(
        whole.contains(&[vec![2; 512], vec![1; 88], vec![0; 600]].concat()),
        "the first sector and the size"
    );
    assert!(whole.iter().all(|bytes| bytes.len() == 600 || bytes.len() == 1200));
    for bytes in &whole {
        assert!(bytes[..512].iter().all(|byte| *byte == bytes[0]), "a sector is never torn");
    }
}

#[test]
fn a_later_write_in_a_sector_brings_the_earlier_ones() {
    let disk = SimFs::new();
    let file = write(&disk, "a", b"");
    disk.sync_tree().unwrap();
    file.write_at(0, b"one").unwrap();
    file.write_at(3, b"two").unwrap();
    let all = outcomes(&disk, &["a"]);
    assert!(all.iter().flatten().flatten().all(|bytes| bytes != b"\0\0\0two"));
    assert!(all.contains(&vec![some(b"one\0\0\0")]));
}

#[test]
fn a_truncation_may_be_lost() {
    let disk = SimFs::new();
    let file = write(&disk, "a", b"longer");
    disk.sync_tree().unwrap();
    file.set_len(0).unwrap();
    file.write_at(0, b"new").unwrap();
    let all = outcomes(&disk, &["a"]);
    for bytes in [&b"longer"[..], b"", b"new", b"\0\0\0"] {
        assert!(all.contains(&vec![some(bytes)]), "{bytes:?}");
    }
}

#[test]
fn a_rename_is_atomic_and_one_name_changes_in_order() {
    let disk = SimFs::new();
    write(&disk, "a", b"old");
    disk.sync_tree().unwrap();
    write(&disk, "t", b"new").sync_data().unwrap();
    disk.rename("t", "a", Rename::Exchange).unwrap();
    disk.remove_file("t").unwrap();
    let expected = [
        [some(b"old"), None].into(),
        [some(b"old"), some(b"new")].into(),
        [some(b"new"), some(b"old")].into(),
        [some(b"new"), None].into(),
    ];
    assert_eq!(outcomes(&disk, &["a", "t"]), expected.into());
}

#[test]
fn a_move_never_loses_the_file() {
    let disk = SimFs::new();
    disk.mkdir("from").unwrap();
    write(&disk, "from/a", b"kept");
    disk.sync_tree().unwrap();
    disk.mkdir("to").unwrap();
    disk.rename("from/a", "to/a", Rename::NoReplace).unwrap();
    disk.remove_dir("from").unwrap();
    disk.rename("to", "end", Rename::NoReplace).unwrap();
    disk.mkdir("from").unwrap();
    write(&disk, "from/a", b"another").sync_data().unwrap();
    for seen in outcomes(&disk, &["from/a", "to/a", "end/a"]) {
        assert_eq!(seen.iter().filter(|bytes| **bytes == some(b"kept")).count(), 1, "{seen:?}");
    }
}

#[test]
fn folders_that_trade_places_stay_reachable() {
    let disk = SimFs::new();
    for folder in ["a", "b"] {
        disk.mkdir(folder).unwrap();
        write(&disk, &format!("{folder}/f"), folder.as_bytes());
    }
    disk.sync_tree().unwrap();
    disk.rename("a", "b/a", Rename::NoReplace).unwrap();
    disk.rename("b/a", "c", Rename::NoReplace).unwrap();
    disk.rename("b", "c/b", Rename::NoReplace).unwrap();
    for seen in outcomes(&disk, &["a/f", "b/a/f", "c/f", "b/f", "c/b/f"]) {
        assert_eq!(seen.iter().flatten().count(), 2, "{seen:?}");
    }
}

#[test]
fn a_failed_sync_forgets_for_good() {
    let disk = SimFs::new();
    let file = write(&disk, "a", b"one");
    disk.sync_tree().unwrap();
    file.write_at(3, b"two").unwrap();
    disk.fail_sync_after(0);
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(read(&disk, "a"), some(b"onetwo"));
    file.write_at(6, b"three").unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk, &["a"]), [[some(b"one\0\0\0three")].into()].into());
}

#[test]
fn a_recording_holds_every_instant() {
    let disk = SimFs::new();
    disk.record();
    write(&disk, "a", b"one").sync_data().unwrap();
    disk.sync_dir("").unwrap();
    let recording = disk.recording();
    assert_eq!(recording.ops(), 4);
    assert_eq!(read(&recording.kill(1), "a"), some(b""));
    assert_eq!(read(&recording.kill(2), "a"), some(b"one"));
    assert_eq!(recording.kill(2).boot_id(), disk.boot_id());
    assert!((0..SEEDS).all(|seed| read(&recording.power_cut(0, seed), "a").is_none()));
    assert!((0..SEEDS).any(|seed| read(&recording.power_cut(3, seed), "a").is_none()));
    assert!((0..SEEDS).all(|seed| read(&recording.power_cut(4, seed), "a") == some(b"one")));
}

#[test]
fn a_subtree_shares_the_disk() {
    let disk = SimFs::new();
    let tree = disk.subtree("tree").unwrap();
    let state = disk.subtree("state").unwrap();
    write(&tree, "a", b"one");
    assert_eq!(read(&disk, "tree/a"), some(b"one"));
    state.sync_tree().unwrap();
    assert!((0..SEEDS).any(|seed| read(&tree.power_cut(seed), "a").is_none()));
    tree.sync_tree().unwrap();
    let left = disk.power_cut(7);
    assert_ne!(left.boot_id(), disk.boot_id());
    assert_eq!(read(&left.subtree("tree").unwrap(), "a"), some(b"one"));
}

#[test]
fn errors_are_those_of_a_real_disk() {
    let disk = SimFs::new();
    disk.mkdir("d").unwrap();
    disk.mkdir("e").unwrap();
    write(&disk, "d/f", b"one");
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    let open = |name, how| disk.open(name, how).map(drop);
    assert_eq!(kind(open("x", Open::Read)), ErrorKind::NotFound);
    assert_eq!(kind(open("x/y", Open::WriteOrCreate)), ErrorKind::NotFound);
    assert_eq!(kind(open("d", Open::Write)), ErrorKind::IsADirectory);
    assert_eq!(kind(open("d/f/g", Open::Read)), ErrorKind::NotADirectory);
    assert_eq!(kind(open("d/f", Open::CreateNew)), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.stat("d/f/g").map(drop)), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.read_dir("d/f").map(drop)), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.mkdir("d")), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.mkdir("x/y")), ErrorKind::NotFound);
    assert_eq!(kind(disk.remove_file("d")), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.remove_dir("d")), ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind(disk.remove_dir("d/f")), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.rename("x", "y", Rename::Replace)), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename("d", "e", Rename::NoReplace)), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.rename("e", "d", Rename::Replace)), ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind(disk.rename("d/f", "e", Rename::Replace)), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.rename("e", "d/f", Rename::Replace)), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.rename("d", "d/g", Rename::NoReplace)), ErrorKind::InvalidInput);
    assert_eq!(kind(disk.rename("d", "x", Rename::Exchange)), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename("d/f", "d", Rename::Exchange)), ErrorKind::InvalidInput);
    let plain = SimFs::without_exchange();
    write(&plain, "a", b"");
    write(&plain, "b", b"");
    assert_eq!(kind(plain.rename("a", "b", Rename::Exchange)), ErrorKind::Unsupported);
}

#[test]
fn an_open_file_outlives_its_name() {
    let disk = SimFs::new();
    let file = write(&disk, "a", b"one");
    let inode = disk.stat("a").unwrap().inode;
    disk.rename("a", "b", Rename::NoReplace).unwrap();
    assert_eq!((disk.stat("b").unwrap().inode, file.stat().unwrap().links), (inode, 1));
    disk.remove_file("b").unwrap();
    disk.sync_tree().unwrap();
    file.write_at(3, b"two").unwrap();
    assert_eq!(file.read_all().unwrap(), b"onetwo");
    assert_eq!(file.stat().unwrap().links, 0);
}

#[test]
fn a_full_disk_writes_what_fits() {
    let disk = SimFs::with_capacity(10);
    let file = write(&disk, "a", b"12345678");
    assert_eq!(file.write_at(8, b"9abc").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(read(&disk, "a"), some(b"123456789a"));
    file.write_at(0, b"overwrites").unwrap();
    assert_eq!(disk.open("b", Open::CreateNew).map(drop).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.remove_file("a").unwrap();
    write(&disk, "b", b"fits again");
}

#[test]
fn a_lock_keeps_others_out_until_it_is_released() {
    let disk = SimFs::new();
    let first = disk.open("lock", Open::WriteOrCreate).unwrap();
    let second = disk.open("lock", Open::WriteOrCreate).unwrap();
    first.lock(Duration::ZERO).unwrap();
    first.lock(Duration::ZERO).unwrap();
    assert_eq!(second.lock(Duration::from_millis(5)).unwrap_err().kind(), ErrorKind::WouldBlock);
    second.unlock().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| second.lock(Duration::from_secs(60)));
        drop(first);
        waiting.join().unwrap().unwrap();
    });
    let third = disk.open("lock", Open::WriteOrCreate).unwrap();
    assert_eq!(third.lock(Duration::ZERO).unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// One call on a disk, and what came of it: the same on a simulated and on a real one.
#[cfg(unix)]
fn call(disk: &dyn Vfs, rng: &mut super::rng::Rng) -> String {
    const NAMES: [&str; 10] = ["a", "b", "d", "e", "d/a", "d/b", "d/e", "e/a", "e/d/a", "a/x"];
    let mut name = || NAMES[rng.below(NAMES.len())];
    let (one, two) = (name(), name());
    let said = |result: io::Result<String>| match result.map_err(|error| error.kind()) {
        Ok(said) => said,
        // Linux says the same of an exchange that makes no sense and of one that it cannot do.
        Err(ErrorKind::Unsupported) => format!("{:?}", ErrorKind::InvalidInput),
        Err(kind) => format!("{kind:?}"),
    };
    let done = |result: io::Result<()>| said(result.map(|()| "done".into()));
    let how = [Open::Read, Open::Write, Open::WriteOrCreate, Open::CreateNew][rng.below(4)];
    let renaming = [Rename::NoReplace, Rename::Replace, Rename::Exchange][rng.below(3)];
    match rng.below(8) {
        0 => format!("mkdir {one}: {}", done(disk.mkdir(one))),
        1 => format!("remove_file {one}: {}", done(disk.remove_file(one))),
        2 => format!("remove_dir {one}: {}", done(disk.remove_dir(one))),
        3 | 4 => format!("rename {one} {two} {renaming:?}: {}", done(disk.rename(one, two, renaming))),
        5 => format!("sync_dir {one}: {}", done(disk.sync_dir(one))),
        6 => {
            let listed = disk.read_dir(one).map(|entries| {
                let mut names: Vec<_> = entries.into_iter().map(|(name, stat)| (name, stat.kind)).collect();
                names.sort_by(|a, b| a.0.cmp(&b.0));
                format!("{names:?}")
            });
            format!("read_dir {one}: {}", said(listed))
        }
        _ => {
            let (offset, len) = (rng.below(20) as u64, rng.below(30) as u64);
            let used = disk.open(one, how).and_then(|file| {
                if how != Open::Read {
                    file.write_at(offset, two.as_bytes())?;
                    file.set_len(len)?;
                }
                let stat = file.stat()?;
                let seen = (stat.kind, stat.size, stat.links, stat.mode);
                Ok(format!("{seen:?} {:?} {:?}", file.read_all()?, disk.stat(one)?.size))
            });
            format!("open {one} {how:?}: {}", said(used))
        }
    }
}

#[cfg(unix)]
#[test]
fn a_real_disk_answers_the_same() {
    for seed in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let (real, sim) = (crate::vfs::RealFs::open_root(folder.path()).unwrap(), SimFs::new());
        let mut rng = super::rng::Rng::new(seed);
        for number in 0..200 {
            let expected = call(&real, &mut rng.clone());
            assert_eq!(call(&sim, &mut rng), expected, "seed {seed}, call {number}");
        }
    }
}
