//! Carrying a store to another, of whatever backend: every file, verified by its content.
//!
//! A copy that was cut off is simply made again: what is there already and is the same is not
//! copied. What is there and is something else stays, unless it is to be replaced.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::backend::{Edit, Expect, FileKind, Info, Note, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::{Memory, Plan};
use crate::store::Store;

/// How many files are copied in one change, and how many bytes at most before it is made.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 8 << 20;

/// What happens to a file that is at the far end already and differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Differing {
    /// It stays.
    #[default]
    Keep,
    /// It becomes what it is here; the history at the far end keeps the old content.
    Replace,
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Files that are done.
    pub files: usize,
    /// Files in all.
    pub files_total: usize,
    /// Bytes that are done.
    pub bytes: u64,
    /// Bytes in all.
    pub bytes_total: u64,
}

/// What came of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Copied {
    /// Files that were copied, each read back and compared.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// How many of these replaced a file that differed.
    pub replaced: usize,
    /// Files that were there already and are the same.
    pub same: usize,
    /// Files that were there already, differ, and were left as they are.
    pub differing: Vec<Locator>,
    /// Files that the far end cannot hold, and why.
    pub refused: Vec<String>,
    /// Links, pipes and devices, which are never copied.
    pub passed_over: Vec<Locator>,
}

/// One file on its way.
struct Item {
    at: Locator,
    bytes: Vec<u8>,
    expect: Expect,
    hash: Version,
}

/// Copies every file of a store into another, except those that `skip` names.
///
/// # Errors
/// As the stores say; `Corrupt` if what was written does not read back as what was read. What was
/// copied until then is whole, and is not copied again.
pub fn copy(
    from: &Store,
    to: &Memory,
    note: &Note,
    differing: Differing,
    skip: &dyn Fn(&Locator) -> bool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Copied> {
    let listed: Vec<Info> = from.list_all(&Locator::root())?;
    let wanted = listed.into_iter().filter(|info| !skip(&info.locator));
    let there: HashMap<Locator, Info> =
        to.store().list_all(&Locator::root())?.into_iter().map(|info| (info.locator.clone(), info)).collect();
    let mut copying = Copying { from, to, note, done: Copied::default(), batch: Vec::new(), batch_bytes: 0 };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for info in wanted {
        match info.kind {
            FileKind::File => files.push(info),
            FileKind::Folder => folders.push(info.locator),
            FileKind::Other => copying.done.passed_over.push(info.locator),
        }
    }
    let bytes_total = files.iter().map(|info| info.size).sum();
    let mut told = Progress { files_total: files.len(), bytes_total, ..Progress::default() };
    progress(&told);
    for info in &files {
        if let Some(item) = copying.item(info, there.get(&info.locator), differing)? {
            copying.add(item)?;
        }
        told = Progress { files: told.files + 1, bytes: told.bytes + info.size, ..told };
        progress(&told);
    }
    copying.flush()?;
    let filled = |folder: &Locator| files.iter().any(|info| info.locator.is_within(folder));
    for folder in folders.iter().filter(|folder| !filled(folder)) {
        match there.get(folder) {
            Some(there) if !there.is_dir() => {
                let why = format!("`{folder}` is not a folder in the target, and stays what it is there");
                copying.done.refused.push(why);
            }
            _ => drop(to.store().mkdir(folder)?),
        }
    }
    Ok(copying.done)
}

/// A copy under way.
struct Copying<'a> {
    from: &'a Store,
    to: &'a Memory,
    note: &'a Note,
    done: Copied,
    batch: Vec<Item>,
    batch_bytes: u64,
}

impl Copying<'_> {
    /// Reads the file, if it must be copied.
    fn item(&mut self, info: &Info, there: Option<&Info>, differing: Differing) -> Result<Option<Item>> {
        let at = info.locator.clone();
        let reading = |error: Error| error.while_doing("reading the source");
        let Some(content) = self.from.read_optional(&at).map_err(reading)? else { return Ok(None) };
        let hash = Version::of(&content.bytes);
        let expect = match there {
            None => Expect::Absent,
            Some(there) if there.kind != FileKind::File => {
                self.done
                    .refused
                    .push(format!("`{at}` is not a file in the target, and stays what it is there"));
                return Ok(None);
            }
            Some(_) => {
                let old = self.to.store().read_bytes(&at)?;
                if Version::of(&old.bytes) == hash {
                    self.done.same += 1;
                    return Ok(None);
                }
                if differing == Differing::Keep {
                    self.done.differing.push(at);
                    return Ok(None);
                }
                self.done.replaced += 1;
                Expect::At(old.version)
            }
        };
        Ok(Some(Item { at, bytes: content.bytes, expect, hash }))
    }

    fn add(&mut self, item: Item) -> Result<()> {
        self.batch_bytes += item.bytes.len() as u64;
        self.batch.push(item);
        match self.batch.len() >= BATCH_FILES || self.batch_bytes >= BATCH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes what was collected, and reads it back.
    fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let places: Vec<(Locator, Expect)> =
            batch.iter().map(|item| (item.at.clone(), item.expect.clone())).collect();
        match self.write(batch) {
            // One file that cannot be held must not keep the others from being copied.
            Err(error) if is_refusal(&error) && places.len() > 1 => {
                for (at, expect) in places {
                    let Some(content) = self.from.read_optional(&at)? else { continue };
                    let hash = Version::of(&content.bytes);
                    match self.write(vec![Item { at, bytes: content.bytes, expect, hash }]) {
                        Err(error) if is_refusal(&error) => {
                            self.done.refused.push(error.message().to_owned())
                        }
                        other => other?,
                    }
                }
                Ok(())
            }
            Err(error) if is_refusal(&error) => {
                self.done.refused.push(error.message().to_owned());
                Ok(())
            }
            other => other.map_err(|error| error.while_doing("writing the copy")),
        }
    }

    /// Writes files in one change, and compares what is there then.
    fn write(&mut self, batch: Vec<Item>) -> Result<()> {
        let mut written = Vec::with_capacity(batch.len());
        let mut edits = Vec::with_capacity(batch.len());
        for Item { at, bytes, expect, hash } in batch {
            written.push((at.clone(), hash, bytes.len() as u64));
            edits.push(Edit::Write { at, bytes: bytes.into(), expect });
        }
        self.to.apply(self.note.clone(), |_| Ok(Plan { edits: edits.clone(), outcome: () }))?;
        self.verify(written)
    }

    fn verify(&mut self, written: Vec<(Locator, Version, u64)>) -> Result<()> {
        for (at, hash, size) in written {
            let back = self
                .to
                .store()
                .read_bytes(&at)
                .map_err(|error| error.while_doing("reading the copy back"))?;
            if Version::of(&back.bytes) != hash {
                return Err(Error::new(
                    Kind::Corrupt,
                    format!("`{at}` does not read back as it was written"),
                )
                .hint("someone else may be writing there: copy again"));
            }
            self.done.files += 1;
            self.done.bytes += size;
        }
        Ok(())
    }
}

/// Whether the far end cannot hold a file, for its name, its size or what it is.
fn is_refusal(error: &Error) -> bool {
    match error.kind() {
        Kind::Invalid | Kind::Exists => true,
        Kind::Unsupported => matches!(error.code_name(), Some(code::NOT_TEXT | code::TOO_LARGE)),
        _ => false,
    }
}
