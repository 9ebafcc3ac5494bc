//! How an agent asks a model, whichever protocol its server speaks.

use serde_json::Value;

use super::http::{Heard, Patience, Price, Wire};
use super::prompt::{self, Question};
use super::{
    Advice, Agent, Follow, FollowAsk, MigrateAsk, MigrationPlan, PlaceAsk, Placement, Spent, SplitAsk,
    SplitPlan, answer,
};
use crate::error::{Error, Kind, Result};

/// How a model is reached. Comes from the user's configuration, never from a memory.
#[derive(Clone, Default)]
pub struct Settings {
    /// The server, unless it is the usual one.
    pub endpoint: Option<String>,
    /// The model's name.
    pub model: String,
    /// The key; some servers need none.
    pub key: Option<String>,
    /// How long to wait, and how often to try.
    pub patience: Patience,
    /// What tokens cost, so that costs can be told in dollars.
    pub price: Option<Price>,
    /// Whether answers come as a stream.
    pub stream: bool,
}

/// The protocol of a server: its requests and its answers.
pub(super) trait Dialect: Send + Sync {
    /// What the agent is called.
    fn name(&self) -> &'static str;
    /// The request for a question.
    fn request(&self, settings: &Settings, question: &Question) -> Value;
    /// Returns the text of an answer, and adds what it cost.
    fn said(&self, heard: Heard, spent: &mut Spent) -> Result<String>;
}

/// An agent that asks a model.
pub struct Model {
    dialect: Box<dyn Dialect>,
    wire: Wire,
    settings: Settings,
}

impl Model {
    pub(super) fn new(dialect: Box<dyn Dialect>, wire: Wire, settings: Settings) -> Self {
        Model { dialect, wire, settings }
    }

    fn ask<T>(&self, question: &Question, read: fn(&str, Spent) -> Result<Advice<T>>) -> Result<Advice<T>> {
        let mut spent = Spent::default();
        let heard = self.wire.post(&self.dialect.request(&self.settings, question), &mut spent)?;
        let said = self.dialect.said(heard, &mut spent)?;
        spent.usd = self.settings.price.map(|price| price.of(&spent));
        read(&said, spent)
    }
}

impl Agent for Model {
    fn name(&self) -> &str {
        self.dialect.name()
    }

    fn place(&self, ask: &PlaceAsk) -> Result<Advice<Vec<Placement>>> {
        self.ask(&prompt::place(ask), answer::place)
    }

    fn split(&self, ask: &SplitAsk) -> Result<Advice<SplitPlan>> {
        self.ask(&prompt::split(ask), answer::split)
    }

    fn follow(&self, ask: &FollowAsk) -> Result<Advice<Follow>> {
        self.ask(&prompt::follow(ask), answer::follow)
    }

    fn migrate(&self, ask: &MigrateAsk) -> Result<Advice<MigrationPlan>> {
        self.ask(&prompt::migrate(ask), answer::migrate)
    }
}

/// Returns the error for an answer that ends too early.
pub(super) fn unfinished(why: &str) -> Error {
    Error::new(Kind::Invalid, format!("the model's answer is not whole: {why}"))
}
