//! `memgrove`: file-based memory for AI agents, at the command line and over MCP.

mod config;
mod settings;
mod signing;
mod status;

mod address;
mod agents;
mod context;
mod deeds;
mod ending;
mod journals;
mod memory_stores;
mod modes;
mod mounts;
mod opening;
mod page;
mod portion;
mod rehearsal;
mod repository;
mod searching;
#[cfg(target_os = "linux")]
mod watching;
mod zone;

mod verbs;

mod changes;
mod outside;

mod cli;
mod demo;
mod http;
mod mcp;
mod memory_tool;
mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), config::Environment::read())
}

/// Tells a person something beside the answer, on standard error: standard output is for data only.
fn notice(text: &str) {
    http::event("notice", text);
}
