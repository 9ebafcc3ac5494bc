//! Parsing and printing are inverse, and what is not understood is kept.

use memgrove::shapes::entities::{Document, Entity, Facts, Observation, Relation};
use proptest::prelude::*;

/// Strings that look like what a file is made of.
fn nasty() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "",
            " ",
            "\n",
            "\r\n",
            "\r",
            "\t",
            "\n\n",
            "**bold:**",
            "**Type:** x",
            "# Entity: y",
            "## Observations",
            "## Relations",
            "1. ",
            "12. one",
            "- ",
            "- **knows:** Bob",
            ":**",
            ":** ",
            "&",
            "&#10;",
            "&amp;#10;",
            "&amp;",
            "- source: x",
            "\\- source: x",
            "\\\\- date: y",
            "   - superseded by: z",
            "   ",
            "```",
            "---",
            "🦀",
            "日本語",
            "\u{feff}",
            "\u{2028}",
            "\0",
            ", ",
            ",",
            "[[link]]",
            "<b>",
            "|",
            "`",
            "\\",
            "\u{301}",
            "0.",
            "* ",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

fn facts() -> impl Strategy<Value = Facts> {
    let fact = || prop::option::weighted(0.2, nasty());
    (fact(), fact(), fact(), fact(), fact()).prop_map(
        |(source, date, valid_from, valid_until, superseded_by)| Facts {
            source,
            date,
            valid_from,
            valid_until,
            superseded_by,
        },
    )
}

fn entities() -> impl Strategy<Value = Entity> {
    let observation = (nasty(), facts()).prop_map(|(text, facts)| Observation { text, facts });
    let relation = (nasty(), nasty(), facts()).prop_map(|(kind, to, facts)| Relation { kind, to, facts });
    let tag = nasty().prop_filter("a tag says something", |tag| !tag.is_empty());
    (
        (nasty(), nasty(), prop::option::of(nasty()), prop::option::of(nasty())),
        prop::collection::vec(tag, 0..4),
        prop::collection::vec(observation, 0..13),
        prop::collection::vec(relation, 0..4),
    )
        .prop_map(|((name, kind, created, updated), tags, observations, relations)| Entity {
            name,
            kind,
            created,
            updated,
            tags,
            observations,
            relations,
        })
}

fn read(text: &str) -> Entity {
    Document::parse(text).entity("folder", "stem")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn parsing_is_the_inverse_of_printing(entity in entities()) {
        let printed = Document::new(&entity).print();
        let parsed = Document::parse(&printed);
        prop_assert_eq!(parsed.print(), printed.clone());
        prop_assert_eq!(parsed.entity("folder", "stem"), entity, "{}", printed);
    }

    #[test]
    fn an_update_says_what_it_should(old in entities(), mut new in entities()) {
        new.name = old.name.clone();
        let mut document = Document::parse(&Document::new(&old).print());
        document.update(&new);
        let printed = document.print();
        prop_assert_eq!(read(&printed), new, "{}", printed);
    }

    #[test]
    fn every_text_is_kept(text in nasty()) {
        prop_assert_eq!(Document::parse(&text).print(), text);
    }

    #[test]
    fn what_is_not_understood_survives_an_update(
        before in "[a-z ]{1,20}", middle in "> [a-z *|]{1,20}", tail in "[A-Z][a-z #]{0,20}", added in nasty(),
    ) {
        let text = format!(
            "# Entity: x\n**Type:** t\n**Owner:** me\n\nAbout: {before}\n\n## Observations\n1. one\n{middle}\n2. two\n\n\
             ## Notes of mine\n{tail}\n\n## Relations\n- **knows:** y\n{middle}\n<!-- end -->"
        );
        let mut document = Document::parse(&text);
        let mut entity = document.entity("", "");
        entity.observations.push(Observation::from(added.as_str()));
        entity.relations.push(Relation { kind: "k".into(), to: added.clone(), facts: Facts::default() });
        document.update(&entity);
        let printed = document.print();
        prop_assert_eq!(read(&printed), entity, "{}", printed);
        let mut there = printed.lines();
        for line in text.lines() {
            prop_assert!(there.any(|kept| kept == line), "lost {line:?} in {printed}");
        }
    }
}

#[test]
fn long_and_many_lines() {
    let long = "word 🦀 ".repeat(700);
    let texts = [long.as_str(), "a\n\n  b\n", "", "\n", "3. three", "ends in space ", "**bold:** text"];
    let observations: Vec<Observation> =
        texts.iter().cycle().take(105).map(|text| Observation::from(*text)).collect();
    let entity = Entity { name: "x".into(), kind: "t".into(), observations, ..Entity::default() };
    assert_eq!(read(&Document::new(&entity).print()), entity);
}

#[test]
fn files_written_by_hand_are_read() {
    let text = "# Entity: Alice\r\n**Type:** Person\r\n**Tags:** a,b , c\r\n\r\n## Observations\r\n7. likes tea\r\n  and cake\r\n\
                * plays chess\r\n\r\n## Relations\r\n- **works-at:** Acme\r\n- not a relation\r\n";
    let entity = read(text);
    assert_eq!((entity.name.as_str(), entity.kind.as_str(), entity.created), ("Alice", "Person", None));
    assert_eq!(entity.tags, ["a", "b", "c"]);
    let texts: Vec<&str> = entity.observations.iter().map(|o| o.text.as_str()).collect();
    assert_eq!(texts, ["likes tea\nand cake", "plays chess"]);
    assert_eq!(entity.relations.len(), 1);
    let mut document = Document::parse(text);
    let mut entity = document.entity("", "");
    entity.observations.push(Observation::from("new"));
    document.update(&entity);
    assert_eq!(document.print(), text.replace("* plays chess\r\n", "* plays chess\r\n3. new\r\n"));
}

#[test]
fn ordinary_markdown_is_read() {
    let text = "---\ntitle: \"Green tea\"\ntype: Drink\ntags: [hot, green]\naliases:\n  - tea\n---\n# Something else\n\n\
                A drink of\nboiled leaves.\n\n- from China\n- drunk in Japan\n\n## History\nOld.\n";
    let entity = read(text);
    assert_eq!((entity.name.as_str(), entity.kind.as_str()), ("Green tea", "Drink"));
    assert_eq!(entity.tags, ["hot", "green"]);
    let texts: Vec<&str> = entity.observations.iter().map(|o| o.text.as_str()).collect();
    assert_eq!(texts, ["A drink of\nboiled leaves.", "from China", "drunk in Japan", "Old."]);
    let mut document = Document::parse(text);
    let mut changed = entity.clone();
    changed.observations.push(Observation::from("new"));
    changed.tags.push("leaf".into());
    document.update(&changed);
    let printed = document.print();
    assert_eq!(read(&printed), changed, "{printed}");
    assert!(printed.contains("aliases:\n  - tea\n---\n# Something else\n"), "{printed}");
    assert!(printed.ends_with("## History\nOld.\n\n## Observations\n5. new\n"), "{printed}");
    assert_eq!(read("just a line").name, "stem");
    assert_eq!(read("# A heading\n\ntext").name, "A heading");
    assert_eq!(read("").observations.len(), 0);
}
