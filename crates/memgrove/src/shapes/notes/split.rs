//! How a note is split as a plan says, with proof that nothing was lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::advice::Advisor;
use super::decisions::{Decision, Part};
use super::draft::Draft;
use super::page::{Page, Piece, Role, SPLIT_FROM, TITLE_ADDED};
use super::paths::{ROOT, child_path};
use crate::agent::rules::{slug, title_of};
use crate::agent::{SplitAsk, SplitPart, SplitPlan};
use crate::error::{Error, Kind, Result};
use crate::text::links::listed;

/// From this depth on, new notes are put beside the one that was split, not beneath it.
const DEPTH_MAX: usize = 4;
/// The most splits in one change.
const SPLITS_MAX: usize = 64;
/// The code of a plan that leaves a note as it is, or moves all of it.
const NOTHING: &str = "NOTHING_TO_SPLIT";
/// The longest description of a link.
const DESCRIPTION_CHARS_MAX: usize = 240;

/// Splits a note if it is too large (or in any case), and the resulting notes too. Returns the paths of
/// the new notes.
pub(super) fn split(
    draft: &mut Draft<'_>,
    advisor: &Advisor<'_>,
    path: &str,
    bytes_max: usize,
    when: When,
) -> Result<Vec<String>> {
    let mut made = BTreeSet::new();
    let mut pending = vec![path.to_owned()];
    let mut whole = BTreeSet::new();
    let mut rounds = 0;
    while rounds < SPLITS_MAX
        && let Some(path) = pending.pop()
    {
        let forced = rounds == 0 && when == When::Always;
        if whole.contains(&path) || (draft.bytes(&path)? <= bytes_max && !forced) {
            continue;
        }
        rounds += 1;
        let before = draft.bytes(&path)?;
        let parts = match once(draft, advisor, &path, bytes_max) {
            Ok(parts) => parts,
            // It is a single block, or nothing in it can be told apart, so it stays as it is.
            Err(error) if error.kind() == Kind::Unsupported && !forced => Vec::new(),
            Err(error) if error.code_name() == Some(NOTHING) => {
                let why = format!("`{path}` cannot be split: there is nothing to split off");
                return Err(Error::new(Kind::Invalid, why)
                    .hint("it takes parts that can be told apart, such as sections with headings"));
            }
            Err(error) => return Err(error.while_doing(format_args!("`{path}` cannot be split"))),
        };
        if parts.is_empty() || draft.bytes(&path)? >= before {
            whole.insert(path.clone());
        }
        for (part, new) in parts {
            if new {
                made.insert(part.clone());
            }
            pending.push(part);
        }
        // What is read most comes next: if there are too many rounds, the parts wait for another write.
        pending.push(path);
    }
    Ok(made.into_iter().collect())
}

/// When a note is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Only if it is too large.
    TooLarge,
    /// In any case.
    Always,
}

/// Splits a note once, and returns the notes that took blocks, each with whether it is new. Nothing is
/// changed unless the result is proved to be complete.
fn once(
    draft: &mut Draft<'_>,
    advisor: &Advisor<'_>,
    path: &str,
    bytes_max: usize,
) -> Result<Vec<(String, bool)>> {
    let Some(page) = draft.page(path)?.cloned() else { return Ok(Vec::new()) };
    let ask = SplitAsk { note: page.view(path), bytes_max };
    let decided = advisor.ask(|agent| agent.split(&ask), |plan| check(&page, plan))?;
    let plan = with_headings(&page, one_for_each_name(decided.advice.plan.parts.clone()));
    let beside = match draft.depth(path)? >= DEPTH_MAX {
        true => draft.origin(path)?,
        false => None,
    };
    let owner = beside.unwrap_or_else(|| path.to_owned());
    let mut rest = page.clone();
    let moved: BTreeSet<usize> = plan.iter().flat_map(|part| part.blocks.iter().copied()).collect();
    for number in moved.iter().rev() {
        rest.remove(*number);
    }
    rest.drop_empty_links();
    let mut before = vec![page.clone()];
    let mut after = BTreeMap::from([(path.to_owned(), rest)]);
    if let Some(above) = draft.page(&owner)?.cloned().filter(|_| owner != path) {
        before.push(above.clone());
        after.insert(owner.clone(), above);
    }
    let (mut parts, mut changed, mut described) = (Vec::new(), Vec::new(), BTreeSet::new());
    for part in plan {
        let name = free_name(draft, &owner, &part.name, path)?;
        let target = draft.spelled(&child_path(&owner, &name))?;
        let there = draft.page(&target)?.cloned();
        changed.push((target.clone(), there.is_none()));
        before.extend(there.clone());
        parts.push(Part { path: target.clone(), blocks: part.blocks.len() });
        let pieces = part.blocks.iter().map(|number| page.pieces[*number].clone()).collect();
        let mut child = received(there, pieces, &part, &target, &owner);
        let description: String = part.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
        if after.get_mut(&owner).is_some_and(|above| list(above, &mut child, &target, &description)) {
            described.insert(target.clone());
        }
        after.insert(target, child);
    }
    prove(path, &before, &after, &described)?;
    for (path, page) in after {
        draft.put(&path, page)?;
    }
    let decision = Decision::new("split", path, draft.now, &decided);
    draft.decisions.push(Decision { strategy: Some(decided.advice.plan.strategy), parts, ..decision });
    if owner != path {
        changed.push((owner, false));
    }
    Ok(changed)
}

/// Lists a note in the note above it, unless someone has written or changed that line. Returns whether it
/// did.
fn list(above: &mut Page, child: &mut Page, path: &str, description: &str) -> bool {
    let line = |above: &Page| above.line_of(path).map(|at| above.pieces[at].text.clone());
    if line(above).is_some_and(|line| !child.is_listed_as(&line)) {
        return false;
    }
    above.list_link(path, description);
    if let Some(line) = line(above) {
        child.listed_as(&line);
    }
    true
}

/// Combines parts with the same name.
fn one_for_each_name(parts: Vec<SplitPart>) -> Vec<SplitPart> {
    let mut made: Vec<SplitPart> = Vec::new();
    for part in parts {
        match made.iter_mut().find(|there| slug(&there.name) == slug(&part.name)) {
            Some(there) => there.blocks.extend(part.blocks),
            None => made.push(part),
        }
    }
    made
}

/// Returns a free name beneath a note, which leads neither to the note itself nor to the root.
fn free_name(draft: &mut Draft<'_>, owner: &str, name: &str, itself: &str) -> Result<String> {
    let name = slug(name);
    let mut tried = name.clone();
    for number in 2.. {
        let path = draft.spelled(&child_path(owner, &tried))?;
        // An existing note that this one does not list is somebody else's.
        let ours = draft.page(owner)?.is_some_and(|page| page.links().iter().any(|(_, own, _)| *own == path));
        if path != itself && path != ROOT && (ours || !draft.exists(&path)?) {
            return Ok(tried);
        }
        tried = format!("{name}_{number}");
    }
    Ok(tried)
}

/// Returns the note that takes blocks: the existing one, or a new one.
fn received(there: Option<Page>, pieces: Vec<Piece>, part: &SplitPart, path: &str, owner: &str) -> Page {
    let mut page = there.unwrap_or_else(|| {
        let mut page = Page::default();
        let headed =
            pieces.iter().find(|piece| piece.role == Role::Body).is_some_and(|p| p.kind.level().is_some());
        if !headed {
            let title: Vec<&str> = part.title.split_whitespace().collect();
            let title = if title.is_empty() { title_of(path) } else { title.join(" ") };
            page = Page::titled(&title);
            page.set_meta(TITLE_ADDED, &title);
        }
        page.set_meta(SPLIT_FROM, owner);
        page
    });
    for piece in pieces {
        match piece.role {
            Role::Link => page.add_link(piece),
            _ => {
                let end = page.body_end();
                page.insert(end, piece);
            }
        }
    }
    page
}

/// Checks that a plan moves only blocks that may be moved, each at most once, and not all into one note.
pub(super) fn check(page: &Page, plan: &SplitPlan) -> Result<()> {
    let refused = |why: String| Err(Error::new(Kind::Unsupported, why));
    let nothing = |why: &str| refused(why.to_owned()).map_err(|error| error.code(NOTHING));
    let mut seen = BTreeSet::new();
    let movable = |piece: &Piece| matches!(piece.role, Role::Body | Role::Link);
    let size = |number: &usize| page.pieces.get(*number).map_or(0, |piece| piece.text.len());
    let whole: usize = page.pieces.iter().filter(|piece| movable(piece)).map(|piece| piece.text.len()).sum();
    for part in &plan.parts {
        if part.blocks.is_empty() || part.name.trim().is_empty() {
            return refused("a part of the plan is empty or has no name".to_owned());
        }
        for number in &part.blocks {
            match page.pieces.get(*number) {
                Some(piece) if !movable(piece) => {
                    return refused(format!("the plan moves block {number}, which stays"));
                }
                Some(_) if !seen.insert(*number) => {
                    return refused(format!("the plan moves block {number} twice"));
                }
                Some(_) => {}
                None => return refused(format!("the plan names block {number}, which does not exist")),
            }
        }
        let bytes: usize = part.blocks.iter().map(size).sum();
        if bytes * 20 > whole * 19 {
            return nothing("the plan moves everything into one note");
        }
    }
    if plan.parts.is_empty() {
        return nothing("the plan moves nothing");
    }
    Ok(())
}

/// Adds to each part the headings that would be left without a section.
fn with_headings(page: &Page, mut parts: Vec<SplitPart>) -> Vec<SplitPart> {
    let mut home: HashMap<usize, usize> = HashMap::new();
    for (index, part) in parts.iter().enumerate() {
        home.extend(part.blocks.iter().map(|number| (*number, index)));
    }
    for at in (0..page.pieces.len()).rev() {
        let piece = &page.pieces[at];
        let Some(level) = piece.kind.level().filter(|_| piece.role == Role::Body) else { continue };
        let inside =
            |other: &&Piece| other.role == Role::Body && other.kind.level().is_none_or(|own| own > level);
        let count = page.pieces[at + 1..].iter().take_while(inside).count();
        let mut homes = (at + 1..=at + count).map(|number| home.get(&number).copied());
        let Some(Some(part)) = homes.next() else { continue };
        if homes.all(|other| other == Some(part)) && !home.contains_key(&at) {
            home.insert(at, part);
            parts[part].blocks.push(at);
        }
    }
    for part in &mut parts {
        part.blocks.sort_unstable();
    }
    parts
}

/// Proves that the resulting notes contain every block of the former ones, verbatim and exactly once, and
/// that each of them reads back as intended.
fn prove(
    path: &str,
    before: &[Page],
    after: &BTreeMap<String, Page>,
    described: &BTreeSet<String>,
) -> Result<()> {
    for (place, page) in after {
        if !page.reads_back() {
            let why = format!("`{place}` would not read back as it was meant");
            return Err(Error::new(Kind::Unsupported, why).hint("look for unclosed code fences"));
        }
    }
    let aside: BTreeSet<&str> = described.iter().map(String::as_str).collect();
    let (mut given, mut kept) = (Census::default(), Census::default());
    before.iter().for_each(|page| given.count(page, &aside));
    after.values().for_each(|page| kept.count(page, &aside));
    if given == kept { Ok(()) } else { Err(lossy(path)) }
}

/// How often each block occurs that people have written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Census(BTreeMap<String, usize>);

impl Census {
    /// Counts the blocks of a page as they are in its text, and the metadata that people added. Lines that
    /// list the notes in `aside` do not count, because the change itself writes them.
    pub(super) fn count(&mut self, page: &Page, aside: &BTreeSet<&str>) {
        let text = page.render();
        let mut rest = text.as_str();
        for piece in &page.pieces {
            // Each block is searched for after the one before it, so none counts twice.
            let Some(at) = rest.find(&piece.text) else { continue };
            rest = &rest[at + piece.text.len()..];
            let own = match piece.role {
                Role::Front | Role::Title | Role::Body | Role::Aside => !piece.added,
                Role::Link => listed(&piece.text).is_none_or(|(link, _)| !aside.contains(link.target)),
                Role::LinksHead | Role::MetaHead | Role::Meta => false,
            };
            let text = if own { piece.text.clone() } else { String::new() };
            let text = if piece.role == Role::Meta { page.foreign_meta() } else { text };
            if !text.is_empty() {
                *self.0.entry(text).or_default() += 1;
            }
        }
    }
}

fn lossy(path: &str) -> Error {
    Error::new(Kind::Corrupt, format!("splitting `{path}` would lose a block, so nothing was changed"))
        .hint("please report this: it is a bug in memgrove")
}
