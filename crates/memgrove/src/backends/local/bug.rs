//! Deliberate mistakes, one at a time, so that every proof can show that it would notice.

/// One mistake that a storage engine could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A checkpoint does not sync folders, so names may be lost.
    NoFolderSync,
    /// A checkpoint does not sync files, so content may be lost.
    NoFileSync,
    /// A change is answered although derived files from before it are not synced.
    NoDerivedSync,
    /// A change is answered before the journal is synced.
    AckBeforeSync,
    /// Files are placed before the journal is synced, so that a power cut can leave half a change.
    PlaceBeforeSync,
    /// Files are truncated and written in place.
    InPlaceWrite,
    /// Recovery cuts the journal at the first damaged record, though good ones follow.
    DropBadRecords,
    /// Recovery overwrites what someone else wrote meanwhile.
    RecoverOverHandEdit,
    /// A failed sync is tried again and believed.
    RetrySync,
    /// The lock is taken on the file that is about to be replaced.
    LockOnTarget,
    /// The expected version is compared before the lock is taken.
    CompareWithoutLock,
    /// Files are replaced by a plain rename, so that a hand edit in between is lost.
    PlainRename,
}

/// Which mistake is on: none in an ordinary build.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seeded {
    #[cfg(feature = "seeded-bugs")]
    pub(super) bug: Option<Bug>,
}

impl Seeded {
    /// Whether this mistake is to be made.
    #[cfg(feature = "seeded-bugs")]
    pub(super) fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this mistake is to be made: never.
    #[cfg(not(feature = "seeded-bugs"))]
    #[allow(clippy::unused_self)]
    pub(super) fn has(self, _bug: Bug) -> bool {
        false
    }
}
