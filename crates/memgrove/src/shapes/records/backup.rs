//! How the earlier contents of a file are backed up: in `.backup/`, at most five for each file.

use serde::{Deserialize, Serialize};

use super::schema::invalid;
use super::table::Table;
use super::{Records, archive, rewrite};
use crate::backend::{Depth, Edit, Expect, FileKind, Note};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::{BACKUPS, Done, Plan};
use crate::shapes::records::schema::RecordType;
use crate::store::Store;

/// The folder of the backups.
pub const FOLDER: &str = BACKUPS;

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// Its name in the folder of backups.
    pub name: String,
    /// The file that was backed up.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
}

/// The result of restoring a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredBackup {
    /// The backup.
    pub backup: String,
    /// The file that was restored.
    pub file: String,
    /// How many records it has now.
    pub records: u64,
    /// The backup of the content that was replaced; `None` if there was no file.
    pub kept: Option<String>,
}

impl Records {
    /// Returns all backups, the oldest of each file first.
    ///
    /// # Errors
    /// As [`Backend::list`](crate::Backend::list).
    pub fn backups(&self) -> Result<Vec<Backup>> {
        self.backups_in(self.memory.store())
    }

    pub(super) fn backups_in(&self, store: &Store) -> Result<Vec<Backup>> {
        let infos = store.backend().list(&self.root.child(FOLDER)?, Depth::Children)?;
        let backup = |info: crate::backend::Info| {
            let name = info.locator.name().to_owned();
            let file = file_named(name.split_once(".backup")?.0).to_owned();
            (info.kind == FileKind::File).then_some(Backup { name, file, bytes: info.size })
        };
        let mut backups: Vec<Backup> = infos.into_iter().filter_map(backup).collect();
        backups.sort_by(|one, other| (&one.file, age(&one.name)).cmp(&(&other.file, age(&other.name))));
        Ok(backups)
    }

    /// Returns the edits that back up a file's present content, and remove the oldest backups beyond the
    /// limit.
    pub(super) fn backed_up(
        &self,
        store: &Store,
        file: &str,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<Vec<Edit>> {
        if bytes.is_empty() || self.limits.backups_max == 0 {
            return Ok(Vec::new());
        }
        let folder = self.root.child(FOLDER)?;
        let there: Vec<String> = self
            .backups_in(store)?
            .into_iter()
            .map(|backup| backup.name)
            .filter(|name| name.strip_prefix(file).is_some_and(|rest| rest.starts_with(".backup.")))
            .collect();
        let name = fresh_name(file, &there, now);
        let at = folder.child(&name)?;
        let mut edits = vec![Edit::Write { at, bytes: bytes.to_vec().into(), expect: Expect::Any }];
        let excess = (there.len() + 1).saturating_sub(self.limits.backups_max);
        for old in there.iter().filter(|old| **old != name).take(excess) {
            edits.push(Edit::Delete { at: folder.child(old)?, expect: Expect::Any });
        }
        Ok(edits)
    }

    /// Restores a file from a backup, and backs up the present content. Without a name it is the newest
    /// backup of the type's file.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Invalid` if it is not of a file of records.
    pub fn restore_backup(&self, note: Note, which: &Which) -> Result<Done<RestoredBackup>> {
        self.change(note, |store, now| {
            let backup = self.chosen(store, which)?;
            let (kind, at) = self.file_of(&backup)?;
            let content = store.read_bytes(&self.root.child(FOLDER)?.child(&backup.name)?)?;
            let there = store.read_optional(&at)?;
            let table = Table::parse(kind, content.bytes.clone(), None, &self.limits, now);
            let records = table.rows.len() as u64;
            let expect = there.as_ref().map_or(Expect::Absent, |there| Expect::At(there.version.clone()));
            let mut edits = vec![Edit::Write { at, bytes: content.bytes.into(), expect }];
            if backup.file == kind.file() {
                // Restored records are no longer archived.
                let ids: Vec<&str> = table.rows.iter().map(|row| &*row.id).collect();
                edits.extend(self.filed(store, kind, &ids, Vec::new(), now)?);
            }
            let mut kept = None;
            if let Some(there) = &there {
                let backed_up = self.backed_up(store, &backup.file, &there.bytes, now)?;
                kept = backed_up.first().map(|edit| edit.at().name().to_owned());
                // The backup that is restored is not removed to make room.
                let is_own =
                    |edit: &Edit| matches!(edit, Edit::Delete { at, .. } if at.name() == backup.name);
                edits.extend(backed_up.into_iter().filter(|edit| !is_own(edit)));
            }
            let outcome = RestoredBackup { backup: backup.name, file: backup.file, records, kept };
            Ok(Plan { edits, outcome })
        })
    }

    /// Returns the file that was backed up: one of the three, or one of the archive.
    fn file_of(&self, backup: &Backup) -> Result<(RecordType, Locator)> {
        let file = &backup.file;
        let place = rewrite::kind_of_file(file).and_then(|kind| {
            let inside = match file == kind.file() {
                true => file.clone(),
                false => format!("{}/{}/{file}", archive::FOLDER, archive::year_of(file)?),
            };
            Some((kind, inside))
        });
        let (kind, inside) = place.ok_or_else(|| {
            invalid(format!("`{}` is not a backup of a file of records", backup.name.escape_default()))
                .hint("copy it where it belongs by hand")
        })?;
        Ok((kind, self.root.child(inside)?))
    }

    fn chosen(&self, store: &Store, which: &Which) -> Result<Backup> {
        let mut backups = self.backups_in(store)?;
        let absent = |what: String| {
            Error::new(Kind::NotFound, what).hint("`memgrove record restore-backup` lists what there is")
        };
        match which {
            Which::Named(name) => backups
                .into_iter()
                .find(|backup| backup.name == *name)
                .ok_or_else(|| absent(format!("there is no backup `{}`", name.escape_default()))),
            Which::Newest(kind) => {
                backups.retain(|backup| backup.file == kind.file());
                backups.pop().ok_or_else(|| absent(format!("there is no backup of `{}`", kind.file())))
            }
        }
    }

    pub(super) fn backup_at(&self, name: &str) -> Result<Locator> {
        self.root.child(FOLDER)?.child(name)
    }
}

/// Which backup to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The backup with this name.
    Named(String),
    /// The newest backup of this type's file.
    Newest(RecordType),
}

/// Returns the file that a backup's name stands for. Other programs name it after the type, such as
/// `learning_memories.jsonl`.
fn file_named(name: &str) -> &str {
    let named = |kind: &RecordType| name.strip_suffix("_memories.jsonl") == Some(kind.name());
    RecordType::ALL.into_iter().find(named).map_or(name, |kind| kind.file())
}

/// Returns when a backup was made, from its name: the second, and its number among several in that second.
fn age(name: &str) -> (&str, u64) {
    let stamp = name.split_once(".backup").map_or("", |(_, stamp)| stamp);
    match stamp.rsplit_once('_') {
        // The second itself contains an underscore too.
        Some((second, number)) if second.contains('_') => (second, number.parse().unwrap_or(0)),
        _ => (stamp, 0),
    }
}

/// Returns a free name: the file's, and the second. After the first backup in a second a number follows,
/// one higher than any of the existing ones.
fn fresh_name(file: &str, there: &[String], now: Timestamp) -> String {
    let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
    let (date, time) = (zoned.date(), zoned.time());
    let second = format!(
        "{file}.backup.{:04}{:02}{:02}_{:02}{:02}{:02}",
        date.year(),
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    let stamp = age(&second).0;
    let numbers = there.iter().map(|name| age(name)).filter(|(second, _)| *second == stamp);
    match numbers.map(|(_, number)| number).max() {
        None => second,
        Some(highest) => format!("{second}_{:02}", highest + 1),
    }
}
