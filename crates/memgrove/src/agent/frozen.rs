//! How an agent's behaviour is tested without a network: with recorded answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Advice, Agent, Follow, FollowAsk, MigrateAsk, MigrationPlan, PlaceAsk, Placement, SplitAsk, SplitPlan,
};
use crate::error::{Error, Kind, Result};

/// What an agent was asked and what it answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Which question: `place`, `split`, `follow` or `migrate`.
    pub what: String,
    /// The question.
    pub ask: Value,
    /// The answer.
    pub answer: Value,
}

/// An agent that gives recorded answers, and refuses questions that were never recorded.
#[derive(Debug, Default)]
pub struct Frozen {
    answers: HashMap<String, Value>,
}

impl Frozen {
    /// An agent with recorded exchanges, one JSON object a line.
    ///
    /// # Errors
    /// `Corrupt` for a line that is no exchange.
    pub fn replay(lines: &str) -> Result<Self> {
        let mut answers = HashMap::new();
        for (line, number) in lines.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            let exchange: Exchange = serde_json::from_str(line).map_err(|error| {
                Error::new(Kind::Corrupt, format!("line {number} is no recorded exchange: {error}"))
            })?;
            answers.insert(key(&exchange.what, &exchange.ask), exchange.answer);
        }
        Ok(Frozen { answers })
    }

    fn answer<A: Serialize, T: DeserializeOwned>(&self, what: &str, ask: &A) -> Result<Advice<T>> {
        let asked = serde_json::to_value(ask).unwrap_or_default();
        let unknown = || Error::new(Kind::NotFound, format!("no answer is recorded for this `{what}`"));
        let answer = self.answers.get(&key(what, &asked)).ok_or_else(unknown)?;
        serde_json::from_value(answer.clone()).map_err(|error| {
            Error::new(Kind::Invalid, format!("the recorded answer to this `{what}` does not fit: {error}"))
        })
    }
}

fn key(what: &str, ask: &Value) -> String {
    format!("{what} {ask}")
}

impl Agent for Frozen {
    fn name(&self) -> &str {
        "frozen"
    }

    fn place(&self, ask: &PlaceAsk) -> Result<Advice<Vec<Placement>>> {
        self.answer("place", ask)
    }

    fn split(&self, ask: &SplitAsk) -> Result<Advice<SplitPlan>> {
        self.answer("split", ask)
    }

    fn follow(&self, ask: &FollowAsk) -> Result<Advice<Follow>> {
        self.answer("follow", ask)
    }

    fn migrate(&self, ask: &MigrateAsk) -> Result<Advice<MigrationPlan>> {
        self.answer("migrate", ask)
    }
}

/// Asks another agent, and records the exchange.
pub struct Recorder {
    agent: Arc<dyn Agent>,
    name: String,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Recorder {
    /// A recorder over an agent.
    pub fn new(agent: Arc<dyn Agent>) -> Self {
        let name = format!("{} (recorded)", agent.name());
        Recorder { agent, name, exchanges: Mutex::default() }
    }

    /// Returns the recorded exchanges, as [`Frozen::replay`] reads them.
    pub fn lines(&self) -> String {
        let exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |exchange: &Exchange| serde_json::to_string(exchange).unwrap_or_default() + "\n";
        exchanges.iter().map(line).collect()
    }

    fn keep<A: Serialize, T: Serialize>(
        &self,
        what: &str,
        ask: &A,
        answer: Result<Advice<T>>,
    ) -> Result<Advice<T>> {
        let answer = answer?;
        let value = |value: std::result::Result<Value, _>| value.unwrap_or_default();
        let exchange = Exchange {
            what: what.to_owned(),
            ask: value(serde_json::to_value(ask)),
            answer: value(serde_json::to_value(&answer)),
        };
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
        Ok(answer)
    }
}

impl Agent for Recorder {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self, ask: &PlaceAsk) -> Result<Advice<Vec<Placement>>> {
        self.keep("place", ask, self.agent.place(ask))
    }

    fn split(&self, ask: &SplitAsk) -> Result<Advice<SplitPlan>> {
        self.keep("split", ask, self.agent.split(ask))
    }

    fn follow(&self, ask: &FollowAsk) -> Result<Advice<Follow>> {
        self.keep("follow", ask, self.agent.follow(ask))
    }

    fn migrate(&self, ask: &MigrateAsk) -> Result<Advice<MigrationPlan>> {
        self.keep("migrate", ask, self.agent.migrate(ask))
    }
}
