//! What runs say to each other, and to the host.

use std::sync::Arc;

use baton_engine::{Command, NodeRequest};
use baton_model::RunId;
use baton_model::event::{ChildPlan, ParentLink};

/// Something one run says to another, or to the shell on its behalf.
pub(crate) enum Message {
    To {
        run: RunId,
        command: Command,
    },
    StartChild {
        plan: ChildPlan,
        link: Box<ParentLink>,
        depth: u32,
        max_duration_ms: Option<u64>,
        look_first: bool,
    },
    /// Find out where this child stands and tell its parent.
    CheckChild {
        parent: RunId,
        child: RunId,
        /// The parent was loaded and asks about all its children; it stays until it has heard of them.
        roll_call: bool,
    },
    CancelChild {
        parent: RunId,
        child: RunId,
    },
    /// Read what a node asks for, then let its run go on.
    NodeRequest {
        run: RunId,
        node_request: Arc<NodeRequest>,
    },
    /// The same, by whoever has nothing else to deliver.
    NodeRequestHere {
        run: RunId,
        node_request: Arc<NodeRequest>,
    },
}

impl Message {
    /// The run that is asked anew if this cannot be delivered.
    pub(crate) fn about(&self) -> &RunId {
        match self {
            Self::To { run, .. } | Self::NodeRequest { run, .. } | Self::NodeRequestHere { run, .. } => run,
            Self::StartChild { link, .. } => &link.run,
            Self::CheckChild { parent, .. } | Self::CancelChild { parent, .. } => parent,
        }
    }
}
