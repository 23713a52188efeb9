//! What programs that have a step in hand may ask: models, in the words of OpenAI's clients, and what they kept. Whether they
//! still have the step, and what follows, is the runtime's business.

pub(crate) mod memo;

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use baton_runtime::{StepClaims, StepQuestion, StepReply};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::auth::step::OpenAiStep;
use crate::body;
use crate::openai::{
    AnswerFeed, OpenAiError, OpenAiQuestion, chat_chunks, chat_reply, read_chat, read_responses, response_events,
    response_reply,
};
use crate::reply::Reply;
use crate::sse::{Pieces as _, stream_response};

/// The largest request: a long conversation with a few pictures. Only its digest is kept.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// How long the status of a stream waits for the answer: what fails at once has a status of its own.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// Their clients count how often they try again.
const RETRIES: &str = "x-stainless-retry-count";
const RECORDED: HeaderName = HeaderName::from_static("x-baton-recorded");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The models that a step may ask by name. Others of the same providers may be asked as `provider/model`, too.
#[utoipa::path(get, path = "/v1/host/baton/steps/openai/v1/models", tag = "steps",
    responses((status = 200, description = "OpenAI's list of models", body = Object)))]
pub(crate) async fn models(State(app): State<App>, OpenAiStep(_claims): OpenAiStep) -> Result<Response, OpenAiError> {
    let models = app.host.step_models();
    let data = models.iter().map(|id| json!({"id": id, "object": "model", "created": 0, "owned_by": "baton"}));
    Ok(Reply::ok(&json!({"object": "list", "data": data.collect::<Vec<_>>()})).into_response())
}

/// Ask a model on behalf of a step. The answer is on the run's log before it is sent; when the step is given out again, the
/// same request gets the same answer and nobody is asked. Refusals have OpenAI's shape.
#[utoipa::path(post, path = "/v1/host/baton/steps/openai/v1/chat/completions", tag = "steps",
    request_body(content = Object, description = "OpenAI's request; `model` is `provider/model`"),
    responses((status = 200, description = "OpenAI's chat completion, or a stream of its chunks", body = Object),
        (status = 400, description = "A parameter that cannot be passed on", body = Object),
        (status = 404, description = "No such model", body = Object),
        (status = 409, description = "The runner does not have the step any more", body = Object),
        (status = 429, description = "The run's budget is used up, or too many calls at once", body = Object)))]
pub(crate) async fn chat(
    State(app): State<App>,
    OpenAiStep(claims): OpenAiStep,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, OpenAiError> {
    let asked = read_chat(read(&app, &headers, content).await?)?;
    answer(&app, claims, &headers, asked, &CHAT).await
}

/// The same in the words of OpenAI's newer interface. Earlier responses are not kept: send the whole conversation.
#[utoipa::path(post, path = "/v1/host/baton/steps/openai/v1/responses", tag = "steps",
    request_body(content = Object, description = "OpenAI's request; `model` is `provider/model`"),
    responses((status = 200, description = "OpenAI's response, or a stream of its events", body = Object),
        (status = 400, description = "A parameter that cannot be passed on", body = Object),
        (status = 404, description = "No such model", body = Object),
        (status = 409, description = "The runner does not have the step any more", body = Object),
        (status = 429, description = "The run's budget is used up, or too many calls at once", body = Object)))]
pub(crate) async fn responses(
    State(app): State<App>,
    OpenAiStep(claims): OpenAiStep,
    headers: HeaderMap,
    content: Body,
) -> Result<Response, OpenAiError> {
    let asked = read_responses(read(&app, &headers, content).await?)?;
    answer(&app, claims, &headers, asked, &RESPONSES).await
}

/// How an interface writes an answer.
struct Form {
    whole: fn(&OpenAiQuestion, &StepReply) -> Value,
    stream: fn(&OpenAiQuestion, &StepReply) -> Vec<u8>,
}

const CHAT: Form = Form { whole: chat_reply, stream: chat_chunks };
const RESPONSES: Form = Form { whole: response_reply, stream: response_events };

async fn read(app: &App, headers: &HeaderMap, content: Body) -> Result<Map<String, Value>, OpenAiError> {
    let bytes = body::read(headers, content, MOST_BYTES, app.arrival).await?;
    Ok(body::parse(&bytes)?)
}

async fn answer(
    app: &App,
    claims: StepClaims,
    headers: &HeaderMap,
    asked: OpenAiQuestion,
    form: &Form,
) -> Result<Response, OpenAiError> {
    let count = headers.get(RETRIES).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
    let question = StepQuestion { semantic: asked.semantic.clone(), retried: count.is_some_and(|count| count > 0) };
    let open = if asked.stream { Some(app.quotas.stream(&claims.tenant)?) } else { None };
    let host = app.host.clone();
    let mut answering = Box::pin(async move { host.ask_for_step(&claims, question).await });
    let Some(open) = open else {
        let answer = answering.await?;
        let response = Reply::ok(&(form.whole)(&asked, &answer)).into_response();
        return Ok(named(response, &answer));
    };
    let write = form.stream;
    match tokio::time::timeout(FIRST_WORD, &mut answering).await {
        Ok(answer) => {
            let answer = answer?;
            let response = stream_response(Body::from(write(&asked, &answer)));
            Ok(named(response, &answer))
        }
        Err(_) => {
            let feed = AnswerFeed::new(answering, app.shutdown.clone(), move |answer| write(&asked, answer));
            Ok(stream_response(feed.into_body(open)))
        }
    }
}

/// What the answer is called, and whether it was on the log already.
fn named(mut response: Response, answer: &StepReply) -> Response {
    let recorded = if answer.recorded { "true" } else { "false" };
    response.headers_mut().insert(RECORDED, HeaderValue::from_static(recorded));
    if let Ok(id) = HeaderValue::from_str(&answer.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
