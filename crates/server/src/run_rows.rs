//! Runs as every list of them shows them: the page that was asked for, and the stream of what changes.

use std::collections::HashMap;

use baton_api::{NewerFields, RunListError, RunListItem};
use baton_model::{Digest, ForkedFrom, TenantId};
use baton_runtime::Host;
use baton_store::RunRow;
use serde_json::value::RawValue;

use crate::error::ApiError;

fn item(row: RunRow, versions: &HashMap<Digest, u32>) -> RunListItem {
    RunListItem {
        run_id: row.id,
        workflow_id: row.workflow,
        workflow_version: versions.get(&row.digest).copied(),
        workflow_digest: Some(row.digest),
        status: row.status,
        created_at: row.created_at,
        updated_at: row.updated_at,
        current_node_id: row.current_node,
        parent_run_id: row.parent,
        root_run_id: row.root,
        tags: row.tags,
        error: row.error_code.map(|code| RunListError { code }),
        events: row.next_seq,
        forked_from: row.origin.as_ref().map(ForkedFrom::from),
        // Kept as JSON, shown as it lies there.
        summary: row.summary.and_then(|text| RawValue::from_string(text.as_ref().to_owned()).ok()),
        rest: NewerFields::default(),
    }
}

pub(crate) async fn items(host: &Host, tenant: &TenantId, rows: Vec<RunRow>) -> Result<Vec<RunListItem>, ApiError> {
    let versions = host.version_numbers(tenant, &rows).await?;
    Ok(rows.into_iter().map(|row| item(row, &versions)).collect())
}
