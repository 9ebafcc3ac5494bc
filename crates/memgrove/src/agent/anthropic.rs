//! Anthropic's Messages API, with structured output.

use serde_json::{Value, json};

use super::Spent;
use super::http::{Heard, Wire};
use super::model::{Dialect, unfinished};
pub use super::model::{Model, Settings};
use super::prompt::Question;
use crate::error::Result;

const ENDPOINT: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
const TOKENS_MAX: u32 = 8_192;

/// An agent that asks a model of Anthropic's.
///
/// # Errors
/// `Invalid` for an endpoint that a key must not be sent to; `Io` without certificates.
pub fn agent(settings: Settings) -> Result<Model> {
    let base = settings.endpoint.as_deref().unwrap_or(ENDPOINT).trim_end_matches('/').to_owned();
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    headers.extend(settings.key.clone().map(|key| ("x-api-key", key)));
    let wire = Wire::new(format!("{base}/v1/messages"), headers, settings.patience)?;
    Ok(Model::new(Box::new(Messages), wire, settings))
}

struct Messages;

impl Dialect for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn request(&self, settings: &Settings, question: &Question) -> Value {
        json!({
            "model": settings.model,
            "max_tokens": TOKENS_MAX,
            "system": question.system,
            "messages": [{"role": "user", "content": question.user}],
            "output_config": {"format": {"type": "json_schema", "schema": question.schema}},
            "stream": settings.stream,
        })
    }

    fn said(&self, heard: Heard, spent: &mut Spent) -> Result<String> {
        let (text, stop) = match heard {
            Heard::Whole(message) => {
                count(&message["usage"], spent);
                let blocks = message["content"].as_array().cloned().unwrap_or_default();
                let text = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                (text, message["stop_reason"].as_str().unwrap_or("").to_owned())
            }
            Heard::Events(events) => streamed(&events, spent)?,
        };
        match (text, stop.as_str()) {
            (text, "end_turn" | "stop_sequence") => Ok(text),
            (_, "") => Err(unfinished("it stops in the middle")),
            (_, stop) => Err(unfinished(stop)),
        }
    }
}

fn streamed(events: &[Value], spent: &mut Spent) -> Result<(String, String)> {
    let (mut text, mut stop) = (String::new(), String::new());
    for event in events {
        match event["type"].as_str() {
            Some("message_start") => count(&event["message"]["usage"], spent),
            Some("content_block_delta") => text.push_str(event["delta"]["text"].as_str().unwrap_or("")),
            Some("message_delta") => {
                spent.output_tokens = event["usage"]["output_tokens"].as_u64().unwrap_or(spent.output_tokens);
                stop = event["delta"]["stop_reason"].as_str().unwrap_or(&stop).to_owned();
            }
            Some("error") => {
                return Err(unfinished(event["error"]["message"].as_str().unwrap_or("an error")));
            }
            _ => {}
        }
    }
    Ok((text, stop))
}

fn count(usage: &Value, spent: &mut Spent) {
    let tokens = |name: &str| usage[name].as_u64().unwrap_or(0);
    spent.input_tokens +=
        tokens("input_tokens") + tokens("cache_creation_input_tokens") + tokens("cache_read_input_tokens");
    spent.output_tokens += tokens("output_tokens");
}
