use serde::{Deserialize, Serialize};

/// The host's ceilings. A run may ask for less, never for more; each one advertised is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Node starts per run.
    pub max_node_executions: u64,
    /// Wall-clock milliseconds per run, counted from `run.started`. Humans may take weeks, so the default is long.
    pub max_run_duration_ms: u64,
    /// How deeply runs may start child runs.
    pub max_nesting_depth: u32,
    /// Turns a supervisor may take in one run.
    pub max_loop_iterations: u64,
    /// Children that may run at the same time in one fan-out; the rest queue.
    pub max_fan_out: u32,
    /// Runs that may descend from one top-level run.
    pub max_children_per_tree: u64,
    /// Bytes of one memory entry's content.
    pub max_memory_entry_bytes: usize,
    /// Entries one memory scope may hold; expired and deleted ones do not count.
    pub max_memory_entries: u64,
    /// Bytes of one workspace file.
    pub max_workspace_file_bytes: usize,
    /// Files one workspace may hold.
    pub max_workspace_files: u64,
    /// Bytes of one value: a variable, a channel, an output, and what an expression makes on its way.
    pub max_value_bytes: u64,
    /// Bytes of all variables and channels of a run together.
    pub max_run_bytes: u64,
    pub max_request_body_bytes: u64,
    pub max_metadata_bytes: usize,
    pub clarification_rounds: u32,
    pub schema_rounds: u32,
    pub envelopes_per_turn: u32,
    /// Rounds of tool calls an agent has where neither its node nor its run says how many; see
    /// [`Limits::MOST_TOOL_ROUNDS`].
    pub tool_rounds: u32,
    /// Tokens that one tree of runs may use, whatever it asks for; 0 = no ceiling.
    pub max_budget_tokens: u64,
    /// The same for money, in US cents.
    pub max_budget_cost_cents: u64,
}

/// The bounds on a run's values, recorded with the run so that they are the same whenever its log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueBounds {
    pub max_value_bytes: u64,
    pub max_run_bytes: u64,
    /// Units for the expressions of one step together; none in records from before it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_units: Option<u64>,
}

impl Limits {
    /// Rounds of tool calls that anybody may ask for: each is asked with all before it, so the price of a run grows with
    /// their square.
    pub const MOST_TOOL_ROUNDS: u32 = 1000;

    /// The bounds for the values of a new run. An operator may lower them, never raise them.
    pub fn values(&self) -> ValueBounds {
        let most = ValueBounds::default();
        ValueBounds {
            max_value_bytes: self.max_value_bytes.min(most.max_value_bytes),
            max_run_bytes: self.max_run_bytes.min(most.max_run_bytes),
            max_units: most.max_units,
        }
    }
}

impl ValueBounds {
    /// What may stand around a text of the largest size: a file has a path and a version, a response a status.
    const AROUND: u64 = 4096;

    /// Units for the expressions of one step. One unit is one step of the machine or 64 bytes copied, compared or looked
    /// through; all of them take some tens of milliseconds at most.
    const USUAL_UNITS: u64 = 200_000;

    /// Units for the expressions of one step together.
    pub fn units(self) -> u64 {
        self.max_units.unwrap_or(Self::USUAL_UNITS)
    }

    /// The largest value, with what its maker puts around it.
    pub const fn largest_value(self) -> u64 {
        self.max_value_bytes.saturating_add(Self::AROUND)
    }

    /// What goes into one node, or comes out of it, together: two of the largest values.
    pub const fn most_at_once(self) -> u64 {
        self.largest_value().saturating_mul(2)
    }
}

impl Default for ValueBounds {
    fn default() -> Self {
        Self { max_value_bytes: 1024 * 1024, max_run_bytes: 16 * 1024 * 1024, max_units: Some(Self::USUAL_UNITS) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_node_executions: 100_000,
            max_run_duration_ms: 90 * 24 * 60 * 60 * 1000,
            max_nesting_depth: 32,
            max_loop_iterations: 10_000,
            max_fan_out: 128,
            max_children_per_tree: 100_000,
            max_memory_entry_bytes: 64 * 1024,
            max_memory_entries: 10_000,
            max_workspace_file_bytes: 1024 * 1024,
            max_workspace_files: 256,
            max_value_bytes: 1024 * 1024,
            max_run_bytes: 16 * 1024 * 1024,
            max_request_body_bytes: 4 * 1024 * 1024,
            max_metadata_bytes: 8192,
            clarification_rounds: 3,
            schema_rounds: 2,
            envelopes_per_turn: 5,
            tool_rounds: 32,
            max_budget_tokens: 0,
            max_budget_cost_cents: 0,
        }
    }
}
