//! Entities under many processes: nothing is lost, and the lists for people are true at the end.

use std::thread;

use serde_json::json;

use super::mcp::Connection;
use super::sandbox::Sandbox;

const WRITERS: usize = 8;
const WRITES: usize = 15;

#[test]
fn eight_processes_lose_no_observation_and_no_entity() {
    let sandbox = Sandbox::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for write in 0..WRITES {
                    let said = format!("said {writer}-{write}");
                    sandbox.run(&["entity", "store", "Shared", "--type", "Thing", "-o", &said]).ok();
                    let own = format!("own {writer} {write}");
                    sandbox.run(&["entity", "store", &own, "--type", "Thing", "-o", &said]).ok();
                }
            });
        }
    });
    let shared = sandbox.run(&["entity", "load", "Shared"]).ok();
    for writer in 0..WRITERS {
        for write in 0..WRITES {
            assert_eq!(shared.matches(&format!("said {writer}-{write}\n")).count(), 1, "{shared}");
        }
    }
    let index =
        std::fs::read_to_string(sandbox.store().join("knowledge/indexes/by-name.md")).expect("an index");
    assert!(index.contains(&format!("**Count:** {} entities", WRITERS * WRITES + 1)), "{index}");
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
    let after =
        std::fs::read_to_string(sandbox.store().join("knowledge/indexes/by-name.md")).expect("an index");
    assert_eq!(after, index, "a true index is left alone");
}

#[test]
fn servers_share_a_store_and_see_each_other_at_once() {
    let sandbox = Sandbox::new();
    let mut one = Connection::new(&sandbox, &["--tools", "kg"]);
    let mut two = Connection::new(&sandbox, &["--tools", "kg"]);
    for round in 0..20 {
        let name = format!("round {round}");
        let entity = json!({"entities": [{"name": name, "entityType": "t", "observations": ["x"]}]});
        let (writer, reader) = if round % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
        assert_eq!(writer.call("create_entities", entity)["structuredContent"]["entities"][0]["name"], name);
        let found = reader.call("search_nodes", json!({"query": name}));
        assert_eq!(found["structuredContent"]["entities"][0]["name"], name, "{found}");
    }
    let file = sandbox.store().join("knowledge/entities/t/round-7.md");
    let text = std::fs::read_to_string(&file).expect("an entity").replace("1. x", "1. edited by hand");
    std::fs::write(&file, text).expect("a person may write");
    // What did not go through memgrove is seen at once in a small store, and soon on a busy machine.
    let seen = (0..100).any(|_| {
        thread::sleep(std::time::Duration::from_millis(20));
        let found = one.call("search_nodes", json!({"query": "by hand"}));
        found["structuredContent"]["entities"][0]["name"] == "round 7"
    });
    assert!(seen, "a hand edit is found");
    assert_eq!((one.close(), two.close()), (0, 0));
    let index =
        std::fs::read_to_string(sandbox.store().join("knowledge/indexes/by-name.md")).expect("an index");
    assert!(index.contains("**Count:** 20 entities") && index.contains("edited by hand"), "{index}");
}

/// What an observation is called does not change when another before it ceases to hold.
#[test]
fn numbers_of_observations_are_those_that_addresses_take() {
    let sandbox = Sandbox::new();
    sandbox.run(&["entity", "store", "Ann", "--type", "person", "-o", "lives in Rome", "-o", "sings"]).ok();
    let moved = ["entity", "store", "Ann", "-o", "lives in Oslo", "--supersedes", "lives in Rome"];
    sandbox.run(&moved).ok();
    let shown = sandbox.run(&["entity", "load", "Ann"]).ok();
    assert!(shown.contains("\n2. sings\n3. lives in Oslo"), "{shown}");
    let loaded = sandbox.run(&["entity", "load", "Ann", "--json"]).json();
    for one in loaded["entities"][0]["observations"].as_array().expect("observations") {
        let address = format!("entity:person/Ann#{}", one["number"]);
        assert_eq!(sandbox.run(&["read", &address]).ok().trim(), one["text"]);
    }
    sandbox.run(&["forget", "entity:person/Ann#2"]).ok();
    let shown = sandbox.run(&["entity", "load", "Ann"]).ok();
    assert!(!shown.contains("sings") && shown.contains("\n2. lives in Oslo"), "{shown}");
}

#[test]
#[cfg(unix)]
fn the_servers_file_may_be_a_link_to_nothing_yet_and_damaged_lines_are_told() {
    let sandbox = Sandbox::new();
    let (link, folder) = (sandbox.project().join("link.jsonl"), sandbox.project().join("data"));
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("memory.jsonl");
    std::os::unix::fs::symlink("data/memory.jsonl", &link).expect("a link");
    let mut command = sandbox.memgrove(&["mcp", "--tools", "kg"]);
    command.env("MEMORY_FILE_PATH", &link);
    let mut server = Connection::over(command);
    let entity = json!({"entities": [{"name": "Ann", "entityType": "t", "observations": ["x"]}]});
    let made = server.call("create_entities", entity);
    let text = std::fs::read_to_string(&file);
    assert!(text.is_ok_and(|text| text.contains("Ann")), "made where the link leads: {made}");
    std::fs::write(&file, "oops\nwhat\n").expect("written");
    let told = server.call("read_graph", json!({}));
    let report = told["content"][1]["text"].as_str().unwrap_or_default();
    assert!(report.starts_with("lines 1, 2 of the memory file are damaged; they were left out"), "{told}");
    assert_eq!(server.close(), 0);
}

/// A field that is misspelled must not be lost without a word.
#[test]
fn a_batch_takes_lines_and_refuses_what_it_does_not_know() {
    let sandbox = Sandbox::new();
    let one = json!({"name": "A", "observations": ["x"]});
    let two = json!({"name": "B", "type": "t", "observations": [{"text": "y", "valid_from": "2026-01-01"}]});
    let stored = sandbox.feed(&["entity", "batch"], format!("{one}\n{two}\n")).ok();
    assert!(stored.contains("created entity:general/A") && stored.contains("created entity:t/B"), "{stored}");
    let of = |field: &str, value| {
        let mut one = json!({"name": "Q", "type": "t", "observations": ["x"]});
        one[field] = value;
        one
    };
    for (given, expected) in [
        (of("tag", json!(["a"])), "unknown field `tag`"),
        (of("relation", json!([])), "unknown field `relation`"),
        (of("observations", json!([{"text": "x", "validFrom": "2026"}])), "unknown field `validFrom`"),
        (of("observations", json!([5])), "an observation: a text"),
        (of("observations", json!([" "])), "an observation is empty"),
        (of("relations", json!([{"type": "knows", "to": "A", "since": "2026"}])), "unknown field `since`"),
        (of("relations", json!([{"type": "knows", "to": ""}])), "the relation `knows:` leads to no entity"),
    ] {
        let text = json!([{"name": "P", "observations": ["z"]}, given]).to_string();
        let told = sandbox.run(&["entity", "batch", "--entities", &text]).fails(2);
        assert!(told.contains("entities[1]: ") && told.contains(expected), "{told}");
    }
    sandbox.run(&["entity", "load", "P"]).fails(3);
    assert!(sandbox.run(&["entity", "batch", "--text", "[]"]).fails(2).contains("there are no entities"));
}

#[test]
fn nothing_empty_is_kept() {
    let sandbox = Sandbox::new();
    let store = |option: &str, value: &str| {
        sandbox.run(&["entity", "store", "Ann", "-o", "sings", option, value]).fails(2)
    };
    for said in ["", "   "] {
        let told = store("-o", said);
        assert!(told.starts_with("error: an observation is empty\n  hint: leave it out"), "{told}");
    }
    assert!(store("--relation", "works-at:").contains("the relation `works-at:` leads to no entity"));
    assert!(store("--relation", ":Acme").contains("the relation `:Acme` has no type"));
    sandbox.run(&["entity", "load", "Ann"]).fails(3);
    for (option, value) in [("-p", "=v"), ("-p", " =v"), ("--properties", "{\"\":1}")] {
        let told = sandbox.run(&["node", "create", "idea", option, value]).fails(2);
        assert!(told.contains("a property needs a name, as in status=active"), "{told}");
    }
}

/// Models see the text of the command line in the description of the argument.
#[test]
fn a_relation_is_taken_as_a_text_or_as_an_object() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "entities"]);
    let relations = json!(["works-at:Acme", {"type": "knows", "to": "Bob"}]);
    let stored = json!({"name": "Ann", "type": "person", "observations": ["sings"], "relations": relations});
    let told = mcp.call("entity_store", stored);
    assert_eq!(told["isError"], false, "{told}");
    let loaded = mcp.call("entity_load", json!({"names": ["Ann"]})).to_string();
    assert!(loaded.contains("works-at") && loaded.contains("Acme") && loaded.contains("Bob"), "{loaded}");
    let wrong = mcp.call("entity_store", json!({"name": "Ann", "relations": ["Acme"]}));
    let told = wrong["content"][0]["text"].as_str().unwrap_or_default();
    assert!(
        wrong["isError"] == true && told.contains("`Acme` is not a relation such as works-at:Acme"),
        "{told}"
    );
    mcp.close();
}
