//! Who may touch a channel. Entries are node ids, type ids, or type ids with a trailing `*`.

use baton_model::workflow::{Access, Node};
use baton_model::{Fault, code};

/// The list that leaves this node out, if there is one.
pub(super) fn left_out<'a>(list: Option<&'a Vec<String>>, id: &str, type_id: &str) -> Option<&'a [String]> {
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

pub(crate) fn access_denied(channel: &str, node: &str, verb: &str, allowed: &[String]) -> Fault {
    Fault::new(code::CHANNEL_ACCESS_DENIED, format!("This node may not {verb} `{channel}`."))
        .with("channel", channel)
        .with("requestedBy", node)
        .with("allowed", allowed.to_vec())
}
