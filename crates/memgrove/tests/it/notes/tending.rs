//! What is wrong with notes, what is mended by itself, what is proposed, and what little is read to find.

use memgrove::backend::Level;

use super::*;

fn told(notes: &Notes) -> Vec<(Level, String, String)> {
    notes.check().unwrap().into_iter().map(|found| (found.level, found.at, found.what)).collect()
}

fn by_hand(notes: &Notes, path: &str, text: &str) {
    notes.memory().store().write(&at(&format!("notes/{path}.md")), text).unwrap();
}

#[test]
fn what_splits_and_writes_leave_is_in_order() {
    let notes = notes();
    assert_eq!(told(&notes), []);
    write(&notes, "", &three_projects(), Mode::Replace);
    update(&notes, "Silica now needs Python 3.12");
    assert_eq!(told(&notes), []);
}

#[test]
fn what_is_wrong_is_told_and_metadata_is_mended() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let silica = read(&notes, "silica");
    let edited =
        silica.replace("split_from: memory", "split_from: gone") + "\nsee [[nowhere]] and [[Garden]]\n";
    by_hand(&notes, "silica", &edited);
    let large: String =
        (0..400).map(|number| format!("- a line of some length, number {number}\n")).collect();
    by_hand(
        &notes,
        "large",
        &format!("{large}\n[[entity:person/Ada]] [[connection:conn_001]] ![[picture.png]]\n"),
    );
    notes.memory().store().write(&at("notes/picture.png"), "bytes").unwrap();
    by_hand(
        &notes,
        "garden",
        &read(&notes, "garden").replace("## Metadata", "## Links\n\n- [[lost]] - x\n\n## Metadata"),
    );
    let found = told(&notes);
    let has = |level: Level, file: &str, what: &str| {
        assert!(
            found.iter().any(|(own, at, told)| *own == level && at.ends_with(file) && told.contains(what)),
            "{file}: {what} in {found:?}"
        );
    };
    has(Level::Warning, "large.md", "more than the 10240");
    has(Level::Warning, "silica.md", "split from `gone`");
    has(Level::Info, "silica.md", "`size_bytes` says");
    has(Level::Info, "silica.md", "`[[nowhere]]` points to no note");
    has(Level::Warning, "garden.md", "`[[lost]]` points to no note");
    assert_eq!(found.len(), 6, "{found:?}");
    let done = notes.mend(noted()).unwrap();
    assert_eq!(done.outcome.len(), 3, "{:?}", done.outcome);
    let mended = read(&notes, "silica");
    assert!(mended.contains("split_from: memory\n"), "the note that lists it");
    assert!(mended.contains(&format!("size_bytes: {}\n", mended.len())));
    let plain = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("size_bytes") && !line.starts_with("split_from"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(plain(&mended), plain(&edited), "nothing else is touched");
    assert_eq!(told(&notes).len(), 3, "links and sizes are for people to decide");
    assert_eq!(notes.mend(noted()).unwrap().change, None, "there is nothing left to mend");
}

#[test]
fn a_list_of_links_can_be_too_large_too() {
    let notes = notes();
    let link = |number: usize| format!("- [[far/{number}]] - where the place of number {number} is told\n");
    let links: String = (0..200).map(link).collect();
    by_hand(&notes, "hub", &format!("# Hub\n\n## Links\n\n{links}"));
    let too_large = |(level, at, what): &(Level, String, String)| {
        *level == Level::Warning && at == "notes/hub.md" && what.contains("more than the 10240")
    };
    assert!(told(&notes).iter().any(too_large), "{:?}", told(&notes));
}

#[test]
fn a_merge_is_proposed_where_children_have_stayed_small() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    let result = write(&notes, "silica", "## Silica\n\n- small\n", Mode::Replace);
    assert_eq!(result.merge_proposed, None, "the others are large");
    for path in ["website", "garden"] {
        write(&notes, path, "- small\n", Mode::Replace);
    }
    let proposed = update(&notes, "Silica is small now").merge_proposed.expect("all are small");
    assert_eq!((proposed.path.as_str(), proposed.children.len()), ("memory", 3));
    assert!(
        told(&notes).iter().any(|(level, at, what)| {
            *level == Level::Info && at == "notes/memory.md" && what.contains("stayed small: silica")
        }) || told(&notes).iter().any(|(_, _, what)| what.contains("stayed small"))
    );
    notes.merge(noted(), None, &[], MergeSize::Fitting, &Guarded::default()).unwrap();
    assert_eq!(update(&notes, "Silica is one note again").merge_proposed, None);
}

/// Many notes share the words of the question; only one has a block with all of them.
#[test]
fn few_bytes_are_read_where_the_words_stand_together() {
    let notes = notes();
    let fillers =
        ["brass kettle", "canal barge", "piano lesson", "paper crane", "apple crate", "stone bridge"];
    let mut text = String::from("# Memory\n");
    for (number, topic) in fillers.iter().enumerate() {
        text.push_str(&format!("\n## Topic {number}\n\n"));
        for line in 0..30 {
            text.push_str(&format!(
                "- the {topic} came up in line {line} beside the usual things of the day\n"
            ));
        }
        text.push_str("- a copper coin lay there\n- the river was high\n- somebody left a violin\n");
        if number == 4 {
            text.push_str("- a copper violin was found in the river\n");
        }
    }
    write(&notes, "", &text, Mode::Replace);
    let bytes: u64 = notes.list().unwrap().iter().map(|info| info.size_bytes).sum();
    let search =
        Search { bytes_max: Some(bytes as usize * 2 / 5), ..Search::new("the copper violin in the river") };
    notes.keep_graph().unwrap();
    let searched = notes.search(&search).unwrap();
    assert!(searched.results[0].excerpt.contains("copper violin was found"), "{searched:?}");
    assert!(searched.bytes_read <= bytes as usize * 2 / 5, "{} of {bytes}", searched.bytes_read);
    let index = at("notes/.metadata/index.json");
    assert!(notes.memory().store().info(&index).unwrap().size < bytes * 3 / 10);
    for damage in ["", "no json", "{\"notes\": {\"memory\": 7}}"] {
        notes.memory().store().write(&index, damage).unwrap();
        let found = notes.search(&Search::new("the copper violin in the river")).unwrap();
        assert!(found.results[0].excerpt.contains("copper violin was found"), "{damage}");
    }
    notes.settle().unwrap();
    assert!(
        notes.memory().store().info(&index).unwrap().size > 100,
        "a search that found it old had it made anew"
    );
}

#[test]
fn all_words_of_a_question_come_before_one_that_is_rare() {
    let notes = notes().with_bytes_max(usize::MAX);
    let common: String = (0..4000).map(|number| format!("- the garden plan number {number}\n")).collect();
    write(&notes, "plans", &common, Mode::Replace);
    write(&notes, "animals", &"- zebra\n".repeat(3), Mode::Replace);
    let long =
        format!("- a zebra in the garden was no part of the plan{}\n", ", nor of anything else".repeat(40));
    write(&notes, "both", &long, Mode::Replace);
    let found = notes.search(&Search::new("zebra garden plan")).unwrap();
    assert_eq!(found.results[0].path, "both", "{:?}", found.results);
}
