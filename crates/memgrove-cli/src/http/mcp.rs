//! MCP over streamable HTTP, at `/mcp`. `?tools=` chooses the tools, as `memgrove mcp --tools` does.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use memgrove::Result;
use rmcp::model::ErrorData;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::access::text;
use super::route::Call;
use super::served::Limits;
use crate::changes::Changes;
use crate::context::Context;
use crate::mcp::{Asked, KgServer, Profile, SESSION, Server, Worker, listed, misread};

/// The MCP servers of one space: one for each choice of tools, made when it is first asked for.
pub(crate) struct McpServers {
    verbs: Mutex<Vec<(Profile, Arc<VerbServer>)>>,
    made: Box<dyn Fn(&Profile) -> VerbServer + Send + Sync>,
    kg: StreamableHttpService<KgServer, LocalSessionManager>,
    sessions: Sessions,
}

type VerbServer = StreamableHttpService<Server, LocalSessionManager>;

impl McpServers {
    /// The servers over a store, which end when `ending` is cancelled.
    pub(crate) fn new(cx: &Context, changes: &Changes, limits: &Limits, ending: &CancellationToken) -> Self {
        let (ending, body_bytes_max) = (ending.clone(), limits.body_bytes_max);
        let config = move || {
            let mut config = StreamableHttpServerConfig::default()
                // The gate checks both already.
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
        let ends = request.method() == Method::DELETE;
        let mut answer = match profile.is_kg() {
            true => self.kg.handle(request).await.map(|body| listed(Body::new(body))),
            false => self.of(profile).handle(request).await.map(Body::new),
        };
        match (text(answer.headers(), SESSION), asked) {
            (Some(begun), None) => self.sessions.begun(begun.into()).await,
            (_, Some(asked)) => self.sessions.used(&asked),
            (None, None) => {}
        }
        // The protocol's crate answers 202 when it has ended a session, which clients take for a failure.
        if ends && answer.status() == StatusCode::ACCEPTED {
            *answer.status_mut() = StatusCode::NO_CONTENT;
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

    /// Takes in a session; if there are too many, closes those that were idle longest.
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
            // A session that has ended by itself meanwhile is closed already.
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
    let typed = call.header(header::CONTENT_TYPE.as_str());
    let is_json = typed.is_some_and(|typed| typed.starts_with("application/json"));
    let sent = call.body().await?;
    let asked = Asked { cx: call.cx(), token };
    let mut request = call.into_request();
    *request.body_mut() = Body::from(sent.clone());
    request.extensions_mut().insert(asked);
    let answer = space.mcp.handle(&profile, request).await;
    // The protocol's crate refuses a body that it cannot read with this status, in plain text.
    let is_unread = is_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let wrong = if is_unread { misread(&sent) } else { None };
    Ok(wrong.map_or(answer, unread))
}

/// The answer to a body that is not a message, as on standard output.
fn unread((id, error): (Value, ErrorData)) -> Response {
    let told = json!({"jsonrpc": "2.0", "id": id, "error": error});
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, kind, told.to_string()).into_response()
}
