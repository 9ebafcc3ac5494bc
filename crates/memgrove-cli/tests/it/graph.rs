//! The graph under many writers, and stores carried elsewhere.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use super::mcp::Connection;
use super::sandbox::{Ran, Sandbox};

const WRITERS: usize = 8;

/// Ids as the program tells them: `created node:mem_a_001 (change 3)`.
fn made(text: &str) -> String {
    let word = text.split_whitespace().nth(1).unwrap_or_else(|| panic!("no id in {text:?}"));
    word.trim_start_matches("node:").trim_start_matches("connection:").to_owned()
}

/// Everything that was made is there, once, and nothing else.
fn check(sandbox: &Sandbox, nodes: &[String], connections: &[String]) {
    let distinct: BTreeSet<&String> = nodes.iter().chain(connections).collect();
    assert_eq!(distinct.len(), nodes.len() + connections.len(), "an id was given twice");
    let export: Value = serde_json::from_str(&sandbox.run(&["graph", "export"]).ok()).expect("JSON");
    let ids = |name: &str| -> BTreeSet<String> {
        let all = export[name].as_array().expect("a list").iter();
        all.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids("nodes"), nodes.iter().cloned().collect());
    assert_eq!(ids("connections"), connections.iter().cloned().collect());
    let registry = sandbox.run(&["graph", "check"]).ok();
    let counts = format!("{} nodes and {} connections\nall is well\n", nodes.len(), connections.len());
    assert_eq!(registry, counts);
    // A reader that knows only the registry finds it whole.
    let text =
        std::fs::read_to_string(sandbox.store().join("graph/_system/registry.json")).expect("a registry");
    serde_json::from_str::<Value>(&text).expect("valid JSON");
}

#[test]
fn eight_processes_create_and_connect_and_lose_nothing() {
    let sandbox = Sandbox::new();
    let hub = made(&sandbox.run(&["node", "create", "hub"]).ok());
    let rounds = 12;
    let (mut nodes, mut connections) = (vec![hub.clone()], Vec::new());
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (sandbox, hub) = (&sandbox, &hub);
                scope.spawn(move || {
                    let (mut nodes, mut connections) = (Vec::new(), Vec::new());
                    for round in 0..rounds {
                        let content = format!("{writer}-{round}");
                        let node =
                            made(&sandbox.run(&["node", "create", "part", "--content", &content]).ok());
                        let one = sandbox.run(&["connection", "create", &node, "part_of", hub]).ok();
                        connections.push(made(&one));
                        nodes.push(node);
                    }
                    (nodes, connections)
                })
            })
            .collect();
        for writer in writers {
            let (made_nodes, made_connections) = writer.join().expect("a writer");
            nodes.extend(made_nodes);
            connections.extend(made_connections);
        }
    });
    assert_eq!(nodes.len(), WRITERS * rounds + 1);
    check(&sandbox, &nodes, &connections);
}

/// Each writer creates, connects, updates and deletes, through a server of its own.
fn through_servers(rounds: usize) {
    let sandbox = Sandbox::new();
    let hub = made(&sandbox.run(&["node", "create", "hub"]).ok());
    let (mut nodes, mut connections) = (vec![hub.clone()], Vec::new());
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (sandbox, hub) = (&sandbox, &hub);
                scope.spawn(move || {
                    let mut mcp = Connection::new(sandbox, &["--tools", "graph"]);
                    let mut call = |name: &str, arguments: Value| {
                        let done = mcp.call(name, arguments);
                        let past = if done["isError"] == true {
                            sandbox.run(&["history", "--limit", "40"]).out
                        } else {
                            String::new()
                        };
                        assert_eq!(done["isError"], false, "{name}: {done}\n{past}");
                        done["content"][0]["text"].as_str().expect("text").to_owned()
                    };
                    let (mut nodes, mut connections) = (Vec::new(), Vec::new());
                    for round in 0..rounds {
                        let properties = json!({"writer": writer, "round": round});
                        let node =
                            made(&call("node_create", json!({"type": "part", "properties": properties})));
                        let one = made(&call(
                            "connection_create",
                            json!({"from": node, "type": "part_of", "to": hub}),
                        ));
                        call("node_update", json!({"id": hub, "properties": {format!("w{writer}"): round}}));
                        if round % 5 == 4 {
                            call("node_delete", json!({"id": node, "cascade": true}));
                        } else {
                            nodes.push(node);
                            connections.push(one);
                        }
                    }
                    assert_eq!(mcp.close(), 0);
                    (nodes, connections)
                })
            })
            .collect();
        for writer in writers {
            let (made_nodes, made_connections) = writer.join().expect("a writer");
            nodes.extend(made_nodes);
            connections.extend(made_connections);
        }
    });
    check(&sandbox, &nodes, &connections);
    let hub = sandbox.run(&["--json", "node", "read", &hub]).json();
    for writer in 0..WRITERS {
        assert_eq!(hub["properties"][format!("w{writer}")], rounds - 1, "an update is lost");
    }
}

#[test]
fn eight_servers_create_connect_update_and_delete_and_lose_nothing() {
    through_servers(20);
}

#[test]
#[ignore = "long: make torture"]
fn torture_eight_servers_300_rounds_each() {
    through_servers(300);
}

#[test]
fn a_binary_file_becomes_a_node_and_comes_back() {
    let sandbox = Sandbox::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    std::fs::write(sandbox.project().join("plan.pdf"), &bytes).expect("a file");
    let id = made(&sandbox.run(&["node", "create", "doc", "--from", "plan.pdf"]).ok());
    assert_eq!(id, "mem_doc_001");
    let output = sandbox.memgrove(&["read", "node:mem_doc_001"]).output().expect("it runs");
    assert_eq!(output.stdout, bytes);
    assert_eq!(
        std::fs::read(sandbox.store().join("graph/_content/nodes/mem_doc_001.pdf")).expect("a file"),
        bytes
    );
    let node = sandbox.run(&["--json", "node", "read", &id]).json();
    assert_eq!((&node["storage"]["format"], &node["content"]), (&json!("pdf"), &Value::Null));
}

fn copied(ran: Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn a_store_is_copied_verified_and_resumed() {
    let sandbox = Sandbox::new();
    for n in 0..200 {
        sandbox
            .run(&["file", "create", &format!("d{}/{n}.md", n % 7), "--text", &format!("text {n}\r\n")])
            .ok();
    }
    sandbox.run(&["node", "create", "project", "--content", "x"]).ok();
    let far = sandbox.path().join("far");
    let far = far.to_str().expect("a plain name");
    let copy = |more: &[&str]| copied(sandbox.run(&[&["--json", "copy", "--to", far], more].concat()));
    let first = copy(&[]);
    assert_eq!(
        (&first["same"], first["differing"].as_array().map(Vec::len)),
        (&json!(0), Some(0)),
        "{first}"
    );
    assert!(first["files"].as_u64().is_some_and(|files| files >= 203), "{first}");
    let read = |path: &str| sandbox.run(&["--store", far, "read", path]).ok();
    assert_eq!(read("d3/3.md"), "text 3\r\n");
    assert_eq!(read("node:mem_project_001"), "x");
    // What a copy that was cut off left out is all that the next one brings.
    sandbox.run(&["--store", far, "file", "delete", "d3/3.md"]).ok();
    let second = copy(&[]);
    assert_eq!(
        (&second["files"], &second["same"]),
        (&json!(1), &json!(first["files"].as_u64().expect("a number") - 1))
    );
    // What is another file there stays, unless it is to be replaced.
    sandbox.run(&["--store", far, "file", "replace", "d3/3.md", "--old", "text", "--new", "other"]).ok();
    let ran = sandbox.run(&["--json", "copy", "--to", far]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(copied(ran)["differing"], json!(["files/d3/3.md"]));
    assert_eq!(read("d3/3.md"), "other 3\r\n");
    assert_eq!(copy(&["--replace"])["replaced"], 1);
    assert_eq!(read("d3/3.md"), "text 3\r\n");
    // Between backends, by the names of their protocols.
    let root = sandbox.store().display().to_string();
    let ram =
        copied(sandbox.run(&["--json", "copy", "--from", &format!("device-local:{root}"), "--to", "ram:"]));
    assert_eq!(ram["files"], first["files"]);
    assert!(sandbox.run(&["copy", "--from", &root, "--to", &root]).fails(2).contains("into itself"));
    assert!(sandbox.run(&["copy", "--from", "/nowhere", "--to", far]).fails(3).contains("no store"));
}

#[test]
fn a_store_that_is_named_is_not_the_one_of_the_environment() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "a"]).ok();
    let root = sandbox.store().display().to_string();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.memgrove(arguments);
        command
            .env("MEMGROVE_BACKEND", "object")
            .env("MEMGROVE_S3_BUCKET", "b")
            .env("MEMGROVE_S3_PREFIX", "cp/");
        let output = command.output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("text"))
    };
    let (code, said) = run(&["copy", "--from", &root, "--to", "backup"]);
    assert!(code == Some(0) && said.starts_with("copied 1 file "), "{said}");
    assert_eq!(std::fs::read(sandbox.project().join("backup/files/a.md")).expect("a file"), b"a");
    // However it is named, a store is not copied into itself.
    for (from, to) in
        [(None, "s3://b/cp"), (Some("s3://b/cp"), "s3://b/cp/"), (Some(&*root), ".memgrove/../.memgrove")]
    {
        let from: Vec<&str> = from.into_iter().flat_map(|from| ["--from", from]).collect();
        let (code, said) = run(&[&["copy", "--to", to], &from[..]].concat());
        assert!(code == Some(2) && said.contains("into itself"), "{from:?} {to}: {said}");
    }
    // A place that cannot be used is not made.
    assert!(sandbox.run(&["copy", "--to", "object:foo"]).fails(2).contains("has no bucket to use"));
    assert!(!sandbox.project().join("foo").exists());
}

#[test]
fn a_copy_goes_where_it_is_meant_to() {
    let sandbox = Sandbox::new();
    sandbox.run(&["node", "create", "a"]).ok();
    let copy = |to: &str| sandbox.run(&["copy", "--to", to]);
    for (to, said) in [
        ("", "has no name"),
        ("sqlite:/x", "`sqlite` is not a protocol"),
        (".memgrove/sub", "lies within it"),
        (".memgrove/not/there/yet", "lies within it"),
        (".", "lies within the target"),
    ] {
        assert!(copy(to).fails(2).contains(said), "{to}");
    }
    assert!(!sandbox.project().join("sqlite:").exists() && !sandbox.project().join("files").exists());
    // A store with a graph of its own knows both afterwards.
    let far = sandbox.path().join("far").display().to_string();
    let there = |arguments: &[&str]| sandbox.run(&[&["--store", &far], arguments].concat());
    there(&["init"]).ok();
    there(&["node", "create", "b"]).ok();
    there(&["connection", "create", "mem_b_001", "is", "mem_b_001"]).ok();
    copy(&far).ok();
    let all = there(&["node", "list"]).ok();
    assert_eq!(all, "node:mem_a_001 a {}\nnode:mem_b_001 b {}\n");
    // What another program has written into the registry alone comes along, too.
    let theirs = json!({"nodes": {"mem_c_001": {"type": "c", "properties": {}}}, "connections": {}});
    let other = sandbox.path().join("other");
    sandbox.run(&["init", &other.display().to_string()]).ok();
    std::fs::create_dir_all(other.join("graph/_system")).expect("a folder");
    std::fs::write(other.join("graph/_system/registry.json"), theirs.to_string()).expect("a file");
    sandbox.run(&["copy", "--from", &other.display().to_string(), "--to", &far]).ok();
    assert!(there(&["node", "list"]).ok().ends_with("node:mem_c_001 c {}\n"));
    there(&["node", "delete", "mem_c_001"]).ok();
    assert!(there(&["graph", "check"]).ok().ends_with("2 nodes and 1 connection\nall is well\n"));
}

#[test]
fn a_node_that_is_too_large_for_a_list_is_shown_shortened() {
    let sandbox = Sandbox::new();
    let long = format!("text={}", "x".repeat(20_000));
    sandbox.run(&["node", "create", "a", "-p", &long, "-p", "n=1"]).ok();
    sandbox.run(&["node", "create", "a"]).ok();
    sandbox.run(&["connection", "create", "mem_a_001", "x", "mem_a_002", "-p", &long]).ok();
    for (verb, one) in
        [("node", "node:mem_a_001 a {\"n\":1,\"text\":\"xxx"), ("connection", "conn_001 mem_a_001 -x-> ")]
    {
        let list = sandbox.run(&[verb, "list"]).ok();
        assert!(list.starts_with(one) && list.len() < 2_000, "{list}");
        assert!(list.contains("long properties are shortened"), "{list}");
    }
    assert!(sandbox.run(&["node", "list"]).ok().contains("1 more: skip the first 1"));
    assert_eq!(sandbox.run(&["node", "list", "--skip", "1"]).ok(), "node:mem_a_002 a {}\n");
}
