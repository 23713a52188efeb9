//! Servers that are mute, dead, flapping or too loud, over a pair of pipes. Time stands still while anything happens, so
//! that what passed is what somebody waited.

use crate::support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use baton_model::ConnectionState;
use baton_model::tool::ToolRequest;
use baton_tool::mcp::{InProcess, McpServer, McpSettings, McpStatus, Stream};
use baton_tool::{Called, SecretTable, ToolSet, ToolSource as _, Toolbox};
use serde_json::{Value, json};
use support::*;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Speaks an older revision by the book, but for what it is told to do otherwise.
#[derive(Default)]
struct Scripted {
    /// Takes everything and answers nothing.
    mute: AtomicBool,
    /// Answers calls of tools with silence, but for those that say `please`.
    deaf_to_calls: bool,
    /// Says everything twice.
    twice: bool,
    /// Sends this many notifications that its list changed, once it was listed.
    notifications: usize,
    /// Does so after every list.
    restless: bool,
    /// Answers no list after the first.
    lists_once: bool,
    /// What it lists, by the number of the list and of the page, if not just `t`.
    page: Option<fn(usize, usize) -> Value>,
    /// Closes the connection once it was listed.
    flaps: bool,
    opened: AtomicUsize,
    lists: AtomicUsize,
    calls: AtomicUsize,
    listed_again: Notify,
}

struct Opener(Arc<Scripted>);

#[async_trait]
impl InProcess for Opener {
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(speak(Arc::clone(&self.0), theirs));
        Ok(Box::new(ours))
    }
}

async fn speak(script: Arc<Scripted>, stream: DuplexStream) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if script.mute.load(Ordering::SeqCst) {
            continue;
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "scripted", "version": "0"},
            }),
            "tools/list" => {
                let before = script.lists.fetch_add(1, Ordering::SeqCst);
                if before > 0 {
                    script.listed_again.notify_one();
                }
                if before > 0 && script.lists_once {
                    continue;
                }
                let page = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
                let tools = || json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]});
                script.page.map_or_else(tools, |listed| listed(before, page))
            }
            "tools/call" => {
                script.calls.fetch_add(1, Ordering::SeqCst);
                if script.deaf_to_calls && message["params"]["arguments"]["please"] != true {
                    continue;
                }
                json!({"content": [{"type": "text", "text": "done"}]})
            }
            _ => continue,
        };
        let mut said = format!("{}\n", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        if script.twice {
            said = said.repeat(2);
        }
        if write.write_all(said.as_bytes()).await.is_err() {
            return;
        }
        if message["method"] == "tools/list" && (script.restless || script.lists.load(Ordering::SeqCst) == 1) {
            let changed = format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            for _ in 0..script.notifications {
                if write.write_all(changed.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
        if message["method"] == "tools/list" && script.flaps {
            return;
        }
    }
}

/// Not connected yet when this returns.
fn start(name: &str, script: &Arc<Scripted>) -> Arc<McpServer> {
    let settings: McpSettings = serde_json::from_value(json!({"revision": "2025-06-18"})).unwrap();
    let secrets = Arc::new(SecretTable::default());
    McpServer::in_process(name, settings, secrets, Arc::new(Opener(Arc::clone(script)))).unwrap()
}

fn toolbox(servers: &[&Arc<McpServer>]) -> Toolbox {
    let set = servers.iter().try_fold(ToolSet::default(), |set, server| set.source(Arc::clone(server) as _));
    Toolbox::new(set.unwrap())
}

fn mute() -> Arc<Scripted> {
    Arc::new(Scripted { mute: AtomicBool::new(true), ..Scripted::default() })
}

#[tokio::test(start_paused = true)]
async fn a_thousand_mute_servers_hold_up_nobody() {
    let start_of_all = Instant::now();
    let mute = mute();
    let names: Vec<String> = (0..1000).map(|n| format!("mute-{n}")).collect();
    let servers: Vec<_> = names.iter().map(|name| start(name, &mute)).collect();
    let good = Arc::new(Scripted::default());
    let server = start("good", &good);
    let mut all: Vec<_> = servers.iter().collect();
    all.push(&server);
    let toolbox = toolbox(&all);
    assert_eq!(value(toolbox.call(&request("mcp:good.t", json!({}))).await), json!("done"));
    assert_eq!(start_of_all.elapsed(), Duration::ZERO, "nobody has waited");
    assert!(toolbox.pending(&"acme".into(), &["mcp:good".to_owned()]).is_none());
    let connections = toolbox.connections();
    let connecting = connections.iter().filter(|one| one.state == ConnectionState::Connecting).count();
    assert_eq!((connections.len(), connecting), (1001, 1000));
    // Nor does a stop wait for them, one after the other or at all.
    toolbox.close().await;
    assert!(start_of_all.elapsed() < Duration::from_secs(8), "{:?}", start_of_all.elapsed());
    assert!(servers.iter().all(|server| matches!(server.status(), McpStatus::Disconnected { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_a_server_that_was_just_started_is_waited_for_once() {
    let script = mute();
    let server = start("slow", &script);
    let toolbox = toolbox(&[&server]);
    let allowed = ["mcp:slow.t".to_owned()];
    assert!(toolbox.pending(&"acme".into(), &allowed).is_some());
    assert!(toolbox.pending(&"acme".into(), &["mcp:slower".to_owned(), "openwop:x".to_owned()]).is_none());
    let start = Instant::now();
    let refused = fault(toolbox.call(&request("mcp:slow.t", json!({}))).await);
    assert_eq!((refused.code.as_str(), refused.retryable), ("mcp_server_disconnected", Some(true)));
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    // From then on nobody waits for it: neither a call nor an agent that begins.
    let refused = fault(toolbox.call(&request("mcp:slow.t", json!({}))).await);
    assert!(refused.message.contains("it has not answered yet"), "{refused:?}");
    assert!(toolbox.pending(&"acme".into(), &allowed).is_none());
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    // Its tools appear when it does.
    assert!(toolbox.offered(&"acme".into(), &["mcp:slow".to_owned()]).is_empty());
    script.mute.store(false, Ordering::SeqCst);
    eventually_in_time(|| !toolbox.offered(&"acme".into(), &["mcp:slow".to_owned()]).is_empty()).await;
    assert_eq!(value(toolbox.call(&request("mcp:slow.t", json!({}))).await), json!("done"));
    // A call that has less time does not take more.
    let server = start_mute_again();
    let toolbox = Toolbox::new(ToolSet::default().source(server as _).unwrap());
    let start = Instant::now();
    let call = ToolRequest { timeout_ms: Some(500), ..request("mcp:again.t", json!({})) };
    assert_eq!(fault(toolbox.call(&call).await).code, "mcp_server_disconnected");
    assert_eq!(start.elapsed(), Duration::from_millis(500));
}

fn start_mute_again() -> Arc<McpServer> {
    start("again", &mute())
}

/// Looks once in a while of time that nobody has to sit through.
async fn eventually_in_time(mut ask: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if ask() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never happened");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_a_while_for_a_lost_connection_and_no_longer() {
    let script = Arc::new(Scripted::default());
    let server = start("shop", &script);
    let toolbox = toolbox(&[&server]);
    server.tried().await;
    assert_eq!(value(toolbox.call(&request("mcp:shop.t", json!({}))).await), json!("done"));
    // It goes mute: what was sent is unknown, and how long nobody knows; then it is cut and does not come back.
    script.mute.store(true, Ordering::SeqCst);
    let start = Instant::now();
    unknown(toolbox.call(&request("mcp:shop.t", json!({}))).await);
    assert_eq!(start.elapsed(), Duration::from_secs(60), "the longest that a call may take");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_call_has_a_bounded_number_of_them() {
    let script = Arc::new(Scripted { deaf_to_calls: true, ..Scripted::default() });
    let server = start("deaf", &script);
    let toolbox = toolbox(&[&server]);
    server.tried().await;
    let start = Instant::now();
    let calls = (0..2000).map(|_| {
        let toolbox = toolbox.clone();
        tokio::spawn(async move { toolbox.call(&request("mcp:deaf.t", json!({}))).await })
    });
    let (mut sent, mut waited, mut refused) = (0, 0, 0);
    for call in calls.collect::<Vec<_>>() {
        match call.await.unwrap() {
            Called::Unknown { .. } => sent += 1,
            Called::Done(outcome) => {
                let error = outcome.error.unwrap();
                assert_eq!((error.code.as_str(), error.retryable), ("mcp_server_disconnected", Some(true)));
                match error.message.contains("too many calls") {
                    true => refused += 1,
                    false => waited += 1,
                }
            }
        }
    }
    // Half of what there is room for: the other half is for other tenants.
    assert_eq!((sent, waited, refused), (64, 512, 1424));
    assert_eq!((start.elapsed(), script.calls.load(Ordering::SeqCst)), (Duration::from_secs(60), 64));
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_tenant_that_are_never_answered_hold_up_no_other_tenant() {
    let script = Arc::new(Scripted { deaf_to_calls: true, ..Scripted::default() });
    let server = start("deaf", &script);
    let toolbox = toolbox(&[&server]);
    server.tried().await;
    let mut crowd = tokio::task::JoinSet::new();
    for tenant in ["acme", "globex"] {
        for _ in 0..2000 {
            let toolbox = toolbox.clone();
            let call = ToolRequest { tenant: tenant.into(), ..request("mcp:deaf.t", json!({})) };
            crowd.spawn(async move { toolbox.call(&call).await });
        }
        // Who is refused is refused at once; all others wait from here on.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let start = Instant::now();
    for _ in 0..100 {
        let call = ToolRequest { tenant: "small".into(), ..request("mcp:deaf.t", json!({"please": true})) };
        assert_eq!(value(toolbox.call(&call).await), json!("done"));
    }
    assert_eq!(start.elapsed(), Duration::ZERO, "nobody has waited");
}

/// Once it is listed, asks and asks, and reads this little of the answers.
#[derive(Clone, Copy)]
enum Reading {
    Nothing,
    /// A byte now and then.
    Hardly(Duration),
    Everything,
}

struct Asker {
    reading: Reading,
    /// How often it asks.
    asks: usize,
    opened: AtomicUsize,
    asked: AtomicUsize,
    answered: AtomicUsize,
    /// The most tasks there were at a time.
    tasks: AtomicUsize,
}

impl Asker {
    fn start(reading: Reading, asks: usize) -> (Arc<Self>, Arc<McpServer>) {
        let zero = AtomicUsize::default;
        let asker = Self { reading, asks, opened: zero(), asked: zero(), answered: zero(), tasks: zero() };
        let asker = Arc::new(asker);
        let settings: McpSettings = serde_json::from_value(json!({"revision": "2025-06-18"})).unwrap();
        let opener = Arc::new(AskerOpener(Arc::clone(&asker)));
        let server = McpServer::in_process("asker", settings, Arc::new(SecretTable::default()), opener).unwrap();
        (asker, server)
    }

    async fn speak(self: Arc<Self>, stream: DuplexStream) -> io::Result<()> {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BufReader::new(read).lines();
        let introduction = json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "asker", "version": "0"},
        });
        for result in [introduction, Value::Null, json!({"tools": []})] {
            let message: Value = serde_json::from_str(&lines.next_line().await?.unwrap()).unwrap();
            if !result.is_null() {
                let said = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                write.write_all(format!("{said}\n").as_bytes()).await?;
            }
        }
        let reader = Arc::clone(&self);
        let reading = tokio::spawn(async move {
            let mut byte = [0];
            match reader.reading {
                Reading::Nothing => std::future::pending().await,
                Reading::Hardly(pause) => {
                    let mut input = lines.into_inner();
                    while let Ok(1) = input.get_mut().read(&mut byte).await {
                        tokio::time::sleep(pause).await;
                    }
                }
                Reading::Everything => {
                    while let Ok(Some(_)) = lines.next_line().await {
                        reader.answered.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        });
        for id in 0..self.asks {
            let asked = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
            let written = write.write_all(asked.as_bytes()).await;
            if written.is_err() {
                reading.abort();
                return written;
            }
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.tasks.fetch_max(tokio::runtime::Handle::current().metrics().num_alive_tasks(), Ordering::SeqCst);
        }
        let _ = reading.await;
        Ok(())
    }
}

struct AskerOpener(Arc<Asker>);

#[async_trait]
impl InProcess for AskerOpener {
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        // Only the first is like that.
        if self.0.opened.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        // Little room, so that it is soon filled.
        let (ours, theirs) = tokio::io::duplex(4096);
        tokio::spawn(Arc::clone(&self.0).speak(theirs));
        Ok(Box::new(ours))
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_and_reads_no_answer_is_not_read_either_and_is_cut() {
    for reading in [Reading::Nothing, Reading::Hardly(Duration::from_secs(29))] {
        let start = Instant::now();
        let (asker, server) = Asker::start(reading, 1_000_000);
        server.tried().await;
        assert!(matches!(server.status(), McpStatus::Connected { .. }), "{:?}", server.status());
        eventually_in_time(|| asker.opened.load(Ordering::SeqCst) > 1).await;
        let (asked, tasks) = (asker.asked.load(Ordering::SeqCst), asker.tasks.load(Ordering::SeqCst));
        assert!(asked < 2000, "{asked} questions were taken");
        assert!(tasks < 1000, "{tasks} tasks at a time");
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_much_and_reads_is_answered() {
    let (asker, server) = Asker::start(Reading::Everything, 20_000);
    server.tried().await;
    eventually_in_time(|| asker.answered.load(Ordering::SeqCst) == 20_000).await;
    assert_eq!(asker.opened.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flapping_server_is_tried_ever_more_slowly() {
    let script = Arc::new(Scripted { flaps: true, ..Scripted::default() });
    let server = start("flap", &script);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let opened = script.opened.load(Ordering::SeqCst);
    assert!((50..100).contains(&opened), "{opened} connections in an hour");
    let shown = server.connection().unwrap();
    assert!(shown.failures > 40 && shown.reason.is_some(), "{shown:?}");
    assert_eq!(shown.tools, Some(1), "agents do not change with the weather");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_twice_counts_once() {
    let script = Arc::new(Scripted { twice: true, ..Scripted::default() });
    let server = start("shop", &script);
    let toolbox = toolbox(&[&server]);
    for _ in 0..10 {
        assert_eq!(value(toolbox.call(&request("mcp:shop.t", json!({}))).await), json!("done"));
    }
    assert_eq!((script.calls.load(Ordering::SeqCst), script.opened.load(Ordering::SeqCst)), (10, 1));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_notifications_costs_few_lists_and_no_call() {
    let script = Arc::new(Scripted { notifications: 50_000, ..Scripted::default() });
    let server = start("loud", &script);
    let toolbox = toolbox(&[&server]);
    server.tried().await;
    let start = Instant::now();
    assert_eq!(value(toolbox.call(&request("mcp:loud.t", json!({}))).await), json!("done"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lists = script.lists.load(Ordering::SeqCst);
    // Ten thousand messages a second are read; a list is asked for five times a second while they arrive.
    assert!((2..=40).contains(&lists), "{lists} lists in {:?}", start.elapsed());
    assert_eq!(script.opened.load(Ordering::SeqCst), 1);
}

fn usable(names: std::ops::Range<usize>) -> Vec<Value> {
    names.map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}})).collect()
}

fn unusable(name: &str, times: usize) -> Vec<Value> {
    vec![json!({"name": name, "inputSchema": {"type": "array"}}); times]
}

const CANARY: &str = "canary-5eed5eed";

/// Lists these pages, and says what is left out and what was warned of.
async fn listing(page: fn(usize, usize) -> Value) -> (Arc<Scripted>, Arc<McpServer>, Vec<String>) {
    let (warnings, _collecting) = Warnings::collect();
    let script = Arc::new(Scripted { page: Some(page), ..Scripted::default() });
    let settings: McpSettings = serde_json::from_value(json!({"revision": "2025-06-18"})).unwrap();
    let secrets = Arc::new(SecretTable::default().with("TOKEN", CANARY, [], None));
    let server = McpServer::in_process("list", settings, secrets, Arc::new(Opener(Arc::clone(&script)))).unwrap();
    server.tried().await;
    (script, server, warnings.all())
}

#[tokio::test(start_paused = true)]
async fn a_list_of_unusable_tools_is_one_warning_without_secrets() {
    let (_, server, warnings) = listing(|_, page| {
        let name = format!("{CANARY}\n{}", "x".repeat(100_000));
        let mut tools = unusable(&name, 1);
        tools.extend(unusable("other", 10_000));
        tools.extend(usable(page..page + 1));
        json!({"tools": tools, "nextCursor": if page < 2 { json!((page + 1).to_string()) } else { Value::Null }})
    })
    .await;
    assert!(matches!(server.status(), McpStatus::Connected { .. }), "{:?}", server.status());
    let shown = server.connection().unwrap();
    let left_out = shown.left_out.unwrap();
    assert_eq!((shown.tools, server.tools().len()), (Some(3), 3));
    assert!(left_out.starts_with("30003 tools are left out, the first of them `[REDACTED:TOKEN] xxx"), "{left_out}");
    assert!(
        left_out.len() < 300
            && left_out.ends_with("its name has other characters than letters, digits and _ - . /, or too many")
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&left_out) && !warnings[0].contains(CANARY), "{warnings:?}");
}

/// One tool that is none costs that tool only: its schema is nothing, a text, or too large; or it is no tool at all.
#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_read_costs_that_tool_only() {
    let (_, server, warnings) = listing(|_, page| {
        let large = json!({"type": "object", "description": "x".repeat(100_000)});
        let mut tools = vec![json!({"name": "null", "inputSchema": null})];
        tools.extend(usable(page..page + 1));
        tools.push(json!({"name": "text", "inputSchema": "none"}));
        tools.push(json!({"name": "large", "inputSchema": large}));
        tools.push(json!("no tool"));
        tools.push(json!({"inputSchema": {"type": "object"}}));
        json!({"tools": tools, "nextCursor": if page == 0 { json!("1") } else { Value::Null }})
    })
    .await;
    assert!(matches!(server.status(), McpStatus::Connected { .. }), "{:?}", server.status());
    let left_out = server.connection().unwrap().left_out.unwrap();
    assert_eq!(server.tools().len(), 2, "one on each page: {left_out}");
    let told = "10 tools are left out, the first of them `null`: its description or input schema cannot be read";
    assert_eq!(left_out, told);
    assert!(warnings.len() == 1 && warnings[0].contains(told), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_long_is_cut_and_says_so_once() {
    let (script, server, warnings) =
        listing(|_, page| json!({"tools": usable(page * 100..page * 100 + 100), "nextCursor": (page + 1).to_string()}))
            .await;
    assert_eq!((server.tools().len(), script.lists.load(Ordering::SeqCst)), (256, 3));
    let left_out = "it lists more than 256 tools, and the rest is left out";
    assert_eq!(server.connection().unwrap().left_out.as_deref(), Some(left_out));
    assert!(warnings.len() == 1 && warnings[0].contains(left_out), "{warnings:?}");
    // A list without an end, of next to nothing.
    let (script, server, warnings) =
        listing(|_, page| json!({"tools": usable(page..page + 1), "nextCursor": (page + 1).to_string()})).await;
    assert_eq!((server.tools().len(), script.lists.load(Ordering::SeqCst)), (64, 64));
    let left_out = "its list has more than 64 pages, and the rest is left out";
    assert_eq!(server.connection().unwrap().left_out.as_deref(), Some(left_out));
    assert!(warnings.len() == 1 && warnings[0].contains(left_out), "{warnings:?}");
    // Nothing is said of one that just fits.
    let (_, server, warnings) = listing(|_, _| json!({"tools": usable(0..256)})).await;
    assert_eq!((server.tools().len(), server.connection().unwrap().left_out, warnings.len()), (256, None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changes_all_the_time_is_warned_of_now_and_then() {
    let (warnings, _collecting) = Warnings::collect();
    let page: fn(usize, usize) -> Value = |list, _| json!({"tools": unusable(&format!("u{list}"), 1)});
    let script = Arc::new(Scripted { notifications: 1, restless: true, page: Some(page), ..Scripted::default() });
    let server = start("list", &script);
    server.tried().await;
    eventually_in_time(|| script.lists.load(Ordering::SeqCst) >= 20).await;
    assert_eq!(warnings.all().len(), 1, "{:?}", warnings.all());
    let shown = server.connection().unwrap().left_out.unwrap();
    assert!(!shown.contains("`u0`"), "what is shown is current: {shown}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_comes_keeps_nobody_from_stopping() {
    let script = Arc::new(Scripted { notifications: 1, lists_once: true, ..Scripted::default() });
    let server = start("slow", &script);
    let toolbox = toolbox(&[&server]);
    server.tried().await;
    script.listed_again.notified().await;
    // Calls go on meanwhile.
    assert_eq!(value(toolbox.call(&request("mcp:slow.t", json!({}))).await), json!("done"));
    let start = Instant::now();
    server.close().await;
    assert!(matches!(server.status(), McpStatus::Disconnected { .. }), "{:?}", server.status());
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}
