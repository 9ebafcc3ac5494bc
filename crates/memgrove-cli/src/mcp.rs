//! MCP over standard input and output: a rendering of the table of verbs.

mod bounded;
mod kg;
mod tools;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use memgrove::backend::{Actor, Origin};
use memgrove::{Error, Kind, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::context::{Context, Input, random_id};
use crate::page::{Page, Paper};
use crate::verbs::Reply;
use bounded::{Bounded, TOO_LONG_METHOD};
pub(crate) use tools::Profile;
use tools::Toolbox;

/// The longest message that is read, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
const INSTRUCTIONS: &str = "A memory that outlasts this conversation. Begin with brief or recall; remember what will \
matter later; forget or undo what was wrong. Addresses such as \
file:/memories/notes.md are what read and forget take.";

/// Serve MCP on standard input and output
///
/// Speaks the protocol revisions with a handshake up to 2025-11-25 and the stateless 2026-07-28.
/// Ends when its input does.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Which tools to offer
    #[arg(long, value_enum, default_value_t = Profile::Core)]
    tools: Profile,
}

impl Serve {
    /// Serves until standard input ends.
    pub(crate) fn run(self, cx: &Context) -> Result<()> {
        let wrong = |error: String| Error::new(Kind::Io, format!("the MCP connection failed: {error}"));
        // Everything happens on two threads: this one speaks the protocol, the other one works.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let (worker, ended) = Worker::start(cx.clone());
        let served = match self.tools {
            Profile::Kg => runtime.block_on(serve(kg::Server::new(cx, worker)?)),
            tools => runtime.block_on(serve(Server::new(tools, cx.clone(), worker))),
        };
        runtime.shutdown_background();
        // With the connection goes the last work; what was written behind is then made true.
        let _ = ended.recv_timeout(END_WAIT);
        served.map_err(wrong)
    }
}

/// How long the worker may take to end.
const END_WAIT: Duration = Duration::from_secs(20);
/// After how much rest the indexes are brought up to date.
const REST: Duration = Duration::from_secs(30);

async fn serve(server: impl ServerHandler) -> Result<(), String> {
    let input = Bounded::new(tokio::io::stdin(), LINE_BYTES_MAX);
    let transport =
        AsyncRwTransport::new_server(input, tokio::io::stdout()).with_max_line_length(2 * LINE_BYTES_MAX);
    match rmcp::serve_server(server, transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        // A client that leaves before it has introduced itself is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// The thread that works: one, so that calls that a client sends ahead take effect in the order
/// sent.
struct Worker(mpsc::Sender<Work>);

impl Worker {
    /// Starts it. What is returned beside it tells when it has ended.
    fn start(cx: Context) -> (Self, mpsc::Receiver<()>) {
        let (work, queue) = mpsc::channel::<Work>();
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            loop {
                match queue.recv_timeout(REST) {
                    Ok(work) => work(),
                    Err(mpsc::RecvTimeoutError::Timeout) => cx.settle(),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
            cx.settle();
            drop(end);
        });
        (Worker(work), ended)
    }

    /// Has it done, and waits for the outcome.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let gone = |_| ErrorData::internal_error("the store's thread is gone: start memgrove again", None);
        let (answer, answered) = oneshot::channel();
        // A client that cancelled does not wait for the answer; the change stands.
        let work = Box::new(move || drop(answer.send(work())));
        self.0.send(work).map_err(|_| gone(()))?;
        answered.await.map_err(|_| gone(()))
    }
}

/// One connection.
struct Server {
    toolbox: Arc<Toolbox>,
    cx: Context,
    session: String,
    worker: Worker,
}

impl Server {
    fn new(profile: Profile, cx: Context, worker: Worker) -> Self {
        let cx = cx.taking(Input::None);
        Server { toolbox: Arc::new(Toolbox::new(profile)), cx, session: random_id(), worker }
    }

    fn asked(&self, context: &RequestContext<RoleServer>) -> Context {
        let client = context.client_info().map(|client| client.name);
        self.cx.asked_by(Actor { origin: Origin::Tool, client, session: Some(self.session.clone()) })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("memgrove", env!("CARGO_PKG_VERSION")).with_title("memgrove");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.toolbox.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (cx, toolbox) = (self.asked(&context), Arc::clone(&self.toolbox));
        let work = move || {
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            match toolbox.call(&request.name, arguments, &cx) {
                Ok(reply) => told(reply.as_ref()),
                Err(error) => refused(&error),
            }
        };
        Ok(self.worker.run(work).await?.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown(request))
    }
}

/// The answer to a request that is no method, or was too long to be read.
fn unknown(request: CustomRequest) -> ErrorData {
    if request.method == TOO_LONG_METHOD {
        let message = format!("a message has at most {LINE_BYTES_MAX} bytes; this one was not carried out");
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
