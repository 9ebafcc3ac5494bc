//! Whether an object with an id is written somewhere, however deep.

use serde_json::Value;

use super::lines;

/// Whether JSON, as a whole or in one of its lines, holds an object with this id.
pub fn holds_id(bytes: &[u8], id: &str) -> bool {
    let is_held = |bytes: &[u8]| serde_json::from_slice(bytes).is_ok_and(|value| is_within(&value, id));
    memchr::memmem::find(bytes, id.as_bytes()).is_some()
        && (lines(bytes).any(|line| is_held(&bytes[line.body])) || is_held(bytes))
}

fn is_within(value: &Value, id: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get("id").is_some_and(|given| given == id)
                || members.values().any(|value| is_within(value, id))
        }
        Value::Array(values) => values.iter().any(|value| is_within(value, id)),
        _ => false,
    }
}
