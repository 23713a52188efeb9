//! A run and everything that descends from it, gathered from the host. Where a child hangs (node, turn) is on its
//! parent's log; that is read once and then only continued.

use std::collections::BTreeMap;

use baton_client::{Client, RunFilter};
use baton_model::{Metrics, RunStatus, Timestamp, UsageSummary};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

const PAGE: usize = 200;

/// One run and its children, in the order they were handed their parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Branch {
    pub(crate) run_id: String,
    pub(crate) workflow_id: String,
    pub(crate) status: RunStatus,
    pub(crate) created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What its own models have used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<UsageSummary>,
    /// The same, and what the runs below it have used so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tree_usage: Option<UsageSummary>,
    /// The parent's node that started it, and the turn that node was acting on.
    #[serde(flatten)]
    pub(crate) place: Option<Place>,
    pub(crate) children: Vec<Branch>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    pub(crate) node_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<u64>,
    #[serde(skip)]
    order: u64,
}

impl Branch {
    /// Every run with its depth, parents before children.
    pub(crate) fn walk<'a>(&'a self, see: &mut impl FnMut(&'a Self)) {
        see(self);
        for child in &self.children {
            child.walk(see);
        }
    }
}

/// What was learned so far about one tree.
#[derive(Debug)]
pub(crate) struct Tree {
    root: String,
    places: BTreeMap<String, Place>,
    logs: BTreeMap<String, Log>,
}

/// How far a parent's log was read, and the turn of each decision in it.
#[derive(Debug, Default)]
struct Log {
    read: Option<u64>,
    turns: BTreeMap<String, u64>,
}

impl Tree {
    /// The tree a run belongs to, wherever in it the run stands.
    pub(crate) async fn around(client: &Client, run: &str) -> Result<Self, Failure> {
        let mut root = client.run(run).await?;
        while let Some(parent) = &root.parent_run_id {
            root = client.run(parent.as_str()).await?;
        }
        Ok(Self { root: root.run_id.as_str().to_owned(), places: BTreeMap::new(), logs: BTreeMap::new() })
    }

    /// The tree as it is now.
    pub(crate) async fn now(&mut self, client: &Client) -> Result<Branch, Failure> {
        // The root first: once it has ended, what is read after it has ended too.
        let root = client.run(&self.root).await?;
        let mut children: BTreeMap<String, Vec<Branch>> = BTreeMap::new();
        let mut filter = RunFilter { root: Some(self.root.clone()), limit: Some(PAGE), ..RunFilter::default() };
        loop {
            let page = client.runs(&filter).await?;
            for run in page.runs {
                let Some(parent) = &run.parent_run_id else { continue };
                children.entry(parent.to_string()).or_default().push(Branch {
                    run_id: run.run_id.to_string(),
                    workflow_id: run.workflow_id.to_string(),
                    status: run.status,
                    created_at: run.created_at,
                    error: run.error.as_ref().map(|error| error.code.clone()),
                    usage: run.summary().and_then(|summary| summary.usage),
                    tree_usage: None,
                    place: None,
                    children: Vec::new(),
                });
            }
            match page.next_cursor {
                Some(cursor) => filter.cursor = Some(cursor),
                None => break,
            }
        }
        for (parent, children) in &children {
            if children.iter().any(|child| !self.places.contains_key(&child.run_id)) {
                self.read_log(client, parent).await?;
            }
        }
        let root = Branch {
            run_id: root.run_id.as_str().to_owned(),
            workflow_id: root.workflow_id.as_str().to_owned(),
            status: root.status,
            created_at: root.started_at.unwrap_or(Timestamp::from_micros(0)),
            error: root.error.map(|error| error.code),
            usage: root.metrics.and_then(|metrics| Metrics { tree_cost: None, ..metrics }.used()),
            tree_usage: None,
            place: None,
            children: Vec::new(),
        };
        Ok(grow(root, &mut children, &self.places))
    }

    /// Learns where a parent's children hang, up to where its log is now.
    async fn read_log(&mut self, client: &Client, parent: &str) -> Result<(), Failure> {
        let end = client.run(parent).await?.at_seq;
        let log = self.logs.entry(parent.to_owned()).or_default();
        while log.read.is_none_or(|seq| seq < end) {
            let page = client.events(parent, log.read, 1).await?;
            let Some(last) = page.events.last() else { break };
            log.read = Some(last.sequence);
            for event in page.events {
                let payload = &event.payload;
                match event.kind.as_str() {
                    "runOrchestrator.decided" => {
                        if let Some(turn) = payload.get("iteration").and_then(Value::as_u64) {
                            log.turns.insert(event.event_id, turn);
                        }
                    }
                    "node.dispatched" => {
                        let child = payload.get("childRunId").and_then(Value::as_str);
                        if let (Some(child), Some(node_id)) = (child, event.node_id) {
                            let turn = event.causation_id.and_then(|cause| log.turns.get(&cause).copied());
                            self.places.insert(child.to_owned(), Place { node_id, turn, order: event.sequence });
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn grow(mut branch: Branch, rest: &mut BTreeMap<String, Vec<Branch>>, places: &BTreeMap<String, Place>) -> Branch {
    branch.place = places.get(&branch.run_id).cloned();
    let children = rest.remove(&branch.run_id).unwrap_or_default();
    branch.children = children.into_iter().map(|child| grow(child, rest, places)).collect();
    branch.children.sort_by_key(|child| {
        // One whose place is not known yet is the newest.
        (child.place.as_ref().map_or(u64::MAX, |place| place.order), child.created_at, child.run_id.clone())
    });
    let used = std::iter::once(branch.usage).chain(branch.children.iter().map(|child| child.tree_usage));
    branch.tree_usage = used.flatten().reduce(UsageSummary::plus);
    branch
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn run(id: &str, workflow: &str, status: RunStatus, place: Option<(&str, u64)>) -> Branch {
        Branch {
            run_id: id.to_owned(),
            workflow_id: workflow.to_owned(),
            status,
            created_at: Timestamp::from_millis(1000),
            error: None,
            usage: None,
            tree_usage: None,
            place: place.map(|(node, turn)| Place { node_id: node.to_owned(), turn: Some(turn), order: turn }),
            children: Vec::new(),
        }
    }

    #[test]
    fn children_stand_in_the_order_they_were_dispatched() {
        let mut rest = BTreeMap::from([
            ("r".to_owned(), vec![run("c", "w", RunStatus::Running, None), run("b", "w", RunStatus::Running, None)]),
            ("b".to_owned(), vec![run("d", "w", RunStatus::Completed, None)]),
        ]);
        let place = |order| Place { node_id: "n".to_owned(), turn: None, order };
        let places = BTreeMap::from([("b".to_owned(), place(1)), ("c".to_owned(), place(2))]);
        let tree = grow(run("r", "w", RunStatus::Running, None), &mut rest, &places);
        let mut seen = Vec::new();
        tree.walk(&mut |branch| seen.push(branch.run_id.as_str()));
        assert_eq!(seen, ["r", "b", "d", "c"]);
    }

    #[test]
    fn what_was_used_adds_up_from_below() {
        let used = |input_tokens| Some(UsageSummary { input_tokens, output_tokens: 1, cost_usd: None });
        let with = |id: &str, usage| Branch { usage, ..run(id, "w", RunStatus::Completed, None) };
        let mut rest = BTreeMap::from([
            ("r".to_owned(), vec![with("a", used(10)), with("b", None)]),
            ("a".to_owned(), vec![with("c", used(100))]),
        ]);
        let tree = grow(with("r", None), &mut rest, &BTreeMap::new());
        let mut seen = BTreeMap::new();
        tree.walk(&mut |branch| {
            seen.insert(branch.run_id.as_str(), branch.tree_usage.map(|used| used.input_tokens));
        });
        assert_eq!(seen, BTreeMap::from([("r", Some(110)), ("a", Some(110)), ("b", None), ("c", Some(100))]));
    }

    #[test]
    fn as_json_it_nests() {
        let mut root = run("r", "w", RunStatus::Running, None);
        root.children.push(run("c", "x", RunStatus::Completed, Some(("n", 2))));
        let json = serde_json::to_value(&root).unwrap();
        assert_eq!(json["children"][0]["turn"], 2);
        assert_eq!(json["children"][0]["nodeId"], "n");
        assert_eq!((json.get("turn"), &json["children"][0]["children"]), (None, &json!([])));
    }
}
