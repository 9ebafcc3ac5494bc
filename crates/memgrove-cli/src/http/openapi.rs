//! The description of the API (OpenAPI 3.1), made from the same tables that answer it.

use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use memgrove::{Kind, Result};
use serde_json::{Map, Value, json};

use super::api;
use super::route::Call;
use crate::status::STATUS;
use crate::verbs::{Effect, Entry};

/// Answers with the description.
pub(crate) async fn described(call: Call) -> Result<Response> {
    let base = crate::web::base(&call);
    let text = document(&base).to_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// The description, for a client that finds the API there.
pub(crate) fn document(base: &str) -> Value {
    let mut paths = Map::new();
    for entry in api::offered() {
        let mut methods = Map::from_iter([("post".to_owned(), posted(entry))]);
        if entry.effect == Effect::Read {
            methods.insert("get".to_owned(), asked(entry));
        }
        paths.insert(format!("/api/{}", entry.name), Value::Object(methods));
    }
    paths.insert("/api/content".to_owned(), content());
    paths.insert("/api/events".to_owned(), events());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "memgrove",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "File-based memory for AI agents. Every verb of the command line, as JSON."
        },
        "servers": [{"url": if base.is_empty() { "/" } else { base }}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": problem()}
        }
    })
}

fn posted(entry: &Entry) -> Value {
    let (input, words) = described_input(entry);
    let takes = |name: &str| input["properties"].get(name).is_some();
    let guards = [
        ("expect", "If-Match", "Only if the memory is at this version"),
        ("key", "Idempotency-Key", "A change whose key was used before is not made again"),
    ];
    let parameters: Vec<Value> = guards
        .iter()
        .filter(|(argument, ..)| takes(argument))
        .map(|(_, name, words)| {
            json!({"name": name, "in": "header", "description": words, "schema": {"type": "string"}})
        })
        .collect();
    json!({
        "operationId": entry.name,
        "summary": entry.title,
        "description": words,
        "parameters": parameters,
        "requestBody": {"required": true, "content": {"application/json": {"schema": input}}},
        "responses": responses(entry)
    })
}

fn asked(entry: &Entry) -> Value {
    let (input, words) = described_input(entry);
    let required = |name: &str| {
        let names = input["required"].as_array();
        names.is_some_and(|names| names.iter().any(|given| given == name))
    };
    let properties = input["properties"].as_object().cloned().unwrap_or_default();
    let parameters: Vec<Value> = properties
        .iter()
        .filter(|(name, _)| !entry.changes_by.contains(&name.as_str()))
        .map(|(name, schema)| json!({"name": name, "in": "query", "required": required(name), "schema": schema}))
        .collect();
    json!({
        "operationId": format!("get_{}", entry.name),
        "summary": entry.title,
        "description": words,
        "parameters": parameters,
        "responses": responses(entry)
    })
}

/// What a verb takes, and what it says of itself.
fn described_input(entry: &Entry) -> (Value, String) {
    let mut input = api::input(entry).clone();
    let mut words = String::new();
    if let Some(schema) = input.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
        if let Some(Value::String(text)) = schema.remove("description") {
            words = text;
        }
    }
    (input, words)
}

fn responses(entry: &Entry) -> Value {
    let mut output = (entry.output)().to_value();
    if let Some(schema) = output.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
    }
    json!({
        "200": {
            "description": "Done",
            "headers": {"ETag": {"description": "The version of the memory", "schema": {"type": "string"}}},
            "content": {"application/json": {"schema": output}}
        },
        "default": refused()
    })
}

fn refused() -> Value {
    let kinds: Vec<String> = STATUS
        .iter()
        .map(|status| format!("{} {}: {}", status.http, status.kind.name(), status.advice))
        .collect();
    json!({
        "description": kinds.join("; "),
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    })
}

fn problem() -> Value {
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "kind"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "kind": {"type": "string", "enum": kinds},
            "code": {"type": "string"},
            "hint": {"type": "string"}
        }
    })
}

/// The bytes of a file, as they are.
fn content() -> Value {
    let address = json!({"name": "address", "in": "query", "required": true, "schema": {"type": "string"},
        "description": "Such as file:/memories/notes.md"});
    let bytes = json!({"*/*": {"schema": {"type": "string", "format": "binary"}}});
    let of = |method: Method, words: &str| {
        json!({"operationId": format!("{}_content", method.as_str().to_lowercase()),
            "summary": words, "parameters": [address]})
    };
    let mut get = of(Method::GET, "Stream the bytes of a memory, whole or a range of them");
    get["responses"] = json!({"200": {"description": "All bytes", "content": bytes},
        "206": {"description": "The requested range"}, "default": refused()});
    let mut put =
        of(Method::PUT, "Write these bytes to a file; If-None-Match: * or If-Match guards what is there");
    put["requestBody"] = json!({"required": true, "content": bytes});
    put["responses"] = json!({"200": {"description": "Done"}, "default": refused()});
    json!({"get": get, "put": put})
}

/// Changes as they happen.
fn events() -> Value {
    json!({"get": {
        "operationId": "events",
        "summary": "Server-sent events: `listening`, then `change` for every change, `missed` when some could not be sent",
        "parameters": [{"name": "since", "in": "query", "schema": {"type": "string"},
            "description": "The last known change, as `Last-Event-ID`"}],
        "responses": {"200": {"description": "Events", "content": {"text/event-stream": {}}}, "default": refused()}
    }})
}
