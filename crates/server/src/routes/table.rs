//! Every handler of the API, once. Its method, path and part of the document are written at the handler.

use axum::middleware::map_response;

use super::operations::{Operations, operations, verbatim};
use super::{
    activity, agents, ancestry, annotations, artifacts, chat, control, conversations, dead_letters, debug_bundle, diff,
    discovery, envelope_schemas, events, fork, health, interrupts, memory, metrics_page, openapi, poll, prompts, prune,
    quarantine, retention, run_list, runners, runs, state, steps, system, tools, transfer, vendor_extensions, verify,
    webhook_list, webhooks, workflow_versions, workflows, workspace,
};

/// The operations of this host, by how they are mounted.
pub(crate) struct Table {
    /// Answer even when the host is at capacity.
    pub(crate) always: Vec<Operations>,
    pub(crate) limited: Vec<Operations>,
    /// The run itself; what may be done with it is behind a colon, at the same path.
    pub(crate) run: Operations,
    pub(crate) verbs: Vec<Operations>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            always: vec![
                operations!(discovery::get),
                operations!(openapi::get),
                operations!(health::health),
                operations!(health::readiness),
                operations!(metrics_page::page),
            ],
            limited: [
                documents(),
                runs(),
                interrupts(),
                workflows(),
                agents(),
                ledgers(),
                webhooks(),
                runner_channel(),
                steps_in_hand(),
            ]
            .into_iter()
            .flatten()
            .collect(),
            run: operations!(runs::get),
            verbs: vec![
                operations!(diff::get),
                operations!(control::pause),
                operations!(control::resume),
                operations!(fork::post),
                operations!(prune::post),
            ],
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Operations> {
        self.always.iter().chain(&self.limited).chain([&self.run]).chain(&self.verbs)
    }
}

fn documents() -> Vec<Operations> {
    vec![operations!(vendor_extensions::get), operations!(envelope_schemas::get), operations!(system::get)]
}

fn runs() -> Vec<Operations> {
    vec![
        operations!(run_list::list, runs::create),
        operations!(control::bulk_cancel),
        operations!(control::cancel),
        operations!(events::get),
        operations!(poll::get),
        operations!(activity::get),
        operations!(ancestry::get),
        operations!(annotations::list, annotations::create),
        operations!(debug_bundle::get),
        operations!(artifacts::get),
        operations!(transfer::import),
        verbatim(operations!(transfer::export)),
        operations!(state::get),
        operations!(state::surroundings),
        verbatim(operations!(workspace::at_record)),
        operations!(verify::post),
        operations!(retention::bulk_prune),
        operations!(retention::due),
        operations!(quarantine::list),
        operations!(quarantine::release),
    ]
}

fn interrupts() -> Vec<Operations> {
    vec![
        operations!(interrupts::resolve),
        operations!(interrupts::resolve_alias),
        operations!(interrupts::list),
        operations!(interrupts::inspect_token, interrupts::resolve_token)
            .map(|router| router.layer(map_response(interrupts::keep_the_address_quiet))),
    ]
}

fn workflows() -> Vec<Operations> {
    vec![
        verbatim(operations!(workflows::list, workflows::register)),
        verbatim(operations!(workflows::get)),
        operations!(workflow_versions::validate),
        operations!(workflow_versions::list),
        verbatim(operations!(workflow_versions::get)),
    ]
}

fn agents() -> Vec<Operations> {
    vec![
        operations!(agents::list),
        operations!(agents::get),
        operations!(agents::effective::get),
        operations!(tools::list),
        operations!(tools::get),
        verbatim(operations!(prompts::list::list, prompts::create)),
        operations!(prompts::render::render),
        verbatim(operations!(prompts::get, prompts::replace, prompts::remove)),
        operations!(chat::post),
        operations!(conversations::list),
        operations!(conversations::get),
        operations!(conversations::fork),
    ]
}

/// Files and memory.
fn ledgers() -> Vec<Operations> {
    vec![
        operations!(workspace::list),
        verbatim(operations!(workspace::get, workspace::put, workspace::delete)),
        operations!(workspace::changes),
        operations!(memory::scopes),
        verbatim(operations!(memory::list, memory::remember)),
        verbatim(operations!(memory::get, memory::forget)),
    ]
}

fn webhooks() -> Vec<Operations> {
    vec![
        operations!(webhook_list::list, webhooks::register),
        operations!(webhook_list::get, webhooks::remove),
        operations!(webhook_list::resume),
        operations!(webhook_list::rotate_secret),
        operations!(dead_letters::list),
        operations!(dead_letters::forget_all),
        operations!(dead_letters::redeliver_all),
        operations!(dead_letters::forget_one),
        operations!(dead_letters::redeliver_one),
    ]
}

/// Runners and their tokens. What is sent to runners, and a new token, is not masked.
fn runner_channel() -> Vec<Operations> {
    vec![
        verbatim(operations!(runners::tokens::list, runners::tokens::create)),
        operations!(runners::tokens::own),
        operations!(runners::tokens::revoke),
        operations!(runners::list, runners::register),
        operations!(runners::put_tools),
        operations!(runners::sign_off),
        verbatim(operations!(runners::dispatch)),
        operations!(runners::results),
        operations!(runners::reports),
    ]
}

/// What programs that have a step in hand may ask. They get back what models said and what they kept, letter by letter.
fn steps_in_hand() -> Vec<Operations> {
    vec![
        operations!(steps::models),
        verbatim(operations!(steps::chat)),
        verbatim(operations!(steps::responses)),
        verbatim(operations!(steps::memo::get, steps::memo::put)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_that_are_mounted_together_have_one_path() {
        let mut seen = std::collections::BTreeSet::new();
        for operations in Table::new().all() {
            let (_, paths) = operations.document();
            let names: Vec<&String> = paths.paths.keys().collect();
            assert_eq!(names, [&operations.path]);
            assert!(seen.insert(names[0].clone()), "{names:?} is mounted twice");
        }
    }
}
