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

#[test]
fn answers_cost_what_they_may() {
    let sandbox = Sandbox::new();
    let words = ["amber", "birch", "cedar", "dahlia", "elder", "fern", "ginkgo", "hazel", "iris", "juniper"];
    for (word, number) in words.iter().zip(1..) {
        let text = format!("The {word} quokka ate {number} leaves. ").repeat(8);
        let path = format!("{word}.md");
        sandbox
            .feed(&["file", "create", &path], format!("---\ntags: [{word}-tag, leaf]\n---\n{text}\n"))
            .ok();
    }
    sandbox.feed(&["file", "create", "line.txt"], "leaf and branch ".repeat(20_000)).ok();
    let record = "A rather long record of leaves. ".repeat(60);
    sandbox.run(&["remember", record.trim()]).ok();
    let found = sandbox.run(&["--json", "recall", "\"long record\"", "--budget", "2000"]).json();
    let record = found["hits"][0]["address"].as_str().expect("an address").to_owned();
    // One line is said in any case.
    for budget in [60, 100, 200, 500, 1_000] {
        for words in [
            &["recall", "quokka"][..],
            &["recall", "quokka leaves in the forest"],
            &["recall", "quokak leavse ambrer brich cedra dahlai eldre ginkog hazle junipre"],
            &["recall", "the leaf of last year"],
            &["similar", "file:/memories/iris.md"],
            &["brief"],
            &["read", &record],
            &["read", "file:/memories/line.txt"],
            &["read", "file:/memories/iris.md"],
        ] {
            let said = sandbox.run(&[words, &["--budget", &budget.to_string()]].concat()).ok();
            let tokens = memgrove::index::tokens(&said);
            // What is read is counted by its bytes, and cut where a line says so.
            let most = if words[0] == "read" { budget * 5 / 4 + 40 } else { budget };
            assert!(tokens <= most, "{words:?} {budget}: {tokens} tokens\n{said}");
        }
    }
    let said = sandbox.run(&["recall", "tag:leaf", "--limit", "3"]).ok();
    assert!(said.contains("[3 of 10 shown") && said.contains("7 more: raise the limit"), "{said}");
    let said = sandbox.run(&["recall", "tag:leaf", "--limit", "0"]).ok();
    assert!(said.contains("[0 of 10 shown") && said.contains("10 match: raise the limit"), "{said}");
}

#[test]
fn a_cache_that_cannot_be_written_stops_nobody() {
    let sandbox = Sandbox::new();
    sandbox.feed(&["file", "create", "tea.md"], "Green tea at eighty degrees.\n").ok();
    let nowhere = sandbox.path().join("a-file");
    fs::write(&nowhere, "").expect("written");
    for words in [
        &["recall", "tea"][..],
        &["brief"],
        &["similar", "file:/memories/tea.md"],
        &["index", "status"],
        &["remember", "The kettle is blue"],
        &["remember", "The kettle is blue"],
    ] {
        let ran = sandbox.memgrove(words).env("XDG_CACHE_HOME", &nowhere).output().expect("it runs");
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{words:?}: {told}");
        assert_eq!(told.matches("the index is rebuilt in memory").count(), 1, "{words:?}: {told}");
    }
    let settings = sandbox.store().join("memgrove.toml");
    let text = fs::read_to_string(&settings).expect("read");
    fs::write(&settings, format!("{text}\n[search]\nlanguage = \"klingon\"\n")).expect("written");
    let ran = sandbox.run(&["remember", "The kettle is red"]);
    assert!(ran.code == 0 && ran.err.contains("klingon"), "{ran:?}");
}

#[test]
fn every_part_is_forgotten_by_its_own_address() {
    let sandbox = Sandbox::new();
    let long = "word ".repeat(150);
    let text = format!("The intro.\n\n# Log\n{long}\n\n# Log\nshort\n\n# Empty\n\n# Last\nend\n");
    sandbox.feed(&["file", "create", "a.md"], &text).ok();
    let mut left = text;
    for (address, gone) in [
        ("#log-2", "# Log\nshort\n\n".to_owned()),
        ("#empty", "# Empty\n\n".to_owned()),
        ("#~1", "The intro.\n\n".to_owned()),
    ] {
        sandbox.run(&["forget", &format!("file:/memories/a.md{address}")]).ok();
        left = left.replacen(&gone, "", 1);
        assert_eq!(sandbox.run(&["read", "file:/memories/a.md"]).ok(), left, "{address}");
    }
    sandbox.run(&["forget", "file:/memories/a.md#log~2"]).ok();
    let read = sandbox.run(&["read", "file:/memories/a.md"]).ok();
    assert!(read.starts_with("# Log\nword") && read.contains("# Last\nend"), "{read}");
}

#[test]
fn what_no_longer_counts_is_marked_and_told_whole_as_json() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "Ann lives in Oslo", "--about", "Ann"]).ok();
    sandbox.run(&["remember", "Ann likes [[tea]]", "--about", "Ann"]).ok();
    let text = "# Entity: Ann\n\n## Observations\n1. Ann lives in Oslo\n   - superseded by: Ann lives in Rome\n2. Ann lives in Rome\n3. Ann likes [[tea]]\n";
    fs::write(sandbox.store().join("knowledge/entities/general/Ann.md"), text).expect("written");
    let around = ["read", "entity:general/Ann#2", "--around", "1"];
    let said = sandbox.run(&around).ok();
    assert!(said.contains("[entity:general/Ann#1] (superseded)\nAnn lives in Oslo"), "{said}");
    assert!(said.contains("[entity:general/Ann#2]\nAnn lives in Rome"), "{said}");
    let told = sandbox.run(&[&["--json"], &around[..]].concat()).json();
    assert!(told["text"].as_str().is_some_and(|text| text.contains("#1] (superseded)")), "{told}");
    let said = sandbox.run(&["recall", "lives in Oslo is:hidden", "--limit", "1"]).ok();
    assert!(said.lines().next().is_some_and(|line| line.ends_with("Ann (superseded)")), "{said}");
    let told = sandbox.run(&["--json", "recall", "likes tea", "--limit", "1"]).json();
    let hit = &told["hits"][0];
    assert_eq!(
        (&hit["importance"], &hit["uses"], &hit["links"]),
        (&json!("medium"), &json!(0), &json!(["tea"]))
    );
    assert_eq!(hit["file"], "knowledge/entities/general/Ann.md");
    assert!(hit["span"][1].as_u64() >= hit["span"][0].as_u64() && hit.get("hidden").is_none(), "{hit}");
    sandbox.feed(&["file", "create", "set.md"], "Tea\n===\nBrew it.\n\nJuice\n-----\nPress it.\n").ok();
    assert_eq!(sandbox.run(&["read", "file:/memories/set.md#juice"]).ok(), "Press it.\n");
    sandbox.run(&["forget", "file:/memories/set.md#juice"]).ok();
    assert_eq!(sandbox.run(&["read", "file:/memories/set.md"]).ok(), "Tea\n===\nBrew it.\n\n");
    fs::write(sandbox.store().join("files/odd.md"), b"A caf\xe9 with kestrels\n").expect("written");
    for verb in ["recall", "find"] {
        assert!(sandbox.run(&[verb, "kestrels"]).ok().contains("A caf? with kestrels"), "{verb}");
    }
    let checked = sandbox.run(&["doctor"]).out;
    assert!(checked.contains("files/odd.md: line 1 has bytes that are not UTF-8"), "{checked}");
}

#[test]
fn days_are_those_of_the_zone_that_one_asks_in() {
    let sandbox = Sandbox::new();
    let ask = |zone: &str, arguments: &[&str]| {
        let ran = sandbox.memgrove(arguments).env("TZ", zone).output().expect("it runs");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let kiln = "---\ndate: 2024-05-02T02:00:00Z\n---\nThe kiln was fired.\n";
    sandbox.feed(&["file", "create", "kiln.md"], kiln).ok();
    let clay = "---\ndate: 2024-05-02\n---\nThe clay for the kiln came.\n";
    sandbox.feed(&["file", "create", "clay.md"], clay).ok();
    // In New York it was still the first of May; a day that is written is that day there too.
    for (query, zone, fired, came) in [
        ("kiln before:2024-05-02", "EST5EDT,M3.2.0,M11.1.0", true, false),
        ("kiln since:2024-05-02", "EST5EDT,M3.2.0,M11.1.0", false, true),
        ("kiln before:2024-05-02", "UTC0", false, false),
        ("kiln since:2024-05-02", "UTC0", true, true),
        ("kiln since:2024-05-02 before:2024-05-03", "<+13>-13", true, true),
        ("kiln since:2024-05-02T01:00:00Z", "EST5EDT,M3.2.0,M11.1.0", true, true),
    ] {
        let found = ask(zone, &["recall", query]);
        assert_eq!((found.contains("fired"), found.contains("came")), (fired, came), "{query}: {found}");
    }
    let shown = ask("EST5EDT,M3.2.0,M11.1.0", &["recall", "kiln"]);
    assert!(shown.contains("kiln.md  2024-05-01") && shown.contains("clay.md  2024-05-02"), "{shown}");
    // What was just remembered is of today everywhere, whatever day that is there.
    sandbox.run(&["remember", "Bought glaze"]).ok();
    let days = ["<+14>-14", "<-12>12"].map(|zone| {
        let found = ask(zone, &["recall", "glaze today"]);
        assert!(found.contains("Bought glaze") && !found.contains("nothing is from that time"), "{found}");
        let listed = ask(zone, &["record", "list", "--since", "today"]);
        assert!(listed.contains("Bought glaze"), "{listed}");
        let day = found.split_whitespace().nth(1).expect("a date").to_owned();
        assert!(ask(zone, &["history"]).contains(&format!("{day}T")), "{day}");
        day
    });
    assert!(days[0] > days[1], "{days:?}");
}

#[test]
fn similar_takes_an_address_however_it_is_spelled() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "# One\nhello tea\n\n# Two\nhello milk\n"]).ok();
    sandbox.run(&["note", "write", "hello tea"]).ok();
    for address in ["file:/memories/a.md", "file:a.md", "a.md", "/memories/a.md", "a.md#one"] {
        let told = sandbox.run(&["similar", address, "--all"]).ok();
        assert!(told.contains("note:memory"), "{address}: {told}");
    }
    for address in ["note:memory", "note:", "note:/memory.md"] {
        let told = sandbox.run(&["similar", address, "--all"]).ok();
        assert!(told.contains("file:/memories/a.md#one"), "{address}: {told}");
    }
    let told = sandbox.run(&["similar", "none.md"]).fails(3);
    assert!(told.contains("there is nothing at `file:/memories/none.md`"), "{told}");
}

#[test]
fn what_is_only_faintly_like_a_memory_is_left_out() {
    let sandbox = Sandbox::new();
    let remember = |text: &str| {
        let told = sandbox.run(&["--json", "remember", text]).json();
        told["address"].as_str().expect("an address").to_owned()
    };
    let tea = remember("Ann drinks green tea every morning");
    for text in [
        "Ann drinks oolong tea every afternoon",
        "The office kitchen has a kettle for tea",
        "Postgres 16 was upgraded in March",
        "Nobody drinks from the green cup of Miso the cat",
    ] {
        remember(text);
    }
    let told = sandbox.run(&["similar", &tea]).ok();
    assert!(told.contains("oolong") && !told.contains("kettle"), "{told}");
    assert!(told.contains("weak matches (`--all`)"), "{told}");
    let mut server = Connection::new(&sandbox, &["--tools", "all"]);
    let told = server.call("similar", json!({"address": tea})).to_string();
    assert!(told.contains("weak matches (`all`)"), "each is told in its own words: {told}");
    server.close();
    let told = sandbox.run(&["similar", &tea, "--all"]).ok();
    assert!(told.contains("oolong") && told.contains("kettle") && !told.contains("weak"), "{told}");
    // Nobody gave words, so none are asked for.
    let alone = remember("Zanzibar 4711");
    assert_eq!(sandbox.run(&["similar", &alone]).ok(), "nothing found; no other memory is similar\n");
}
