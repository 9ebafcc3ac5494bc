//! Codecs that shapes share: pure functions between bytes and what they say.

pub mod jsonl;
pub mod merge;
