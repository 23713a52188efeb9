//! What people and programs say about a run, beside its log. Any host of a store takes it, whoever drives the run.

use baton_model::{
    Anchor, Annotation, AnnotationActor, AnnotationTarget, EventId, MAX_ANNOTATION_BYTES, MAX_ANNOTATIONS, Principal,
    RunId, Signal, TenantId, code, mask_shapes, redact,
};
use baton_store::{AnnotationRow, Commit, Reply, RunRow, Write};
use serde_json::Value;

use super::claim_name;
use crate::inner::Inner;
use crate::run::start::REPLY_TTL_MS;
use crate::{Annotated, Error, Host, Idempotent, Kind};

/// What somebody wants to say about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAnnotation {
    pub anchor: Anchor,
    pub signal: Signal,
    pub note: Option<String>,
}

impl Host {
    /// Says something about a run, be it over or not. The answer is what was stored, secrets taken out.
    pub async fn annotate(
        &self,
        who: &Principal,
        run: &RunId,
        new: NewAnnotation,
        idempotent: Option<Idempotent<Annotation>>,
    ) -> Result<Annotation, Error> {
        let (who, run) = (who.clone(), run.clone());
        self.inner.see_through(|inner| async move { inner.annotate(&who, run, new, idempotent).await }).await
    }

    /// What was said about a run, oldest first: after the one with this id, if any. With where to go on, if there is more.
    pub async fn annotations(
        &self,
        tenant: &TenantId,
        run: &RunId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Annotation>, Option<String>), Error> {
        self.inner.annotated_run(tenant, run).await?;
        // One more than asked for says whether there is another page.
        let mut rows = self.inner.store.annotations(run, after, limit.saturating_add(1)).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| row.id.clone());
        Ok((rows.iter().map(read).collect::<Result<_, _>>()?, next))
    }

    pub async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<Annotation>, Error> {
        self.inner.store.annotation(run, id).await?.as_ref().map(read).transpose()
    }

    /// Hears that something was said about this run from now on. A hint like any other: what is missed is in the list.
    pub fn annotated(&self, run: &RunId) -> Annotated {
        self.inner.hub.annotations(run)
    }
}

fn read(row: &AnnotationRow) -> Result<Annotation, Error> {
    serde_json::from_str(&row.body).map_err(|error| {
        Error::new(Kind::Internal, code::INTERNAL_ERROR, "An annotation could not be read.").because(error)
    })
}

impl Inner {
    async fn annotated_run(&self, tenant: &TenantId, run: &RunId) -> Result<RunRow, Error> {
        let row = self.store.run(run).await?.filter(|row| row.tenant == *tenant);
        row.ok_or_else(Error::run_not_found)
    }

    async fn annotate(
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
        // Counting and adding, one after the other. Another host may add one meanwhile, so a few more may come to be.
        let _alone = self.annotating.lock(&run).await;
        if self.store.count_annotations(&run).await? >= MAX_ANNOTATIONS {
            let message = format!("There are {MAX_ANNOTATIONS} annotations of this run already. No more are taken.");
            return Err(Error::new(Kind::TooMany, code::RATE_LIMITED, message).with("limit", MAX_ANNOTATIONS));
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
            Error::new(Kind::Internal, code::INTERNAL_ERROR, "The annotation could not be written.").because(error)
        })?;
        let id = annotation.annotation_id.clone();
        let mut writes = vec![Write::Annotate(AnnotationRow { run: run.clone(), id: id.clone(), at, body })];
        if let Some(Idempotent { key, request, render }) = idempotent {
            self.still_holds(&claim_name(&key))?;
            let (status, body) = render(&annotation);
            let expires_at = at.plus_millis(REPLY_TTL_MS);
            writes.push(Write::PutReply(Reply { key, request, status, body, expires_at }));
        }
        self.store.submit(Commit::alone(self.world()?.generation, writes)).await?;
        tracing::info!(%run, annotation = id, by = who.subject, tenant = %who.tenant, "a run was annotated");
        if self.shared().is_none() {
            // Where several hosts share the store, it tells them all, this one too.
            self.hub.annotated(&run, &id);
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
