//! `memgrove demo`: a minute with a store of its own.

use std::io;

use memgrove::Result;
use memgrove::backend::{Actor, Origin};

use crate::cli;
use crate::context::{Context, Input, random_id};
use crate::page::{Ink, Page, quoted};

/// Show what memgrove does, in one minute and a temporary store
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {}

/// Who takes a step.
#[derive(Debug, Clone, Copy)]
enum Who {
    Person,
    Agent,
}

struct Step {
    told: &'static str,
    who: Who,
    words: &'static [&'static str],
}

const fn step(told: &'static str, who: Who, words: &'static [&'static str]) -> Step {
    Step { told, who, words }
}

const STEPS: &[Step] = &[
    step("A store is a folder of plain files.", Who::Person, &["init"]),
    step(
        "An agent keeps what it learns: a fact,",
        Who::Agent,
        &["remember", "The user deploys on Tuesdays, never before a weekend"],
    ),
    step("", Who::Agent, &["remember", "The clock test failed on CI only: it read the real time zone"]),
    step(
        "a page,",
        Who::Agent,
        &[
            "file",
            "create",
            "/memories/projects/silica.md",
            "--text",
            "# Silica\nA static site generator.\n\n## Decisions\n- Rust, one binary\n- built from `main`\n\n## Open\n- dark mode\n",
        ],
    ),
    step(
        "someone you work with.",
        Who::Agent,
        &[
            "entity",
            "store",
            "Alice",
            "--type",
            "person",
            "-o",
            "reviews every release",
            "--relation",
            "leads:Silica",
        ],
    ),
    step(
        "In the next conversation it asks in its own words.",
        Who::Agent,
        &["recall", "when does the user deploy?", "--budget", "120"],
    ),
    step("It reads what it needs.", Who::Agent, &["file", "view", "/memories/projects/silica.md"]),
    step(
        "It corrects one line, and says why.",
        Who::Agent,
        &[
            "file",
            "replace",
            "/memories/projects/silica.md",
            "--old",
            "- built from `main`",
            "--new",
            "- built from `release`, tagged",
            "--reason",
            "the user changed the workflow",
        ],
    ),
    step("You see what it changed.", Who::Person, &["diff", "file:/memories/projects/silica.md"]),
    step(
        "One day it deletes something you need.",
        Who::Agent,
        &["file", "delete", "/memories/projects/silica.md", "--reason", "seemed outdated"],
    ),
    step("Nothing is ever lost.", Who::Person, &["history", "--limit", "3"]),
    step("You preview an undo, then do it.", Who::Person, &["undo", "--dry-run"]),
    step("", Who::Person, &["undo"]),
    step("", Who::Person, &["read", "file:/memories/projects/silica.md"]),
    step("The files are yours, and the store checks itself.", Who::Person, &["doctor"]),
];

impl Demo {
    /// Takes the steps, showing each.
    pub(crate) fn run(self, cx: &Context, page: &mut Page<'_>) -> Result<()> {
        let id = random_id();
        let name = format!("memgrove-demo-{}", id.get(..8).unwrap_or(&id));
        let store = cx.environment().temporary.join(name);
        let cx =
            Context::new(cx.environment().clone(), Some(&store), None, cx.actor.clone(), Input::Terminal)?;
        for step in STEPS {
            let actor = match step.who {
                Who::Person => Actor { origin: Origin::User, client: Some("you".into()), session: None },
                Who::Agent => Actor {
                    origin: Origin::Agent,
                    client: Some("assistant".into()),
                    session: Some("demo".into()),
                },
            };
            let reply = cli::speak(step.words, &cx.asked_by(actor))?;
            if let Err(error) = shown(page, step, reply.as_ref()) {
                return cli::written(Err(error));
            }
        }
        let end = format!(
            "\nThe store is {}\nLook around with any file manager, then delete it.\n",
            store.display()
        );
        cli::written(page.put(&end))
    }
}

fn shown(page: &mut Page<'_>, step: &Step, reply: &dyn crate::verbs::Reply) -> io::Result<()> {
    if !step.told.is_empty() {
        page.ink(Ink::Warning, &format!("\n# {}\n", step.told))?;
    }
    let words: Vec<String> = step.words.iter().map(|word| quoted(word)).collect();
    page.ink(Ink::Strong, &format!("$ memgrove {}\n", words.join(" ")))?;
    reply.show(page)
}
