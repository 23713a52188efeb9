#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_model::event::{
    BudgetReserved, InterruptRequestedFacts, InterruptResolved, InterruptResolvedFacts, NodeRetried, NodeRetriedFacts,
    ProviderUsage, ProviderUsageFacts,
};
use baton_model::{Fault, Timestamp};
use serde_json::json;

use super::*;

fn account(ceilings: serde_json::Value, on_exhaustion: OnExhaustion) -> Arc<Account> {
    let ceilings = serde_json::from_value(ceilings).unwrap();
    let budget = Budget { ceilings, on_exhaustion, threshold_percent: Some(50.0), ..Budget::default() };
    Arc::new(Account::new(RunId::new("r"), budget))
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

fn call(tokens: u64, nanos: u64) -> Estimate {
    Estimate { tokens, nanos }
}

fn granted(account: &Arc<Account>, estimate: Estimate) -> Hold {
    match account.reserve(estimate) {
        Answer::Granted(hold) => hold,
        Answer::Wait => panic!("must wait"),
        Answer::Short(short) => panic!("{short:?}"),
    }
}

fn waits(account: &Arc<Account>) -> bool {
    matches!(account.reserve(call(1, 1)), Answer::Wait)
}

fn shortage(account: &Arc<Account>) -> Option<Dimension> {
    match account.reserve(call(1, 1)) {
        Answer::Short(short) => Some(short.dimension),
        _ => None,
    }
}

#[test]
fn an_estimate_that_is_too_large_refuses_nobody() {
    let account = account(json!({"maxTokens": 100}), OnExhaustion::Fail);
    let run = RunId::new("r");
    let first = granted(&account, call(70, 0));
    let second = granted(&account, call(70, 0));
    assert!(waits(&account), "those two may use it all");
    account.charge(&run, &[usage(10, None)]).unwrap();
    drop(first);
    let third = granted(&account, call(500, 0));
    assert!(waits(&account));
    drop(third);
    assert!(!waits(&account), "a call that came to nothing leaves what it had");
    account.charge(&run, &[usage(89, None)]).unwrap();
    drop(second);
    let last = granted(&account, call(500, 0));
    account.charge(&run, &[usage(400, None)]).unwrap();
    assert_eq!(
        shortage(&account),
        Some(Dimension::Tokens),
        "even while a call is in flight: nothing can come of waiting"
    );
    drop(last);
    assert_eq!(shortage(&account), Some(Dimension::Tokens));
}

#[test]
fn each_bounded_dimension_must_have_room() {
    let account = account(json!({"maxTokens": 100, "maxCostUsd": 1.0}), OnExhaustion::Fail);
    let run = RunId::new("r");
    let hold = granted(&account, call(10, nanos(2.0)));
    assert!(waits(&account), "all the money is set aside");
    account.charge(&run, &[usage(10, Some(0.4))]).unwrap();
    drop(hold);
    let charged = account.charge(&run, &[usage(10, Some(0.6))]).unwrap();
    let said: Vec<_> = charged.spent.iter().map(|spent| (spent.dimension, spent.consumed, spent.crossed)).collect();
    assert_eq!(said, [(Dimension::Tokens, 20, None), (Dimension::Cost, nanos(1.0), Some(50.0))]);
    assert_eq!(shortage(&account), Some(Dimension::Cost));
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
    match account.reserve(call(1, 0)) {
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
    let mut book = Book::new(live.budget.ceilings);
    drafts.iter().for_each(|draft| book.read(&run, &draft.event));
    let known = live.book.lock().clone();
    assert_eq!((book.consumed, book.ceilings), (known.consumed, known.ceilings));
    assert_eq!(book.asking, known.asking);
    book.at_least(Dimension::Tokens, 3);
    assert_eq!(book.consumed.get(Dimension::Tokens), 4);
    book.at_least(Dimension::Tokens, 7);
    assert_eq!(book.consumed.get(Dimension::Tokens), 7);
}
