//! What packs may count on: whatever the host tells everybody that it can do, and nothing else.

use std::sync::Arc;

use baton_agent::{Capabilities, Sources};
use baton_provider::MockProvider;
use baton_runtime::{AgentRegistry, Models, Options};
use baton_server::{ServerOptions, discovery_document};

use super::conformance;
use crate::commands::VERSION;
use crate::config::Config;

/// What a host offers that is set up like this. Which packs it has does not matter, except that it has some: the team
/// that comes along.
pub(super) fn offered(config: &Config, mut host: Options) -> Capabilities {
    host.agent_registry = team();
    let server = ServerOptions {
        test_capabilities: conformance::capabilities(config),
        version: VERSION.to_owned(),
        max_body_bytes: usize::try_from(config.limits.max_request_body_bytes).unwrap_or(usize::MAX),
        ..ServerOptions::default()
    };
    Capabilities::from_discovery(&discovery_document(&server, &host))
}

/// What a host of this version offers once a provider of models is set up, for whoever looks at a pack without a host.
pub(crate) fn offered_in_general() -> Capabilities {
    let models = Models::default().with("any", Arc::new(MockProvider::default()));
    let host = Options { models, agent_registry: team(), ..Options::default() };
    let server = ServerOptions { version: VERSION.to_owned(), ..ServerOptions::default() };
    Capabilities::from_discovery(&discovery_document(&server, &host))
}

fn team() -> AgentRegistry {
    AgentRegistry::of(Arc::new(baton_agent::load(&Sources { bundled: true, ..Sources::default() })))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Layered;

    #[test]
    fn packs_may_want_what_is_advertised_and_nothing_else() {
        let host = offered_in_general();
        for there in [
            "agents.dispatch",
            "agents.liveRuntime.structuredOutput",
            "agents.manifestRuntime",
            "agents.reasoning.streaming",
            "aiProviders",
            "budget",
            "envelopes",
            "memory.search",
            "modelCapabilities",
            "multiAgent",
            "openwop.agents.memoryBackends",
            "replay",
            "subWorkflow",
            "webhooks",
        ] {
            assert!(host.meets(there, "supported"), "{there}");
        }
        assert!(host.meets("openwop.agents.memoryBackends", ">=longTerm"));
        for absent in ["host.agentRuntime", "httpClient", "voice", "testing", "fixtures", "memory.compaction"] {
            assert!(!host.has(absent), "{absent}");
        }
    }

    #[test]
    fn without_a_provider_nobody_is_promised_a_model() {
        let config = Layered::defaults().config().unwrap();
        let host = offered(&config, Options::default());
        assert!(!host.has("aiProviders") && !host.has("envelopes"));
        assert!(host.has("agents.manifestRuntime") && host.has("workspace"));
    }
}
