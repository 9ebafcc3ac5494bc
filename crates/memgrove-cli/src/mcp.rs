//! MCP over standard input and output: a rendering of the table of verbs.

mod kg;
mod kg_listing;
mod lines;
mod outline;
mod pending;
mod prompts;
mod resources;
mod server;
mod subscriptions;
mod tools;
mod worker;

use std::sync::atomic::Ordering;
use std::time::Duration;

use memgrove::{Error, Kind, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, CompleteRequestParams, ContentBlock, CustomRequest, ErrorCode,
    ErrorData, GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams,
    SubscriptionsListenRequestParams,
};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::changes::Changes;
use crate::context::Context;
use crate::ending::asked_to_end;
use crate::page::{Page, Paper, counted};
use crate::verbs::{On, Reply};
pub(crate) use kg::Server as KgServer;
use kg_listing::Listing;
pub(crate) use kg_listing::listed;
use lines::Lines;
pub(crate) use lines::misread;
pub(crate) use resources::decoded as percent_decoded;
pub(crate) use server::{Asked, SESSION, Server};
pub(crate) use tools::Profile;
use tools::Toolbox;
pub(crate) use worker::Worker;

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
        // There are two threads: this one speaks the protocol, and the other one does the work.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let (worker, ended) = Worker::start(cx.clone());
        let served = match profile.is_kg() {
            true => {
                let server = kg::Server::new(cx, worker, cx.environment().memory_file.clone())?;
                runtime.block_on(async { serve(server, Listing).await })
            }
            false => {
                let server = Server::new(&profile, cx.clone(), worker, Changes::of(cx.clone()));
                runtime.block_on(async { serve(server, std::convert::identity).await })
            }
        };
        runtime.shutdown_background();
        // The worker ends with the connection, after its last work and the upkeep that was put off.
        let _ = ended.recv_timeout(END_WAIT);
        match served.map_err(wrong)? {
            0 => Ok(()),
            left => {
                let requests = counted(left, "request", "requests");
                let error = Error::new(Kind::Io, format!("the input ended, and {requests} had no answer"));
                Err(error.hint("`memgrove history` shows what was done all the same"))
            }
        }
    }
}

/// How long the worker may take to end.
const END_WAIT: Duration = Duration::from_secs(20);

/// Serves over standard input and output, through the transport that `way` makes of them. Returns how many
/// requests were left unanswered when the input ended.
async fn serve<T: Transport<RoleServer> + 'static>(
    server: impl ServerHandler,
    way: impl FnOnce(Lines) -> T,
) -> Result<usize, String> {
    let lines = Lines::new();
    let (greeted, pending) = (lines.greeted(), lines.pending());
    let mut end = std::pin::pin!(asked_to_end());
    let started = tokio::select! {
        started = rmcp::serve_server(server, way(lines)) => started,
        () = &mut end => return Ok(0),
    };
    match started {
        Ok(running) => {
            // This thread drives the server, so nothing more has been read yet.
            greeted.store(true, Ordering::SeqCst);
            tokio::select! {
                ended = running.waiting() => ended.map(|_| pending.left()).map_err(|error| error.to_string()),
                () = &mut end => Ok(0),
            }
        }
        // A client that leaves before it has introduced itself is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(0),
        Err(ServerInitializeError::InitializeFailed(error)) => Err(error.message.into_owned()),
        Err(ServerInitializeError::TransportError { error, .. }) => Err(error.error.to_string()),
        Err(_) => Err("the client has not introduced itself".to_owned()),
    }
}

/// The error for a request with an unknown method or unfit parameters: the protocol's crate does not tell the
/// two apart.
fn unknown(request: CustomRequest) -> ErrorData {
    let (method, params) = (request.method, request.params.unwrap_or_else(|| json!({})));
    let is_given = params.get("arguments").is_some_and(|arguments| !arguments.is_null());
    let wrong = match misfit(&method, &params) {
        None => return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        Some(_) if is_given && !params["arguments"].is_object() => {
            format!("`arguments` of `{method}` is not an object; give the arguments by name")
        }
        Some(wrong) => format!("`params` of `{method}` do not fit: {wrong}"),
    };
    ErrorData::invalid_params(wrong, None)
}

/// Why the parameters do not fit a known method; `None` for an unknown one. Methods that the newer revision
/// has removed are not checked, because it no longer knows them.
fn misfit(method: &str, params: &Value) -> Option<serde_json::Error> {
    fn of<T: DeserializeOwned>(params: &Value) -> Option<serde_json::Error> {
        T::deserialize(params).err()
    }
    match method {
        "tools/call" => of::<CallToolRequestParams>(params),
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            of::<PaginatedRequestParams>(params)
        }
        "resources/read" => of::<ReadResourceRequestParams>(params),
        "subscriptions/listen" => of::<SubscriptionsListenRequestParams>(params),
        "prompts/get" => of::<GetPromptRequestParams>(params),
        "completion/complete" => of::<CompleteRequestParams>(params),
        _ => None,
    }
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

/// A failure as a result: the model reads it and tries again, with the tools that it has.
fn refused(error: &Error, toolbox: &Toolbox) -> CallToolResult {
    let code = error.code_name().map_or(String::new(), |code| format!(" {code}"));
    let hint = error.hint_text().and_then(|hint| toolbox.reworded(hint));
    let hint = hint.map_or(String::new(), |hint| format!("\nhint: {hint}"));
    let text = format!("error {}{code}: {}{hint}", error.kind().name(), error.message());
    CallToolResult::error(vec![ContentBlock::text(text)])
}
