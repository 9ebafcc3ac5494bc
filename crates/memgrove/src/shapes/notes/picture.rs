//! How the graph of notes is drawn: as a tree for terminals, DOT, Mermaid, or SVG.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use super::paths::ROOT;
use super::survey::{Edge, Graph, Node};

/// One line of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch<'a> {
    /// The lines of the tree before it.
    pub lines: String,
    /// The note.
    pub node: &'a Node,
    /// The label of the link that leads to it.
    pub label: &'a str,
    /// How deep it is.
    pub depth: usize,
}

/// Returns the graph as a tree from the root, with every note once, where it is nearest to the root. Notes
/// that no link leads to come last.
pub fn tree(graph: &Graph) -> Vec<Branch<'_>> {
    let nodes: HashMap<&str, &Node> = graph.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut out: HashMap<&str, Vec<&Edge>> = HashMap::new();
    graph.edges.iter().for_each(|edge| out.entry(&edge.from).or_default().push(edge));
    // A note belongs to the linking note with the fewest links from the root.
    let mut parent: HashMap<&str, &str> = HashMap::new();
    let mut met: BTreeSet<&str> = BTreeSet::from([ROOT]);
    let mut level = vec![ROOT];
    let mut roots = vec![(ROOT, "")];
    loop {
        while !level.is_empty() {
            let mut next = Vec::new();
            for from in level {
                for edge in out.get(from).into_iter().flatten().filter(|edge| met.insert(&edge.to)) {
                    parent.insert(&edge.to, from);
                    next.push(edge.to.as_str());
                }
            }
            level = next;
        }
        let Some(loose) = graph.nodes.iter().find(|node| !met.contains(node.id.as_str())) else { break };
        met.insert(&loose.id);
        roots.push((&loose.id, "no link leads here"));
        level = vec![&loose.id];
    }
    let mut branches = Vec::new();
    for (root, label) in roots {
        grow(&nodes, &out, &parent, (root, label), &mut Vec::new(), &mut branches);
    }
    branches
}

fn grow<'a>(
    nodes: &HashMap<&str, &'a Node>,
    out: &HashMap<&str, Vec<&'a Edge>>,
    parent: &HashMap<&str, &str>,
    (path, label): (&str, &'a str),
    last: &mut Vec<bool>,
    branches: &mut Vec<Branch<'a>>,
) {
    let Some(node) = nodes.get(path) else { return };
    let mut lines = String::new();
    for (at, is_last) in last.iter().enumerate() {
        lines.push_str(match (at + 1 == last.len(), is_last) {
            (true, true) => "└── ",
            (true, false) => "├── ",
            (false, true) => "    ",
            (false, false) => "│   ",
        });
    }
    branches.push(Branch { lines, node, label, depth: last.len() });
    let below = out.get(path).into_iter().flatten();
    let children: Vec<&&Edge> = below.filter(|edge| parent.get(edge.to.as_str()) == Some(&path)).collect();
    for (at, edge) in children.iter().enumerate() {
        last.push(at + 1 == children.len());
        grow(nodes, out, parent, (&edge.to, &edge.label), last, branches);
        last.pop();
    }
}

/// Returns a size for people.
fn size(bytes: u64) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { format!("{:.1} KB", bytes as f64 / 1024.0) }
}

/// Writes the graph for Graphviz.
pub fn dot(graph: &Graph) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = "digraph memory {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n".to_owned();
    for node in &graph.nodes {
        let label = quoted(&format!("{}\n{}", node.label, size(node.size))).replace('\n', "\\n");
        let _ = writeln!(text, "  {} [label={label}];", quoted(&node.id));
    }
    for edge in &graph.edges {
        let _ = writeln!(
            text,
            "  {} -> {} [tooltip={}];",
            quoted(&edge.from),
            quoted(&edge.to),
            quoted(&edge.label)
        );
    }
    text + "}\n"
}

/// Writes the graph for Mermaid.
pub fn mermaid(graph: &Graph) -> String {
    let ids: HashMap<&str, usize> =
        graph.nodes.iter().enumerate().map(|(at, node)| (node.id.as_str(), at)).collect();
    let quoted = |text: &str| text.replace('"', "#quot;").replace(['\n', '\r'], " ");
    let mut text = "graph LR\n".to_owned();
    for (at, node) in graph.nodes.iter().enumerate() {
        let _ = writeln!(text, "  n{at}[\"{}<br/>{}\"]", quoted(&node.label), size(node.size));
    }
    for edge in &graph.edges {
        if let (Some(from), Some(to)) = (ids.get(edge.from.as_str()), ids.get(edge.to.as_str())) {
            let _ = writeln!(text, "  n{from} --> n{to}");
        }
    }
    text
}

const COLUMN: usize = 240;
const ROW: usize = 34;
const BOX: (usize, usize) = (190, 26);

/// Draws the graph as a picture: the tree from left to right, and the other links as dashed lines.
pub fn svg(graph: &Graph) -> String {
    let branches = tree(graph);
    let at: HashMap<&str, (usize, usize)> = branches
        .iter()
        .enumerate()
        .map(|(row, branch)| (branch.node.id.as_str(), (20 + branch.depth * COLUMN, 20 + row * ROW)))
        .collect();
    let deepest = branches.iter().map(|branch| branch.depth).max().unwrap_or(0);
    let (width, height) = (40 + deepest * COLUMN + BOX.0, 40 + branches.len() * ROW);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n<style>\
         rect{{fill:#fff;stroke:#456}}text{{fill:#123}}path{{fill:none;stroke:#89a}}.far{{stroke-dasharray:4 3}}\
         @media(prefers-color-scheme:dark){{rect{{fill:#1b2430;stroke:#9ab}}text{{fill:#dde}}}}</style>\n"
    );
    for edge in &graph.edges {
        let (Some(from), Some(to)) = (at.get(edge.from.as_str()), at.get(edge.to.as_str())) else { continue };
        let far = if to.0 == from.0 + COLUMN { "" } else { " class=\"far\"" };
        let (x1, y1, x2, y2) = (from.0 + BOX.0, from.1 + BOX.1 / 2, to.0, to.1 + BOX.1 / 2);
        let middle = (x1 + x2) / 2;
        let _ = writeln!(
            text,
            "<path{far} d=\"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}\"><title>{}</title></path>",
            escaped(&edge.label)
        );
    }
    for branch in &branches {
        let (x, y) = at[branch.node.id.as_str()];
        let label: String = branch.node.label.chars().take(20).collect();
        let _ = writeln!(
            text,
            "<g><title>{} ({})</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
             <text x=\"{}\" y=\"{}\">{} · {}</text></g>",
            escaped(&branch.node.id),
            size(branch.node.size),
            BOX.0,
            BOX.1,
            x + 10,
            y + 17,
            escaped(&label),
            size(branch.node.size)
        );
    }
    text + "</svg>\n"
}

fn escaped(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
