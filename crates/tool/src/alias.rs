//! What public packs call the tools of this host. A pack names the node that its author had in mind; where a tool here
//! does the same or less, the name stands for it. The operator may add names, for tools that only that host has.

use std::collections::BTreeMap;

/// The public name, and ours. Nothing stands for more than its name says: the public fetch may also write, ours reads.
const KNOWN: &[(&str, &str)] = &[
    ("openwop:core.http.fetch", "openwop:http.fetch"),
    ("openwop:core.openwop.http.fetch", "openwop:http.fetch"),
    ("openwop:core.openwop.http.request", "openwop:http.request"),
    ("openwop:core.openwop.memory.get", "openwop:memory.get"),
    ("openwop:core.openwop.memory.list", "openwop:memory.list"),
    ("openwop:core.openwop.memory.put", "openwop:memory.put"),
    ("openwop:core.openwop.workspace.get", "openwop:workspace.get"),
    ("openwop:core.openwop.workspace.list", "openwop:workspace.list"),
    ("openwop:core.openwop.workspace.put", "openwop:workspace.put"),
];

/// Names of tools that stand for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aliases(BTreeMap<String, String>);

impl Default for Aliases {
    fn default() -> Self {
        Self(KNOWN.iter().map(|(name, tool)| ((*name).to_owned(), (*tool).to_owned())).collect())
    }
}

impl Aliases {
    /// With names of the operator's, which go before the known ones.
    #[must_use]
    pub fn with(mut self, names: impl IntoIterator<Item = (String, String)>) -> Self {
        self.0.extend(names);
        self
    }

    /// What a name stands for. Names do not stand for names: one step, no circles.
    pub fn tool(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
