//! How a change of notes is planned: what was read, what becomes of it, and the resulting edits.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::decisions::{DECISIONS, Decision};
use super::page::{Page, SPLIT_FROM};
use super::paths::{METADATA, ORIGINS_MAX, ROOT, folder_of, is_relative, linkable, normal_path, note_at};
use super::survey::Survey;
use crate::agent::Spent;
use crate::agent::rules::title_of;
use crate::backend::{Edit, Expect, Version};
use crate::clock::Timestamp;
use crate::error::{Result, code};
use crate::locator::{Locator, collision_key};
use crate::memory::Plan;
use crate::store::{Store, text};
use crate::text::links::joined;

/// The notes that one change touches.
pub(super) struct Draft<'a> {
    store: &'a Store,
    root: &'a Locator,
    pub(super) now: Timestamp,
    sheets: BTreeMap<String, Sheet>,
    survey: Option<Rc<Survey>>,
    /// The decisions made for this change.
    pub(super) decisions: Vec<Decision>,
}

struct Sheet {
    page: Option<Page>,
    expect: Expect,
    changed: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(store: &'a Store, root: &'a Locator, now: Timestamp) -> Self {
        Draft { store, root, now, sheets: BTreeMap::new(), survey: None, decisions: Vec::new() }
    }

    fn sheet(&mut self, path: &str) -> Result<&mut Sheet> {
        if !self.sheets.contains_key(path) {
            let at = note_at(self.root, path)?;
            let sheet = match self.store.read_optional(&at)? {
                Some(content) => {
                    let page = Page::parse(&text(&at, content.bytes)?);
                    Sheet { page: Some(page), expect: Expect::At(content.version), changed: false }
                }
                None => Sheet { page: None, expect: Expect::Absent, changed: false },
            };
            self.sheets.insert(path.to_owned(), sheet);
        }
        Ok(self.sheets.get_mut(path).expect("it was just put there"))
    }

    /// Returns a note, if it exists.
    pub(super) fn page(&mut self, path: &str) -> Result<Option<&Page>> {
        Ok(self.sheet(path)?.page.as_ref())
    }

    /// Checks that a note is at the expected version.
    pub(super) fn check(&mut self, path: &str, expected: Option<&Version>) -> Result<()> {
        let Some(version) = expected else { return Ok(()) };
        let at = note_at(self.root, path)?;
        let there = match &self.sheet(path)?.expect {
            Expect::At(version) => Some(version.clone()),
            _ => None,
        };
        Expect::At(version.clone()).check(&at, there.as_ref())
    }

    /// Returns the notes that were read or made.
    pub(super) fn pages(&self) -> impl Iterator<Item = (&str, &Page)> {
        self.sheets.iter().filter_map(|(path, sheet)| Some((path.as_str(), sheet.page.as_ref()?)))
    }

    /// Whether a note exists.
    pub(super) fn exists(&mut self, path: &str) -> Result<bool> {
        Ok(self.page(path)?.is_some())
    }

    /// Returns the note that a link in another leads to. Most links have the path of a note, which is
    /// found without looking at all notes. No link is an error, whatever it contains.
    pub(super) fn linked(&mut self, target: &str, from: &str) -> Result<Option<String>> {
        if let Some(path) = self.linked_by_path(target, from)? {
            return Ok(Some(path));
        }
        let survey = self.survey()?;
        let Some(path) = survey.leads(target, from, &survey.paths()).map(str::to_owned) else {
            return Ok(None);
        };
        self.linked_by_path(&path, ROOT)
    }

    /// Returns the note whose path a link has.
    pub(super) fn linked_by_path(&mut self, target: &str, from: &str) -> Result<Option<String>> {
        let wanted = match is_relative(target) {
            true => joined(folder_of(from), target),
            false => Some(target.to_owned()),
        };
        let path = wanted.and_then(|path| normal_path(Some(&path)).ok());
        let Some(path) = path.filter(|path| note_at(self.root, path).is_ok()) else { return Ok(None) };
        match self.exists(&path) {
            Ok(there) => Ok(there.then_some(path)),
            Err(error) if error.code_name() == Some(code::NOT_TEXT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the note that another was split from, if it exists.
    pub(super) fn origin(&mut self, path: &str) -> Result<Option<String>> {
        let named = self.page(path)?.and_then(|page| page.meta(SPLIT_FROM)).map(str::to_owned);
        match named.filter(|from| from != path) {
            Some(from) => self.linked_by_path(&from, ROOT),
            None => Ok(None),
        }
    }

    /// Returns the survey of all notes as they were before the change.
    pub(super) fn survey(&mut self) -> Result<Rc<Survey>> {
        let survey = match self.survey.take() {
            Some(survey) => survey,
            None => Rc::new(Survey::of(self.store, self.root)?),
        };
        Ok(Rc::clone(self.survey.insert(survey)))
    }

    /// Returns a note to change; a new one has only its title.
    pub(super) fn change(&mut self, path: &str) -> Result<&mut Page> {
        let title = title_of(path);
        let sheet = self.sheet(path)?;
        sheet.changed = true;
        Ok(sheet.page.get_or_insert_with(|| Page::titled(&title)))
    }

    /// Replaces a note.
    pub(super) fn put(&mut self, path: &str, page: Page) -> Result<()> {
        let sheet = self.sheet(path)?;
        (sheet.page, sheet.changed) = (Some(page), true);
        Ok(())
    }

    /// Removes a note.
    pub(super) fn delete(&mut self, path: &str) -> Result<()> {
        let sheet = self.sheet(path)?;
        (sheet.page, sheet.changed) = (None, true);
        Ok(())
    }

    /// Returns the size that a note will have.
    pub(super) fn bytes(&mut self, path: &str) -> Result<usize> {
        let now = self.now;
        let sheet = self.sheet(path)?;
        Ok(sheet.page.as_ref().map_or(0, |page| {
            let mut page = page.clone();
            page.stamp(now);
            page.bytes()
        }))
    }

    /// Returns the path for a new note of this name: that of an existing note whose name differs only in
    /// case, else one that links can lead to.
    pub(super) fn spelled(&mut self, path: &str) -> Result<String> {
        if self.exists(path)? {
            return Ok(path.to_owned());
        }
        let path = &linkable(path);
        let at = note_at(self.root, path)?;
        let folder = at.parent().unwrap_or_default();
        let wanted = collision_key(at.name());
        let twin = self.store.list(&folder)?.into_iter().find(|other| collision_key(other.name()) == wanted);
        let spelled = twin.and_then(|twin| super::paths::path_of(self.root, &twin));
        Ok(spelled.unwrap_or_else(|| path.to_owned()))
    }

    /// Returns how many splits a note is away from the root.
    pub(super) fn depth(&mut self, path: &str) -> Result<usize> {
        let (mut at, mut depth) = (path.to_owned(), 0);
        while depth < ORIGINS_MAX && at != ROOT {
            depth += 1;
            match self.origin(&at)? {
                Some(from) => at = from,
                None => break,
            }
        }
        Ok(depth)
    }

    /// Lists a note in the nearest note above it, so that it can be found from the root, and returns that
    /// note.
    pub(super) fn link_from_above(&mut self, path: &str, description: &str) -> Result<String> {
        let mut above = path;
        let parent = loop {
            match above.rsplit_once('/') {
                Some((folder, _)) if self.exists(folder)? => break folder.to_owned(),
                Some((folder, _)) => above = folder,
                None => break ROOT.to_owned(),
            }
        };
        let targets = self.page(&parent)?.map(Page::links).unwrap_or_default();
        for (_, target, _) in targets {
            if self.linked_by_path(&target, &parent)?.as_deref() == Some(path) {
                return Ok(parent);
            }
        }
        if parent != path {
            let above = self.change(&parent)?;
            above.list_link(path, description);
            let line = above.line_of(path).map(|at| above.pieces[at].text.clone());
            if let (Some(line), sheet) = (line, self.sheet(path)?)
                && let Some(page) = sheet.page.as_mut().filter(|_| sheet.changed)
            {
                page.listed_as(&line);
            }
        }
        Ok(parent)
    }

    /// Returns what the decisions cost.
    pub(super) fn spent(&self) -> Spent {
        let mut spent = Spent::default();
        self.decisions.iter().for_each(|decision| spent.add(decision.spent));
        spent
    }

    /// Returns the edits of this draft, with the decisions that led to them.
    pub(super) fn into_plan<T>(self, outcome: T) -> Result<Plan<T>> {
        let Draft { root, now, sheets, decisions, .. } = self;
        let mut edits = Vec::new();
        for (path, sheet) in sheets.into_iter().filter(|(_, sheet)| sheet.changed) {
            let (at, expect) = (note_at(root, &path)?, sheet.expect);
            match (sheet.page, expect) {
                (Some(mut page), expect) => {
                    page.stamp(now);
                    edits.push(Edit::Write { at, bytes: page.render().into(), expect });
                }
                (None, Expect::Absent) => {}
                (None, expect) => edits.push(Edit::Delete { at, expect }),
            }
        }
        // A fact that was not stored is at least in the log.
        let told = !edits.is_empty() || decisions.iter().any(|decision| !decision.known.is_empty());
        if told && !decisions.is_empty() {
            let lines: String = decisions.iter().map(Decision::line).collect();
            let at = root.child(METADATA)?.child(DECISIONS)?;
            edits.push(Edit::Append { at, bytes: lines.into(), expect: Expect::Any });
        }
        Ok(Plan { edits, outcome })
    }
}
