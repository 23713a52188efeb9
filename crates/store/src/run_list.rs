//! How runs are found without looking at all of them. Every database has the same indexes, so both decide alike.
//!
//! A filter names columns that an index knows and others. One index *drives* the search, in the order of the list; what
//! else is asked is judged run by run. Where that finds too little, the page ends early and says where to go on.

use baton_model::{RunId, RunStatus, RunSummary, WorkflowId};

use crate::{RunFilter, RunRow};

/// How many runs one page may look at and leave out. More would make whoever asks wait; fewer would make lists of what is
/// rare out of many short pages.
pub const LOOKED_AT: usize = 4000;
/// How many runs may begin with a prefix for all of them to be fetched and sorted. The ids of runs are in no order.
pub const PREFIXED: usize = 500;
/// How many workflows may begin with a text for each to be searched by itself.
pub const WORKFLOWS: usize = 16;

/// The index that a search goes along.
#[derive(Clone, Debug, PartialEq)]
pub enum Drive<'a> {
    /// Looked up one by one.
    Ids(&'a [RunId]),
    Parent(&'a RunId),
    Root(&'a RunId),
    Tag(&'a str),
    Diverged,
    OverBudget,
    /// None of them is `completed`, which the index leaves out.
    Statuses(&'a [RunStatus]),
    /// Only where few begin with it.
    IdPrefix(&'a str),
    Workflow(&'a WorkflowId),
    /// The beginning of an id or of a workflow's; only where few begin with it.
    Text(&'a str),
    /// All runs of the tenant.
    Tenant,
    /// All runs there are. Nobody asks for them from outside.
    Everything,
}

impl RunFilter {
    /// What may drive the search; never empty. Where there are several, whoever searches finds out which is the shortest.
    pub fn drives(&self) -> Vec<Drive<'_>> {
        if !self.ids.is_empty() {
            return vec![Drive::Ids(&self.ids)];
        }
        let mut drives = Vec::new();
        drives.extend(self.parent.as_ref().map(Drive::Parent));
        drives.extend(self.root.as_ref().map(Drive::Root));
        if self.tenant.is_some() {
            if self.diverged == Some(true) {
                drives.push(Drive::Diverged);
            }
            if self.over_budget == Some(true) {
                drives.push(Drive::OverBudget);
            }
            drives.extend(self.tag.as_deref().map(Drive::Tag));
            if !self.status.is_empty() && !self.status.contains(&RunStatus::Completed) {
                drives.push(Drive::Statuses(&self.status));
            }
        }
        drives.extend(prefix(self.id_prefix.as_ref()).map(Drive::IdPrefix));
        if self.tenant.is_some() {
            drives.extend(prefix(self.text_prefix.as_ref()).map(Drive::Text));
            drives.extend(self.workflow.as_ref().map(Drive::Workflow));
            drives.push(Drive::Tenant);
        } else {
            drives.push(Drive::Everything);
        }
        let certain = |drive: &Drive<'_>| !drive.is_last() && !matches!(drive, Drive::IdPrefix(_) | Drive::Text(_));
        if drives.iter().any(certain) {
            drives.pop();
        }
        drives
    }

    /// Whether a run is as asked.
    pub fn matches(&self, row: &RunRow) -> bool {
        let begins = |text: &str, prefix: Option<&String>| prefix.is_none_or(|prefix| text.starts_with(prefix));
        let text = self.text_prefix.as_ref();
        self.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant)
            && (self.status.is_empty() || self.status.contains(&row.status))
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
            && self.parent.as_ref().is_none_or(|parent| row.parent.as_ref() == Some(parent))
            && self.root.as_ref().is_none_or(|root| row.root.as_ref() == Some(root))
            && begins(row.id.as_str(), self.id_prefix.as_ref())
            && self.created_from.is_none_or(|from| row.created_at >= from)
            && self.created_until.is_none_or(|until| row.created_at <= until)
            && self.updated_from.is_none_or(|from| row.updated_at >= from)
            && self.updated_until.is_none_or(|until| row.updated_at <= until)
            && (self.ids.is_empty() || self.ids.contains(&row.id))
            && !(self.top_level && row.parent.is_some())
            && (begins(row.id.as_str(), text) || begins(row.workflow.as_str(), text))
            && self.fits_summary(row)
    }

    /// Whether a run's summary is as asked. One that has none is neither diverged nor over its budget.
    fn fits_summary(&self, row: &RunRow) -> bool {
        if self.diverged.is_none() && self.over_budget.is_none() && self.cost_usd_from.is_none() {
            return true;
        }
        let text = row.summary.as_deref().unwrap_or("{}");
        let summary: RunSummary = serde_json::from_str(text).unwrap_or_default();
        let cost = summary.usage.and_then(|usage| usage.cost_usd);
        self.diverged.is_none_or(|diverged| summary.diverged == diverged)
            && self.over_budget.is_none_or(|over| summary.over_budget == over)
            && self.cost_usd_from.is_none_or(|from| cost.is_some_and(|cost| cost >= from))
    }
}

impl Drive<'_> {
    /// Only where nothing else can drive.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Tenant | Self::Everything)
    }
}

/// An empty one asks for nothing.
fn prefix(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
