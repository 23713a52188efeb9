//! What an archive gives back, as statements.

use baton_model::{Digest, RunId};
use baton_store::archive::Entry;
use baton_store::codec::{Existing, NewRun, integer};
use baton_store::{
    AnnotationRow, Change, DeadLetter, Delivery, InterruptRow, Quarantine, Reply, RunnerRow, StepRow, StoredRecord,
    TokenRow, VersionedStoreId, Webhook, WorkflowVersion,
};

use crate::insert::{self, Plain, Standing};
use crate::rows::versioned_key;
use crate::statement::Statement;

/// Entries by table.
#[derive(Default)]
struct Tables<'a> {
    blobs: Vec<(&'a Digest, &'a [u8])>,
    workflows: Vec<&'a WorkflowVersion>,
    runs: Vec<NewRun<'a>>,
    records: Vec<(&'a RunId, &'a StoredRecord)>,
    ledgers: Vec<Standing<'a>>,
    bases: Vec<(&'a VersionedStoreId, &'a VersionedStoreId, u64)>,
    changes: Vec<(&'a VersionedStoreId, &'a Change)>,
    interrupts: Vec<&'a InterruptRow>,
    replies: Vec<&'a Reply>,
    webhooks: Vec<&'a Webhook>,
    deliveries: Vec<&'a Delivery>,
    dead_letters: Vec<&'a DeadLetter>,
    quarantine: Vec<&'a Quarantine>,
    annotations: Vec<&'a AnnotationRow>,
    tokens: Vec<&'a TokenRow>,
    runners: Vec<&'a RunnerRow>,
    steps: Vec<&'a StepRow>,
}

impl<'a> Tables<'a> {
    fn add(&mut self, entry: &'a Entry) {
        match entry {
            Entry::Blob { digest, bytes } => self.blobs.push((digest, bytes)),
            Entry::Workflow(row) => self.workflows.push(row),
            Entry::Run(row) => self.runs.push(NewRun::of(row)),
            Entry::Record { run, record } => self.records.push((run, record)),
            Entry::VersionedStore(state) => {
                self.ledgers.push((&state.ledger, state.version, state.updated_at, state.forgotten));
            }
            Entry::Base { ledger, base, version } => self.bases.push((ledger, base, *version)),
            Entry::Change { ledger, change } => self.changes.push((ledger, change)),
            Entry::Interrupt(row) => self.interrupts.push(row),
            Entry::Reply(row) => self.replies.push(row),
            Entry::Webhook(row) => self.webhooks.push(row),
            Entry::Delivery(row) => self.deliveries.push(row),
            Entry::DeadLetter(row) => self.dead_letters.push(row),
            Entry::Quarantine(row) => self.quarantine.push(row),
            Entry::Annotation(row) => self.annotations.push(row),
            Entry::Token(row) => self.tokens.push(row),
            Entry::Runner(row) => self.runners.push(row),
            Entry::RunnerStep(row) => self.steps.push(row),
        }
    }
}

const KEEP: Existing = Existing::Keep;
/// What is restored belongs to no session.
const NOBODY: u64 = 0;

/// How far runs look back whose records have come.
pub(crate) const FIRST_VERSIONS: &str = "UPDATE runs SET
        first_memory = (SELECT memory FROM events WHERE events.run = runs.id ORDER BY seq LIMIT 1),
        first_workspace = (SELECT workspace FROM events WHERE events.run = runs.id ORDER BY seq LIMIT 1)
    WHERE id = ANY($1) AND first_memory IS NULL";

/// One for a table; in the order in which they can be restored. What is there already stays as it is.
pub(crate) fn statements(entries: &[Entry]) -> Vec<Statement<'_>> {
    let mut tables = Tables::default();
    entries.iter().for_each(|entry| tables.add(entry));
    let blobs = || insert::blobs(tables.blobs.iter().map(|(digest, bytes)| (digest.as_str(), *bytes)));
    let mut all = Vec::new();
    all.extend((!tables.blobs.is_empty()).then(blobs));
    plain(&tables.workflows, &mut all);
    all.extend((!tables.runs.is_empty()).then(|| insert::runs(KEEP, &tables.runs, NOBODY)));
    all.extend(insert::tags(&tables.runs));
    if !tables.records.is_empty() {
        all.push(insert::records(KEEP, &tables.records, NOBODY));
        let mut runs: Vec<&str> = tables.records.iter().map(|(run, _)| run.as_str()).collect();
        runs.dedup();
        all.push(Statement::new(FIRST_VERSIONS).texts(runs));
    }
    all.extend((!tables.ledgers.is_empty()).then(|| insert::ledgers(KEEP, &tables.ledgers)));
    all.extend(tables.bases.iter().map(|(ledger, base, version)| {
        let rebase = Statement::new("UPDATE ledgers SET base = $2, base_version = $3 WHERE ledger = $1");
        rebase.value(versioned_key(ledger)).value(versioned_key(base)).value(integer(*version))
    }));
    all.extend((!tables.changes.is_empty()).then(|| insert::changes(KEEP, &tables.changes)));
    plain(&tables.interrupts, &mut all);
    plain(&tables.replies, &mut all);
    plain(&tables.webhooks, &mut all);
    plain(&tables.deliveries, &mut all);
    plain(&tables.dead_letters, &mut all);
    plain(&tables.quarantine, &mut all);
    plain(&tables.annotations, &mut all);
    plain(&tables.tokens, &mut all);
    plain(&tables.runners, &mut all);
    plain(&tables.steps, &mut all);
    all
}

fn plain<'a, T: Plain>(rows: &[&'a T], all: &mut Vec<Statement<'a>>) {
    all.extend((!rows.is_empty()).then(|| insert::rows(KEEP, rows.iter().copied())));
}
