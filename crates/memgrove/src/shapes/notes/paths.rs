//! What notes are called, and where they lie: `projects/silica` is `projects/silica.md`.

use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

/// The note that everything begins in.
pub const ROOT: &str = "memory";
/// The folder of what memgrove keeps beside the notes.
pub(super) const METADATA: &str = ".metadata";

/// The path of a note as it is kept: without `note:`, slashes at the ends, and `.md`. Nothing is the
/// root.
///
/// # Errors
/// `Invalid` for a path that no note can have.
pub fn normal_path(given: Option<&str>) -> Result<String> {
    let given = given.unwrap_or("").trim();
    let given = given.strip_prefix("note:").unwrap_or(given);
    let at = Locator::new(given)?;
    let key = at.key().strip_suffix(".md").unwrap_or(at.key());
    if key.is_empty() {
        return Ok(ROOT.to_owned());
    }
    if at.parts().any(|part| part.starts_with('.')) {
        return Err(Error::new(Kind::Invalid, format!("`{key}` is not a path of a note"))
            .code(code::INVALID_PATH)
            .hint("paths look like projects/silica; no part begins with a dot"));
    }
    Ok(key.to_owned())
}

/// Where a note lies.
pub(super) fn note_at(root: &Locator, path: &str) -> Result<Locator> {
    root.child(format!("{path}.md"))
}

/// The path of the note in a file; `None` for a file that is none.
pub(super) fn path_of(root: &Locator, at: &Locator) -> Option<String> {
    let inside = at.relative_to(root)?;
    let hidden = inside.split('/').any(|part| part.starts_with('.'));
    inside.strip_suffix(".md").filter(|path| !hidden && !path.is_empty()).map(str::to_owned)
}

/// The path of a new note that came of another: beneath it, or beside the root.
pub(super) fn child_path(parent: &str, name: &str) -> String {
    if parent == ROOT { name.to_owned() } else { format!("{parent}/{name}") }
}

/// What a link leads to among the notes there are: the note itself, the only one of that name, or
/// the note that a former one was merged into.
pub(super) fn resolved<'a>(target: &str, paths: &'a [String]) -> Option<&'a str> {
    let exact = |wanted: &str| {
        let found = paths.binary_search_by(|path| path.as_str().cmp(wanted));
        found.ok().map(|at| paths[at].as_str())
    };
    if let Some(path) = exact(target) {
        return Some(path);
    }
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
    if !target.contains('/') {
        let wanted = name(target);
        let mut same = paths.iter().filter(|path| name(path) == wanted);
        return same.next().filter(|_| same.next().is_none()).map(String::as_str);
    }
    std::iter::successors(target.rsplit_once('/'), |(above, _)| above.rsplit_once('/'))
        .find_map(|(above, _)| exact(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_notes() {
        let check = |given: Option<&str>, path: Option<&str>| {
            assert_eq!(normal_path(given).ok().as_deref(), path, "{given:?}");
        };
        check(None, Some("memory"));
        check(Some(""), Some("memory"));
        check(Some("note:projects/silica"), Some("projects/silica"));
        check(Some("/projects//silica.md"), Some("projects/silica"));
        check(Some("../etc"), None);
        check(Some(".metadata/graph"), None);
        check(Some("a/.hidden"), None);
    }

    #[test]
    fn links_lead_to_notes() {
        let paths: Vec<String> =
            ["a", "memory", "projects", "projects/silica", "x/a"].map(str::to_owned).to_vec();
        let check = |target: &str, path: Option<&str>| assert_eq!(resolved(target, &paths), path, "{target}");
        check("projects/silica", Some("projects/silica"));
        check("Silica", Some("projects/silica"));
        check("a", Some("a"));
        check("A", None);
        check("projects/silica/features", Some("projects/silica"));
        check("nowhere", None);
        check("no/where", None);
    }
}
