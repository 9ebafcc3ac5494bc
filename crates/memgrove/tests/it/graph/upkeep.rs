//! Registries that are lost or damaged, contents that people edit, and errors of the storage.

use memgrove::backend::{Applied, Backend, Capabilities, Change, Content, Level};
use memgrove::backends::Ram;
use memgrove::shapes::graph::{ContentEdit, Contents, NewNode, Query, Removal};
use memgrove::{Error, Kind, Locator, Result, Store};
use serde_json::json;

use super::{Fixture, at, graph_over, link, note};
use crate::hooked::{Hook, Hooked};

fn filled() -> Fixture {
    let fixture = Fixture::new();
    fixture.node("project", json!({"title": "a"}));
    fixture.node_with("project", "content\n");
    fixture.connect("mem_project_001", "before", "mem_project_002");
    fixture
}

#[test]
fn a_lost_registry_is_rebuilt_with_a_report() {
    for folded in [false, true] {
        let fixture = filled();
        if folded {
            fixture.graph.fold().unwrap();
        }
        fixture.node("idea", json!({"n": 1}));
        let before = fixture.graph.snapshot(None, Contents::Whole).unwrap();
        fixture.remove("graph/_system/registry.json");
        let fresh = fixture.beside();
        let mut after = fresh.snapshot(None, Contents::Whole).unwrap();
        after.nodes.sort_by(|a, b| a.it.created.cmp(&b.it.created));
        assert_eq!(after, before, "{folded}");
        let report = fresh.take_report().expect("it says so");
        assert_eq!(
            (report.nodes, report.connections, report.registry.as_deref()),
            (3, 1, Some("it was lost"))
        );
        assert_eq!(fresh.take_report(), None);
        assert_eq!(fixture.beside().counts().unwrap(), (3, 1));
    }
}

#[test]
fn a_registry_and_its_tail_can_both_be_lost() {
    let fixture = filled();
    let before = fixture.graph.snapshot(None, Contents::Whole).unwrap();
    for name in ["registry.json", "registry.tail.jsonl"] {
        fixture.remove(&format!("graph/_system/{name}"));
    }
    assert_eq!(fixture.beside().snapshot(None, Contents::Whole).unwrap(), before);
}

#[test]
fn a_damaged_registry_is_put_aside_and_rebuilt() {
    for damage in ["", "{}", "{\"nodes\": {\"a\"", "[]", "{\"nodes\": 5}", "\0\0\0\0"] {
        let fixture = filled();
        fixture.graph.fold().unwrap();
        let before = fixture.graph.snapshot(None, Contents::Whole).unwrap();
        // The same may happen twice.
        for _ in 0..2 {
            fixture.drop_in("graph/_system/registry.json", damage);
            let fresh = fixture.beside();
            assert_eq!(fresh.snapshot(None, Contents::Whole).unwrap(), before, "{damage:?}");
            assert!(fresh.take_report().unwrap().registry.unwrap().starts_with("it was damaged"));
            let kept = fixture.store().list(&at("graph/_system")).unwrap();
            let mut kept = kept.iter().filter(|at| at.name().starts_with("registry.damaged-"));
            assert_eq!(fixture.text(kept.next().expect("it is kept").key()), damage);
            assert_eq!(kept.next(), None);
        }
    }
}

#[test]
fn a_registry_of_a_newer_form_is_left_alone() {
    let fixture = filled();
    fixture.drop_in("graph/_system/registry.json", "{\"version\": 9, \"nodes\": {}}");
    let error = fixture.beside().counts().unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    assert_eq!(fixture.text("graph/_system/registry.json"), "{\"version\": 9, \"nodes\": {}}");
}

#[test]
fn what_people_do_by_hand_is_seen() {
    let fixture = filled();
    assert!(!fixture.graph.node("mem_project_002").unwrap().edited);
    assert_eq!(fixture.graph.check().unwrap(), []);
    fixture.drop_in("graph/_content/nodes/mem_project_002.md", "edited by hand\n");
    let got = fixture.graph.node("mem_project_002").unwrap();
    assert!(got.edited);
    let content = fixture.graph.content("mem_project_002", &got.it.storage.unwrap()).unwrap();
    assert_eq!(content.bytes, b"edited by hand\n");
    fixture.drop_in("graph/_content/nodes/plan.pdf", b"%PDF".to_vec());
    fixture.drop_in("graph/_content/nodes/mem_project_001.meta.json", "{broken");
    let said: Vec<String> = fixture.graph.check().unwrap().into_iter().map(|finding| finding.what).collect();
    assert_eq!(
        said,
        [
            "1 contents were changed by hand: mem_project_002",
            "1 files with content belong to no node: plan",
            "1 files cannot be read: graph/_content/nodes/mem_project_001.meta.json",
        ]
    );
    let report = fixture.graph.rebuild(note()).unwrap().outcome;
    assert_eq!((report.edited.len(), report.adopted, report.damaged.len()), (1, vec!["plan".to_owned()], 1));
    assert!(!fixture.graph.node("mem_project_002").unwrap().edited);
    assert_eq!(fixture.graph.node("plan").unwrap().it.kind, "unknown");
    assert_eq!(fixture.graph.counts().unwrap(), (3, 1));
    let known = fixture.graph.node("mem_project_001").unwrap().it;
    assert_eq!(known.properties["title"], "a", "the registry still knew what the damaged file said");
    let aside = fixture.store().list(&at("graph/_system/damaged")).unwrap();
    assert_eq!(fixture.text(aside[0].key()), "{broken", "damage is kept");
    assert_eq!(fixture.graph.check().unwrap(), []);
    fixture.drop_in("graph/_content/nodes/nobody.meta.json", "{broken");
    fixture.drop_in("graph/_content/nodes/.DS_Store", "x");
    fixture.graph.rebuild(note()).unwrap();
    let levels: Vec<Level> = fixture.graph.check().unwrap().iter().map(|finding| finding.level).collect();
    assert_eq!(levels, [Level::Error], "what nobody knows better stays");
}

#[test]
fn a_lost_tail_is_seen() {
    for folded in [false, true] {
        let fixture = filled();
        if folded {
            fixture.graph.fold().unwrap();
            fixture.node("idea", json!({}));
        }
        let all = fixture.graph.counts().unwrap();
        fixture.remove("graph/_system/registry.tail.jsonl");
        let fresh = fixture.beside();
        let error = fresh.delete(note(), "mem_project_001", Default::default(), None).unwrap_err();
        assert!(error.message().contains("has 1 connection:"), "{error}");
        assert_eq!(fresh.counts().unwrap(), all);
        let report = fresh.take_report().expect("it says so");
        assert_eq!(report.registry.as_deref(), Some("what came since it was written was lost"));
        assert_eq!(fixture.beside().take_report(), None);
        assert_eq!(fixture.graph.counts().unwrap(), all, "who was there sees it too");
    }
}

#[test]
fn a_registry_of_another_time_is_seen_and_one_of_old_is_believed() {
    let fixture = filled();
    fixture.graph.fold().unwrap();
    let old = fixture.text("graph/_system/registry.json");
    fixture.node("idea", json!({}));
    fixture.graph.fold().unwrap();
    fixture.drop_in("graph/_system/registry.json", old.as_str());
    let fresh = fixture.beside();
    assert_eq!(fresh.counts().unwrap(), (3, 1));
    assert!(fresh.take_report().is_some());
    let unmarked = |name: &str| {
        let text = fixture.text(name);
        let kept = text.lines().filter(|line| !line.contains("\"mark\"") && !line.contains("\"continues\""));
        fixture.drop_in(name, kept.map(|line| format!("{line}\n")).collect::<String>());
    };
    unmarked("graph/_system/registry.json");
    unmarked("graph/_system/registry.tail.jsonl");
    fixture.node("idea", json!({}));
    let fresh = fixture.beside();
    assert_eq!((fresh.counts().unwrap(), fresh.take_report()), ((4, 1), None));
    fresh.fold().unwrap();
    assert!(fixture.text("graph/_system/registry.json").contains("\"mark\""));
    assert_eq!(fixture.beside().counts().unwrap(), (4, 1));
}

#[test]
fn what_nobody_understands_blocks_nothing_and_is_kept() {
    let fixture = filled();
    fixture.graph.fold().unwrap();
    let odd = r#""f1":{"type":"x","properties":5},"f2":{"type":"x","storage":{"path":5}},"f3":{"type":"x"},"#;
    let registry = fixture.text("graph/_system/registry.json");
    let registry = registry.replace("\"nodes\": {", &format!("\"theirs\": [1,2],\n\"nodes\": {{{odd}"));
    fixture.drop_in("graph/_system/registry.json", registry);
    let fresh = fixture.beside();
    assert_eq!(fresh.node("f3").unwrap().it.kind, "x");
    for rebuilt in [false, true] {
        if rebuilt {
            fresh.rebuild(note()).unwrap();
        }
        let found: Vec<String> = fresh.check().unwrap().into_iter().map(|finding| finding.what).collect();
        assert!(found.contains(&"2 entries of the registry cannot be read: f1, f2".to_owned()), "{found:?}");
    }
    let listed = fixture.beside().list(&Query::default()).unwrap();
    assert_eq!(listed.total, 3);
    let registry = fixture.text("graph/_system/registry.json");
    for kept in ["\"theirs\": [1,2]", "\"f1\": {\"type\":\"x\",\"properties\":5}", "{\"path\":5}"] {
        assert!(registry.contains(kept), "{kept} is not in {registry}");
    }
    assert!(fixture.store().exists(&at("graph/_content/nodes/f3.meta.json")).unwrap());
    assert!(!fixture.store().exists(&at("graph/_content/nodes/f1.meta.json")).unwrap());
}

#[test]
fn a_file_that_was_copied_by_hand_is_another_node() {
    let fixture = filled();
    let text = fixture.text("graph/_content/nodes/mem_project_002.meta.json");
    fixture.drop_in("graph/_content/nodes/copy.meta.json", text.as_str());
    assert_eq!(fixture.graph.node("copy").unwrap().it.id, "copy");
    let report = fixture.graph.rebuild(note()).unwrap().outcome;
    assert_eq!(report.misnamed, ["graph/_content/nodes/copy.meta.json"]);
    assert_eq!(fixture.beside().counts().unwrap(), (3, 1));
    let edit = ContentEdit::Write { content: b"mine".to_vec().into(), format: None };
    let edited = fixture.graph.edit(note(), "copy", edit, None).unwrap().outcome;
    assert_eq!(edited.storage.unwrap().path, "_content/nodes/copy.md");
    fixture.drop_in("graph/_content/nodes/copy2.meta.json", text.as_str());
    fixture.graph.delete(note(), "copy2", Removal::Cascade, None).unwrap();
    assert_eq!(fixture.text("graph/_content/nodes/mem_project_002.md"), "content\n", "it was not theirs");
}

#[test]
fn a_content_that_was_edited_by_hand_is_not_what_was_expected() {
    let fixture = filled();
    let version = fixture.graph.node("mem_project_002").unwrap().version.unwrap();
    fixture.drop_in("graph/_content/nodes/mem_project_002.md", "by hand\n");
    let edit = || ContentEdit::Write { content: b"over".to_vec().into(), format: None };
    let refused = [
        fixture.graph.edit(note(), "mem_project_002", edit(), Some(version.as_str())).map(drop),
        fixture.graph.delete(note(), "mem_project_002", Removal::Cascade, Some(version.as_str())).map(drop),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), Kind::Conflict, "{error}");
        assert!(error.message().contains("was changed by hand"), "{error}");
    }
    fixture.graph.edit(note(), "mem_project_002", edit(), None).unwrap();
}

#[test]
fn where_something_else_carries_files_their_names_tell() {
    let store = Store::new(Hooked::<Failing>::default());
    let fixture = Fixture { graph: graph_over(store, 3) };
    let ids: Vec<String> = (0..3).map(|_| fixture.node("a", json!({})).id).collect();
    // Of two tails that were added to at once, one has won.
    let tail = fixture.text("graph/_system/registry.tail.jsonl");
    let theirs = tail.lines().filter(|line| !line.contains(&ids[1])).map(|line| format!("{line}\n"));
    fixture.drop_in("graph/_system/registry.tail.jsonl", theirs.collect::<String>());
    fixture.remove(&format!("graph/_content/nodes/{}.meta.json", ids[2]));
    fixture.drop_in("graph/_content/nodes/half.meta.json", "{\"type\":");
    let fresh = fixture.beside();
    let listed: Vec<String> =
        fresh.list(&Query::default()).unwrap().found.into_iter().map(|node| node.id).collect();
    assert_eq!(listed, ids[..2]);
    assert!(fresh.take_report().is_some());
    let again = fixture.beside();
    assert_eq!((again.counts().unwrap(), again.take_report()), ((2, 0), None), "once is enough");
}

#[test]
fn lines_that_nobody_can_read_are_kept() {
    let fixture = filled();
    let tail = fixture.text("graph/_system/registry.tail.jsonl");
    fixture.drop_in("graph/_system/registry.tail.jsonl", format!("{tail}{{\"torn\n{{\"else\":1}}\n"));
    fixture.node("project", json!({}));
    assert_eq!(fixture.beside().counts().unwrap(), (3, 1));
    fixture.graph.fold().unwrap();
    assert_eq!(fixture.text("graph/_system/registry.unread.jsonl"), "{\"torn\n{\"else\":1}\n");
    assert_eq!(fixture.beside().counts().unwrap(), (3, 1));
}

#[test]
fn a_fold_that_was_cut_off_is_finished() {
    let fixture = filled();
    let tail = fixture.text("graph/_system/registry.tail.jsonl");
    fixture.remove("graph/_system/registry.tail.jsonl");
    fixture.drop_in("graph/_system/registry.folding.jsonl", tail);
    assert_eq!(fixture.beside().counts().unwrap(), (2, 1));
    fixture.node("project", json!({}));
    assert_eq!(fixture.beside().counts().unwrap(), (3, 1));
    fixture.graph.settle().unwrap();
    assert!(!fixture.store().exists(&at("graph/_system/registry.folding.jsonl")).unwrap());
    assert_eq!(fixture.beside().counts().unwrap(), (3, 1));
    assert_eq!(fixture.beside().list(&Query::default()).unwrap().total, 3);
}

#[test]
fn a_tail_is_folded_when_it_has_grown() {
    let fixture = Fixture::new();
    let text = "x".repeat(2000);
    for _ in 0..20 {
        fixture.node("a", json!({"text": text}));
        fixture.graph.settle().unwrap();
    }
    let registry = fixture.text("graph/_system/registry.json");
    assert!(registry.matches("\"type\"").count() >= 8, "it is never far behind");
    assert_eq!(fixture.beside().counts().unwrap(), (20, 0));
}

/// Whoever has just begun need not read a long tail to know which number is next, and gives none twice.
#[test]
fn the_numbers_of_a_long_tail_are_written_down() {
    let fixture = Fixture::new();
    fixture.node("a", json!({"text": "x".repeat(70_000)}));
    let create = |kind: &str, id: Option<&str>| {
        let new = NewNode { kind: kind.into(), id: id.map(str::to_owned), ..NewNode::default() };
        fixture.beside().create(note(), new).unwrap().outcome.id
    };
    let given = || fixture.text("graph/_system/numbers.json");
    let tail = || fixture.text("graph/_system/registry.tail.jsonl").len();
    assert_eq!(create("a", None), "mem_a_002");
    assert_eq!(given(), format!("{{\"mem_a\":2,\"registry.tail.jsonl\":{}}}\n", tail()));
    assert_eq!(create("b", None), "mem_b_001");
    assert_eq!(given(), format!("{{\"mem_a\":2,\"mem_b\":1,\"registry.tail.jsonl\":{}}}\n", tail()));

    // What others say in the tail meanwhile counts too, and what is gone.
    create("a", Some("mem_a_007"));
    fixture.beside().delete(note(), "mem_a_007", Removal::Refuse, None).unwrap();
    assert_eq!(create("a", None), "mem_a_008");
    let staying = fixture.beside();
    let new = || NewNode { kind: "a".into(), ..NewNode::default() };
    assert_eq!(staying.create(note(), new()).unwrap().outcome.id, "mem_a_009");
    create("a", Some("mem_a_020"));
    fixture.beside().delete(note(), "mem_a_020", Removal::Refuse, None).unwrap();
    staying.delete(note(), "mem_a_009", Removal::Refuse, None).unwrap();
    assert_eq!(staying.create(note(), new()).unwrap().outcome.id, "mem_a_021");

    fixture.graph.fold().unwrap();
    assert_eq!(given(), "{\"mem_a\":21,\"mem_b\":1}\n", "a fold begins a short tail");
    assert_eq!(create("a", None), "mem_a_022");
}

/// A storage on which some calls fail.
#[derive(Default)]
struct Failing {
    inner: Ram,
}

impl Hook for Failing {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { sync: true, ..self.inner.capabilities() }
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        match at.name() {
            "mem_bad_001.meta.json" => Err(Error::new(Kind::Io, "the disk is on fire")),
            _ => self.inner.read(at),
        }
    }
    fn apply(&self, change: &Change) -> Result<Applied> {
        match change.note.verb.as_str() {
            "full" => Err(Error::new(Kind::Full, "the disk is full").hint("free some space")),
            _ => self.inner.apply(change),
        }
    }
}

#[test]
fn errors_of_the_storage_say_what_was_being_done() {
    let graph = graph_over(Store::new(Hooked::<Failing>::default()), 3);
    let new = NewNode { kind: "project".into(), ..NewNode::default() };
    let full = memgrove::backend::Note { verb: "full".into(), ..note() };
    let error = graph.create(full, new.clone()).unwrap_err();
    assert_eq!(error.message(), "creating a node of the type `project`: the disk is full");
    assert_eq!((error.kind(), error.hint_text()), (Kind::Full, Some("free some space")));
    let error = graph.node("mem_bad_001").unwrap_err();
    assert_eq!(error.message(), "reading the node `mem_bad_001`: the disk is on fire");
    let error = graph.connect(note(), &link("mem_bad_001", "x", "y")).unwrap_err();
    assert_eq!(error.message(), "connecting `mem_bad_001` to `y`: the disk is on fire");
}

#[test]
fn in_a_replicated_store_ids_are_told_apart_by_chance_too() {
    let graph = graph_over(Store::new(Hooked::<Failing>::default()), 3);
    let new = NewNode { kind: "project".into(), ..NewNode::default() };
    let id = graph.create(note(), new.clone()).unwrap().outcome.id;
    let (number, chance) = id.strip_prefix("mem_project_").unwrap().split_once('_').unwrap();
    assert_eq!((number, chance.len()), ("001", 6));
    assert!(graph.create(note(), new).unwrap().outcome.id.starts_with("mem_project_002_"));
}
