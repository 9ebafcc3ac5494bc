//! The listing of the MCP memory server's tools with what that server says of their execution, for
//! which the protocol's crate has no word: it is added on the way out.

use std::future::Future;

use rmcp::RoleServer;
use rmcp::model::{CustomResult, JsonRpcMessage, JsonRpcResponse, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};

/// A connection whose listings of tools are complete.
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
    for tool in list["tools"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        tool.insert("execution".to_owned(), json!({ "taskSupport": "forbidden" }));
    }
    let result = ServerResult::CustomResult(CustomResult::new(list));
    JsonRpcMessage::Response(JsonRpcResponse { jsonrpc, id, result })
}
