//! Typed ids.
//!
//! A run id is minted once; everything below a run is *named by its place* (`run/node/visit/…`), so that a retry
//! after a crash produces the same name and a duplicate is recognisable.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id!(
    /// One execution of a workflow, `run_` and 32 hexadecimal digits.
    RunId
);
text_id!(
    /// The top-level isolation boundary; every fetch is bound to one.
    TenantId
);
text_id!(
    /// A workflow's own id, `^[a-z][a-z0-9_-]*$`.
    WorkflowId
);
text_id!(
    /// A node inside one workflow. No length cap is imposed on purpose: the protocol forbids it.
    NodeId
);
text_id!(
    /// One webhook subscription.
    WebhookId
);
text_id!(
    /// Globally unique name of one record: its run and its sequence, so it never has to be stored.
    EventId
);

impl RunId {
    /// A fresh top-level run: UUID v7, so ids sort by creation.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("run_{}", uuid.simple()))
    }

    /// The run that a request under this idempotency key starts on behalf of another host: asked again, however much
    /// later, it is the same run.
    pub fn handed_over(key: &crate::Digest) -> Self {
        Self(format!("run_{}", key.as_str().get(..32).unwrap_or_default()))
    }

    /// The child that `node` starts on its `visit`-th visit: the same place always names the same child.
    pub fn child(&self, node: &NodeId, visit: u32, ordinal: u32) -> Self {
        let mut hash = Sha256::new();
        for part in [self.as_str(), node.as_str()] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hash.update(visit.to_be_bytes());
        hash.update(ordinal.to_be_bytes());
        Self(format!("run_{}", crate::json::hex(&hash.finalize()[..16])))
    }
}

/// The id of the `ordinal`-th memory entry that `node` writes on its `visit`-th visit.
pub fn memory_id(run: &RunId, node: &NodeId, visit: u32, ordinal: u32) -> String {
    run.child(node, visit, ordinal).as_str().replacen("run_", "mem_", 1)
}

impl EventId {
    pub fn at(run: &RunId, seq: u64) -> Self {
        Self(format!("{run}.{seq}"))
    }

    /// The run and the sequence this id names.
    pub fn place(&self) -> Option<(RunId, u64)> {
        let (run, seq) = self.0.rsplit_once('.')?;
        Some((RunId::new(run), seq.parse().ok()?))
    }

    /// The sequence this id names, if it is an id of `run`.
    pub fn sequence_in(&self, run: &RunId) -> Option<u64> {
        self.0.strip_prefix(run.as_str())?.strip_prefix('.')?.parse().ok()
    }
}

impl WorkflowId {
    /// Whether it names a workflow of another host, `https://host/workflows/id`.
    pub fn is_remote(&self) -> bool {
        self.0.starts_with("https://") || self.0.starts_with("http://")
    }

    /// `^[a-z][a-z0-9_-]*$`, at most 128 characters.
    pub fn is_valid(text: &str) -> bool {
        text.len() <= 128
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_named_by_its_place() {
        let parent = RunId::new("run_p");
        let node = NodeId::new("n");
        assert_eq!(parent.child(&node, 1, 0), parent.child(&node, 1, 0));
        assert_ne!(parent.child(&node, 1, 0), parent.child(&node, 2, 0));
        assert_ne!(parent.child(&node, 1, 0), parent.child(&node, 1, 1));
        assert_eq!(parent.child(&node, 1, 0).as_str().len(), 36);
    }

    #[test]
    fn a_memory_entry_is_named_by_its_place_too() {
        let (run, node) = (RunId::new("run_p"), NodeId::new("n"));
        let id = memory_id(&run, &node, 1, 0);
        assert_eq!(id, memory_id(&run, &node, 1, 0));
        assert!(id.starts_with("mem_") && id.len() == 36);
        for other in [
            memory_id(&run, &node, 2, 0),
            memory_id(&run, &node, 1, 1),
            memory_id(&run, &NodeId::new("m"), 1, 0),
            memory_id(&RunId::new("run_q"), &node, 1, 0),
        ] {
            assert_ne!(other, id);
        }
    }

    #[test]
    fn an_event_id_gives_back_its_sequence_in_its_own_run_only() {
        let run = RunId::new("run_a");
        let id = EventId::at(&run, 17);
        assert_eq!(id.sequence_in(&run), Some(17));
        assert_eq!(id.sequence_in(&RunId::new("run_b")), None);
        assert_eq!(id.place(), Some((run, 17)));
    }

    #[test]
    fn workflow_ids_follow_the_pattern() {
        assert!(WorkflowId::is_valid("conformance-noop"));
        for bad in ["", "1a", "A", "a b", "a/b", &"a".repeat(129)] {
            assert!(!WorkflowId::is_valid(bad), "{bad:?}");
        }
    }
}
