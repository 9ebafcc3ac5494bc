//! Measuring how well memories are found, on questions whose answers are known.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memgrove::backends::Ram;
use memgrove::clock::SystemClock;
use memgrove::index::{self, Found, Options, Place, Source};
use memgrove::{Error, Index, Kind, Locator, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::context::Context;
use crate::page::{Page, counted};

/// How many documents are ranked for a query.
const RANKED: usize = 50;

fn ranked() -> usize {
    RANKED
}

/// Measure retrieval on a task: ranked ids for every query
///
/// The task's folder has docs.jsonl (id, store, text, title, date, speaker, session, order) and
/// queries.jsonl (id, store, text). Each session becomes a file, each document a section in it.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Retrieval {
    /// The task's folder
    #[arg(long, value_name = "DIR")]
    task: PathBuf,
    /// Where to write the ranked ids, one query per line
    #[arg(long, value_name = "RUN.jsonl")]
    out: PathBuf,
    /// How many documents to rank
    #[arg(long, default_value_t = RANKED)]
    #[serde(default = "ranked")]
    limit: usize,
    /// Rank by keywords alone
    #[arg(long)]
    #[serde(default)]
    no_embeddings: bool,
}

/// What was measured.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RetrievalAnswer {
    stores: usize,
    documents: usize,
    queries: usize,
}

#[derive(Deserialize)]
struct Doc {
    id: String,
    store: String,
    text: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    date: String,
    #[serde(default)]
    speaker: String,
    #[serde(default)]
    session: String,
    #[serde(default)]
    order: i64,
}

#[derive(Deserialize)]
struct Question {
    id: String,
    store: String,
    text: String,
}

#[derive(Serialize)]
struct Run<'a> {
    qid: &'a str,
    ranked: Vec<&'a str>,
}

impl Verb for Retrieval {
    const NAME: &'static str = "eval_retrieval";
    const TITLE: &'static str = "Measure retrieval";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli];
    type Answer = RetrievalAnswer;

    fn run(self, cx: &Context) -> Result<RetrievalAnswer> {
        let [task, out] = [&self.task, &self.out].map(|path| cx.environment().absolute(path));
        let (task, out) = (task?, out?);
        let docs: Vec<Doc> = lines(&task.join("docs.jsonl"))?;
        let queries: Vec<Question> = lines(&task.join("queries.jsonl"))?;
        let (documents, asked) = (docs.len(), queries.len());
        let mut stores: BTreeMap<String, Vec<Doc>> = BTreeMap::new();
        for doc in docs {
            stores.entry(doc.store.clone()).or_default().push(doc);
        }
        let mut written = Vec::new();
        for (name, docs) in &stores {
            let (index, ids) = built(docs, self.no_embeddings)?;
            for query in queries.iter().filter(|query| query.store == *name) {
                // What cannot be understood as a query finds nothing; the others are still measured.
                let found = match index.search(&query.text, self.limit) {
                    Err(error) if error.kind() == Kind::Invalid => {
                        crate::notice(&format!("query {}: {error}", query.id));
                        Found::default()
                    }
                    found => found?,
                };
                let mut ranked: Vec<&str> = Vec::new();
                for hit in found.hits.iter().flat_map(|hit| std::iter::once(&hit.address).chain(&hit.alike)) {
                    let id = ids.get(hit).map(String::as_str);
                    ranked.extend(id.filter(|id| !ranked.contains(id)));
                }
                ranked.truncate(self.limit);
                let line = serde_json::to_string(&Run { qid: &query.id, ranked });
                written.extend(line.expect("a run is plain data").into_bytes());
                written.push(b'\n');
            }
        }
        let failed = |error| Error::from_io(error, out.display());
        // A report that the user names, outside of every store.
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).open(&out).map_err(failed)?;
        file.write_all(&written).map_err(failed)?;
        Ok(RetrievalAnswer { stores: stores.len(), documents, queries: asked })
    }

    fn show(answer: &RetrievalAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let RetrievalAnswer { stores, documents, queries } = answer;
        let queries = counted(*queries, "query", "queries");
        let documents = counted(*documents, "document", "documents");
        let stores = counted(*stores, "store", "stores");
        page.line(&format!("{queries} ranked over {documents} in {stores}"))
    }
}

/// A store of these documents with its index, and which address is which document.
fn built(docs: &[Doc], no_embeddings: bool) -> Result<(Index, HashMap<String, String>)> {
    let store = Store::new(Ram::default());
    let mut sessions: BTreeMap<&str, Vec<&Doc>> = BTreeMap::new();
    for doc in docs {
        sessions.entry(&doc.session).or_default().push(doc);
    }
    let mut ids = HashMap::new();
    for (number, (_, mut docs)) in sessions.into_iter().enumerate() {
        docs.sort_by_key(|doc| doc.order);
        let at = Locator::new(format!("files/session-{number}.md"))?;
        let first = docs[0];
        let mut text = format!("---\ntitle: {}\ndate: {}\n---\n", plain(&first.title), plain(&first.date));
        let mut starts = Vec::new();
        for doc in docs {
            let speaker = if doc.speaker.is_empty() { String::new() } else { format!("{}: ", doc.speaker) };
            starts.push((text.len(), &doc.id));
            text.push_str(&format!("## turn\n\n{speaker}{}\n\n", plain(&doc.text)));
        }
        for document in index::documents(at.key(), text.as_bytes()) {
            let turn = starts.iter().rev().find(|(start, _)| *start <= document.span.start);
            ids.extend(turn.map(|(_, id)| (document.address.clone(), (*id).clone())));
        }
        store.write(&at, &text)?;
    }
    let mut options = Options::default();
    if no_embeddings {
        options.embedder = None;
    }
    let sources = vec![Source { under: String::new(), store }];
    Ok((Index::new(Place::Ram, sources, Arc::new(SystemClock), options)?, ids))
}

/// A text on one line, so that it stays one section.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let failed = |error| Error::from_io(error, path.display());
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut found = Vec::new();
    for (line, number) in io::BufReader::new(file).lines().zip(1..) {
        let line = line.map_err(failed)?;
        if line.trim().is_empty() {
            continue;
        }
        found.push(serde_json::from_str(&line).map_err(|error| {
            let what = format!("line {number} of `{}` is invalid: {error}", path.display());
            Error::new(Kind::Invalid, what)
        })?);
    }
    Ok(found)
}
