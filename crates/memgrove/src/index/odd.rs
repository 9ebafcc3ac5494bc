//! Which searched files contain bytes that are not text.

use super::Index;
use super::extract::{self, BYTES_MAX};
use super::listing::joined;
use crate::backend::{FileKind, Finding, Level};
use crate::error::Result;
use crate::locator::Locator;
use crate::text::nearly::nearly_text;

impl Index {
    /// Reports files and contents of nodes that are text but for a few bytes. Search finds everything else
    /// in them.
    ///
    /// # Errors
    /// As the storage says.
    pub fn check(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for source in &self.sources {
            for info in source.store.list_all(&Locator::root())? {
                let key = joined(&source.under, &info.locator);
                let is_read = info.kind == FileKind::File && info.size <= BYTES_MAX;
                if !is_read || !extract::has_plain_text(&key) || !self.indexes(source, &key) {
                    continue;
                }
                let Some(content) = source.store.read_optional(&info.locator)? else { continue };
                findings.extend(odd(key, &content.bytes));
            }
        }
        Ok(findings)
    }
}

fn odd(at: String, bytes: &[u8]) -> Option<Finding> {
    let valid = str::from_utf8(bytes).err()?.valid_up_to();
    nearly_text(bytes)?;
    let line = bytes[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
    Some(Finding {
        level: Level::Warning,
        at,
        what: format!("line {line} has bytes that are not UTF-8 text, so words with them are not found"),
        hint: "save it as UTF-8; until then search reads such a byte as `?`".to_owned(),
    })
}
