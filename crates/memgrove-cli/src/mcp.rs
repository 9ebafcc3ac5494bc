//! MCP over standard input and output: a rendering of the table of verbs.

mod bounded;
mod kg;
mod kg_listing;
mod prompts;
mod resources;
mod server;
mod subscriptions;
mod tools;
mod worker;

use std::time::Duration;

use memgrove::{Error, Kind, Result};
use rmcp::model::{CallToolResult, ContentBlock, CustomRequest, ErrorData};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler};
use tokio::io::{Stdin, Stdout};

use crate::changes::Changes;
use crate::context::Context;
use crate::ending::asked_to_end;
use crate::page::{Page, Paper};
use crate::verbs::{On, Reply};
use bounded::{Bounded, TOO_LONG_METHOD};
pub(crate) use kg::Server as KgServer;
use kg_listing::Listing;
pub(crate) use kg_listing::listed;
pub(crate) use resources::decoded as percent_decoded;
pub(crate) use server::{Asked, Server};
pub(crate) use tools::Profile;
pub(crate) use worker::Worker;

/// The longest message that is read, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Serve MCP over standard input and output
///
/// Supports the protocol revisions with a handshake up to 2025-11-25, and the stateless 2026-07-28.
/// Exits when its input ends or it is stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Tool sets to offer, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SETS", default_value = "core")]
    tools: Vec<On>,
}

impl Serve {
    /// Serves until standard input ends, or a signal says so.
    pub(crate) fn run(self, cx: &Context) -> Result<()> {
        let profile = Profile::new(self.tools)?;
        let wrong = |error: String| Error::new(Kind::Io, format!("the MCP connection failed: {error}"));
        // Everything happens on two threads: this one speaks the protocol, the other one works.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let (worker, ended) = Worker::start(cx.clone());
        let served = match profile.is_kg() {
            true => {
                let server = kg::Server::new(cx, worker, cx.environment().memory_file.clone())?;
                runtime.block_on(async { serve(server, Listing(connection())).await })
            }
            false => {
                let server = Server::new(&profile, cx.clone(), worker, Changes::of(cx.clone()));
                runtime.block_on(async { serve(server, connection()).await })
            }
        };
        runtime.shutdown_background();
        // With the connection goes the last work; what was written behind is then made true.
        let _ = ended.recv_timeout(END_WAIT);
        served.map_err(wrong)
    }
}

/// How long the worker may take to end.
const END_WAIT: Duration = Duration::from_secs(20);

/// Standard input and output.
fn connection() -> AsyncRwTransport<RoleServer, Bounded<Stdin>, Stdout> {
    let input = Bounded::new(tokio::io::stdin(), LINE_BYTES_MAX);
    AsyncRwTransport::new_server(input, tokio::io::stdout()).with_max_line_length(2 * LINE_BYTES_MAX)
}

async fn serve(
    server: impl ServerHandler,
    transport: impl Transport<RoleServer> + 'static,
) -> Result<(), String> {
    let mut end = std::pin::pin!(asked_to_end());
    let started = tokio::select! {
        started = rmcp::serve_server(server, transport) => started,
        () = &mut end => return Ok(()),
    };
    match started {
        Ok(running) => tokio::select! {
            ended = running.waiting() => ended.map(drop).map_err(|error| error.to_string()),
            () = &mut end => Ok(()),
        },
        // A client that leaves before it has introduced itself is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The answer to a request that is no method, or was too long to be read.
fn unknown(request: CustomRequest) -> ErrorData {
    if request.method == TOO_LONG_METHOD {
        let message = format!("a message has at most {LINE_BYTES_MAX} bytes; this one was not processed");
        return ErrorData::invalid_request(message, None);
    }
    ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, request.method, None)
}

/// An answer as a result: data for programs, and the same as compact text for models.
fn told(reply: &dyn Reply) -> CallToolResult {
    let answer = reply.json();
    let mut text = Vec::new();
    let shown = reply.show(&mut Page::new(&mut text, Paper::Plain)).ok();
    let text = shown.and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| answer.to_string());
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = (!reply.is_text_only()).then_some(answer);
    result.is_error = Some(reply.failed().is_some());
    result
}

/// A failure as a result: the model reads it and tries again.
fn refused(error: &Error) -> CallToolResult {
    let code = error.code_name().map_or(String::new(), |code| format!(" {code}"));
    let hint = error.hint_text().map_or(String::new(), |hint| format!("\nhint: {hint}"));
    let text = format!("error {}{code}: {}{hint}", error.kind().name(), error.message());
    CallToolResult::error(vec![ContentBlock::text(text)])
}
