//! `memgrove serve`: the HTTP API, MCP over HTTP and the web page, on one address.

mod access;
mod api;
mod content;
mod events;
mod gate;
mod link;
mod listen;
mod log;
mod mcp;
mod memory_stores;
mod metrics;
mod openapi;
mod problem;
mod route;
mod served;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use memgrove::{Error, Kind, Result};
use tokio::net::TcpListener;

pub(crate) use access::Scope;
use access::{Access, Keys};
pub(crate) use log::event;
pub(crate) use problem::status;
pub(crate) use route::{Call, Need, Route, Voice};
use served::{DEFAULT_SPACE, Limits};
pub(crate) use served::{Served, Space};

use crate::config::How;
use crate::context::{Context, Input, random_id};
use crate::ending::asked_to_end;

/// The port that is tried first.
const PORT: u16 = 4747;
/// How long work may go on after everything has been answered.
const END_WAIT: Duration = Duration::from_secs(10);
/// How often put-off upkeep is done.
const SETTLE_EVERY: Duration = Duration::from_secs(30);

/// Serve the HTTP API, MCP at /mcp and the web page on this machine
///
/// Prints a link that works once and signs the browser in. Programs send the token from serve-token in
/// the state folder (~/.local/state/memgrove) as `Authorization: Bearer`. Stops on Ctrl-C, after the
/// requests in progress.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Address to listen on [default: 127.0.0.1:4747, or another port if that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = listened)]
    listen: Option<SocketAddr>,
    /// Another store to serve, at /s/NAME/
    #[arg(long = "space", value_name = "NAME=PATH")]
    spaces: Vec<String>,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
    /// Another name for this server, such as memory.example.org or 10.0.0.5:4747
    #[arg(long = "host", value_name = "NAME", value_parser = host_named)]
    hosts: Vec<String>,
    /// Listen beyond this machine although traffic is not encrypted
    #[arg(long)]
    unencrypted: bool,
    /// Format of the log on standard error
    #[arg(long, value_enum, default_value_t)]
    log_format: log::Format,
    /// Print a fresh link to the running server, and exit
    #[arg(long)]
    link: bool,
    /// Maximum concurrent requests; others are told to retry
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = at_least_one)]
    requests_max: usize,
}

/// An address to listen on; `localhost` is this machine.
fn listened(given: &str) -> Result<SocketAddr, String> {
    let numbered = given.replace("localhost", "127.0.0.1");
    numbered.parse().map_err(|_| "an address and a port, such as 127.0.0.1:4747".to_owned())
}

/// A name as a request gives its host: perhaps with a port, and nothing else.
fn host_named(given: &str) -> Result<String, String> {
    match given.parse::<axum::http::uri::Authority>() {
        Ok(host) if host.as_str() == given && !given.contains('@') => Ok(given.to_owned()),
        _ => Err("a name and perhaps a port, such as memory.example.org or 10.0.0.5:4747".to_owned()),
    }
}

fn at_least_one(given: &str) -> Result<usize, String> {
    given.parse().ok().filter(|count| *count > 0).ok_or_else(|| "a number of at least 1".to_owned())
}

impl Serve {
    /// Serves until it is told to end. `tell` gets the address.
    pub(crate) fn run(self, cx: &Context, tell: impl FnOnce(&str) -> Result<()>) -> Result<()> {
        if self.link {
            return tell(&link::fresh(self.address(), cx)?);
        }
        log::choose(self.log_format);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(64)
            .build()
            .map_err(|error| Error::from_io(error, "the server's threads"))?;
        let served = runtime.block_on(self.serve(cx, tell));
        runtime.shutdown_timeout(END_WAIT);
        served
    }

    async fn serve(self, cx: &Context, tell: impl FnOnce(&str) -> Result<()>) -> Result<()> {
        let spaces = self.opened(cx)?;
        let listener = self.listener().await?;
        let at = listener.local_addr().map_err(|error| Error::from_io(error, "the address"))?;
        let keys = Keys::read(&cx.environment().state_folder()?)?;
        let access = Access::new(keys, at.port(), self.read_only);
        let served = Arc::new(Served::new(spaces, access, self.names(at), self.limits(), random_id()));
        tell(&link::printed(at, &served.access.link()))?;
        let router = app(&served);
        tokio::spawn(settling(Arc::clone(&served)));
        let told = served.ending.clone();
        tokio::spawn(async move {
            asked_to_end().await;
            log::event("ending", "stopping after the requests in progress");
            told.cancel();
        });
        listen::serve(listener, router, &served.ending).await;
        served.settle();
        Ok(())
    }

    /// Opens the stores, so that what is wrong with them is reported at the start.
    fn opened(&self, cx: &Context) -> Result<Vec<(String, Context)>> {
        let mut spaces = vec![(DEFAULT_SPACE.to_owned(), cx.clone())];
        for given in &self.spaces {
            let wrong = || {
                Error::new(Kind::Invalid, format!("`{given}` is not a space"))
                    .hint("write NAME=PATH; a name has letters, digits, `-` and `_`")
            };
            let (name, path) = given.split_once('=').ok_or_else(wrong)?;
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(wrong());
            }
            if spaces.iter().any(|(taken, _)| taken == name) {
                return Err(Error::new(Kind::Invalid, format!("two spaces are named `{name}`"))
                    .hint("choose another name; `default` is the store that --store names"));
            }
            spaces.push((name.to_owned(), cx.over_store(path.as_ref(), How::Other("named by --space"))?));
        }
        for (name, cx) in &mut spaces {
            *cx = cx.clone().taking(Input::None);
            let opened = if self.read_only {
                *cx = cx.clone().only_reading();
                cx.reading()
            } else {
                cx.writing()
            };
            opened.map_err(|error| match name == DEFAULT_SPACE {
                true => error,
                false => error.reworded(|text| text.replace("--store", "--space")),
            })?;
        }
        Ok(spaces)
    }

    fn address(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], PORT)))
    }

    async fn listener(&self) -> Result<TcpListener> {
        let at = self.address();
        if !at.ip().is_loopback() && !self.unencrypted {
            return Err(Error::new(Kind::Denied, format!("`{at}` is reachable from other machines")).hint(
                "put a TLS proxy in front of it, or add --unencrypted if the network may see the traffic",
            ));
        }
        if at.ip().is_unspecified() && self.hosts.is_empty() {
            return Err(Error::new(Kind::Invalid, format!("no client can reach `{at}` by that name"))
                .hint("add --host with the name that clients use, such as --host memory.example.org"));
        }
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        match TcpListener::bind(at).await {
            // Another server has the usual port, so any free one will do.
            Err(_) if self.listen.is_none() => TcpListener::bind(free).await,
            bound => bound,
        }
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Error::new(Kind::Busy, format!("`{at}` is already in use"))
                .hint("--link prints a link to the server running there; or listen on another port"),
            _ => Error::from_io(error, at),
        })
    }

    /// The names that a request may give as its host.
    fn names(&self, at: SocketAddr) -> Vec<String> {
        let port = at.port();
        let mut names =
            vec![format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
        names.push(at.to_string());
        for host in &self.hosts {
            names.push(host.clone());
            names.push(format!("{host}:{port}"));
        }
        names
    }

    fn limits(&self) -> Limits {
        Limits {
            body_bytes_max: 4 * 1024 * 1024,
            content_bytes_max: 64 * 1024 * 1024,
            reply_bytes_max: 16 * 1024 * 1024,
            requests_max: self.requests_max,
            timeout: Duration::from_secs(30),
            body_wait: Duration::from_secs(10),
            streams_max: 64,
            sessions_max: 1_024,
        }
    }
}

const READ: Need = Need::Scope(Scope::Read);
const WRITE: Need = Need::Scope(Scope::Write);

/// Everything that is served, behind the gate.
fn app(served: &Arc<Served>) -> axum::Router {
    let gate = axum::middleware::from_fn_with_state(Arc::clone(served), gate::gate);
    route::router(routes(), Arc::clone(served)).layer(gate)
}

/// Every route of the server.
fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::new(Method::GET, "/healthz", Need::Nothing, healthy).of_server(),
        Route::new(Method::GET, "/open", Need::Nothing, link::open).of_server().speaking_to(Voice::Person),
        Route::new(Method::GET, "/metrics", READ, metrics).of_server(),
        Route::new(Method::POST, "/api/link", READ, link::made).of_server(),
        Route::new(Method::GET, "/api/events", READ, events::stream),
        Route::new(Method::GET, "/api/openapi.json", READ, openapi::described),
        Route::new(Method::GET, "/api/content", READ, content::get),
        Route::new(Method::PUT, "/api/content", WRITE, content::put),
        // Whether a tool may be called is decided when it is called.
        Route::new(Method::GET, "/mcp", READ, mcp::serve),
        Route::new(Method::POST, "/mcp", READ, mcp::serve),
        Route::new(Method::DELETE, "/mcp", READ, mcp::serve),
    ];
    routes.extend(api::routes());
    routes.extend(memory_stores::routes());
    routes.extend(crate::web::routes());
    routes
}

async fn healthy(_: Call) -> Result<Response> {
    Ok("ok\n".into_response())
}

async fn metrics(call: Call) -> Result<Response> {
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    Ok(([(header::CONTENT_TYPE, kind)], call.served.metrics.told()).into_response())
}

/// Does put-off upkeep from time to time.
async fn settling(served: Arc<Served>) {
    loop {
        tokio::time::sleep(SETTLE_EVERY).await;
        let served = Arc::clone(&served);
        let _ = tokio::task::spawn_blocking(move || served.settle()).await;
    }
}

#[cfg(test)]
mod tests;
