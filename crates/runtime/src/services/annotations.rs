//! What people and programs say about runs. It changes nothing in the run.

use std::sync::Arc;

use baton_model::{
    Anchor, Annotation, AnnotationActor, AnnotationTarget, EventId, MAX_ANNOTATION_BYTES, MAX_ANNOTATIONS, Principal,
    RunId, Secret, Signal, TenantId, code, mask_shapes, redact,
};
use baton_store::{AnnotationRow, Reply, RunRow, Store, Write};
use serde_json::Value;

use crate::clock::{Clock, Ids};
use crate::cluster::claims::Claims;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::run::stored_reply::{REPLY_TTL_MS, claim_name};
use crate::services::notifications::Notifications;
use crate::services::stored_bytes::StoredBytes;
use crate::{Error, ErrorKind, Idempotent};

/// Keeps what is said about runs.
pub(crate) struct Annotations {
    pub(crate) annotating: Arc<LoadLocks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) stored_bytes: Arc<StoredBytes>,
}

impl Annotations {
    pub(crate) async fn annotated_run(&self, tenant: &TenantId, run: &RunId) -> Result<RunRow, Error> {
        let row = self.store.run(run).await?.filter(|row| row.tenant == *tenant);
        row.ok_or_else(Error::run_not_found)
    }

    pub(crate) async fn annotate(
        &self,
        who: &Principal,
        run: RunId,
        new: NewAnnotation,
        idempotent: Option<Idempotent<Annotation>>,
    ) -> Result<Annotation, Error> {
        let row = self.annotated_run(&who.tenant, &run).await?;
        if let Some(pruned) = row.pruned.filter(|pruned| pruned.log) {
            return Err(Error::run_pruned(pruned.at));
        }
        self.check_annotation(&row, &new).await?;
        self.stored_bytes.admit(&who.tenant)?;
        // Counting and adding, one after the other. Another host may add one meanwhile, so a few more may come to be.
        let _alone = self.annotating.lock(&run).await;
        if self.store.count_annotations(&run).await? >= MAX_ANNOTATIONS {
            let message = format!("There are {MAX_ANNOTATIONS} annotations of this run already. No more are taken.");
            return Err(Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message).with("limit", MAX_ANNOTATIONS));
        }
        let at = self.clock.now();
        let clean = |text: String| mask_shapes(&redact(&text, &self.secrets)).into_owned();
        let Signal { kind, rating, label, correction } = new.signal;
        let annotation = Annotation {
            annotation_id: self.ids.run().as_str().replacen("run_", "ann_", 1),
            target: AnnotationTarget { run_id: run.clone(), anchor: new.anchor },
            signal: Signal { kind, rating, label: label.map(clean), correction: correction.map(clean) },
            actor: AnnotationActor { principal_ref: who.subject.clone() },
            note: new.note.map(clean),
            created_at: at,
        };
        let body = serde_json::to_string(&annotation).map_err(|error| {
            Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The annotation could not be written.").because(error)
        })?;
        let id = annotation.annotation_id.clone();
        let mut writes = vec![Write::Annotate(AnnotationRow { run: run.clone(), id: id.clone(), at, body })];
        if let Some(Idempotent { key, request, render }) = idempotent {
            self.claims.still_holds(&claim_name(&key))?;
            let (status, body) = render(&annotation);
            let expires_at = at.plus_millis(REPLY_TTL_MS);
            writes.push(Write::PutReply(Reply { key, request, status, body, expires_at }));
        }
        self.storage.write(self.storage.live()?.generation, Lane::Of(&who.tenant), writes).await?;
        tracing::info!(%run, annotation = id, by = who.subject, tenant = %who.tenant, "a run was annotated");
        if self.storage.shared().is_none() {
            // Where several hosts share the store, it tells them all, this one too.
            self.notifications.annotated(&run, &id);
        }
        Ok(annotation)
    }

    async fn check_annotation(&self, row: &RunRow, new: &NewAnnotation) -> Result<(), Error> {
        let wrong =
            |pointer: &str, problem: &str| Error::invalid(format!("{pointer} {problem}.")).with("pointer", pointer);
        if let Some((pointer, problem)) = new.signal.problem() {
            return Err(wrong(&format!("/signal{pointer}"), &problem));
        }
        if new.note.as_ref().is_some_and(|note| note.len() > MAX_ANNOTATION_BYTES) {
            return Err(wrong("/note", &format!("may have at most {MAX_ANNOTATION_BYTES} bytes")));
        }
        if let Some(event) = &new.anchor.event_id {
            let seq = EventId::from(event.as_str()).sequence_in(&row.id);
            if seq.is_none_or(|seq| seq >= row.next_seq) {
                return Err(wrong("/target/eventId", "names no event of this run"));
            }
        }
        if let Some(node) = &new.anchor.node_id {
            let bytes = self.store.blob(&row.digest).await?.unwrap_or_default();
            let definition: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let nodes = definition["nodes"].as_array().map_or(&[][..], Vec::as_slice);
            if !nodes.iter().any(|known| known["id"] == node.as_str()) {
                return Err(wrong("/target/nodeId", "names no node of this run's workflow"));
            }
        }
        Ok(())
    }
}

/// What somebody wants to say about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAnnotation {
    pub anchor: Anchor,
    pub signal: Signal,
    pub note: Option<String>,
}
