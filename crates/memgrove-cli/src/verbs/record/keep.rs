//! Backups and versions of the records' files.

use std::io;

use memgrove::Result;
use memgrove::shapes::records::{Backup, Migrated, RecordType, RestoredBackup, Which};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RecordSchema, refuse_version, settle, tell};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};
use crate::portion;
use crate::verbs::{Effect, On, Verb};

/// Restore a file of records from a backup, or list the backups
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct RestoreBackup {
    /// Name of a backup, or core, learning or task for its newest; omit to list them
    backup: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

/// What was restored, or could be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestoreBackupAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RecordSchema>")]
    restored: Option<RestoredBackup>,
    #[schemars(with = "Vec<RecordSchema>")]
    backups: Vec<Backup>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for RestoreBackup {
    const NAME: &'static str = "record_restore_backup";
    const TITLE: &'static str = "Restore a backup of records";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli];
    type Answer = RestoreBackupAnswer;

    fn run(self, cx: &Context) -> Result<RestoreBackupAnswer> {
        let Some(given) = self.backup else {
            let records = cx.reading_records()?;
            let backups = records.backups()?;
            tell(&records);
            return Ok(RestoreBackupAnswer { restored: None, backups, replayed: false });
        };
        refuse_version(&self.guard)?;
        let which = match given.parse::<RecordType>() {
            Ok(kind) => Which::Newest(kind),
            Err(_) => Which::Named(given),
        };
        let records = cx.changing_records()?;
        let done = records.restore_backup(cx.note(Self::NAME, &self.guard), &which)?;
        settle(&records);
        let (restored, replayed) = (Some(done.outcome), done.replayed);
        Ok(RestoreBackupAnswer { restored, backups: records.backups()?, replayed })
    }

    fn show(answer: &RestoreBackupAnswer, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(restored) = &answer.restored {
            page.put("restored ")?;
            page.ink(Ink::Strong, &restored.file)?;
            page.put(&format!(" from {}: {} records", restored.backup, restored.records))?;
            crate::verbs::show_facts(page, None, None, answer.replayed)?;
            return restored
                .kept
                .iter()
                .try_for_each(|kept| page.line(&format!("the previous content is in {kept}")));
        }
        for backup in &answer.backups {
            page.line(&format!("{}  {}", backup.name, portion::size(backup.bytes)))?;
        }
        if answer.backups.is_empty() { page.ink(Ink::Dim, "no backups\n") } else { Ok(()) }
    }
}

/// Migrate records to the newest format version
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Migrate {}

/// What a migration did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MigrateAnswer {
    #[schemars(with = "RecordSchema")]
    migrated: Migrated,
}

impl Verb for Migrate {
    const NAME: &'static str = "record_migrate";
    const TITLE: &'static str = "Migrate the records";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli];
    type Answer = MigrateAnswer;

    fn run(self, cx: &Context) -> Result<MigrateAnswer> {
        let records = cx.changing_records()?;
        let done = records.migrate(cx.note(Self::NAME, &Guard::default()))?;
        tell(&records);
        Ok(MigrateAnswer { migrated: done.outcome })
    }

    fn show(answer: &MigrateAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.line(&answer.migrated.to_string())
    }
}
