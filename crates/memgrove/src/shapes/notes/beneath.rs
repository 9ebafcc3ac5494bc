//! Which facts and sections of a text are in the notes that were split off from one, so that a text that is
//! written again finds what it said before.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::draft::Draft;
use super::facts::Given;
use super::page::{Page, Piece, Role, SPLIT_FROM, TITLE_ADDED};
use crate::agent::rules::{saying, sayings};
use crate::error::Result;

/// The level of blocks that are in no section.
const NO_SECTION: u8 = u8::MAX;

/// The parts of a text, by where they belong.
pub(super) struct Sorted {
    /// Those that are still to be placed.
    pub(super) facts: Vec<Given>,
    /// Sections that belong to a note beneath, which has their headings.
    pub(super) below: BTreeMap<String, Vec<Given>>,
    /// How many facts are known.
    pub(super) known: usize,
}

/// Finds what a text says in the notes that were split off from one. They are read only if the text has as
/// many blocks as there are such notes: a single fact must not cost a look into all of them.
pub(super) fn sorted(
    draft: &mut Draft<'_>,
    path: &str,
    page: &Page,
    facts: Vec<Given>,
    visited: &BTreeSet<String>,
) -> Result<Sorted> {
    let most: usize = facts.iter().map(|fact| fact.all().len()).sum();
    let links = page.links().len();
    let beneath = match most > 1 && (1..=most).contains(&links) {
        true => Beneath::of(draft, path, most)?,
        false => None,
    };
    let mut sorted = Sorted { facts: Vec::new(), below: BTreeMap::new(), known: 0 };
    let Some(beneath) = beneath else { return Ok(Sorted { facts, ..sorted }) };
    for mut fact in facts {
        match beneath.leads(&fact).filter(|child| !visited.contains(*child)) {
            Some(child) => sorted.below.entry(child.to_owned()).or_default().push(fact.handed_on()),
            None if fact.heading.is_some() => sorted.facts.push(fact),
            None => {
                let given = fact.blocks.len();
                // What a section says may be said in another section too, and is another fact there.
                let said = if fact.stays() { &beneath.loose } else { &beneath.said };
                fact.blocks.retain(|block| !said.contains(&saying(block)));
                sorted.known += given - fact.blocks.len();
                if !fact.blocks.is_empty() {
                    sorted.facts.push(fact);
                }
            }
        }
    }
    Ok(sorted)
}

/// What the notes say that were split off from one.
#[derive(Default)]
struct Beneath {
    /// Sections by level and words of their headings: each with the note right beneath that leads to it.
    sections: HashMap<(u8, String), String>,
    /// All that is said.
    said: HashSet<String>,
    /// What of it is said outside of sections.
    loose: HashSet<String>,
}

impl Beneath {
    /// Reads the notes that were split off from one, or from another such note; `None` if there are more than
    /// `most`.
    fn of(draft: &mut Draft<'_>, path: &str, most: usize) -> Result<Option<Self>> {
        let mut beneath = Beneath::default();
        let (mut seen, mut ours) = (BTreeSet::from([path.to_owned()]), BTreeSet::from([path.to_owned()]));
        let mut pending = VecDeque::from([(path.to_owned(), None::<String>, NO_SECTION)]);
        while let Some((from, by, level)) = pending.pop_front() {
            let links = draft.page(&from)?.map(Page::links).unwrap_or_default();
            for (_, target, _) in links {
                let Some(child) = draft.linked_by_path(&target, &from)? else { continue };
                if !seen.insert(child.clone()) {
                    continue;
                }
                if seen.len() > most + 1 {
                    return Ok(None);
                }
                let is_ours = |origin: &str| ours.contains(origin);
                let page = draft.page(&child)?.filter(|page| page.meta(SPLIT_FROM).is_some_and(is_ours));
                let Some(page) = page else { continue };
                let by = by.clone().unwrap_or_else(|| child.clone());
                let level = beneath.add(page, &by, level);
                ours.insert(child.clone());
                pending.push_back((child, Some(by), level));
            }
        }
        Ok(Some(beneath))
    }

    /// Adds what a note says. Sections within those of `level` belong to these, and are found there. Returns
    /// the level for the notes beneath this one.
    fn add(&mut self, page: &Page, by: &str, mut level: u8) -> u8 {
        let added = |piece: &Piece| piece.role == Role::Title && page.meta(TITLE_ADDED) == piece.heading();
        let own = |piece: &&Piece| matches!(piece.role, Role::Title | Role::Body) && !added(piece);
        for piece in page.pieces.iter().filter(own) {
            match piece.kind.level() {
                Some(here) if here <= level => {
                    level = here;
                    let words = piece.heading().unwrap_or_default().to_lowercase();
                    self.sections.entry((here, words)).or_insert_with(|| by.to_owned());
                }
                Some(_) => {}
                None => {
                    if level == NO_SECTION {
                        self.loose.extend(sayings(&piece.text));
                    }
                    self.said.extend(sayings(&piece.text));
                }
            }
        }
        level
    }

    /// Returns the note right beneath that leads to a section.
    fn leads(&self, section: &Given) -> Option<&str> {
        self.sections.get(&(section.level(), section.words()?)).map(String::as_str)
    }
}
