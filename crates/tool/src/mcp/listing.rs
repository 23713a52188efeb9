//! What a server has, asked for once and again when it says that it changed. In a task of its own: whatever it waits
//! for, somebody else notices meanwhile that the connection is gone.

use std::sync::Arc;
use std::time::Duration;

use baton_model::{Secret, redact};
use rmcp::model::{
    ClientRequest, CustomResult, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::Subscription;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::handle::ServerHandle;
use super::tool::McpTool;

/// The list is not asked for again sooner than this, however often a server says it changed.
const BETWEEN_LISTS: Duration = Duration::from_millis(200);
/// How long a server may take to list its tools again, or to take a subscription.
const ANSWER: Duration = Duration::from_secs(30);
/// More than a model can choose from.
const MAX_TOOLS: usize = 256;
/// A list in more pages than this has no end.
const MAX_PAGES: usize = 64;
/// How much of a name is looked at, and how much is shown. No usable name is longer than 128.
const NAME_BYTES: usize = 1024;
const NAME_CHARS: usize = 64;

/// Keeps the tools current for as long as the connection lasts: each new list goes to `update`, or nothing if it could not
/// be had. Never ends by itself.
pub(super) async fn keep(
    server: Arc<ServerHandle>,
    peer: Peer<RoleClient>,
    revision: ProtocolVersion,
    changed: Arc<Notify>,
    update: impl Fn(Option<Listed>),
) -> std::convert::Infallible {
    let mut news = subscribe(&peer, &revision).await;
    loop {
        tokio::select! {
            () = changed.notified() => {}
            heard = next(&mut news) => if heard.is_none() {
                news = None;
                continue;
            },
        }
        sleep(BETWEEN_LISTS).await;
        update(timeout(ANSWER, list(&server, &peer)).await.ok().flatten());
    }
}

/// What a server has.
#[derive(Default)]
pub(super) struct Listed {
    /// As far as it can be offered.
    pub(super) tools: Vec<Arc<McpTool>>,
    /// How many cannot, and the first of them: its name, and why not.
    unusable: usize,
    first: Option<(String, &'static str)>,
    /// There is more than is looked at.
    cut: Option<String>,
}

impl Listed {
    fn add(&mut self, server: &Arc<ServerHandle>, listed: rmcp::model::Tool) {
        // Only the first one's is told, so that a list costs one copy of a name.
        let name = self.first.is_none().then(|| listed.name.clone());
        match McpTool::new(server, listed) {
            Ok(tool) if self.tools.len() < MAX_TOOLS => self.tools.push(Arc::new(tool)),
            Ok(_) => self.cut = Some(format!("it lists more than {MAX_TOOLS} tools, and the rest is left out")),
            Err(problem) => {
                self.unusable += 1;
                self.first = self.first.take().or_else(|| Some((shown(&name?, &server.secrets()), problem)));
            }
        }
    }

    /// A tool whose description is none.
    fn misshapen(&mut self, server: &Arc<ServerHandle>, name: &str) {
        self.unusable += 1;
        let told = || (shown(name, &server.secrets()), "its description or input schema cannot be read");
        self.first = self.first.take().or_else(|| Some(told()));
    }

    /// What is not offered and why, in one line however much it is.
    pub(super) fn left_out(&self) -> Option<String> {
        let unusable = self.first.as_ref().map(|(name, problem)| match self.unusable {
            1 => format!("the tool `{name}` is left out: {problem}"),
            many => format!("{many} tools are left out, the first of them `{name}`: {problem}"),
        });
        let all: Vec<String> = unusable.into_iter().chain(self.cut.clone()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// A name that a server made up, fit to be shown.
fn shown(name: &str, secrets: &[Secret]) -> String {
    let read = &name[..name.floor_char_boundary(NAME_BYTES)];
    // The end of a name that was cut may be the beginning of a secret.
    let whole = if read.len() < name.len() { &read[..baton_model::settled(read, secrets)] } else { read };
    let clean = redact(whole, secrets);
    let mut shown: String = clean.chars().take(NAME_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if read.len() < name.len() || clean.chars().nth(NAME_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// What the server has, or `None` if it does not say.
pub(super) async fn list(server: &Arc<ServerHandle>, peer: &Peer<RoleClient>) -> Option<Listed> {
    let mut all = Listed::default();
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Some(all);
    }
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = page(peer, PaginatedRequestParams::default().with_cursor(cursor)).await?;
        for listed in page.tools {
            match listed {
                Ok(listed) => all.add(server, *listed),
                Err(name) => all.misshapen(server, &name),
            }
            if all.cut.is_some() {
                return Some(all);
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Some(all);
        }
    }
    all.cut = Some(format!("its list has more than {MAX_PAGES} pages, and the rest is left out"));
    Some(all)
}

/// One page of a list: each tool, or the name of one that cannot be read.
struct ListPage {
    tools: Vec<Result<Box<rmcp::model::Tool>, String>>,
    next: Option<String>,
}

/// Asks for a page. One tool that is none does not spoil the others, so a page that does not read as a whole is read tool by
/// tool.
async fn page(peer: &Peer<RoleClient>, params: PaginatedRequestParams) -> Option<ListPage> {
    match peer.list_tools(Some(params.clone())).await {
        Ok(ListToolsResult { tools, next_cursor, .. }) => {
            Some(ListPage { tools: tools.into_iter().map(|tool| Ok(Box::new(tool))).collect(), next: next_cursor })
        }
        Err(ServiceError::UnexpectedResponse) => {
            let request =
                ListToolsRequest { method: Default::default(), params: Some(params), extensions: Default::default() };
            match peer.send_request(ClientRequest::ListToolsRequest(request)).await.ok()? {
                ServerResult::CustomResult(CustomResult(said)) => one_by_one(&said),
                _ => None,
            }
        }
        Err(_) => None,
    }
}

fn one_by_one(said: &Value) -> Option<ListPage> {
    let read = |tool: &Value| {
        let name = || tool.get("name").and_then(Value::as_str).unwrap_or("(without a name)").to_owned();
        serde_json::from_value(tool.clone()).map(Box::new).map_err(|_| name())
    };
    let next = said.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Some(ListPage { tools: said.get("tools")?.as_array()?.iter().map(read).collect(), next })
}

/// Newer servers say that their list changed only to whoever asked to be told.
async fn subscribe(peer: &Peer<RoleClient>, revision: &ProtocolVersion) -> Option<Subscription> {
    let tells = peer.peer_info()?.capabilities.tools.as_ref()?.list_changed == Some(true);
    if revision.has_initialize() || !tells {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    timeout(ANSWER, peer.listen(filter)).await.ok()?.ok()
}

/// The next news, or `None` if there will be no more. For ever silent without a subscription.
async fn next(news: &mut Option<Subscription>) -> Option<()> {
    match news {
        Some(news) => news.next().await.ok().flatten().map(|_| ()),
        None => std::future::pending().await,
    }
}
