//! A bar that shows how far a copy has come.

use std::io::{self, IsTerminal, Write};

use memgrove::copy::Progress;

/// How far it has come, on a terminal alone.
pub(super) struct Bar {
    shown: bool,
    percent: Option<u64>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Bar { shown: io::stderr().is_terminal(), percent: None }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let percent = progress.bytes * 100 / progress.bytes_total.max(1);
        if !self.shown || self.percent == Some(percent) {
            return;
        }
        self.percent = Some(percent);
        let filled = usize::try_from(percent / 5).unwrap_or(20).min(20);
        let (files, total) = (progress.files, progress.files_total);
        let line = format!(
            "\r[{}{}] {percent:>3}%  {files} of {total} files",
            "#".repeat(filled),
            "-".repeat(20 - filled)
        );
        // Whoever closed standard error does not want to know.
        let _ = io::stderr().write_all(line.as_bytes());
    }

    pub(super) fn clear(&self) {
        if self.shown && self.percent.is_some() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
