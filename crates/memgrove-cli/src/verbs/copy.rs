//! Carrying a store to another place, or to another backend.

mod bar;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memgrove::backend::Note;
use memgrove::backends::{Ram, Scoped, object, ram, vault};
use memgrove::clock::SystemClock;
use memgrove::copy::{Copied, Differing, copy};
use memgrove::ids::SystemIds;
use memgrove::locator::copies;
use memgrove::registry::OpenRequest;
use memgrove::shapes::entities::Knowledge;
use memgrove::shapes::graph::Graph;
use memgrove::shapes::records::Records;
use memgrove::shapes::records::folder_lock::LOCK;
use memgrove::{Error, Kind, Locator, Memory, Registry, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::bar::Bar;
use super::{Effect, On, Verb};
use crate::config::How;
use crate::context::{Context, GRAPH, Guard, Input, KNOWLEDGE, random_id};
use crate::mounts::{self, RECORDS};
use crate::page::{Ink, Page, counted};
use crate::portion;
use crate::settings;
use crate::settings::Settings;

/// Files that every store has of its own, and that are not copied.
const OWN: [&str; 2] = [settings::FILE, ".gitignore"];

/// Copy all memories from one store to another, on any backend
///
/// A store is a folder, an address such as s3://bucket/prefix, or PROTOCOL:FOLDER (`memgrove backends`
/// lists the protocols). Every file is read back and verified by its hash. Run it again to resume an
/// interrupted copy. Settings and history are not copied.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Copy {
    /// The store to copy [default: this one]
    #[arg(long, value_name = "STORE")]
    from: Option<String>,
    /// The store to copy to; a folder is created
    #[arg(long, value_name = "STORE")]
    to: String,
    /// Replace files that already exist and differ
    #[arg(long)]
    #[serde(default)]
    replace: bool,
}

/// What was copied.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CopyAnswer {
    #[serde(flatten)]
    #[schemars(with = "Value")]
    copied: Copied,
    to: String,
}

impl Verb for Copy {
    const NAME: &'static str = "copy";
    const TITLE: &'static str = "Copy a store";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli];
    type Answer = CopyAnswer;

    fn run(self, cx: &Context) -> Result<CopyAnswer> {
        let from = match &self.from {
            Some(given) => End::named(cx, given, How::Other("named by --from"))?,
            None => End::this(cx)?,
        };
        let to = End::named(cx, &self.to, How::Other("named by --to"))?;
        if from.is(&to) {
            return Err(Error::new(Kind::Invalid, "a store cannot be copied into itself")
                .hint("name another store with --to"));
        }
        if let Some(why) = from.nested(&to) {
            return Err(Error::new(Kind::Invalid, why).hint("name a place outside it with --to"));
        }
        let (theirs, shadowed) = (from.mounted()?, to.mounted()?);
        let left = from.left_behind()?;
        let (from, to) = (from.open()?, to.make()?);
        let graph = Graph::new(to.clone(), Locator::new(GRAPH)?, Arc::new(SystemIds));
        let mut own: Vec<Locator> = OWN.iter().map(Locator::new).collect::<Result<_>>()?;
        // The target's graph has a registry of its own, which takes in what is copied.
        let clashes = clashes(from.store(), to.store(), &graph.derived_files()?)?;
        if clashes {
            own.extend(graph.derived_files()?);
        }
        let skip = |at: &Locator| {
            own.contains(at) || settings::is_kept_out(at) || left.iter().any(|(behind, _)| behind == at)
        };
        let differing = if self.replace { Differing::Replace } else { Differing::Keep };
        let note = cx.note(
            Self::NAME,
            &Guard { reason: self.from.map(|from| format!("from {from}")), ..Guard::default() },
        );
        let note = note.of_job();
        let mut bar = Bar::new();
        let copied = copy(from.store(), &to, &note, differing, &skip, &mut |progress| bar.show(progress));
        bar.clear();
        let mut copied = copied?;
        if clashes {
            let alone = in_registry_alone(&from)?;
            let more = copy(alone.store(), &to, &note, differing, &|_| false, &mut |_| {})?;
            add(&mut copied, more, &Locator::root())?;
        }
        if copied.files > 0 {
            made_anew(&to, clashes.then_some(&graph), &note)?;
        }
        copied.refused.extend(left.iter().map(|(at, why)| format!("`{at}` is {why}")));
        if let Some(records) = theirs {
            let target = match shadowed {
                Some(records) => records.memory().clone(),
                None => inside(&to)?,
            };
            let lock = Locator::new(LOCK)?;
            let folder = Locator::new(RECORDS)?;
            let skip = |at: &Locator| {
                *at == lock || folder.child(at.key()).is_ok_and(|at| settings::is_kept_out(&at))
            };
            let more = copy(records.memory().store(), &target, &note, differing, &skip, &mut |_| {})?;
            add(&mut copied, more, &folder)?;
        } else if shadowed.is_some() {
            crate::notice("the target store mounts other records, which hide the copied ones");
        }
        Ok(CopyAnswer { copied, to: self.to })
    }

    fn show(answer: &CopyAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let Copied { files, bytes, replaced, same, differing, refused, passed_over } = &answer.copied;
        let files = counted(*files, "file", "files");
        page.put(&format!("copied {files} ({}) to ", portion::size(*bytes)))?;
        page.ink(Ink::Strong, &answer.to)?;
        page.line(&format!(": all read back and verified; {same} already there, {replaced} replaced"))?;
        for at in differing {
            page.ink(Ink::Warning, &format!("{at}: kept the different file there: --replace replaces it\n"))?;
        }
        for why in refused {
            page.ink(Ink::Warning, &format!("not copied: {why}\n"))?;
        }
        passed_over
            .iter()
            .try_for_each(|at| page.ink(Ink::Warning, &format!("{at}: not a regular file, not copied\n")))
    }

    fn failed(answer: &CopyAnswer) -> Option<Kind> {
        match (answer.copied.refused.is_empty(), answer.copied.differing.is_empty()) {
            (false, _) => Some(Kind::Invalid),
            (true, false) => Some(Kind::Exists),
            (true, true) => None,
        }
    }
}

/// Rebuilds what derives from the copied memories; the rest is rebuilt when it is next needed.
fn made_anew(to: &Memory, graph: Option<&Graph>, note: &Note) -> Result<()> {
    if let Some(graph) = graph {
        graph.rebuild(note.clone())?;
    }
    let knowledge = Locator::new(KNOWLEDGE)?;
    if to.store().exists(&knowledge)? {
        Knowledge::new(to.clone(), knowledge).rebuild()?;
    }
    Ok(())
}

/// The folder of a store's own records, as a memory of its own.
fn inside(memory: &Memory) -> Result<Memory> {
    let scoped = Scoped::new(Arc::clone(memory.store().backend()), Locator::new(RECORDS)?);
    Ok(Memory::new(Store::new(scoped), Arc::clone(memory.clock())))
}

/// What only the registry of a graph tells, as files: it would be lost where the target keeps its registry.
fn in_registry_alone(from: &Memory) -> Result<Memory> {
    let graph = Graph::new(from.clone(), Locator::new(GRAPH)?, Arc::new(SystemIds));
    let files = Store::new(Ram::default());
    for (at, text) in graph.unwritten()? {
        files.write(&at, &text)?;
    }
    Ok(Memory::new(files, Arc::clone(from.clock())))
}

/// Adds the counts of a part that was copied separately, with its places moved into `folder`.
fn add(all: &mut Copied, part: Copied, folder: &Locator) -> Result<()> {
    let placed =
        |places: Vec<Locator>| places.iter().map(|at| folder.child(at.key())).collect::<Result<Vec<_>>>();
    all.files += part.files;
    all.bytes += part.bytes;
    all.replaced += part.replaced;
    all.same += part.same;
    all.differing.extend(placed(part.differing)?);
    all.refused.extend(part.refused);
    all.passed_over.extend(placed(part.passed_over)?);
    Ok(())
}

/// One end of a copy, not opened yet.
enum End {
    /// A store in a place.
    Placed {
        cx: Context,
        /// The store's location as its backend is opened with it.
        location: String,
        /// The folder that is to be made if it is missing, and the protocol that was named with it.
        folder: Option<(PathBuf, Option<String>)>,
    },
    /// A store in memory, which is gone when the program ends.
    Passing(Memory),
}

impl End {
    /// The store that this command works on.
    fn this(cx: &Context) -> Result<Self> {
        End::placed(cx.clone(), None)
    }

    /// A store named by its folder, its address, or a protocol and a folder. Ignores what the environment
    /// says of a store, which is about this command's own.
    fn named(cx: &Context, given: &str, how: How) -> Result<Self> {
        check_name(given)?;
        let (mut environment, registry) = (cx.environment().clone(), Registry::standard());
        let named = given.split_once(':').filter(|(protocol, _)| registry.contains(protocol));
        let named = named.filter(|_| !given.contains("://"));
        if let Some((protocol @ ram::PROTOCOL, location)) = named
            && let Some(registration) = registry.get(protocol)
        {
            let clock = Arc::new(SystemClock);
            let (location, settings) = (location.to_owned(), BTreeMap::new());
            let request = OpenRequest { location, state: None, settings, clock: clock.clone() };
            return Ok(End::Passing(Memory::new(Store::shared((registration.open)(&request)?), clock)));
        }
        let (protocol, place) = match named {
            Some((protocol, folder)) => (Some(protocol.to_owned()), Path::new(folder)),
            None => (None, Path::new(given)),
        };
        environment.backend = None;
        if protocol.as_deref() != Some(object::PROTOCOL) {
            (environment.bucket.bucket, environment.bucket.prefix) = (None, None);
        }
        let there = cx.clone().taking(Input::None);
        let there = there.over_store_in(environment, protocol.clone(), place, how)?;
        let folder = there.place().filter(|place| !place.is_url()).map(|place| place.root.clone());
        End::placed(there, folder.map(|folder| (folder, protocol)))
    }

    fn placed(cx: Context, folder: Option<(PathBuf, Option<String>)>) -> Result<Self> {
        let location = match cx.place() {
            Some(place) => cx.selected(place, &[])?.location,
            None => String::new(),
        };
        Ok(End::Placed { cx, location, folder })
    }

    /// The location in one spelling; `None` for a store in memory.
    fn settled(&self) -> Option<PathBuf> {
        let End::Placed { location, .. } = self else { return None };
        Some(match location.contains("://") {
            true => PathBuf::from(location.trim_end_matches('/')),
            false => resolved(Path::new(location)),
        })
    }

    /// Whether both are one store.
    fn is(&self, other: &End) -> bool {
        self.settled().is_some_and(|one| Some(one) == other.settled())
    }

    /// Why one cannot be copied into the other: it lies within it.
    fn nested(&self, to: &End) -> Option<String> {
        let (from, to) = (self.settled()?, to.settled()?);
        match (to.starts_with(&from), from.starts_with(&to)) {
            (true, _) => Some("a store cannot be copied into itself: the target lies within it".into()),
            (_, true) => Some("a store cannot be copied over itself: it lies within the target".into()),
            _ => None,
        }
    }

    /// The records of the store, if they are in a folder that it mounts.
    fn mounted(&self) -> Result<Option<Arc<Records>>> {
        match self {
            End::Placed { cx, .. } => mounts::mounted(cx),
            End::Passing(_) => Ok(None),
        }
    }

    /// What of a vault cannot be copied, and why: conflict copies, which are no memories, and files of which
    /// only a placeholder is on this machine.
    fn left_behind(&self) -> Result<Vec<(Locator, &'static str)>> {
        let End::Placed { cx, .. } = self else { return Ok(Vec::new()) };
        let Some(place) = cx.place() else { return Ok(Vec::new()) };
        if cx.selected(place, &[])?.protocol != vault::PROTOCOL || Settings::read(&place.root)?.is_none() {
            return Ok(Vec::new());
        }
        let listed = cx.with_copies()?.store().list_all(&Locator::root())?;
        let all: HashSet<Locator> = listed.into_iter().map(|info| info.locator).collect();
        let mut left = Vec::new();
        for at in &all {
            if copies::is_certain(at.name()) {
                left.push((at.clone(), "a conflict copy: merge it first (`memgrove conflicts`)"));
            } else if let Some(name) = copies::placeholder(at.name()) {
                let file = at.parent().unwrap_or_default().child(name)?;
                if !all.contains(&file) && !settings::is_kept_out(&file) {
                    left.push((file, "not on this machine: download it first"));
                }
            }
        }
        left.sort();
        Ok(left)
    }

    /// Opens a store that must be there.
    fn open(self) -> Result<Memory> {
        match self {
            End::Placed { cx, .. } => cx.reading(),
            End::Passing(memory) => Ok(memory),
        }
    }

    /// Opens a store to write into; one in a folder is made if it is missing.
    fn make(self) -> Result<Memory> {
        let (cx, folder) = match self {
            End::Placed { cx, folder, .. } => (cx, folder),
            End::Passing(memory) => return Ok(memory),
        };
        if let Some((folder, protocol)) = folder {
            settings::make_store(&folder, &random_id(), protocol.as_deref())?;
        }
        cx.writing()
    }
}

/// Whether one of these files is at the far end with other content.
fn clashes(from: &Store, to: &Store, files: &[Locator]) -> Result<bool> {
    for at in files {
        if let Some(there) = to.read_optional(at)?
            && from.read_optional(at)?.is_none_or(|here| here.bytes != there.bytes)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a name that would be taken for a folder but is hardly meant as one.
fn check_name(given: &str) -> Result<()> {
    if given.trim().is_empty() {
        return Err(Error::new(Kind::Invalid, "the store to copy has no name")
            .hint("a store is a folder, an address such as s3://bucket/prefix, or PROTOCOL:FOLDER"));
    }
    let word =
        |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match given.split_once(':') {
        Some((protocol, rest)) if word(protocol) && !rest.starts_with("//") => {
            if Registry::standard().contains(protocol) {
                return Ok(());
            }
            Err(Error::new(Kind::Invalid, format!("`{protocol}` is not a protocol"))
                .hint(format!("`memgrove backends` lists them; for a folder of that name: ./{given}")))
        }
        _ => Ok(()),
    }
}

/// A path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), ..) => path,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    }
}
