//! The listing of the MCP memory server's tools, with what that server says of their execution. The
//! protocol's crate has no field for it, so it is added on the way out, on standard output and over HTTP.

use std::future::Future;

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{CustomResult, JsonRpcMessage, JsonRpcResponse, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};

/// A connection that adds the missing field to listings of tools.
pub(super) struct Listing<T>(pub(super) T);

impl<T: Transport<RoleServer>> Transport<RoleServer> for Listing<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.0.send(completed(message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.0.receive().await
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.0.close().await
    }
}

fn completed(message: TxJsonRpcMessage<RoleServer>) -> TxJsonRpcMessage<RoleServer> {
    let JsonRpcMessage::Response(JsonRpcResponse {
        jsonrpc,
        id,
        result: ServerResult::ListToolsResult(list),
    }) = message
    else {
        return message;
    };
    let mut list = serde_json::to_value(list).expect("a listing is plain data");
    complete(&mut list);
    let result = ServerResult::CustomResult(CustomResult::new(list));
    JsonRpcMessage::Response(JsonRpcResponse { jsonrpc, id, result })
}

/// Adds the missing field if the result is a listing of tools; returns whether it is.
fn complete(result: &mut Value) -> bool {
    let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) else { return false };
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        tool.insert("execution".to_owned(), json!({ "taskSupport": "forbidden" }));
    }
    true
}

/// A response over HTTP, JSON or an event stream, with the missing field added to listings of tools.
pub(crate) fn listed(body: Body) -> Body {
    Body::from_stream(body.into_data_stream().map(|piece| piece.map(listed_piece)))
}

/// One piece of a response: a message, or an event with one.
fn listed_piece(piece: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&piece) else { return piece };
    if !text.contains("\"tools\"") {
        return piece;
    }
    let line = |line: &str| {
        let (field, data) = match line.strip_prefix("data:") {
            Some(data) => ("data: ", data),
            None => ("", line),
        };
        let mut message: Value = serde_json::from_str(data).ok()?;
        complete(message.get_mut("result")?).then(|| format!("{field}{message}"))
    };
    let lines: Vec<String> =
        text.split('\n').map(|one| line(one).unwrap_or_else(|| one.to_owned())).collect();
    lines.join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_completed_and_nothing_else_is_touched() {
        let added =
            |piece: &str| String::from_utf8(listed_piece(piece.to_owned().into()).to_vec()).expect("text");
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}"#;
        let whole: Value = serde_json::from_str(&added(list)).expect("JSON");
        assert_eq!(whole["result"]["tools"][0]["execution"]["taskSupport"], "forbidden");
        let event = added(&format!("id: 3\ndata: {list}\n\n"));
        assert!(event.starts_with("id: 3\ndata: {") && event.ends_with("}\n\n"), "{event}");
        assert!(event.contains(r#""execution":{"taskSupport":"forbidden"}"#), "{event}");
        for other in ["data: \n\n", r#"{"result":{"text":"\"tools\""}}"#, "\"tools\" in no JSON"] {
            assert_eq!(added(other), other);
        }
    }
}
