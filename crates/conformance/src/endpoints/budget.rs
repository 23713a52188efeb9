//! Runs that spend more than they may. They ask the mock model the ordinary way; what is answered is read off their log.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_runtime::StartRun;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, Stage, Staging, definition, node};

const WORKFLOW: &str = "conformance-seam-budget";
const MODEL: &str = "mock-mini";
/// More questions than the budget pays for.
const QUESTIONS: usize = 8;
/// Enough for the first questions and not for all of them, whatever the mock was told to say.
const TOKENS: u64 = 1000;
/// The mock counts words. So many make a question about as long as a call sets aside for it, so that what is counted
/// comes near the limit before a call is refused.
const WORDS: usize = 200;
const THRESHOLD_PERCENT: u64 = 50;

#[derive(Deserialize)]
pub(super) struct Asked {
    scenario: Scenario,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Scenario {
    HardCostExhaust,
    ModelDenied,
    Advisory,
}

impl Scenario {
    fn budget(self) -> Result<Value, ApiError> {
        match self {
            // The mock has no price, so it is what it says that runs out.
            Self::HardCostExhaust => Ok(json!({"maxTokens": TOKENS, "thresholdPercent": THRESHOLD_PERCENT})),
            Self::ModelDenied => Ok(json!({"modelDeny": [MODEL]})),
            Self::Advisory => Err(ApiError::not_provided(
                "Budgets are enforced here; none of them only advises.",
                "budget.enforce.advisory",
            )),
        }
    }
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(asked): Body<Asked>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    let budget = asked.scenario.budget()?;
    stage.register(workflow()).await?;
    let configurable = Map::from_iter([("budget".to_owned(), budget)]);
    let start = StartRun { workflow_id: WORKFLOW.to_owned(), configurable, ..StartRun::default() };
    let run = stage.app.host.start_run(&stage.who, start, None).await?.run_id;
    let ended = stage.settle(&run).await?;
    let log = stage.log(&run).await?;
    let asked = log.iter().any(|event| event["type"] == "provider.usage");
    let mut body = json!({"runId": run, "outcome": ended.status, "modelCalled": asked});
    if let Some(error) = ended.error {
        body["error"] = error.code.into();
    }
    Ok(Reply::ok(&body).into_response())
}

fn workflow() -> Value {
    let schema = json!({"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}});
    let config = json!({"provider": "mock", "model": MODEL, "outputSchema": schema});
    let ask = |n: usize| {
        let mut ask = node(&format!("ask{n}"), "core.ai.structuredOutput", &config);
        ask["inputs"]["prompt"] = json!({"type": "static", "value": "so? ".repeat(WORDS)});
        ask
    };
    let edges: Vec<(String, String)> = (1..QUESTIONS).map(|n| (format!("ask{}", n - 1), format!("ask{n}"))).collect();
    definition(WORKFLOW, (0..QUESTIONS).map(ask).collect(), &edges, Vec::new())
}
