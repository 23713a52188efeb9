//! Runs as columns.

use baton_model::{Digest, NodeId, RunId, RunStatus, TenantId, Versions, WorkflowId};

use super::column::{Column, bytes, flag, integer, name, text, texts};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::sums::{sum, sum_with};
use super::values::Values;
use crate::checksum::{Checksum, LogChain};
use crate::rows::{KeptTree, Pruned, RunPlace, RunRow};

/// A run as it is first written: what it is, and where it stands by then.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    pub row: &'a RunRow,
    /// As the last write of the same transaction leaves it.
    pub latest: &'a RunRow,
    pub next_seq: u64,
    pub pruned: Option<Pruned>,
    /// What its first record knows of memory and workspace, if that is written with it: how far the run looks back.
    pub first: Option<Versions>,
}

impl<'a> NewRun<'a> {
    /// One that nothing has been added to.
    pub fn of(row: &'a RunRow) -> Self {
        Self { row, latest: row, next_seq: row.next_seq, pruned: row.pruned, first: None }
    }

    /// The run it was forked from, for whoever looks for forks.
    pub fn source(&self) -> Option<&'a str> {
        self.row.origin.as_ref().map(|origin| origin.source.as_str())
    }

    pub fn write(&self, out: &mut impl Values<'a>) {
        let Self { row, latest, next_seq, pruned, first: _ } = *self;
        out.text("id", row.id.as_str());
        out.text("tenant", row.tenant.as_str());
        out.text("workflow", row.workflow.as_str());
        out.text("digest", row.digest.as_str());
        out.text("status", latest.status.as_str());
        out.time("created_at", row.created_at);
        out.time("updated_at", latest.updated_at);
        out.count("next_seq", next_seq);
        out.maybe_time("wake_at", latest.wake_at);
        out.maybe_text("parent", row.parent.as_ref().map(RunId::as_str));
        out.maybe_text("scope", row.scope.as_deref());
        out.texts("tags", &row.tags);
        out.maybe_text("current_node", latest.current_node.as_ref().map(NodeId::as_str));
        out.maybe_text("error_code", latest.error_code.as_deref());
        out.flag("busy", latest.busy);
        out.maybe_text("root", row.root.as_ref().map(RunId::as_str));
        out.text("memory_scope", row.named_memory_scope());
        out.maybe_time("pruned_at", pruned.map(|pruned| pruned.at));
        out.flag("pruned_log", pruned.is_some_and(|pruned| pruned.log));
        out.text("workspace_scope", row.named_workspace_scope());
        match row.origin.as_ref().and_then(|origin| serde_json::to_string(origin).ok()) {
            Some(origin) => out.made("origin", origin),
            None => out.maybe_text("origin", None),
        }
        out.maybe_text("summary", latest.summary.as_deref());
        out.maybe_bytes("chain_base", row.chain.base.as_ref().map(Checksum::as_bytes));
        out.maybe_bytes("chain", latest.chain.head.as_ref().map(Checksum::as_bytes));
    }
}

/// What a run is, where it stands, and what was pruned of it: each is written by itself.
const RUN_SUMS: &[Sum] = &[
    Sum {
        column: "made_sum",
        of: &[
            "id",
            "tenant",
            "workflow",
            "digest",
            "created_at",
            "parent",
            "scope",
            "tags",
            "root",
            "memory_scope",
            "workspace_scope",
            "origin",
            "chain_base",
        ],
    },
    Sum {
        column: "sum",
        of: &[
            "id",
            "status",
            "updated_at",
            "next_seq",
            "wake_at",
            "current_node",
            "error_code",
            "busy",
            "summary",
            "chain",
        ],
    },
    Sum { column: "pruned_sum", of: &["id", "pruned_at", "pruned_log"] },
];

/// The checksums of a run that is first written, in the order of its sums.
pub fn new_run_sums(run: &NewRun<'_>) -> [Option<i64>; 3] {
    let [made, now, _] = RUN_SUMS else { return [None; 3] };
    let pruned = run.pruned.map(|pruned| pruned_sum(&run.row.id, pruned));
    [Some(sum_with(made, |out| run.write(out))), Some(sum_with(now, |out| run.write(out))), pruned]
}

/// The checksum of where a run stands.
pub fn moved_sum(row: &RunRow) -> i64 {
    sum(&RUN_SUMS[1], &[], row)
}

/// The checksum of what was pruned of a run.
pub fn pruned_sum(id: &RunId, pruned: Pruned) -> i64 {
    sum_with(&RUN_SUMS[2], |out| {
        out.text("id", id.as_str());
        out.time("pruned_at", pruned.at);
        out.flag("pruned_log", pruned.log);
    })
}

impl Stored for RunRow {
    const TABLE: &'static str = "runs";
    const COLUMNS: &'static [Column] = &[
        text("id"),
        text("tenant"),
        name("workflow"),
        text("digest"),
        text("status"),
        integer("created_at"),
        integer("updated_at"),
        integer("next_seq"),
        integer("wake_at"),
        text("parent"),
        name("scope"),
        texts("tags"),
        text("current_node"),
        text("error_code"),
        flag("busy"),
        text("root"),
        name("memory_scope"),
        integer("pruned_at"),
        flag("pruned_log"),
        text("workspace_scope"),
        text("origin"),
        text("summary"),
        bytes("chain_base"),
        bytes("chain"),
    ];
    const KEY: &'static [&'static str] = &["id"];
    const SUMS: &'static [Sum] = RUN_SUMS;

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        let mut run = Self {
            id: RunId::new(row.text("id")?),
            tenant: TenantId::new(row.text("tenant")?),
            workflow: WorkflowId::new(row.text("workflow")?),
            digest: row.parsed("digest", Digest::parse)?,
            status: row.parsed("status", RunStatus::parse)?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            next_seq: row.count("next_seq")?,
            wake_at: row.maybe_time("wake_at")?,
            parent: row.maybe_text("parent")?.map(RunId::new),
            scope: row.maybe_text("scope")?,
            tags: row.texts("tags")?,
            current_node: row.maybe_text("current_node")?.map(NodeId::new),
            error_code: row.maybe_text("error_code")?,
            busy: row.flag("busy")?,
            root: row.maybe_text("root")?.map(RunId::new),
            memory_scope: row.text("memory_scope")?,
            pruned: None,
            workspace_scope: String::new(),
            origin: None,
            summary: None,
            chain: LogChain::default(),
        };
        let (pruned_at, log) = (row.maybe_time("pruned_at")?, row.flag("pruned_log")?);
        run.pruned = match (pruned_at, log) {
            (Some(at), log) => Some(Pruned { at, log }),
            (None, false) => None,
            (None, true) => {
                let found = format!("a mark that {} was pruned, and no time", run.id);
                return Err(Unreadable { column: "pruned_log", index: 0, found });
            }
        };
        let workspace = row.text("workspace_scope")?;
        run.origin = row.maybe_json("origin")?;
        run.summary = row.maybe_text("summary")?.map(Into::into);
        run.chain.base = row.maybe_bytes("chain_base", Checksum::from_bytes)?;
        run.chain.head = row.maybe_bytes("chain", Checksum::from_bytes)?;
        let memory = std::mem::take(&mut run.memory_scope);
        Ok(run.with_scopes(memory, workspace))
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        NewRun::of(self).write(out);
    }
}

/// Columns: created_at, position, id, workflow, status, updated_at, runs, records.
pub fn kept_tree(row: &mut Fields<'_, impl Source>) -> Result<KeptTree, Unreadable> {
    Ok(KeptTree {
        place: RunPlace { created_at: row.time("created_at")?, position: row.count("position")? },
        id: RunId::new(row.text("id")?),
        workflow: WorkflowId::new(row.text("workflow")?),
        status: row.parsed("status", RunStatus::parse)?,
        updated_at: row.time("updated_at")?,
        runs: row.count("runs")?,
        records: row.count("records")?,
    })
}
