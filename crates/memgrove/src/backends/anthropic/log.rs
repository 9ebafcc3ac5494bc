//! The log of changes, which is the versions of one memory.
//!
//! `.memgrove/log/head` holds the headers of the last records, an empty line, and the body of the last
//! one. Adding a record is an update that expects the content before it, so of two writers one wins; and
//! every version of the head is a record whole, so the service's own versions are the history. Headers
//! that the head has no room for move to memories beside it, named after the first of them: what happened
//! is told by memories that stay, and only the bytes of the past rest on versions, which the service may
//! drop after a time.
//!
//! A body that does not fit is put into memories that are deleted at once: their versions remain, and
//! the head names them in a line that begins with `@`.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::json;

use super::head::{Body, Head, Record, number, numbered, parse, pieces, spoiled};
use super::memories::{CONTENT_BYTES_MAX, Memories, random_id, sha256};
use super::service::{Asked, Memory, MemoryVersion};
use crate::backends::object::{Answer, Object};
use crate::error::{Error, Kind, Result};

/// How many headers the head holds, and how many bytes of them, before they move.
const LINES_MAX: usize = 64;
const LINES_BYTES_MAX: usize = 40 * 1024;
/// The largest header that is put there: that of a change of a thousand files lies elsewhere.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How many of the last records are fetched together, and how many are remembered.
const TOGETHER_MAX: u64 = 20;
const RECENT_MAX: usize = 40;
/// How often a position in the list of versions is corrected, while others add to it.
const CORRECTIONS_MAX: u32 = 4;

/// Copies an error, so that each of several requests can be answered with it.
fn repeated(error: &Error) -> Error {
    Error::new(error.kind(), error.message()).hint(error.hint_text().unwrap_or("try again"))
}

impl Memories {
    fn head_path(&self) -> String {
        format!("{}log/head", self.own)
    }

    fn cached_head(&self) -> MutexGuard<'_, Option<Arc<Head>>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head as it is now; its content is fetched only if it is another one.
    pub(super) fn head_now(&self) -> Result<Option<Arc<Head>>> {
        let cached = self.cached_head().clone();
        if let Some(head) = &cached
            && let Some(now) = self.service.retrieve(&head.id, "basic")?
            && now.content_sha256 == head.sha256
        {
            return Ok(cached);
        }
        let head = match self.fetch(&self.head_path())? {
            Some(memory) => Some(Arc::new(Head::of(&memory)?)),
            None => None,
        };
        if let Some(head) = &head {
            self.remember_record((head.lines.last().cloned().unwrap_or_default(), head.body.clone()))?;
        }
        self.cached_head().clone_from(&head);
        Ok(head)
    }

    fn recent(&self) -> MutexGuard<'_, BTreeMap<u64, Record>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember_record(&self, record: Record) -> Result<()> {
        let seq = number(&record.0)?;
        let mut recent = self.recent();
        recent.insert(seq, record);
        while recent.len() > RECENT_MAX {
            recent.pop_first();
        }
        Ok(())
    }

    /// Fetches the records that are newer than a number, with one request if they are few.
    fn remember_since(&self, head: &Head, first: u64) -> Result<()> {
        let missing = head.seq()?.saturating_sub(first) + 1;
        if missing > TOGETHER_MAX {
            return Ok(());
        }
        // Others may have added some meanwhile.
        let count = usize::try_from(missing + 2).unwrap_or(0).min(TOGETHER_MAX as usize);
        for version in self.service.newest(&head.id, count)? {
            if let Some((mut lines, body)) = version.content.as_deref().map(parse).transpose()?
                && let Some(line) = lines.pop()
            {
                self.remember_record((line, body))?;
            }
        }
        Ok(())
    }

    /// The header lines of every record, from the first on.
    pub(super) fn header_lines(&self) -> Result<String> {
        let Some(head) = self.head_now()? else { return Ok(String::new()) };
        let mut text = String::new();
        if number(&head.lines[0])? > 1 {
            let mut older = self.service.list_whole(&format!("{}log/", self.own))?;
            older.retain(|memory| memory.path != self.head_path());
            older.sort_by(|one, other| one.path.cmp(&other.path));
            older
                .iter()
                .filter_map(|memory| memory.content.as_deref())
                .for_each(|lines| text.push_str(lines));
        }
        let mut whole = String::new();
        for line in text.lines().chain(head.lines.iter().map(String::as_str)) {
            whole.push_str(&self.whole(line)?);
            whole.push('\n');
        }
        Ok(whole)
    }

    /// A header as it was written, wherever it lies.
    fn whole(&self, line: &str) -> Result<String> {
        let within = numbered(line)?.within;
        if within.is_empty() {
            return Ok(line.to_owned());
        }
        let mut text = String::new();
        for path in within {
            let there = self.fetch(&path)?.and_then(|memory| memory.content);
            text.push_str(&there.ok_or_else(|| spoiled(&format!("`{path}` is missing")))?);
        }
        Ok(text)
    }

    /// Returns what stands for a header in the head: itself, or where its pieces lie if it is too large.
    fn line_for(&self, seq: u64, line: &str) -> Result<String> {
        if line.len() <= LINE_BYTES_MAX {
            return Ok(line.to_owned());
        }
        let mut within = Vec::new();
        for piece in pieces(line) {
            let path = format!("{}header/{}", self.own, random_id());
            self.kept(&path, piece)?;
            within.push(path);
        }
        Ok(json!({"seq": seq, "within": within}).to_string())
    }

    fn kept(&self, path: &str, piece: &str) -> Result<Memory> {
        match self.service.create(path, piece)? {
            Asked::Done(made) => Ok(made),
            _ => Err(Error::new(Kind::Busy, "a piece of the change could not be kept").hint("try again")),
        }
    }

    /// Records of the log: a header, a newline, the body. A body that the service has dropped is left out.
    pub(super) fn records(&self, wanted: &[u64]) -> Vec<Result<Answer>> {
        let head = self.head_now();
        let one = |seq: &u64| -> Result<Answer> {
            let head = match &head {
                Ok(head) => head.as_ref(),
                Err(error) => return Err(repeated(error)),
            };
            let Some(head) = head.filter(|head| head.seq().is_ok_and(|last| last >= *seq)) else {
                return Ok(Answer::Absent);
            };
            let known = |seq: &u64| self.recent().get(seq).cloned();
            if known(seq).is_none() {
                self.remember_since(head, *seq)?;
            }
            let bytes = match known(seq) {
                Some((line, body)) => {
                    Some(format!("{}\n{}", self.whole(&line)?, self.body(&body)?.unwrap_or_default()))
                }
                None => self.earlier(head, *seq)?,
            };
            let Some(bytes) = bytes.map(String::into_bytes) else { return Ok(Answer::Absent) };
            let (size, tag) = (bytes.len() as u64, seq.to_string());
            Ok(Answer::Object(Object { bytes, size, tag, mark: None }))
        };
        wanted.iter().map(one).collect()
    }

    fn body(&self, body: &Body) -> Result<Option<String>> {
        let versions = match body {
            Body::Here(text) => return Ok(Some(text.clone())),
            Body::Elsewhere(versions) => versions,
        };
        let mut text = String::new();
        for id in versions {
            match self.service.version(id)?.and_then(|version| version.content) {
                Some(piece) => text.push_str(&piece),
                None => return Ok(None),
            }
        }
        Ok(Some(text))
    }

    /// Returns a record that is not remembered: from its version of the head, or else its header alone.
    fn earlier(&self, head: &Head, seq: u64) -> Result<Option<String>> {
        if let Some((line, body)) = self.version_of(head, seq)?.map(|(_, content)| content) {
            return Ok(Some(format!("{}\n{}", self.whole(&line)?, self.body(&body)?.unwrap_or_default())));
        }
        let known = head.lines.iter().find(|line| number(line).is_ok_and(|found| found == seq));
        known.map(|line| Ok(format!("{}\n", self.whole(line)?))).transpose()
    }

    /// Finds the version of the head that holds a record, with its header and body. The head has one version
    /// for each record, so the position is known, except for records that others add meanwhile.
    fn version_of(&self, head: &Head, seq: u64) -> Result<Option<(MemoryVersion, (String, Body))>> {
        let mut back = usize::try_from(head.seq()?.saturating_sub(seq)).unwrap_or(usize::MAX);
        for _ in 0..CORRECTIONS_MAX {
            let mut seen = 0;
            let mut there = None;
            self.service.versions(Some(&head.id), |page| {
                there = page.get(back - seen).map(|version| version.id.clone());
                seen += page.len();
                Ok(there.is_none())
            })?;
            let Some(version) = there.map(|id| self.service.version(&id)).transpose()?.flatten() else {
                return Ok(None);
            };
            let Some(content) = &version.content else { return Ok(None) };
            let (mut lines, body) = parse(content)?;
            let line = lines.pop().ok_or_else(|| spoiled("a version has no record"))?;
            let found = number(&line)?;
            if found == seq {
                return Ok(Some((version, (line, body))));
            }
            let off = usize::try_from(found.abs_diff(seq)).unwrap_or(usize::MAX);
            back = if found > seq { back + off } else { back.saturating_sub(off) };
        }
        Ok(None)
    }

    /// Returns the versions of all memories since a record was written, newest first. Counts those of the
    /// head, one for each record, and allows for records that others add meanwhile.
    pub(super) fn versions_since(&self, head: &Head, seq: u64) -> Result<Vec<MemoryVersion>> {
        let mut left = head.seq()?.saturating_sub(seq) + 1;
        let mut corrected = false;
        let mut newest_first: Vec<MemoryVersion> = Vec::new();
        self.service.versions(None, |page| {
            for version in page {
                if version.memory_id == head.id {
                    left -= 1;
                    if left == 0 && !corrected {
                        let whole = self.service.version(&version.id)?.and_then(|whole| whole.content);
                        let found = whole.map(|content| parse(&content)).transpose()?;
                        let line = found.and_then(|(mut lines, _)| lines.pop());
                        left = line.map_or(Ok(seq), |line| number(&line))?.saturating_sub(seq);
                        corrected = true;
                    }
                    if left == 0 {
                        return Ok(false);
                    }
                }
                newest_first.push(version);
            }
            Ok(true)
        })?;
        Ok(newest_first)
    }

    /// Adds a record, if its number is the next.
    pub(super) fn add_record(&self, seq: u64, record: &str) -> Result<Answer> {
        let (line, body) = record.split_once('\n').ok_or_else(|| spoiled("a record has no header"))?;
        // If the head is not what we think, the update is refused, and nothing is lost but a request.
        let cached = self.cached_head().clone().filter(|head| head.seq().is_ok_and(|last| last + 1 == seq));
        let head = cached.map_or_else(|| self.head_now(), |head| Ok(Some(head)))?;
        let last = head.as_ref().map_or(Ok(0), |head| head.seq())?;
        if last == 0 && seq > 1 {
            return Err(spoiled("it was deleted while this program used it"));
        }
        if last + 1 != seq {
            return Ok(Answer::Refused);
        }
        let mut lines = match &head {
            Some(head) => self.with_room(head)?,
            None => self.begin_anew()?,
        };
        let line = self.line_for(seq, line)?;
        lines.push(line.clone());
        let content = self.fitting(&lines, body)?;
        let asked = match &head {
            Some(head) => self.service.update(&head.id, &content, Some(&head.sha256))?,
            None => self.service.create(&self.head_path(), &content)?,
        };
        let Asked::Done(memory) = asked else {
            *self.cached_head() = None;
            // The pieces that were stored for its header are of no use now.
            for path in numbered(&line)?.within {
                self.remove(&path)?;
            }
            return Ok(Answer::Refused);
        };
        let (lines, body) = parse(&content)?;
        let head = Head { id: memory.id, sha256: sha256(content.as_bytes()), lines, body };
        self.remember_record((line, head.body.clone()))?;
        *self.cached_head() = Some(Arc::new(head));
        Ok(Answer::Written(seq.to_string()))
    }

    /// Returns the headers that stay in the head; when there are too many, all of them are moved out first.
    fn with_room(&self, head: &Head) -> Result<Vec<String>> {
        let bytes: usize = head.lines.iter().map(String::len).sum();
        if head.lines.len() < LINES_MAX && bytes < LINES_BYTES_MAX {
            return Ok(head.lines.clone());
        }
        let path = format!("{}log/{:016}", self.own, number(&head.lines[0])?);
        let text: String = head.lines.iter().flat_map(|line| [line, "\n"]).collect();
        // Other writers who saw the same head move the same headers.
        if let Asked::Refused = self.service.create(&path, &text)? {
            let there = self.fetch(&path)?;
            if let Some(there) = there.filter(|there| there.content.as_ref() != Some(&text)) {
                self.service.update(&there.id, &text, None)?;
            }
        }
        Ok(Vec::new())
    }

    /// Deletes what an earlier log left behind.
    fn begin_anew(&self) -> Result<Vec<String>> {
        for memory in self.service.list_whole(&format!("{}log/", self.own))? {
            if memory.path != self.head_path() {
                self.service.delete(&memory.id, None)?;
            }
        }
        Ok(Vec::new())
    }

    /// Returns the content of a head; a body that does not fit is stored elsewhere.
    fn fitting(&self, lines: &[String], body: &str) -> Result<String> {
        let mut text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        if text.len() + 1 + body.len() <= CONTENT_BYTES_MAX {
            return Ok(text + "\n" + body);
        }
        let mut versions = Vec::new();
        for piece in pieces(body) {
            let made = self.kept(&format!("{}body/{}", self.own, random_id()), piece)?;
            versions.push(made.memory_version_id);
            self.service.delete(&made.id, None)?;
        }
        text.push('@');
        text.push_str(&versions.join(" "));
        text.push('\n');
        Ok(text)
    }
}
