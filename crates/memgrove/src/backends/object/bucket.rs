//! What the backend asks of a bucket: a few requests, several at a time.

use crate::clock::Timestamp;
use crate::error::Result;

/// One request.
#[derive(Debug, Clone)]
pub enum Request {
    /// An object with its bytes.
    Get(String),
    /// An object without its bytes.
    Head(String),
    /// A write, if the condition holds.
    Put {
        /// Where.
        key: String,
        /// All of its bytes.
        bytes: Vec<u8>,
        /// Under which condition.
        when: When,
        /// What is remembered beside the bytes.
        mark: Option<String>,
    },
    /// A removal; of what is absent it succeeds.
    Delete(String),
}

/// The condition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// None.
    Always,
    /// Nothing is there.
    Absent,
    /// The object is there with this tag.
    Tagged(String),
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is there.
    Absent,
    /// The object.
    Object(Object),
    /// It was written, and has this tag now.
    Written(String),
    /// The condition of the write does not hold.
    Refused,
    /// It is gone.
    Deleted,
}

/// An object as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its bytes; none for [`Request::Head`].
    pub bytes: Vec<u8>,
    /// How many bytes it has.
    pub size: u64,
    /// Changes whenever the object is written anew with other bytes.
    pub tag: String,
    /// What was remembered beside the bytes.
    pub mark: Option<String>,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// How many bytes it has.
    pub size: u64,
    /// When it was written.
    pub modified: Timestamp,
    /// Its tag, where a listing tells it.
    pub tag: Option<String>,
}

/// Somewhere that objects are kept. Conditions must be honoured, and once a request is answered, everyone's
/// next request must see its effect.
pub trait Bucket: Send + Sync {
    /// Names the bucket, for people.
    fn name(&self) -> String;

    /// Sends requests, as many at a time as is good, and answers them in their order.
    fn send(&self, requests: Vec<Request>) -> Vec<Result<Answer>>;

    /// Lists every object whose key begins with `prefix`, page by page.
    ///
    /// # Errors
    /// As the bucket says.
    fn list(&self, prefix: &str) -> Result<Vec<Listed>>;

    /// Sends one request.
    ///
    /// # Errors
    /// As the bucket says.
    fn ask(&self, request: Request) -> Result<Answer> {
        self.send(vec![request]).pop().expect("one answer for one request")
    }

    /// How to tell who wrote an object, for a bucket that keeps no marks.
    fn versioned(&self) -> Option<&dyn Versioned> {
        None
    }

    /// Fetches an object.
    ///
    /// # Errors
    /// As the bucket says.
    fn get(&self, key: &str) -> Result<Option<Object>> {
        Ok(self.ask(Request::Get(key.to_owned()))?.object())
    }
}

/// A bucket that keeps nothing beside the bytes, but every version of every object, and that cannot hold
/// everything. It always honours conditions, and makes its tags from the bytes alone.
pub trait Versioned: Send + Sync {
    /// The tag of an object with these bytes.
    fn tag_of(&self, bytes: &[u8]) -> String;

    /// Checks that there can be an object at a key.
    ///
    /// # Errors
    /// `Invalid`, code `INVALID_PATH`.
    fn check_key(&self, key: &str) -> Result<()>;

    /// Checks that an object may hold these bytes, whole or as a part.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_bytes(&self, key: &str, bytes: &[u8]) -> Result<()>;

    /// Checks that an object can be so large.
    ///
    /// # Errors
    /// `Unsupported`, code `TOO_LARGE`.
    fn check_size(&self, key: &str, size: u64) -> Result<()>;

    /// The headers of all records of the log, one line each, from the first on.
    ///
    /// # Errors
    /// As the bucket says.
    fn headers(&self) -> Result<String>;

    /// What has stood at a key since a record of the log was written, oldest first: tags, and `None`
    /// where it was deleted.
    ///
    /// # Errors
    /// As the bucket says.
    fn since(&self, key: &str, record: &str) -> Result<Vec<Option<String>>>;
}

impl Answer {
    /// The object, if there is one.
    pub fn object(self) -> Option<Object> {
        match self {
            Answer::Object(object) => Some(object),
            _ => None,
        }
    }
}
