//! The door for Anthropic's Memory Tool.
