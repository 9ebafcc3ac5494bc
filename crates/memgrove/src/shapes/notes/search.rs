//! How notes are searched: from note to note along links, the most promising first, with excerpts taken on
//! the way. No note is visited twice, so cycles are harmless.

use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::known::Known;
use super::lead::{Lead, Rank};
use super::page::{Page, Piece, Role};
use super::paths::{ROOT, note_at};
use super::signature::Word;
use crate::agent::rules::Rules;
use crate::agent::{Agent, Follow, FollowAsk, NoteView, SUPERSEDED};
use crate::error::Result;
use crate::locator::Locator;
use crate::store::Store;
use crate::text::words;

/// The longest excerpt, in characters.
const EXCERPT_CHARS_MAX: usize = 400;
/// How many notes a search visits by default.
pub const NOTES_MAX: usize = 5_000;
/// How many notes a model is asked about in one search.
const ASKED_MAX: usize = 12;
/// How much it counts that a heading, title or path has a word, compared with the block itself.
const CONTEXT_WEIGHT: f64 = 0.4;
/// The assumed size of a note that is only known from a link.
const BYTES_USUAL: u64 = 5_000;
/// The share of its relevance that a superseded fact keeps.
const SUPERSEDED_WEIGHT: f64 = 0.6;

/// One result of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The note.
    pub path: String,
    /// The part of it that answers the query.
    pub excerpt: String,
    /// How well it answers, from 0 to 1.
    pub relevance_score: f64,
    /// Where it is among the notes, and under which heading.
    pub context: String,
}

/// A search and its bounds.
#[derive(Debug, Clone)]
pub struct Search {
    /// What is looked for.
    pub query: String,
    /// The most results.
    pub max_results: usize,
    /// The most notes to visit.
    pub notes_max: usize,
    /// The most bytes to read.
    pub bytes_max: Option<usize>,
}

impl Search {
    /// Makes a search without bounds on bytes, for at most ten results.
    pub fn new(query: impl Into<String>) -> Self {
        Search { query: query.into(), max_results: 10, notes_max: NOTES_MAX, bytes_max: None }
    }
}

/// What a search found, and what it cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Searched {
    /// The results, best first.
    pub results: Vec<SearchResult>,
    /// How many notes were visited.
    pub visited: usize,
    /// How many bytes were read, of notes and of the index beside them.
    pub bytes_read: usize,
    /// Whether notes were left unread because a bound was reached.
    pub bounded: bool,
}

/// Tells which notes have a word of a query, so that a search need not visit the others. The results must
/// be the same with and without it, so it may not leave out a note that has a word.
pub trait Accelerator: Send + Sync {
    /// Returns the paths of all notes with a word of the query in their path or text; `None` if that is
    /// unknown at present.
    ///
    /// # Errors
    /// As the index says. The search then goes on without it.
    fn holders(&self, query: &str) -> Result<Option<Vec<String>>>;
}

/// A block with words of the query.
struct Found {
    path: String,
    excerpt: String,
    context: String,
    /// How much of each word it has: 1 in itself, less around it.
    met: Vec<f64>,
    cited: bool,
    superseded: bool,
}

impl Found {
    /// Whether it has all words of the query, in itself or around it, or was named by the agent.
    fn is_whole(&self) -> bool {
        !self.superseded && (self.cited || self.met.iter().all(|met| *met > 0.0))
    }
}

/// A search under way.
pub(super) struct Walk<'a> {
    store: &'a Store,
    root: &'a Locator,
    agent: &'a dyn Agent,
    search: &'a Search,
    asked: Vec<String>,
    /// The same words, prepared for signatures.
    words: Vec<Word>,
    leads: BinaryHeap<Lead>,
    known: HashSet<String>,
    holders: Option<HashSet<String>>,
    known_notes: Known,
    /// The weight of each word, by how many blocks may have it.
    telling: Vec<f64>,
    read: HashSet<String>,
    found: Vec<Found>,
    searched: Searched,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        store: &'a Store,
        root: &'a Locator,
        agent: &'a dyn Agent,
        search: &'a Search,
        holders: Option<Vec<String>>,
        known_notes: Known,
    ) -> Self {
        let asked = words::asked(&search.query);
        let words: Vec<Word> = asked.iter().map(|stem| Word::of(stem)).collect();
        let none = HashSet::new();
        let telling = words.iter().map(|word| weight(known_notes.blocks_with(*word, &none))).collect();
        let searched = Searched { bytes_read: known_notes.bytes, ..Searched::default() };
        let mut walk = Walk {
            store,
            root,
            agent,
            search,
            asked,
            words,
            leads: BinaryHeap::new(),
            known: HashSet::new(),
            holders: holders.map(|paths| paths.into_iter().collect()),
            known_notes,
            telling,
            read: HashSet::new(),
            found: Vec::new(),
            searched,
        };
        walk.lead(ROOT, Rank::FIRST, &[]);
        walk
    }

    /// Ranks a note by what is known of its blocks without reading it.
    fn foreseen(&self, path: &str) -> Option<Rank> {
        let (shares, bytes) = self.known_notes.shares(path, &self.words, &self.telling, CONTEXT_WEIGHT)?;
        Some(Rank::of(&shares, bytes))
    }

    /// Whether the built-in rules decide, which need not read a note to know where it leads.
    fn by_rules(&self) -> bool {
        self.agent.name() == Rules.name()
    }

    /// Adds a note to those to visit, with the notes that it is known to lead to, so that the most
    /// promising one is read first, wherever it is.
    fn lead(&mut self, target: &str, rank: Rank, trail: &[String]) {
        let mut pending = VecDeque::from([(target.to_owned(), rank, trail.to_vec())]);
        while let Some((target, rank, trail)) = pending.pop_front() {
            let from = trail.last().map_or(ROOT, String::as_str);
            let Some(path) = self.known_notes.leads(self.store, self.root, &target, from) else { continue };
            if !self.known.insert(path.clone()) {
                continue;
            }
            if let Some(links) = self.known_notes.links(&path).filter(|_| self.by_rules()) {
                let way: Vec<String> = trail.iter().cloned().chain([path.clone()]).collect();
                pending.extend(links.into_iter().map(|target| (target, Rank::LAST, way.clone())));
            }
            // With a model, the rank that the model gave counts.
            let foreseen = if self.by_rules() { self.foreseen(&path) } else { None };
            let rank = foreseen.unwrap_or(rank);
            let order = std::cmp::Reverse(self.known.len());
            self.leads.push(Lead { rank, order, path, trail });
        }
    }

    /// Visits notes until none is left or a bound is reached. Notes that no link leads to come last.
    pub(super) fn run(mut self) -> Result<Searched> {
        let mut others = Some(self.known_notes.paths.clone());
        loop {
            let Some(lead) = self.leads.pop() else {
                let Some(rest) = others.take() else { break };
                if self.searched.bounded {
                    break;
                }
                for path in rest {
                    self.lead(&path, Rank::LAST, &["(no link leads here)".to_owned()]);
                }
                continue;
            };
            if self.searched.visited >= self.search.notes_max {
                self.searched.bounded = true;
                break;
            }
            self.visit(lead)?;
        }
        Ok(self.ranked())
    }

    fn visit(&mut self, lead: Lead) -> Result<()> {
        // A note without any word of the query is not read if it is known where it leads.
        let empty = self.holders.as_ref().is_some_and(|holders| !holders.contains(&lead.path))
            || self.known_notes.has_none(&lead.path, &self.words);
        if empty && self.by_rules() && self.known_notes.links(&lead.path).is_some() {
            return Ok(());
        }
        let at = match note_at(self.root, &lead.path) {
            Ok(at) => at,
            Err(_) => return Ok(()),
        };
        if let Some(most) = self.search.bytes_max {
            let size = self.store.info_optional(&at)?.map_or(0, |info| info.size as usize);
            if self.searched.bytes_read + size > most && self.searched.visited > 0 {
                self.searched.bounded = true;
                return Ok(());
            }
        }
        let Some(content) = self.store.read_optional(&at)? else { return Ok(()) };
        self.searched.visited += 1;
        self.read.insert(lead.path.clone());
        self.searched.bytes_read += content.bytes.len();
        let page = Page::parse(&String::from_utf8_lossy(&content.bytes));
        let mut trail = lead.trail;
        trail.push(lead.path.clone());
        let follow = self.decide(&page, &lead.path)?;
        self.excerpts(&page, &lead.path, &trail, &follow);
        let links: HashMap<usize, String> =
            page.links().into_iter().map(|(at, path, _)| (at, path)).collect();
        for follow in &follow.links {
            if let Some(path) = links.get(&follow.link) {
                let rank = Rank::of(&[f64::from(follow.percent) / 100.0], BYTES_USUAL);
                self.lead(path, rank, &trail);
            }
        }
        // Links that the agent did not name, such as those in the text, are followed last.
        for (target, _) in page.edges() {
            self.lead(&target, Rank::LAST, &trail);
        }
        Ok(())
    }

    /// Asks the agent about a note, or the rules if it has no answer or was asked often enough.
    fn decide(&self, page: &Page, path: &str) -> Result<Follow> {
        let ask = || FollowAsk { query: self.search.query.clone(), note: page.view(path) };
        let rules = Rules;
        if self.by_rules() || self.searched.visited > ASKED_MAX {
            let note = NoteView { links: page.link_lines(), ..NoteView::default() };
            return Ok(rules.follow(&FollowAsk { query: self.search.query.clone(), note })?.plan);
        }
        match self.agent.follow(&ask()) {
            Ok(advice) => Ok(advice.plan),
            Err(_) => Ok(rules.follow(&ask())?.plan),
        }
    }

    fn excerpts(&mut self, page: &Page, path: &str, trail: &[String], follow: &Follow) {
        let title = page.title(path);
        let around = format!("{path} {title}");
        let mut headings: Vec<(u8, &str)> = Vec::new();
        for (number, piece) in page.pieces.iter().enumerate() {
            if !matches!(piece.role, Role::Body | Role::Title | Role::Aside) {
                continue;
            }
            let heading = piece.kind.level().zip(piece.heading());
            if let Some((level, _)) = heading {
                headings.retain(|(above, _)| *above < level);
            }
            let cited = follow.excerpts.contains(&number) && !self.by_rules();
            let mut met = vec![0.0; self.asked.len()];
            self.meet(&piece.text, 1.0, &mut met);
            if cited || met.iter().any(|met| *met > 0.0) {
                let told: Vec<&str> = headings.iter().map(|(_, words)| *words).collect();
                self.meet(&format!("{around} {}", told.join(" ")), CONTEXT_WEIGHT, &mut met);
                let under: Vec<&str> = told.into_iter().filter(|words| *words != title).collect();
                let next =
                    page.pieces.get(number + 1).filter(|next| heading.is_some() && next.role == Role::Body);
                self.found.push(found(piece, next, path, trail, &under, met, cited));
            }
            headings.extend(heading);
        }
    }

    /// Records which words a text has; a weight below 1 is for text that only surrounds a block.
    fn meet(&self, text: &str, weight: f64, met: &mut [f64]) {
        words::each_word(text, |word| {
            if let Some(at) = self.asked.iter().position(|asked| asked == word) {
                met[at] = f64::max(met[at], weight);
            }
        });
    }

    /// Returns the best results: first those with all words of the query. A word counts more the fewer
    /// blocks have it, including those that a bound left unread. Notes without any word of the query make
    /// no difference.
    fn ranked(self) -> Searched {
        let Walk { found, search, mut searched, words, known_notes, read, .. } = self;
        let holders = |at: usize| found.iter().filter(|found| found.met[at] >= 1.0).count();
        let unread = |word: &Word| if searched.bounded { known_notes.blocks_with(*word, &read) } else { 0 };
        let weights: Vec<f64> =
            words.iter().enumerate().map(|(at, word)| weight(holders(at) + unread(word))).collect();
        let whole: f64 = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let score = |found: &Found| {
            let met: f64 = found.met.iter().zip(&weights).map(|(met, weight)| met * weight).sum();
            let plain = met / whole;
            let cited = if found.cited { plain.mul_add(0.5, 0.5) } else { plain };
            let held = if found.superseded { SUPERSEDED_WEIGHT } else { 1.0 };
            // A long block has more words of any query, so it counts a little less.
            let long = 1.0 + (found.excerpt.len() as f64 / 600.0).min(1.0) * 0.1;
            (cited * held / long).clamp(0.0, 1.0)
        };
        let mut scored: Vec<(f64, usize)> =
            found.iter().enumerate().map(|(at, found)| (score(found), at)).collect();
        scored.sort_by(|one, two| {
            let (first, second) = (&found[one.1], &found[two.1]);
            (second.is_whole().cmp(&first.is_whole()))
                .then(two.0.total_cmp(&one.0))
                .then_with(|| (&first.path, one.1).cmp(&(&second.path, two.1)))
        });
        scored.truncate(search.max_results);
        searched.results = scored
            .into_iter()
            .map(|(score, at)| SearchResult {
                path: found[at].path.clone(),
                excerpt: found[at].excerpt.clone(),
                relevance_score: (score * 1000.0).round() / 1000.0,
                context: found[at].context.clone(),
            })
            .collect();
        searched
    }
}

/// Returns the weight of a word that this many blocks have.
fn weight(blocks: usize) -> f64 {
    1.0 / (1.0 + blocks as f64).sqrt()
}

/// Makes an excerpt of a piece; that of a heading includes what follows it.
fn found(
    piece: &Piece,
    next: Option<&Piece>,
    path: &str,
    trail: &[String],
    under: &[&str],
    met: Vec<f64>,
    cited: bool,
) -> Found {
    let text = next.map_or_else(|| piece.text.clone(), |next| format!("{}\n{}", piece.text, next.text));
    let excerpt = match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    let way = trail.join(" > ");
    let context = match under.is_empty() {
        true => way,
        false => format!("{way}, under “{}”", under.join(" / ")),
    };
    let superseded = piece.text.contains(SUPERSEDED);
    Found { path: path.to_owned(), excerpt, context, met, cited, superseded }
}
