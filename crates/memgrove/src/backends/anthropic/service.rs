//! The requests of the memory stores API, and what its answers mean.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::wire::{Carries, client};

/// Where Anthropic serves it.
const BASE: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
const BETA: &str = "agent-memory-2026-07-22";
const TIMEOUT: Duration = Duration::from_secs(20);
/// The largest answer that is read: a page of twenty whole memories, escaped.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many times a request is repeated, where that can do no harm.
const RETRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The largest page that may be asked for.
const PAGE: &str = "100";
/// How many versions are asked for at a time: mostly the newest few are wanted.
const VERSIONS: &str = "20";

/// One memory.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Memory {
    pub(super) id: String,
    pub(super) memory_version_id: String,
    pub(super) path: String,
    pub(super) content: Option<String>,
    pub(super) content_sha256: String,
    pub(super) content_size_bytes: u64,
    pub(super) updated_at: Timestamp,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Memory(Memory),
    MemoryPrefix {},
}

/// One version of a memory.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MemoryVersion {
    pub(super) id: String,
    pub(super) memory_id: String,
    pub(super) operation: String,
    pub(super) path: Option<String>,
    pub(super) content: Option<String>,
    pub(super) content_sha256: Option<String>,
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    next_page: Option<String>,
}

/// What became of a request that can be refused.
pub(super) enum Asked<T> {
    Done(T),
    /// There is no such memory.
    Absent,
    /// The path is taken, or the content is not what was expected.
    Refused,
}

/// How deep a listing goes.
#[derive(Clone, Copy)]
pub(super) enum Reach {
    Children,
    All,
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Get,
    Post,
    Delete,
}

/// A client of one memory store.
pub(super) struct Service {
    client: ureq::Agent,
    /// The memory store's own address.
    url: String,
    key: String,
    pub(super) name: String,
}

impl Service {
    pub(super) fn new(base: Option<&str>, store: &str, key: &str) -> Result<Self> {
        let base = base.unwrap_or(BASE).trim_end_matches('/');
        let client = client(base, Carries::Key, TIMEOUT)?;
        let url = format!("{base}/v1/memory_stores/{store}");
        let name = match base == BASE {
            true => format!("the memory store `{store}`"),
            false => format!("the memory store `{store}` at {base}"),
        };
        Ok(Service { client, url, key: key.to_owned(), name })
    }

    /// A memory with its content, or without.
    pub(super) fn retrieve(&self, id: &str, view: &str) -> Result<Option<Memory>> {
        let url = format!("{}/memories/{id}?view={view}", self.url);
        Ok(self.asked(Method::Get, &url, None)?.found())
    }

    /// Every memory beneath a prefix that ends in `/`, page by page, without content.
    pub(super) fn list(&self, prefix: &str, reach: Reach) -> Result<Vec<Memory>> {
        let depth = match reach {
            Reach::Children => 1,
            Reach::All => 0,
        };
        self.listed(&format!("depth={depth}&limit={PAGE}&path_prefix={}", encoded(prefix)))
    }

    /// The same with content.
    pub(super) fn list_whole(&self, prefix: &str) -> Result<Vec<Memory>> {
        self.listed(&format!("view=full&limit=20&path_prefix={}", encoded(prefix)))
    }

    fn listed(&self, query: &str) -> Result<Vec<Memory>> {
        let mut found = Vec::new();
        self.pages("memories", query, |page: Vec<Item>| {
            found.extend(page.into_iter().filter_map(|item| match item {
                Item::Memory(memory) => Some(memory),
                Item::MemoryPrefix {} => None,
            }));
            Ok(true)
        })?;
        Ok(found)
    }

    /// Makes a memory, if its path is free.
    pub(super) fn create(&self, path: &str, content: &str) -> Result<Asked<Memory>> {
        let url = format!("{}/memories", self.url);
        self.asked(Method::Post, &url, Some(&json!({"path": path, "content": content})))
    }

    /// Changes what a memory holds, if it holds what is expected.
    pub(super) fn update(&self, id: &str, content: &str, expected: Option<&str>) -> Result<Asked<Memory>> {
        let mut body = json!({"content": content});
        if let Some(sha256) = expected {
            body["precondition"] = json!({"type": "content_sha256", "content_sha256": sha256});
        }
        self.asked(Method::Post, &format!("{}/memories/{id}", self.url), Some(&body))
    }

    /// Deletes a memory, if it holds what is expected.
    pub(super) fn delete(&self, id: &str, expected: Option<&str>) -> Result<Asked<Value>> {
        let query = expected.map_or(String::new(), |sha256| format!("?expected_content_sha256={sha256}"));
        self.asked(Method::Delete, &format!("{}/memories/{id}{query}", self.url), None)
    }

    /// Versions without content, newest first, of one memory or of all, until `take` has enough.
    pub(super) fn versions(
        &self,
        memory: Option<&str>,
        take: impl FnMut(Vec<MemoryVersion>) -> Result<bool>,
    ) -> Result<()> {
        let of = memory.map_or(String::new(), |id| format!("&memory_id={id}"));
        self.pages("memory_versions", &format!("limit={VERSIONS}{of}"), take)
    }

    /// The newest versions of a memory with content, newest first.
    pub(super) fn newest(&self, memory: &str, count: usize) -> Result<Vec<MemoryVersion>> {
        let mut found = Vec::new();
        self.pages("memory_versions", &format!("view=full&limit={count}&memory_id={memory}"), |page| {
            found = page;
            Ok(false)
        })?;
        Ok(found)
    }

    /// The path that a memory had before this version of it.
    pub(super) fn path_before(&self, version: &MemoryVersion) -> Result<Option<String>> {
        let (mut met, mut path) = (false, None);
        self.versions(Some(&version.memory_id), |page| {
            for older in page {
                if met {
                    path = older.path;
                    return Ok(false);
                }
                met = older.id == version.id;
            }
            Ok(true)
        })?;
        Ok(path)
    }

    /// A version with its content.
    pub(super) fn version(&self, id: &str) -> Result<Option<MemoryVersion>> {
        let url = format!("{}/memory_versions/{id}?view=full", self.url);
        Ok(self.asked(Method::Get, &url, None)?.found())
    }

    fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        query: &str,
        mut take: impl FnMut(Vec<T>) -> Result<bool>,
    ) -> Result<()> {
        let mut after = String::new();
        loop {
            let url = format!("{}/{what}?{query}{after}", self.url);
            let Asked::Done(page) = self.asked::<Page<T>>(Method::Get, &url, None)? else {
                return Err(self.gone());
            };
            let more = take(page.data)?;
            match page.next_page.filter(|_| more) {
                Some(next) => after = format!("&page={}", encoded(&next)),
                None => return Ok(()),
            }
        }
    }

    /// Sends a request, and repeats it if the service was busy and nothing can have changed.
    fn asked<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
    ) -> Result<Asked<T>> {
        let mut pause = PAUSE;
        for attempt in 0.. {
            let (error, harmless) = match self.once(method, url, body) {
                Ok((status, text)) => match self.understood(status, &text) {
                    Ok(asked) => return Ok(asked),
                    Err(error) => (error, method == Method::Get || matches!(status, 429 | 503 | 529)),
                },
                Err(error) => (error, method == Method::Get),
            };
            if attempt == RETRIES || !harmless || error.kind() != Kind::Busy {
                return Err(error);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        unreachable!("the last attempt returns")
    }

    fn once(&self, method: Method, url: &str, body: Option<&Value>) -> Result<(u16, String)> {
        let unreached = |error: ureq::Error| {
            Error::new(Kind::Busy, format!("{} cannot be reached: {error}", self.name))
                .hint("try again when the network is back; nothing that was answered is lost")
        };
        macro_rules! headed {
            ($request:expr) => {
                $request
                    .header("x-api-key", &self.key)
                    .header("anthropic-version", VERSION)
                    .header("anthropic-beta", BETA)
            };
        }
        let answered = match method {
            Method::Get => headed!(self.client.get(url)).call(),
            Method::Delete => headed!(self.client.delete(url)).call(),
            Method::Post => headed!(self.client.post(url))
                .header("content-type", "application/json")
                .send(body.map(Value::to_string).unwrap_or_default()),
        };
        let mut response = answered.map_err(unreached)?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        Ok((status, text.map_err(unreached)?))
    }

    fn understood<T: DeserializeOwned>(&self, status: u16, text: &str) -> Result<Asked<T>> {
        let name = &self.name;
        if (200..300).contains(&status) {
            let read = serde_json::from_str(text).map(Asked::Done);
            return read.map_err(|error| {
                Error::new(Kind::Corrupt, format!("{name} sent an invalid answer: {error}"))
                    .hint("check that ANTHROPIC_BASE_URL points to a service with memory stores")
            });
        }
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let said: String = value["error"]["message"].as_str().unwrap_or_default().chars().take(300).collect();
        let told = |kind: Kind, what: &str| Error::new(kind, format!("{name} {what}: {said}"));
        Err(match status {
            404 => return Ok(Asked::Absent),
            409 => return Ok(Asked::Refused),
            401 | 403 => told(Kind::Denied, "refuses access").hint("check ANTHROPIC_API_KEY"),
            413 => told(Kind::Full, "has no room left").hint("delete memories that are no longer needed"),
            400 if said.contains("archived") => told(Kind::Denied, "can only be read")
                .hint("an archived memory store stays as it is: `memgrove copy` carries it into another"),
            400 | 422 => told(Kind::Invalid, "cannot hold it")
                .hint("memory stores hold text of at most 102,400 bytes, on paths of at most 20 segments"),
            _ => told(Kind::Busy, &format!("answered {status}")).hint("try again"),
        })
    }

    /// Said when there is no such memory store.
    pub(super) fn gone(&self) -> Error {
        Error::new(Kind::NotFound, format!("{} does not exist", self.name))
            .hint("create it with the API or an SDK, and name it as anthropic://memstore_…")
    }
}

impl<T> Asked<T> {
    fn found(self) -> Option<T> {
        match self {
            Asked::Done(found) => Some(found),
            Asked::Absent | Asked::Refused => None,
        }
    }
}

/// A value in a query.
fn encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(byte as char),
            _ => write!(text, "%{byte:02X}").expect("a string takes it"),
        }
        text
    })
}
