//! Keeping what is known of entities.

use std::io;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::shapes::entities::{
    Entity, Facts, How, Learning, Observation, Pattern, Relation, Revision, RoleState,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Related, StoredAnswer, check_related, check_said};
use crate::context::{Context, Guard, Marks};
use crate::page::{Ink, Page};
use crate::verbs::{Effect, On, Verb};

/// Store facts about an entity, adding to what is known
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityStore {
    /// Its name
    name: String,
    /// Entity type, such as person
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type", default)]
    kind: Option<String>,
    /// One fact each
    #[arg(long = "observation", short = 'o', value_name = "TEXT", allow_hyphen_values = true)]
    #[serde(default)]
    observations: Vec<String>,
    /// Tags to find it by
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    #[serde(default)]
    tags: Vec<String>,
    /// Relations to others, such as works-at:Acme
    #[arg(long = "relation", value_name = "TYPE:TO")]
    #[serde(default)]
    relations: Vec<Related>,
    /// Source of the observations
    #[arg(long)]
    source: Option<String>,
    /// Date from which they are true
    #[arg(long, value_name = "DATE")]
    valid_from: Option<String>,
    /// Observation that the new one replaces
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    supersedes: Option<String>,
    /// Replace the entity instead of adding to it
    #[arg(long)]
    #[serde(default)]
    replace: bool,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for EntityStore {
    const NAME: &'static str = "entity_store";
    const TITLE: &'static str = "Store an entity";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Entities];
    const TEXT_ONLY: bool = true;
    type Answer = StoredAnswer;

    fn run(self, cx: &Context) -> Result<StoredAnswer> {
        let knowledge = cx.writing_knowledge()?;
        let dated = self.source.is_some() || self.valid_from.is_some();
        let date = dated.then(|| format!("{:.0}", knowledge.memory().clock().now()));
        let facts = Facts { source: self.source, date, valid_from: self.valid_from, ..Facts::default() };
        let said = |text| {
            let text = cx.fact(Some(text))?;
            check_said(&text)?;
            Ok(Observation { text, facts: facts.clone() })
        };
        let observations = self.observations.into_iter().map(said).collect::<Result<Vec<Observation>>>()?;
        let relations: Vec<Relation> = self.relations.into_iter().map(Into::into).collect();
        relations.iter().try_for_each(check_related)?;
        let note = cx.note(Self::NAME, &self.guard);
        let entity = Entity {
            // White space around a name would make another entity, which looks the same.
            name: self.name.trim().to_owned(),
            kind: self.kind.unwrap_or_default(),
            observations,
            tags: self.tags,
            relations,
            ..Entity::default()
        };
        let how = if self.replace { How::Replace } else { How::Merge };
        let expect = self.guard.expecting();
        let revision = Revision {
            entity: &entity,
            how,
            supersedes: self.supersedes.as_deref(),
            expect: expect.as_deref(),
        };
        Ok(StoredAnswer::new(knowledge.revise(note, &revision)?))
    }

    fn show(answer: &StoredAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Delete an entity (undo restores it)
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityDelete {
    /// Its name
    name: String,
    /// Its type, if the name is ambiguous
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

/// What was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeletedAnswer {
    deleted: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for EntityDelete {
    const NAME: &'static str = "entity_delete";
    const TITLE: &'static str = "Delete an entity";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = DeletedAnswer;

    fn run(self, cx: &Context) -> Result<DeletedAnswer> {
        let note = cx.note(Self::NAME, &self.guard);
        let expect = self.guard.expecting();
        let done =
            cx.changing_knowledge()?.delete(note, &self.name, self.kind.as_deref(), expect.as_deref())?;
        let folder = done.outcome.parent().unwrap_or_default();
        let change = done.change.map(|change| change.as_str().to_owned());
        let deleted = Scheme::Entity.address(format_args!("{}/{}", folder.name(), self.name));
        Ok(DeletedAnswer { deleted, change, replayed: done.replayed })
    }

    fn show(answer: &DeletedAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put("deleted ")?;
        page.ink(Ink::Strong, &answer.deleted)?;
        crate::verbs::show_facts(page, None, answer.change.as_deref(), answer.replayed)
    }
}

/// Record a lesson learned from a mistake
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityLearn {
    /// Kind of mistake
    error_type: String,
    /// The error itself
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    error: String,
    /// What was being done
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    context: String,
    /// What was learned
    #[arg(long, allow_hyphen_values = true)]
    lesson: String,
    /// How to prevent it
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    prevention: String,
    /// Who learned it
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    role: String,
    /// Kind of task
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    task_type: String,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    marks: Marks,
}

impl Verb for EntityLearn {
    const NAME: &'static str = "entity_learn";
    const TITLE: &'static str = "Record a lesson";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = StoredAnswer;

    fn run(self, cx: &Context) -> Result<StoredAnswer> {
        let EntityLearn { error_type, error, context, lesson, prevention, role, task_type, marks } = self;
        let learning = Learning { error_type, error, context, role, task_type, lesson, prevention };
        let note = cx.note(Self::NAME, &marks.into());
        Ok(StoredAnswer::new(cx.writing_knowledge()?.store_learning(note, &learning)?))
    }

    fn show(answer: &StoredAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Record the state of a role, replacing the previous one
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityRole {
    /// The role
    role: String,
    /// Its process score
    #[arg(long, default_value_t, allow_hyphen_values = true)]
    #[serde(default)]
    p: i64,
    /// Its quality score
    #[arg(long, default_value_t, allow_hyphen_values = true)]
    #[serde(default)]
    q: i64,
    /// What it is working on
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    active_context: String,
    /// Number of tasks done
    #[arg(long, default_value_t)]
    #[serde(default)]
    tasks: usize,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    marks: Marks,
}

impl Verb for EntityRole {
    const NAME: &'static str = "entity_role";
    const TITLE: &'static str = "Record a role's state";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = StoredAnswer;

    fn run(self, cx: &Context) -> Result<StoredAnswer> {
        let EntityRole { role, p, q, active_context, tasks, marks } = self;
        let note = cx.note(Self::NAME, &marks.into());
        let state = RoleState { role, p, q, active_context, tasks };
        Ok(StoredAnswer::new(cx.writing_knowledge()?.store_role_state(note, &state)?))
    }

    fn show(answer: &StoredAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Record a pattern that works
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct EntityPattern {
    /// Kind of pattern
    #[serde(rename = "type")]
    kind: String,
    /// Its name
    name: String,
    /// What it is
    #[arg(long, allow_hyphen_values = true)]
    description: String,
    /// Where it applies
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    context: String,
    /// What it achieves
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    outcome: String,
    /// What to do
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    instructions: String,
    /// Its category
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    category: String,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    marks: Marks,
}

impl Verb for EntityPattern {
    const NAME: &'static str = "entity_pattern";
    const TITLE: &'static str = "Record a pattern";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::All];
    const TEXT_ONLY: bool = true;
    type Answer = StoredAnswer;

    fn run(self, cx: &Context) -> Result<StoredAnswer> {
        let EntityPattern { kind, name, description, context, outcome, instructions, category, marks } = self;
        let pattern = Pattern { kind, name, description, context, outcome, instructions, category };
        let note = cx.note(Self::NAME, &marks.into());
        Ok(StoredAnswer::new(cx.writing_knowledge()?.store_pattern(note, &pattern)?))
    }

    fn show(answer: &StoredAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}
