//! Going from entity to entity along relations.

use std::io;

use memgrove::Result;
use memgrove::shapes::entities::{Direction, Walk, as_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::recall::unknown_entity;
use crate::context::Context;
use crate::page::{Ink, Page};
use crate::portion;
use crate::verbs::{Effect, On, Verb};

/// What an answer costs an agent at most, in tokens, unless it asks for more.
const WALK_TOKENS_MAX: usize = 600;

/// Follow relations from an entity to its neighbours
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityWalk {
    /// Entity to start from
    name: String,
    /// How many relations to follow
    #[arg(long, default_value_t = 1)]
    #[serde(default = "one")]
    depth: usize,
    /// Follow only relations of this type
    #[arg(long, value_name = "TYPE")]
    relation: Option<String>,
    /// out, in or both
    #[arg(long, default_value = "both")]
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    direction: Direction,
    /// What was true on this date
    #[arg(long, value_name = "DATE")]
    as_of: Option<String>,
    /// Token budget
    #[arg(long)]
    budget: Option<usize>,
}

fn one() -> usize {
    1
}

/// Relations that were followed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WalkAnswer {
    #[schemars(with = "Vec<serde_json::Value>")]
    steps: Vec<memgrove::shapes::entities::Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for EntityWalk {
    const NAME: &'static str = "entity_walk";
    const TITLE: &'static str = "Follow relations";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Entities];
    const TEXT_ONLY: bool = true;
    type Answer = WalkAnswer;

    fn run(self, cx: &Context) -> Result<WalkAnswer> {
        let budget = self.budget.unwrap_or(WALK_TOKENS_MAX);
        let as_of = self.as_of.as_deref().map(as_of).transpose()?;
        let EntityWalk { name: from, depth, relation: kind, direction, .. } = self;
        let knowledge = cx.reading_knowledge()?;
        let mut steps = knowledge.walk(&Walk { from: from.clone(), depth, kind, direction, as_of })?;
        if steps.is_empty() && knowledge.load(&from, None)?.is_none() {
            return Err(unknown_entity(&knowledge, &[from])?);
        }
        let (all, mut spent) = (steps.len(), 0);
        steps.retain(|step| {
            spent +=
                portion::tokens(&step.from) + portion::tokens(&step.kind) + portion::tokens(&step.to) + 4;
            spent <= budget
        });
        let left = all - steps.len();
        let left_out =
            (left > 0).then(|| format!("{left} more relations: raise the budget, or name a relation"));
        Ok(WalkAnswer { steps, left_out })
    }

    fn show(answer: &WalkAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for step in &answer.steps {
            let indent = "  ".repeat(step.depth.saturating_sub(1));
            let unknown = if step.known { "" } else { " (not known)" };
            page.line(&format!("{indent}{} -{}-> {}{unknown}", step.from, step.kind, step.to))?;
        }
        if answer.steps.is_empty() && answer.left_out.is_none() {
            page.ink(Ink::Dim, "no relations\n")?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}
