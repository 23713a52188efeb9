#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use baton_model::event::{
    BudgetReserved, InterruptRequested, InterruptRequestedFacts, InterruptResolved, InterruptResolvedFacts,
    NodeRetried, NodeRetriedFacts, ProviderUsage, ProviderUsageFacts,
};
use baton_model::{Digest, Fault, RunStatus, TenantId, Timestamp, WorkflowId};
use serde_json::json;

use super::*;
use crate::services::budgets::spending::LiveSpending;

fn row(run: &str, status: RunStatus) -> RunRow {
    RunRow {
        id: RunId::new(run),
        tenant: TenantId::new("t"),
        workflow: WorkflowId::new("w"),
        digest: Digest::of_bytes("w"),
        status,
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
        next_seq: 0,
        wake_at: None,
        busy: false,
        parent: None,
        root: None,
        scope: None,
        memory_scope: run.to_owned(),
        workspace_scope: "w".to_owned(),
        tags: Vec::new(),
        current_node: None,
        error_code: None,
        summary: None,
        pruned: None,
        origin: None,
        chain: baton_store::LogChain::default(),
    }
}

fn account(ceilings: serde_json::Value, on_exhaustion: OnExhaustion) -> Arc<Account> {
    let ceilings = serde_json::from_value(ceilings).unwrap();
    let budget = Budget { ceilings, on_exhaustion, threshold_percent: Some(50.0), ..Budget::default() };
    Arc::new(Account::new(RunId::new("r"), budget, Arc::default()))
}

fn usage(tokens: u64, usd: Option<f64>) -> Draft {
    let event = ProviderUsage {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        input_tokens: tokens,
        output_tokens: 0,
        total_tokens: tokens,
        cost_estimate_usd: usd,
        cache_hit: None,
        cache_read_tokens: None,
        cache_write_tokens: None,
        node_id: "n".into(),
        private: ProviderUsageFacts::default(),
    };
    Event::from(event).into()
}

fn retry() -> Draft {
    let private = NodeRetriedFacts { wake_at: Timestamp::default() };
    let (node_id, last_error) = ("n".into(), Fault::new("boom", "It broke."));
    Event::from(NodeRetried { node_id, attempt: 1, delay_ms: 0, last_error, private }).into()
}

fn asks(dimension: &str, wanted: u64) -> Draft {
    let data = json!({"contextType": "budget", "dimension": dimension, "wanted": wanted});
    let private = InterruptRequestedFacts { node_id: "n".into(), ..InterruptRequestedFacts::default() };
    let (kind, key) = ("approval".to_owned(), "k".to_owned());
    Event::from(InterruptRequested {
        kind,
        key,
        interrupt_id: None,
        data,
        resume_schema: None,
        timeout_ms: None,
        private,
    })
    .into()
}

fn answered(outcome: Outcome) -> Draft {
    let event = InterruptResolved {
        node_id: "n".into(),
        interrupt_id: "i".to_owned(),
        kind: "approval".to_owned(),
        resume_value: None,
        resolved_by: None,
        outcome,
        reason: None,
        private: InterruptResolvedFacts::default(),
    };
    Event::from(event).into()
}

fn extends(ceilings: serde_json::Value) -> Draft {
    let effective_budget = serde_json::from_value(ceilings).unwrap();
    Event::from(BudgetReserved { effective_budget, scope: Default::default() }).into()
}

/// A call that asks this much and whose answer would have this much room; a token costs a billionth of a dollar.
fn call(prompt: u64, room: u64) -> Estimate {
    Estimate { prompt_tokens: prompt, prompt_nanos: prompt, room, nanos_per_token: 1.0 }
}

fn granted(account: &Arc<Account>, estimate: Estimate) -> Reservation {
    match account.reserve(&estimate) {
        Answer::Granted(hold) => hold,
        Answer::Wait => panic!("must wait"),
        Answer::Short(short) => panic!("{short:?}"),
    }
}

fn waits(account: &Arc<Account>, estimate: Estimate) -> bool {
    matches!(account.reserve(&estimate), Answer::Wait)
}

fn shortage(account: &Arc<Account>, estimate: Estimate) -> Option<(Dimension, u64)> {
    match account.reserve(&estimate) {
        Answer::Short(short) => Some((short.dimension, short.wanted)),
        _ => None,
    }
}

#[test]
fn a_call_gets_all_it_may_use_or_what_is_left_or_is_not_made() {
    let account = account(json!({"maxTokens": 100}), OnExhaustion::Fail);
    let run = RunId::new("r");
    let first = granted(&account, call(10, 50));
    assert_eq!(first.cap(), Some(50));
    assert!(waits(&account, call(10, 50)), "the first may leave some of it");
    let second = granted(&account, call(10, 30));
    assert!(waits(&account, call(1, 1)), "those two may use it all");
    assert_eq!(shortage(&account, call(90, 50)), Some((Dimension::Tokens, 106)), "whatever they leave");
    account.charge(&run, &[usage(12, None)]).unwrap();
    drop(first);
    account.charge(&run, &[usage(40, None)]).unwrap();
    drop(second);
    let shrunk = granted(&account, call(10, 500));
    assert_eq!(shrunk.cap(), Some(38), "no more than is left");
    account.charge(&run, &[usage(48, None)]).unwrap();
    drop(shrunk);
    assert_eq!(shortage(&account, call(1, 1)), Some((Dimension::Tokens, 2)));
    let unbounded = self::account(json!({"maxToolCalls": 1}), OnExhaustion::Fail);
    assert_eq!(granted(&unbounded, call(10, 500)).cap(), None, "nobody bounds what is said");
}

#[test]
fn a_budget_of_one_token_makes_no_call() {
    let account = account(json!({"maxTokens": 1}), OnExhaustion::Interrupt);
    match account.reserve(&call(9, 400)) {
        Answer::Short(short) => assert_eq!((short.wanted, short.consumed, short.asks), (25, 0, true)),
        _ => panic!("nothing can be said for one token"),
    }
}

#[test]
fn each_bounded_dimension_must_have_room() {
    let account = account(json!({"maxTokens": 100, "maxCostUsd": 0.000_000_05}), OnExhaustion::Fail);
    let run = RunId::new("r");
    let hold = granted(&account, call(10, 500));
    assert_eq!(hold.cap(), Some(40), "money is what there is least of");
    assert!(waits(&account, call(1, 1)), "all the money is set aside");
    let charged = account.charge(&run, &[usage(20, Some(0.000_000_05))]).unwrap();
    drop(hold);
    let said: Vec<_> = charged.spent.iter().map(|spent| (spent.dimension, spent.consumed, spent.crossed)).collect();
    assert_eq!(said, [(Dimension::Tokens, 20, None), (Dimension::Cost, 50, Some(50.0))]);
    assert_eq!(shortage(&account, call(1, 1)).map(|short| short.0), Some(Dimension::Cost));
}

/// One thing that happens to an account.
#[derive(Clone, Debug)]
enum Deed {
    Ask {
        prompt: u64,
        room: u64,
    },
    /// A call in flight comes back, having used this many hundredths of what it was granted; or breaks off.
    Answer {
        which: usize,
        percent: u64,
    },
    /// The process dies; calls in flight are lost and the account is read back from the logs.
    Crash,
    /// A commit fails: the account is read anew, and the calls go on.
    Reload,
    /// Another tree begins with what this one has used.
    Fork,
}

fn deeds() -> impl proptest::strategy::Strategy<Value = Vec<Deed>> {
    use proptest::prelude::*;
    let deed = prop_oneof![
        5 => (1_u64..200, 1_u64..600).prop_map(|(prompt, room)| Deed::Ask { prompt, room }),
        4 => (0_usize..8, 0_u64..=100).prop_map(|(which, percent)| Deed::Answer { which, percent }),
        1 => Just(Deed::Crash),
        1 => Just(Deed::Fork),
        1 => Just(Deed::Reload),
    ];
    proptest::collection::vec(deed, 1..80)
}

proptest::proptest! {
    /// Whatever happens in whatever order: no more is spent than may be, and nobody waits for nobody.
    #[test]
    fn no_account_is_ever_overdrawn(deeds in deeds(), tokens in 1_u64..3000, cost in proptest::option::of(1_u64..3000)) {
        let ceilings = match cost {
            Some(cost) => json!({"maxTokens": tokens, "maxCostUsd": cost as f64 / 1e9}),
            None => json!({"maxTokens": tokens}),
        };
        let run = RunId::new("r");
        let mut live = account(ceilings, OnExhaustion::Fail);
        let mut log: Vec<Draft> = Vec::new();
        // What is in flight, and the most it may use.
        let mut flying: Vec<(Reservation, u64)> = Vec::new();
        for deed in deeds {
            let spent: u64 = log.iter().map(|draft| uses(&draft.event).get(Dimension::Tokens)).sum();
            let held: u64 = flying.iter().map(|(_, most)| most).sum();
            let limit = cost.map_or(tokens, |cost| tokens.min(cost));
            match deed {
                Deed::Ask { prompt, room } => {
                    let estimate = call(prompt, room);
                    let least = prompt + estimate.least_room();
                    match live.reserve(&estimate) {
                        Answer::Granted(hold) => {
                            let cap = hold.cap().unwrap();
                            proptest::prop_assert!(cap <= room && cap >= estimate.least_room());
                            proptest::prop_assert!(spent + held + prompt + cap <= limit);
                            proptest::prop_assert!(cap == room || held == 0, "cut short while others may leave more");
                            flying.push((hold, prompt + cap));
                        }
                        Answer::Wait => {
                            proptest::prop_assert!(held > 0, "waits for nobody");
                            proptest::prop_assert!(spent + held + prompt + room > limit && spent + least <= limit);
                        }
                        Answer::Short(short) => {
                            proptest::prop_assert!(spent + least > limit, "refused what fits: {short:?}");
                        }
                    }
                }
                Deed::Answer { which, percent } if !flying.is_empty() => {
                    let (hold, most) = flying.remove(which % flying.len());
                    let used = usage(most * percent / 100, Some((most * percent / 100) as f64 / 1e9));
                    live.charge(&run, std::slice::from_ref(&used)).unwrap();
                    log.push(used);
                    drop(hold);
                }
                Deed::Answer { .. } => {}
                Deed::Crash | Deed::Fork | Deed::Reload => {
                    let in_flight = match deed {
                        Deed::Reload => Arc::clone(&live.in_flight),
                        _ => Arc::default(),
                    };
                    if !matches!(deed, Deed::Reload) {
                        flying.clear();
                    }
                    let mut book = BudgetTotals::new(live.budget.ceilings);
                    let mut read = RunSpending::default();
                    log.iter().for_each(|draft| read.read(&draft.event));
                    if matches!(deed, Deed::Fork) {
                        read.at_least(Dimension::Tokens, spent);
                    }
                    book.add(&row("r", RunStatus::Running), &read);
                    live = Arc::new(Account::with(run.clone(), live.budget.clone(), book, in_flight));
                }
            }
            let book = live.book.lock().clone();
            for dimension in [Dimension::Tokens, Dimension::Cost] {
                let most = book.ceilings.get(dimension).unwrap_or(u64::MAX);
                proptest::prop_assert!(book.consumed.get(dimension) + live.in_flight.set_aside.lock().get(dimension) <= most);
            }
        }
        flying.clear();
        proptest::prop_assert_eq!(*live.in_flight.set_aside.lock(), Counts::default(), "everything set aside comes back");
    }
}

#[test]
fn steps_are_paid_for_as_a_whole_and_a_threshold_is_crossed_once() {
    let account = account(json!({"maxRetries": 4}), OnExhaustion::Fail);
    let run = RunId::new("r");
    let crossed = |drafts: &[Draft]| account.charge(&run, drafts).map(|charged| charged.spent[0].crossed);
    assert_eq!(crossed(&[retry()]), Ok(None));
    assert_eq!(crossed(&[retry(), retry()]), Ok(Some(50.0)));
    let short = crossed(&[retry(), retry()]).unwrap_err();
    assert_eq!((short.consumed, short.limit, short.wanted, short.asks), (3, 4, 2, false));
    assert_eq!(crossed(&[retry()]), Ok(None), "nothing was charged for what was refused");
    let charged = account.charge(&run, &[usage(5, None)]).unwrap();
    assert!(charged.spent.is_empty(), "what is not bounded is not spoken of");
    assert!(account.charge(&run, &[retry()]).is_err());
    account.refund(&Charged { used: uses(&retry().event), ..Charged::default() });
    assert!(account.charge(&run, &[retry()]).is_ok());
}

#[test]
fn one_answer_decides_every_question_that_it_is_enough_for() {
    let account = account(json!({"maxRetries": 1, "maxTokens": 10}), OnExhaustion::Interrupt);
    let [a, b, c] = ["a", "b", "c"].map(RunId::new);
    account.charge(&a, &[retry(), usage(10, None)]).unwrap();
    assert!(account.charge(&a, &[retry()]).unwrap_err().asks);
    for (run, question) in [(&a, asks("retries", 1)), (&b, asks("retries", 3)), (&c, asks("tokens", 1))] {
        assert!(account.charge(run, &[question]).unwrap().decided.is_empty());
    }
    let first = account.charge(&a, &[answered(Outcome::Accepted), extends(json!({"maxRetries": 3})), retry()]).unwrap();
    assert!(first.decided.is_empty(), "two are left, and the others want three, or something else");
    let more = account.charge(&a, &[extends(json!({"maxRetries": 2, "maxTokens": 11}))]).unwrap();
    assert_eq!(more.decided, [(c, "n".into(), true)], "ceilings never fall, whoever was slower");
    let last = account.charge(&a, &[extends(json!({"maxRetries": 5}))]).unwrap();
    assert_eq!(last.decided, [(b.clone(), "n".into(), true)]);
    // Somebody asked before hearing of the extension.
    assert_eq!(account.charge(&b, &[asks("tokens", 1)]).unwrap().decided, [(b, "n".into(), true)]);
}

#[test]
fn a_no_is_a_no_for_the_whole_tree() {
    let account = account(json!({"maxTokens": 10}), OnExhaustion::Interrupt);
    let [a, b] = ["a", "b"].map(RunId::new);
    account.charge(&a, &[usage(10, None)]).unwrap();
    account.charge(&a, &[asks("tokens", 1)]).unwrap();
    account.charge(&b, &[asks("tokens", 1)]).unwrap();
    // Withdrawn, say because the run was cancelled: nobody has said no.
    account.charge(&b, &[answered(Outcome::Cancelled)]).unwrap();
    account.charge(&b, &[asks("tokens", 1)]).unwrap();
    let decided = account.charge(&a, &[answered(Outcome::Rejected)]).unwrap().decided;
    assert_eq!(decided, [(b, "n".into(), false)]);
    match account.reserve(&call(1, 1)) {
        Answer::Short(short) => assert!(!short.asks, "nobody is asked twice"),
        _ => panic!("there is nothing left"),
    }
}

#[test]
fn what_is_read_back_is_what_was_charged() {
    let drafts = [usage(4, Some(0.25)), retry(), retry(), extends(json!({"maxRetries": 9})), asks("tokens", 1)];
    let live = account(json!({"maxTokens": 4, "maxRetries": 3}), OnExhaustion::Interrupt);
    let run = RunId::new("r");
    drafts.iter().for_each(|draft| drop(live.charge(&run, std::slice::from_ref(draft)).unwrap()));
    let mut book = BudgetTotals::new(live.budget.ceilings);
    let mut spent = RunSpending::default();
    drafts.iter().for_each(|draft| spent.read(&draft.event));
    book.add(&row("r", RunStatus::Running), &spent);
    let known = live.book.lock().clone();
    assert_eq!((book.consumed, book.ceilings), (known.consumed, known.ceilings));
    assert_eq!(book.asking, known.asking);
    spent.at_least(Dimension::Tokens, 3);
    assert_eq!(spent.consumed.get(Dimension::Tokens), 4);
    spent.at_least(Dimension::Tokens, 7);
    assert_eq!(spent.consumed.get(Dimension::Tokens), 7);
    let mut ended = BudgetTotals::new(live.budget.ceilings);
    ended.add(&row("r", RunStatus::Failed), &spent);
    assert!(ended.asking.is_empty() && !book.asking.is_empty(), "a run that has ended asks nothing");
}

proptest::proptest! {
    /// Wherever a note was made, the note and the records behind it say what all records say.
    #[test]
    fn a_note_stands_for_the_records_before_it(deeds in proptest::collection::vec(0..8_u8, 0..40), cut in 0_usize..41) {
        let events: Vec<Draft> = deeds
            .iter()
            .map(|deed| match deed {
                0 => usage(4, Some(0.25)),
                1 => retry(),
                2 => extends(json!({"maxRetries": 9, "maxTokens": 3})),
                3 => extends(json!({"maxTokens": 8})),
                4 => asks("tokens", 7),
                5 => answered(Outcome::Rejected),
                6 => answered(Outcome::Cancelled),
                _ => usage(1, None),
            })
            .collect();
        let (before, behind) = events.split_at(cut.min(events.len()));
        let mut all = RunSpending::default();
        events.iter().for_each(|draft| all.read(&draft.event));
        let mut first = RunSpending::default();
        before.iter().for_each(|draft| first.read(&draft.event));
        let run = RunRow { next_seq: 100, ..row("r", RunStatus::Running) };
        let note = LiveSpending::new(first, 0).note(&run).expect("it is due");
        let (mut spent, seq) = RunSpending::of_note(&note, &run).expect("it is of this log");
        behind.iter().for_each(|draft| spent.read(&draft.event));
        proptest::prop_assert_eq!((spent, seq), (all, 100));
        let shorter = RunRow { next_seq: 99, ..run };
        proptest::prop_assert!(RunSpending::of_note(&note, &shorter).is_none(), "it is ahead of the log");
    }
}
