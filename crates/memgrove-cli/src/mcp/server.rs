//! One MCP connection: the table of verbs as tools, memories as resources, and prompts that help to
//! use them well.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use memgrove::backend::{Actor, Origin, Version};
use memgrove::{Kind, Result};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, CompletionInfo, CustomRequest, CustomResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::subscriptions::Subscriptions;
use super::tools::{Profile, Toolbox};
use super::{Worker, prompts, refused, resources, told};
use crate::changes::Changes;
use crate::context::{Context, Input, random_id};
use crate::signing::signed;

const INSTRUCTIONS: &str = "A memory that outlasts this conversation. Begin with brief or recall; remember what will \
matter later; forget or undo what was wrong. To read or forget, give an address such as file:/memories/notes.md.";
/// The instructions where neither recall nor files are offered.
const INSTRUCTIONS_OF_OTHERS: &str = "A memory that outlasts this conversation. Look into it first; keep in it what \
will matter later.";
/// The instructions where files are offered, but not recall.
const INSTRUCTIONS_OF_FILES: &str = "A memory that outlasts this conversation: files under /memories. View them first; \
keep in them what will matter later.";
/// How long a client may keep the lists of tools and prompts, which change with the program alone.
const LISTS_TTL_MS: u64 = 3_600_000;
/// How often a client that asked for it hears that a call is still under way.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// The header that names the session of a client with the handshake.
pub(crate) const SESSION: &str = "mcp-session-id";

/// The store and the token of a request over HTTP, which the request carries along.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The store, for whoever asks.
    pub(crate) cx: Context,
    /// The token that asks.
    pub(crate) token: String,
}

/// One connection.
pub(crate) struct Server {
    toolbox: Arc<Toolbox>,
    cx: Context,
    session: String,
    worker: Worker,
    subscriptions: Subscriptions,
}

impl Server {
    /// A connection to a store.
    pub(crate) fn new(profile: &Profile, cx: Context, worker: Worker, changes: Changes) -> Self {
        let cx = cx.taking(Input::None);
        let (toolbox, session) = (Arc::new(Toolbox::new(profile)), random_id());
        let subscriptions = Subscriptions::new(cx.clone(), changes);
        Server { toolbox, cx, session, worker, subscriptions }
    }

    fn asked(&self, context: &RequestContext<RoleServer>) -> Context {
        asked(&self.cx, &self.session, context)
    }

    /// Does work for the asker, and turns its error into one of the protocol.
    async fn work<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Context) -> Result<T> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let cx = self.asked(context);
        let done = self.worker.run(move || work(&cx)).await?;
        done.map_err(|error| match error.kind() {
            Kind::NotFound => ErrorData::resource_not_found(error.message().to_owned(), None),
            Kind::Invalid => ErrorData::invalid_params(error.message().to_owned(), None),
            _ => ErrorData::internal_error(error.message().to_owned(), None),
        })
    }
}

/// The store, acting for the sender of a request: over HTTP the request says who that is; on standard input
/// there is only one.
pub(super) fn asked(cx: &Context, session: &str, context: &RequestContext<RoleServer>) -> Context {
    let named = context.client_info().map(|client| client.name);
    let parts = context.extensions.get::<Parts>();
    if let Some((parts, asked)) = parts.and_then(|parts| Some((parts, parts.extensions.get::<Asked>()?))) {
        return asked.by(&parts.headers, named, session);
    }
    let client = named.or_else(|| cx.actor.client.clone());
    cx.asked_by(Actor { origin: Origin::Tool, client, session: Some(session.to_owned()) })
}

impl Asked {
    /// The store, acting for the client and the session that the headers name. `session` is that of the
    /// connection.
    fn by(&self, headers: &HeaderMap, named: Option<String>, session: &str) -> Context {
        let said = |name: &str| {
            let said = headers.get(name).and_then(|value| value.to_str().ok());
            said.filter(|said| !said.trim().is_empty()).map(str::to_owned)
        };
        let client = signed(&self.token, said("x-memgrove-client").or(named).as_deref());
        let session = said("x-memgrove-session").unwrap_or_else(|| match headers.contains_key(SESSION) {
            true => session.to_owned(),
            // Without a handshake every request is a connection of its own; a client's requests form one
            // session.
            false => Version::of(client.as_bytes()).as_str().to_owned(),
        });
        self.cx.asked_by(Actor { origin: Origin::Tool, client: Some(client), session: Some(session) })
    }
}

#[allow(deprecated)] // Subscribing to resources is how clients with a handshake do it.
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("memgrove", env!("CARGO_PKG_VERSION")).with_title("memgrove");
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions();
        let said = [("recall", INSTRUCTIONS), ("memory", INSTRUCTIONS_OF_FILES)];
        let fitting = said.into_iter().find(|(tool, _)| self.get_tool(tool).is_some());
        let instructions = fitting.map_or(INSTRUCTIONS_OF_OTHERS, |(_, instructions)| instructions);
        ServerConfig::new(capabilities.build()).with_server_info(name).with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.toolbox.tools();
        if self.asked(&context).may_write().is_err() {
            tools.retain(reads);
        }
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LISTS_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.toolbox.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (cx, toolbox) = (self.asked(&context), Arc::clone(&self.toolbox));
        let cancelled = context.ct.clone();
        let work = move || {
            // A call that was cancelled before it began is not begun; one that has begun is completed.
            if cancelled.is_cancelled() {
                return CallToolResult::error(Vec::new());
            }
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            match toolbox.call(&request.name, arguments, &cx) {
                Ok(reply) => told(reply.as_ref()),
                Err(error) => refused(&error, &toolbox),
            }
        };
        let done = tokio::select! {
            done = self.worker.run(work) => done?,
            never = progress(&context) => never,
        };
        self.subscriptions.look();
        Ok(done.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let after = request.and_then(|request| request.cursor);
        let (resources, next) = self.work(&context, move |cx| resources::list(cx, after.as_deref())).await?;
        let mut listed = ListResourcesResult::with_all_items(resources);
        listed.next_cursor = next;
        Ok(listed.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(LISTS_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.work(&context, move |cx| resources::read(cx, &request.uri)).await?;
        let read = ReadResourceResult::new(vec![contents]);
        Ok(read.with_ttl_ms(0).with_cache_scope(CacheScope::Private).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let uri = request.uri.clone();
        let places = self.work(&context, move |cx| Ok(resources::watched(cx, &uri))).await?;
        self.subscriptions.add(request.uri, places, context.peer).await;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.clone().unwrap_or_default();
        Some(SubscriptionFilter::builder().resource_subscriptions(uris).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let watched = move |cx: &Context| {
            Ok(uris.into_iter().map(|uri| (uri.clone(), resources::watched(cx, &uri))).collect())
        };
        let watched = self.work(context.request_context(), watched).await?;
        self.subscriptions.tell(watched, &context).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list())
            .with_ttl_ms(LISTS_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let prompt = move |cx: &Context| prompts::get(cx, &request.name, &Value::Object(arguments));
        Ok(self.work(&context, prompt).await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let Reference::Resource(template) = request.r#ref else { return Ok(CompleteResult::default()) };
        let argument = request.argument;
        let known = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let found = move |cx: &Context| {
            resources::complete(cx, &template.uri, &argument.name, &argument.value, &known)
        };
        let values = self.work(&context, found).await?;
        let info = CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(super::unknown(request))
    }
}

/// Tells a client that asked for it every now and then that its call is under way. Never returns.
async fn progress(context: &RequestContext<RoleServer>) -> CallToolResult {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let mut step = 0.0;
    loop {
        let told = ProgressNotificationParam::new(token.clone(), step).with_message("under way");
        // A client that is gone needs no telling.
        let _ = context.peer.notify_progress(told).await;
        step += 1.0;
        tokio::time::sleep(PROGRESS_EVERY).await;
    }
}

/// Whether a tool says that it changes nothing.
pub(super) fn reads(tool: &Tool) -> bool {
    tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true)
}
