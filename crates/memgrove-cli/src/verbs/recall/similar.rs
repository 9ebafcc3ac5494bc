//! Finding memories by another one: `similar`.

use std::io;

use memgrove::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{RecallAnswer, TOKENS_MAX, for_memories, reach, tokens_max};
use crate::context::Context;
use crate::page::Page;
use crate::verbs::read::as_indexed;
use crate::verbs::{Effect, On, Verb};

/// Find memories like the one at an address
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Similar {
    /// As given by recall
    address: String,
    /// Token budget
    #[arg(long, default_value_t = TOKENS_MAX)]
    #[serde(default = "tokens_max")]
    budget: usize,
    /// Maximum number of memories
    #[arg(long, default_value_t = 10)]
    #[serde(default = "ten")]
    limit: usize,
    /// Also show weak matches
    #[arg(long)]
    #[serde(default)]
    #[schemars(skip)]
    all: bool,
    /// Explain each score (not counted in the budget)
    #[arg(long)]
    #[serde(default)]
    #[schemars(skip)]
    explain: bool,
}

fn ten() -> usize {
    10
}

impl Verb for Similar {
    const NAME: &'static str = "similar";
    const TITLE: &'static str = "Find similar memories";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    const SEARCHES: bool = true;
    type Answer = RecallAnswer;

    fn run(self, cx: &Context) -> Result<RecallAnswer> {
        let (index, spend) = (cx.index()?, for_memories(self.budget));
        let address = as_indexed(cx, &self.address)?;
        let recalled = index.recall_similar(&address, reach(self.all), spend, self.limit)?;
        let mut answer = RecallAnswer::new(cx, recalled, self.budget, self.limit, self.explain)?;
        if answer.hits.is_empty() && answer.receipt.left_out == 0 {
            answer.receipt.next = "no other memory is similar".to_owned();
        }
        Ok(answer)
    }

    fn show(answer: &RecallAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}
