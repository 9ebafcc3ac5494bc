//! How the commands that change something are planned.

use super::command::{Line, Wanted};
use super::place::Place;
use super::refused;
use super::view::{absent, numbered, text};
use crate::backend::{Content, Depth, Edit, Expect, FileKind};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::Plan;
use crate::shapes::files::{self, Limits, PLACES_MAX, places};
use crate::store::Store;

/// How many lines are shown before and after the first changed one.
const CONTEXT_LINES: usize = 2;

pub(super) fn create(store: &Store, path: &Place, file_text: &Wanted<String>) -> Result<Plan<String>> {
    let shown = &path.shown;
    let exists = || refused(format!("File {shown} already exists"));
    if path.is_root {
        return Err(exists());
    }
    let text = file_text.get();
    let bytes = text.as_ref().map(|text| text.clone().into()).unwrap_or_default();
    let plan = files::create(store, &path.at, bytes, &Limits::default());
    let plan = plan.map_err(|error| if error.kind() == Kind::Exists { exists() } else { error })?;
    text?;
    Ok(Plan { edits: plan.edits, outcome: format!("File created successfully at: {shown}") })
}

pub(super) fn str_replace(
    store: &Store,
    path: &Place,
    old: &Wanted<String>,
    new: &Wanted<String>,
) -> Result<Plan<String>> {
    let (before, expect) = read(store, path)?;
    let shown = &path.shown;
    let (old, new) = (&*old.get()?, &*new.get()?);
    let found = places(&before, old);
    let [(start, line), ..] = found[..] else {
        return Err(refused(format!(
            "No replacement was performed, old_str `{old}` did not appear verbatim in {shown}."
        )));
    };
    // The text is not unique if it fits twice without overlap; the lines named are those of all matches.
    if before.matches(old).take(2).count() > 1 {
        let mut lines: Vec<String> = found.iter().map(|(_, line)| line.to_string()).collect();
        if found.len() == PLACES_MAX {
            lines.push("…".to_owned());
        }
        return Err(refused(format!(
            "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {}. \
             Please ensure it is unique",
            lines.join(", ")
        )));
    }
    let after = [&before[..start], new, &before[start + old.len()..]].concat();
    let first = line.saturating_sub(1 + CONTEXT_LINES);
    let snippet = after.split('\n').take(line + CONTEXT_LINES).skip(first);
    let outcome = format!(
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{}",
        numbered(first + 1, snippet)
    );
    write(path, after, expect, outcome)
}

/// Inserts after a line; 0 is the beginning. As in the SDK, final newlines of the text are dropped, the
/// file ends in one, and other newline styles are not considered.
pub(super) fn insert(
    store: &Store,
    path: &Place,
    after: &Wanted<Line>,
    new: &Wanted<String>,
) -> Result<Plan<String>> {
    let (before, expect) = read(store, path)?;
    let after = after.get()?;
    let mut lines: Vec<&str> = before.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let Some(index) = usize::try_from(after.number).ok().filter(|index| *index <= lines.len()) else {
        return Err(refused(format!(
            "Invalid `insert_line` parameter: {}. It should be within the range [0, {}].",
            after.shown,
            lines.len()
        )));
    };
    let new = new.get()?;
    lines.insert(index, new.trim_end_matches('\n'));
    let mut text = lines.join("\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    write(path, text, expect, format!("The file {} has been edited.", path.shown))
}

pub(super) fn delete(store: &Store, path: &Place) -> Result<Plan<String>> {
    if path.is_root {
        return Err(refused("Cannot delete the /memories directory itself"));
    }
    let gone = |at: &Locator| Edit::Delete { at: at.clone(), expect: Expect::Any };
    let info = store.info_optional(&path.at)?;
    let edits = match info.map(|info| (info.kind, info.version)) {
        None => return Err(refused(format!("The path {} does not exist", path.shown))),
        Some((FileKind::Folder, _)) => {
            // A folder is listed before its content, so in reverse order each folder is empty when its
            // turn comes.
            let inside = store.backend().list(&path.at, Depth::All)?;
            inside.iter().rev().map(|info| gone(&info.locator)).chain([gone(&path.at)]).collect()
        }
        Some((_, version)) => {
            let expect = version.map_or(Expect::Any, Expect::At);
            vec![Edit::Delete { at: path.at.clone(), expect }]
        }
    };
    Ok(Plan { edits, outcome: format!("Successfully deleted {}", path.shown) })
}

pub(super) fn rename(store: &Store, from: &Place, to: &Place) -> Result<Plan<String>> {
    if from.is_root {
        return Err(refused("Cannot rename the /memories directory itself"));
    }
    if to.is_root || store.exists(&to.at)? {
        return Err(refused(format!("The destination {} already exists", to.shown)));
    }
    let plan = files::rename(store, &from.at, &to.at, None).map_err(|error| match error.kind() {
        Kind::NotFound => refused(format!("The path {} does not exist", from.shown)),
        _ => error,
    })?;
    Ok(Plan { edits: plan.edits, outcome: format!("Successfully renamed {} to {}", from.shown, to.shown) })
}

/// Reads the file that a command edits.
fn read(store: &Store, path: &Place) -> Result<(String, Expect)> {
    let no_file = || refused(format!("The path {} is not a file.", path.shown));
    if path.is_root {
        return Err(no_file());
    }
    let is_no_file =
        |error: &Error| matches!(error.code_name(), Some(code::IS_DIRECTORY | code::NOT_REGULAR));
    match store.read_bytes(&path.at) {
        Ok(Content { bytes, version }) => Ok((text(path, bytes)?, Expect::At(version))),
        Err(error) if is_no_file(&error) => Err(no_file()),
        Err(error) if error.kind() == Kind::NotFound => Err(absent(path)),
        Err(error) => Err(error),
    }
}

fn write(path: &Place, text: String, expect: Expect, outcome: String) -> Result<Plan<String>> {
    let bytes = text.into_bytes();
    Limits::default().check(&path.at, &bytes)?;
    Ok(Plan { edits: vec![Edit::Write { at: path.at.clone(), bytes: bytes.into(), expect }], outcome })
}
