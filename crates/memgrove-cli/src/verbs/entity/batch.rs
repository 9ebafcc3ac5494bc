//! Storing many entities at once, none of them with a field that would be lost.

use std::io;

use memgrove::Result;
use memgrove::shapes::entities::{Entity, Facts, How, Observation, Relation};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{StoredAnswer, check_related, check_said};
use crate::context::Context;
use crate::page::Page;
use crate::verbs::several::{Kin, Several};
use crate::verbs::{Effect, On, Verb};

/// Store many entities in one change
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityBatch {
    /// Objects with name, type, observations, tags and relations
    #[arg(skip)]
    entities: Vec<Value>,
    /// The same as --text
    #[arg(long = "entities", value_name = "JSON", conflicts_with_all = ["text", "from"])]
    #[serde(skip)]
    written: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    several: Several,
}

const ENTITIES: Kin =
    Kin { name: "entities", example: r#"{"name":"Ada","type":"person","observations":["likes tea"]}"# };

impl Verb for EntityBatch {
    const NAME: &'static str = "entity_batch";
    const TITLE: &'static str = "Store many entities";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = StoredAnswer;

    fn run(self, cx: &Context) -> Result<StoredAnswer> {
        let several = self.several.or_text(self.written);
        let entities = several.each(cx, &ENTITIES, self.entities, read)?;
        let note = cx.note(Self::NAME, &several.guard());
        Ok(StoredAnswer::new(cx.writing_knowledge()?.store(note, &entities, How::Merge)?))
    }

    fn show(answer: &StoredAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

fn read(value: Value) -> Result<Entity> {
    let given = serde_json::from_value::<NewEntity>(value).map_err(|error| ENTITIES.unfit(&error))?;
    let entity = Entity::from(given);
    entity.observations.iter().try_for_each(|observation| check_said(&observation.text))?;
    entity.relations.iter().try_for_each(check_related)?;
    Ok(entity)
}

/// An entity as it is given. The library leaves out what it does not know; here that is a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewEntity {
    name: String,
    #[serde(rename = "type", alias = "entityType", default)]
    kind: String,
    created: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    observations: Vec<Said>,
    #[serde(default)]
    relations: Vec<NewRelation>,
}

impl From<NewEntity> for Entity {
    fn from(given: NewEntity) -> Self {
        Entity {
            name: given.name,
            kind: given.kind,
            created: given.created,
            tags: given.tags,
            observations: given.observations.into_iter().map(|Said(observation)| observation).collect(),
            relations: given.relations.into_iter().map(Relation::from).collect(),
            ..Entity::default()
        }
    }
}

/// An observation: its text alone, or an object.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Said(Observation);

impl TryFrom<Value> for Said {
    type Error = serde_json::Error;

    fn try_from(given: Value) -> Result<Self, serde_json::Error> {
        match given {
            Value::String(text) => Ok(Said(Observation { text, facts: Facts::default() })),
            other => serde_json::from_value::<NewObservation>(other).map(|new| Said(new.into())),
        }
    }
}

/// An observation with its facts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an observation: a text, or an object with `text`")]
struct NewObservation {
    text: String,
    source: Option<String>,
    date: Option<String>,
    valid_from: Option<String>,
    valid_until: Option<String>,
    superseded_by: Option<String>,
}

impl From<NewObservation> for Observation {
    fn from(given: NewObservation) -> Self {
        let NewObservation { text, source, date, valid_from, valid_until, superseded_by } = given;
        Observation { text, facts: Facts { source, date, valid_from, valid_until, superseded_by } }
    }
}

/// A relation with its facts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a relation: an object with `type` and `to`")]
struct NewRelation {
    #[serde(rename = "type", alias = "relationType")]
    kind: String,
    to: String,
    source: Option<String>,
    date: Option<String>,
    valid_from: Option<String>,
    valid_until: Option<String>,
    superseded_by: Option<String>,
}

impl From<NewRelation> for Relation {
    fn from(given: NewRelation) -> Self {
        let NewRelation { kind, to, source, date, valid_from, valid_until, superseded_by } = given;
        Relation { kind, to, facts: Facts { source, date, valid_from, valid_until, superseded_by } }
    }
}
