//! MCP over streamable HTTP, at `/mcp`. `?tools=` chooses the tools, as `memgrove mcp --tools` does.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use memgrove::Result;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::route::Call;
use crate::changes::Changes;
use crate::context::Context;
use crate::mcp::{Asked, KgServer, Profile, Server, Worker, listed};

/// The MCP servers of one space: one for each choice of tools, made when it is first asked for.
pub(crate) struct McpServers {
    verbs: Mutex<Vec<(Profile, Arc<VerbServer>)>>,
    made: Box<dyn Fn(&Profile) -> VerbServer + Send + Sync>,
    kg: StreamableHttpService<KgServer, LocalSessionManager>,
}

type VerbServer = StreamableHttpService<Server, LocalSessionManager>;

impl McpServers {
    /// The servers over a store, which end with the whole.
    pub(crate) fn new(
        cx: &Context,
        changes: &Changes,
        body_bytes_max: usize,
        ending: &CancellationToken,
    ) -> Self {
        let ending = ending.clone();
        let config = move || {
            let mut config = StreamableHttpServerConfig::default()
                // The gate has checked both.
                .disable_allowed_hosts()
                .disable_allowed_origins();
            config.max_request_body_bytes = body_bytes_max;
            config.cancellation_token = ending.child_token();
            config
        };
        let over = cx.clone();
        let kg = move || KgServer::new(&over, Worker::Pool, None).map_err(io::Error::other);
        let kg = StreamableHttpService::new(kg, Arc::default(), config());
        let (cx, changes) = (cx.clone(), changes.clone());
        let made = move |profile: &Profile| {
            let (cx, changes, profile) = (cx.clone(), changes.clone(), profile.clone());
            let server = move || Ok(Server::new(&profile, cx.clone(), Worker::Pool, changes.clone()));
            StreamableHttpService::new(server, Arc::default(), config())
        };
        McpServers { verbs: Mutex::default(), made: Box::new(made), kg }
    }

    async fn handle(&self, profile: &Profile, request: Request<Body>) -> Response {
        match profile.is_kg() {
            true => self.kg.handle(request).await.map(|body| listed(Body::new(body))),
            false => self.of(profile).handle(request).await.map(Body::new),
        }
    }

    /// The server with these tools: a session is known to no other.
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

#[derive(serde::Deserialize)]
struct Choice {
    tools: Option<String>,
}

/// Hands a request on to the server of its space and its choice of tools.
pub(crate) async fn serve(call: Call) -> Result<Response> {
    let Choice { tools } = call.query()?;
    let profile = tools.map_or_else(|| Ok(Profile::default()), |names| names.parse())?;
    let space = Arc::clone(&call.space);
    let asked = Asked(call.cx());
    let mut request = call.into_request();
    request.extensions_mut().insert(asked);
    Ok(space.mcp.handle(&profile, request).await)
}
