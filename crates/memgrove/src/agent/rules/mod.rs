//! How the built-in agent decides: deterministic, offline and always available, by headings, lists, dates,
//! names and the words that set blocks apart.

mod groups;
mod lexicon;
mod migrate;
mod names;
mod place;
mod same;
mod split;
mod units;

pub use names::{slug, title_of};
pub use same::{may_replace, may_say};

use super::{
    Advice, Agent, Follow, FollowAsk, MigrateAsk, MigrationPlan, PlaceAsk, Placement, Prospect, SplitAsk,
    SplitPlan,
};
use crate::error::Result;
use crate::text::words;

/// The built-in agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules;

impl Agent for Rules {
    fn name(&self) -> &str {
        "rules"
    }

    fn place(&self, ask: &PlaceAsk) -> Result<Advice<Vec<Placement>>> {
        Ok(place::place(ask))
    }

    fn split(&self, ask: &SplitAsk) -> Result<Advice<SplitPlan>> {
        Ok(split::split(ask))
    }

    fn follow(&self, ask: &FollowAsk) -> Result<Advice<Follow>> {
        Ok(follow(ask))
    }

    fn migrate(&self, ask: &MigrateAsk) -> Result<Advice<MigrationPlan>> {
        Ok(migrate::migrate(ask))
    }
}

/// Describes what a text is about, for the link that leads to it.
pub fn describe(text: &str) -> String {
    let blocks = crate::text::blocks::blocks(text);
    let (lexicon, bags) = lexicon::Lexicon::of(blocks.into_iter().map(|block| &text[block.body]));
    lexicon.description(bags.iter(), "")
}

/// Whether a block says a fact in its own words.
pub fn says(block: &str, fact: &str) -> bool {
    same::says(block, &same::plain_words(fact))
}

/// Returns all that a block says, each in the form of [`saying`].
pub fn sayings(block: &str) -> impl Iterator<Item = String> {
    same::said(block).map(|words| words.join(" ")).filter(|said| !said.is_empty())
}

/// Returns the words of a fact in a form that is equal for two facts that say the same.
pub fn saying(fact: &str) -> String {
    same::plain_words(fact).join(" ")
}

/// Picks the blocks with words of the question, and rates links by how many of its words they mention.
fn follow(ask: &FollowAsk) -> Advice<Follow> {
    let asked = words::asked(&ask.query);
    let share = |text: &str| {
        let met = words::overlap(&asked, text) * 100 / asked.len().max(1);
        u8::try_from(met.min(100)).unwrap_or(100)
    };
    let blocks = ask.note.blocks.iter();
    let excerpts = blocks.filter(|block| share(&block.text) > 0).map(|block| block.number).collect();
    let promise = |text: &str, number| Prospect { link: number, percent: share(text) };
    let lines = ask.note.links.iter();
    let mut links: Vec<Prospect> =
        lines.map(|line| promise(&format!("{} {}", line.path, line.description), line.number)).collect();
    links.sort_by_key(|promise| (std::cmp::Reverse(promise.percent), promise.link));
    Advice::free(Follow { excerpts, links }, "by the words of the question")
}
