//! A folder that something else replicates: copies, unsettled files, and nothing torn.

mod elsewhere;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgrove::backend::{Change, Edit, Expect, Level, Note};
use memgrove::backends::{LocalOptions, Vault};
use memgrove::clock::SystemClock;
use memgrove::locator::copies::{Family, copy_of, placeholder};
use memgrove::shapes::merging::{self, Conflict, Side};
use memgrove::vfs::{RealFs, Vfs};
use memgrove::{Kind, Locator, Memory, Store};
use tempfile::TempDir;

/// One line a name: the family (`-`: no copy), the file that it is a copy of, the name.
const NAMES: &str = include_str!("vault/names.txt");

fn family(name: &str) -> Option<Family> {
    Some(match name {
        "-" => return None,
        "dropbox" => Family::Dropbox,
        "obsidian" => Family::Obsidian,
        "syncthing" => Family::Syncthing,
        "nextcloud" => Family::Nextcloud,
        "clash" => Family::CaseClash,
        "securisync" => Family::SecuriSync,
        "rclone" => Family::Rclone,
        "git" => Family::GitOriginal,
        "drive" => Family::GoogleDrive,
        "icloud" => Family::ICloud,
        "onedrive" => Family::OneDrive,
        other => panic!("no family is called {other}"),
    })
}

#[test]
fn every_name_is_told_for_what_it_is() {
    let (mut names, mut copies, mut wrong) = (0, 0, Vec::new());
    for line in NAMES.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let [kind, base, name] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{line:?} is not three fields")
        };
        let wanted = family(kind).map(|family| (base.to_owned(), family));
        let found = copy_of(name).map(|copy| (copy.base, copy.family));
        names += 1;
        copies += usize::from(wanted.is_some());
        if found != wanted {
            wrong.push(format!("{name}: {found:?}, not {wanted:?}"));
        }
    }
    println!("{names} names, {copies} of them copies, {} told wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names >= 160 && copies >= 80, "{names} names, {copies} copies");
    assert_eq!(placeholder(".note.md.icloud"), Some("note.md"));
    assert_eq!([".icloud", "note.icloud", "note.md"].map(placeholder), [None; 3]);
}

/// How long a file must have rested at least, give or take the tick of a file system.
const SETTLED: Duration = Duration::from_millis(1_900);

struct Folders {
    tree: TempDir,
    state: TempDir,
}

impl Folders {
    fn new() -> Self {
        Folders { tree: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }

    fn options(&self) -> LocalOptions {
        let root = |folder: &TempDir| -> Arc<dyn Vfs> { Arc::new(RealFs::open_root(folder.path()).unwrap()) };
        let mut options = LocalOptions::new(root(&self.tree), Arc::new(SystemClock));
        options.state = Some(root(&self.state));
        options
    }

    fn vault(&self) -> Store {
        Store::new(Vault::open(self.options()).unwrap())
    }

    /// The store with the copies in sight.
    fn bare(&self) -> Memory {
        Memory::new(Store::new(Vault::open(self.options()).unwrap().showing_all()), Arc::new(SystemClock))
    }

    /// As a sync tool writes: past us, and just now.
    fn begun_by_another(&self, name: &str) -> Instant {
        let begun = Instant::now();
        std::fs::write(self.tree.path().join(name), "theirs").unwrap();
        begun
    }

    /// As a sync tool writes: past us, and long ago.
    fn place(&self, name: &str, text: &str) {
        let path = self.tree.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    }
}

fn at(key: &str) -> Locator {
    Locator::new(key).unwrap()
}

#[test]
fn copies_are_not_listed_and_nothing_of_ours_lies_in_the_tree() {
    let folders = Folders::new();
    let vault = folders.vault();
    vault.write(&at("a.md"), "a").unwrap();
    folders.place("a (Ada's conflicted copy 2026-01-31).md", "b");
    folders.place(".b.md.icloud", "x");
    folders.place("a 2.md", "a note of its own");
    let listed: Vec<String> = vault.list(&Locator::root()).unwrap().iter().map(|at| at.to_string()).collect();
    assert_eq!(listed, ["a 2.md", "a.md", "b.md"]);
    drop(vault);
    let there = std::fs::read_dir(folders.tree.path()).unwrap().count();
    assert_eq!(there, 4, "no journal, no lock, no temporary file");
    let found = folders.vault().backend().check().unwrap();
    let warned: Vec<&str> =
        found.iter().filter(|one| one.level == Level::Warning).map(|finding| &*finding.at).collect();
    assert_eq!(warned, [".b.md.icloud", "a (Ada's conflicted copy 2026-01-31).md"]);
}

#[test]
fn a_file_that_is_on_its_way_is_waited_for() {
    let folders = Folders::new();
    let vault = folders.vault();
    let quickest = (0..5).map(|round| {
        let start = Instant::now();
        vault.write(&at("ours.md"), &format!("round {round}")).unwrap();
        start.elapsed()
    });
    assert!(quickest.skip(1).min().unwrap() < Duration::from_millis(1500), "our own writes need no waiting");
    // Someone else has begun to write.
    let begun = folders.begun_by_another("theirs.md");
    vault.update(&at("theirs.md"), |old| Ok([old.unwrap_or_default(), b" ours"].concat())).unwrap();
    assert!(begun.elapsed() >= SETTLED, "it was waited for");
    assert_eq!(vault.read(&at("theirs.md")).unwrap(), "theirs ours");
}

#[test]
fn what_has_come_to_rest_can_be_changed_whatever_it_looks_like() {
    let folders = Folders::new();
    let vault = folders.vault();
    // Made empty by another program, long ago; and by a machine whose clock is ahead.
    folders.place("empty.md", "");
    folders.place("ahead.md", "from tomorrow");
    let path = folders.tree.path().join("ahead.md");
    let ahead = std::time::SystemTime::now() + Duration::from_secs(86_400);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(ahead).unwrap();
    for name in ["empty.md", "ahead.md"] {
        vault.write(&at(name), "ours").unwrap();
        assert_eq!(vault.read(&at(name)).unwrap(), "ours");
    }
}

#[test]
fn what_another_program_is_changing_is_waited_for_whatever_we_did_before() {
    let folders = Folders::new();
    let vault = folders.vault();
    let edit = |edit: Edit| vault.apply(&Change { edits: vec![edit], note: Note::default() }).unwrap();
    let append = |name: &str| Edit::Append { at: at(name), bytes: b"ours\n"[..].into(), expect: Expect::Any };
    edit(append("grown.md"));
    edit(append("moved.md"));
    edit(Edit::Rename { from: at("moved.md"), to: at("here.md"), expect: Expect::Any });
    for name in ["grown.md", "here.md"] {
        let begun = folders.begun_by_another(name);
        edit(append(name));
        assert!(begun.elapsed() >= SETTLED, "{name} was waited for");
        assert_eq!(vault.read(&at(name)).unwrap(), "theirsours\n", "{name}");
    }
}

#[test]
fn no_file_is_made_that_would_not_be_listed() {
    let folders = Folders::new();
    let vault = folders.vault();
    let name = "a (Ada's conflicted copy 2026-01-31).md";
    let refused = vault.write(&at(name), "x").unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.message().contains("is the name of a conflict copy"), "{refused}");
    assert!(!folders.tree.path().join(name).exists());
    // One that is there can be changed, and taken back.
    folders.place(name, "theirs");
    vault.write(&at(name), "ours").unwrap();
    let edits = vec![Edit::Delete { at: at(name), expect: Expect::Any }];
    vault.apply(&Change { edits, note: Note::default() }).unwrap();
    vault.write(&at(name), "ours").unwrap();
}

const RECORD: &str = "{\"id\":\"ID\",\"content\":\"C\",\"updated_at\":\"2026-01-01T00:00:00Z\"}\n";

fn record(id: &str, content: &str) -> String {
    RECORD.replace("ID", id).replace('C', content)
}

fn entity(observations: &[&str]) -> String {
    let numbered = observations.iter().enumerate().map(|(index, text)| format!("{}. {text}\n", index + 1));
    let lines: String = numbered.collect();
    format!("# Entity: Ada\n**Type**: person\n\n## Observations\n{lines}")
}

#[test]
fn copies_are_merged_at_the_level_of_what_they_mean() {
    let folders = Folders::new();
    let store = folders.vault();
    let base = "one\ntwo\nthree\nfour\nfive\n";
    store.write(&at("files/plan.md"), base).unwrap();
    store.write(&at("files/plan.md"), &base.replace("one", "ONE")).unwrap();
    store.write(&at("records/tasks.jsonl"), &(record("a", "1") + &record("b", "1"))).unwrap();
    store.write(&at("knowledge/entities/person/ada.md"), &entity(&["likes tea", "lives in Bern"])).unwrap();
    drop(store);
    folders.place("files/plan.sync-conflict-20260131-120000-ABCDEFG.md", &base.replace("five", "FIVE"));
    folders.place(
        "records/tasks (conflicted copy ada 2026-01-31 120000).jsonl",
        &(record("a", "1") + &record("c", "1")),
    );
    folders.place(
        "knowledge/entities/person/ada (Conflicted copy laptop 202601311200).md",
        &entity(&["likes tea", "plays chess"]),
    );
    folders.place("files/marked.md", "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n");
    let memory = folders.bare();
    let found = merging::find(memory.store()).unwrap();
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.contains(&Conflict::Markers { at: "files/marked.md".into(), lines: vec![2] }));
    let mut by = Vec::new();
    for conflict in found {
        if let Conflict::Copy { at: copy, .. } = conflict {
            by.push(merging::merge_copy(&memory, Note::default(), &at(&copy), None).unwrap().outcome.by);
            assert!(!memory.store().exists(&at(&copy)).unwrap());
            let last = memory.store().backend().history(&Default::default()).unwrap().remove(0);
            let kept = memgrove::backend::Moment::Before(last.change);
            assert!(
                memory.store().backend().read_past(&at(&copy), &kept).unwrap().is_some(),
                "{copy} is kept"
            );
        }
    }
    assert_eq!(by, ["lines", "entities", "records"]);
    let read = |key: &str| memory.store().read(&at(key)).unwrap();
    assert_eq!(read("files/plan.md"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(read("records/tasks.jsonl"), record("a", "1") + &record("b", "1") + &record("c", "1"));
    assert_eq!(
        read("knowledge/entities/person/ada.md"),
        entity(&["likes tea", "lives in Bern", "plays chess"])
    );
    assert!(read("files/marked.md").contains("<<<<<<< HEAD"), "never resolved");
}

#[test]
fn lines_that_the_copy_never_had_are_not_taken_for_deleted() {
    let folders = Folders::new();
    let store = folders.vault();
    let mut text = "a\nb\nc\nd\n".to_owned();
    for line in ["", "e\n", "f\n", "g\n"] {
        text.push_str(line);
        store.write(&at("files/plan.md"), &text).unwrap();
        store.write(&at("files/other.md"), &text).unwrap();
    }
    drop(store);
    // Made of the first version, and of none.
    folders.place("files/plan.sync-conflict-20260131-120000-ABCDEFG.md", "A\nb\nc\nd\n");
    folders.place("files/other.sync-conflict-20260131-120000-ABCDEFG.md", "b\nc\nd\nf\nz\ng\n");
    let memory = folders.bare();
    let merge = |name: &str| {
        let copy = at(&format!("files/{name}.sync-conflict-20260131-120000-ABCDEFG.md"));
        merging::merge_copy(&memory, Note::default(), &copy, None).map(|done| done.outcome.by)
    };
    assert_eq!(merge("plan").unwrap(), "lines");
    assert_eq!(memory.store().read(&at("files/plan.md")).unwrap(), "A\nb\nc\nd\ne\nf\ng\n");
    assert_eq!(merge("other").unwrap_err().kind(), Kind::Conflict, "`e` is in doubt");
    assert_eq!(memory.store().read(&at("files/other.md")).unwrap(), text);
}

#[test]
fn a_file_that_was_never_changed_is_what_its_copy_was_made_of() {
    let folders = Folders::new();
    let store = folders.vault();
    let text = "a\nb\nc\n";
    store.write(&at("files/once.md"), text).unwrap();
    store.write(&at("files/other.md"), text).unwrap();
    // A note that both changed, in different places.
    store.write(&at("notes/garden.md"), NOTE).unwrap();
    store.write(&at("notes/garden.md"), &NOTE.replace("a spade", "a rake").replace("00Z", "08Z")).unwrap();
    drop(store);
    let copy = |name: &str| format!("{name}.sync-conflict-20260131-120000-ABCDEFG.md");
    folders.place(&copy("files/once"), "a\nBB\nc\n");
    folders.place(&copy("files/other"), "x\ny\nc\n");
    folders.place(&copy("notes/garden"), &NOTE.replace("a pond", "a lake").replace("00Z", "09Z"));
    let memory = folders.bare();
    let merge = |name: &str| {
        merging::merge_copy(&memory, Note::default(), &at(&copy(name)), None).map(|done| done.outcome.by)
    };
    assert_eq!(merge("files/once").unwrap(), "theirs");
    assert_eq!(memory.store().read(&at("files/once.md")).unwrap(), "a\nBB\nc\n");
    assert_eq!(merge("files/other").unwrap_err().kind(), Kind::Conflict, "too little is the same");
    assert_eq!(merge("notes/garden").unwrap(), "notes");
    let merged = NOTE.replace("a pond", "a lake").replace("a spade", "a rake").replace("00Z", "09Z");
    assert_eq!(memory.store().read(&at("notes/garden.md")).unwrap(), merged);
}

#[test]
fn what_cannot_be_merged_is_left_for_a_person() {
    let folders = Folders::new();
    folders.place("a.md", "ours\n");
    folders.place("a (Ada's conflicted copy 2026-01-31).md", "theirs\n");
    folders.place("gone (Ada's conflicted copy 2026-01-31).md", "only here\n");
    folders.place("b.md", "---\nid: 7\n---\nx\n");
    folders.place("b 2.md", "---\nid: 7\n---\ny\n");
    folders.place("c.md", "x\n");
    folders.place("c 2.md", "a note of its own\n");
    let memory = folders.bare();
    let copies: Vec<String> = merging::find(memory.store())
        .unwrap()
        .into_iter()
        .filter_map(|conflict| match conflict {
            Conflict::Copy { at, .. } => Some(at),
            Conflict::Perhaps { at, of, .. } => {
                assert_eq!((&*at, &*of), ("c 2.md", "c.md"));
                None
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let wanted =
        ["a (Ada's conflicted copy 2026-01-31).md", "b 2.md", "gone (Ada's conflicted copy 2026-01-31).md"];
    assert_eq!(copies, wanted, "`c 2.md` is a note of its own");
    let refused = merging::merge_copy(&memory, Note::default(), &at(wanted[0]), None).unwrap_err();
    assert_eq!(refused.message(), "`a.md` and its copy have no common version in the history");
    merging::merge_copy(&memory, Note::default(), &at(wanted[0]), Some(Side::Theirs)).unwrap();
    merging::merge_copy(&memory, Note::default(), &at(wanted[2]), None).unwrap();
    assert_eq!(memory.store().read(&at("a.md")).unwrap(), "theirs\n");
    assert_eq!(memory.store().read(&at("gone.md")).unwrap(), "only here\n");
    // Nothing says that `c 2.md` is a copy; only who says which of the two to take may say that it is.
    let doubtful = merging::merge_copy(&memory, Note::default(), &at("c 2.md"), None).unwrap_err();
    assert_eq!(doubtful.kind(), Kind::Invalid);
    merging::merge_copy(&memory, Note::default(), &at("c 2.md"), Some(Side::Theirs)).unwrap();
    assert_eq!(memory.store().read(&at("c.md")).unwrap(), "a note of its own\n");
    let unnamed = merging::merge_copy(&memory, Note::default(), &at("c.md"), None).unwrap_err();
    assert_eq!(unnamed.message(), "`c.md` is not named like a conflict copy");
}

#[test]
fn copies_of_nodes_are_known_by_their_id() {
    let folders = Folders::new();
    let node = "{\n  \"id\": \"mem_a_001\",\n  \"type\": \"project\"\n}\n";
    folders.place("graph/_content/nodes/mem_a_001.meta.json", node);
    let copies = ["mem_a_001.meta (1).json", "mem_a_001.meta 2.json", "mem_a_001.meta-LAPTOP.json"];
    for name in copies.iter().chain(&["mem_a_001.meta.json.conflict1"]) {
        folders.place(&format!("graph/_content/nodes/{name}"), &node.replace("project", "task"));
    }
    let found = merging::find(folders.bare().store()).unwrap();
    assert_eq!(found.len(), 4, "{found:?}");
    let of = "graph/_content/nodes/mem_a_001.meta.json";
    assert!(
        found.iter().all(|one| matches!(one, Conflict::Copy { of: base, .. } if base == of)),
        "{found:?}"
    );
}

const NOTE: &str = "# Garden

- roses by the wall
- a pond

## Tools

- a spade

## Links

- [[garden/roses]] - roses, care

## Metadata

last_updated: 2026-01-01T00:00:00Z
";

fn merged_note(base: Option<&str>, ours: &str, theirs: &str) -> merging::Merged {
    merging::merge(&at("notes/garden.md"), &merging::Texts { base, ours, theirs }).unwrap()
}

#[test]
fn notes_are_merged_by_block() {
    let ours = NOTE.replace("- a pond", "- a pond with carp\n- a hedge").replace("00:00:00Z", "08:00:00Z");
    let theirs = NOTE
        .replace("- a spade", "- a spade\n- a rake\n\nThe shed is locked.")
        .replace("- roses by the wall\n", "")
        .replace("roses, care", "roses, care, pruning")
        .replace("## Metadata", "- [[garden/pond]] - water\n\n## Metadata")
        .replace("00:00:00Z", "09:00:00Z\nsplit_from: home");
    let merged = merged_note(Some(NOTE), &ours, &theirs);
    assert_eq!((merged.by.as_str(), merged.clashes), ("notes", 0));
    let wanted = "# Garden

- a pond with carp
- a hedge

## Tools

- a spade
- a rake

The shed is locked.

## Links

- [[garden/roses]] - roses, care, pruning
- [[garden/pond]] - water

## Metadata

last_updated: 2026-01-01T09:00:00Z
split_from: home
";
    assert_eq!(merged.text, wanted);
    assert_eq!(merged_note(Some(NOTE), &theirs, &ours).clashes, 0);
    // What both changed differently is there twice.
    let merged = merged_note(Some(NOTE), &NOTE.replace("a pond", "a lake"), &NOTE.replace("a pond", "a sea"));
    assert!(merged.text.contains("- a lake\n") && merged.text.contains("- a sea\n"), "{}", merged.text);
    assert!(!merged.text.contains("a pond"), "{}", merged.text);
    // Without a common version nothing is removed.
    let merged = merged_note(None, &ours, &theirs);
    for block in
        ["roses by the wall", "a pond\n", "a pond with carp", "a hedge", "a rake", "The shed is locked."]
    {
        assert!(merged.text.contains(block), "{block}: {}", merged.text);
    }
}

proptest::proptest! {
    /// Whatever either side adds is there, once; what one side removes is not.
    #[test]
    fn no_block_of_a_note_is_lost_in_a_merge(
        base in proptest::collection::btree_set(0..40_u8, 0..12),
        ours in proptest::collection::vec((0..40_u8, proptest::bool::ANY), 0..12),
        theirs in proptest::collection::vec((0..40_u8, proptest::bool::ANY), 0..12),
    ) {
        let text = |facts: &std::collections::BTreeSet<u8>| {
            let lines: String = facts.iter().map(|fact| format!("- fact {fact}\n")).collect();
            format!("# Facts\n\n{lines}")
        };
        let changed = |changes: &[(u8, bool)]| {
            let mut facts = base.clone();
            for (fact, there) in changes {
                let _ = if *there { facts.insert(*fact) } else { facts.remove(fact) };
            }
            facts
        };
        let (ours, theirs) = (changed(&ours), changed(&theirs));
        let merged = merged_note(Some(&text(&base)), &text(&ours), &text(&theirs)).text;
        for fact in 0..40_u8 {
            let wanted = match (base.contains(&fact), ours.contains(&fact), theirs.contains(&fact)) {
                (true, ours, theirs) => ours && theirs,
                (false, ours, theirs) => ours || theirs,
            };
            let times = merged.lines().filter(|line| *line == format!("- fact {fact}")).count();
            proptest::prop_assert_eq!(times, usize::from(wanted), "fact {} in\n{}", fact, merged);
        }
    }
}
