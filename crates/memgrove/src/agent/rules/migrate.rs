//! Which files of a tree become which notes: a folder becomes a note of its name that holds the small
//! files in it; a large file stays a note of its own.

use std::collections::BTreeMap;

use super::names::slug;
use crate::agent::{Advice, MigrateAsk, MigratedNote, MigrationPlan, SourceFile};

/// The root of all notes.
const ROOT: &str = "memory";

/// Decides which files become which notes.
pub(super) fn migrate(ask: &MigrateAsk) -> Advice<MigrationPlan> {
    let mut folders: BTreeMap<String, Vec<&SourceFile>> = BTreeMap::new();
    for file in &ask.files {
        let folder = file.path.rsplit_once('/').map_or(ROOT, |(folder, _)| folder);
        folders.entry(note_path(folder)).or_default().push(file);
    }
    let mut notes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (folder, mut files) in folders {
        files.sort_by_key(|file| (file.bytes, file.number));
        let mut filled = 0;
        for file in files {
            // The rest is room for headings and links.
            let fits = filled + file.bytes <= ask.bytes_max * 3 / 5;
            filled += if fits { file.bytes } else { 0 };
            let own = note_path(&file.path);
            let path = if fits || own == ROOT { folder.clone() } else { own };
            notes.entry(path).or_default().push(file.number);
        }
    }
    let mut notes: Vec<MigratedNote> = notes
        .into_iter()
        .map(|(path, mut files)| {
            files.sort_unstable();
            MigratedNote { path, files }
        })
        .collect();
    notes.sort_by(|one, two| (one.path != ROOT, &one.path).cmp(&(two.path != ROOT, &two.path)));
    let reason =
        format!("{} files become {} notes, one for each folder or large file", ask.files.len(), notes.len());
    Advice::free(MigrationPlan { notes }, reason)
}

fn note_path(path: &str) -> String {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(slug).collect();
    if parts.is_empty() { ROOT.to_owned() } else { parts.join("/") }
}
