//! Who tends the notes: the rules, or a model that the environment names. Nothing in a store, and no
//! memory, can choose a model, an endpoint or a key.

use std::sync::Arc;
use std::time::Duration;

use memgrove::agent::anthropic::{self, Settings};
use memgrove::agent::rules::Rules;
use memgrove::agent::{Agent, Patience, Price, openai};
use memgrove::{Error, Kind, Result};

use crate::config::AgentVariables;

/// The agent that the environment asks for.
///
/// # Errors
/// `Invalid` for a name that is none, or a variable that does not fit.
pub(crate) fn chosen(variables: &AgentVariables) -> Result<Arc<dyn Agent>> {
    let name = variables.name.as_deref().unwrap_or("rules");
    let made: fn(Settings) -> Result<anthropic::Model> = match name {
        "rules" => return Ok(Arc::new(Rules)),
        "anthropic" => anthropic::agent,
        "openai" => openai::agent,
        other => {
            let message = format!("`{}` is not an agent", other.escape_debug());
            return Err(
                Error::new(Kind::Invalid, message).hint("set MEMGROVE_AGENT to rules, anthropic or openai")
            );
        }
    };
    Ok(Arc::new(made(settings(variables, name)?)?))
}

fn settings(variables: &AgentVariables, name: &str) -> Result<Settings> {
    let Some(model) = variables.model.clone() else {
        return Err(Error::new(
            Kind::Invalid,
            format!("the agent `{name}` needs to know which model to ask"),
        )
        .hint("set MEMGROVE_AGENT_MODEL to its name"));
    };
    let mut patience = Patience::default();
    if let Some(text) = &variables.timeout {
        patience.timeout =
            Duration::from_secs_f64(number(text, "MEMGROVE_AGENT_TIMEOUT", "seconds, such as 30")?);
    }
    let price = variables.price.as_deref().map(price).transpose()?;
    Ok(Settings {
        endpoint: variables.endpoint.clone(),
        model,
        key: variables.key(name),
        patience,
        price,
        stream: variables.stream,
    })
}

fn price(text: &str) -> Result<Price> {
    let fit = "dollars for a million tokens in and out, such as 3,15";
    let (input, output) = text.split_once(',').unwrap_or((text, ""));
    let part = |text: &str| number(text, "MEMGROVE_AGENT_PRICE", fit);
    Ok(Price { input: part(input)?, output: part(output)? })
}

fn number(text: &str, variable: &str, fit: &str) -> Result<f64> {
    let number =
        text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && (0.0..1e6).contains(number));
    number.ok_or_else(|| Error::new(Kind::Invalid, format!("{variable} is not {fit}")))
}
