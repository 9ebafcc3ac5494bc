//! Any server that speaks OpenAI's chat completions: OpenAI itself, Ollama, vLLM and others.

use serde_json::{Value, json};

use super::Spent;
use super::http::{Heard, Wire};
use super::model::{Dialect, unfinished};
pub use super::model::{Model, Settings};
use super::prompt::Question;
use crate::error::Result;

const ENDPOINT: &str = "https://api.openai.com/v1";

/// Makes an agent that asks a model behind such a server. The endpoint ends in `/v1`.
///
/// # Errors
/// `Invalid` for an endpoint that a key must not be sent to; `Io` without certificates.
pub fn agent(settings: Settings) -> Result<Model> {
    let base = settings.endpoint.as_deref().unwrap_or(ENDPOINT).trim_end_matches('/').to_owned();
    let headers = settings.key.iter().map(|key| ("authorization", format!("Bearer {key}"))).collect();
    let wire = Wire::new(format!("{base}/chat/completions"), headers, settings.patience)?;
    Ok(Model::new(Box::new(Completions), wire, settings))
}

struct Completions;

impl Dialect for Completions {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn request(&self, settings: &Settings, question: &Question) -> Value {
        let mut request = json!({
            "model": settings.model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.user},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": true, "schema": question.schema},
            },
            "stream": settings.stream,
        });
        if settings.stream {
            request["stream_options"] = json!({"include_usage": true});
        }
        request
    }

    fn said(&self, heard: Heard, spent: &mut Spent) -> Result<String> {
        let (parts, member) = match heard {
            Heard::Whole(value) => (vec![value], "message"),
            Heard::Events(events) => (events, "delta"),
        };
        let (mut text, mut stop) = (String::new(), String::new());
        for part in &parts {
            if let Some(message) = part["error"]["message"].as_str() {
                return Err(unfinished(message));
            }
            let choice = &part["choices"][0];
            if let Some(refusal) = choice[member]["refusal"].as_str() {
                return Err(unfinished(refusal));
            }
            text.push_str(choice[member]["content"].as_str().unwrap_or(""));
            stop = choice["finish_reason"].as_str().unwrap_or(&stop).to_owned();
            spent.input_tokens += part["usage"]["prompt_tokens"].as_u64().unwrap_or(0);
            spent.output_tokens += part["usage"]["completion_tokens"].as_u64().unwrap_or(0);
        }
        match stop.as_str() {
            "stop" => Ok(text),
            "" => Err(unfinished("it stops in the middle")),
            stop => Err(unfinished(stop)),
        }
    }
}
