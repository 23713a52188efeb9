//! Every question there is, of everything a history may have touched.

use std::fmt::Debug;

use baton_model::{Digest, NodeId, RunId, RunStatus, TenantId, WebhookId, WorkflowId};
use baton_store::{InterruptFilter, ReadView, RunFilter, StepState, Store, VersionedStoreId, VersionedStoreKind};

use super::history::{DIGESTS, HOOKS, KEYS, MAIL, NODES, NOTES, RUNS, SCOPES, TAGS, TENANTS, WORKFLOWS, at};

struct Views(Vec<(String, String)>);

impl Views {
    fn show(&mut self, question: impl Into<String>, answer: impl Debug) {
        self.0.push((question.into(), format!("{answer:#?}")));
    }
}

/// Questions and answers, always in the same order.
pub(super) async fn all(store: &dyn Store) -> Vec<(String, String)> {
    let mut views = Views(Vec::new());
    runs(store, &mut views).await;
    lists(store, &mut views).await;
    ledgers(store, &mut views).await;
    parts(store, &mut views).await;
    views.0
}

async fn runs(store: &dyn Store, views: &mut Views) {
    for id in RUNS.iter() {
        let id = *id;
        let run = RunId::new(id);
        views.show(format!("run {id}"), store.run(&run).await.unwrap());
        views.show(format!("records of {id}"), store.records(&run, 0, 100).await.unwrap());
        views.show(format!("records of {id} from 2"), store.records(&run, 2, 2).await.unwrap());
        views.show(format!("forks of {id}"), store.forks(&run).await.unwrap());
        views.show(format!("descendants of {id}"), store.descendants(&run).await.unwrap());
    }
    store.ping().await.unwrap();
}

async fn lists(store: &dyn Store, views: &mut Views) {
    let all = RunFilter { limit: 100, ..RunFilter::default() };
    let tenant = |number: usize| Some(TenantId::new(TENANTS[number]));
    let mut filters = vec![
        all.clone(),
        RunFilter { limit: 2, ..all.clone() },
        RunFilter { tenant: tenant(1), status: vec![RunStatus::Running, RunStatus::Failed], ..all.clone() },
        RunFilter { status: vec![RunStatus::Completed], ..all.clone() },
        RunFilter { id_prefix: Some("run_".to_owned()), created_from: Some(at(3)), ..all.clone() },
        RunFilter { id_prefix: Some("run_a".to_owned()), created_until: Some(at(5)), ..all.clone() },
        RunFilter { parent: Some(RunId::new(RUNS[0])), ..all.clone() },
        RunFilter { root: Some(RunId::new(RUNS[0])), ..all.clone() },
        RunFilter { diverged: Some(true), ..all.clone() },
        RunFilter { diverged: Some(false), over_budget: Some(true), ..all.clone() },
        RunFilter { over_budget: Some(false), cost_usd_from: Some(0.2), ..all.clone() },
        RunFilter { text_prefix: Some("ec".to_owned()), updated_from: Some(at(2)), ..all.clone() },
        RunFilter { text_prefix: Some(RUNS[0].to_owned()), top_level: true, ..all.clone() },
        RunFilter { ids: vec![RunId::new(RUNS[0]), RunId::new(RUNS[1])], updated_until: Some(at(6)), ..all.clone() },
    ];
    filters.extend(TAGS.iter().map(|tag| RunFilter { tag: Some((*tag).to_owned()), ..all.clone() }));
    for workflow in WORKFLOWS.iter() {
        let workflow = Some(WorkflowId::new(*workflow));
        filters.push(RunFilter { tenant: tenant(0), workflow, ..all.clone() });
    }
    for letters in [50, 700] {
        let text_prefix = Some(beginning(WORKFLOWS[2], letters));
        filters.push(RunFilter { text_prefix, ..all.clone() });
    }
    for filter in filters {
        let page = store.runs(&filter).await.unwrap();
        views.show(format!("{filter:?}"), (&page.items, page.next.is_some()));
        if page.next.is_some() {
            let rest = store.runs(&RunFilter { cursor: page.next, ..filter.clone() }).await.unwrap();
            views.show(format!("the page after {filter:?}"), (rest.items, rest.next.is_some()));
        }
    }
    for tenant in TENANTS.iter().map(|tenant| TenantId::new(*tenant)) {
        for scope in SCOPES.iter().copied().map(Some).chain([None]) {
            let active = store.active_run(&tenant, scope).await.unwrap();
            views.show(format!("the active run of {tenant} in {scope:?}"), active);
        }
    }
    let unfinished = store.unfinished(None, 100).await.unwrap();
    views.show("unfinished", unfinished.iter().map(|(_, run)| run).collect::<Vec<_>>());
    if let Some((first, _)) = unfinished.first() {
        let rest = store.unfinished(Some(*first), 2).await.unwrap();
        views.show("unfinished after the first", rest.into_iter().map(|(_, run)| run).collect::<Vec<_>>());
    }
    views.show("due", store.due(at(5), 3).await.unwrap());
    views.show("deliveries", store.deliveries(at(5), 100).await.unwrap());
}

async fn ledgers(store: &dyn Store, views: &mut Views) {
    for tenant in TENANTS.iter().map(|tenant| TenantId::new(*tenant)) {
        for kind in [VersionedStoreKind::Memory, VersionedStoreKind::Workspace] {
            let listed = store.ledgers(&tenant, kind).await.unwrap();
            for row in &listed {
                let id = VersionedStoreId { tenant: tenant.clone(), kind, scope: row.scope.clone() };
                ledger(store, &id, row.version, views).await;
            }
            views.show(format!("{} of {tenant}", kind.as_str()), listed);
            for scope in SCOPES.iter() {
                let id = VersionedStoreId { tenant: tenant.clone(), kind, scope: (*scope).to_owned() };
                views.show(format!("version of {id:?}"), store.versioned_head(&id).await.unwrap());
                views.show(format!("floor of {id:?}"), store.versioned_floor(&id).await.unwrap());
            }
        }
    }
}

async fn ledger(store: &dyn Store, id: &VersionedStoreId, version: u64, views: &mut Views) {
    let now = ReadView { version, ..ReadView::default() };
    let half = ReadView { version: version / 2, ..ReadView::default() };
    let lenses = [
        now.clone(),
        ReadView { version: u64::MAX, at: Some(at(4)), limit: Some(2), ..now.clone() },
        ReadView { own: Some((RunId::new(RUNS[0]), version)), ..half.clone() },
        ReadView { own: Some((RunId::new(RUNS[2]), version)), limit: Some(1), bare: true, ..half },
        ReadView { tag: Some(TAGS[1].to_owned()), ..now.clone() },
        ReadView { prefix: Some("a".to_owned()), before: Some(version), ..now.clone() },
        ReadView { prefix: Some("a\0".to_owned()), ..now.clone() },
        ReadView { prefix: Some(beginning(KEYS[7], 50)), ..now.clone() },
        ReadView { prefix: Some(beginning(KEYS[7], 999)), limit: Some(3), ..now.clone() },
        ReadView { prefix: Some(KEYS[8].to_owned()), bare: true, ..now.clone() },
    ];
    for (number, lens) in lenses.into_iter().enumerate() {
        views.show(format!("{id:?} through {lens:?}"), store.versioned_items(id, &lens).await.unwrap());
        views.show(format!("count of {id:?} through {lens:?}"), store.versioned_count(id, &lens).await.unwrap());
        for key in KEYS.iter().filter(|_| number % 3 == 2) {
            let item = store.versioned_item(id, key, &lens).await.unwrap();
            views.show(format!("{key:?} of {id:?} through {lens:?}"), item);
        }
    }
    views.show(format!("changes of {id:?}"), store.versioned_changes(id, None, None, 100).await.unwrap());
    for key in ["a", KEYS[7]] {
        let older = store.versioned_changes(id, Some(key), Some(version), 2).await.unwrap();
        views.show(format!("older changes of {key} in {id:?}"), older);
    }
    views.show(format!("base of {id:?}"), store.versioned_base(id).await.unwrap());
}

async fn parts(store: &dyn Store, views: &mut Views) {
    for number in 0..4_u8 {
        let digest = Digest::of_bytes([number]);
        views.show(format!("blob {number}"), store.blob(&digest).await.unwrap());
        views.show(format!("reply {number}"), store.reply(&digest).await.unwrap());
    }
    for tenant in TENANTS.iter().map(|tenant| TenantId::new(*tenant)) {
        views.show(format!("workflows of {tenant}"), store.workflows(&tenant).await.unwrap());
        for id in WORKFLOWS.iter().map(|id| WorkflowId::new(*id)) {
            views.show(format!("{id} of {tenant}"), store.workflow(&tenant, &id).await.unwrap());
            views.show(format!("versions of {id} of {tenant}"), store.workflow_versions(&tenant, &id).await.unwrap());
        }
        views.show(format!("quarantined of {tenant}"), store.quarantined(Some(&tenant), None, 9).await.unwrap());
        for hook in HOOKS.iter() {
            views.show(format!("{hook} of {tenant}"), store.webhook(&tenant, &WebhookId::new(*hook)).await.unwrap());
        }
        let open = InterruptFilter { tenant: Some(tenant), limit: 5, ..InterruptFilter::default() };
        views.show(format!("{open:?}"), store.interrupts(&open).await.unwrap());
    }
    for run in RUNS.iter().map(|run| RunId::new(*run)) {
        let open =
            InterruptFilter { run: Some(run.clone()), kind: Some("approval".to_owned()), limit: 9, tenant: None };
        views.show(format!("{open:?}"), store.interrupts(&open).await.unwrap());
        views.show(format!("quarantine of {run}"), store.quarantine(&run).await.unwrap());
        for key in KEYS.iter() {
            let newest = store.checkpoint(&run, key, 0, 3).await.unwrap();
            views.show(format!("checkpoint of {run} under {key}"), newest);
        }
        views.show(format!("checkpoints of {run}"), store.checkpoint_marks(&run).await.unwrap());
        let names: Vec<String> = NOTES.iter().map(|name| (*name).to_owned()).collect();
        let mut chunks = store.checkpoint_chunks(&run, &names).await.unwrap();
        chunks.sort_by(|one, other| one.name.cmp(&other.name));
        chunks.dedup();
        views.show(format!("chunks of {run}"), chunks);
        views.show(format!("spent below {run}"), store.spending(&run, None, 9).await.unwrap());
        views.show(format!("annotations of {run}"), store.annotations(&run, None, 9).await.unwrap());
        views.show(format!("count of annotations of {run}"), store.count_annotations(&run).await.unwrap());
        for node in NODES.iter().map(|node| NodeId::new(*node)) {
            views.show(format!("interrupt of {run} at {node}"), store.interrupt(&run, &node).await.unwrap());
        }
    }
    for hook in HOOKS.iter() {
        views.show(format!("deliveries of {hook}"), store.deliveries_of(&WebhookId::new(*hook), 9).await.unwrap());
        letters(store, views, hook).await;
    }
    letters(store, views, MAIL).await;
    views.show("what waits of mail", store.deliveries_of(&WebhookId::new(MAIL), 9).await.unwrap());
    for tenant in TENANTS.iter().map(|tenant| TenantId::new(*tenant)) {
        views.show(format!("webhooks of {tenant}"), store.webhooks_of(&tenant, None, 9).await.unwrap());
        views.show(format!("loads of {tenant}"), store.webhook_loads(&tenant, None).await.unwrap());
    }
    views.show("tokens", store.tokens(9).await.unwrap());
    views.show("runners", store.runners(9).await.unwrap());
    for digest in DIGESTS {
        views.show(format!("token {digest}"), store.token(digest).await.unwrap());
        views.show(format!("step {digest}"), store.step(digest).await.unwrap());
        for state in StepState::ALL {
            views.show(format!("{state:?} of {digest}"), store.steps_of(digest, state, None, 2).await.unwrap());
        }
    }
    views.show("oldest letter", store.oldest_dead_letter().await.unwrap());
    views.show("webhooks", store.webhooks().await.unwrap());
    let after = Some(RunId::new(RUNS[1]));
    views.show("quarantined", store.quarantined(None, after, 2).await.unwrap());
    views.show("how many are quarantined", store.count_quarantined().await.unwrap());
    views.show("the last probe", store.last_probe().await.unwrap());
}

fn beginning(text: &str, letters: usize) -> String {
    text.chars().take(letters).collect()
}

async fn letters(store: &dyn Store, views: &mut Views, hook: &str) {
    let hook = WebhookId::new(hook);
    let all = store.dead_letters(&hook, None, 9).await.unwrap();
    if let Some(first) = all.first() {
        let rest = store.dead_letters(&hook, Some(&first.place()), 2).await.unwrap();
        views.show(format!("older letters of {hook}"), rest);
        let one = store.dead_letter(&hook, &first.run, first.seq).await.unwrap();
        views.show(format!("a letter of {hook}"), one);
    }
    views.show(format!("letters of {hook}"), all);
}
