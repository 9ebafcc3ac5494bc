//! Codecs that shapes share: pure functions between bytes and what they say.

pub mod blocks;
pub mod content;
pub mod dates;
pub mod jsonl;
pub mod links;
pub mod merge;
pub mod metadata;
pub mod nearly;
pub mod words;
