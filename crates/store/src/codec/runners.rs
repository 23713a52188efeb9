//! Runners, their tokens and their steps.

use baton_model::{RunId, TenantId};

use super::column::{Column, integer, text};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::values::Values;
use crate::{RunnerRow, StepRow, StepState, TokenRow};

impl Stored for TokenRow {
    const TABLE: &'static str = "tokens";
    const COLUMNS: &'static [Column] = &[
        text("id"),
        text("kind"),
        text("tenant"),
        text("subject"),
        text("name"),
        text("hash"),
        text("scopes"),
        integer("created_at"),
        integer("expires_at"),
    ];
    const KEY: &'static [&'static str] = &["id"];
    const SUMS: &'static [Sum] = &[Sum {
        column: "sum",
        of: &["id", "kind", "tenant", "subject", "name", "hash", "scopes", "created_at", "expires_at"],
    }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            id: row.text("id")?,
            kind: row.text("kind")?,
            tenant: TenantId::new(row.text("tenant")?),
            subject: row.text("subject")?,
            name: row.text("name")?,
            hash: row.text("hash")?,
            scopes: row.text("scopes")?,
            created_at: row.time("created_at")?,
            expires_at: row.maybe_time("expires_at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("id", &self.id);
        out.text("kind", &self.kind);
        out.text("tenant", self.tenant.as_str());
        out.text("subject", &self.subject);
        out.text("name", &self.name);
        out.text("hash", &self.hash);
        out.text("scopes", &self.scopes);
        out.time("created_at", self.created_at);
        out.maybe_time("expires_at", self.expires_at);
    }
}

impl Stored for RunnerRow {
    const TABLE: &'static str = "runners";
    const COLUMNS: &'static [Column] =
        &[text("key"), integer("version"), integer("epoch"), integer("seen_at"), text("body")];
    const KEY: &'static [&'static str] = &["key"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            key: row.text("key")?,
            version: row.count("version")?,
            epoch: row.count("epoch")?,
            seen_at: row.time("seen_at")?,
            body: row.text("body")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("key", &self.key);
        out.count("version", self.version);
        out.count("epoch", self.epoch);
        out.time("seen_at", self.seen_at);
        out.text("body", &self.body);
    }
}

impl Stored for StepRow {
    const TABLE: &'static str = "runner_steps";
    const COLUMNS: &'static [Column] =
        &[text("key"), text("run"), text("owner"), text("state"), integer("version"), integer("at"), text("body")];
    const KEY: &'static [&'static str] = &["key"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            key: row.text("key")?,
            run: RunId::new(row.text("run")?),
            owner: row.text("owner")?,
            state: row.parsed("state", StepState::parse)?,
            version: row.count("version")?,
            at: row.time("at")?,
            body: row.text("body")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("key", &self.key);
        out.text("run", self.run.as_str());
        out.text("owner", &self.owner);
        out.text("state", self.state.as_str());
        out.count("version", self.version);
        out.time("at", self.at);
        out.text("body", &self.body);
    }
}
