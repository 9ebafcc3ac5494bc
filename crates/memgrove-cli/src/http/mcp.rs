//! MCP over streamable HTTP, at `/mcp`. `?tools=` chooses the tools, as `memgrove mcp --tools` does.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use clap::ValueEnum;
use memgrove::{Error, Kind, Result};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::route::Call;
use crate::changes::Changes;
use crate::context::Context;
use crate::mcp::{Asked, KgServer, Profile, Server, Worker, listed};

/// The MCP servers of one space: one for each choice of tools.
pub(crate) struct McpServers {
    verbs: Vec<(Profile, StreamableHttpService<Server, LocalSessionManager>)>,
    kg: StreamableHttpService<KgServer, LocalSessionManager>,
}

impl McpServers {
    /// The servers over a store, which end with the whole.
    pub(crate) fn new(
        cx: &Context,
        changes: &Changes,
        body_bytes_max: usize,
        ending: &CancellationToken,
    ) -> Self {
        let config = || {
            let mut config = StreamableHttpServerConfig::default()
                // The gate has checked both.
                .disable_allowed_hosts()
                .disable_allowed_origins();
            config.max_request_body_bytes = body_bytes_max;
            config.cancellation_token = ending.child_token();
            config
        };
        let profiles = Profile::value_variants().iter().filter(|profile| **profile != Profile::Kg);
        let verbs = profiles.map(|profile| {
            let (cx, changes, profile) = (cx.clone(), changes.clone(), *profile);
            let server = move || Ok(Server::new(profile, cx.clone(), Worker::Pool, changes.clone()));
            (profile, StreamableHttpService::new(server, Arc::default(), config()))
        });
        let verbs = verbs.collect();
        let cx = cx.clone();
        let kg = move || KgServer::new(&cx, Worker::Pool, None).map_err(io::Error::other);
        McpServers { verbs, kg: StreamableHttpService::new(kg, Arc::default(), config()) }
    }

    async fn handle(&self, profile: Profile, request: Request<Body>) -> Response {
        match self.verbs.iter().find(|(of, _)| *of == profile) {
            Some((_, server)) => server.handle(request).await.map(Body::new),
            None => self.kg.handle(request).await.map(|body| listed(Body::new(body))),
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
    let profile = match tools {
        None => Profile::Core,
        Some(name) => Profile::from_str(&name, true).map_err(|_| {
            let names: Vec<String> = Profile::value_variants()
                .iter()
                .filter_map(|one| Some(one.to_possible_value()?.get_name().into()))
                .collect();
            let message = format!("there is no choice of tools `{}`", name.escape_default());
            Error::new(Kind::Invalid, message).hint(format!("choose from: {}", names.join(", ")))
        })?,
    };
    let space = Arc::clone(&call.space);
    let asked = Asked(call.cx());
    let mut request = call.into_request();
    request.extensions_mut().insert(asked);
    Ok(space.mcp.handle(profile, request).await)
}
