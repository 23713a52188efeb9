//! The languages that a project's own functions may be in.

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Worker {
    /// A Python program with the package `mcp`
    Python,
    /// A Node program with the package `@modelcontextprotocol/server`
    Typescript,
    /// No functions of its own
    None,
}
