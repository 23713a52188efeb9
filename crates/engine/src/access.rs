//! Who may touch a channel. Entries are node ids, type ids, or type ids with a trailing `*`.

use baton_model::workflow::{Access, Node};
use baton_model::{Fault, code};

use crate::plan::Plan;

/// The list that leaves this node out, if there is one.
fn left_out<'a>(list: Option<&'a Vec<String>>, id: &str, type_id: &str) -> Option<&'a [String]> {
    let list = list?;
    let named = |entry: &String| match entry.strip_suffix('*') {
        Some(prefix) => type_id.starts_with(prefix),
        None => entry == id || entry == type_id,
    };
    (!list.iter().any(named)).then_some(list.as_slice())
}

/// The writers that are allowed, if this node is not among them.
pub(crate) fn write_denied(access: Option<&Access>, node: &Node) -> Option<Vec<String>> {
    match access {
        Some(Access::Listed { writers, .. }) => {
            left_out(writers.as_ref(), node.id.as_str(), &node.type_id).map(<[String]>::to_vec)
        }
        Some(Access::Named(_)) | None => None,
    }
}

impl Plan {
    /// Whether a node may read this name, as far as channels go.
    pub(crate) fn may_read(&self, node: usize, channel: &str) -> bool {
        let reader = &self.nodes[node];
        left_out(self.readers(channel), reader.id.as_str(), &reader.type_id).is_none()
    }

    fn readers(&self, channel: &str) -> Option<&Vec<String>> {
        match self.definition.channels.get(channel).and_then(|channel| channel.access.as_ref()) {
            Some(Access::Listed { readers, .. }) => readers.as_ref(),
            Some(Access::Named(_)) | None => None,
        }
    }

    /// Refuses a node that reads a channel it is not a reader of.
    pub(crate) fn check_read(&self, node: usize, channel: &str) -> Result<(), Fault> {
        let reader = &self.nodes[node];
        match left_out(self.readers(channel), reader.id.as_str(), &reader.type_id) {
            None => Ok(()),
            Some(allowed) => Err(denied(channel, reader.id.as_str(), "read", allowed)),
        }
    }
}

pub(crate) fn denied(channel: &str, node: &str, verb: &str, allowed: &[String]) -> Fault {
    Fault::new(code::CHANNEL_ACCESS_DENIED, format!("This node may not {verb} `{channel}`."))
        .with("channel", channel)
        .with("requestedBy", node)
        .with("allowed", allowed.to_vec())
}
