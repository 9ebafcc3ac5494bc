//! Texts on the command line that begin with a hyphen, and options that are misspelled.

use super::sandbox::Sandbox;

/// Every verb that takes a text of its own, and what comes before it.
const VERBS: [&[&str]; 8] = [
    &["remember"],
    &["record", "add"],
    &["note", "write"],
    &["recall"],
    &["find"],
    &["note", "search"],
    &["record", "list"],
    &["entity", "search"],
];

#[test]
fn what_looks_like_an_option_is_never_a_text_and_what_does_not_is_one() {
    let sandbox = Sandbox::new();
    for verb in VERBS {
        let with = |rest: &[&str]| sandbox.feed(&[verb, rest].concat(), "from standard input");
        for option in ["--core", "-x", "--jsn", "--no-such=1"] {
            let told = with(&[option]).fails(2);
            assert!(told.contains("unexpected argument"), "{verb:?} {option}: {told}");
            // Not even if a text that begins so is given beside it.
            with(&[option, "-5 degrees is freezing"]).fails(2);
        }
        for text in ["-5 degrees is freezing", "- an item", "-hot soup", "-273", "--- a rule"] {
            assert_eq!(with(&[text]).code, 0, "{verb:?} {text}");
        }
        assert_eq!(with(&["--", "--core"]).code, 0, "{verb:?}: behind `--` everything is a text");
    }
    let kept = sandbox.run(&["record", "list", "--json"]).json();
    let kept: Vec<&str> = kept["records"]
        .as_array()
        .expect("records")
        .iter()
        .filter_map(|one| one["content"].as_str())
        .collect();
    assert!(kept.contains(&"-5 degrees is freezing") && !kept.contains(&"from standard input"), "{kept:?}");
    for verb in VERBS {
        // Several words need no quotes, whatever option stands beside them.
        let words = [verb, &["the", "tea", "is", "hot", "--json"]].concat();
        let told = sandbox.feed(&words, "from standard input").ok();
        if ["remember", "add", "write"].contains(verb.last().expect("a word")) {
            assert!(
                sandbox.run(&["find", "the", "tea", "is", "hot"]).ok().contains("the tea is hot"),
                "{told}"
            );
        }
    }
    let told = sandbox.run(&["remember", "--tagg", "x", "a fact"]).fails(2);
    assert!(told.contains("'--tagg'") && told.contains("'--tag'"), "the right one is named: {told}");
    let reasoned = ["record", "add", "--core", "--reason", "- because"];
    sandbox.feed(&reasoned, "from standard input").fails(2);
}
