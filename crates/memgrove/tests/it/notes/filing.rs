//! Where facts go: what is kept beside what is there, what replaces it, and in which section.

use super::*;

#[test]
fn facts_that_differ_in_a_sign_are_two() {
    for (one, two) in [
        ("node >=18 only", "node <=18 only"),
        ("build is ✅", "build is ❌"),
        ("password is AbC123", "password is abc123"),
        ("★★★", "★★★★★"),
    ] {
        let notes = notes();
        update(&notes, one);
        let second = update(&notes, two);
        assert_eq!((second.already_known, second.changed), (0, true), "{two}");
        let text = read(&notes, "");
        assert!(text.contains(&format!("- {one}")) && text.contains(&format!("- {two}\n")), "{text}");
        assert!(!update(&notes, two).changed, "{two}");
    }
}

#[test]
fn what_was_superseded_can_be_true_again() {
    let notes = notes();
    for fact in ["Alice lives in Berlin", "Alice lives in Lisbon", "Alice lives in Berlin"] {
        update(&notes, fact);
    }
    let text = read(&notes, "");
    assert!(text.contains("- Alice lives in Berlin *(superseded 2026-01-01)*\n"), "{text}");
    assert!(
        text.contains("- Alice lives in Lisbon *(superseded 2026-01-01)*\n- Alice lives in Berlin\n"),
        "{text}"
    );
}

#[test]
fn a_fact_replaces_one_only_if_it_is_clear_which() {
    let notes = notes();
    let text = "# Memory\n\n## Silica\n\n- Version: 3.0\n\n## Website\n\n- Version: 1.0\n";
    write(&notes, "", text, Mode::Replace);
    assert_eq!(update(&notes, "Version: 4.0").superseded, 0);
    write(&notes, "", text, Mode::Replace);
    assert_eq!(update(&notes, "## Website\n\n- Version: 4.0").superseded, 1);
    let text = read(&notes, "");
    assert!(
        text.contains(
            "- Version: 3.0\n\n## Website\n\n- Version: 1.0 *(superseded 2026-01-01)*\n- Version: 4.0\n"
        ),
        "{text}"
    );
}

#[test]
fn a_text_that_is_written_twice_is_there_once() {
    let notes = notes();
    let text = "---\ntags: [a]\n---\n\n# Memory\n\nAn introduction.\n\n## A\n\n- one\n\n### Notes\n\n- two\n\n\
                ## B\n\n### Notes\n\n- three\n\n```\ncode\n```\n\n## Links\n\n- [[elsewhere]] - by hand\n";
    let first = update(&notes, text);
    assert!(first.changed, "{first:?}");
    let kept = read(&notes, "");
    assert!(kept.starts_with(&text.replace("An introduction.", "- An introduction.")), "{kept}");
    let second = update(&notes, text);
    assert_eq!((second.changed, read(&notes, "")), (false, kept), "{second:?}");
    // What is new in it goes where it belongs.
    let more = "## New\n\n- a\n\n## B\n\n- four\n\n### Notes\n\n- five\n\n### More\n\n- six\n";
    update(&notes, more);
    let kept = read(&notes, "");
    let expected = "## B\n\n- four\n\n### Notes\n\n- three\n\n```\ncode\n```\n\nfive\n\n### More\n\n- six\n\n## New\n\n- a\n";
    assert!(kept.contains(&expected.replace("five", "- five")), "{kept}");
}

/// Lines that no other section has.
fn lines(about: &str, count: usize) -> String {
    let line = |number: usize| format!("- the {about} has an entry {number} that somebody wrote one day\n");
    (0..count).map(line).collect()
}

/// Texts whose first heading is not the title of the note: it stays behind when the note comes apart.
#[test]
fn a_text_that_is_written_again_is_known_also_after_a_split() {
    let topics = ["Onboarding", "Travel", "Security", "Releases", "Holidays"];
    let sections = topics.map(|topic| format!("## {topic}\n\n{}\n", lines(topic, 60)));
    let handbook = format!("# Handbook\n\n{}", sections.concat());
    let days = (1..=6).flat_map(|month| [2, 16].map(|day| format!("2026-{month:02}-{day:02}")));
    let days: String = days.map(|day| format!("## {day}\n\n{}\n", lines(&day, 20))).collect();
    let journal = format!("# Journal\n\n{days}");
    let mut nested = "# Handbook\n\nAn introduction.\n\n".to_owned();
    for part in &topics[..3] {
        nested.push_str(&format!("## {part}\n\nAbout {part}.\n\n"));
        for inner in ["people", "rules", "ends"] {
            let about = format!("{part} {inner}");
            nested.push_str(&format!("### {about}\n\n{}\n", lines(&about, 60)));
        }
    }
    let list = format!("# Handbook\n\n{}", lines("list", 250));
    let titled = list.replace("# Handbook", "# Memory");
    for text in [&handbook, &journal, &nested, &list, &titled] {
        let notes = notes();
        assert!(update(&notes, text).split_triggered, "{text}");
        let kept = files(&notes);
        let again = update(&notes, text);
        assert!(!again.changed && files(&notes) == kept, "{again:?} of {text}");
    }
    let notes = notes();
    update(&notes, &handbook);
    update(&notes, "# Handbook\n\n## Travel\n\n- trains come first\n\n## Lunch\n\n- soup\n");
    assert!(read(&notes, "travel").contains("- trains come first\n"), "{}", read(&notes, "travel"));
    assert!(read(&notes, "").contains("# Handbook\n\n## Lunch\n\n- soup\n"), "{}", read(&notes, ""));
}

#[test]
fn a_section_with_a_heading_that_is_there_goes_under_it() {
    let notes = notes();
    write(&notes, "", "# Memory\n\n## Website\n\n- Owner: Ann\n\n## Food\n\n- soup\n", Mode::Replace);
    let result = update(&notes, "## Website\n\n- Owner: Zoe\n- Static pages");
    assert_eq!(result.superseded, 1);
    let text = read(&notes, "");
    let expected =
        "## Website\n\n- Owner: Ann *(superseded 2026-01-01)*\n- Owner: Zoe\n- Static pages\n\n## Food\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_name_in_a_description_leads_a_fact_down() {
    let notes = notes();
    write(
        &notes,
        "",
        "# Memory\n\n## Tools\n\n- ruff is used for linting and it uses rules\n",
        Mode::Replace,
    );
    write(&notes, "projects", "# Projects\n\n- Silica is a project\n", Mode::Replace);
    let text = read(&notes, "").replace("Projects", "Silica, website, deadline");
    notes.memory().store().write(&at("notes/memory.md"), &text).unwrap();
    assert_eq!(update(&notes, "Silica uses ruff for linting").path, "projects");
}

#[test]
fn a_small_note_comes_apart_too_if_it_is_asked_to() {
    let notes = notes();
    let mut text = String::from("# Memory\n");
    for name in ["Kitchen", "Garden", "Piano"] {
        text.push_str(&format!("\n## {name}\n\n"));
        (0..8).for_each(|number| {
            text.push_str(&format!("- the {name} has a thing with the number {number} in it\n"))
        });
    }
    write(&notes, "", &text, Mode::Replace);
    let made = notes.split(noted(), None, &Guarded::default()).unwrap().outcome.new_files;
    assert!(made.len() >= 2, "{made:?}");
}

#[test]
fn verbs_and_addresses_are_no_names() {
    let notes = notes();
    let mut text = String::from("# Memory\n\n");
    for number in 0..40 {
        for verb in ["Run", "Never", "Use", "Prefer", "Always"] {
            text.push_str(&format!(
                "- {verb} the thing {number} as in https://Example.com/Docs/{number} or [[People/Carol]]\n"
            ));
        }
        text.push_str(&format!("- {number} times the kettle was on\n- {number} times Zara rang\n"));
    }
    let made = write(&notes, "", &text, Mode::Replace).new_files;
    let odd = ["run", "never", "use", "prefer", "always", "example", "docs", "people", "carol"];
    assert!(!made.is_empty() && made.iter().all(|path| !odd.contains(&path.as_str())), "{made:?}");
}
