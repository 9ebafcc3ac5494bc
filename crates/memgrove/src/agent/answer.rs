//! What a model answered, checked against what it is allowed to say.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{
    Advice, Follow, MigratedNote, MigrationPlan, Placement, Prospect, Spent, SplitPart, SplitPlan, Strategy,
};
use crate::error::{Error, Kind, Result};

/// The longest reason that is kept.
const REASON_CHARS_MAX: usize = 300;

#[derive(Deserialize)]
struct Placed {
    reason: String,
    placements: Vec<Placement>,
}

#[derive(Deserialize)]
struct Divided {
    reason: String,
    strategy: Strategy,
    parts: Vec<SplitPart>,
}

#[derive(Deserialize)]
struct Followed {
    reason: String,
    excerpts: Vec<usize>,
    links: Vec<Prospect>,
}

#[derive(Deserialize)]
struct Migrated {
    reason: String,
    notes: Vec<MigratedNote>,
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T> {
    // Some servers wrap JSON in a fence although they were told not to.
    let bare = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    serde_json::from_str(bare).map_err(|error| {
        Error::new(Kind::Invalid, format!("the model's answer does not fit the schema: {error}"))
    })
}

fn advice<T>(plan: T, reason: &str, spent: Spent) -> Advice<T> {
    let words: Vec<&str> = reason.split_whitespace().collect();
    let reason = words.join(" ").chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect();
    Advice { plan, reason, spent }
}

pub(super) fn place(text: &str, spent: Spent) -> Result<Advice<Vec<Placement>>> {
    let Placed { reason, placements } = parsed(text)?;
    Ok(advice(placements, &reason, spent))
}

pub(super) fn split(text: &str, spent: Spent) -> Result<Advice<SplitPlan>> {
    let Divided { reason, strategy, parts } = parsed(text)?;
    Ok(advice(SplitPlan { strategy, parts }, &reason, spent))
}

pub(super) fn follow(text: &str, spent: Spent) -> Result<Advice<Follow>> {
    let Followed { reason, excerpts, links } = parsed(text)?;
    Ok(advice(Follow { excerpts, links }, &reason, spent))
}

pub(super) fn migrate(text: &str, spent: Spent) -> Result<Advice<MigrationPlan>> {
    let Migrated { reason, notes } = parsed(text)?;
    Ok(advice(MigrationPlan { notes }, &reason, spent))
}
