//! Runs on their way to another host and back (host extension). Both ways are streams: neither the file nor its answer
//! is held here.

use std::io;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_api::ImportedRun;
use baton_model::{RunId, code};
use baton_runtime::{Export, Import, Imported};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::app::App;
use crate::auth::scope::{
    AuditRead, HostOperate, MemoryRead, MemoryWrite, RunsCreate, RunsRead, WorkflowsWrite, WorkspaceRead,
    WorkspaceWrite,
};
use crate::auth::{Allowed, Unasked};
use crate::error::ApiError;
use crate::path::Ids;
use crate::reply::Reply;

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// How long the next piece of a file may take to arrive.
const NEXT_PIECE: Duration = Duration::from_secs(30);
/// How long all of it may take.
const WHOLE_FILE: Duration = Duration::from_secs(15 * 60);
/// How much of a file that is refused is read before the answer: most clients send all of it before they read.
const DRAINED: usize = 64 * 1024 * 1024;

type Exporting = (RunsRead, AuditRead, MemoryRead, WorkspaceRead);
/// Within the tenant; an operator's scope may come on top.
type Importing = (RunsCreate, WorkflowsWrite, MemoryWrite, WorkspaceWrite);

fn shown(imported: Imported) -> ImportedRun {
    let Imported { run_id, holds, new_runs, already_here } = imported;
    ImportedRun {
        run_id,
        already_here,
        new_runs,
        runs: holds.runs,
        records: holds.records,
        definitions: holds.definitions,
        ledgers: holds.ledgers,
        changes: holds.changes,
        annotations: holds.annotations,
    }
}

/// An ended run with everything it takes to read, fork and replay it elsewhere (host extension). The file holds what is
/// private to the host, and the memory and files that the runs used: the key needs `runs:read`, `audit:read`,
/// `memory:read` and `workspace:read`. Without its footer it is not whole.
#[utoipa::path(get, path = "/v1/host/baton/runs/{runId}/export", tag = "runs",
    params(("runId" = String, Path)),
    responses((status = 200, description = "JSON lines", content_type = "application/x-ndjson", body = String),
        (status = 404, description = "No such run", body = baton_api::ErrorBody),
        (status = 409, description = "Something of the tree has not ended, or this is not its top",
            body = baton_api::ErrorBody),
        (status = 410, description = "It was pruned", body = baton_api::ErrorBody)))]
pub(crate) async fn export(
    State(app): State<App>,
    who: Allowed<Exporting>,
    Ids(run): Ids<String>,
) -> Result<Response, ApiError> {
    let run = RunId::new(run);
    let export = app.host.export(&who.tenant, &run).await?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, NDJSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{run}.jsonl\"")) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok((headers, Body::from_stream(pages(app, export))).into_response())
}

/// A failure ends the response in the middle, so that nobody takes it for whole.
fn pages(app: App, export: Export) -> impl futures_util::Stream<Item = io::Result<Bytes>> {
    futures_util::stream::unfold(Some((app, export)), |state| async move {
        let (app, mut export) = state?;
        let next = tokio::select! {
            next = export.next() => next,
            () = app.shutdown.cancelled() => return Some((Err(io::Error::other("the host is shutting down")), None)),
        };
        match next {
            Ok(page) => page.map(|page| (Ok(Bytes::from(page)), Some((app, export)))),
            Err(error) => {
                tracing::warn!(%error, "an export broke off");
                Some((Err(io::Error::other("the export broke off")), None))
            }
        }
    })
}

/// Take in what another host has exported (host extension). The runs belong to the key's tenant, and keep their ids, which
/// are the whole host's: the key needs the scopes to write runs, workflows, memory and files, and `host:operate` where
/// others may have runs here. All of it comes in, or nothing; taking the same file in again changes nothing.
#[utoipa::path(post, path = "/v1/host/baton/runs/import", tag = "runs",
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 201, description = "Taken in, and durable", body = ImportedRun),
        (status = 200, description = "The host had all of it", body = ImportedRun),
        (status = 400, description = "The file is cut, was changed, or is none; `line` says where",
            body = baton_api::ErrorBody),
        (status = 409, description = "A run, a memory scope or a workspace of this name is here and is another one",
            body = baton_api::ErrorBody),
        (status = 413, description = "Too large", body = baton_api::ErrorBody),
        (status = 503, description = "Another import is under way", body = baton_api::ErrorBody)))]
pub(crate) async fn import(State(app): State<App>, who: Unasked<Importing>, body: Body) -> Result<Response, ApiError> {
    // Ids of runs are the whole store's, and a file brings its own: that one is taken says that somebody has it. So where
    // there are several tenants, or may be, only whoever operates the host brings ids.
    let mut frames = body.into_data_stream();
    let others = app.keys.has_several_tenants() || app.host.shares_its_store();
    let allowed = who.allow();
    let who = match allowed.and_then(|who| if others { who.also::<HostOperate>().map(|()| who) } else { Ok(who) }) {
        Ok(who) => who,
        Err(refused) => {
            drain(frames).await;
            return Err(refused);
        }
    };
    let taken = match app.host.import(&who) {
        Ok(import) => match tokio::time::timeout(WHOLE_FILE, receive(&mut frames, import)).await {
            Ok(taken) => taken,
            Err(_) => Err(too_slow()),
        },
        Err(error) => Err(error.into()),
    };
    let finished = match taken {
        Ok(import) => import.finish().await.map_err(ApiError::from),
        Err(error) => {
            drain(frames).await;
            Err(error)
        }
    };
    // A refusal quotes what it did not understand.
    let imported = finished.map_err(|error| error.without(&app.host.options().secrets))?;
    let status = if imported.already_here { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Reply::json(status, &shown(imported)).into_response())
}

async fn receive(frames: &mut BodyDataStream, mut import: Import) -> Result<Import, ApiError> {
    loop {
        match tokio::time::timeout(NEXT_PIECE, frames.next()).await {
            Ok(None) => return Ok(import),
            Ok(Some(Ok(piece))) => import.take(&piece).await?,
            Ok(Some(Err(_))) => return Err(ApiError::invalid("The request body ended early.")),
            Err(_) => return Err(too_slow()),
        }
    }
}

async fn drain(mut frames: BodyDataStream) {
    let mut left = DRAINED;
    while let Ok(Some(Ok(piece))) = tokio::time::timeout(NEXT_PIECE, frames.next()).await
        && left > piece.len()
    {
        left -= piece.len();
    }
}

fn too_slow() -> ApiError {
    let message = "The file did not arrive in time. Send it again.";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, code::REQUEST_TIMEOUT, message)
}
