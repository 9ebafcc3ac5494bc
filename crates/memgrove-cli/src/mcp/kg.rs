//! The MCP memory server's nine tools, its resource and its notifications, in its own words: on
//! the entities of this store, or on the file that the server itself would use.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memgrove::backend::Note;
use memgrove::shapes::entities::kg::{Addition, Answer, Call, Deletion, Edge, Graph, Node};
use memgrove::shapes::entities::kg_file;
use memgrove::{Error, Kind, Locator, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorData, Implementation, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::{Worker, server};
use crate::context::{Context, Guard, Input, random_id};

/// How many links are followed in a row.
const LINKS_MAX: usize = 40;
const GRAPH: &str = "memory://knowledge-graph";
/// The tools as the server lists them.
const TOOLS: &str = include_str!("kg_tools.json");

/// One connection.
pub(crate) struct Server {
    cx: Context,
    /// The name of the memory server's own file, in the folder that `cx` is over.
    file: Option<Locator>,
    tools: Arc<Vec<Tool>>,
    session: String,
    subscribed: AtomicBool,
    worker: Worker,
}

impl Server {
    /// A server on the entities of a store, or on a file of the MCP memory server's own.
    pub(crate) fn new(cx: &Context, worker: Worker, file: Option<PathBuf>) -> Result<Self> {
        let (cx, file) = match file {
            Some(path) => in_place(cx, path)?,
            None => (cx.clone(), None),
        };
        let tools = serde_json::from_str(TOOLS).expect("the tools are kept as the server lists them");
        let (session, subscribed) = (random_id(), AtomicBool::new(false));
        Ok(Server { cx: cx.taking(Input::None), file, tools: Arc::new(tools), session, subscribed, worker })
    }

    fn desk(&self, context: &RequestContext<RoleServer>) -> Desk {
        Desk { cx: server::asked(&self.cx, &self.session, context), file: self.file.clone() }
    }
}

/// The folder of a file, to be used in place, and the file's name.
fn in_place(cx: &Context, path: PathBuf) -> Result<(Context, Option<Locator>)> {
    let given = cx.environment().absolute(&path)?;
    // A link leads to the file that is meant, even to one that is yet to be made.
    let path = given.canonicalize().unwrap_or_else(|_| followed(given));
    let wrong = || {
        Error::new(Kind::Invalid, format!("`{}` names no file", path.display()))
            .hint("set MEMORY_FILE_PATH to a file such as memory.jsonl")
    };
    let folder = path.parent().ok_or_else(wrong)?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
    Ok((cx.in_folder(folder)?, Some(Locator::new(name)?)))
}

/// Where a link leads whose target does not exist yet.
fn followed(mut path: PathBuf) -> PathBuf {
    for _ in 0..LINKS_MAX {
        let Ok(to) = path.read_link() else { break };
        path = path.parent().map_or_else(|| to.clone(), |folder| folder.join(&to));
    }
    path
}

/// What one call works with.
struct Desk {
    cx: Context,
    file: Option<Locator>,
}

impl Desk {
    fn perform(&self, verb: &str, call: &Call) -> Result<(Answer, Vec<usize>)> {
        let note = self.cx.note(verb, &Guard::default());
        match &self.file {
            None if call.reads() => Ok((self.cx.reading_knowledge()?.kg(note, call)?.outcome, Vec::new())),
            None => Ok((self.cx.writing_knowledge()?.kg(note, call)?.outcome, Vec::new())),
            Some(file) => self.perform_on(file, note, call),
        }
    }

    fn perform_on(&self, file: &Locator, note: Note, call: &Call) -> Result<(Answer, Vec<usize>)> {
        let done = self.cx.writing()?.apply(note, |store| kg_file::plan(store, file, call))?;
        Ok((done.outcome.answer, done.outcome.damaged))
    }

    fn graph(&self) -> Result<Graph> {
        match self.perform("read_graph", &Call::ReadGraph)?.0 {
            Answer::Graph(graph) => Ok(graph),
            _ => Ok(Graph::default()),
        }
    }
}

#[allow(deprecated)] // Subscribing is how clients with a handshake do it, and the server is one of those.
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("memgrove", env!("CARGO_PKG_VERSION")).with_title("memgrove");
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe();
        ServerConfig::new(capabilities.build()).with_server_info(name)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let may_write = self.desk(&context).cx.may_write().is_ok();
        let listed = self.tools.iter().filter(|tool| may_write || server::reads(tool));
        Ok(ListToolsResult::with_all_items(listed.cloned().collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == request.name).cloned() else {
            return Ok(failed(&format!("MCP error -32602: Tool {} not found", request.name)).into());
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let mut issues = Vec::new();
        misfits(&Value::Object((*tool.input_schema).clone()), Some(&arguments), "", &mut issues);
        if !issues.is_empty() {
            let intro = "MCP error -32602: Input validation error: Invalid arguments for tool";
            return Ok(failed(&format!("{intro} {}: {}", tool.name, issues.join("\n"))).into());
        }
        let call = call(&tool.name, arguments).map_err(|error| ErrorData::invalid_params(error, None))?;
        let reads = call.reads();
        let desk = self.desk(&context);
        let name = tool.name.clone();
        let done = self.worker.run(move || desk.perform(&name, &call)).await?;
        match done {
            Ok((answer, damaged)) => {
                if !reads && self.subscribed.load(Ordering::SeqCst) {
                    // A client that is gone needs no telling.
                    let _ = context
                        .peer
                        .notify_resource_updated(ResourceUpdatedNotificationParam::new(GRAPH))
                        .await;
                }
                Ok(told(&answer, &damaged).into())
            }
            Err(error) => Ok(failed(error.message()).into()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let graph = Resource::new(GRAPH, "knowledge-graph")
            .with_title("Knowledge Graph")
            .with_description("The full knowledge graph with all entities and relations")
            .with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(vec![graph]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != GRAPH {
            let message = format!("MCP error -32602: Resource {} not found", request.uri);
            return Err(ErrorData::invalid_params(message, None));
        }
        let desk = self.desk(&context);
        let graph = self.worker.run(move || desk.graph()).await?;
        let graph = graph.map_err(|error| ErrorData::internal_error(error.message().to_owned(), None))?;
        let contents = ResourceContents::text(pretty(&graph), GRAPH).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri == GRAPH {
            self.subscribed.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri == GRAPH {
            self.subscribed.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(super::unknown(request))
    }
}

/// Turns a tool and its arguments into a call.
fn call(tool: &str, mut arguments: Value) -> Result<Call, String> {
    fn taken<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
    let mut argument = |name: &str| arguments[name].take();
    Ok(match tool {
        "create_entities" => Call::CreateEntities(taken::<Vec<Node>>(argument("entities"))?),
        "create_relations" => Call::CreateRelations(taken::<Vec<Edge>>(argument("relations"))?),
        "add_observations" => Call::AddObservations(taken::<Vec<Addition>>(argument("observations"))?),
        "delete_entities" => Call::DeleteEntities(taken(argument("entityNames"))?),
        "delete_observations" => Call::DeleteObservations(taken::<Vec<Deletion>>(argument("deletions"))?),
        "delete_relations" => Call::DeleteRelations(taken(argument("relations"))?),
        "read_graph" => Call::ReadGraph,
        "search_nodes" => Call::SearchNodes(taken(argument("query"))?),
        "open_nodes" => Call::OpenNodes(taken(argument("names"))?),
        other => return Err(format!("there is no tool {other}")),
    })
}

/// Collects what is wrong with a value, in the memory server's words.
fn misfits(schema: &Value, value: Option<&Value>, path: &str, issues: &mut Vec<String>) {
    let expected = schema["type"].as_str().unwrap_or_default();
    let received = match value {
        None => "undefined",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    };
    if expected != received {
        issues.push(format!("Invalid input: expected {expected}, received {received} at {path}"));
        return;
    }
    match value {
        Some(Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                misfits(&schema["items"], Some(item), &format!("{path}[{index}]"), issues);
            }
        }
        Some(Value::Object(object)) => {
            // In the order in which the memory server declares them.
            for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                misfits(&schema["properties"][key], object.get(key), &path, issues);
            }
        }
        _ => {}
    }
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("graphs are plain data")
}

fn told(answer: &Answer, damaged: &[usize]) -> CallToolResult {
    let (text, data) = match answer {
        Answer::Graph(graph) => (pretty(graph), json!(graph)),
        Answer::Entities(entities) => (pretty(entities), json!({ "entities": entities })),
        Answer::Relations(relations) => (pretty(relations), json!({ "relations": relations })),
        Answer::Results(results) => (pretty(results), json!({ "results": results })),
        Answer::Deleted(message) => (message.clone(), json!({ "success": true, "message": message })),
    };
    let mut content = vec![ContentBlock::text(text)];
    if !damaged.is_empty() {
        let lines: Vec<String> = damaged.iter().map(usize::to_string).collect();
        let (noun, is, it, was) =
            if lines.len() == 1 { ("line", "is", "it", "was") } else { ("lines", "are", "they", "were") };
        let report = format!(
            "{noun} {} of the memory file {is} damaged; {it} {was} left out of this answer and kept in the file",
            lines.join(", ")
        );
        crate::notice(&report);
        content.push(ContentBlock::text(report));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(data);
    result.is_error = None;
    result
}

fn failed(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message.to_owned())])
}
