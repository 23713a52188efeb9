//! What people and programs say about runs.

use baton_model::{Anchor, Annotation, Signal};
use serde::{Deserialize, Serialize};

use crate::routes::append;
use crate::{Client, Error};

/// Something to be said about a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewAnnotation {
    pub signal: Signal,
    pub target: Anchor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationList {
    pub annotations: Vec<Annotation>,
    /// There are more after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

impl Client {
    pub async fn annotate(&self, run: &str, new: &NewAnnotation) -> Result<Annotation, Error> {
        self.post(self.url(&["v1", "runs", run, "annotations"]), new, None).await
    }

    /// Oldest first, after the one with this id.
    pub async fn annotations(&self, run: &str, limit: usize, after: Option<&str>) -> Result<AnnotationList, Error> {
        let mut url = self.url(&["v1", "runs", run, "annotations"]);
        append(&mut url, [("limit", Some(limit.to_string())), ("after", after.map(str::to_owned))]);
        self.get(url).await
    }
}
