//! What people and programs say about runs.

use baton_api::{AnnotationList, NewAnnotation};
use baton_model::Annotation;

use crate::routes::append;
use crate::{Client, Error};

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
