//! Where a call leaves the host, behind everything that may keep it back.

use baton_model::RunId;
use baton_model::tool::ToolRequest;
use baton_tool::Called;

use crate::services::tools::service::ToolCalls;

impl ToolCalls {
    /// Something is on its way out on behalf of this run; whether it arrives does not matter. A log cannot tell a call
    /// that was made again from one that was answered from the record, so tests count here.
    pub(crate) fn reaches_out(&self, run: &RunId) {
        if let Some(hooks) = &self.options.test_hooks {
            hooks.count_call(run);
        }
    }

    pub(super) async fn really_call(&self, run: &RunId, request: &ToolRequest) -> Called {
        self.reaches_out(run);
        if let Some(hooks) = &self.options.test_hooks
            && let Some(called) = hooks.tool_call(run, request).await
        {
            return called;
        }
        self.options.tools.call(request).await
    }
}
