//! How the text files of another system are imported, with proof that nothing of them is lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::advice::Advisor;
use super::decisions::{Decision, Part};
use super::draft::Draft;
use super::page::{Page, Piece, Role};
use super::paths::{ROOT, normal_path};
use super::reroute::{Home, heading, rerouted, settle};
use super::split::{When, split};
use crate::agent::rules::describe;
use crate::agent::{Advice, MigrateAsk, MigratedNote, MigrationPlan, SourceFile};
use crate::error::{Error, Kind, Result};

/// How many characters of a file an agent is shown.
const HEAD_CHARS: usize = 200;
/// The extensions of text files.
const EXTENSIONS: [&str; 4] = [".md", ".txt", ".markdown", ".text"];

/// One file of another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path there, with `/` between the parts.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What happens to the folders of another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Structure {
    /// They become notes.
    #[default]
    Preserve,
    /// Everything goes into the root note, which is split again as needed.
    Flatten,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Which file went where.
    pub moved: Vec<Moved>,
    /// Which files were not imported, and why.
    pub skipped: Vec<Skipped>,
    /// The notes that are new.
    pub new_files: Vec<String>,
    /// How many blocks were found again in the notes.
    pub blocks: usize,
    /// Links in the imported files that lead to no note.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_links: Vec<DeadLink>,
    /// Who decided, and why.
    pub reason: String,
}

/// A file that was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The file.
    pub from: String,
    /// The notes that hold its blocks.
    pub to: Vec<String>,
    /// How many blocks it has.
    pub blocks: usize,
}

/// A file that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file.
    pub path: String,
    /// Why.
    pub why: String,
}

/// A link in an imported file that leads to no note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLink {
    /// The file.
    pub from: String,
    /// The target of the link.
    pub to: String,
}

/// A file that can be imported.
pub(super) struct Taken<'a> {
    pub(super) from: &'a str,
    /// Its path without an extension.
    pub(super) path: String,
    pub(super) page: Page,
    bytes: usize,
    head: String,
}

impl Taken<'_> {
    /// Returns its content without front matter and list of links.
    pub(super) fn body(&self) -> impl Iterator<Item = &Piece> {
        let own = self.page.pieces.iter().filter(|piece| is_own(piece));
        own.filter(|piece| !matches!(piece.role, Role::Front | Role::Link))
    }

    /// Returns the first piece of its body.
    pub(super) fn first(&self) -> Option<&Piece> {
        self.body().next()
    }

    /// Returns the words of its first heading, if it begins with one.
    pub(super) fn title(&self) -> Option<&str> {
        self.first().and_then(Piece::heading)
    }
}

/// Plans an import.
pub(super) fn import(
    draft: &mut Draft<'_>,
    advisor: &Advisor<'_>,
    sources: &[Source],
    structure: Structure,
    bytes_max: usize,
) -> Result<Imported> {
    let (mut taken, skipped) = readable(sources);
    let mut imported = Imported { skipped, ..Imported::default() };
    if taken.is_empty() {
        return Ok(imported);
    }
    let ask = MigrateAsk { files: taken.iter().enumerate().map(shown).collect(), bytes_max };
    let decided = match structure {
        Structure::Preserve => advisor.ask(|agent| agent.migrate(&ask), |plan| check(plan, taken.len()))?,
        Structure::Flatten => advisor.ask(
            |_| {
                let files = (0..taken.len()).collect();
                let notes = vec![MigratedNote { path: ROOT.to_owned(), files }];
                Ok(Advice::free(MigrationPlan { notes }, "all of it goes into the root, as requested"))
            },
            |_| Ok(()),
        )?,
    };
    let mut notes: Vec<(String, Vec<usize>)> = Vec::new();
    for note in &decided.advice.plan.notes {
        notes.push((draft.spelled(&normal_path(Some(&note.path))?)?, note.files.clone()));
    }
    let homes = settle(draft, &notes, &mut taken, structure)?;
    let touched = with_those_above(notes.iter().map(|(path, _)| path.as_str()));
    let mut before = BTreeSet::new();
    for path in &touched {
        if draft.exists(path)? {
            before.insert(path.clone());
        }
    }
    let mut parts = Vec::new();
    imported.dead_links = rerouted(draft, &mut taken, &homes, &touched)?;
    for (path, files) in notes {
        let files: Vec<&Taken<'_>> = files.iter().map(|number| &taken[*number]).collect();
        let blocks = fill(draft, &path, &files, structure)?;
        parts.push(Part { path, blocks });
    }
    link(draft, &touched)?;
    let decision = Decision::new("import", ROOT, draft.now, &decided);
    draft.decisions.push(Decision { parts, ..decision });
    let mut new: BTreeSet<String> = touched.iter().filter(|path| !before.contains(*path)).cloned().collect();
    for path in &touched {
        new.extend(split(draft, advisor, path, bytes_max, When::TooLarge)?);
    }
    imported.new_files = new.into_iter().collect();
    imported.reason = decided.advice.reason;
    account(draft, &taken, &homes, &mut imported)?;
    Ok(imported)
}

fn readable(sources: &[Source]) -> (Vec<Taken<'_>>, Vec<Skipped>) {
    let (mut taken, mut skipped) = (Vec::new(), Vec::new());
    for source in sources {
        let why = match std::str::from_utf8(&source.bytes) {
            Ok(text) if text.trim().is_empty() => "it is empty",
            Ok(text) if text.contains('\0') => "it is not text",
            Ok(text) => {
                let bare = EXTENSIONS.iter().find_map(|extension| source.path.strip_suffix(extension));
                let path = bare.unwrap_or(&source.path).to_owned();
                let head = text.chars().take(HEAD_CHARS).collect();
                let (page, bytes) = (own_page(text), text.len());
                taken.push(Taken { from: &source.path, path, page, bytes, head });
                continue;
            }
            Err(_) => "it is not UTF-8 text",
        };
        skipped.push(Skipped { path: source.path.clone(), why: why.to_owned() });
    }
    (taken, skipped)
}

fn shown((number, file): (usize, &Taken<'_>)) -> SourceFile {
    SourceFile { number, path: file.path.clone(), bytes: file.bytes, head: file.head.clone() }
}

/// Checks that a plan puts every file into exactly one note, and that every note has a valid path.
fn check(plan: &MigrationPlan, files: usize) -> Result<()> {
    let refused = |why: String| Err(Error::new(Kind::Unsupported, why));
    let mut seen = BTreeSet::new();
    for note in &plan.notes {
        normal_path(Some(&note.path))?;
        for number in &note.files {
            if *number >= files || !seen.insert(*number) {
                return refused(format!("the plan takes file {number} twice, or it does not exist"));
            }
        }
    }
    if seen.len() < files {
        refused(format!("the plan forgets {} files", files - seen.len()))
    } else {
        Ok(())
    }
}

/// Reads a file as a page. Metadata that is not all memgrove's own counts as content.
fn own_page(text: &str) -> Page {
    let mut page = Page::parse(text);
    if !page.foreign_meta().is_empty() {
        let meta = page.pieces.iter_mut().filter(|piece| matches!(piece.role, Role::MetaHead | Role::Meta));
        meta.for_each(|piece| piece.role = Role::Body);
    }
    page
}

/// Puts files into a note, each under a heading with its name, unless it begins with a heading that no
/// other file has. A file named like the note itself gets no heading, and comes first.
fn fill(draft: &mut Draft<'_>, path: &str, files: &[&Taken<'_>], structure: Structure) -> Result<usize> {
    let mut blocks = 0;
    for file in files {
        let body: Vec<&Piece> = file.body().collect();
        let headed = file.title().is_some();
        let heading = heading(path, file, files, structure);
        let old = draft.page(path)?.cloned();
        let has = |line: &&Piece| old.iter().flat_map(|page| &page.pieces).any(|own| own.text == line.text);
        let links = file.page.pieces.iter().filter(|piece| piece.role == Role::Link);
        let links: Vec<&Piece> = links.filter(|line| !has(line)).collect();
        let front = file.page.front().filter(|front| !has(front));
        let there =
            body.is_empty() || old.as_ref().is_some_and(|page| is_there(page, heading.as_deref(), &body));
        if there && links.is_empty() && front.is_none() {
            continue;
        }
        if files.len() == 1 && headed && old.is_none() {
            draft.put(path, Page::parse("\n"))?;
        }
        let page = draft.change(path)?;
        blocks += links.len() + usize::from(front.is_some());
        front.into_iter().for_each(|front| page.insert(0, front.clone()));
        links.into_iter().for_each(|line| page.add_link(line.clone()));
        if there {
            continue;
        }
        blocks += body.len();
        let at = if heading.is_none() && !headed { page.top_end() } else { page.body_end() };
        let heading = heading.map(|heading| Piece::added(heading, Role::Body));
        let body = body.into_iter().map(|piece| Piece { role: Role::Body, ..piece.clone() });
        for (count, piece) in heading.into_iter().chain(body).enumerate() {
            page.insert(at + count, piece);
        }
    }
    Ok(blocks)
}

/// Whether the blocks of a file are already in a note, in order and under its heading.
fn is_there(page: &Page, heading: Option<&str>, body: &[&Piece]) -> bool {
    let wanted: Vec<&str> = heading.into_iter().chain(body.iter().map(|piece| piece.text.as_str())).collect();
    let texts: Vec<&str> = page.pieces.iter().map(|piece| piece.text.as_str()).collect();
    let headed = |at: usize| page.pieces.get(at).is_some_and(|piece| piece.kind.level().is_some());
    let found = texts.windows(wanted.len()).enumerate().filter(|(_, part)| *part == wanted);
    // Without a heading of its own, it must not stand under that of another file.
    { found }.any(|(at, _)| headed(at) || at <= page.top_end())
}

/// Whether a piece is the file's own, and not something that memgrove itself writes.
fn is_own(piece: &Piece) -> bool {
    !matches!(piece.role, Role::LinksHead | Role::MetaHead | Role::Meta)
}

/// Returns these paths, the root, and all paths between them.
fn with_those_above<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = BTreeSet::from([ROOT.to_owned()]);
    for path in paths {
        all.insert(path.to_owned());
        all.extend(path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
    }
    all
}

/// Makes the missing notes, and lists each in the note above it.
fn link(draft: &mut Draft<'_>, paths: &BTreeSet<String>) -> Result<()> {
    let mut by_depth: Vec<&String> = paths.iter().collect();
    by_depth.sort_by_key(|path| (path.matches('/').count(), (*path).clone()));
    for path in &by_depth {
        if !draft.exists(path)? {
            draft.change(path)?;
        }
    }
    for path in by_depth.into_iter().filter(|path| *path != ROOT) {
        let own = draft.page(path)?.map(Page::own_text).unwrap_or_default();
        draft.link_from_above(path, &describe(&own))?;
    }
    Ok(())
}

/// Finds every block of every file in the notes, by its hash, and records where: if possible in the
/// intended note, or beneath it. A block that is found is used up, so it does not count twice.
fn account(draft: &Draft<'_>, taken: &[Taken<'_>], homes: &[Home], imported: &mut Imported) -> Result<()> {
    let mut places: HashMap<blake3::Hash, BTreeMap<&str, usize>> = HashMap::new();
    for (path, page) in draft.pages() {
        let text = page.render();
        for piece in page.pieces.iter().filter(|piece| text.contains(&piece.text)) {
            let held = places.entry(blake3::hash(piece.text.as_bytes())).or_default();
            *held.entry(path).or_default() += 1;
        }
    }
    for (file, meant) in taken.iter().zip(homes.iter().map(|home| &home.path)) {
        let mut to: Vec<String> = Vec::new();
        let mut blocks = 0;
        for piece in file.page.pieces.iter().filter(|piece| is_own(piece)) {
            let held = places.get_mut(&blake3::hash(piece.text.as_bytes()));
            let near = |path: &str| (path != meant, !path.starts_with(&format!("{meant}/")));
            let left = held.into_iter().flatten().filter(|(_, count)| **count > 0);
            let Some((place, count)) = left.min_by_key(|(path, _)| near(path)) else {
                let message =
                    format!("a block of `{}` is not in the result, so nothing was changed", file.from);
                return Err(
                    Error::new(Kind::Corrupt, message).hint("please report this: it is a bug in memgrove")
                );
            };
            // A line that lists a note occurs once, even if several files list the note.
            *count -= usize::from(piece.role != Role::Link);
            blocks += 1;
            if !to.iter().any(|path| path == place) {
                to.push((*place).to_owned());
            }
        }
        imported.blocks += blocks;
        imported.moved.push(Moved { from: file.from.to_owned(), to, blocks });
    }
    Ok(())
}
