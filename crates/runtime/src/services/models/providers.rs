use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use baton_provider::Provider;

/// The model providers of a host, by name.
#[derive(Clone, Default)]
pub struct Models(BTreeMap<String, Arc<dyn Provider>>);

impl Models {
    #[must_use]
    pub fn with(mut self, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.0.insert(name.to_owned(), provider);
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether any of them has a model behind it.
    pub fn infer(&self) -> bool {
        self.0.values().any(|provider| provider.infers())
    }

    /// Whose services they are: vendors by the protocol's words, anything else by the name it has here.
    pub fn vendors(&self) -> BTreeSet<&str> {
        self.0.iter().map(|(name, provider)| provider.vendor().unwrap_or(name)).collect()
    }

    /// The same, with this one where none of that name is.
    pub(crate) fn or(self, name: &str, provider: Arc<dyn Provider>) -> Self {
        if self.0.contains_key(name) { self } else { self.with(name, provider) }
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
