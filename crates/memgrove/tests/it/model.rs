//! The local backend beside the one in memory: whatever is asked of both, they agree.

use std::path::Path;
use std::sync::Arc;

use memgrove::backend::{Change, Depth, Edit, Expect, HistoryQuery, Moment, Note, Past, Version};
use memgrove::backends::{Local, LocalOptions, Ram};
use memgrove::clock::ManualClock;
use memgrove::vfs::RealFs;
use memgrove::{Backend, Kind, Locator};
use proptest::prelude::*;
use tempfile::TempDir;

const NAMES: &[&str] =
    &["a", "A", "b", "f", "f/a", "f/b", "f/g", "f/g/a", "F/c", "g", "g/a", "f-x", "é", "CON"];

const REFUSALS: &[Kind] = &[Kind::Invalid, Kind::NotFound, Kind::Exists, Kind::Conflict];

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

fn name() -> impl Strategy<Value = Locator> {
    prop::sample::select(NAMES).prop_map(at)
}

fn expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        6 => Just(Expect::Any),
        1 => Just(Expect::Absent),
        // The version of content that is often there.
        1 => prop::sample::select(&["", "x", "y"][..]).prop_map(|text| Expect::At(Version::of(text.as_bytes()))),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let text = || prop::sample::select(&["", "x", "y", "xyz"][..]).prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![
        4 => (name(), text(), expect()).prop_map(|(at, bytes, expect)| Edit::Write { at, bytes: bytes.into(), expect }),
        2 => (name(), text(), expect()).prop_map(|(at, bytes, expect)| Edit::Append { at, bytes: bytes.into(), expect }),
        2 => (name(), expect()).prop_map(|(at, expect)| Edit::Delete { at, expect }),
        3 => (name(), name(), expect()).prop_map(|(from, to, expect)| Edit::Rename { from, to, expect }),
    ]
}

/// One thing that is done to both.
#[derive(Debug, Clone)]
enum Step {
    Apply(Vec<Edit>, Option<u8>),
    Mkdir(Locator),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (prop::collection::vec(edit(), 1..6), prop::option::weighted(0.2, 0..4_u8))
            .prop_map(|(edits, key)| Step::Apply(edits, key)),
        1 => name().prop_map(Step::Mkdir),
        1 => Just(Step::Reopen),
    ]
}

fn local(root: &Path) -> Local {
    let tree = RealFs::open_root(root).expect("the folder exists");
    let mut options = LocalOptions::new(Arc::new(tree), Arc::new(ManualClock::default()));
    options.background = false;
    Local::open(options).expect("the store opens")
}

fn tree(backend: &dyn Backend) -> Vec<(String, Option<Vec<u8>>)> {
    let all = backend.list(&Locator::root(), Depth::All).expect("a listing");
    let content = |at: &Locator| backend.read(at).ok().map(|content| content.bytes);
    all.iter().map(|info| (info.locator.key().to_owned(), content(&info.locator))).collect()
}

/// What both must remember alike: not times and names of changes, nor versions that cost a read.
fn remembered(past: &[Past]) -> Vec<String> {
    let edits = |past: &Past| {
        let edits = past.edits.iter().map(|edit| format!("{:?} {} {:?}", edit.op, edit.at, edit.to));
        edits.collect::<Vec<_>>().join("; ")
    };
    past.iter().map(|past| format!("{:?} {}", past.note.key, edits(past))).collect()
}

fn compare_past(ram: &dyn Backend, local: &dyn Backend) -> Result<(), TestCaseError> {
    let all = |backend: &dyn Backend| backend.history(&HistoryQuery::default()).expect("a history");
    let (ours, theirs) = (all(ram), all(local));
    prop_assert_eq!(remembered(&ours), remembered(&theirs));
    for name in NAMES {
        let query = HistoryQuery { at: Some(at(name)), ..HistoryQuery::default() };
        let of = |backend: &dyn Backend| remembered(&backend.history(&query).expect("a history"));
        prop_assert_eq!(of(ram), of(local), "the history of `{}`", name);
        for (our, their) in ours.iter().zip(&theirs) {
            for (moment, same) in [
                (Moment::Before(our.change.clone()), Moment::Before(their.change.clone())),
                (Moment::After(our.change.clone()), Moment::After(their.change.clone())),
            ] {
                let wanted = ram.read_past(&at(name), &moment).expect("the past");
                let found = local.read_past(&at(name), &same);
                let found =
                    found.map_err(|error| TestCaseError::fail(format!("`{name}` {same:?}: {error}")))?;
                prop_assert_eq!(wanted, found, "`{}` {:?}", name, same);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn local_does_what_ram_does(steps in prop::collection::vec(step(), 1..14)) {
        let root = if Path::new("/dev/shm").is_dir() { TempDir::new_in("/dev/shm") } else { TempDir::new() };
        let root = root.expect("a temporary folder");
        let ram = Ram::default();
        let mut local_backend = Some(local(root.path()));
        for step in steps {
            let local_now = local_backend.as_ref().expect("it is open");
            match step {
                Step::Apply(edits, key) => {
                    let note = Note { verb: "test".into(), key: key.map(|key| key.to_string()), ..Note::default() };
                    let change = Change { edits, note };
                    let (wanted, found) = (ram.apply(&change), local_now.apply(&change));
                    let said = format!("{change:?}: {wanted:?} {found:?}");
                    prop_assert_eq!(wanted.is_ok(), found.is_ok(), "{}", said);
                    match (wanted, found) {
                        (Ok(wanted), Ok(found)) => {
                            prop_assert_eq!(wanted.versions, found.versions, "{}", said);
                            prop_assert_eq!(wanted.replayed, found.replayed, "{}", said);
                        }
                        // Where several promises refuse, each may choose which one it names.
                        (_, Err(found)) => prop_assert!(REFUSALS.contains(&found.kind()), "{}", said),
                        _ => {}
                    }
                }
                Step::Mkdir(at) => {
                    prop_assert_eq!(ram.mkdir(&at).is_ok(), local_now.mkdir(&at).is_ok(), "mkdir {}", at);
                }
                Step::Reopen => {
                    drop(local_backend.take());
                    local_backend = Some(local(root.path()));
                }
            }
            prop_assert_eq!(tree(&ram), tree(local_backend.as_ref().expect("it is open")));
        }
        compare_past(&ram, local_backend.as_ref().expect("it is open"))?;
    }
}
