//! A folder that something else replicates: Drive, iCloud, Dropbox, Syncthing, Obsidian, git.
//!
//! As `local`, with these differences. The journal and the lock lie outside the tree. Every file is
//! synced before it takes its place, and grows by replacement too, so that nothing torn can be
//! replicated. A file that someone else made or changed a moment ago may still be on its way, and is
//! waited for. Conflict copies are no memories: they are not listed, they are never
//! deleted, and `memgrove conflicts` shows and merges them. A file of which iCloud has left but a placeholder
//! is there, and cannot be read or changed until it is downloaded.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::local::{Local, LocalOptions};
use super::replacing::{as_asked, by_replacement, rests_on_versions};
use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, Edit, FileKind, Finding,
    HistoryQuery, Info, Keep, Level, Moment, Past, Pruned, Pruning,
};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::locator::copies::{self, Copy, Family, copy_of};
use crate::registry::{OpenRequest, Registration};
use crate::vfs::{RealFs, Stat, Vfs};

/// The protocol name.
pub const PROTOCOL: &str = "vault";
/// How long a file that someone else changed is left alone.
const SETTLED_MS: i64 = 2_000;
/// How long such a file is waited for.
const WAIT: Duration = Duration::from_millis(3_500);
const PAUSE: Duration = Duration::from_millis(100);
/// How often an append is tried anew on what is there by then.
const ATTEMPTS_MAX: u32 = 200;

const CAPABILITIES: Capabilities =
    Capabilities { concurrent_writers: true, conflict_files: true, encryption: false, sync: true };

pub(crate) const REGISTRATION: Registration = Registration {
    open: |request| Ok(Arc::new(Vault::open(options_of(request)?)?)),
    capabilities: CAPABILITIES,
    about: "a folder that Drive, iCloud, Dropbox, Syncthing, Obsidian or git replicates",
};

/// A folder that something else replicates.
pub struct Vault {
    local: Local,
    tree: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    /// Whether conflict copies and placeholders are listed as plain files.
    shows_all: bool,
}

/// Opens the vault with its conflict copies visible, for those who merge them.
///
/// # Errors
/// As [`Local::open`].
pub fn open_with_copies(request: &OpenRequest) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(Vault::open(options_of(request)?)?.showing_all()))
}

fn options_of(request: &OpenRequest) -> Result<LocalOptions> {
    let root = |folder: &str| -> Result<Arc<dyn Vfs>> {
        Ok(Arc::new(RealFs::create_root(folder.as_ref()).map_err(|error| Error::from_io(error, folder))?))
    };
    let Some(state) = &request.state else {
        return Err(Error::new(Kind::Invalid, "a vault needs a folder for its journal outside the tree")
            .hint("set XDG_STATE_HOME or HOME"));
    };
    let mut options = LocalOptions::new(root(&request.location)?, Arc::clone(&request.clock));
    options.state = Some(root(state)?);
    options.sync_files = true;
    Ok(options)
}

impl Vault {
    /// Opens a tree. The options must name a state folder outside it.
    ///
    /// # Errors
    /// As [`Local::open`].
    pub fn open(mut options: LocalOptions) -> Result<Self> {
        options.sync_files = true;
        let (tree, clock) = (Arc::clone(&options.tree), Arc::clone(&options.clock));
        Ok(Vault { local: Local::open(options)?, tree, clock, shows_all: false })
    }

    /// Returns the vault with conflict copies and placeholders visible, for those who merge them.
    #[must_use]
    pub fn showing_all(mut self) -> Self {
        self.shows_all = true;
        self
    }

    /// Whether iCloud has left a placeholder in place of a file.
    fn is_elsewhere(&self, at: &Locator) -> bool {
        let is_there = |at: &Locator| self.tree.stat(at.key()).is_ok();
        let stub = at.parent().and_then(|folder| folder.child(copies::placeholder_of(at.name())).ok());
        stub.is_some_and(|stub| is_there(&stub)) && !is_there(at)
    }

    /// Tells a file that is elsewhere from one that is not found.
    fn unless_elsewhere<T>(&self, at: &Locator, found: Result<T>) -> Result<T> {
        match found {
            Err(error) if error.kind() == Kind::NotFound && self.is_elsewhere(at) => Err(elsewhere(at)),
            found => found,
        }
    }

    /// Refuses to touch a file that is elsewhere: a file made beside its placeholder would replace it on
    /// every machine, and deleting the placeholder would delete it.
    fn check_is_here(&self, at: &Locator) -> Result<()> {
        if self.is_elsewhere(at) {
            return Err(elsewhere(at));
        }
        if self.tree.stat(at.key()).is_ok_and(|stat| stat.kind == FileKind::Folder) {
            let within = self.local.list(at, Depth::All)?;
            if let Some(file) = within
                .iter()
                .filter(|info| !info.is_dir())
                .find_map(|info| stands_for(&info.locator).filter(|file| self.is_elsewhere(file)))
            {
                return Err(elsewhere(&file));
            }
        }
        Ok(())
    }

    /// Waits until a file that someone else is changing has come to rest.
    fn wait_for(&self, at: &Locator) -> Result<()> {
        let mut waited = Duration::ZERO;
        while !self.is_settled(at)? {
            if waited >= WAIT {
                return Err(Error::new(Kind::Busy, format!("`{at}` is being changed by another program"))
                    .hint("try again in a few seconds, when it is complete"));
            }
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
        Ok(())
    }

    /// Refuses to make a file under the name of a conflict copy: it would not be listed. One that was there
    /// before may come back.
    fn check_names(&self, change: &Change) -> Result<()> {
        for edit in &change.edits {
            self.check_is_here(edit.at())?;
            let made = match edit {
                Edit::Write { at, .. } | Edit::Append { at, .. } => at,
                Edit::Rename { to, .. } => to,
                Edit::Delete { .. } => continue,
            };
            self.check_is_here(made)?;
            let was_there = || -> Result<bool> {
                let query = HistoryQuery { at: Some(made.clone()), before: None, limit: 1 };
                Ok(self.tree.stat(made.key()).is_ok() || !self.local.history(&query)?.is_empty())
            };
            let named = match copies::placeholder(made.name()) {
                Some(_) => "an iCloud placeholder",
                None if copies::is_certain(made.name()) => "a conflict copy",
                None => continue,
            };
            if !was_there()? {
                let why = format!("`{made}` is the name of {named}, and would not be listed in a vault");
                return Err(Error::new(Kind::Invalid, why)
                    .code(code::INVALID_PATH)
                    .hint("choose another name"));
            }
        }
        Ok(())
    }

    fn is_settled(&self, at: &Locator) -> Result<bool> {
        let Ok(stat) = self.tree.stat(at.key()) else { return Ok(true) };
        if stat.kind != FileKind::File {
            return Ok(true);
        }
        let age_ms = i128::from(self.clock.now().as_millisecond()) - stat.mtime_ns / 1_000_000;
        if age_ms >= i128::from(SETTLED_MS) || self.is_as_we_left_it(at)? {
            return Ok(true);
        }
        if age_ms > -i128::from(SETTLED_MS) {
            return Ok(false);
        }
        // Its time lies in the future and so tells nothing: it has settled if nothing changes for a moment.
        thread::sleep(PAUSE);
        let is_same =
            |now: Stat| (now.size, now.mtime_ns, now.inode) == (stat.size, stat.mtime_ns, stat.inode);
        Ok(self.tree.stat(at.key()).is_ok_and(is_same))
    }

    /// Whether a file still holds what memgrove last left there.
    fn is_as_we_left_it(&self, at: &Locator) -> Result<bool> {
        let query = HistoryQuery { at: Some(at.clone()), before: None, limit: 1 };
        let Some(last) = self.local.history(&query)?.pop() else { return Ok(false) };
        let there = self.local.read(at)?;
        let left = self.local.read_past(at, &Moment::After(last.change));
        // If the history cannot tell, it is waited for as if someone else had written it.
        Ok(left.is_ok_and(|left| left.as_deref() == Some(&there.bytes)))
    }
}

impl Backend for Vault {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::WholeFile
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        self.unless_elsewhere(at, self.local.read(at))
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        self.unless_elsewhere(at, self.local.info(at))
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let mut listed = self.local.list(under, depth)?;
        if self.shows_all {
            return Ok(listed);
        }
        listed.retain(|info| !copies::is_certain(info.locator.name()));
        let is_stub = |info: &Info| !info.is_dir() && copies::placeholder(info.locator.name()).is_some();
        if listed.iter().any(is_stub) {
            let there: HashSet<Locator> = listed.iter().map(|info| info.locator.clone()).collect();
            listed.retain_mut(|info| match stands_for(&info.locator).filter(|_| is_stub(info)) {
                Some(file) => {
                    let is_new = !there.contains(&file);
                    info.locator = file;
                    is_new
                }
                None => true,
            });
            listed.sort_unstable_by(|one, other| one.locator.cmp(&other.locator));
        }
        Ok(listed)
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.local.mkdir(at)
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        if let Some(key) = &change.note.key
            && let Some(applied) = self.local.applied(key)?
        {
            return Ok(applied);
        }
        self.check_names(change)?;
        match change.note.derived {
            // Derived changes do not wait: the history does not tell that we wrote such a file last.
            true => change.check_derived()?,
            false => change.edits.iter().try_for_each(|edit| self.wait_for(edit.at()))?,
        }
        for _ in 0..ATTEMPTS_MAX {
            let Some(whole) = by_replacement(change, |at| self.local.read(at))? else {
                return self.local.apply(change);
            };
            match self.local.apply(&whole) {
                Ok(applied) => return Ok(as_asked(change, applied)),
                // Someone else was faster: try again on what is there now, unless a version was expected.
                Err(error) if error.kind() == Kind::Conflict && !rests_on_versions(change) => {}
                Err(error) => return Err(error),
            }
        }
        self.local.apply(change)
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.local.applied(key)
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.local.history(query)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.local.read_past(at, moment)
    }

    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        self.local.redact(at, moment)
    }

    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        self.local.redact_holding(under, holds)
    }

    fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned> {
        self.local.prune(keep, how)
    }

    fn check(&self) -> Result<Vec<Finding>> {
        let mut findings = self.local.check()?;
        let all = self.local.list(&Locator::root(), Depth::All)?;
        let there: HashSet<&Locator> = all.iter().map(|info| &info.locator).collect();
        let is_beside = |info: &Info, copy: &Copy| {
            let base = info.locator.parent().unwrap_or_default().child(&copy.base);
            base.is_ok_and(|base| there.contains(&base))
        };
        for info in all.iter().filter(|info| !info.is_dir()) {
            let finding = |level, what: String, hint: &str| Finding {
                level,
                at: info.locator.key().to_owned(),
                what,
                hint: hint.to_owned(),
            };
            if let Some(copy) = copy_of(info.locator.name()).filter(|copy| copy.family.is_certain()) {
                let what = format!("a conflict copy of `{}` by {}", copy.base, copy.family.name());
                let hint = match copy.family {
                    Family::CaseClash => "it is another file: give it a name of its own",
                    _ => "`memgrove conflicts` shows and merges it",
                };
                findings.push(finding(Level::Warning, what, hint));
            } else if let Some(copy) = copy_of(info.locator.name()).filter(|copy| is_beside(info, copy)) {
                let what = format!("perhaps a conflict copy of `{}` by {}", copy.base, copy.family.name());
                let hint = "compare both, then name it to `memgrove conflicts merge` with --take";
                findings.push(finding(Level::Info, what, hint));
            } else if copies::placeholder(info.locator.name()).is_some() {
                let error = elsewhere(&stands_for(&info.locator).unwrap_or_default());
                let (what, hint) = (error.message().to_owned(), error.hint_text().unwrap_or_default());
                findings.push(finding(Level::Warning, what, hint));
            } else if info.size == 0 && young(info.mtime, self.clock.now()) {
                let what = "it is empty and new: it may still be syncing".to_owned();
                findings.push(finding(Level::Info, what, "look again in a few seconds"));
            }
        }
        Ok(findings)
    }
}

/// The file that a placeholder stands for.
fn stands_for(stub: &Locator) -> Option<Locator> {
    stub.parent()?.child(copies::placeholder(stub.name())?).ok()
}

/// The error for a file of which only a placeholder is on this machine.
fn elsewhere(at: &Locator) -> Error {
    Error::new(Kind::Io, format!("`{at}` is not on this machine: iCloud keeps it elsewhere"))
        .hint("open its folder in Finder and download it")
}

fn young(mtime: Timestamp, now: Timestamp) -> bool {
    now.as_millisecond() - mtime.as_millisecond() < SETTLED_MS
}
