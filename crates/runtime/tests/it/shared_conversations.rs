//! One dialogue on several hosts: each is told what was said on the other, and one turn at a time is one among all of them.

use crate::agents;
use crate::common;
use crate::sharing;

use agents::{AGENT, Brain, card, options, says};
use baton_model::InvocationSource;
use baton_runtime::{Error, StartRun, StartedRun};
use common::{World, who};
use serde_json::Value;
use sharing::{Company, settle};

async fn say(world: &World, text: &str) -> Result<StartedRun, Error> {
    let inputs = [("task".to_owned(), Value::String(text.to_owned()))].into_iter().collect();
    let message = StartRun { inputs, conversation: Some("c".to_owned()), ..StartRun::default() };
    world.host.start_agent(&who(), AGENT, InvocationSource::ChatMention, message, None).await
}

#[tokio::test]
async fn a_dialogue_goes_on_wherever_it_is_taken_up() {
    let company = Company::new();
    let brain = Brain::new(|_| says("Yes."));
    let a = company.join(7, options(vec![card(AGENT)], &brain, Vec::new(), 512)).await;
    let b = company.join(8, options(vec![card(AGENT)], &brain, Vec::new(), 512)).await;
    settle(&[&a, &b]).await;
    brain.open.send_replace(false);
    let first = say(&a, "One?").await.unwrap();
    brain.called(1).await;
    for world in [&b, &a] {
        let refused = say(world, "Two?").await.unwrap_err();
        assert!(format!("{refused:?}").contains(first.run_id.as_str()), "{refused:?}");
    }
    brain.open.send_replace(true);
    a.ended(&first.run_id).await;
    settle(&[&a, &b]).await;
    let second = say(&b, "Two?").await.unwrap();
    b.ended(&second.run_id).await;
    let heard = brain.heard();
    let places = ["One?", "Yes.", "Two?"].map(|said| heard.find(said).unwrap_or_else(|| panic!("{said}: {heard}")));
    assert!(places.is_sorted(), "{heard}");
    // At the same moment on both: one of them begins.
    brain.open.send_replace(false);
    let (left, right) = tokio::join!(say(&a, "Three?"), say(&b, "Three?"));
    assert!(left.is_ok() != right.is_ok(), "{left:?} {right:?}");
    brain.open.send_replace(true);
    settle(&[&a, &b]).await;
    let page = a.host.conversation(&who().tenant, "c", None, 10).await.unwrap();
    assert_eq!(page.items.iter().map(|turn| turn.turn).collect::<Vec<_>>(), [3, 2, 1]);
}
