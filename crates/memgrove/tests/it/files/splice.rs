//! Every byte outside the edited span stays.

use proptest::prelude::*;

use super::*;

/// A text of any newline style, with what editors and other systems put into texts.
fn texts() -> impl Strategy<Value = String> {
    let line = prop::collection::vec(
        prop::sample::select(vec![
            "a", "b", "# ", "word ", "\0", "e\u{301}", "é", "日本", "🦀", " ", "\t", "\r", "\u{feff}",
            "\u{2028}",
        ]),
        0..6,
    );
    let newlines = prop_oneof![
        Just(vec!["\n"]),
        Just(vec!["\r\n"]),
        Just(vec!["\n", "\r\n"]),
        Just(vec!["\r\n", "\n", "\r"]),
    ];
    let lines = prop::collection::vec((line, any::<prop::sample::Index>()), 0..8);
    (any::<bool>(), lines, newlines, any::<bool>()).prop_map(|(bom, lines, newlines, last)| {
        let mut text = String::from(if bom { "\u{feff}" } else { "" });
        let count = lines.len();
        for (n, (line, newline)) in lines.into_iter().enumerate() {
            text.push_str(&line.concat());
            if last || n + 1 < count {
                let newline: &&str = newline.get(&newlines[..]);
                text.push_str(newline);
            }
        }
        text
    })
}

/// The specification's own insertion, but for a final newline that ends the inserted line.
fn inserted_by_the_specification(before: &str, line: usize, text: &str) -> String {
    let mut lines: Vec<&str> = before.split('\n').collect();
    let is_end = line > lines.len();
    let text = if is_end { text } else { text.strip_suffix('\n').unwrap_or(text) };
    lines.insert(line - 1, text);
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn replace_touches_nothing_but_its_span(
        before in texts(),
        span in any::<(prop::sample::Index, prop::sample::Index)>(),
        new in texts(),
    ) {
        let files = Files::new();
        files.write_bytes("a.md", before.as_bytes());
        let cuts: Vec<usize> = (0..=before.len()).filter(|cut| before.is_char_boundary(*cut)).collect();
        let (a, b) = (*span.0.get(&cuts), *span.1.get(&cuts));
        let (start, end) = (a.min(b), a.max(b));
        let old = &before[start..end];
        let times = (0..before.len()).filter(|at| before.as_bytes()[*at..].starts_with(old.as_bytes())).count();
        match files.replace("a.md", old, &new) {
            Ok(_) => {
                prop_assert!(!old.is_empty() && times == 1);
                let after = [&before[..start], &new, &before[end..]].concat();
                prop_assert_eq!(files.text("a.md"), after);
            }
            Err(error) => {
                let code = if old.is_empty() { "STRING_NOT_FOUND" } else { "STRING_NOT_UNIQUE" };
                prop_assert_eq!(error.code_name(), Some(code));
                prop_assert!(old.is_empty() || times > 1);
                prop_assert_eq!(files.text("a.md"), before);
            }
        }
    }

    #[test]
    fn insert_touches_nothing_but_its_span(
        before in texts(),
        line in any::<prop::sample::Index>(),
        new in texts(),
    ) {
        let files = Files::new();
        files.write_bytes("a.md", before.as_bytes());
        let lines = before.split('\n').count();
        let line = 1 + line.index(lines + 1);
        files.insert("a.md", line, &new).unwrap();
        let after = files.text("a.md");
        let bom = if before.starts_with('\u{feff}') { 3 } else { 0 };
        let start = if line == 1 { bom } else {
            before.match_indices('\n').nth(line - 2).map_or(before.len(), |(end, _)| end + 1)
        };
        prop_assert!(after.starts_with(&before[..start]) && after.ends_with(&before[start..]));
        prop_assert!(after.len() >= before.len());
        let plain = |text: &str| text.replace('\r', "");
        let expected = inserted_by_the_specification(&before[bom..], line, &new);
        prop_assert_eq!(plain(&after[bom..]), plain(&expected));
        let is_crlf = before.contains('\n') && !before.replace("\r\n", "").contains('\n');
        prop_assert!(!is_crlf || !after.replace("\r\n", "").contains('\n'), "the newline style was lost");
    }
}
