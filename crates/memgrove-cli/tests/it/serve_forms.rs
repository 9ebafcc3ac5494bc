//! What the forms of `memgrove serve` change, and what they must not: nothing that is typed is lost, and nothing that
//! somebody has not seen is overwritten.

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use super::serve::Server;
use super::serve_pages::{sent, shown};

/// What stands in a page between two texts, the first time.
fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let rest = page.split(start).nth(1).unwrap_or_else(|| panic!("{start}: {page}"));
    rest.split(end).next().unwrap_or_default()
}

/// The version of a file that its form holds.
fn version_of(server: &Server, at: &str) -> String {
    let page = shown(&server.get(&format!("/edit?at={at}"), &[]));
    between(&page, "name=\"version\" value=\"", "\"").to_owned()
}

fn led(answer: &super::serve::Answer) -> String {
    answer.header("location").unwrap_or_default().to_owned()
}

#[test]
fn an_undo_is_taken_back_where_it_was_made() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let made = server.post("/api/file_create", &json!({"path": "/memories/a.md", "text": "one"}), &[]).json();
    let made = made["change"].as_str().expect("a change").to_owned();
    let label = |does: &str, change: &str| format!("aria-label=\"{does} change {change}\"");
    assert!(shown(&server.get("/timeline", &[])).contains(&label("Undo", &made)));
    assert_eq!(led(&sent(&server, "/undo", &[("change", &made)])), "/timeline?done=undone");
    let page = shown(&server.get("/timeline", &[]));
    let undo = between(&page, "aria-label=\"Redo change ", "\"").to_owned();
    assert!(page.contains(">undone<") && !page.contains(&label("Undo", &made)), "{page}");
    // What undid it is on another page.
    let before = shown(&server.get(&format!("/timeline?before={undo}"), &[]));
    assert!(before.contains(">undone<") && !before.contains("aria-label=\"Undo"), "{before}");
    assert_eq!(
        led(&sent(&server, "/undo", &[("change", &undo), ("done", "redone")])),
        "/timeline?done=redone"
    );
    let page = shown(&server.get("/timeline", &[]));
    assert!(page.contains(&label("Undo", &made)) && !page.contains(&label("Redo", &undo)), "{page}");
    assert_eq!(server.get("/api/content?address=file:/memories/a.md", &[]).body, b"one");
    server.end();
}

#[test]
fn one_record_goes_back_alone() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let add = |text: &str| {
        let added = server.post("/api/record_add", &json!({"content": text, "type": "core"}), &[]).json();
        added["records"][0]["id"].as_str().expect("an id").to_owned()
    };
    let tea = add("tea");
    server.post("/api/record_update", &json!({"id": tea, "content": "coffee"}), &[]);
    add("cake");
    let page = shown(&server.get(&format!("/record?id={tea}"), &[]));
    let past = between(&page, "href=\"/history?", "\"").replace("&amp;", "&");
    assert!(page.contains(&format!("data-of=\"record:{tea}\"")), "{page}");
    let history = shown(&server.get(&format!("/history?{past}"), &[]));
    assert_eq!(history.matches("<li data-item").count(), 2, "{history}");
    let field = |name: &str| between(&history, &format!("name=\"{name}\" value=\""), "\"").to_owned();
    let (address, to, version) = (field("address"), field("to"), field("version"));
    let diff = shown(&server.get(&format!("/diff?address=record:{tea}&change={to}"), &[]));
    assert!(diff.contains("tea") && diff.contains("importance: medium"), "{diff}");
    let restore = || sent(&server, "/restore", &[("address", &address), ("to", &to), ("version", &version)]);
    assert!(led(&restore()).ends_with("done=restored"));
    let kept = server.get("/api/record_list", &[]).json();
    let mut kept: Vec<&str> = kept["records"]
        .as_array()
        .expect("records")
        .iter()
        .filter_map(|one| one["content"].as_str())
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, ["cake", "tea"]);
    // The page is old by now.
    assert!(led(&restore()).ends_with("changed=yes"));
    let whole = shown(&server.get("/history?at=records/core_memories.jsonl", &[]));
    assert!(whole.contains("Restore takes back every later change of all of them"), "{whole}");
    // What is deleted is found where it can come back.
    server.post("/api/record_delete", &json!({"id": tea}), &[]);
    assert_eq!(
        led(&server.get(&format!("/record?id={tea}"), &[])),
        format!("/history?address=record%3A{tea}")
    );
    server.end();
}

#[test]
fn what_is_typed_into_a_record_outlives_it() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let added = server.post("/api/record_add", &json!({"content": "tea", "type": "task"}), &[]).json();
    let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
    let page = shown(&server.get(&format!("/record?id={id}"), &[]));
    let field = |name: &str| between(&page, &format!("name=\"{name}\" value=\""), "\"").to_owned();
    let (version, kind, status) = (field("version"), field("type"), field("status"));
    server.post("/api/record_delete", &json!({"id": id}), &[]);
    let send = |content: &str, act: &str| {
        let fields = [
            ("id", id.as_str()),
            ("version", &version),
            ("content", content),
            ("tags", "mine"),
            ("category", "drinks"),
            ("importance", "high"),
            ("type", &kind),
            ("status", &status),
            ("act", act),
        ];
        sent(&server, "/record", &fields)
    };
    let orphaned = shown(&send("green tea", "record_update"));
    for kept in
        ["green tea</textarea>", "value=\"mine\"", "value=\"drinks\"", "data-dirty", "Add as a new record"]
    {
        assert!(orphaned.contains(kept), "{kept}: {orphaned}");
    }
    let refused = shown(&send("", "record_add"));
    assert!(refused.contains("Nothing was saved") && refused.contains("value=\"drinks\""), "{refused}");
    assert!(led(&send("green tea", "record_add")).ends_with("done=added"));
    let kept: Value = server.get("/api/record_list", &[]).json();
    let kept = &kept["records"][0];
    assert_eq!(
        (&kept["content"], &kept["type"], &kept["importance"]),
        (&json!("green tea"), &json!("task"), &json!("high"))
    );
    server.end();
}

#[test]
fn a_copy_is_not_taken_over_what_nobody_has_seen() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/file_create", &json!({"path": "/memories/a.md", "text": "ours\n"}), &[]);
    let copy = "files/a.sync-conflict-20260131-120000-ABCDEFG.md";
    std::fs::write(sandbox.store().join(copy), "theirs\n").expect("a file");
    let take = || {
        let page = shown(&server.get("/conflicts", &[]));
        let field = |name: &str| between(&page, &format!("name=\"{name}\" value=\""), "\"").to_owned();
        [field("copy"), field("file")]
    };
    let choose = |[seen_copy, seen_file]: &[String; 2]| {
        let fields = [
            ("at", copy),
            ("of", "files/a.md"),
            ("copy", seen_copy),
            ("file", seen_file),
            ("take", "theirs"),
        ];
        led(&sent(&server, "/conflicts", &fields))
    };
    let seen = take();
    server.post("/api/file_replace", &json!({"path": "/memories/a.md", "old": "ours", "new": "newer"}), &[]);
    assert!(choose(&seen).starts_with("/conflicts?changed="));
    assert_eq!(server.get("/api/content?address=file:/memories/a.md", &[]).body, b"newer\n");
    assert_eq!(choose(&take()), "/conflicts?done=merged");
    assert_eq!(server.get("/api/content?address=file:/memories/a.md", &[]).body, b"theirs\n");
    server.end();
}

#[test]
fn entities_of_one_name_have_their_own_relations() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let entities = json!({"entities": [
        {"name": "Mercury", "type": "planet", "observations": ["hot"], "relations": [{"type": "orbits", "to": "Sun"}]},
        {"name": "Mercury", "type": "person", "observations": ["sings"], "relations": [{"type": "leads", "to": "Queen"}]},
        {"name": "Queen", "type": "band", "observations": ["plays"]},
        {"name": "Probe", "type": "craft", "observations": ["flies"], "relations": [{"type": "visits", "to": "Mercury"}]}]});
    assert_eq!(server.post("/api/entity_batch", &entities, &[]).status, 200);
    let page = |named: &str| shown(&server.get(&format!("/read?address=entity:{named}"), &[]));
    let planet = page("planet/Mercury");
    assert!(planet.contains("orbits") && !planet.contains("leads"), "{planet}");
    assert!(planet.contains("visits") && planet.contains("this, or another of its name"), "{planet}");
    let person = page("person/Mercury");
    assert!(person.contains("leads") && !person.contains("orbits"), "{person}");
    let band = page("band/Queen");
    assert!(band.contains("person%2FMercury.md") && !band.contains("another of its name"), "{band}");
    server.end();
}

#[test]
fn nodes_are_edited_by_way_of_the_graph() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    server.post("/api/node_create", &json!({"type": "doc", "properties": {"title": "Two"}}), &[]);
    let connection = json!({"from": "mem_doc_001", "type": "cites", "to": "mem_doc_002"});
    assert_eq!(server.post("/api/connection_create", &connection, &[]).status, 200);
    let edit = |at: &str, version: &str, text: &str| {
        led(&sent(&server, "/edit", &[("at", at), ("version", version), ("text", text)]))
    };
    let (content, said) =
        ("graph/_content/nodes/mem_doc_001.md", "graph/_content/nodes/mem_doc_002.meta.json");
    let old = version_of(&server, content);
    assert!(edit(content, &old, "two").ends_with("done=saved"));
    assert_eq!(edit(content, &old, "three"), "", "both are shown side by side");
    let meta = std::fs::read_to_string(sandbox.store().join(said)).expect("a file");
    let renamed = meta.replace("Two", "Second").replace("\"doc\"", "\"page\"");
    assert!(edit(said, &version_of(&server, said), &renamed).ends_with("done=saved"));
    // The graph knows of both: what rests on their versions holds.
    for (id, told) in [("mem_doc_001", "two"), ("mem_doc_002", "Second")] {
        let got = server.post("/api/node_read", &json!({"id": id}), &[]).json();
        assert!(got.to_string().contains(told), "{got}");
        let update = json!({"id": id, "properties": {"seen": "yes"}, "expect": got["version"]});
        let done = server.post("/api/node_update", &update, &[]);
        assert_eq!(done.status, 200, "{}", done.json());
    }
    assert!(
        server
            .post("/api/node_list", &json!({"type": "page"}), &[])
            .json()
            .to_string()
            .contains("mem_doc_002")
    );
    // The content of a connection is put as that of a node is.
    let told = server.post("/api/connection_list", &json!({}), &[]).json();
    let id = between(&told.to_string(), "\"id\":\"", "\"").to_owned();
    let put = |headers: &[(&str, &str)], bytes: &[u8]| {
        let (name, value) = server.bearer();
        let headers = [&[(name, value.as_str())][..], headers].concat();
        server.send("PUT", &format!("/api/content?address=connection:{id}"), &headers, bytes).status
    };
    assert_eq!((put(&[("If-None-Match", "*")], b"why"), put(&[("If-None-Match", "*")], b"no")), (200, 412));
    assert_eq!(
        (put(&[("If-Match", "\"0123456789abcdef\"")], b"no"), put(&[("If-Match", "*")], b"because")),
        (412, 200)
    );
    assert_eq!(server.get(&format!("/api/content?address=connection:{id}"), &[]).body, b"because");
    // A node with connections goes with them, if that is said.
    let version = version_of(&server, content);
    let asked = shown(&sent(&server, "/delete", &[("at", content), ("version", &version)]));
    assert!(asked.contains("Delete it with its 1 connection<"), "{asked}");
    let gone = sent(&server, "/delete", &[("at", content), ("version", &version), ("cascade", "yes")]);
    assert!(led(&gone).ends_with("done=deleted"), "{}", shown(&gone));
    // What no page would show is not made, and nothing of it is lost.
    let refused = shown(&sent(&server, "/edit", &[("at", "graph/foo.md"), ("text", "precious")]));
    assert!(
        refused.contains("would not be a memory") && refused.contains("precious</textarea>"),
        "{refused}"
    );
    server.end();
}

#[test]
fn a_page_that_is_old_deletes_nothing() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "two"}), &[]);
    let (name, value) = server.bearer();
    let content = |id: &str| format!("/api/content?address=node:{id}");
    let version = |id: &str| {
        let etag = server.get(&content(id), &[]).header("etag").expect("a version").to_owned();
        etag.trim_matches('"').to_owned()
    };
    let delete = |id: &str, version: &str| {
        let at = format!("graph/_content/nodes/{id}.md");
        sent(&server, "/delete", &[("at", &at), ("version", version)])
    };
    let old = version("mem_doc_001");
    assert_eq!(server.send("PUT", &content("mem_doc_001"), &[(name, &value)], b"newer").status, 200);
    let led = delete("mem_doc_001", &old);
    assert!(
        led.header("location").is_some_and(|to| to.starts_with("/edit?at=") && to.ends_with("changed=yes"))
    );
    assert_eq!(server.get(&content("mem_doc_001"), &[]).body, b"newer");
    assert_eq!(delete("mem_doc_001", &version("mem_doc_001")).status, 303);
    assert_eq!(server.get(&content("mem_doc_001"), &[]).status, 404);
    // What was edited by hand is seen, and so may be deleted.
    std::fs::write(sandbox.store().join("graph/_content/nodes/mem_doc_002.md"), "by hand").expect("a file");
    assert_eq!(delete("mem_doc_002", &version("mem_doc_002")).status, 303);
    server.end();
}

#[test]
fn a_conflict_in_a_record_keeps_all_that_was_typed() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let record = json!({"content": "tea", "type": "core", "tags": ["old"], "category": "food"});
    let id = server.post("/api/record_add", &record, &[]).json()["records"][0]["id"].clone();
    let got = server.post("/api/record_get", &json!({"id": id}), &[]).json();
    let version = got["version"].as_str().expect("a version");
    let theirs = json!({"id": id, "content": "coffee", "tags": ["theirs"]});
    assert_eq!(server.post("/api/record_update", &theirs, &[]).status, 200);
    let id = id.as_str().expect("an id");
    let fields = [
        ("id", id),
        ("version", version),
        ("content", "green tea"),
        ("tags", "mine, also mine"),
        ("category", "drinks"),
        ("importance", "high"),
        ("act", "record_update"),
    ];
    let page = shown(&sent(&server, "/record", &fields));
    for kept in [
        "value=\"mine, also mine\"",
        "value=\"drinks\"",
        "<option value=\"high\" selected>",
        "green tea</textarea>",
        "Tags: <strong>theirs</strong>",
        "Tags: <strong>mine, also mine</strong>",
    ] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    let kept: Value = server.post("/api/record_get", &json!({"id": id}), &[]).json();
    assert_eq!(kept["record"]["content"], "coffee", "nothing is overwritten");
    server.end();
}

#[test]
fn a_page_that_is_old_restores_nothing() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    let (name, value) = server.bearer();
    let content = "/api/content?address=node:mem_doc_001";
    let etag = server.get(content, &[]).header("etag").expect("a version").to_owned();
    server.send("PUT", content, &[(name, &value)], b"two");
    let made = server.get("/api/history?address=node:mem_doc_001&limit=9", &[]).json();
    let made = made["changes"].as_array().and_then(|all| all.last()).expect("a change")["change"].clone();
    let restore = |version: &str| {
        let fields = [
            ("at", "graph/_content/nodes/mem_doc_001.md"),
            ("to", made.as_str().expect("text")),
            ("version", version),
        ];
        let led = sent(&server, "/restore", &fields).header("location").unwrap_or_default().to_owned();
        led.rsplit('&').next().unwrap_or_default().to_owned()
    };
    assert_eq!(restore(etag.trim_matches('"')), "changed=yes");
    let now = server.get(content, &[]);
    assert_eq!(now.body, b"two");
    assert_eq!(restore(now.header("etag").expect("a version").trim_matches('"')), "done=restored");
    assert_eq!(server.get(content, &[]).body, b"one");
    server.end();
}

#[test]
fn what_a_shape_could_not_read_is_not_saved() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/record_add", &json!({"content": "tea", "type": "core"}), &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    let records = std::fs::read_dir(sandbox.store().join("records")).expect("a folder");
    let mut names = records.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let jsonl = names.find(|name| name.ends_with(".jsonl")).expect("a file of records");
    let (records, said) = (format!("records/{jsonl}"), "graph/_content/nodes/mem_doc_001.meta.json");
    for (at, text, why) in [
        (records.as_str(), "no <JSON>\n", "is not JSON"),
        (&records, "1\n{}\n", "Line 1 cannot be a record: it is not a JSON object"),
        (&records, "{}\n", "Line 1 cannot be a record: it has no"),
        (said, "no <JSON>\n", "is not JSON"),
        (said, "[]", "cannot be read"),
        (said, "{\"type\": \"doc\"}", "of the node <code>mem_doc_001</code> cannot be changed here"),
    ] {
        let fields = [("at", at), ("version", &version_of(&server, at)), ("text", text)];
        let refused = shown(&sent(&server, "/edit", &fields));
        assert!(refused.contains(why) && refused.contains("Nothing was saved"), "{at} {text}: {refused}");
        assert!(
            refused.contains("data-dirty")
                && refused
                    .contains(&text.trim().replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"))
        );
    }
    assert!(server.get("/api/record_list", &[]).json()["total"] == 1);
    server.end();
    let server = Server::start(&sandbox, &["--read-only"]);
    let page = server.get(&format!("/edit?at=records/{jsonl}"), &[]);
    assert!(page.status == 403 && !shown(&page).contains("Save"), "{}", shown(&page));
    server.end();
}

#[test]
fn a_new_name_that_differs_only_in_case_is_refused_on_its_form() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/file_create", &json!({"path": "/memories/people.md", "text": "one"}), &[]);
    let fields = [("at", "files/People.md"), ("version", ""), ("text", "two")];
    let refused = shown(&sent(&server, "/edit", &fields));
    for part in [
        "<h1>New file</h1>",
        "people.md</code> only in case",
        "Nothing was saved",
        ">Create<",
        "two</textarea>",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    // A name that is taken leads to both texts.
    let taken = [("at", "files/people.md"), ("version", ""), ("text", "two")];
    assert!(shown(&sent(&server, "/edit", &taken)).contains("is there already"));
    server.end();
}
