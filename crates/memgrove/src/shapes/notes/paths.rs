//! How notes are named, and where they are stored: `projects/silica` is `projects/silica.md`.

use unicode_normalization::UnicodeNormalization;

use crate::address::Scheme;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::text::links::joined;

/// The root note, from which all others are reached.
pub const ROOT: &str = "memory";
/// The folder of what memgrove stores beside the notes.
pub(super) const METADATA: &str = ".metadata";

/// Returns the path of a note in its normal form: without `note:`, outer slashes, and `.md`. An empty path
/// is the root.
///
/// # Errors
/// `Invalid` if no note can have this path.
pub fn normal_path(given: Option<&str>) -> Result<String> {
    let given = given.unwrap_or("").trim();
    let at = Locator::new(Scheme::Note.bare(given))?;
    let key = at.key().strip_suffix(".md").unwrap_or(at.key());
    if key.is_empty() {
        return Ok(ROOT.to_owned());
    }
    if at.parts().any(|part| part.starts_with('.')) {
        return Err(Error::new(Kind::Invalid, format!("`{key}` is not a note path"))
            .code(code::INVALID_PATH)
            .hint("paths look like projects/silica; no part begins with a dot"));
    }
    Ok(key.to_owned())
}

/// Characters that no link can hold: `[[a#b]]` is a heading of `a`, in Obsidian and here.
const UNLINKABLE: [char; 5] = ['#', '^', '[', ']', '|'];

/// Whether a link can lead to a note.
pub(super) fn is_linkable(path: &str) -> bool {
    !path.contains(UNLINKABLE)
}

/// Returns the path with `_` for every character that no link can hold.
pub(super) fn linkable(path: &str) -> String {
    path.replace(UNLINKABLE, "_")
}

/// Refuses a path for a new note if no link can lead to it.
///
/// # Errors
/// `Invalid`.
pub(super) fn check_linkable(path: &str) -> Result<()> {
    if is_linkable(path) {
        return Ok(());
    }
    Err(Error::new(Kind::Invalid, format!("no link can lead to a note `{path}`"))
        .code(code::INVALID_PATH)
        .hint(format!("leave out # ^ [ ] and |, as in `{}`", linkable(path))))
}

/// Returns the file of a note.
pub(super) fn note_at(root: &Locator, path: &str) -> Result<Locator> {
    root.child(format!("{path}.md"))
}

/// Returns the path of the note in a file; `None` for a file that is not a note.
pub(super) fn path_of(root: &Locator, at: &Locator) -> Option<String> {
    let inside = at.relative_to(root)?;
    let hidden = inside.split('/').any(|part| part.starts_with('.'));
    inside.strip_suffix(".md").filter(|path| !hidden && !path.is_empty()).map(str::to_owned)
}

/// Returns the path of a new note that is split from another: beneath it, or beside the root.
pub(super) fn child_path(parent: &str, name: &str) -> String {
    if parent == ROOT { name.to_owned() } else { format!("{parent}/{name}") }
}

/// How many steps `split_from` is followed.
pub(super) const ORIGINS_MAX: usize = 32;

/// Returns the note that a link leads to, by the rules of Obsidian: the note with that path; else,
/// ignoring case, one whose path ends with it, preferably in the folder of the linking note, then the one
/// with the shortest path. `./` and `../` begin at that folder. If there is none, it is the note that a
/// former note with this path was merged into.
///
/// Blocks are moved unchanged, so a relative link may no longer be where it was written. If it leads
/// nowhere from here, it is tried from the folder named like the note, whose files may have been imported
/// into it, and from the folder of the note that this one was split from, and so on, as `origin` tells.
pub(super) fn resolved<'a>(
    target: &str,
    from: &str,
    paths: &'a [String],
    origin: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<&'a str> {
    // Paths are stored in this normal form, however a link is typed.
    let target: &str = &target.nfc().collect::<String>();
    let exact = |wanted: &str| {
        let found = paths.binary_search_by(|path| path.as_str().cmp(wanted));
        found.ok().map(|at| paths[at].as_str())
    };
    let found = |wanted: &str| {
        exact(wanted).or_else(|| paths.iter().map(String::as_str).find(|path| same(path, wanted)))
    };
    let above = |wanted: &str| {
        std::iter::successors(wanted.rsplit_once('/'), |(above, _)| above.rsplit_once('/'))
            .find_map(|(above, _)| found(above))
    };
    if is_relative(target) {
        let here = joined(folder_of(from), target);
        if let Some(path) = here.as_deref().and_then(found) {
            return Some(path);
        }
        let mut tried: Vec<String> = here.into_iter().chain(joined(from, target)).collect();
        let origins = std::iter::successors(origin(from), |path| origin(path)).take(ORIGINS_MAX);
        tried.extend(origins.filter_map(|path| joined(folder_of(&path), target)));
        // A link never means the note that it is in.
        let merged = |wanted: &String| above(wanted).filter(|path| *path != from);
        return tried.iter().find_map(|wanted| found(wanted)).or_else(|| tried.iter().find_map(merged));
    }
    let target = target.trim_start_matches('/');
    if let Some(path) = exact(target) {
        return Some(path);
    }
    let folder = folder_of(from);
    let beneath = |path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let is_beside = |path: &str| !folder.is_empty() && beneath(path);
    let nearest = |path: &&String| (!same(path, target), !is_beside(path), path.len(), (*path).clone());
    if let Some(path) = paths.iter().filter(|path| ends_so(path, target)).min_by_key(nearest) {
        return Some(path);
    }
    above(target)
}

/// Whether a link is relative to its own folder.
pub(super) fn is_relative(target: &str) -> bool {
    target.starts_with("./") || target.starts_with("../")
}

/// Returns the folder of a note.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn same(one: &str, two: &str) -> bool {
    one.eq_ignore_ascii_case(two) || one.to_lowercase() == two.to_lowercase()
}

/// Whether a path ends with these names, ignoring case.
fn ends_so(path: &str, names: &str) -> bool {
    let count = names.split('/').count();
    let start = path.rmatch_indices('/').nth(count - 1).map_or(0, |(at, _)| at + 1);
    same(&path[start..], names)
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
        check(Some("../far"), None);
        check(Some(".metadata/graph"), None);
        check(Some("a/.hidden"), None);
    }

    #[test]
    fn links_lead_to_notes() {
        let paths: Vec<String> =
            ["a", "memory", "projects", "projects/silica", "x/a"].map(str::to_owned).to_vec();
        let check = |target: &str, from: &str, path: Option<&str>| {
            assert_eq!(resolved(target, from, &paths, &mut |_| None), path, "{target} in {from}");
        };
        check("projects/silica", "memory", Some("projects/silica"));
        check("Silica", "memory", Some("projects/silica"));
        check("a", "memory", Some("a"));
        check("projects/silica/features", "memory", Some("projects/silica"));
        check("Projects/Silica/Features", "memory", Some("projects/silica"));
        check("nowhere", "memory", None);
        check("no/where", "memory", None);
    }

    /// The ways in which Obsidian writes links (shortest, relative, absolute), and how it reads them.
    #[test]
    fn links_lead_where_obsidian_leads() {
        let paths: Vec<String> =
            ["Über", "a", "deep/er/a", "deep/er/b", "memory", "projects/silica/features", "x/a", "x/y"]
                .map(str::to_owned)
                .to_vec();
        let check = |target: &str, from: &str, path: Option<&str>| {
            assert_eq!(resolved(target, from, &paths, &mut |_| None), path, "{target} in {from}");
        };
        check("features", "memory", Some("projects/silica/features"));
        check("silica/features", "memory", Some("projects/silica/features"));
        check("Silica/Features", "x/y", Some("projects/silica/features"));
        check("lica/features", "memory", None);
        check("/x/a", "memory", Some("x/a"));
        check("A", "memory", Some("a"));
        check("b", "memory", Some("deep/er/b"));
        check("er/a", "x/y", Some("deep/er/a"));
        check("./a", "x/y", Some("x/a"));
        check("../a", "x/y", Some("a"));
        check("../er/b", "deep/er/a", Some("deep/er/b"));
        check("../../../a", "x/y", None);
        check("über", "memory", Some("Über"));
        check("u\u{308}ber", "memory", Some("Über"));
        let paths: Vec<String> = ["a/x/n", "ab/n"].map(str::to_owned).to_vec();
        assert_eq!(resolved("n", "a/b", &paths, &mut |_| None), Some("a/x/n"), "`ab` is not beneath `a`");
    }

    #[test]
    fn relative_links_lead_where_they_led_before_a_split() {
        let paths: Vec<String> = ["memory", "people", "work", "work/budget", "work/plan", "work/plan/q1"]
            .map(str::to_owned)
            .to_vec();
        let mut origin = |path: &str| match path {
            "work/plan/q1" => Some("work/plan".to_owned()),
            // A circle, as a hand may make one.
            "people" => Some("people".to_owned()),
            _ => None,
        };
        let mut check = |target: &str, from: &str, path: Option<&str>| {
            assert_eq!(resolved(target, from, &paths, &mut origin), path, "{target} in {from}");
        };
        check("./budget", "work/plan", Some("work/budget"));
        check("./budget", "work/plan/q1", Some("work/budget"));
        check("../people", "work/plan/q1", Some("people"));
        check("./nowhere", "people", None);
        check("./budget", "work", Some("work/budget"));
        check("./plan/q2", "work/budget", Some("work/plan"));
    }
}
