//! Causes on other hosts.

use serde::{Deserialize, Serialize};

use crate::{EventId, NodeId, RunId, WorkflowId};

/// The event on another host that a run follows from, as whoever started the run tells it. It is recorded and shown, so
/// that a tree can be walked across hosts; it identifies and allows nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignCause {
    pub host_id: String,
    pub run_id: RunId,
    pub event_id: EventId,
    /// The node and the workflow that the event belongs to, where they can be told in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<WorkflowId>,
    /// The primitive that asked for the run, e.g. `core.dispatch`.
    pub cause: String,
    /// Where the other host describes itself.
    pub well_known_url: String,
    /// How many ancestors the run has there and here, so that hosts cannot dispatch in circles for ever.
    pub depth: u32,
    /// The parent only tries something out: calls that would change the world are answered from the record, or fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// The scopes of whoever started the tree over there, where those are not all. The run has them at most: its key may
    /// do more, and is not that somebody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
}

impl ForeignCause {
    /// The request header it travels in, as one line of JSON.
    pub const HEADER: &'static str = "baton-causation";
    /// The request header that takes a run back: it is made, but never sets out.
    pub const WITHDRAWN: &'static str = "baton-withdrawn";

    const CAUSES: [&'static str; 4] = ["core.dispatch", "core.subWorkflow", "mcp-tool-call", "a2a-message"];
    const WELL_KNOWN: &'static str = "/.well-known/openwop";
    /// How long the name of a node or a workflow may be.
    const PLACE: usize = 255;
    /// How many scopes there may be, and how long the name of one: a few more than there are.
    const SCOPES: usize = 64;
    const SCOPE: usize = 64;

    /// Reads the header. A claim that cannot be kept as it stands is refused with what is wrong with it, because a run
    /// whose parent nobody can find is worse than none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let claim: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let wrong = |what: &str| Err(format!("{what} is missing, too long, or not plain ASCII"));
        if !name(&claim.host_id, 255) {
            return wrong("hostId");
        }
        if !name(claim.run_id.as_str(), 128) {
            return wrong("runId");
        }
        if !name(claim.event_id.as_str(), 128) {
            return wrong("eventId");
        }
        if claim.node_id.as_ref().is_some_and(|id| !name(id.as_str(), Self::PLACE)) {
            return wrong("nodeId");
        }
        if claim.workflow_id.as_ref().is_some_and(|id| !name(id.as_str(), Self::PLACE)) {
            return wrong("workflowId");
        }
        if !Self::CAUSES.contains(&claim.cause.as_str()) {
            return Err(format!("cause is one of {}", Self::CAUSES.join(", ")));
        }
        if !name(&claim.well_known_url, 2048) || !is_page(&claim.well_known_url) {
            return Err(format!("wellKnownUrl is an http(s) address that ends in {}", Self::WELL_KNOWN));
        }
        if let Some(scopes) = &claim.scopes
            && (scopes.len() > Self::SCOPES || scopes.iter().any(|scope| !name(scope, Self::SCOPE)))
        {
            return wrong("a name in scopes");
        }
        if claim.depth == 0 {
            return Err("depth is at least 1".to_owned());
        }
        Ok(claim)
    }

    /// The same, with where its event belongs. A name that a header cannot hold is left out: nothing depends on it.
    #[must_use]
    pub fn at(self, node: &NodeId, workflow: &WorkflowId) -> Self {
        let node_id = Some(node).filter(|id| name(id.as_str(), Self::PLACE)).cloned();
        let workflow_id = Some(workflow).filter(|id| name(id.as_str(), Self::PLACE)).cloned();
        Self { node_id, workflow_id, ..self }
    }

    /// The header's value.
    pub fn header(&self) -> String {
        // Plain data with text keys; writing it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The page of a host that is reached at `address`.
    pub fn well_known(address: &str) -> String {
        format!("{}{}", address.trim_end_matches('/'), Self::WELL_KNOWN)
    }
}

fn name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Nobody fetches it here, but people and programs will: no user names in it, and no other scheme.
fn is_page(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let Some(authority) = rest.strip_suffix(ForeignCause::WELL_KNOWN) else { return false };
    let host = authority.split('/').next().unwrap_or_default();
    matches!(scheme, "http" | "https") && !host.is_empty() && !authority.contains(['@', '?', '#', '\\', '"'])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn claim() -> ForeignCause {
        ForeignCause {
            host_id: "north.example".to_owned(),
            run_id: RunId::new("run_a"),
            event_id: EventId::new("run_a.7"),
            node_id: None,
            workflow_id: None,
            cause: "core.dispatch".to_owned(),
            well_known_url: ForeignCause::well_known("https://north.example:8443/"),
            depth: 1,
            simulated: false,
            scopes: None,
        }
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        assert_eq!(claim().well_known_url, "https://north.example:8443/.well-known/openwop");
        assert_eq!(ForeignCause::parse(&claim().header()).unwrap(), claim());
        let placed = claim().at(&NodeId::new("hand-over"), &WorkflowId::new("leads"));
        assert_eq!(ForeignCause::parse(&placed.header()).unwrap(), placed);
        assert_eq!(placed.node_id, Some(NodeId::new("hand-over")));
        let unsayable = claim().at(&NodeId::new("\u{fc}bergabe"), &WorkflowId::new("two words"));
        assert_eq!(unsayable, claim(), "a header holds neither");
    }

    #[test]
    fn a_claim_that_cannot_be_kept_is_refused() {
        let page = |url: &str| ForeignCause { well_known_url: url.to_owned(), ..claim() };
        let bad = [
            ForeignCause { host_id: String::new(), ..claim() },
            ForeignCause { scopes: Some(vec!["a".to_owned(); 65]), ..claim() },
            ForeignCause { scopes: Some(vec!["two words".to_owned()]), ..claim() },
            ForeignCause { scopes: Some(vec!["a".repeat(65)]), ..claim() },
            ForeignCause { host_id: "two words".to_owned(), ..claim() },
            ForeignCause { host_id: "n".repeat(256), ..claim() },
            ForeignCause { run_id: RunId::new("\u{e4}"), ..claim() },
            ForeignCause { event_id: EventId::new("e".repeat(129)), ..claim() },
            ForeignCause { cause: "core.magic".to_owned(), ..claim() },
            ForeignCause { depth: 0, ..claim() },
            ForeignCause { node_id: Some(NodeId::new("n".repeat(256))), ..claim() },
            ForeignCause { workflow_id: Some(WorkflowId::new("")), ..claim() },
            page("https://north.example"),
            page("javascript:alert(1)/.well-known/openwop"),
            page("https://me@north.example/.well-known/openwop"),
            page("https:///.well-known/openwop"),
            page("https://north.example/?x=/.well-known/openwop"),
        ];
        for claim in bad {
            assert!(ForeignCause::parse(&claim.header()).is_err(), "{claim:?}");
        }
        for text in ["", "{}", "null", "[1]"] {
            assert!(ForeignCause::parse(text).is_err(), "{text}");
        }
    }
}
