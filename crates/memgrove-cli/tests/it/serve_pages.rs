//! What the pages of `memgrove serve` send and show, without a browser.

use serde_json::{Value, json};

use super::records::mounted;
use super::sandbox::Sandbox;
use super::serve::{Answer, Server};

/// Sends a form.
pub(super) fn sent(server: &Server, path: &str, fields: &[(&str, &str)]) -> Answer {
    let coded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", coded(value))).collect();
    let (name, value) = server.bearer();
    let headers = [(name, value.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    server.send("POST", path, &headers, body.join("&").as_bytes())
}

/// What a page says.
pub(super) fn shown(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[test]
fn errors_are_pages_for_browsers_with_ways_on() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let browser = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let nope = server.get("/nope", &browser);
    assert_eq!((nope.status, nope.header("content-type")), (404, Some("text/html; charset=utf-8")));
    assert!(shown(&nope).contains("<nav") && shown(&nope).contains("<code>/nope</code>"), "{}", shown(&nope));
    assert_eq!(server.get("/nope", &[]).header("content-type"), Some("application/problem+json"));
    assert!(
        shown(&server.get("/s/default/read?at=files/none.md", &browser))
            .contains("href=\"/s/default/timeline\"")
    );
    // A change that was overwritten is not taken back, and its history is a step away.
    for text in ["one", "two"] {
        let (name, value) = server.bearer();
        server.send("PUT", "/api/content?address=file:/memories/a.md", &[(name, &value)], text.as_bytes());
    }
    let past = server.get("/api/history?limit=2", &[]).json();
    let first = past["changes"][1]["change"].as_str().expect("a change").to_owned();
    let refused = sent(&server, "/undo", &[("change", &first)]);
    assert!(
        refused.status == 412 && shown(&refused).contains("/history?at=files%2Fa.md"),
        "{}",
        shown(&refused)
    );
    server.end();
}

#[test]
fn a_space_is_opened_by_its_name_and_the_others_are_named_beside_the_pages() {
    let sandbox = Sandbox::new();
    let work = sandbox.path().join("work");
    sandbox.run(&["init", work.to_str().expect("text")]).ok();
    let server = Server::start(&sandbox, &["--space", &format!("work={}", work.display())]);
    for path in ["/s/work", "/s/work/", "/s/work?q=tea"] {
        let page = server.get(path, &[("Accept", "text/html")]);
        assert_eq!(page.status, 200, "{path}");
        let page = shown(&page);
        let (_, spaces) = page.split_once("aria-label=\"Spaces\">").expect("a way to the others");
        assert!(
            spaces.starts_with("<a href=\"/s/default/\">default</a><a href=\"/s/work/\" aria-current"),
            "{path}: {page}"
        );
        assert!(page.contains("href=\"/s/work/timeline\""), "{path}");
    }
    assert_eq!(server.get("/s/nowhere", &[]).status, 404);
    server.end();
}

#[test]
fn memories_are_named_as_people_name_them() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for (typed, at) in
        [("a.md", "files/a.md"), ("/memories/b.md", "files/b.md"), ("files/c.md", "files/c.md")]
    {
        let saved = sent(&server, "/edit", &[("at", typed), ("text", "x")]);
        let led = saved.header("location").unwrap_or_default().to_owned();
        assert!(
            saved.status == 303 && led.contains(&at.replace('/', "%2F")),
            "{typed}: {led} {}",
            shown(&saved)
        );
    }
    let again = shown(&sent(&server, "/edit", &[("at", "a.md"), ("text", "y")]));
    assert!(again.contains("a.md is there already") && !again.contains("faster"), "{again}");
    for (path, told) in [
        ("/edit?address=file:/memories/a.md", "Edit a.md"),
        ("/history?address=file:/memories/a.md", "History of a.md"),
    ] {
        assert!(shown(&server.get(path, &[])).contains(told), "{path}");
    }
    let added = server.post("/api/record_add", &json!({"content": "tea", "type": "core"}), &[]).json();
    let id = added["records"][0]["id"].as_str().expect("an id");
    let led = server.get(&format!("/edit?address=record:{id}"), &[]);
    assert_eq!(led.header("location"), Some(format!("/record?id={id}&done=edit").as_str()));
    server.end();
}

#[test]
fn lists_tell_all_and_each_thing_once() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let entities = json!({"entities": [
        {"name": "Alice", "type": "person", "observations": ["Alice likes tea", "Alice likes cake"],
            "relations": [{"type": "knows", "to": "Bo"}]},
        {"name": "Bo", "type": "person", "observations": ["sails"]}]});
    assert_eq!(server.post("/api/entity_batch", &entities, &[]).status, 200);
    let found = shown(&server.get("/search?q=alice", &[]));
    assert_eq!(found.matches("class=\"hit\"").count(), 1, "{found}");
    assert!(found.contains("tea") && found.contains("cake"), "{found}");
    let listed = shown(&server.get("/browse/entities", &[]));
    assert_eq!(listed.matches("data-label=\"relation\">1<").count(), 2, "{listed}");
    let many: Vec<Value> = (0..301)
        .map(|number| json!({"content": format!("fact {number}"), "type": "core", "tags": ["t"]}))
        .collect();
    assert_eq!(server.post("/api/record_add_many", &json!({"records": many}), &[]).status, 200);
    let rows = |path: &str| shown(&server.get(path, &[])).matches("<tr data-item").count();
    assert_eq!((rows("/browse/records?tag=t"), rows("/browse/records?tag=t&page=2")), (300, 1));
    assert!(shown(&server.get("/browse/records?tag=t", &[])).contains("/browse/records?tag=t&amp;page=2"));
    // What is copied by a sync tool, and what a note says of an entity.
    std::fs::create_dir_all(sandbox.store().join("files")).expect("a folder");
    std::fs::write(sandbox.store().join("files/a.md"), "ours\n").expect("a file");
    let copy = "files/a.sync-conflict-20260131-120000-ABCDEFG.md";
    std::fs::write(sandbox.store().join(copy), "theirs\n").expect("a file");
    std::fs::create_dir_all(sandbox.store().join("notes")).expect("a folder");
    let note = "# Memory\n\nAsk [[Bo]] and [[Nobody]].\n\n## Metadata\nsize_bytes: 1\nsource: hand\n";
    std::fs::write(sandbox.store().join("notes/memory.md"), note).expect("a file");
    let health = shown(&server.get("/doctor", &[]));
    assert!(health.contains(copy) && health.contains("[[Nobody]]") && !health.contains("[[Bo]]"), "{health}");
    let conflicts = shown(&server.get("/conflicts", &[]));
    assert!(
        conflicts.contains("<td class=\"added\">") && conflicts.contains("/read?at=files%2Fa.sync"),
        "{conflicts}"
    );
    let read = shown(&server.get("/read?at=notes/memory.md", &[]));
    assert!(read.contains("size_bytes: 1<br"), "{read}");
    server.end();
}

#[test]
fn the_timeline_tells_of_mounted_records() {
    let sandbox = Sandbox::new();
    mounted(&sandbox);
    let server = Server::start(&sandbox, &[]);
    let added = server.post("/api/record_add", &json!({"content": "tea", "type": "core"}), &[]);
    assert_eq!(added.status, 200, "{}", added.json());
    let timeline = shown(&server.get("/timeline", &[]));
    let change = timeline.split("name=\"change\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let change = change.unwrap_or_else(|| panic!("{timeline}")).to_owned();
    assert!(change.starts_with("records:"), "{change}");
    let diff =
        timeline.split("href=\"/diff?").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let diff = shown(&server.get(&format!("/diff?{}", diff.replace("&amp;", "&")), &[]));
    assert!(diff.contains("<td class=\"added\">") && diff.contains("tea"), "{diff}");
    assert_eq!(sent(&server, "/undo", &[("change", &change)]).status, 303);
    assert_eq!(server.get("/api/record_list", &[]).json()["total"], 0);
    server.end();
}

#[test]
fn long_lists_have_ways_to_all_of_them() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let write = |at: String, text: &str| {
        let at = sandbox.store().join(at);
        std::fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
        std::fs::write(at, text).expect("a file");
    };
    write("notes/projects.md".into(), "# Projects\n");
    (0..401).for_each(|number| write(format!("notes/projects/n{number}.md"), "# A note\n"));
    (0..401).for_each(|number| write(format!("files/f{number:03}.md"), "text\n"));
    let page = |path: &str| shown(&server.get(path, &[]));
    let notes = page("/browse/notes");
    assert!(notes.contains("/browse/notes?under=notes%2Fprojects\">401 notes beneath<"), "{notes}");
    let beneath = page("/browse/notes?under=notes/projects&page=2");
    assert_eq!(beneath.matches("data-item").count(), 1, "{beneath}");
    let files = page("/browse/files");
    assert!(files.contains("f399.md") && !files.contains("f400.md"), "{files}");
    assert!(files.contains("/browse/files?under=files&amp;page=2"), "{files}");
    assert!(page("/browse/files?under=files&page=2").contains("f400.md"));
    server.end();
}

#[test]
fn links_of_markdown_are_followed_and_drawn() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for (path, text) in [
        ("docs/a.md", "see [b](b.md), [c](../c%20d.md#x) and [e](https://e.example/e.md)"),
        ("docs/b.md", "b"),
        ("c d.md", "c"),
    ] {
        let made = json!({"path": format!("/memories/{path}"), "text": text});
        assert_eq!(server.post("/api/file_create", &made, &[]).status, 200);
    }
    let drawn = server.get("/graph/data", &[]).json();
    assert_eq!((&drawn["total"], &drawn["total_links"]), (&json!(3), &json!(2)), "{drawn}");
    let led = shown(&server.get("/read?link=../c%2520d.md&from=files/docs/a.md", &[]));
    assert!(led.contains("<code>files/c d.md</code>"), "{led}");
    // What is wrong with a question is said.
    let asked = shown(&server.get("/search?q=since:banana", &[]));
    assert!(asked.contains("<code>banana</code> is not a date"), "{asked}");
    assert!(shown(&server.get("/browse/entities?done=deleted", &[])).contains("Deleted."));
    // A folder that was moved is said to be.
    let moved = server
        .post("/api/file_rename", &json!({"old_path": "/memories/docs", "new_path": "/memories/papers"}), &[])
        .json();
    let change = moved["change"].as_str().unwrap_or_else(|| panic!("{moved}"));
    let diff = shown(&server.get(&format!("/diff?at=files/docs&change={change}"), &[]));
    assert!(diff.contains("Moved from <code>files/docs</code>") && !diff.contains("No difference"), "{diff}");
    server.end();
}

#[test]
fn the_timeline_shows_what_a_change_says() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let remember = |fact: &serde_json::Value| server.post("/api/remember", fact, &[]).json();
    let lamp = remember(&json!({"text": "The <lamp> is green"}));
    remember(&json!({"text": "sings", "about": "Ann"}));
    server.post("/api/file_create", &json!({"path": "/memories/a.md", "text": "one"}), &[]);
    let lamp = lamp["address"].as_str().expect("an address");
    for path in ["/timeline", "/"] {
        let page = shown(&server.get(path, &[]));
        for part in
            ["The &lt;lamp&gt; is green</a>", lamp, ">sings</a>", "entity:general/Ann<", ">files/a.md</a>"]
        {
            assert!(page.contains(part), "{path} {part}: {page}");
        }
        assert!(!page.contains(">records/learnings.jsonl"), "{path}: {page}");
    }
    server.end();
}
