//! Capabilities that a test has switched off or on again, so that a refusal can be provoked.

use std::collections::BTreeMap;

use baton_engine::Features;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Switches(Mutex<BTreeMap<String, bool>>);

impl Switches {
    /// Switches a capability for registrations from now on; without a value it is as configured, without a name all of
    /// them are. Returns the switches in force.
    pub(crate) fn set(&self, name: Option<(String, Option<bool>)>) -> BTreeMap<String, bool> {
        let mut switches = self.0.lock();
        match name {
            None => switches.clear(),
            Some((name, None)) => drop(switches.remove(&name)),
            Some((name, Some(value))) => drop(switches.insert(name, value)),
        }
        switches.clone()
    }

    pub(crate) fn is_off(&self, name: &str) -> bool {
        self.0.lock().get(name) == Some(&false)
    }

    /// What definitions may have, given what the host offers.
    pub(crate) fn features(&self, offered: Features) -> Features {
        Features {
            no_dispatch_mapping: offered.no_dispatch_mapping || self.is_off("agents.dispatchMapping"),
            no_sub_workflow_mapping: offered.no_sub_workflow_mapping || self.is_off("subWorkflow.inputMapping"),
            ..offered
        }
    }
}
