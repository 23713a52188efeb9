//! Which tools there are, for whom, and how they are shown.

use crate::support;

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolOutcome, ToolRequest, Transport};
use baton_model::{TenantId, ToolSpec};
use baton_tool::catalog::Source;
use baton_tool::egress::Guard;
use baton_tool::hooks::Held;
use baton_tool::http::{HttpClient, HttpFetch, HttpOptions, HttpRequest};
use baton_tool::{About, Aliases, Called, NoSecrets, Tool, ToolSet, ToolSetError, ToolSource, Toolbox, native};
use parking_lot::Mutex;
use serde_json::json;
use support::*;

/// Answers with its own mark.
struct Fixed {
    spec: ToolSpec,
    source: Source,
    mark: &'static str,
}

#[async_trait]
impl Tool for Fixed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        About { source: self.source, ..About::default() }
    }

    async fn call(&self, _: &ToolRequest) -> Called {
        Called::Done(ToolOutcome::ok(json!(self.mark)))
    }
}

fn tool(id: &str, tier: SafetyTier, scopes: &[&str], source: Source, mark: &'static str) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        id: id.to_owned(),
        description: format!("{id}, {mark}"),
        input_schema: json!({"type": "object"}),
        transport: Transport::Mcp,
        tier,
        outcome_policy: OutcomePolicy::Ask,
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        stub: None,
    };
    Arc::new(Fixed { spec, source, mark })
}

/// A server whose list changes.
struct Shop(Mutex<Vec<Arc<dyn Tool>>>);

impl ToolSource for Shop {
    fn name(&self) -> &str {
        "shop"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.lock().clone()
    }
}

fn mcp(name: &str) -> Arc<dyn Tool> {
    tool(&format!("mcp:shop.{name}"), SafetyTier::Write, &[], Source::Mcp, "shop")
}

fn ids(toolbox: &Toolbox, tenant: &str, allow: &[&str]) -> Vec<String> {
    let allow: Vec<_> = allow.iter().map(|entry| (*entry).to_owned()).collect();
    toolbox.offered(&TenantId::new(tenant), &allow).into_iter().map(|spec| spec.id).collect()
}

#[test]
fn an_agent_is_offered_what_its_list_names_in_one_order() {
    let shop = Arc::new(Shop(Mutex::new(vec![mcp("z"), mcp("a")])));
    let set = native::tools().try_fold(ToolSet::default(), ToolSet::tool).unwrap().source(shop.clone()).unwrap();
    let toolbox = Toolbox::new(set);
    assert_eq!(ids(&toolbox, "acme", &[]), Vec::<String>::new(), "no list, no tools");
    assert_eq!(
        ids(&toolbox, "acme", &["openwop:memory.put", "mcp:shop", "mcp:shop.a", "openwop:memory.get"]),
        ["mcp:shop.a", "mcp:shop.z", "openwop:memory.get", "openwop:memory.put"]
    );
    for nothing in ["*", "openwop:*", "mcp:*", "mcp:", "mcp:sho", "mcp:shop.", "openwop:memory", "mcp:shop.a.b"] {
        assert_eq!(ids(&toolbox, "acme", &[nothing]), Vec::<String>::new(), "{nothing}");
    }
    shop.0.lock().push(mcp("m"));
    assert_eq!(ids(&toolbox, "acme", &["mcp:shop"]), ["mcp:shop.a", "mcp:shop.m", "mcp:shop.z"]);
}

#[test]
fn names_of_public_packs_stand_for_tools_and_what_stands_for_nothing_is_told() {
    let fetch = tool("openwop:http.fetch", SafetyTier::Read, &[], Source::HostExtension, "fetch");
    let shop = Arc::new(Shop(Mutex::new(vec![mcp("find")])));
    let set = native::tools().try_fold(ToolSet::default(), ToolSet::tool).unwrap().tool(fetch).unwrap();
    let toolbox = Toolbox::new(set.source(shop.clone()).unwrap());
    let public = ["openwop:core.openwop.http.fetch", "openwop:core.rag.retriever-basic", "mcp:shop", "mcp:gone.x"];
    let list = public.map(str::to_owned);
    assert_eq!(ids(&toolbox, "acme", &public), ["mcp:shop.find", "openwop:http.fetch"]);
    assert_eq!(toolbox.unresolved(&"acme".into(), &list), ["openwop:core.rag.retriever-basic", "mcp:gone.x"]);
    let exact: Vec<_> = toolbox.offered_by_id(&"acme".into(), &list).into_iter().map(|spec| spec.id).collect();
    assert_eq!(exact, ["mcp:shop.find"], "runs that began earlier");
    // Both names of one tool are one tool, and a name that only looks like one is none.
    assert_eq!(ids(&toolbox, "acme", &["openwop:http.fetch", public[0]]), ["openwop:http.fetch"]);
    for none in ["core.openwop.http.fetch", "openwop:core.openwop.http.fetch ", "openwop:core.openwop.http.*"] {
        assert_eq!(ids(&toolbox, "acme", &[none]), Vec::<String>::new(), "{none}");
    }
    // The operator's names: one step, no circles, and never in front of a tool of that very name.
    let names = [
        ("openwop:core.rag.retriever-basic", "mcp:shop.find"),
        ("a:a", "a:b"),
        ("a:b", "a:a"),
        ("openwop:memory.get", "mcp:shop.find"),
    ];
    toolbox.rename(Aliases::default().with(names.map(|(name, tool)| (name.to_owned(), tool.to_owned()))));
    assert_eq!(ids(&toolbox, "acme", &[public[1]]), ["mcp:shop.find"]);
    assert_eq!(ids(&toolbox, "acme", &["a:a", "a:b"]), Vec::<String>::new());
    assert_eq!(ids(&toolbox, "acme", &["openwop:memory.get"]), ["openwop:memory.get"]);
    shop.0.lock().clear();
    assert_eq!(toolbox.unresolved(&"acme".into(), &list)[0], public[1], "its tool is gone, so it is missing again");
}

#[tokio::test]
async fn a_tenant_has_its_own_beside_what_is_shared() {
    let own = |mark| tool("vendor.x:t", SafetyTier::Read, &[], Source::Connector, mark);
    let toolbox = Toolbox::new(ToolSet::default().tool(own("shared")).unwrap());
    let clone = toolbox.clone();
    clone.give(&"acme".into(), ToolSet::default().tool(own("acme's")).unwrap());
    let call = async |tenant: &str| {
        let mut request = request("vendor.x:t", json!({}));
        request.tenant = tenant.into();
        value(toolbox.call(&request).await)
    };
    assert_eq!((call("acme").await, call("other").await), (json!("acme's"), json!("shared")));
    assert_eq!(toolbox.catalog(&"acme".into(), Held::All).len(), 1);
    clone.share(ToolSet::default());
    assert_eq!(
        fault(toolbox.call(&ToolRequest { tenant: "other".into(), ..request("vendor.x:t", json!({})) }).await).code,
        "not_found"
    );
    let outcome = done(toolbox.call(&request("vendor.x:t", json!({}))).await);
    assert!(outcome.duration_ms.is_some(), "how long it took is told");
}

#[test]
fn the_catalogue_shows_what_a_caller_may_use_in_a_closed_shape() {
    let client = HttpClient::new(HttpOptions::new(Guard::new(false), Arc::new(NoSecrets)));
    let set = native::tools().try_fold(ToolSet::default(), ToolSet::tool).unwrap();
    let set =
        set.tool(Arc::new(HttpFetch::new(client.clone()))).unwrap().tool(Arc::new(HttpRequest::new(client))).unwrap();
    let set = set.tool(tool("host:run", SafetyTier::Exec, &["x:run"], Source::HostExtension, "")).unwrap();
    let toolbox = Toolbox::new(set.source(Arc::new(Shop(Mutex::new(vec![mcp("a")])))).unwrap());
    let tenant = TenantId::new("acme");
    let held = ["memory:read".to_owned()];
    let shown: Vec<_> = toolbox.catalog(&tenant, Held::Only(&held)).into_iter().map(|tool| tool.tool_id).collect();
    assert_eq!(
        shown,
        [
            "mcp:shop.a",
            "openwop:envelope",
            "openwop:http.fetch",
            "openwop:http.request",
            "openwop:memory.get",
            "openwop:memory.list"
        ]
    );
    assert!(toolbox.describe(&tenant, Held::Only(&held), "host:run").is_none(), "like one that does not exist");
    assert!(toolbox.describe(&tenant, Held::Unknown, "openwop:memory.get").is_none());

    const MEMBERS: &[&str] = &[
        "toolId",
        "source",
        "safetyTier",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "auth",
        "egress",
        "approval",
        "replayPolicy",
        "costHint",
        "latencyHint",
    ];
    let all = toolbox.catalog(&tenant, Held::All);
    assert_eq!(all.len(), 11);
    for descriptor in &all {
        let shown = serde_json::to_value(descriptor).unwrap();
        assert!(shown.as_object().unwrap().keys().all(|member| MEMBERS.contains(&member.as_str())), "{shown}");
        assert!(descriptor.safety_tier != SafetyTier::Exec || descriptor.source == Source::HostExtension);
    }
    let describe = |id| serde_json::to_value(toolbox.describe(&tenant, Held::All, id).unwrap()).unwrap();
    let fetch = describe("openwop:http.fetch");
    assert_eq!(
        (&fetch["source"], &fetch["safetyTier"], &fetch["egress"]),
        (&json!("host-extension"), &json!("read"), &json!("safe-fetch"))
    );
    assert_eq!((&fetch["replayPolicy"], &fetch["approval"]), (&json!("idempotent"), &json!("never")));
    let request = describe("openwop:http.request");
    assert_eq!((&request["safetyTier"], &request["replayPolicy"]), (&json!("write"), &json!("non-deterministic")));
    let put = describe("openwop:memory.put");
    assert_eq!((&put["auth"], &put["egress"]), (&json!({"scopes": ["memory:write"]}), &json!("none")));
    let shop = describe("mcp:shop.a");
    assert_eq!((&shop["source"], &shop["safetyTier"]), (&json!("mcp"), &json!("write")));
}

#[test]
fn only_the_host_has_tools_that_run_anything() {
    let exec = || tool("mcp:shop.rm", SafetyTier::Exec, &[], Source::Mcp, "");
    assert_eq!(ToolSet::default().tool(exec()).err(), Some(ToolSetError::Exec("mcp:shop.rm".to_owned())));
    let toolbox = Toolbox::new(ToolSet::default().source(Arc::new(Shop(Mutex::new(vec![exec(), mcp("a")])))).unwrap());
    assert_eq!(ids(&toolbox, "acme", &["mcp:shop"]), ["mcp:shop.a"]);
    assert_eq!(toolbox.catalog(&"acme".into(), Held::All).len(), 1);
    let twice = ToolSet::default().tool(mcp("a")).unwrap().tool(mcp("a"));
    assert_eq!(twice.err(), Some(ToolSetError::Twice("mcp:shop.a".to_owned())));
}

#[test]
fn sources_are_read_as_they_are_written() {
    for word in ["node-pack", "workflow", "mcp", "connector", "host-extension"] {
        assert_eq!(serde_json::to_value(Source::read(word).unwrap()).unwrap(), json!(word));
    }
    assert_eq!(Source::read("other"), None);
}

/// Two lists together allow what each of them allows, whichever of them is the finer.
#[test]
fn two_lists_together_allow_what_both_do() {
    let list = |entries: &[&str]| -> Vec<String> { entries.iter().map(|entry| (*entry).to_owned()).collect() };
    for (one, other, both) in [
        (list(&["mcp:a.x", "mcp:a.y"]), list(&["mcp:a.y", "mcp:b"]), list(&["mcp:a.y"])),
        (list(&["mcp:a"]), list(&["mcp:a.y", "mcp:b.z"]), list(&["mcp:a.y"])),
        (list(&["mcp:a"]), list(&["mcp:a"]), list(&["mcp:a"])),
        (list(&["openwop:memory.put"]), list(&["openwop:memory", "*"]), list(&[])),
        (list(&[]), list(&["mcp:a"]), list(&[])),
    ] {
        assert_eq!(baton_tool::narrowed(&one, &other), both, "{one:?} and {other:?}");
        assert_eq!(baton_tool::narrowed(&other, &one), both, "{other:?} and {one:?}");
    }
}

/// Fails after a minute.
struct Late(ToolSpec);

#[async_trait]
impl Tool for Late {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &ToolRequest) -> Called {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        Called::Done(ToolOutcome::failed("broke", "It did."))
    }
}

/// How long a call took is written to the log. By a clock that nobody could hold, no log would ever be made twice.
#[tokio::test(start_paused = true)]
async fn a_call_is_measured_in_the_time_of_the_scheduler() {
    let spec = tool("late", SafetyTier::Write, &[], Source::Workflow, "").spec().clone();
    let toolbox = Toolbox::new(ToolSet::default().tool(Arc::new(Late(spec))).unwrap());
    let outcome = done(toolbox.call(&request("late", json!({}))).await);
    assert_eq!(outcome.duration_ms, Some(60_000));
}
