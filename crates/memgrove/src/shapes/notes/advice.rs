//! How an agent is asked without being trusted: an answer that is late, malformed or would lose something
//! is refused, with the reason, and the built-in rules decide.

use super::decisions::Refusal;
use crate::agent::rules::Rules;
use crate::agent::{Advice, Agent};
use crate::error::Result;

/// How often a model is asked for one change. If others keep writing faster than it answers, the rules
/// decide, so that nobody waits forever.
const MODEL_ATTEMPTS_MAX: u32 = 2;

/// An agent, with the rules as its fallback.
pub(super) struct Advisor<'a> {
    agent: &'a dyn Agent,
    attempt: u32,
}

/// A decision that was checked.
pub(super) struct Decided<T> {
    pub(super) advice: Advice<T>,
    pub(super) agent: String,
    pub(super) refused: Option<Refusal>,
}

impl<'a> Advisor<'a> {
    /// Makes an advisor for one attempt at a change.
    pub(super) fn new(agent: &'a dyn Agent, attempt: u32) -> Self {
        Advisor { agent, attempt }
    }

    /// Asks the agent and checks its answer; if the answer is refused, asks the rules.
    ///
    /// # Errors
    /// What the check says of the rules' own answer.
    pub(super) fn ask<T>(
        &self,
        ask: impl Fn(&dyn Agent) -> Result<Advice<T>>,
        check: impl Fn(&T) -> Result<()>,
    ) -> Result<Decided<T>> {
        let rules = Rules;
        let checked = |agent: &dyn Agent| {
            let advice = ask(agent)?;
            check(&advice.plan)?;
            Ok(advice)
        };
        let mut refused = None;
        if self.agent.name() != rules.name() && self.attempt < MODEL_ATTEMPTS_MAX {
            match checked(self.agent) {
                Ok(advice) => {
                    return Ok(Decided { advice, agent: self.agent.name().to_owned(), refused });
                }
                Err(error) => {
                    let error: crate::error::Error = error;
                    let reason = error.message().to_owned();
                    refused = Some(Refusal { agent: self.agent.name().to_owned(), reason });
                }
            }
        }
        Ok(Decided { advice: checked(&rules)?, agent: rules.name().to_owned(), refused })
    }
}
