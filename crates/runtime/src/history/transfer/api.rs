use baton_model::RunId;

/// How much a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    pub definitions: u64,
    /// Versions of agents that runs are pinned to.
    pub agents: u64,
    /// Memory scopes and workspaces.
    pub ledgers: u64,
    pub changes: u64,
    pub runs: u64,
    pub records: u64,
    /// What was said about the runs.
    pub annotations: u64,
}

/// What an import did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The run the file was made for.
    pub run_id: RunId,
    /// Everything in the file.
    pub holds: Transferred,
    /// Runs of it that this host did not have.
    pub new_runs: u64,
    /// The host had all of it, so nothing changed.
    pub already_here: bool,
}
