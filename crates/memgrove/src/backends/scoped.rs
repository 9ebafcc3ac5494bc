//! A store inside a folder of another.

use std::sync::Arc;

use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, Edit, FileKind, Finding,
    HistoryQuery, Info, Keep, Moment, Op, Past, PastEdit, Pruned, Pruning, cannot_prune, exists, into_itself,
    is_folder, not_found, root_stays,
};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// How many changes of the whole store are asked for at a time, in search of those in the folder.
const PAGE: usize = 256;

/// One folder of a backend, as a backend of its own.
///
/// Places are named from the folder, in both directions. The history shows only what happened in
/// it: of a change that also touched other places, the edits in the folder. Idempotency keys are
/// the folder's own. The folder need not exist yet.
pub struct Scoped {
    inner: Arc<dyn Backend>,
    folder: Locator,
}

impl Scoped {
    /// A backend over a folder of another.
    pub fn new(inner: Arc<dyn Backend>, folder: Locator) -> Self {
        Scoped { inner, folder }
    }

    /// The place in the inner backend.
    fn inside(&self, at: &Locator) -> Result<Locator> {
        self.folder.child(at.key())
    }

    /// The place as it is named here; `None` if it is not in the folder.
    fn outside(&self, at: &Locator) -> Option<Locator> {
        at.rebased(&self.folder, &Locator::root())
    }

    /// The name of a key in the inner backend, where other folders have keys too.
    fn inner_key(&self, key: &str) -> String {
        format!("{}:{key}", self.folder)
    }

    fn inner_edit(&self, edit: &Edit) -> Result<Edit> {
        let mut edit = edit.clone();
        match &mut edit {
            Edit::Write { at, .. } | Edit::Append { at, .. } if at.is_root() => return Err(is_folder(at)),
            Edit::Delete { at, .. } if at.is_root() => return Err(root_stays()),
            Edit::Rename { from, to, .. } if from.is_root() => return Err(into_itself(from, to)),
            Edit::Rename { to, .. } if to.is_root() => return Err(exists(to)),
            Edit::Write { at, .. } | Edit::Append { at, .. } | Edit::Delete { at, .. } => {
                *at = self.inside(at)?;
            }
            Edit::Rename { from, to, .. } => (*from, *to) = (self.inside(from)?, self.inside(to)?),
        }
        Ok(edit)
    }

    fn outer_info(&self, mut info: Info) -> Option<Info> {
        info.locator = self.outside(&info.locator)?;
        Some(info)
    }

    /// Returns a past change as seen from the folder; `None` if it did nothing there.
    fn outer_past(&self, mut past: Past) -> Option<Past> {
        past.edits = past.edits.into_iter().filter_map(|edit| self.outer_past_edit(edit)).collect();
        let prefix = self.inner_key("");
        past.note.key = past.note.key.map(|key| key.strip_prefix(&prefix).unwrap_or(&key).to_owned());
        (!past.edits.is_empty()).then_some(past)
    }

    fn outer_past_edit(&self, edit: PastEdit) -> Option<PastEdit> {
        let PastEdit { op, at, to, old, new } = edit;
        let (from, to) = (self.outside(&at), to.map(|to| (self.outside(&to), to)));
        match (from, to) {
            (Some(at), None) => Some(PastEdit { op, at, to: None, old, new }),
            (Some(at), Some((Some(to), _))) => Some(PastEdit { op, at, to: Some(to), old, new }),
            // What was moved out is gone from here, and what was moved in is new.
            (Some(at), Some((None, _))) => Some(PastEdit { op: Op::Delete, at, to: None, old, new: None }),
            (None, Some((Some(at), _))) => Some(PastEdit { op: Op::Write, at, to: None, old: None, new }),
            // The whole folder came or went, with a folder above it.
            (None, Some((None, to))) if self.folder.is_within(&to) => {
                Some(PastEdit { op: Op::Write, at: Locator::root(), to: None, old: None, new: None })
            }
            (None, _) if self.folder.is_within(&at) => {
                Some(PastEdit { op: Op::Delete, at: Locator::root(), to: None, old: None, new: None })
            }
            (None, _) => None,
        }
    }

    /// An error in the caller's words: the folder in front of its places is taken off.
    fn outer_error(&self, error: Error) -> Error {
        let (beneath, itself) = (format!("`{}/", self.folder), format!("`{}`", self.folder));
        let reword = |text: &str| text.replace(&beneath, "`").replace(&itself, "the root");
        error.reworded(reword)
    }

    /// Everything that happened in the folder, a page of the inner history at a time.
    fn visit_history(&self, query: &HistoryQuery, mut visit: impl FnMut(Past) -> bool) -> Result<()> {
        let at = self.inside(query.at.as_ref().unwrap_or(&Locator::root()))?;
        let mut before = query.before.clone();
        loop {
            let page = HistoryQuery { at: Some(at.clone()), before, limit: PAGE };
            let page = self.inner.history(&page).map_err(|error| self.outer_error(error))?;
            let Some(last) = page.last().map(|past| past.change.clone()) else { return Ok(()) };
            let whole = page.len() == PAGE;
            for past in page {
                if let Some(past) = self.outer_past(past)
                    && !visit(past)
                {
                    return Ok(());
                }
            }
            if !whole {
                return Ok(());
            }
            before = Some(last);
        }
    }
}

impl Backend for Scoped {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.inner.conflict_strategy()
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        if at.is_root() {
            return Err(is_folder(at));
        }
        self.inner.read(&self.inside(at)?).map_err(|error| self.outer_error(error))
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        match self.inner.info(&self.inside(at)?) {
            Ok(info) => self.outer_info(info).ok_or_else(|| not_found(at)),
            // The root is always there, even before there is anything in it.
            Err(error) if at.is_root() && error.kind() == Kind::NotFound => Ok(Info {
                locator: Locator::root(),
                kind: FileKind::Folder,
                size: 0,
                mtime: Timestamp::UNIX_EPOCH,
                stamp: 0,
                version: None,
            }),
            Err(error) => Err(self.outer_error(error)),
        }
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let listed = self.inner.list(&self.inside(under)?, depth).map_err(|error| self.outer_error(error))?;
        Ok(listed.into_iter().filter_map(|info| self.outer_info(info)).collect())
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.inner.mkdir(&self.inside(at)?).map_err(|error| self.outer_error(error))
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        let edits = change.edits.iter().map(|edit| self.inner_edit(edit)).collect::<Result<_>>()?;
        let mut note = change.note.clone();
        note.key = note.key.map(|key| self.inner_key(&key));
        self.inner.apply(&Change { edits, note }).map_err(|error| self.outer_error(error))
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.inner.applied(&self.inner_key(key)).map_err(|error| self.outer_error(error))
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        let mut found = Vec::new();
        self.visit_history(query, |past| {
            found.push(past);
            query.limit == 0 || found.len() < query.limit
        })?;
        Ok(found)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.inner.read_past(&self.inside(at)?, moment).map_err(|error| self.outer_error(error))
    }

    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        self.inner.redact(&self.inside(at)?, moment).map_err(|error| self.outer_error(error))
    }

    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        self.inner.redact_holding(&self.inside(under)?, holds).map_err(|error| self.outer_error(error))
    }

    /// The history is that of the whole store, which is not for a part of it to forget.
    fn prune(&self, _keep: Keep, _how: Pruning) -> Result<Pruned> {
        Err(cannot_prune())
    }

    fn check(&self) -> Result<Vec<Finding>> {
        let mut findings = self.inner.check()?;
        for finding in &mut findings {
            let place = Locator::new(&finding.at).ok().and_then(|at| self.outside(&at));
            if let Some(place) = place {
                finding.at = place.key().to_owned();
            }
        }
        Ok(findings)
    }
}
