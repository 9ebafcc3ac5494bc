//! What was read of the graph's own files, kept as long as they do not change.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::catalog::Catalog;
use super::entry::{Entry, is_named, unmarked};
use super::id::{Given, Numbers};
use super::ontology::Ontology;
use super::place::{FOLDING, Layout, META, NUMBERS, ONTOLOGY, REGISTRY, TAIL, Thing, split_name};
use super::registry::NEWER;
use super::survey::Survey;
use super::tail::mark_of;
use crate::backend::{Content, Depth, Version};
use crate::error::{Error, Kind, Result};
use crate::store::Store;
use crate::text::jsonl;

/// How often a graph is read again because a fold came in between.
const READ_ATTEMPTS: usize = 64;

/// A longer tail takes longer to read than writing down the numbers that it gave.
const TAIL_BYTES_LONG: u64 = 64 * 1024;

/// The graph's own files at a glance: the stamp and the size of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Glance(BTreeMap<String, (u64, u64)>);

impl Glance {
    pub(super) fn of(store: &Store, layout: &Layout) -> Result<Self> {
        let listed = store.backend().list(&layout.system_folder()?, Depth::Children)?;
        Ok(Glance(
            listed
                .into_iter()
                .map(|info| (info.locator.name().to_owned(), (info.stamp, info.size)))
                .collect(),
        ))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the size of a file; 0 if there is none.
    pub(super) fn size(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |(_, size)| *size)
    }

    fn same(&self, other: &Glance, name: &str) -> bool {
        self.0.get(name) == other.0.get(name)
    }

    /// Whether nothing was folded between two glances.
    fn is_unfolded(&self, other: &Glance) -> bool {
        self.same(other, REGISTRY) && self.same(other, FOLDING)
    }
}

/// Why a registry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loss {
    /// It is missing, though there is content.
    Lost,
    /// It cannot be parsed, with the parser's message.
    Damaged(String),
    /// It is incomplete, with the reason.
    Behind(&'static str),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Lost => f.write_str("it was lost"),
            Loss::Damaged(why) => write!(f, "it was damaged: {why}"),
            Loss::Behind(why) => f.write_str(why),
        }
    }
}

/// What was read, and what it was read from.
#[derive(Default)]
pub(super) struct Shelf {
    seen: Option<Glance>,
    pub(super) catalog: Catalog,
    /// The tail as far as it has been taken in.
    tail: Vec<u8>,
    pub(super) tail_version: Option<Version>,
    pub(super) registry_version: Option<Version>,
    pub(super) folding_version: Option<Version>,
    /// The marks that the tail, and the one being folded, begin with.
    pub(super) tail_mark: Option<String>,
    folding_mark: Option<String>,
    /// Lines of the tail, and of the one being folded, that cannot be read.
    pub(super) unread: Vec<String>,
    pub(super) loss: Option<Loss>,
    /// A catalog made from the files, while the registry cannot be used and may not be rebuilt.
    stand_in: Option<Catalog>,
    ontology: Option<(Glance, Arc<Ontology>)>,
    /// The highest numbers known without reading the registry.
    numbers: Option<Numbers>,
    /// The length of the tail if nobody else has added to it since the numbers were read.
    numbers_upto: Option<u64>,
}

impl Shelf {
    /// Brings the catalog up to date.
    ///
    /// # Errors
    /// As the store says; `Unsupported` for a registry of a newer form.
    pub(super) fn refresh(&mut self, store: &Store, layout: &Layout) -> Result<()> {
        for _ in 0..READ_ATTEMPTS {
            let before = Glance::of(store, layout)?;
            if self.seen.as_ref() == Some(&before) {
                return Ok(());
            }
            let only_tail = self.seen.as_ref().is_some_and(|seen| seen.is_unfolded(&before));
            self.stand_in = None;
            if !(only_tail && self.follow(store, layout)?) {
                self.load(store, layout)?;
            }
            // A lost line may have added or removed something: only the files know.
            if self.loss.is_none() && !self.unread.is_empty() {
                self.loss = Some(Loss::Behind("lines of its tail cannot be read"));
            }
            if Glance::of(store, layout)?.is_unfolded(&before) {
                self.seen = Some(before);
                return Ok(());
            }
            self.seen = None;
        }
        Err(Error::new(Kind::Busy, "the registry changes faster than it can be read").hint("try again"))
    }

    /// Returns the catalog, from the registry or, if that is lost, from the files, without writing
    /// anything; and, the first time, what is wrong with the registry.
    ///
    /// # Errors
    /// As the store says.
    pub(super) fn believable(&mut self, store: &Store, layout: &Layout) -> Result<(&Catalog, Option<&Loss>)> {
        self.refresh(store, layout)?;
        if self.loss.is_none() {
            return Ok((&self.catalog, None));
        }
        let first = self.stand_in.is_none();
        if first {
            self.stand_in = Some(Survey::of(store, layout, &self.catalog, "")?.catalog(&self.catalog));
        }
        let catalog = self.stand_in.as_ref().unwrap_or(&self.catalog);
        Ok((catalog, self.loss.as_ref().filter(|_| first)))
    }

    /// Whether nobody has added to a tail of this length since the numbers were read.
    pub(super) fn knows_numbers(&self, tail_bytes: u64) -> bool {
        self.numbers_upto == Some(tail_bytes)
    }

    /// Forgets what was read, so that everything is read again.
    pub(super) fn forget(&mut self) {
        *self = Shelf { ontology: self.ontology.take(), ..Shelf::default() };
    }

    /// Takes in what was added to the tail. Returns `false` if the tail has changed in another way.
    fn follow(&mut self, store: &Store, layout: &Layout) -> Result<bool> {
        let Some(content) = store.read_optional(&layout.system(TAIL)?)? else {
            return Ok(self.tail.is_empty());
        };
        let whole = self.tail.is_empty() || self.tail.ends_with(b"\n");
        if !whole || !content.bytes.starts_with(&self.tail) {
            return Ok(false);
        }
        let from = self.tail.len();
        self.take_lines(&content.bytes, from);
        self.have_tail(content);
        if store.capabilities().sync && self.loss.is_none() {
            self.loss = self.gap(store, layout)?;
        }
        Ok(true)
    }

    fn have_tail(&mut self, content: Content) {
        self.tail_mark = mark_of(&content.bytes);
        (self.tail, self.tail_version) = (content.bytes, Some(content.version));
    }

    fn take_lines(&mut self, bytes: &[u8], from: usize) {
        for line in jsonl::lines_from(bytes, from, 1) {
            let body = &bytes[line.body];
            let read = std::str::from_utf8(body)
                .is_ok_and(|text| text.trim().is_empty() || self.catalog.follow(text));
            if !read {
                self.unread.push(String::from_utf8_lossy(body).into_owned());
            }
        }
    }

    fn load(&mut self, store: &Store, layout: &Layout) -> Result<()> {
        self.forget();
        let registry = store.read_optional(&layout.system(REGISTRY)?)?;
        let absent = registry.is_none();
        if let Some(content) = registry {
            self.registry_version = Some(content.version);
            match read(content.bytes) {
                Ok(catalog) => self.catalog = catalog,
                Err(why) if why.starts_with(NEWER) => {
                    return Err(Error::new(Kind::Unsupported, format!("the registry cannot be read: {why}"))
                        .hint("use the memgrove that wrote it, or a newer one"));
                }
                Err(why) => self.loss = Some(Loss::Damaged(why)),
            }
        }
        if let Some(content) = store.read_optional(&layout.system(FOLDING)?)? {
            self.take_lines(&content.bytes, 0);
            self.folding_mark = mark_of(&content.bytes);
            self.folding_version = Some(content.version);
        }
        if let Some(content) = store.read_optional(&layout.system(TAIL)?)? {
            self.take_lines(&content.bytes, 0);
            self.have_tail(content);
        }
        // A graph that was never written to has lost nothing.
        if absent && !is_fresh(store, layout, &Glance::of(store, layout)?)? {
            self.loss = Some(Loss::Lost);
        } else if !absent && self.loss.is_none() {
            self.loss = self.gap(store, layout)?;
        }
        Ok(())
    }

    /// Returns why the registry and its tail are incomplete, if they are. Normally the tail, or the one
    /// being folded, begins with the registry's mark. A sync tool brings each file in its own time, and
    /// keeps only one of two tails; there, the names of all files are compared instead.
    fn gap(&self, store: &Store, layout: &Layout) -> Result<Option<Loss>> {
        if store.capabilities().sync {
            let differs = differs(store, layout, &self.catalog)?;
            return Ok(differs.then_some(Loss::Behind("other files have come than it knew")));
        }
        let folding = self.folding_version.is_some() && self.folding_mark == self.catalog.mark;
        let fits = folding || self.tail_mark == self.catalog.mark;
        Ok((!fits).then_some(Loss::Behind("what came since it was written was lost")))
    }

    /// The ontology; `None` where there is none.
    ///
    /// # Errors
    /// `Corrupt` (`ONTOLOGY_RULE`) for one that cannot be read.
    pub(super) fn ontology(
        &mut self,
        store: &Store,
        layout: &Layout,
        seen: &Glance,
    ) -> Result<Option<Arc<Ontology>>> {
        if !seen.has(ONTOLOGY) {
            return Ok(None);
        }
        if let Some((glance, ontology)) = &self.ontology
            && glance.same(seen, ONTOLOGY)
        {
            return Ok(Some(Arc::clone(ontology)));
        }
        let at = layout.system(ONTOLOGY)?;
        let Some(content) = store.read_optional(&at)? else { return Ok(None) };
        let ontology = Arc::new(Ontology::read(&at, content.bytes)?);
        self.ontology = Some((seen.clone(), Arc::clone(&ontology)));
        Ok(Some(ontology))
    }

    /// Returns the highest numbers of ids without reading the registry, nor a tail of this length whose
    /// numbers were written down. With `again`, they are read again because others may have taken some.
    ///
    /// # Errors
    /// As the store says.
    pub(super) fn numbers(
        &mut self,
        store: &Store,
        layout: &Layout,
        tail_bytes: u64,
        again: bool,
    ) -> Result<&mut Numbers> {
        if self.numbers.is_none() || again {
            let given = store.read_optional(&layout.system(NUMBERS)?)?;
            let mut given = match given.and_then(|content| Given::read(&content.bytes)) {
                Some(given) => given,
                None => {
                    self.refresh(store, layout)?;
                    Given { numbers: self.catalog.numbers.clone(), tail: None }
                }
            };
            if given.tail != Some(tail_bytes) {
                for name in [FOLDING, TAIL] {
                    if let Some(content) = store.read_optional(&layout.system(name)?)? {
                        given.numbers.scan(&content.bytes);
                    }
                }
            }
            self.numbers.get_or_insert_default().join(&given.numbers);
        }
        Ok(self.numbers.get_or_insert_default())
    }

    /// Takes in the lines that a change adds to a tail of this length. Returns the numbers to write down,
    /// if some were `drawn` from a tail that is long to read.
    pub(super) fn numbered(&mut self, tail_bytes: u64, lines: &str, drawn: bool) -> Option<Given> {
        let followed = drawn || self.knows_numbers(tail_bytes);
        let upto = tail_bytes + lines.len() as u64;
        self.numbers_upto = followed.then_some(upto);
        let numbers = self.numbers.as_mut().filter(|_| followed)?;
        numbers.scan(lines.as_bytes());
        let is_long = drawn && tail_bytes >= TAIL_BYTES_LONG;
        is_long.then(|| Given { numbers: numbers.clone(), tail: Some(upto) })
    }
}

/// Whether a graph was never written to.
pub(super) fn is_fresh(store: &Store, layout: &Layout, seen: &Glance) -> Result<bool> {
    let begun = [REGISTRY, FOLDING, TAIL].iter().any(|name| seen.has(name));
    Ok(!begun && store.list(&layout.folder(Thing::Node)?)?.is_empty())
}

/// Whether the files have an entry that a catalog lacks, or lack one that it has.
fn differs(store: &Store, layout: &Layout, catalog: &Catalog) -> Result<bool> {
    for thing in [Thing::Node, Thing::Connection] {
        let listed = store.list_all(&layout.folder(thing)?)?;
        let mut there = HashSet::new();
        for info in &listed {
            let (id, rest) = split_name(info.locator.name());
            there.insert(id);
            if rest == META
                && catalog.text(thing, id).is_none()
                && let Some(content) = store.read_optional(&info.locator)?
                && Entry::read(thing, id, content.bytes).is_ok()
            {
                return Ok(true);
            }
        }
        let gone =
            |(kind, id, text): (Thing, &str, &str)| kind == thing && !there.contains(id) && is_named(text);
        if catalog.entries().any(gone) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read(bytes: Vec<u8>) -> Result<Catalog, String> {
    let text = unmarked(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    Catalog::read(text)
}
