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
}

/// Somewhere that objects are. Conditions must be honoured, and what was answered must be seen by
/// the next request of anyone.
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

    /// Fetches an object.
    ///
    /// # Errors
    /// As the bucket says.
    fn get(&self, key: &str) -> Result<Option<Object>> {
        Ok(self.ask(Request::Get(key.to_owned()))?.object())
    }
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
