//! Runners: who may be one, who is, and what they say.

use std::collections::BTreeSet;

use baton_model::{Principal, TenantId};
use serde_json::{Map, Value};

use crate::services::runners::{
    NewToken, OutsideStep, ResultFrame, RunnerBearer, RunnerRegistration, RunnerReports, RunnerStream, RunnerToken,
    RunnerTools, RunnerView, RunnerWork, StepClaims,
};
use crate::services::step_gateway::{KeptValue, StepQuestion, StepReply};
use crate::{Error, Host};

impl Host {
    /// A new token, and its text, which is shown this once.
    pub async fn new_runner_token(&self, who: &Principal, new: NewToken) -> Result<(RunnerToken, String), Error> {
        self.rooms.runner_tokens.mint(who, new).await
    }

    pub fn runner_tokens(&self, who: &Principal) -> Vec<RunnerToken> {
        self.rooms.runner_tokens.list(who)
    }

    /// The streams of its runners end at once, and what they have is lost.
    pub async fn revoke_runner_token(&self, who: &Principal, id: &str) -> Result<(), Error> {
        let row = self.rooms.runner_tokens.revoke(who, id).await?;
        self.rooms.registry.forget_token(&row.id).await
    }

    /// Whose token this is, if it is one.
    pub async fn runner_bearer(&self, token: &str) -> Result<Option<RunnerBearer>, Error> {
        self.rooms.runner_tokens.bearer(token).await
    }

    /// The token that a runner shows.
    pub fn runner_token_of(&self, bearer: &RunnerBearer) -> Option<RunnerToken> {
        self.rooms.runner_tokens.of(bearer)
    }

    /// The tenant of a token that is known here.
    pub fn runner_tenant(&self, token: &str) -> Option<TenantId> {
        self.rooms.runner_tokens.tenant(token)
    }

    /// Signs a runner in. Says whether it is new.
    pub async fn register_runner(&self, bearer: &RunnerBearer, frame: RunnerRegistration) -> Result<bool, Error> {
        self.rooms.registry.register(bearer, frame).await
    }

    pub async fn put_runner_tools(&self, bearer: &RunnerBearer, id: &str, tools: RunnerTools) -> Result<(), Error> {
        self.rooms.registry.put_tools(bearer, id, tools).await
    }

    pub async fn sign_off_runner(&self, bearer: &RunnerBearer, id: &str) -> Result<(), Error> {
        self.rooms.registry.sign_off(bearer, id).await
    }

    /// The runners of the caller's subject, by id.
    pub fn runners(&self, who: &Principal) -> Vec<RunnerView> {
        self.rooms.registry.list(who)
    }

    pub async fn runner_stream(
        &self,
        bearer: &RunnerBearer,
        id: &str,
        after: Option<u64>,
    ) -> Result<RunnerStream, Error> {
        self.rooms.runner_channel.stream(bearer, id, after).await
    }

    /// Takes a result. Says whether it was recorded before.
    pub async fn runner_result(&self, bearer: &RunnerBearer, id: &str, frame: ResultFrame) -> Result<bool, Error> {
        self.rooms.runner_channel.result(bearer, id, frame).await
    }

    /// A step that no run waits for; see [`OutsideStep`]. Says what came of it, and whether that was known before.
    pub async fn dispatch_outside(&self, step: OutsideStep) -> Result<(Map<String, Value>, bool), Error> {
        self.rooms.runner_channel.dispatch(step).await
    }

    /// Which step a token is for, if it is one. Whether a runner still has the step is asked with every call.
    pub fn step_claims(&self, token: &str) -> Option<StepClaims> {
        self.rooms.step_gateway.claims(token)
    }

    /// The models that steps may ask by name.
    pub fn step_models(&self) -> BTreeSet<String> {
        self.rooms.step_gateway.models()
    }

    /// The answer of a model to a step. It is on the run's log.
    pub async fn ask_for_step(&self, claims: &StepClaims, question: StepQuestion) -> Result<StepReply, Error> {
        self.rooms.step_gateway.ask(claims, question).await
    }

    /// Keeps a value under a step. The first one under a key counts.
    pub async fn keep_for_step(&self, claims: &StepClaims, key: String, value: Value) -> Result<KeptValue, Error> {
        self.rooms.step_gateway.keep(claims, key, value).await
    }

    /// The value that a step keeps under a key.
    pub async fn kept_for_step(&self, claims: &StepClaims, key: &str) -> Result<Value, Error> {
        self.rooms.step_gateway.kept(claims, key).await
    }

    pub async fn runner_report(
        &self,
        bearer: &RunnerBearer,
        id: &str,
        reports: RunnerReports,
    ) -> Result<RunnerWork, Error> {
        self.rooms.runner_channel.report(bearer, id, reports).await
    }
}
