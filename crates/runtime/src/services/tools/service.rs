//! Who calls tools, and what it may use for that.

use std::sync::Arc;

use baton_model::Secret;
use baton_store::Store;

use crate::Options;
use crate::history::log::RunLog;

/// Calls tools, or answers for them where a branch only simulates.
pub(crate) struct ToolCalls {
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: Arc<RunLog>,
}
