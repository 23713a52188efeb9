//! Asking models. A call is made after the records it follows from are durable, and its answer comes back as a command.
//!
//! ```text
//!  effect ──► waits for its commit ──► provider ──► answer in hand ──► command, durable
//!                  │ lost with it          │ nobody wants it any more       │ disk in trouble: kept, told again
//! ```

mod calls;
mod registry;
mod seam;

pub(crate) use calls::{Calls, Wanted};
pub use registry::Models;

use baton_engine::Command;
use baton_model::{Fault, ModelReply, ModelRequest, RunId, code};
use baton_provider::ProviderFault;

use self::calls::Ticket;
use crate::inner::{Inner, RETRY_MS};
use crate::{Error, Kind};

impl Inner {
    /// Makes the calls in flight for a run those that it wants. `count` records must be on disk before one is made.
    pub(crate) fn see_to_calls(&self, generation: u64, run: &RunId, count: u64, wanted: Vec<Wanted>) {
        for (wanted, ticket) in self.calls.reconcile(run, generation, wanted) {
            let run = run.clone();
            self.spawn(|inner| async move { inner.see_through_call(generation, run, count, wanted, ticket).await });
        }
    }

    async fn see_through_call(&self, generation: u64, run: RunId, count: u64, wanted: Wanted, ticket: Ticket) {
        let reply = tokio::select! {
            reply = self.ask(generation, &run, count, &wanted, &ticket) => reply,
            () = ticket.cancelled.cancelled() => {
                metrics::counter!("baton_model_calls_abandoned_total").increment(1);
                None
            }
            () = self.stop.cancelled() => None,
        };
        if let Some(reply) = reply
            && self.calls.answering(&run, &wanted, &ticket)
        {
            self.tell(&run, &wanted, reply).await;
        }
        self.calls.forget(&run, &wanted, &ticket);
    }

    /// The answer, unless what the call follows from was lost or nobody waits for it any more.
    async fn ask(
        &self,
        generation: u64,
        run: &RunId,
        count: u64,
        wanted: &Wanted,
        ticket: &Ticket,
    ) -> Option<Result<ModelReply, Fault>> {
        if self.until_durable(generation, run, count).await.is_err() || !self.calls.calling(run, wanted, ticket) {
            return None;
        }
        Some(self.call_model(&wanted.request).await)
    }

    async fn until_durable(&self, generation: u64, run: &RunId, count: u64) -> Result<(), Error> {
        let world = self.world()?;
        if world.generation != generation {
            return Err(Error::unavailable("The records this follows from were lost."));
        }
        self.slot(&world, run).await?.durable(&world, count).await
    }

    /// One call of one model, counted.
    pub(crate) async fn call_model(&self, request: &ModelRequest) -> Result<ModelReply, Fault> {
        let name = request.semantic.provider.as_str();
        let Some(provider) = self.models.get(name) else {
            let message = format!("No model provider `{name}` is here to ask.");
            return Err(Fault::new(code::CAPABILITY_NOT_PROVIDED, message));
        };
        let (label, began) = (name.to_owned(), self.clock.now());
        let answer = provider.call(request).await;
        let seconds = self.clock.now().millis_since(began) as f64 / 1000.0;
        metrics::histogram!("baton_model_call_seconds", "provider" => label.clone()).record(seconds);
        let outcome = match &answer {
            Ok(reply) if reply.is_refusal() => "refused",
            Ok(_) => "answered",
            Err(fault) => fault.outcome(),
        };
        metrics::counter!("baton_model_calls_total", "provider" => label.clone(), "outcome" => outcome).increment(1);
        if let Ok(reply) = &answer {
            let tokens = |direction: &'static str, count: u64| {
                let name = "baton_model_tokens_total";
                metrics::counter!(name, "provider" => label.clone(), "direction" => direction).increment(count);
            };
            tokens("input", reply.usage.input_tokens);
            tokens("output", reply.usage.output_tokens);
        }
        answer.map_err(|fault| told(&fault, name))
    }

    /// Hands an answer to its run. It has been paid for, so a disk in trouble is waited for, not answered by asking again.
    async fn tell(&self, run: &RunId, wanted: &Wanted, reply: Result<ModelReply, Fault>) {
        let Wanted { node, visit, attempt, .. } = wanted;
        let command = Command::ModelReplied { node: node.clone(), visit: *visit, attempt: *attempt, reply };
        loop {
            let told = async {
                let world = self.world()?;
                self.command(&world, run, command.clone(), None).await.map(|_| ())
            };
            let told = tokio::select! {
                told = told => told,
                // A disk that takes nothing any more keeps nobody from leaving.
                () = self.stop.cancelled() => return,
            };
            match told {
                Err(error) if error.kind == Kind::Unavailable => {}
                Err(error) => {
                    tracing::warn!(%run, %node, %error, "a model's answer could not be handed to its run");
                    return;
                }
                Ok(()) => return,
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }
}

fn told(fault: &ProviderFault, provider: &str) -> Fault {
    let code = match fault {
        ProviderFault::Unavailable(_) | ProviderFault::TimedOut | ProviderFault::Exhausted => {
            code::PROVIDER_UNAVAILABLE
        }
        ProviderFault::Rejected(_) => code::VALIDATION_ERROR,
    };
    Fault::new(code, format!("No answer: {fault}.")).with("provider", provider)
}
