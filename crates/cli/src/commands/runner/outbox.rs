//! Results on their way to the host. What comes while one request is under way goes out with the next: under load one
//! request carries many.

use std::sync::Arc;
use std::time::Duration;

use baton_client::{Error, RunnerClient, StepResult, StepResults};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::output::Output;

/// How many results one request carries.
const MOST: usize = 200;
/// And how much they have together, about; a host reads a megabyte.
const MOST_BYTES: usize = 512 * 1024;
/// How many results wait. Calls that end after that wait with them.
pub(super) const WAITING: usize = 1_000;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Ready {
    pub(super) run: String,
    pub(super) step: String,
    pub(super) seq: u64,
    pub(super) output: Arc<Map<String, Value>>,
}

/// Until nobody sends any more.
pub(super) async fn post(client: RunnerClient, id: String, mut ready: mpsc::Receiver<Ready>, output: Output) {
    let mut batch = Vec::new();
    loop {
        if ready.recv_many(&mut batch, MOST).await == 0 {
            return;
        }
        let mut left: Vec<StepResult> = batch.drain(..).map(result).collect();
        let mut pause = FIRST_PAUSE;
        while !left.is_empty() {
            let rest = left.split_off(fitting(&left));
            match client.post_step_results(&id, &StepResults { results: left.clone() }).await {
                Ok(taken) => {
                    left = again(left, &taken.results, output);
                    if left.is_empty() && !rest.is_empty() {
                        left = rest;
                        continue;
                    }
                }
                // One that alone is more than the host reads.
                Err(Error::Api { status: 413, message, .. }) if left.len() == 1 => {
                    left = left.into_iter().map(|result| too_large(result, &message)).collect();
                }
                // A host that is away for a moment finds them when it is back.
                Err(error) if error.is_transient() || matches!(error, Error::Api { status: 500.., .. }) => {}
                Err(error) => {
                    output.note(format_args!("{} results were not taken: {error}", left.len()));
                    break;
                }
            }
            left.extend(rest);
            if !left.is_empty() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// How many of them one request carries.
fn fitting(results: &[StepResult]) -> usize {
    let mut bytes = 0;
    let fits = results.iter().take_while(|result| {
        bytes += serde_json::to_string(&result.output).map_or(0, |text| text.len());
        bytes <= MOST_BYTES
    });
    fits.count().max(1)
}

/// In place of an output that is too large: why there is none.
fn too_large(result: StepResult, message: &str) -> StepResult {
    let text = format!("The tool was called, but: {message}");
    let said = json!({"isError": true, "content": [{"type": "text", "text": text}]});
    StepResult { output: said.as_object().cloned().unwrap_or_default(), ..result }
}

fn result(ready: Ready) -> StepResult {
    let output = (*ready.output).clone();
    StepResult { run_id: ready.run, step_id: ready.step, seq: ready.seq, output }
}

/// Those to be sent again: what may help, and in place of an output that is too large why there is none.
fn again(sent: Vec<StepResult>, taken: &[baton_client::StepResultOutcome], output: Output) -> Vec<StepResult> {
    let mut left = Vec::new();
    for (result, outcome) in sent.into_iter().zip(taken) {
        let Some(error) = &outcome.error else { continue };
        if error.code == "payload_too_large" {
            left.push(too_large(result, &error.message));
        } else if error.retriable {
            left.push(result);
        } else {
            let StepResult { run_id, step_id, .. } = result;
            output.note(format_args!("the result of {step_id} of {run_id} was not taken: {}", error.message));
        }
    }
    left
}
