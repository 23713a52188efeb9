//! The durable log of a run, filtered. What other test endpoints were only shown comes after it.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{RunId, TenantId};
use baton_runtime::{ErrorKind, EventLine};
use baton_server::endpoint::scope::RunsRead;
use baton_server::endpoint::{Allowed, ApiError, App, Ids, Params, Reply};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mode::Conformance;

/// Events that are read at once.
const PAGE: usize = 1024;

#[derive(Serialize)]
struct Events {
    events: Vec<Box<RawValue>>,
}

/// The events of a run that match every filter; an unknown run has none.
pub(super) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(run): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let run = RunId::new(run);
    let durable = read(&app, tenant, &run).await?;
    let shown = Conformance::of(&app.host)?
        .journal
        .of(tenant, run.as_str(), durable.len())
        .into_iter()
        .map(|event| event.to_string());
    let mut events = Vec::new();
    for body in durable.into_iter().map(|line| line.body).chain(shown) {
        if matches(&body, &params)? {
            events.extend(RawValue::from_string(body));
        }
    }
    Ok(Reply::ok(&Events { events }).into_response())
}

/// A run's whole log; empty for an unknown run.
pub(super) async fn read(app: &App, tenant: &TenantId, run: &RunId) -> Result<Vec<EventLine>, ApiError> {
    let mut lines: Vec<EventLine> = Vec::new();
    loop {
        let page = match app.host.events(tenant, run, lines.last().map(|line| line.seq), PAGE).await {
            Ok(page) => page,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(lines),
            Err(error) => return Err(error.into()),
        };
        let Some(last) = page.events.last().map(|line| line.seq) else { return Ok(lines) };
        lines.extend(page.events);
        if last + 1 >= page.next_seq {
            return Ok(lines);
        }
    }
}

/// How many events are on a run's log; none for an unknown run.
pub(super) async fn length(app: &App, tenant: &TenantId, run: &str) -> Result<usize, ApiError> {
    match app.host.events(tenant, &RunId::new(run), None, 1).await {
        Ok(page) => Ok(usize::try_from(page.next_seq).unwrap_or(usize::MAX)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn matches(body: &str, params: &Params) -> Result<bool, ApiError> {
    let event: Value = serde_json::from_str(body).unwrap_or_default();
    // What tests call the correlation id is what caused the event.
    let filters =
        [("type", "type"), ("nodeId", "nodeId"), ("causationId", "causationId"), ("correlationId", "causationId")];
    for (name, member) in filters {
        if params.one(name)?.is_some_and(|wanted| event[member] != wanted) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_conjunctive() {
        let body = r#"{"type":"node.started","nodeId":"a","sequence":1,"causationId":"c"}"#;
        let check = |query: &str| matches(body, &Params::parse(query)).unwrap();
        assert!(check("") && check("type=node.started") && check("type=node.started&nodeId=a"));
        assert!(!check("type=node.started&nodeId=b") && !check("causationId=x"));
        assert!(check("correlationId=c") && !check("correlationId=d"));
    }
}
