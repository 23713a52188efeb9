//! What is written beside the logs: open questions, definitions, replies.

use baton_model::Timestamp;
use baton_store::InterruptRow;

use super::Plan;
use super::left::split;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn parts(&mut self, all: &mut Vec<Statement<'a>>) {
        let (gone, open) = split(&self.interrupts);
        if !gone.is_empty() {
            let runs = gone.iter().map(|(run, _)| run.as_str());
            all.push(Statement::new(CLOSE).texts(runs).keys(gone.iter().map(|(_, node)| node.as_str())));
        }
        if !open.is_empty() {
            all.push(put_interrupts(&open));
        }
        if !self.blobs.is_empty() {
            let digests = self.blobs.keys().map(|digest| digest.as_str());
            all.push(Statement::new(PUT_BLOBS).texts(digests).list(self.blobs.values().copied()));
        }
        if !self.workflows.is_empty() {
            let rows = || self.workflows.values();
            all.push(
                Statement::new(PUT_WORKFLOWS)
                    .texts(rows().map(|row| row.tenant.as_str()))
                    .keys(rows().map(|row| row.id.as_str()))
                    .list(rows().map(|row| i64::from(row.version)))
                    .texts(rows().map(|row| row.digest.as_str()))
                    .texts(rows().map(|row| row.name.as_str()))
                    .list(rows().map(|row| row.created_at.as_micros()))
                    .long_texts(rows().map(|row| row.id.as_str())),
            );
        }
        if let Some(before) = self.replies_before {
            all.push(Statement::new(PRUNE_REPLIES).value(before.as_micros()));
        }
        let (gone, kept) = split(&self.replies);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_REPLIES).texts(gone.iter().map(|key| key.as_str())));
        }
        if !kept.is_empty() {
            all.push(
                Statement::new(PUT_REPLIES)
                    .texts(kept.iter().map(|reply| reply.key.as_str()))
                    .texts(kept.iter().map(|reply| reply.request.as_str()))
                    .list(kept.iter().map(|reply| i32::from(reply.status)))
                    .texts(kept.iter().map(|reply| reply.body.as_str()))
                    .list(kept.iter().map(|reply| reply.expires_at.as_micros())),
            );
        }
    }
}

pub(super) const CLOSE: &str = "DELETE FROM interrupts USING unnest($1::TEXT[], $2::TEXT[]) AS gone (run, node)
    WHERE interrupts.run = gone.run AND interrupts.node = gone.node";
pub(super) const OPEN: &str =
    "INSERT INTO interrupts (run, node, tenant, workflow, interrupt_id, key, kind, data, requested_at, \
        expires_at, long_node)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], \
        $8::TEXT[], $9::BIGINT[], $10::BIGINT[], $11::TEXT[])
    ON CONFLICT (run, node) DO UPDATE SET tenant = excluded.tenant, workflow = excluded.workflow, \
        interrupt_id = excluded.interrupt_id, key = excluded.key, kind = excluded.kind, data = excluded.data, \
        requested_at = excluded.requested_at, expires_at = excluded.expires_at";

fn put_interrupts<'a>(open: &[&'a InterruptRow]) -> Statement<'a> {
    let rows = || open.iter().copied();
    Statement::new(OPEN)
        .texts(rows().map(|row| row.run.as_str()))
        .keys(rows().map(|row| row.node.as_str()))
        .texts(rows().map(|row| row.tenant.as_str()))
        .texts(rows().map(|row| row.workflow.as_str()))
        .texts(rows().map(|row| row.interrupt_id.as_str()))
        .texts(rows().map(|row| row.key.as_str()))
        .texts(rows().map(|row| row.kind.as_str()))
        .list(rows().map(|row| row.data.to_string()))
        .list(rows().map(|row| row.requested_at.as_micros()))
        .list(rows().map(|row| row.expires_at.map(Timestamp::as_micros)))
        .long_texts(rows().map(|row| row.node.as_str()))
}

pub(super) const PUT_BLOBS: &str = "INSERT INTO blobs (digest, bytes) SELECT * FROM unnest($1::TEXT[], $2::BYTEA[])
    ON CONFLICT (digest) DO NOTHING";
pub(super) const PUT_WORKFLOWS: &str = "INSERT INTO workflows (tenant, id, version, digest, name, created_at, long_id)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::TEXT[])
    ON CONFLICT (tenant, id, version) DO UPDATE SET digest = excluded.digest, name = excluded.name, \
        created_at = excluded.created_at";
pub(super) const PRUNE_REPLIES: &str = "DELETE FROM replies WHERE expires_at < $1";
pub(super) const DELETE_REPLIES: &str = "DELETE FROM replies WHERE key = ANY($1)";
pub(super) const PUT_REPLIES: &str = "INSERT INTO replies (key, request, status, body, expires_at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::INTEGER[], $4::TEXT[], $5::BIGINT[])
    ON CONFLICT (key) DO UPDATE SET request = excluded.request, status = excluded.status, body = excluded.body, \
        expires_at = excluded.expires_at";
