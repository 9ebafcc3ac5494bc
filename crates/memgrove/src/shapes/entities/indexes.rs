//! How people can look through all entities: lists by name, by type, by date, and of relations.
//!
//! They are derived: they can be deleted at any time, and are rebuilt equal. Storing an entity does not
//! wait for them; [`Knowledge::settle`](super::Knowledge::settle) brings them up to date.

use std::collections::{BTreeSet, HashMap};

use super::Entity;
use super::catalog::is_entity_file;
use super::draft::{Desk, beneath, entity_at};
use super::escape::escaped;
use super::format::Document;
use crate::backend::{Edit, Expect};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

/// The longest description in a list, in characters.
const DESCRIPTION_CHARS_MAX: usize = 120;

/// The lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexes {
    /// `indexes/by-name.md`
    ByName,
    /// `indexes/by-type.md`
    ByType,
    /// `indexes/by-date.md`
    ByDate,
    /// `relations/entity-relations.md`
    Relations,
}

/// One line of a list, in its group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    group: String,
    text: String,
}

impl Indexes {
    /// Every list.
    pub const ALL: [Indexes; 4] = [Indexes::ByName, Indexes::ByType, Indexes::ByDate, Indexes::Relations];

    /// Where the list is.
    pub fn path(self, desk: &Desk) -> Locator {
        let (folder, name) = match self {
            Indexes::ByName => ("indexes", "by-name.md"),
            Indexes::ByType => ("indexes", "by-type.md"),
            Indexes::ByDate => ("indexes", "by-date.md"),
            Indexes::Relations => ("relations", "entity-relations.md"),
        };
        beneath(&beneath(&desk.root, folder), name)
    }

    fn title(self) -> &'static str {
        match self {
            Indexes::ByName => "Entity Index",
            Indexes::ByType => "Type Index",
            Indexes::ByDate => "Date Index",
            Indexes::Relations => "Entity Relations",
        }
    }

    /// Returns the lines for one entity in the file at `path`.
    fn lines(self, entity: &Entity, path: &str, loose: bool) -> Vec<Line> {
        if self == Indexes::Relations {
            let from = escaped(&entity.name);
            let line = |relation: &super::Relation| {
                let date = relation.facts.date.as_deref().map_or(String::new(), |date| format!(" - {date}"));
                let (kind, to) = (escaped(&relation.kind), escaped(&relation.to));
                Line {
                    group: "Entries".to_owned(),
                    text: format!("- `{from}` - **{kind}:** `{to}`{date} - {path}"),
                }
            };
            return entity.relations.iter().map(line).collect();
        }
        if loose {
            return Vec::new();
        }
        let group = match self {
            Indexes::ByType => escaped(&entity.kind),
            Indexes::ByDate => {
                let date = entity.updated.as_deref().or(entity.created.as_deref()).unwrap_or("");
                date.get(..10).unwrap_or("undated").to_owned()
            }
            _ => "Entries".to_owned(),
        };
        let first = entity.observations.first().map_or("No description", |observation| &observation.text);
        let description: String = escaped(first).chars().take(DESCRIPTION_CHARS_MAX).collect();
        vec![Line { group, text: format!("- `{}` - {description} - {path}", escaped(&entity.name)) }]
    }

    fn print(self, mut lines: Vec<Line>, now: &str) -> String {
        lines.sort();
        lines.dedup();
        let noun = if self == Indexes::Relations { "relations" } else { "entities" };
        let mut text = format!("# {}\n**Updated:** {now}\n**Count:** {} {noun}\n", self.title(), lines.len());
        let mut group = None;
        for line in &lines {
            if group != Some(&line.group) {
                text.push_str(&format!("\n## {}\n", line.group));
                group = Some(&line.group);
            }
            text.push_str(&line.text);
            text.push('\n');
        }
        if lines.is_empty() {
            text.push_str("\n## Entries\n");
        }
        text
    }
}

/// Reads the lines of a list.
fn parse(text: &str) -> Vec<Line> {
    let mut group = String::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            group = name.to_owned();
        } else if line.starts_with("- ") {
            lines.push(Line { group: group.clone(), text: line.to_owned() });
        }
    }
    lines
}

/// Returns the files that may hold an entity with a name: those that the list of names gives for it, and
/// those that are not listed or have changed since the list was written. `None` if there is no list.
pub(super) fn may_hold(store: &Store, desk: &Desk, name: &str) -> Result<Option<Vec<Locator>>> {
    let list = Indexes::ByName.path(desk);
    let (Some(about), Some(content)) = (store.info_optional(&list)?, store.read_optional(&list)?) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&content.bytes);
    let begins = format!("- `{}` - ", escaped(name));
    let entry =
        |line: &'_ str| line.rsplit_once(" - ").map(|(_, path)| (path.to_owned(), line.starts_with(&begins)));
    let listed: HashMap<String, bool> = text.lines().filter_map(entry).collect();
    let mut places = Vec::new();
    for info in store.list_all(&desk.entities())? {
        let named = listed.get(inside(desk, &info.locator)).filter(|_| info.mtime < about.mtime);
        if !info.is_dir() && is_entity_file(&info.locator, desk) && named.is_none_or(|named| *named) {
            places.push(info.locator);
        }
    }
    Ok(Some(places))
}

/// Returns the lines of a list without the time at which it was written.
fn dateless(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("**Updated:** "))
}

/// Plans an update of the lists for the files that changed. `None` if a list is missing, so that all
/// entities must be read.
pub(super) fn patch(store: &Store, desk: &Desk, changed: &BTreeSet<Locator>) -> Result<Option<Plan<usize>>> {
    let mut entities = Vec::new();
    for at in changed {
        let text = store.read_optional(at)?.and_then(|content| String::from_utf8(content.bytes).ok());
        let entity = text.map(|text| entity_at(at, &Document::parse(&text)));
        entities.push((at, inside(desk, at), entity));
    }
    let paths: BTreeSet<&str> = entities.iter().map(|(_, path, _)| *path).collect();
    let mut edits = Vec::new();
    for list in Indexes::ALL {
        let at = list.path(desk);
        let Some(content) = store.read_optional(&at)? else { return Ok(None) };
        let old = String::from_utf8_lossy(&content.bytes).into_owned();
        let mut lines = parse(&old);
        lines.retain(|line| line.text.rsplit_once(" - ").is_none_or(|(_, path)| !paths.contains(path)));
        for (at, path, entity) in &entities {
            let loose = at.is_within(&desk.loose());
            lines.extend(entity.iter().flat_map(|entity| list.lines(entity, path, loose)));
        }
        let expect = Expect::At(content.version);
        edits.extend(written(list, desk, lines, &old, expect));
    }
    let outcome = edits.len();
    Ok(Some(Plan { edits, outcome }))
}

/// Plans to write the lists again from all entities.
pub(super) fn rebuild<'a>(
    store: &Store,
    desk: &Desk,
    all: impl Iterator<Item = (&'a Locator, &'a Entity)> + Clone,
) -> Result<Plan<usize>> {
    let mut edits = Vec::new();
    for list in Indexes::ALL {
        let at = list.path(desk);
        let content = store.read_optional(&at)?;
        let old =
            content.as_ref().map_or(String::new(), |content| String::from_utf8_lossy(&content.bytes).into());
        let lines = all
            .clone()
            .flat_map(|(at, entity)| list.lines(entity, inside(desk, at), at.is_within(&desk.loose())));
        let expect = content.map_or(Expect::Absent, |content| Expect::At(content.version));
        edits.extend(written(list, desk, lines.collect(), &old, expect));
    }
    let outcome = edits.len();
    Ok(Plan { edits, outcome })
}

fn written(list: Indexes, desk: &Desk, lines: Vec<Line>, old: &str, expect: Expect) -> Option<Edit> {
    let new = list.print(lines, &format!("{:.3}", desk.now));
    let differs = !dateless(&new).eq(dateless(old));
    differs.then(|| Edit::Write { at: list.path(desk), bytes: new.into(), expect })
}

/// Returns a path as the lists write it: relative to the root folder.
fn inside<'a>(desk: &Desk, at: &'a Locator) -> &'a str {
    at.relative_to(&desk.root).unwrap_or(at.key())
}
