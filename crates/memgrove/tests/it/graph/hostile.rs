//! Values that want to break something.

use memgrove::shapes::graph::{Contents, Existing, Form, NewNode, Query, Update};
use memgrove::{Kind, Locator};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Fixture, link, note, object};

#[test]
fn ids_lead_nowhere() {
    let fixture = Fixture::new();
    fixture.node("a", json!({}));
    for id in [
        "../a",
        "a/b",
        "",
        ".",
        "..",
        "a\0b",
        "mem_a_001.meta",
        "mem_a_001/../x",
        "_system/registry",
        "a.b",
        "CON",
    ] {
        let known = fixture.graph.node(id).map(drop).unwrap_err();
        assert_eq!(known.kind(), Kind::NotFound, "{id:?}: {known}");
        let new = NewNode { id: Some(id.to_owned()), kind: "a".into(), ..NewNode::default() };
        let error = fixture.graph.create(note(), new).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{id:?}: {error}");
        let error = fixture.graph.connect(note(), &link("mem_a_001", "x", id)).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{id:?}: {error}");
    }
    assert_eq!(fixture.graph.counts().unwrap(), (1, 0));
}

#[test]
fn a_false_entry_leads_to_nothing_else() {
    let fixture = Fixture::new();
    fixture.node("a", json!({}));
    fixture.drop_in("files/secret.md", "secret");
    for path in [
        "../files/secret.md",
        "/files/secret.md",
        "_system/registry.json",
        "_content/../../files/secret.md",
        "_content",
    ] {
        let entry = json!({"id": "evil", "type": "a", "storage": {"path": path, "format": "markdown"}});
        fixture.drop_in("graph/_content/nodes/evil.meta.json", entry.to_string());
        let storage = serde_json::from_value(entry["storage"].clone()).unwrap();
        assert!(fixture.graph.content("evil", &storage).is_err(), "{path}");
        assert!(
            fixture.graph.rebuild(note()).is_ok() && fixture.graph.snapshot(None, Contents::Whole).is_ok(),
            "{path}"
        );
        let gone = fixture.graph.delete(note(), "evil", memgrove::shapes::graph::Removal::Cascade, None);
        assert!(gone.is_ok(), "{path}");
    }
    assert_eq!(fixture.text("files/secret.md"), "secret");
    assert!(fixture.store().exists(&Locator::new("graph/_system/registry.json").unwrap()).unwrap());
}

#[test]
fn types_of_every_kind_have_plain_ids() {
    let fixture = Fixture::new();
    for kind in ["../../x", "人物", "a\"b", "NUL", "x".repeat(200).as_str(), "😀", " a ", "mem_"] {
        let node = fixture.node(kind, json!({}));
        assert!(node.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{}", node.id);
        assert_eq!(fixture.beside().node(&node.id).unwrap().it.kind, kind);
    }
    for kind in ["", "  ", "a\nb", "\0", "x".repeat(201).as_str()] {
        let new = NewNode { kind: kind.into(), ..NewNode::default() };
        assert_eq!(fixture.graph.create(note(), new).unwrap_err().kind(), Kind::Invalid, "{kind:?}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(Value::from("\u{2028}\"\\\n\r\0</script>\u{202e}{\"id\":\"mem_a_999\"}")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_properties_and_content_come_back(
        pairs in proptest::collection::vec((any::<String>(), value()), 0..6),
        more in proptest::collection::vec((any::<String>(), value()), 0..3),
        content in proptest::collection::vec(any::<u8>(), 0..200),
        kind in "\\PC{1,20}x",
    ) {
        let fixture = Fixture::new();
        let mut expected = object(Value::Object(pairs.into_iter().collect()));
        let new = NewNode { kind: kind.clone(), properties: expected.clone(), content: Some(content.clone().into()), ..NewNode::default() };
        let id = fixture.graph.create(note(), new).unwrap().outcome.id;
        let set = object(Value::Object(more.into_iter().collect()));
        fixture.graph.update(note(), &id, &Update { set: set.clone(), ..Update::default() }, None).unwrap();
        expected.extend(set);
        fixture.graph.connect(note(), &memgrove::shapes::graph::NewConnection { properties: expected.clone(), ..link(&id, &kind, &id) }).unwrap();
        for folded in [false, true] {
            if folded {
                fixture.graph.fold().unwrap();
            }
            let fresh = fixture.beside();
            let listed = fresh.list(&Query::default()).unwrap().found;
            prop_assert_eq!(&listed[0].properties, &expected);
            prop_assert_eq!(&fresh.connections(&Query::default()).unwrap().found[0].properties, &expected);
            let node = fresh.node(&id).unwrap().it;
            prop_assert_eq!(&node, &listed[0]);
            prop_assert_eq!(&fresh.content(&id, &node.storage.unwrap()).unwrap().bytes, &content);
        }
        let snapshot = fixture.graph.snapshot(None, Contents::Whole).unwrap();
        for form in Form::ALL {
            prop_assert!(!form.print(&snapshot).is_empty());
        }
        let other = Fixture::new();
        let done = other.graph.import(&note(), Form::Json.print(&snapshot).as_bytes(), Existing::Skip).unwrap();
        prop_assert_eq!(done.errors, Vec::<String>::new());
        prop_assert_eq!(&other.graph.node(&id).unwrap().it.properties, &expected);
    }

    #[test]
    fn any_registry_and_tail_is_survived(
        registry in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
        tail in proptest::option::of("[{}\"a-z:,0-9\n\\PC]{0,80}"),
    ) {
        let fixture = Fixture::new();
        fixture.node("a", json!({}));
        if let Some(bytes) = registry {
            fixture.drop_in("graph/_system/registry.json", bytes);
        }
        if let Some(text) = tail {
            fixture.drop_in("graph/_system/registry.tail.jsonl", text);
        }
        let fresh = fixture.beside();
        let _ = fresh.counts();
        fresh.rebuild(note()).unwrap();
        prop_assert_eq!(fixture.beside().counts().unwrap(), (1, 0));
        let new = NewNode { kind: "a".into(), ..NewNode::default() };
        let made = fixture.beside().create(note(), new);
        prop_assert!(made.is_ok());
    }
}
