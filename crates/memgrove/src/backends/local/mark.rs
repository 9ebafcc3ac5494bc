//! The mark: how far the journal has been placed and synced. A hint that saves work, written in
//! place; when it is damaged or gone, the journal's last segment is simply read from its start.

use std::io;

use crate::vfs::{Open, Vfs, VfsFile};

pub(super) const NAME: &str = ".journal/mark";
const MAGIC: &str = "MGM1";
const LINE_BYTES: usize = 144;
/// Where the count of in-place appends stands, apart from the line, so that it can be bumped alone.
const APPENDS_OFFSET: u64 = 256;

/// A position in the journal: a segment, by the number of its first record, and an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// How far things are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// The run of the machine in which this was written; empty if unknown.
    pub(super) boot: String,
    /// Everything before this is placed and synced, whatever happens to the machine.
    pub(super) checkpoint: Place,
    /// Everything before this is placed, as long as the machine has not stopped since.
    pub(super) placed: Place,
}

/// The file that the mark stands in.
pub(super) struct MarkFile(Box<dyn VfsFile>);

impl MarkFile {
    pub(super) fn open(state: &dyn Vfs, how: Open) -> io::Result<Self> {
        Ok(MarkFile(state.open(NAME, how)?))
    }

    /// The mark; `None` if it is not to be trusted.
    pub(super) fn read(&self) -> io::Result<Option<Mark>> {
        Ok(parse(&self.0.read_at(0, LINE_BYTES)?))
    }

    pub(super) fn write(&self, mark: &Mark) -> io::Result<()> {
        self.0.write_at(0, print(mark).as_bytes())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// How often an append in place has begun or ended: odd while one is under way.
    pub(super) fn appends(&self) -> io::Result<u64> {
        let bytes = self.0.read_at(APPENDS_OFFSET, 8)?;
        Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
    }

    pub(super) fn set_appends(&self, count: u64) -> io::Result<()> {
        self.0.write_at(APPENDS_OFFSET, &count.to_le_bytes())
    }
}

fn print(mark: &Mark) -> String {
    let Mark { boot, checkpoint, placed } = mark;
    let body = format!(
        "{MAGIC} {boot:<36.36} {:016x} {:016x} {:016x} {:016x} ",
        checkpoint.segment, checkpoint.offset, placed.segment, placed.offset
    );
    let hash = blake3::hash(body.as_bytes()).to_hex();
    format!("{body}{}\n", &hash[..LINE_BYTES - 1 - body.len()])
}

fn parse(bytes: &[u8]) -> Option<Mark> {
    let line = std::str::from_utf8(bytes).ok()?;
    let mut fields = line.strip_prefix(MAGIC)?.split_whitespace().collect::<Vec<_>>().into_iter().rev();
    fields.next()?;
    let mut number = || u64::from_str_radix(fields.next()?, 16).ok();
    let (placed_offset, placed_segment) = (number()?, number()?);
    let (checkpoint_offset, checkpoint_segment) = (number()?, number()?);
    let mark = Mark {
        boot: fields.next().unwrap_or_default().to_owned(),
        checkpoint: Place { segment: checkpoint_segment, offset: checkpoint_offset },
        placed: Place { segment: placed_segment, offset: placed_offset },
    };
    (print(&mark) == line).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printing_then_parsing_is_the_identity(boot in "([0-9a-f-]{1,36})?", numbers in any::<[u32; 4]>()) {
            let [a, b, c, d] = numbers.map(u64::from);
            let mark = Mark {
                boot,
                checkpoint: Place { segment: a, offset: b },
                placed: Place { segment: c, offset: d },
            };
            prop_assert_eq!(print(&mark).len(), LINE_BYTES);
            prop_assert_eq!(parse(print(&mark).as_bytes()), Some(mark));
        }
    }

    #[test]
    fn a_damaged_mark_is_none() {
        let good = print(&Mark { boot: "b".into(), ..Mark::default() });
        for at in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[at] ^= 1;
            assert_eq!(parse(&bad), None, "byte {at}");
        }
        assert_eq!(parse(b""), None);
    }
}
