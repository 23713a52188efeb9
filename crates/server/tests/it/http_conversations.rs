//! Conversations over HTTP: one name is one dialogue, one turn at a time, for one tenant, and it can be taken up again from
//! the middle.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_model::{AgentCard, MemoryShape};
use baton_runtime::Host;
use baton_store::{Change, Commit, Item, Journal as _, MemoryStore, Meta, VersionedStoreId, Write};
use serde_json::{Value, json};
use support::agents::{EDITOR, Model, card, says, staffed};
use support::{OTHER, READER, Site, host_options};

const CHAT: &str = "/v1/host/baton/chat";
const LIST: &str = "/v1/host/baton/conversations";

struct Talk {
    site: Site,
    model: Arc<Model>,
    store: Arc<MemoryStore>,
}

impl Talk {
    async fn open() -> Self {
        Self::on(Arc::new(MemoryStore::new())).await
    }

    async fn on(store: Arc<MemoryStore>) -> Self {
        let mut options = host_options();
        let plain = card(EDITOR, "Chief Editor");
        let critic = card("vendor.acme.team.critic", "Critic");
        let model = staffed(&mut options, [plain, critic]);
        let host = Host::open(Arc::clone(&store) as _, options).await.unwrap();
        Self { site: Site::over(host, |_| {}), model, store }
    }

    async fn say(&self, conversation: &str, text: &str, answer: &str) -> String {
        self.model.program(vec![says_text(answer)]);
        let run = self.started(conversation, text).await;
        self.site.reach(&run, "completed").await;
        run
    }

    async fn started(&self, conversation: &str, text: &str) -> String {
        let body = json!({"text": format!("@editor {text}"), "conversationId": conversation});
        let answer = self.site.post(CHAT, body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["runId"].as_str().unwrap().to_owned()
    }

    /// What the model was told in its last call, without the system prompt.
    fn told(&self) -> Vec<(String, String)> {
        self.model.messages().into_iter().skip(1).collect()
    }
}

fn says_text(text: &str) -> baton_model::ModelReply {
    baton_model::ModelReply { content: text.to_owned(), ..says(&Value::Null) }
}

fn asked(text: &str) -> (String, String) {
    ("user".to_owned(), format!("<UNTRUSTED source=\"chat\">\n{text}\n</UNTRUSTED>"))
}

fn answered(text: &str) -> (String, String) {
    ("assistant".to_owned(), text.to_owned())
}

#[tokio::test]
async fn one_name_is_one_dialogue() {
    let talk = Talk::open().await;
    let first = talk.say("c", "I am called Ada.", "Hello, Ada.").await;
    talk.say("c", "Who am I?", "You are Ada.").await;
    assert_eq!(talk.told(), [asked("I am called Ada."), answered("Hello, Ada."), asked("Who am I?")]);
    talk.say("other", "Who am I?", "I do not know.").await;
    assert_eq!(talk.told(), [asked("Who am I?")], "another conversation");
    // Another agent is told what was said, and not that it said so itself.
    talk.model.program(vec![says_text("Fine.")]);
    let body = json!({"text": "@critic What do you say?", "conversationId": "c"});
    let run = talk.site.post(CHAT, body).await.json()["runId"].as_str().unwrap().to_owned();
    talk.site.reach(&run, "completed").await;
    let told = talk.told();
    assert_eq!((told.len(), told[1].0.as_str()), (5, "user"));
    assert!(told[1].1.starts_with(&format!("<UNTRUSTED source=\"agent\" name=\"{EDITOR}\">\nHello, Ada.")), "{told:?}");

    let list = talk.site.get(LIST).await.json();
    let names: Vec<_> = list["conversations"].as_array().unwrap().iter().map(|one| &one["conversationId"]).collect();
    assert_eq!(names, ["c", "other"]);
    assert_eq!(list["conversations"][0]["turns"], 3);
    let page = talk.site.get(&format!("{LIST}?limit=1")).await.json();
    assert_eq!((page["conversations"].as_array().unwrap().len(), &page["nextCursor"]), (1, &json!("c")));
    let page = talk.site.get(&format!("{LIST}?limit=1&cursor=c")).await.json();
    assert_eq!((&page["conversations"][0]["conversationId"], page.get("nextCursor")), (&json!("other"), None));
    let turns = talk.site.get(&format!("{LIST}/c?limit=2")).await.json();
    assert_eq!((turns["turns"].as_array().unwrap().len(), &turns["nextCursor"]), (2, &json!("2")));
    let rest = talk.site.get(&format!("{LIST}/c?limit=2&cursor=2")).await.json();
    let turn = &rest["turns"][0];
    assert_eq!((&turn["turn"], &turn["runId"], &turn["agentId"]), (&json!(1), &json!(first), &json!(EDITOR)));
    assert_eq!((&turn["asked"], &turn["answer"]), (&json!({"task": "I am called Ada."}), &json!("Hello, Ada.")));
    talk.site.get(&format!("{LIST}?limit=0")).await.refused(400, "validation_error");
}

/// The same over the ordinary door, for agents whose manifest wants it and for no others.
#[tokio::test]
async fn a_manifest_says_whether_an_agent_is_told() {
    for wants in [true, false] {
        let mut options = host_options();
        let memory = MemoryShape { conversation: wants, ..MemoryShape::default() };
        let model = staffed(&mut options, [AgentCard { memory, ..card(EDITOR, "Editor") }]);
        let site = Site::configured(|own| *own = options).await;
        for text in ["one", "two"] {
            model.program(vec![says_text("yes")]);
            let body = json!({"agentId": EDITOR, "inputs": {"task": text}, "conversationId": "c"});
            let run = site.post("/v1/runs", body).await.json()["runId"].as_str().unwrap().to_owned();
            site.reach(&run, "completed").await;
        }
        assert_eq!(model.messages().len(), if wants { 4 } else { 2 }, "{:?}", model.messages());
        let entry = site.get(&format!("/v1/agents/{EDITOR}")).await.json();
        assert_eq!(entry.get("memoryDegraded"), None, "{entry}");
        let both = json!({"agentId": EDITOR, "inputs": {}, "conversationId": "c", "scopeId": "s"});
        assert_eq!(site.post("/v1/runs", both).await.refused(400, "validation_error")["pointer"], "/conversationId");
    }
}

#[tokio::test]
async fn one_turn_at_a_time() {
    let talk = Talk::open().await;
    talk.model.muse("Let me see.", says_text("Seen."));
    let run = talk.started("c", "First.").await;
    talk.site.logged(&run, "agent.reasoning.delta").await;
    for _ in 0..2 {
        let again = talk.site.post(CHAT, json!({"text": "@editor Second.", "conversationId": "c"})).await;
        let details = again.refused(409, "run_already_active");
        assert_eq!((&details["activeRunId"], &details["conversationId"]), (&json!(run), &json!("c")));
    }
    talk.say("elsewhere", "Not held up.", "No.").await;
    talk.model.program(vec![says_text("Seen.")]);
    talk.model.answer();
    talk.site.reach(&run, "completed").await;
    talk.say("c", "Second.", "Yes.").await;
    assert_eq!(talk.told(), [asked("First."), answered("Seen."), asked("Second.")], "nothing of what was refused");
    assert_eq!(talk.site.get(LIST).await.json()["conversations"][0]["turns"], 2);
}

/// A hundred messages at the same moment: one of them begins, and every other is told which.
#[tokio::test]
async fn many_at_once_are_one() {
    let talk = Talk::open().await;
    talk.model.muse("Hm.", says_text("Well."));
    let say = |n: usize| talk.site.post(CHAT, json!({"text": format!("@editor {n}"), "conversationId": "c"}));
    let answers = futures_util::future::join_all((0..100).map(say)).await;
    let begun: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(begun.len(), 1);
    let run = begun[0].json()["runId"].clone();
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(refused.refused(409, "run_already_active")["activeRunId"], run);
    }
    talk.model.answer();
    talk.site.reach(run.as_str().unwrap(), "completed").await;
}

#[tokio::test]
async fn a_turn_that_fails_is_told_as_one_and_the_dialogue_goes_on() {
    let talk = Talk::open().await;
    talk.say("c", "One.", "First.").await;
    let refusal = baton_model::ModelReply { stop: baton_model::StopReason::Refusal, ..says_text("") };
    talk.model.program(vec![refusal]);
    let run = talk.started("c", "Two.").await;
    talk.site.reach(&run, "failed").await;
    // Noted, and its host died before the run began: it counts for nothing.
    let ledger = VersionedStoreId::workspace(&baton_model::TenantId::new("acme"), "conversation/c");
    let item = Item { content: json!({"run": "run_never"}).to_string(), expires_at: None, meta: Meta::default() };
    let change = Change { version: 3, key: "turn/3".to_owned(), at: talk.site.host.now(), run: None, item: Some(item) };
    let commit = Commit::new(talk.store.generation(), vec![Write::Change { ledger, change }]);
    talk.store.submit(commit).await.unwrap();
    let talk = Talk::on(Arc::clone(&talk.store)).await;
    talk.say("c", "Three.", "Third.").await;
    let told = talk.told();
    assert_eq!((told.len(), &told[0], &told[1], &told[3]), (4, &asked("One."), &answered("First."), &asked("Three.")));
    assert_eq!(told[2].1, format!("{}\n(This was not answered: its run has failed.)", asked("Two.").1));
    let turns = talk.site.get(&format!("{LIST}/c")).await.json();
    let shown: Vec<_> = turns["turns"].as_array().unwrap().iter().map(|turn| turn["status"].clone()).collect();
    assert_eq!(shown, [json!("completed"), Value::Null, json!("failed"), json!("completed")], "{turns}");
}

#[tokio::test]
async fn a_fork_in_the_middle_goes_its_own_way() {
    let talk = Talk::open().await;
    for n in 1..=3 {
        talk.say("c", &format!("{n}?"), &format!("{n}!")).await;
    }
    let fork = format!("{LIST}/c/fork");
    let made = talk.site.post(&fork, json!({"turn": 2, "conversationId": "d"})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!((&made.json()["conversationId"], &made.json()["turns"]), (&json!("d"), &json!(2)));
    talk.say("d", "Another way?", "Why not.").await;
    let before = [asked("1?"), answered("1!"), asked("2?"), answered("2!")];
    assert_eq!(talk.told(), [&before[..], &[asked("Another way?")]].concat());
    talk.say("c", "And here?", "As before.").await;
    assert_eq!(talk.told().len(), 7, "the source does not know of it: {:?}", talk.told());
    let turns = talk.site.get(&format!("{LIST}/d")).await.json();
    assert_eq!((turns["turns"].as_array().unwrap().len(), &turns["turns"][0]["turn"]), (3, &json!(3)));
    // A fork of a fork, under a name of the host's.
    let made = talk.site.post(&format!("{LIST}/d/fork"), json!({})).await.json();
    let name = made["conversationId"].as_str().unwrap();
    assert!(name.starts_with("conv_") && made["turns"] == 3, "{made}");
    talk.say(name, "Still there?", "Yes.").await;
    assert_eq!(talk.told().len(), 7);
    talk.site.post(&fork, json!({"conversationId": "d"})).await.refused(409, "run_conflict");
    talk.site.post(&fork, json!({"turn": 9})).await.refused(400, "validation_error");
    talk.site.post(&fork, json!({"turn": 0})).await.refused(400, "validation_error");
    talk.site.post(&format!("{LIST}/nobody/fork"), json!({})).await.refused(404, "not_found");
    let read_only = talk.site.send("POST", &fork, &[READER], "{}").await;
    read_only.refused(403, "forbidden");
}

#[tokio::test]
async fn another_tenants_dialogue_is_none_of_ones_own() {
    let talk = Talk::open().await;
    talk.say("c", "A secret.", "Noted.").await;
    let theirs = talk.site.send("GET", &format!("{LIST}/c"), &[OTHER], Body::empty()).await;
    let unknown = talk.site.send("GET", &format!("{LIST}/nobody"), &[OTHER], Body::empty()).await;
    assert_eq!(theirs.refused(404, "not_found"), unknown.refused(404, "not_found"));
    let list = talk.site.send("GET", LIST, &[OTHER], Body::empty()).await.json();
    assert_eq!(list["conversations"], json!([]));
    let fork = talk.site.send("POST", &format!("{LIST}/c/fork"), &[OTHER], "{}").await;
    fork.refused(404, "not_found");
    talk.model.program(vec![says_text("Who are you?")]);
    let body = json!({"text": "@editor What did I say?", "conversationId": "c"}).to_string();
    let answer = talk.site.send("POST", CHAT, &[OTHER, ("content-type", "application/json")], body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    let host = &talk.site;
    while host.send("GET", &format!("/v1/runs/{run}"), &[OTHER], Body::empty()).await.json()["status"] != "completed" {
        tokio::task::yield_now().await;
    }
    assert_eq!(talk.told(), [asked("What did I say?")]);
    assert_eq!(talk.site.send("GET", LIST, &[], Body::empty()).await.status, 401);
}

/// However long it gets, a prompt is bounded, and mostly it begins as the one before.
#[tokio::test]
async fn a_thousand_turns_cost_what_a_window_costs() {
    let talk = Talk::open().await;
    let (mut before, mut moves): (Vec<(String, String)>, usize) = (Vec::new(), 0);
    for n in 1..=1000 {
        talk.say("c", &format!("{n}?"), &format!("{n}!")).await;
        let told = talk.told();
        assert!(told.len() <= 2 * 64 + 1, "{n}: {}", told.len());
        assert_eq!(told.last(), Some(&asked(&format!("{n}?"))));
        moves += usize::from(!told.starts_with(&before));
        before = told;
    }
    assert_eq!(moves, (1000usize - 1 - 64).div_ceil(16), "the window moves once in sixteen turns");
    assert_eq!(talk.site.get(LIST).await.json()["conversations"][0]["turns"], 1000);
}
