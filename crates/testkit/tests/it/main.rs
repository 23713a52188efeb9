//! The repository itself. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod dependencies;
mod error_pages;
mod layering;
mod modules;
mod paths;
mod plain_words;
mod polling;
