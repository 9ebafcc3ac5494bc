//! The memories of a store as the objects of a bucket: a key is a path, and its tag is the
//! `content_sha256` that preconditions are made of.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use sha2::{Digest, Sha256};

use super::head::{Head, Record};
use super::service::{Asked, Memory, MemoryVersion, Reach, Service};
pub(super) use crate::backends::object::random_id;
use crate::backends::object::{Answer, Bucket, Listed, Object, Request, Versioned, When};
use crate::error::{Error, Kind, Result, code};

/// The largest content of a memory.
pub(super) const CONTENT_BYTES_MAX: usize = 102_400;
const PATH_BYTES_MAX: usize = 1_024;
const SEGMENTS_MAX: usize = 20;
/// How many requests are under way at once.
const PARALLEL: usize = 8;

/// A memory store, or a folder of it.
pub struct Memories {
    pub(super) service: Service,
    /// The folder of the backend's own memories, with a `/` at both ends.
    pub(super) own: String,
    /// The id and hash of the memory last seen at each path: the service knows memories only by their ids.
    known: Mutex<HashMap<String, Known>>,
    pub(super) head: Mutex<Option<Arc<Head>>>,
    /// The last records of the log that were seen.
    pub(super) recent: Mutex<BTreeMap<u64, Record>>,
}

#[derive(Clone)]
struct Known {
    id: String,
    sha256: String,
}

impl Memories {
    /// Names a memory store, reached at `base` (else where Anthropic serves it) with a key. `prefix` is
    /// the folder that holds the files, empty or with a `/` at its end.
    ///
    /// # Errors
    /// `Invalid` for an endpoint that is not safe to send a key to.
    pub fn new(store: &str, prefix: &str, base: Option<&str>, key: &str) -> Result<Self> {
        let service = Service::new(base, store, key)?;
        let own = format!("/{prefix}{}/", crate::backends::object::OWN);
        Ok(Memories {
            service,
            own,
            known: Mutex::default(),
            head: Mutex::default(),
            recent: Mutex::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, memory: &Memory) {
        let known = Known { id: memory.id.clone(), sha256: memory.content_sha256.clone() };
        self.known().insert(memory.path.clone(), known);
    }

    /// The memory at a path, with its content.
    pub(super) fn fetch(&self, path: &str) -> Result<Option<Memory>> {
        let known = self.known().get(path).cloned();
        if let Some(known) = known {
            let found = self.service.retrieve(&known.id, "full")?;
            if let Some(memory) = found.filter(|memory| memory.path == path) {
                self.remember(&memory);
                return Ok(Some(memory));
            }
            self.known().remove(path);
        }
        // Looks a second time if the memory is deleted between the two requests.
        for _ in 0..2 {
            let Some(id) = self.look_for(path)? else { return Ok(None) };
            let found = self.service.retrieve(&id, "full")?;
            if let Some(memory) = found.filter(|memory| memory.path == path) {
                self.remember(&memory);
                return Ok(Some(memory));
            }
        }
        Ok(None)
    }

    /// The id of the memory at a path, from a listing of its folder.
    fn look_for(&self, path: &str) -> Result<Option<String>> {
        let folder = &path[..=path.rfind('/').unwrap_or(0)];
        let mut found = None;
        for memory in self.service.list(folder, Reach::Children)? {
            self.remember(&memory);
            if memory.path == path {
                found = Some(memory.id);
            }
        }
        Ok(found)
    }

    /// The number of a record of the log, from its key.
    fn record_of(&self, key: &str) -> Option<u64> {
        let name = key.strip_prefix(self.own[1..].trim_end_matches('/'))?.strip_prefix("/log/")?;
        name.parse().ok()
    }

    fn answer(&self, request: &Request) -> Result<Answer> {
        match request {
            Request::Get(key) | Request::Head(key) => {
                let found = self.fetch(&format!("/{key}"))?;
                Ok(found.map_or(Answer::Absent, |memory| Answer::Object(object(memory))))
            }
            Request::Put { key, bytes, when, .. } => {
                let text = std::str::from_utf8(bytes).map_err(|_| self.not_text(key))?;
                match self.record_of(key) {
                    Some(seq) => self.add_record(seq, text),
                    None => self.put(&format!("/{key}"), text, when),
                }
            }
            Request::Delete(key) => self.remove(&format!("/{key}")),
        }
    }

    fn put(&self, path: &str, text: &str, when: &When) -> Result<Answer> {
        let known = |path: &str| self.known().get(path).cloned();
        let asked = match when {
            When::Absent => self.service.create(path, text)?,
            When::Always | When::Tagged(_) => {
                if known(path).is_none() {
                    self.look_for(path)?;
                }
                let expected = match when {
                    When::Tagged(tag) => Some(tag.as_str()),
                    _ => None,
                };
                match known(path) {
                    Some(known) => self.service.update(&known.id, text, expected)?,
                    None if expected.is_none() => self.service.create(path, text)?,
                    None => Asked::Refused,
                }
            }
        };
        match asked {
            Asked::Done(memory) => {
                self.remember(&memory);
                Ok(Answer::Written(memory.content_sha256))
            }
            Asked::Absent if matches!(when, When::Absent) => Err(self.service.gone()),
            Asked::Absent | Asked::Refused => {
                self.known().remove(path);
                Ok(Answer::Refused)
            }
        }
    }

    /// Removes the memory last seen at a path; refused if its content has changed since.
    pub(super) fn remove(&self, path: &str) -> Result<Answer> {
        if !self.known().contains_key(path) {
            self.look_for(path)?;
        }
        let Some(known) = self.known().remove(path) else { return Ok(Answer::Deleted) };
        match self.service.delete(&known.id, Some(&known.sha256))? {
            Asked::Refused => Ok(Answer::Refused),
            Asked::Done(_) | Asked::Absent => Ok(Answer::Deleted),
        }
    }

    /// Returns the memory that was at a path before these versions and has moved elsewhere since.
    fn moved_away(&self, path: &str, head: &str, oldest_first: &[MemoryVersion]) -> Result<Option<String>> {
        let mut met = HashSet::from([head]);
        for version in oldest_first.iter().filter(|version| met.insert(&version.memory_id)) {
            if version.operation == "modified" && self.service.path_before(version)?.as_deref() == Some(path)
            {
                return Ok(Some(version.memory_id.clone()));
            }
        }
        Ok(None)
    }

    fn not_text(&self, what: &str) -> Error {
        Error::new(
            Kind::Unsupported,
            format!("{} holds only text, and `{what}` is not text", self.service.name),
        )
        .code(code::NOT_TEXT)
        .hint("keep binary content in a store of another backend")
    }
}

/// The hash of a content as the service tells it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn object(memory: Memory) -> Object {
    let bytes = memory.content.unwrap_or_default().into_bytes();
    Object { size: bytes.len() as u64, bytes, tag: memory.content_sha256, mark: None }
}

impl Bucket for Memories {
    fn name(&self) -> String {
        self.service.name.clone()
    }

    fn send(&self, requests: Vec<Request>) -> Vec<Result<Answer>> {
        let answers: Vec<OnceLock<Result<Answer>>> = requests.iter().map(|_| OnceLock::new()).collect();
        let (mut records, mut others) = (Vec::new(), Vec::new());
        for (index, request) in requests.iter().enumerate() {
            match request {
                Request::Get(key) => match self.record_of(key) {
                    Some(seq) => records.push((index, seq)),
                    None => others.push(index),
                },
                _ => others.push(index),
            }
        }
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(index) = others.get(next.fetch_add(1, Ordering::SeqCst)) {
                let _ = answers[*index].set(self.answer(&requests[*index]));
            }
        };
        // One look at the head of the log answers all requests for records.
        let look_back = || {
            let wanted: Vec<u64> = records.iter().map(|(_, seq)| *seq).collect();
            for ((index, _), answer) in records.iter().zip(self.records(&wanted)) {
                let _ = answers[*index].set(answer);
            }
        };
        thread::scope(|scope| {
            if !records.is_empty() && !others.is_empty() {
                scope.spawn(look_back);
            } else if !records.is_empty() {
                look_back();
            }
            for _ in 1..others.len().min(PARALLEL) {
                scope.spawn(work);
            }
            work();
        });
        answers.into_iter().map(|answer| answer.into_inner().expect("every request was answered")).collect()
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let listed = self.service.list(&format!("/{prefix}"), Reach::All)?;
        let one = |memory: Memory| {
            self.remember(&memory);
            Listed {
                key: memory.path[1..].to_owned(),
                size: memory.content_size_bytes,
                modified: memory.updated_at,
                tag: Some(memory.content_sha256),
            }
        };
        Ok(listed.into_iter().map(one).collect())
    }

    fn versioned(&self) -> Option<&dyn Versioned> {
        Some(self)
    }
}

impl Versioned for Memories {
    fn tag_of(&self, bytes: &[u8]) -> String {
        sha256(bytes)
    }

    fn check_key(&self, key: &str) -> Result<()> {
        let wrong = |why: String| {
            let error = Error::new(Kind::Invalid, format!("`{key}` {why} than a memory store can hold"));
            Err(error.code(code::INVALID_PATH).hint("use fewer or shorter folders"))
        };
        if key.len() + 1 > PATH_BYTES_MAX {
            return wrong(format!("is longer ({} bytes, at most {PATH_BYTES_MAX})", key.len() + 1));
        }
        match key.split('/').count() {
            segments if segments > SEGMENTS_MAX => {
                wrong(format!("has more folders ({segments} segments, at most {SEGMENTS_MAX})"))
            }
            _ => Ok(()),
        }
    }

    fn check_bytes(&self, key: &str, bytes: &[u8]) -> Result<()> {
        std::str::from_utf8(bytes).map(drop).map_err(|_| self.not_text(key))
    }

    fn check_size(&self, key: &str, size: u64) -> Result<()> {
        if size <= CONTENT_BYTES_MAX as u64 {
            return Ok(());
        }
        let why = format!("`{key}` would have {size} bytes, and a memory holds at most {CONTENT_BYTES_MAX}");
        Err(Error::new(Kind::Unsupported, why)
            .code(code::TOO_LARGE)
            .hint("split it into several files, or use another backend"))
    }

    fn headers(&self) -> Result<String> {
        self.header_lines()
    }

    fn since(&self, key: &str, record: &str) -> Result<Vec<Option<String>>> {
        let (Some(head), Some(seq)) = (self.head_now()?, self.record_of(record)) else {
            return Ok(Vec::new());
        };
        let oldest_first: Vec<MemoryVersion> = self.versions_since(&head, seq)?.into_iter().rev().collect();
        let (path, mut here, mut stood) = (format!("/{key}"), None, Vec::new());
        if !oldest_first.iter().any(|version| version.path.as_ref() == Some(&path)) {
            here = self.moved_away(&path, &head.id, &oldest_first)?;
        }
        for version in oldest_first {
            if version.operation != "deleted" && version.path.as_ref() == Some(&path) {
                here = Some(version.memory_id);
                stood.push(version.content_sha256);
            } else if here.as_ref() == Some(&version.memory_id) || version.path.as_ref() == Some(&path) {
                // It was deleted, or moved elsewhere.
                here = None;
                stood.push(None);
            }
        }
        Ok(stood)
    }
}
