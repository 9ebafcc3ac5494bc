//! What other programs have put into the bucket, and how it comes into the log.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::bucket::{Answer, Listed, Object, Request};
use super::record::damaged;
use super::{OWN, ObjectStore};
use crate::backend::{Finding, Level};
use crate::error::{Kind, Result};
use crate::locator::Locator;

/// How many objects of other programs are taken in with one change.
const STRAYS_AT_ONCE: usize = 32;
/// Why an object cannot be taken in beside another.
pub(super) const SAME_NAME: &str = "another file has the same name but for upper and lower case";

impl ObjectStore {
    /// Takes into the log every object that other programs have put into the bucket, and deletes what a late
    /// placement has left of a deleted file. Returns what was adopted and what could not be. Stores that lie
    /// deeper in the bucket are left alone.
    ///
    /// # Errors
    /// `Corrupt` where the log has a gap; else as the bucket says.
    pub(super) fn adopt_strays(&self) -> Result<Vec<Finding>> {
        let (listed, mut findings) = self.listed()?;
        // The log is read after the objects, so that it knows all that was placed until then.
        self.sync()?;
        let mut strays = Vec::new();
        let names: Vec<&str> =
            listed.iter().filter_map(|listed| listed.key.strip_prefix(&self.prefix)).collect();
        self.check_log_is_whole(names.iter().copied())?;
        for name in plain_names(&names) {
            match Locator::new(name) {
                Ok(at) if at.key() == name => {
                    if !self.file_at(&at).is_ok_and(|leaf| leaf.is_some()) {
                        strays.push(at);
                    }
                }
                _ => findings.push(unfit(name, "its key is not a name that every system can hold")),
            }
        }
        for batch in strays.chunks(STRAYS_AT_ONCE) {
            findings.extend(self.adopt_some_strays(batch)?);
        }
        Ok(findings)
    }

    /// Lists every object of the store. If another program's key makes the bucket impossible to list, lists
    /// only the backend's own objects, and reports that.
    fn listed(&self) -> Result<(Vec<Listed>, Vec<Finding>)> {
        match self.bucket.list(&self.prefix) {
            Ok(listed) => Ok((listed, Vec::new())),
            Err(error) if error.kind() == Kind::Invalid => {
                let finding = Finding {
                    level: Level::Warning,
                    at: self.bucket.name(),
                    what: format!("what other programs put there cannot be adopted: {}", error.message()),
                    hint: error.hint_text().unwrap_or_default().to_owned(),
                };
                Ok((self.bucket.list(&self.own(""))?, vec![finding]))
            }
            Err(error) => Err(error),
        }
    }

    /// How many objects lie under this prefix and belong to no store.
    ///
    /// # Errors
    /// As [`ObjectStore::adopt_strays`].
    pub(super) fn count_strays(&self) -> Result<usize> {
        let (listed, _) = self.listed()?;
        let names: Vec<&str> =
            listed.iter().filter_map(|listed| listed.key.strip_prefix(&self.prefix)).collect();
        self.check_log_is_whole(names.iter().copied())?;
        Ok(plain_names(&names).len())
    }

    /// Checks that the log has no record beyond the last one that could be taken in.
    fn check_log_is_whole<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<()> {
        let number = |name: &str| name.strip_prefix(OWN)?.strip_prefix("/log/")?.parse::<u64>().ok();
        let (last, known) = (names.filter_map(number).max().unwrap_or_default(), self.state().seq);
        match last > known {
            true => Err(damaged(&format!("number {} is missing, and {last} is there", known + 1))),
            false => Ok(()),
        }
    }

    fn adopt_some_strays(&self, places: &[Locator]) -> Result<Vec<Finding>> {
        let answers = self.bucket.send(places.iter().map(|at| Request::Get(self.key(at))).collect());
        let mut strangers = Vec::new();
        for (at, answer) in places.iter().zip(answers) {
            let Answer::Object(object) = answer? else { continue };
            match self.recognised(at, &object) {
                // The log says that it was here and is gone.
                Some(_) => drop(self.bucket.ask(Request::Delete(self.key(at)))?),
                None => strangers.push((at.clone(), object)),
            }
        }
        if strangers.is_empty() {
            return Ok(Vec::new());
        }
        self.check_conditions()?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let taken_in = |at: &Locator| Finding {
            level: Level::Info,
            at: at.key().to_owned(),
            what: "it was put into the bucket by another program, and is now in the history".into(),
            hint: "nothing to do".into(),
        };
        if self.adopt_together(&strangers).is_ok() {
            return Ok(strangers.iter().map(|(at, _)| taken_in(at)).collect());
        }
        let one = |(at, object): &(Locator, Object)| match self.adopt(at, object) {
            Ok(()) if self.file_at(at).is_ok_and(|leaf| leaf.is_some()) => Ok(taken_in(at)),
            Ok(()) => Ok(unfit(at.key(), SAME_NAME)),
            Err(error) if matches!(error.kind(), Kind::Busy | Kind::Denied) => Err(error),
            Err(error) => Ok(unfit(at.key(), error.message())),
        };
        strangers.iter().map(one).collect()
    }
}

/// Returns the names beneath a store's prefix that are its files: neither the backend's own objects nor those
/// of stores that lie deeper.
pub(super) fn plain_names<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let deeper: BTreeSet<&str> = names.iter().copied().filter_map(store_of).collect();
    let is_plain = |name: &&str| {
        let is_own = name.split('/').next() == Some(OWN);
        let is_deeper = || deeper.iter().any(|store| name.starts_with(store));
        !is_own && !name.ends_with('/') && !is_deeper()
    };
    names.iter().copied().filter(is_plain).collect()
}

/// Returns the deeper store that an object belongs to, if the object is one of that store's own.
fn store_of(name: &str) -> Option<&str> {
    let own = format!("/{OWN}/");
    name.find(&own).map(|end| &name[..=end])
}

fn unfit(name: &str, why: &str) -> Finding {
    Finding {
        level: Level::Warning,
        at: name.to_owned(),
        what: format!("another program put it into the bucket, and it cannot be adopted: {why}"),
        hint: "rename the object".into(),
    }
}
