//! MCP over streamable HTTP, at `/mcp`. `?tools=` chooses the tools, as `memgrove mcp --tools` does.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use memgrove::Result;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::access::text;
use super::route::Call;
use super::served::Limits;
use crate::changes::Changes;
use crate::context::Context;
use crate::mcp::{Asked, KgServer, Profile, Server, Worker, listed};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The MCP servers of one space: one for each choice of tools, made when it is first asked for.
pub(crate) struct McpServers {
    verbs: Mutex<Vec<(Profile, Arc<VerbServer>)>>,
    made: Box<dyn Fn(&Profile) -> VerbServer + Send + Sync>,
    kg: StreamableHttpService<KgServer, LocalSessionManager>,
    sessions: Sessions,
}

type VerbServer = StreamableHttpService<Server, LocalSessionManager>;

impl McpServers {
    /// The servers over a store, which end with the whole.
    pub(crate) fn new(cx: &Context, changes: &Changes, limits: &Limits, ending: &CancellationToken) -> Self {
        let (ending, body_bytes_max) = (ending.clone(), limits.body_bytes_max);
        let config = move || {
            let mut config = StreamableHttpServerConfig::default()
                // The gate has checked both.
                .disable_allowed_hosts()
                .disable_allowed_origins();
            config.max_request_body_bytes = body_bytes_max;
            config.cancellation_token = ending.child_token();
            config
        };
        let sessions = Sessions::new(limits.sessions_max);
        let over = cx.clone();
        let kg = move || KgServer::new(&over, Worker::Pool, None).map_err(io::Error::other);
        let kg = StreamableHttpService::new(kg, Arc::clone(&sessions.open), config());
        let (cx, changes, open) = (cx.clone(), changes.clone(), Arc::clone(&sessions.open));
        let made = move |profile: &Profile| {
            let (cx, changes, profile) = (cx.clone(), changes.clone(), profile.clone());
            let server = move || Ok(Server::new(&profile, cx.clone(), Worker::Pool, changes.clone()));
            StreamableHttpService::new(server, Arc::clone(&open), config())
        };
        McpServers { verbs: Mutex::default(), made: Box::new(made), kg, sessions }
    }

    async fn handle(&self, profile: &Profile, request: Request<Body>) -> Response {
        let asked = text(request.headers(), SESSION).map(str::to_owned);
        let answer = match profile.is_kg() {
            true => self.kg.handle(request).await.map(|body| listed(Body::new(body))),
            false => self.of(profile).handle(request).await.map(Body::new),
        };
        match (text(answer.headers(), SESSION), asked) {
            (Some(begun), None) => self.sessions.begun(begun.into()).await,
            (_, Some(asked)) => self.sessions.used(&asked),
            (None, None) => {}
        }
        answer
    }

    /// The server with these tools.
    fn of(&self, profile: &Profile) -> Arc<VerbServer> {
        let mut all = self.verbs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, server)) = all.iter().find(|(of, _)| of == profile) {
            return Arc::clone(server);
        }
        let server = Arc::new((self.made)(profile));
        all.push((profile.clone(), Arc::clone(&server)));
        server
    }
}

/// The sessions of one space, each with when it was last used.
struct Sessions {
    open: Arc<LocalSessionManager>,
    used: Mutex<HashMap<SessionId, Instant>>,
    most: usize,
}

impl Sessions {
    fn new(most: usize) -> Self {
        Sessions { open: Arc::default(), used: Mutex::default(), most }
    }

    fn last_used(&self) -> MutexGuard<'_, HashMap<SessionId, Instant>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self, id: &str) {
        if let Some(last) = self.last_used().get_mut(id) {
            *last = Instant::now();
        }
    }

    /// Takes in a session; those that were idle longest make room, if there are too many.
    async fn begun(&self, id: SessionId) {
        let open: HashSet<SessionId> = self.open.sessions.read().await.keys().cloned().collect();
        let idle = {
            let mut used = self.last_used();
            used.insert(id, Instant::now());
            used.retain(|id, _| open.contains(id));
            let mut ids: Vec<(Instant, SessionId)> = used.iter().map(|(id, at)| (*at, id.clone())).collect();
            ids.sort();
            let over = ids.len().saturating_sub(self.most);
            ids.into_iter().take(over).map(|(_, id)| id).collect::<Vec<_>>()
        };
        for id in idle {
            // One that has ended by itself meanwhile is gone all the same.
            let _ = self.open.close_session(&id).await;
        }
    }
}

#[derive(serde::Deserialize)]
struct Choice {
    tools: Option<String>,
}

/// Hands a request on to the server of its space and its choice of tools.
pub(crate) async fn serve(call: Call) -> Result<Response> {
    let Choice { tools } = call.query()?;
    let profile = tools.map_or_else(|| Ok(Profile::default()), |names| names.parse())?;
    let space = Arc::clone(&call.space);
    let token = call.asker.as_ref().map(|asker| asker.name.clone()).unwrap_or_default();
    let asked = Asked { cx: call.cx(), token };
    let mut request = call.into_request();
    request.extensions_mut().insert(asked);
    Ok(space.mcp.handle(&profile, request).await)
}
