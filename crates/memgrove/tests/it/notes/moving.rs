//! Moving in from another system, and pictures of what came of it.

use memgrove::shapes::notes::{Source, Structure, picture};

use super::*;

/// The tree of the specification's own example.
fn silica_v1() -> Vec<Source> {
    [
        (
            "projects/silica/architecture",
            "Silica is built of tools and a loop.\n\nSee [[knowledge/python/async]].\n",
        ),
        ("projects/silica/features.md", "# Features\n\n- GitHub integration\n- memory\n"),
        ("projects/personal_website", "A static site.\n"),
        ("knowledge/python/async", "Prefer structured concurrency.\n"),
        ("knowledge/python/testing", "Use pytest.\n"),
        ("knowledge/typescript.txt", "Strict mode.\n"),
        ("profile/preferences", "Dark mode.\n"),
        ("picture.png", "\u{0}\u{1}"),
        ("empty", " \n"),
    ]
    .map(|(path, text)| Source { path: path.to_owned(), bytes: text.as_bytes().to_vec() })
    .to_vec()
}

#[test]
fn a_tree_of_files_becomes_a_tree_of_notes() {
    let notes = notes();
    let imported = notes.import(noted(), &silica_v1(), Structure::Preserve).unwrap().outcome;
    assert_eq!(
        imported.new_files,
        ["knowledge", "knowledge/python", "memory", "profile", "projects", "projects/silica"]
    );
    let to = |from: &str| imported.moved.iter().find(|moved| moved.from == from).unwrap().to.clone();
    assert_eq!(to("projects/silica/architecture"), ["projects/silica"]);
    assert_eq!(to("projects/personal_website"), ["projects"]);
    let skipped: Vec<&str> = imported.skipped.iter().map(|skipped| skipped.path.as_str()).collect();
    assert_eq!(skipped, ["picture.png", "empty"]);
    let silica = read(&notes, "projects/silica");
    assert!(silica.starts_with("# Silica\n\n## Architecture\n\nSilica is built"), "{silica}");
    assert!(silica.contains("# Features\n\n- GitHub integration\n- memory\n"), "{silica}");
    let list = notes.list().unwrap();
    let links = |path: &str| list.iter().find(|info| info.path == path).unwrap().links_to.clone();
    assert_eq!(links("memory"), ["knowledge", "profile", "projects"]);
    assert_eq!(links("projects/silica"), ["knowledge/python"], "a link to what was taken in leads there");
    let again = notes.import(noted(), &silica_v1(), Structure::Preserve).unwrap();
    assert!(again.outcome.new_files.is_empty());
    assert_eq!(
        read(&notes, "projects/silica").matches("Silica is built").count(),
        1,
        "nothing is taken in twice"
    );
}

#[test]
fn a_tree_of_files_becomes_one_note_if_asked() {
    let notes = notes();
    let imported = notes.import(noted(), &silica_v1(), Structure::Flatten).unwrap().outcome;
    assert_eq!((imported.new_files.as_slice(), imported.moved.len()), (["memory".to_owned()].as_slice(), 7));
    let text = read(&notes, "");
    assert!(text.contains("## Projects / Personal Website\n\nA static site.\n"), "{text}");
}

#[test]
fn large_files_come_apart_on_the_way() {
    let notes = notes();
    let sources = [
        Source { path: "work/log".into(), bytes: three_projects().into_bytes() },
        Source { path: "work/small".into(), bytes: b"small".to_vec() },
    ];
    for structure in [Structure::Preserve, Structure::Flatten] {
        let imported = notes.import(noted(), &sources, structure).unwrap().outcome;
        assert!(imported.blocks > 120, "{imported:?}");
    }
    for (name, text) in files(&notes) {
        assert!(text.len() <= 10_240 || !name.ends_with(".md"), "{name}");
    }
}

#[test]
fn pictures_show_every_note() {
    let notes = notes();
    notes.import(noted(), &silica_v1(), Structure::Preserve).unwrap();
    write(&notes, "odd", "# <b>&\"c\"\n", Mode::Replace);
    let graph = notes.graph().unwrap();
    let tree: Vec<String> =
        picture::tree(&graph).iter().map(|branch| format!("{}{}", branch.lines, branch.node.id)).collect();
    assert_eq!(tree[..4], ["memory", "├── knowledge", "│   └── knowledge/python", "├── profile"]);
    let svg = picture::svg(&graph);
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("&lt;b&gt;&amp;&quot;c&quot;")
    );
    assert_eq!(svg.matches("<rect ").count(), graph.nodes.len());
    let dot = picture::dot(&graph);
    assert!(dot.starts_with("digraph") && dot.contains("\"memory\" -> \"projects\""), "{dot}");
    assert_eq!(picture::mermaid(&graph).matches("-->").count(), graph.edges.len());
}

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    let source =
        |(path, text): &(&str, &str)| Source { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() };
    files.iter().map(source).collect()
}

#[test]
fn files_that_say_the_same_are_all_there() {
    let files = sources(&[
        ("profile/likes", "pizza\n"),
        ("profile/dislikes", "pizza\n"),
        ("profile/profile.md", "A person.\n"),
        ("people/alice/diet", "vegan\n"),
        ("people/bob/diet", "vegan\n"),
        ("people/bob/pets.md", "# Pets\n\nnone\n"),
        ("people/alice/pets.md", "# Pets\n\nnone\n"),
        ("memory", "At the top.\n"),
        ("loose", "Beside it.\n"),
    ]);
    let notes = notes();
    for round in 0..2 {
        let done = notes.import(noted(), &files, Structure::Preserve).unwrap();
        assert_eq!(done.change.is_some(), round == 0, "nothing is new the second time");
        let imported = done.outcome;
        let profile = read(&notes, "profile");
        assert!(
            profile.starts_with("# Profile\n\nA person.\n\n## Likes\n\npizza\n\n## Dislikes\n\npizza\n\n##"),
            "{round}: {profile}"
        );
        let root = read(&notes, "");
        assert!(
            root.starts_with("# Memory\n\nAt the top.\n\n## Loose\n\nBeside it.\n\n##"),
            "{round}: {root}"
        );
        let bob = imported.moved.iter().find(|moved| moved.from == "people/bob/diet").unwrap();
        assert_eq!(bob.to, ["people/bob"], "{round}");
    }
    let notes = super::notes();
    for round in 0..2 {
        notes.import(noted(), &files, Structure::Flatten).unwrap();
        let text = read(&notes, "");
        for whole in [
            "## People / Alice / Diet\n\nvegan\n",
            "## People / Bob / Diet\n\nvegan\n",
            "## People / Bob / Pets\n\n# Pets\n\nnone\n",
        ] {
            assert_eq!(text.matches(whole).count(), 1, "{round}: {text}");
        }
    }
}

#[test]
fn metadata_and_links_of_other_systems_are_kept() {
    let notes = notes();
    let files = sources(&[
        ("projects/silica/architecture", "See [[../personal_website]].\n"),
        ("projects/silica/features", "Many.\n"),
        (
            "projects/personal_website",
            "A static site.\n\n## Metadata\n\nlast_updated: 2020\nauthor: Ann\nlicense: MIT\n",
        ),
    ]);
    notes.import(noted(), &files, Structure::Preserve).unwrap();
    let text = read(&notes, "projects");
    assert!(
        text.contains("## Metadata\n\nlast_updated: 2020\nauthor: Ann\nlicense: MIT\n\n## Links"),
        "{text}"
    );
    assert_eq!(notes.linked("../personal_website", "projects/silica").unwrap().as_deref(), Some("projects"));
}
