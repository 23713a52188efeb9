//! What is kept beside the logs, as columns: open questions, definitions, replies, quarantine, remarks.

use baton_model::{Digest, NodeId, RunId, TenantId, WorkflowId};

use super::column::{Column, integer, name, text};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::values::Values;
use crate::annotation::AnnotationRow;
use crate::quarantine::Quarantine;
use crate::rows::{InterruptRow, Reply, WorkflowVersion};

impl Stored for InterruptRow {
    const TABLE: &'static str = "interrupts";
    const COLUMNS: &'static [Column] = &[
        text("run"),
        name("node"),
        text("tenant"),
        text("workflow"),
        text("interrupt_id"),
        text("key"),
        text("kind"),
        text("data"),
        integer("requested_at"),
        integer("expires_at"),
    ];
    const KEY: &'static [&'static str] = &["run", "node"];
    const SUMS: &'static [Sum] = &[Sum {
        column: "sum",
        of: &["run", "node", "tenant", "workflow", "interrupt_id", "key", "kind", "data", "requested_at", "expires_at"],
    }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            run: RunId::new(row.text("run")?),
            node: NodeId::new(row.text("node")?),
            tenant: TenantId::new(row.text("tenant")?),
            workflow: WorkflowId::new(row.text("workflow")?),
            interrupt_id: row.text("interrupt_id")?,
            key: row.text("key")?,
            kind: row.text("kind")?,
            data: row.json("data")?,
            requested_at: row.time("requested_at")?,
            expires_at: row.maybe_time("expires_at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("run", self.run.as_str());
        out.text("node", self.node.as_str());
        out.text("tenant", self.tenant.as_str());
        out.text("workflow", self.workflow.as_str());
        out.text("interrupt_id", &self.interrupt_id);
        out.text("key", &self.key);
        out.text("kind", &self.kind);
        out.made("data", self.data.to_string());
        out.time("requested_at", self.requested_at);
        out.maybe_time("expires_at", self.expires_at);
    }
}

impl Stored for WorkflowVersion {
    const TABLE: &'static str = "workflows";
    const COLUMNS: &'static [Column] =
        &[text("tenant"), name("id"), integer("version"), text("digest"), text("name"), integer("created_at")];
    const KEY: &'static [&'static str] = &["tenant", "id", "version"];
    const SUMS: &'static [Sum] =
        &[Sum { column: "sum", of: &["tenant", "id", "version", "digest", "name", "created_at"] }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            tenant: TenantId::new(row.text("tenant")?),
            id: WorkflowId::new(row.text("id")?),
            version: row.count("version")?,
            digest: row.parsed("digest", Digest::parse)?,
            name: row.text("name")?,
            created_at: row.time("created_at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("tenant", self.tenant.as_str());
        out.text("id", self.id.as_str());
        out.integer("version", self.version.into());
        out.text("digest", self.digest.as_str());
        out.text("name", &self.name);
        out.time("created_at", self.created_at);
    }
}

impl Stored for Reply {
    const TABLE: &'static str = "replies";
    const COLUMNS: &'static [Column] =
        &[text("key"), text("request"), integer("status"), text("body"), integer("expires_at")];
    const KEY: &'static [&'static str] = &["key"];
    const SUMS: &'static [Sum] = &[Sum { column: "sum", of: &["key", "request", "status", "body", "expires_at"] }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            key: row.parsed("key", Digest::parse)?,
            request: row.parsed("request", Digest::parse)?,
            status: row.count("status")?,
            body: row.text("body")?,
            expires_at: row.time("expires_at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("key", self.key.as_str());
        out.text("request", self.request.as_str());
        out.integer("status", self.status.into());
        out.text("body", &self.body);
        out.time("expires_at", self.expires_at);
    }
}

impl Stored for Quarantine {
    const TABLE: &'static str = "quarantine";
    const COLUMNS: &'static [Column] =
        &[text("root"), text("tenant"), text("run"), integer("seq"), text("cause"), text("detail"), integer("at")];
    const KEY: &'static [&'static str] = &["root"];
    const SUMS: &'static [Sum] =
        &[Sum { column: "sum", of: &["root", "tenant", "run", "seq", "cause", "detail", "at"] }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            root: RunId::new(row.text("root")?),
            tenant: TenantId::new(row.text("tenant")?),
            run: RunId::new(row.text("run")?),
            seq: row.count("seq")?,
            cause: row.text("cause")?,
            detail: row.text("detail")?,
            at: row.time("at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("root", self.root.as_str());
        out.text("tenant", self.tenant.as_str());
        out.text("run", self.run.as_str());
        out.count("seq", self.seq);
        out.text("cause", &self.cause);
        out.text("detail", &self.detail);
        out.time("at", self.at);
    }
}

impl Stored for AnnotationRow {
    const TABLE: &'static str = "annotations";
    const COLUMNS: &'static [Column] = &[text("run"), text("id"), integer("at"), text("body")];
    const KEY: &'static [&'static str] = &["run", "id"];
    const SUMS: &'static [Sum] = &[Sum { column: "sum", of: &["run", "id", "at", "body"] }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        let (run, id) = (RunId::new(row.text("run")?), row.text("id")?);
        Ok(Self { run, id, at: row.time("at")?, body: row.text("body")? })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("run", self.run.as_str());
        out.text("id", &self.id);
        out.time("at", self.at);
        out.text("body", &self.body);
    }
}
