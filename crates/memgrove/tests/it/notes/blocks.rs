//! The codecs of blocks and links lose nothing, whatever they are given.

use memgrove::text::{blocks, links};
use proptest::prelude::*;

fn markdown() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        Just("---".to_owned()),
        Just("```".to_owned()),
        Just("~~~~".to_owned()),
        "#{1,7} ?[a-c]{0,4}",
        " {0,4}[-*+1-9][.)]? [a-c\\[\\]|#`]{0,8}",
        "\\PC{0,20}",
        "(\\[\\[|\\]\\]|[a-c|#`!]){0,8}",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9] [a-c]{0,5}",
    ];
    let newline = prop_oneof![9 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\n\n")];
    proptest::collection::vec((line, newline), 0..40)
        .prop_map(|lines| lines.into_iter().map(|(line, newline)| line + newline).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_cover_everything_but_white_space(text in markdown()) {
        let mut end = 0;
        for block in blocks::blocks(&text) {
            prop_assert!(text[end..block.body.start].trim().is_empty());
            prop_assert!(!text[block.body.clone()].trim().is_empty());
            prop_assert!(block.body.start == 0 || text.as_bytes()[block.body.start - 1] == b'\n');
            end = block.body.end;
        }
        prop_assert!(text[end..].trim().is_empty());
    }

    #[test]
    fn links_are_where_they_say(text in markdown()) {
        let mut end = 0;
        for link in links::links(&text) {
            prop_assert!(link.at.start >= end);
            let whole = &text[link.at.clone()];
            prop_assert!(whole.starts_with("[[") && whole.ends_with("]]") && whole.contains(link.target));
            end = link.at.end;
        }
    }

    #[test]
    fn a_listed_link_reads_back(path in "[a-z][a-z/]{0,12}", told in "\\PC{0,40}") {
        let line = links::listing(&path, &told);
        let (link, read) = links::listed(&line).expect("it is a line of a list");
        prop_assert_eq!(link.target, path.as_str());
        prop_assert_eq!(links::listing(&path, read), line.clone());
    }
}
