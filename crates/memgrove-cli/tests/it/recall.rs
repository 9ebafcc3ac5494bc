//! Recalling from real processes: every address can be read, and a server misses no edit.

use std::fs;

use serde_json::json;

use super::mcp::Connection;
use super::sandbox::Sandbox;

/// A store in which every shape says something of kestrels.
fn kestrels() -> Sandbox {
    let sandbox = Sandbox::new();
    let text = "# One\nA kestrel hovers.\n\n# Two\nThe kestrel hunts voles.\n";
    sandbox.feed(&["file", "create", "birds.md"], text).ok();
    sandbox.feed(&["file", "create", "short.txt"], "One more kestrel.\n").ok();
    sandbox.run(&["remember", "The kestrel nests in May"]).ok();
    sandbox.run(&["remember", "Ann has seen a kestrel", "--about", "Ann"]).ok();
    sandbox.run(&["note", "write", "Kestrel watching needs patience"]).ok();
    sandbox.run(&["node", "create", "bird", "-p", "title=Kestrel", "--content", text]).ok();
    sandbox.run(&["node", "create", "place", "-p", "title=Kestrel Tower"]).ok();
    let connect = ["connection", "create", "mem_bird_001", "lives_in", "mem_place_001"];
    sandbox.run(&[&connect[..], &["--content", "The kestrel came in spring."]].concat()).ok();
    sandbox.run(&[&connect[..], &["-p", "since=the kestrel year"]].concat()).ok();
    sandbox
}

#[test]
fn every_address_that_recall_gives_can_be_read() {
    let sandbox = kestrels();
    let found = sandbox.run(&["--json", "recall", "kestrel", "--budget", "5000"]).json();
    let hits = found["hits"].as_array().expect("hits");
    let mut kinds = std::collections::BTreeSet::new();
    for hit in hits {
        // What is linked with a kestrel is found too, though it does not say so.
        let says = hit["text"].as_str().unwrap_or_default().to_lowercase().contains("kestrel");
        let alike = hit["alike"].as_array().cloned().unwrap_or_default();
        for address in std::iter::once(&hit["address"]).chain(&alike) {
            let address = address.as_str().expect("an address");
            kinds.insert(address.split(':').next().unwrap_or_default().to_owned());
            let read = sandbox.run(&["read", address]).ok();
            assert!(!read.trim().is_empty(), "{address}");
            assert!(!says || read.to_lowercase().contains("kestrel"), "{address}: {read}");
        }
    }
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    assert_eq!(kinds, ["connection", "entity", "file", "node", "note", "record"]);
    let told = sandbox.run(&["--json", "recall", "kestrel shape:graph", "--budget", "5000"]).json();
    let told: Vec<&str> =
        told["hits"].as_array().expect("hits").iter().filter_map(|hit| hit["address"].as_str()).collect();
    assert!(
        told.contains(&"node:mem_bird_001#properties") && told.contains(&"node:mem_place_001"),
        "{told:?}"
    );
}

#[test]
fn a_server_sees_every_edit_by_its_next_search() {
    let sandbox = kestrels();
    let mut server = Connection::new(&sandbox, &[]);
    let mut recall = |query: &str| server.call("recall", json!({ "query": query })).to_string();
    // Until every folder is watched the files are listed, and then no more.
    for _ in 0..3 {
        assert!(recall("hovers").contains("hovers"));
    }
    let files = sandbox.store().join("files");
    for round in 0..5 {
        fs::write(files.join("birds.md"), format!("A merlin{round} sits.\n")).expect("written");
        assert!(recall(&format!("merlin{round}")).contains(&format!("merlin{round} sits")));
        fs::create_dir_all(files.join(format!("deep{round}/er"))).expect("made");
        let inner = files.join(format!("deep{round}/er/hobby.md"));
        fs::write(&inner, format!("A hobby{round} flies.\n")).expect("written");
        assert!(recall(&format!("hobby{round}")).contains(&format!("hobby{round} flies")));
        fs::rename(files.join(format!("deep{round}")), files.join(format!("moved{round}"))).expect("moved");
        assert!(recall(&format!("hobby{round}")).contains(&format!("moved{round}/er/hobby.md")));
        fs::remove_dir_all(files.join(format!("moved{round}"))).expect("removed");
        assert!(!recall(&format!("hobby{round}")).contains(&format!("hobby{round} flies")));
        sandbox.run(&["remember", &format!("The osprey{round} dives")]).ok();
        assert!(recall(&format!("osprey{round}")).contains(&format!("osprey{round} dives")));
    }
}
