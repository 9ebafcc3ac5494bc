//! What is served: the spaces, each a store of its own, and what all requests share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Handle as Threads, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::mcp::McpServers;
use super::metrics::Metrics;
use crate::changes::Changes;
use crate::context::Context;
use crate::memory_stores::Catalog;

/// The space at the root.
pub(crate) const DEFAULT_SPACE: &str = "default";

/// How many large bodies are taken at once; the others wait.
const LARGE_BODIES_MAX: usize = 4;

/// What all requests share.
pub(crate) struct Served {
    spaces: BTreeMap<String, Arc<Space>>,
    /// Who may ask.
    pub(crate) access: Access,
    /// The authorities that a request may name as its host.
    pub(crate) hosts: Vec<String>,
    /// What a request may cost.
    pub(crate) limits: Limits,
    /// Limits how many large bodies are received at once, because they are held in memory.
    pub(crate) large_bodies: Semaphore,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// This run of the server, in the history.
    pub(crate) session: String,
    /// Cancelled when the server shall end.
    pub(crate) ending: CancellationToken,
}

/// One store and what watches it.
pub(crate) struct Space {
    /// Its name in addresses.
    pub(crate) name: String,
    /// Its store.
    pub(crate) cx: Context,
    /// What happens to it.
    pub(crate) changes: Changes,
    /// Who searches in it.
    pub(crate) searchers: Searchers,
    /// Its MCP servers.
    pub(crate) mcp: McpServers,
    /// What its history tells of memories.
    pub(crate) catalog: Mutex<Catalog>,
}

/// The few threads that search: as many as an index admits at once. Requests that wait for them need no
/// thread, and the threads do not sleep while there is something to search.
pub(crate) struct Searchers(Option<Runtime>);

impl Searchers {
    fn new() -> Self {
        let mut threads = tokio::runtime::Builder::new_current_thread();
        Searchers(threads.max_blocking_threads(memgrove::index::at_once()).build().ok())
    }

    /// The threads of the searchers, or the caller's if they could not be made.
    pub(crate) fn threads(&self) -> Threads {
        self.0.as_ref().map_or_else(Threads::current, |threads| threads.handle().clone())
    }
}

impl Drop for Searchers {
    fn drop(&mut self) {
        // Nobody waits any more for a search that is under way.
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

/// What a request may cost.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The largest body.
    pub(crate) body_bytes_max: usize,
    /// The largest body where it is the content of a file.
    pub(crate) content_bytes_max: usize,
    /// The largest answer of a verb.
    pub(crate) reply_bytes_max: usize,
    /// The most requests at once; more are told to come back.
    pub(crate) requests_max: usize,
    /// The longest that an answer may take.
    pub(crate) timeout: Duration,
    /// The longest pause while a client sends a body.
    pub(crate) body_wait: Duration,
    /// The most live streams of changes.
    pub(crate) streams_max: usize,
    /// The most MCP sessions of one space; the one that was idle longest makes room.
    pub(crate) sessions_max: usize,
}

impl Served {
    /// Serves these spaces; the one called `default` is at the root.
    pub(crate) fn new(
        spaces: Vec<(String, Context)>,
        access: Access,
        hosts: Vec<String>,
        limits: Limits,
        session: String,
    ) -> Self {
        let large_bodies = Semaphore::new(LARGE_BODIES_MAX);
        let (metrics, ending) = (Metrics::new(limits.requests_max), CancellationToken::new());
        let space = |(name, cx): (String, Context)| {
            let changes = Changes::of(cx.clone());
            let mcp = McpServers::new(&cx, &changes, &limits, &ending);
            let (searchers, catalog) = (Searchers::new(), Mutex::default());
            (name.clone(), Arc::new(Space { name, cx, changes, searchers, mcp, catalog }))
        };
        let spaces = spaces.into_iter().map(space).collect();
        Served { spaces, access, hosts, metrics, limits, large_bodies, session, ending }
    }

    /// A space by its name; without one, the default.
    pub(crate) fn space(&self, name: Option<&str>) -> Option<Arc<Space>> {
        self.spaces.get(name.unwrap_or(DEFAULT_SPACE)).cloned()
    }

    /// The names of all spaces.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = &str> {
        self.spaces.keys().map(String::as_str)
    }

    /// Brings up to date what is written behind, everywhere.
    pub(crate) fn settle(&self) {
        self.spaces.values().for_each(|space| space.cx.settle());
    }
}
