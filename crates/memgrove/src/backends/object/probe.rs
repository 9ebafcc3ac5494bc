//! Whether a bucket honours conditions: asked once, before the first change.

use super::ObjectStore;
use super::bucket::{Answer, Request, When};
use super::log::random_id;
use crate::backend::Version;
use crate::error::{Error, Kind, Result};

/// How many times a write that should succeed is tried.
const TRIES: u32 = 5;

impl ObjectStore {
    /// Refuses to write where a condition is ignored: two machines would overwrite each other, and
    /// both be told that all is well.
    ///
    /// # Errors
    /// `Unsupported` where conditions are ignored; else as the bucket says.
    pub fn check_conditions(&self) -> Result<()> {
        let honours = match self.honours.get() {
            None if self.bucket.versioned().is_some() => true,
            Some(known) => *known,
            None => {
                let found = self.probe()?;
                *self.honours.get_or_init(|| found)
            }
        };
        if honours {
            return Ok(());
        }
        Err(Error::new(
            Kind::Unsupported,
            format!("{} ignores the conditions of writes, so machines that share it would lose changes", self.bucket.name()),
        )
        .hint("use a service that honours If-None-Match and If-Match on writes (Amazon S3, Google Cloud Storage, Azure and many others do)"))
    }

    fn probe(&self) -> Result<bool> {
        // The result is kept under the name of the service, so that another service is probed again.
        let known = self.own(&format!("probe/{}", Version::of(self.bucket.name().as_bytes())));
        if self.bucket.get(&known)?.is_some() {
            return Ok(true);
        }
        let key = self.own(&format!("probe/{}", random_id()));
        let put = |text: &str, when: When| {
            let bytes = text.as_bytes().to_vec();
            self.bucket.ask(Request::Put { key: key.clone(), bytes, when, mark: None })
        };
        // Only a write that went through against its condition proves anything: a lost answer looks like a
        // refusal.
        let honours = || -> Result<bool> {
            let mut first = None;
            for _ in 0..TRIES {
                put("one", When::Absent)?;
                first = self.bucket.get(&key)?;
                if first.is_some() {
                    break;
                }
            }
            let Some(first) = first else { return Ok(false) };
            if matches!(put("two", When::Absent)?, Answer::Written(_)) {
                return Ok(false);
            }
            for attempt in 0..TRIES {
                let Some(there) = self.bucket.get(&key)? else { return Ok(false) };
                put(&format!("three {attempt}"), When::Tagged(there.tag))?;
                if self.bucket.get(&key)?.is_some_and(|now| now.bytes != there.bytes) {
                    return Ok(!matches!(put("four", When::Tagged(first.tag))?, Answer::Written(_)));
                }
            }
            // It refuses even the right tag, so nothing could ever be changed.
            Ok(false)
        };
        let found = honours();
        self.bucket.ask(Request::Delete(key.clone()))?;
        if matches!(found, Ok(true)) {
            let bytes = b"conditions are honoured\n".to_vec();
            self.bucket.ask(Request::Put { key: known, bytes, when: When::Always, mark: None })?;
        }
        found
    }
}
