//! What a provider's client says when something fails, in words that help.

use object_store::Error as Fault;

use super::cloud::Cloud;
use crate::error::{Error, Kind};

impl Cloud {
    pub(super) fn broken(&self) -> Error {
        Error::new(Kind::Io, format!("the client of {} failed", self.name))
            .hint("check the endpoint and the credentials in the environment")
    }

    /// What the provider's credentials are called.
    fn variables(&self) -> &'static str {
        match self.name.split(':').next() {
            Some("gs") => "GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS",
            Some("az") => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
            _ => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        }
    }

    pub(super) fn failed(&self, fault: Fault) -> Error {
        let (name, told) = (&self.name, whole_story(&fault));
        let says = |words: &[&str]| words.iter().any(|word| told.contains(word));
        match &fault {
            _ if says(NO_BUCKET) => Error::new(Kind::NotFound, format!("{name} does not exist"))
                .hint("create the bucket, or correct its name"),
            _ if says(ASKED_THE_MACHINE) => Error::new(
                Kind::Denied,
                format!("there are no credentials for {name}"),
            )
            .hint(format!("set those of the provider in the environment, such as {}", self.variables())),
            Fault::PermissionDenied { .. } | Fault::Unauthenticated { .. } => {
                Error::new(Kind::Denied, format!("{name} refuses access"))
                    .hint("check the credentials in the environment and what they may do in the bucket")
            }
            Fault::NotFound { .. } => Error::new(Kind::NotFound, format!("{name} does not exist"))
                .hint("create the bucket, or correct its name"),
            Fault::InvalidPath { .. } => {
                Error::new(Kind::Invalid, format!("{name} cannot hold that key: {fault}"))
                    .hint("use another name")
            }
            _ => Error::new(Kind::Busy, format!("{name} cannot be reached: {}", cause(&fault)))
                .hint("try again when the network is back; nothing that was answered is lost"),
        }
        .caused_by(fault)
    }
}

/// What providers call a bucket that is not there.
const NO_BUCKET: &[&str] = &["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];
/// Where a machine in a cloud is asked who it is: by a client that was given no credentials.
const ASKED_THE_MACHINE: &[&str] = &["169.254.169.254", "169.254.170.2", "metadata.google.internal"];

/// Every reason, from the outermost to the innermost.
fn whole_story(fault: &Fault) -> String {
    let first: &dyn std::error::Error = fault;
    let reasons = std::iter::successors(Some(first), |error| error.source());
    reasons.map(|error| error.to_string()).collect::<Vec<_>>().join(": ")
}

/// The innermost reason, which is the one that says something.
fn cause(fault: &Fault) -> String {
    let mut inner: &dyn std::error::Error = fault;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}
