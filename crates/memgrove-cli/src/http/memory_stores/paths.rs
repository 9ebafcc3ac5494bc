//! The paths of memories in their memory stores, and where those are.

use memgrove::error::code;
use memgrove::{Locator, Result};

use crate::memory_stores::invalid;

const PATH_BYTES_MAX: usize = 1_024;
const SEGMENTS_MAX: usize = 20;

/// The path of a memory in its store.
pub(super) fn path_of(root: &Locator, at: &Locator) -> Option<String> {
    at.relative_to(root).filter(|inside| !inside.is_empty()).map(|inside| format!("/{inside}"))
}

/// Whether a character is a control, a format or a separator of lines (Cc, Cf, Zl, Zp): nobody sees it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}')
}

/// Where the memory of a path is.
pub(super) fn place(root: &Locator, path: &str) -> Result<Locator> {
    let wrong = |why: &str| {
        Err(invalid(format!("the path `{}` {why}", path.escape_default())).code(code::INVALID_PATH))
    };
    let Some(inside) = path.strip_prefix('/') else { return wrong("does not begin with `/`") };
    if path.len() > PATH_BYTES_MAX {
        return wrong("is longer than 1,024 bytes");
    }
    if path.chars().any(is_hidden) {
        return wrong("has control or format characters");
    }
    if inside.split('/').count() > SEGMENTS_MAX {
        return wrong("has more than 20 segments");
    }
    if inside.split('/').any(|segment| ["", ".", ".."].contains(&segment)) {
        return wrong("has an empty segment, `.` or `..`");
    }
    let at = root.child(inside)?;
    match path_of(root, &at).as_deref() == Some(path) {
        true => Ok(at),
        false => wrong("is not in Unicode Normalization Form C"),
    }
}
