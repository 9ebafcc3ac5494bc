//! What is wrong with the notes, and how faults that need no judgement, in their metadata, are repaired.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Notes;
use super::page::{Page, Role, SIZE_BYTES, SPLIT_FROM};
use super::paths::{METADATA, note_at, path_of, resolved};
use crate::address::Scheme;
use crate::backend::{Edit, Expect, FileKind, Finding, Level, Note, Version};
use crate::error::Result;
use crate::memory::{Done, Plan};
use crate::store::Store;

/// All notes as they are now.
struct Desk {
    notes: BTreeMap<String, (Page, Version, usize)>,
    paths: Vec<String>,
    /// Notes that are not text, which are not read or changed.
    unreadable: Vec<String>,
    /// The names of all other files among the notes.
    others: BTreeSet<String>,
}

impl Desk {
    fn of(notes: &Notes, store: &Store) -> Result<Self> {
        let (mut found, mut others) = (BTreeMap::new(), BTreeSet::new());
        let mut unreadable = Vec::new();
        for info in store.list_all(&notes.root)? {
            if info.kind != FileKind::File {
                continue;
            }
            let Some(path) = path_of(&notes.root, &info.locator) else {
                others.insert(info.locator.name().to_lowercase());
                continue;
            };
            let Some(content) = store.read_optional(&info.locator)? else { continue };
            match std::str::from_utf8(&content.bytes) {
                Ok(text) => drop(found.insert(path, (Page::parse(text), content.version, text.len()))),
                Err(_) => unreadable.push(path),
            }
        }
        let mut paths: Vec<String> = found.keys().chain(&unreadable).cloned().collect();
        paths.sort_unstable();
        Ok(Desk { paths, notes: found, unreadable, others })
    }

    /// Returns the note that a link leads to.
    fn linked(&self, target: &str, from: &str) -> Option<&str> {
        let origin = |path: &str| self.notes.get(path)?.0.meta(SPLIT_FROM).map(str::to_owned);
        resolved(target, from, &self.paths, &mut { origin })
    }

    /// Whether a link leads to anything.
    fn leads(&self, target: &str, from: &str) -> bool {
        let name = target.rsplit('/').next().unwrap_or(target).to_lowercase();
        target.is_empty()
            || Scheme::split(target).is_some_and(|(scheme, _)| scheme != Scheme::Note)
            || self.linked(target, from).is_some()
            || self.others.contains(&name)
    }

    /// Returns for each note the notes that list it.
    fn listing(&self) -> HashMap<&str, Vec<&str>> {
        let mut found: HashMap<&str, Vec<&str>> = HashMap::new();
        for (path, (page, ..)) in &self.notes {
            for (_, target, _) in page.links() {
                if let Some(to) = self.linked(&target, path) {
                    found.entry(to).or_default().push(path);
                }
            }
        }
        found
    }
}

impl Notes {
    /// Returns the faults of the notes.
    ///
    /// # Errors
    /// As the store says.
    pub fn check(&self) -> Result<Vec<Finding>> {
        self.check_beside(&|_| false)
    }

    /// As [`Notes::check`], where a link may also lead to other memories; `leads` tells whether it does.
    ///
    /// # Errors
    /// As the store says.
    pub fn check_beside(&self, leads: &dyn Fn(&str) -> bool) -> Result<Vec<Finding>> {
        let desk = Desk::of(self, self.store())?;
        let mut findings = Vec::new();
        for path in &desk.unreadable {
            findings.push(Finding {
                level: Level::Warning,
                at: note_at(&self.root, path)?.key().to_owned(),
                what: "it is not UTF-8 text, so nothing in it is moved or linked".to_owned(),
                hint: "save it as UTF-8; until then it is left alone".to_owned(),
            });
        }
        for (path, (page, _, size)) in &desk.notes {
            let at = note_at(&self.root, path)?.key().to_owned();
            let mut found = |level, what: String, hint: String| {
                findings.push(Finding { level, at: at.clone(), what, hint });
            };
            let movable = page.pieces.iter().filter(|one| matches!(one.role, Role::Body | Role::Link));
            if *size > self.bytes_max && movable.count() > 1 {
                let what =
                    format!("it has {size} bytes, more than the {} a note should have", self.bytes_max);
                found(Level::Warning, what, format!("`memgrove note split {path}`, or the next write to it"));
            }
            if let Some(from) = gone(page, &desk.paths) {
                let what = format!("it was split from `{from}`, which is not there");
                found(
                    Level::Warning,
                    what,
                    "`memgrove doctor --fix` names the note that lists it".to_owned(),
                );
            }
            if let Some(said) = page.meta(SIZE_BYTES).filter(|said| **said != size.to_string()) {
                let what = format!("`size_bytes` says {said}, and it has {size} bytes");
                let hint =
                    "someone edited it: `memgrove doctor --fix`, or the next write, corrects the number";
                found(Level::Info, what, hint.to_owned());
            }
            let listed: BTreeSet<String> = page.links().into_iter().map(|(_, target, _)| target).collect();
            let targets: BTreeSet<String> = page.edges().into_iter().map(|(target, _)| target).collect();
            for target in targets.iter().filter(|target| !desk.leads(target, path) && !leads(target)) {
                // A link in the text may be to a note that is not written yet.
                let level = if listed.contains(target) { Level::Warning } else { Level::Info };
                let what = format!("`[[{target}]]` points to no note");
                found(level, what, "write that note, or correct the link".to_owned());
            }
        }
        for proposal in self.proposals()? {
            findings.push(Finding {
                level: Level::Info,
                at: note_at(&self.root, &proposal.path)?.key().to_owned(),
                what: format!("what was split off it stayed small: {}", proposal.children.join(", ")),
                hint: format!("`memgrove note merge {}` merges it back", proposal.path),
            });
        }
        let damaged = self.decisions()?.1;
        if damaged > 0 {
            findings.push(Finding {
                level: Level::Warning,
                at: self.root.child(METADATA)?.child(super::decisions::DECISIONS)?.key().to_owned(),
                what: match damaged {
                    1 => "1 line of the log of decisions cannot be read".to_owned(),
                    more => format!("{more} lines of the log of decisions cannot be read"),
                },
                hint: "they are kept; nothing depends on them".to_owned(),
            });
        }
        Ok(findings)
    }

    /// Corrects the metadata of notes, and returns what was done: their sizes, and the note that one was
    /// split from if that is gone and exactly one other lists it.
    ///
    /// # Errors
    /// As [`Memory::apply`](crate::Memory::apply).
    pub fn mend(&self, note: Note) -> Result<Done<Vec<String>>> {
        self.memory.apply(note, |store| {
            let desk = Desk::of(self, store)?;
            let listing = desk.listing();
            let (mut edits, mut done) = (Vec::new(), Vec::new());
            for (path, (page, version, size)) in &desk.notes {
                let mut mended = page.clone();
                if let (Some(_), Some([from])) =
                    (gone(page, &desk.paths), listing.get(path.as_str()).map(Vec::as_slice))
                {
                    mended.set_meta(SPLIT_FROM, from);
                    done.push(format!("`{path}`: it was split from `{from}`"));
                }
                let stale = page.meta(SIZE_BYTES).is_some_and(|said| said != size.to_string());
                if stale || mended != *page {
                    mended.stamp_size();
                }
                if stale {
                    done.push(format!("`{path}`: its size"));
                }
                if mended != *page {
                    let (at, expect) = (note_at(&self.root, path)?, Expect::At(version.clone()));
                    edits.push(Edit::Write { at, bytes: mended.render().into(), expect });
                }
            }
            Ok(Plan { edits, outcome: done })
        })
    }
}

/// Returns the note that a note was split from, if that note is gone.
fn gone<'a>(page: &'a Page, paths: &[String]) -> Option<&'a str> {
    page.meta(SPLIT_FROM).filter(|from| !paths.iter().any(|path| path == from))
}
