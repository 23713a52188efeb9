//! The newest version of every template.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_agent::prompts::{Library, PromptKind, PromptTemplate, TemplateSource};
use serde::Serialize;
use utoipa::ToSchema;

use super::member_of;
use crate::app::App;
use crate::auth::AnyKey;
use crate::error::ApiError;
use crate::query::{Params, bad};
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptList {
    /// By library and id.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Arc<PromptTemplate>>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// What templates there are.
#[utoipa::path(get, path = "/v1/prompts", tag = "prompts",
    params(
        ("kind" = Option<String>, Query, description = "`system`, `user`, `few-shot` or `schema-hint`"),
        ("tag" = Option<String>, Query), ("modelClass" = Option<String>, Query),
        ("source" = Option<String>, Query, description = "`host`, `pack` or `user`"),
        ("limit" = Option<u64>, Query, description = "At most 200; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "What the page before said")),
    responses((status = 200, description = "The newest version of each", body = PromptList)))]
pub(crate) async fn list(State(app): State<App>, who: AnyKey, params: Params) -> Result<Response, ApiError> {
    params.only(&["kind", "tag", "modelClass", "source", "cursor", "limit", "workspaceId"])?;
    member_of(params.one("workspaceId")?)?;
    let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
    let filter = Filter::read(&params)?;
    let library = app.prompts(&who.tenant);
    let mut found = newest(&library)
        .filter(|(key, template)| filter.after.as_ref().is_none_or(|after| key > after) && filter.admits(template));
    let page: Vec<(String, Arc<PromptTemplate>)> = found.by_ref().take(limit).collect();
    let more = found.next().is_some();
    let next_cursor = page.last().filter(|_| more).map(|(key, _)| key.clone());
    let items = page.into_iter().map(|(_, template)| template).collect();
    Ok(Reply::ok(&PromptList { items, next_cursor }).into_response())
}

/// Each template once, in its newest version, under the place that a cursor names it by.
fn newest(library: &Library) -> impl Iterator<Item = (String, Arc<PromptTemplate>)> {
    // The library goes by library, id and version, so the last of each id is its newest.
    let mut newest: Vec<(String, Arc<PromptTemplate>)> = Vec::new();
    for (id, template) in library.iter() {
        let key = format!("{id}/{}", template.template_id);
        match newest.last_mut() {
            Some((last, newer)) if *last == key => *newer = Arc::clone(template),
            _ => newest.push((key, Arc::clone(template))),
        }
    }
    newest.sort_by(|(a, _), (b, _)| a.cmp(b));
    newest.into_iter()
}

struct Filter {
    kind: Option<PromptKind>,
    tag: Option<String>,
    model_class: Option<String>,
    source: Option<TemplateSource>,
    after: Option<String>,
}

impl Filter {
    fn read(params: &Params) -> Result<Self, ApiError> {
        let kind = match params.one("kind")? {
            None => None,
            Some(word) => {
                let kind = PromptKind::read(word);
                Some(kind.ok_or_else(|| bad("kind", "must be system, user, few-shot or schema-hint"))?)
            }
        };
        let source = match params.one("source")? {
            None => None,
            Some("host") => Some(TemplateSource::Host),
            Some("pack") => Some(TemplateSource::Pack),
            Some("user") => Some(TemplateSource::User),
            Some(_) => return Err(bad("source", "must be host, pack or user")),
        };
        let text = |name: &str| Ok::<_, ApiError>(params.one(name)?.map(str::to_owned));
        Ok(Self { kind, source, tag: text("tag")?, model_class: text("modelClass")?, after: text("cursor")? })
    }

    fn admits(&self, template: &PromptTemplate) -> bool {
        let class = template.model_hints.as_ref().and_then(|hints| hints.model_class.as_ref());
        self.kind.is_none_or(|kind| template.kind == kind)
            && self.tag.as_ref().is_none_or(|tag| template.tags.contains(tag))
            && self.model_class.as_ref().is_none_or(|wanted| class == Some(wanted))
            && self.source.is_none_or(|wanted| template.meta.as_ref().and_then(|meta| meta.source) == Some(wanted))
    }
}
