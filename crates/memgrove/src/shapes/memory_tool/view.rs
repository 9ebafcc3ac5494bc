//! What the command `view` shows: a file with numbered lines, or the content of a folder.

use super::command::{Range, Wanted};
use super::place::Place;
use super::refused;
use crate::backend::{Depth, FileKind};
use crate::error::{Kind, Result, code};
use crate::locator::Locator;
use crate::store::Store;

/// The most lines of a file that can be shown: line numbers have six digits.
const LINES_MAX: usize = 999_999;
/// The size that is shown for a folder itself.
const FOLDER_BYTES: u64 = 4096;
/// How many levels of a folder are listed.
const LEVELS: usize = 2;

pub(super) fn view(store: &Store, path: &Place, range: &Wanted<Option<Range>>) -> Result<String> {
    let shown = &path.shown;
    if path.is_root {
        return folder(store, path);
    }
    match store.read_bytes(&path.at) {
        Ok(content) => file(shown, &text(path, content.bytes)?, range.get()?),
        Err(error) if error.code_name() == Some(code::IS_DIRECTORY) => folder(store, path),
        Err(error) if error.code_name() == Some(code::NOT_REGULAR) => {
            Err(refused(format!("Unsupported file type for {shown}")))
        }
        Err(error) if error.kind() == Kind::NotFound => Err(absent(path)),
        Err(error) => Err(error),
    }
}

/// Returns the refusal of a path that does not exist.
pub(super) fn absent(path: &Place) -> crate::Error {
    refused(format!("The path {} does not exist. Please provide a valid path.", path.shown))
}

/// A file's bytes as text.
pub(super) fn text(path: &Place, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let (shown, offset) = (&path.shown, error.utf8_error().valid_up_to());
        refused(format!(
            "The file {shown} is not UTF-8 text (byte {offset}), so it cannot be shown or edited."
        ))
    })
}

/// Lines with their numbers, the first being number `first`.
pub(super) fn numbered<'a>(first: usize, lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<String> = lines.enumerate().map(|(n, line)| format!("{:>6}\t{line}", first + n)).collect();
    lines.join("\n")
}

fn file(shown: &str, text: &str, range: Option<Range>) -> Result<String> {
    let count = text.split('\n').count();
    if count > LINES_MAX {
        return Err(refused(format!("File {shown} exceeds maximum line limit of 999,999 lines.")));
    }
    let (skipped, end) = range.map_or((0, count), |range| clipped(range, count));
    let lines = text.split('\n').skip(skipped).take(end.saturating_sub(skipped));
    Ok(format!("Here's the content of {shown} with line numbers:\n{}", numbered(skipped + 1, lines)))
}

/// Returns how many lines come before a range, and the line where it ends. As in the SDK, an end of -1 is
/// the last line, and -2 the last but two.
fn clipped((start, end): Range, count: usize) -> (usize, usize) {
    let skipped = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX - 1);
    let end = match end {
        -1 => count,
        end if end < 0 => count.saturating_sub(usize::try_from(end.unsigned_abs()).unwrap_or(usize::MAX)),
        end => usize::try_from(end).unwrap_or(usize::MAX),
    };
    (skipped, end)
}

fn folder(store: &Store, path: &Place) -> Result<String> {
    let shown = &path.shown;
    let mut lines = vec![
        format!("Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"),
        format!("{}\t{shown}", size(FOLDER_BYTES)),
    ];
    list(store, &path.at, shown, 1, &mut lines)?;
    Ok(lines.join("\n"))
}

fn list(store: &Store, at: &Locator, shown: &str, level: usize, lines: &mut Vec<String>) -> Result<()> {
    let inside = match store.backend().list(at, Depth::Children) {
        // A folder that may not be read is shown without its content, and hides no other.
        Err(error) if level > 1 && error.kind() == Kind::Denied => return Ok(()),
        inside => inside?,
    };
    for info in inside {
        let name = info.locator.name();
        if name.starts_with('.') {
            continue;
        }
        match info.kind {
            FileKind::File => lines.push(format!("{}\t{shown}/{name}", size(info.size))),
            FileKind::Folder => {
                lines.push(format!("{}\t{shown}/{name}/", size(FOLDER_BYTES)));
                if level < LEVELS {
                    list(store, &info.locator, &format!("{shown}/{name}"), level + 1, lines)?;
                }
            }
            FileKind::Other => {}
        }
    }
    Ok(())
}

/// Returns a size for people: in the largest unit that it fills, with a decimal unless it is whole.
fn size(bytes: u64) -> String {
    let units = ["B", "K", "M", "G"];
    let unit = (bytes.checked_ilog2().unwrap_or(0) / 10).min(3);
    let one = 1_u64 << (10 * unit);
    let name = units[unit as usize];
    match bytes % one {
        0 => format!("{}{name}", bytes / one),
        _ => format!("{:.1}{name}", bytes as f64 / one as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_printed_as_the_sdk_prints_them() {
        let table = [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1025, "1.0K"),
            (1536, "1.5K"),
            (1100, "1.1K"),
            (1_048_575, "1024.0K"),
            (1_048_576, "1M"),
            (1_572_864, "1.5M"),
            (1 << 30, "1G"),
            (1 << 40, "1024G"),
        ];
        for (bytes, shown) in table {
            assert_eq!(size(bytes), shown);
        }
    }
}
