//! Runs of a file and their records, as they come.

use crate::history::transfer::open::OpenRun;
use baton_model::{
    Annotation, Digest, Event, MAX_ANNOTATION_BYTES, MAX_ANNOTATIONS, Record, RunId, Signal, Versions, mask_shapes,
};
use baton_store::reads::*;
use baton_store::{
    AnnotationRow, Checksum, LogChain, RunRow, StoredRecord, VersionedStoreId, VersionedStoreKind, Write,
};
use serde_json::Value;

use super::MOST_FORKS;
use super::format::RunLine;
use super::staged::Staged;
use crate::Error;
use crate::history::public_form::{PublicForm, face};
use crate::history::transfer::line_checks::{at, check_name, check_run_id, parser_text};

/// The longest name of whoever said something, and the longest id of an event.
const LONGEST_ACTOR: usize = 256;
/// Digits of an annotation's id.
const ANNOTATION_DIGITS: usize = 32;
/// Records that are put away at once.
const PAGE: usize = 500;

impl Staged {
    pub(super) async fn run(&mut self, line: RunLine, number: u64) -> Result<(), Error> {
        self.close(number).await?;
        let base = line.chain_base;
        let row = line.into_row(&self.tenant);
        let mut row = RunRow { workspace_scope: self.workspace(&row.workspace_scope), ..row };
        self.check_row(&row, number).await?;
        row.chain = self.chain_of_fork(&row).await?;
        self.runs.push((row.id.clone(), number));
        self.holds.runs += 1;
        self.forks += usize::from(row.origin.is_some());
        self.write(vec![Write::CreateRun(row.clone())]).await?;
        let next = row.origin.as_ref().map_or(0, |origin| origin.seq);
        self.open_run = Some(OpenRun { row, next, records: Vec::new(), before: Some(base) });
        Ok(())
    }

    /// What is taken in is chained anew: it may be said in this build's words, or come from before there were checksums.
    async fn chain_of_fork(&self, row: &RunRow) -> Result<LogChain, Error> {
        let Some(origin) = row.origin.as_ref().filter(|origin| origin.seq > 0) else { return Ok(LogChain::default()) };
        let source = self.store.run(&origin.source).await?.ok_or_else(Error::run_not_found)?;
        let last = self.log.log(&source, origin.seq - 1, 1).await?.pop();
        Ok(LogChain::after(last.and_then(|last| last.sum)))
    }

    async fn check_row(&self, row: &RunRow, number: u64) -> Result<(), Error> {
        for id in [Some(&row.id), row.parent.as_ref(), row.root.as_ref()].into_iter().flatten() {
            check_run_id(id, number)?;
        }
        let scopes = [Some(row.memory_scope.as_str()), Some(row.workspace_scope.as_str()), row.scope.as_deref()];
        for name in scopes.into_iter().flatten() {
            check_name(name, number)?;
        }
        if self.store.run(&row.id).await?.is_some() {
            return Err(at(number, format!("the run {} is there twice", row.id)));
        }
        if !row.status.is_terminal() {
            return Err(at(number, "the run has not ended"));
        }
        if row.parent.is_some() != row.root.is_some() || row.parent.as_ref() == Some(&row.id) {
            return Err(at(number, "a run has a parent and a root, or neither"));
        }
        if self.workflows.get(&row.digest) != Some(&row.workflow) {
            return Err(at(number, "the definition this run is pinned to is not in the file"));
        }
        if i64::try_from(row.next_seq).is_err() {
            return Err(at(number, "no log is that long"));
        }
        let Some(origin) = &row.origin else { return Ok(()) };
        if self.forks >= MOST_FORKS {
            return Err(at(number, format!("a file holds at most {MOST_FORKS} forks")));
        }
        let source = self.store.run(&origin.source).await?;
        if row.parent.is_some() || source.is_none_or(|source| source.next_seq < origin.seq) {
            return Err(at(number, "what this run was forked from does not come before it, or not as far"));
        }
        if row.next_seq < origin.seq {
            return Err(at(number, "the run is shorter than what it shares with its source"));
        }
        Ok(())
    }

    pub(super) async fn record(&mut self, mut record: StoredRecord, number: u64) -> Result<(), Error> {
        let Some(open) = &self.open_run else { return Err(at(number, "this record belongs to no run")) };
        let (row, next) = (&open.row, open.next);
        if record.seq != next || next >= row.next_seq {
            let message =
                format!("a record of sequence {} cannot come here; {next} of {} is next", record.seq, row.next_seq);
            return Err(at(number, message));
        }
        let fits = fits_before(&row.id, &record, open.before);
        let sum = record.sum;
        check_depth(&record, number)?;
        self.check_versions(row, record.versions, number)?;
        let told = record.decode(&row.id).map_err(|error| at(number, error))?;
        check_face(&row.id, &mut record, &told, number)?;
        if !fits {
            return Err(at(number, "the record is not what its checksum says, or does not follow the one before it"));
        }
        if record.seq == 0 {
            self.pinned.extend(check_beginning(row, &told.event, number)?);
        }
        let Some(open) = &mut self.open_run else { return Ok(()) };
        open.next += 1;
        // Behind one that left a secret behind, or is older than checksums, nothing is known.
        open.before = sum.map(Some);
        open.records.push(record);
        self.holds.records += 1;
        if open.records.len() >= PAGE { self.put_away().await } else { Ok(()) }
    }

    /// Comes after the last record of its run. It is judged and cleaned as if it were said here.
    pub(super) async fn annotation(&mut self, annotation: Annotation, number: u64) -> Result<(), Error> {
        let whole = self.open_run.as_ref().filter(|open| open.next == open.row.next_seq);
        let Some(row) = whole.map(|open| open.row.clone()) else {
            return Err(at(number, "an annotation comes after the records of its run"));
        };
        if annotation.target.run_id != row.id {
            return Err(at(number, "the annotation is about another run"));
        }
        let digits = annotation.annotation_id.strip_prefix("ann_").unwrap_or_default();
        if digits.len() != ANNOTATION_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(at(number, "an annotation's id is `ann_` and 32 hexadecimal digits"));
        }
        let already = self.store.annotation(&row.id, &annotation.annotation_id).await?.is_some();
        if already || self.store.count_annotations(&row.id).await? >= MAX_ANNOTATIONS {
            return Err(at(number, format!("the annotation is there twice, or one more than {MAX_ANNOTATIONS}")));
        }
        if annotation.actor.principal_ref.len() > LONGEST_ACTOR {
            return Err(at(number, format!("who said it has a name of at most {LONGEST_ACTOR} bytes")));
        }
        let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > MAX_ANNOTATION_BYTES);
        if long(&annotation.note)
            || annotation.target.anchor.event_id.as_ref().is_some_and(|id| id.len() > LONGEST_ACTOR)
        {
            return Err(at(number, "the annotation is too long"));
        }
        if let Some((pointer, problem)) = annotation.signal.problem() {
            return Err(at(number, format!("/signal{pointer} {problem}")));
        }
        let clean = |text: String| mask_shapes(&text).into_owned();
        let Signal { kind, rating, label, correction } = annotation.signal;
        let signal = Signal { kind, rating, label: label.map(clean), correction: correction.map(clean) };
        let annotation = Annotation { signal, note: annotation.note.map(clean), ..annotation };
        let body = serde_json::to_string(&annotation).map_err(|error| at(number, error))?;
        let (id, said) = (annotation.annotation_id, annotation.created_at);
        self.holds.annotations += 1;
        self.write(vec![Write::Annotate(AnnotationRow { run: row.id, id, at: said, body })]).await
    }

    /// What a record refers to has come along. A fork may begin in the middle of a step, whose rest speaks of its
    /// source's versioned stores.
    fn check_versions(&self, row: &RunRow, versions: Versions, number: u64) -> Result<(), Error> {
        let memory = (VersionedStoreId::memory(&self.tenant, &row.memory_scope), versions.memory);
        let workspace = (VersionedStoreId::workspace(&self.tenant, &row.workspace_scope), versions.workspace);
        for (id, version) in [memory, workspace] {
            let reach = self.reaches.get(&id).copied().unwrap_or(0);
            if version > reach && row.origin.is_none() {
                let kind = if id.kind == VersionedStoreKind::Memory { "memory" } else { "workspace" };
                return Err(at(
                    number,
                    format!("the record refers to version {version} of a {kind} that reaches {reach}"),
                ));
            }
        }
        Ok(())
    }

    async fn put_away(&mut self) -> Result<(), Error> {
        let Some(open) = &mut self.open_run else { return Ok(()) };
        let mut records = std::mem::take(&mut open.records);
        let expected = open.next - records.len() as u64;
        open.row.seal(&mut records);
        let row = RunRow { next_seq: open.next, ..open.row.clone() };
        self.write(vec![Write::Append { row, expected, records }]).await
    }

    pub(super) async fn close_run(&mut self, number: u64) -> Result<(), Error> {
        self.put_away().await?;
        match self.open_run.take() {
            Some(OpenRun { row, next, .. }) if next != row.next_seq => {
                Err(at(number, format!("the run {} has {} records, and {next} came", row.id, row.next_seq)))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a record is what its checksum says, where that can be told.
fn fits_before(run: &RunId, record: &StoredRecord, before: Option<Option<Checksum>>) -> bool {
    match (record.sum, before) {
        (Some(sum), Some(before)) => sum == record.checksum(run, before),
        _ => true,
    }
}

/// Neither face nests too deeply to be read again.
fn check_depth(record: &StoredRecord, number: u64) -> Result<(), Error> {
    for text in [Some(&record.body), record.private.as_ref()].into_iter().flatten() {
        serde_json::from_str::<Value>(text).map_err(|error| at(number, parser_text(&error)))?;
    }
    Ok(())
}

/// The public face will be served as it stands, so it says what the record says, all of it and nothing else.
fn check_face(run: &RunId, record: &mut StoredRecord, told: &Record, number: u64) -> Result<(), Error> {
    if told.causation.is_some_and(|cause| cause >= record.seq) {
        return Err(at(number, "the event names a cause that did not come before it"));
    }
    match face(run, record, told) {
        PublicForm::Own => Ok(()),
        PublicForm::Reworded { own } => {
            record.body = own;
            Ok(())
        }
        PublicForm::False { members, .. } => {
            let names = members.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            Err(at(number, format!("the event is not the one its record tells of: {names} should be otherwise")))
        }
    }
}

/// The first record says which workflow runs and for whom. Returns the agents that work for it.
fn check_beginning(row: &RunRow, event: &Event, number: u64) -> Result<Vec<Digest>, Error> {
    let Event::RunStarted(started) = event else { return Err(at(number, "a log begins with run.started")) };
    let parent = started.private.parent.as_ref();
    let same = started.private.workflow.as_ref() == Some(&row.digest)
        && parent.map(|link| &link.run) == row.parent.as_ref()
        && parent.map(|link| &link.root) == row.root.as_ref();
    if !same {
        return Err(at(number, "the log belongs to another workflow or another parent than its run"));
    }
    Ok(started.private.agents.values().map(|pin| pin.card.clone()).collect())
}
