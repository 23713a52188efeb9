//! Runners where several hosts share a store: the stream may be on one host, the run on another, and a result may come in on
//! a third.

use crate::common;
use crate::runners;
use crate::sharing;

use baton_model::{RunStatus, code};
use baton_runtime::Told;
use common::{World, who};
use runners::{Hand, TOOL, brain, with};
use serde_json::{Value, json};
use sharing::{Company, settle};

async fn company(hosts: u64) -> (Company, Vec<World>) {
    let company = Company::new();
    let brain = brain();
    let mut all = Vec::new();
    for seed in 0..hosts {
        all.push(company.join(7 + seed, with(&brain)).await);
    }
    all[0].register(crate::agents::asks("asks", crate::agents::AGENT)).await;
    (company, all)
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn a_step_of_one_hosts_run_goes_to_a_runner_of_another_and_the_result_to_a_third() {
    let (company, hosts) = company(3).await;
    let all: Vec<&World> = hosts.iter().collect();
    let mut hand = Hand::new(&hosts[1], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let tools = hosts[0].host.options().tools.offered(&common::tenant(), &[TOOL.to_owned()]);
    assert_eq!(tools.len(), 1, "every host knows what a runner brings");
    let runs = [hosts[0].start("asks").await, hosts[0].start("asks").await];
    company.pass(&all, 2_000).await;
    for run in &runs {
        let step = hand.step().await;
        assert_eq!(step.run_id, *run);
        hand.nothing();
        let answering = hand.answer(&hosts[2], &step, said("done"));
        let taken = sharing::while_time_passes(&company, &all, answering).await;
        assert_eq!(taken, Ok(false));
        company.pass(&all, 3_000).await;
        assert_eq!(hosts[0].status(run).await, RunStatus::Completed);
        let again = hand.answer(&hosts[2], &step, said("done"));
        assert_eq!(sharing::while_time_passes(&company, &all, again).await, Ok(true));
    }
    assert_eq!(hosts[0].calls_of(&runs[0], TOOL).await.unknown, 0);
}

#[tokio::test]
async fn two_hosts_with_a_free_runner_each_give_a_step_to_one_of_them() {
    let (company, hosts) = company(3).await;
    let all: Vec<&World> = hosts.iter().collect();
    let mut hands = [Hand::new(&hosts[1], &who(), "r1", 50).await, Hand::new(&hosts[2], &who(), "r2", 50).await];
    company.pass(&all, 2_000).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(hosts[0].start("asks").await);
    }
    company.pass(&all, 3_000).await;
    let mut told = Vec::new();
    for hand in &mut hands {
        while let Some(Told::Dispatch { frame, .. }) = hand.stream.as_mut().unwrap().ready() {
            told.push(frame.run_id.clone());
        }
    }
    told.sort();
    runs.sort();
    assert_eq!(told, runs, "each once");
}

#[tokio::test]
async fn a_stream_on_another_host_ends_the_first_and_has_the_open_steps() {
    let (company, hosts) = company(2).await;
    let all: Vec<&World> = hosts.iter().collect();
    let mut hand = Hand::new(&hosts[0], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let run = hosts[0].start("asks").await;
    settle(&all).await;
    let step = hand.step().await;
    let mut old = hand.stream.take().unwrap();
    hand.connect(&hosts[1], Some(step.seq)).await;
    company.pass(&all, 2_000).await;
    assert_eq!(old.next().await, Some(Told::Superseded));
    let answering = hand.answer(&hosts[1], &step, said("done"));
    assert_eq!(sharing::while_time_passes(&company, &all, answering).await, Ok(false));
    company.pass(&all, 2_000).await;
    assert_eq!(hosts[0].status(&run).await, RunStatus::Completed);
    let next = hosts[1].start("asks").await;
    company.pass(&all, 2_000).await;
    let after = hand.step().await;
    assert!(after.run_id == next && after.seq > step.seq, "{after:?}");
}

#[tokio::test]
async fn a_token_that_is_revoked_on_one_host_opens_nothing_on_another() {
    let (company, hosts) = company(2).await;
    let all: Vec<&World> = hosts.iter().collect();
    let (bearer, token) = runners::token(&hosts[0], &who()).await;
    assert_eq!(hosts[1].host.runner_bearer(&token).await.unwrap(), Some(bearer.clone()), "made a moment ago");
    let mut hand = Hand::new(&hosts[1], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let own = hand.bearer.token.clone();
    hosts[0].host.revoke_runner_token(&who(), &own).await.unwrap();
    hosts[0].host.revoke_runner_token(&who(), &bearer.token).await.unwrap();
    company.pass(&all, 2_000).await;
    assert_eq!(hand.next().await, Told::Gone);
    assert_eq!(hosts[1].host.runner_bearer(&token).await.unwrap(), None);
}

#[tokio::test]
async fn a_step_whose_host_of_the_stream_dies_is_unknown_in_time_and_one_of_the_run_goes_on_elsewhere() {
    let (company, hosts) = company(3).await;
    let mut hand = Hand::new(&hosts[1], &who(), "r1", 1).await;
    company.pass(&hosts.iter().collect::<Vec<_>>(), 2_000).await;
    let run = hosts[0].start("asks").await;
    company.pass(&hosts.iter().collect::<Vec<_>>(), 2_000).await;
    let step = hand.step().await;
    hand.stream = None;
    // The host of the stream and that of the run fall silent; the third takes over, and the runner finds it.
    let [a, b, c] = &hosts[..] else { unreachable!() };
    for dead in [a, b] {
        company.cluster.lapse(sharing::shared(dead).epoch());
    }
    company.past_lease(&[c]).await;
    let answering = hand.answer(c, &step, said("done"));
    let taken = sharing::while_time_passes(&company, &[c], answering).await;
    assert_eq!(taken, Ok(false));
    company.pass(&[c], 3_000).await;
    assert_eq!(c.status(&run).await, RunStatus::Completed);
    assert_ne!(hand.answer(c, &step, said("other")).await, Err(code::STEP_NOT_LEASED));
}
