//! One event, one line: sequence, time since the first line, type, node, and the fact that matters most.

use baton_client::RunEvent;
use baton_model::Timestamp;
use owo_colors::OwoColorize;
use serde_json::Value;

use super::{agent_event, brief, fault, loop_event, versioned};
use crate::terminal::cut;

const LONGEST_FACT: usize = 100;
/// Below this, columns cost more than they help.
const COMFORTABLE: usize = 100;
/// A fact shorter than this says nothing.
const SHORTEST_FACT: usize = 12;

/// Renders the events of one run in order.
#[derive(Debug, Default)]
pub(crate) struct EventLines {
    origin: Option<Timestamp>,
    width: Option<usize>,
}

impl EventLines {
    /// Lines for a terminal this wide; without a width, nothing is squeezed.
    pub(crate) fn fitting(width: Option<usize>) -> Self {
        Self { origin: None, width }
    }

    pub(crate) fn line(&mut self, event: &RunEvent) -> String {
        let origin = *self.origin.get_or_insert(event.timestamp);
        let millis = event.timestamp.millis_since(origin);
        let node = event.node_id.as_deref().unwrap_or("-");
        let label = loop_event::label(event)
            .or_else(|| agent_event::label(event).map(str::to_owned))
            .unwrap_or_else(|| event.kind.clone());
        let narrow = self.width.is_some_and(|width| width < COMFORTABLE);
        let (start, kind, place) = if narrow {
            (format!("{:>4} ", event.sequence), label, format!(" {node} "))
        } else {
            let clock = format!("+{}.{:03}s", millis / 1000, millis % 1000);
            (format!("{:>4}  {clock:>9}  ", event.sequence), format!("{label:<22}"), format!("  {node:<16}  "))
        };
        let used = start.chars().count() + kind.chars().count() + place.chars().count();
        let left = self.width.map(|width| width.saturating_sub(used).max(SHORTEST_FACT));
        let line = format!("{start}{}{place}{}", coloured(event, kind), cut(&fact(event), left));
        line.trim_end().to_owned()
    }
}

fn coloured(event: &RunEvent, kind: String) -> String {
    match event.kind.as_str() {
        "run.failed" | "node.failed" | "cap.breached" | "run.cancelled" | "envelope.refusal" | "budget.exhausted" => {
            kind.red().to_string()
        }
        "run.completed" => kind.green().to_string(),
        "interrupt.requested"
        | "run.paused"
        | "core.workflowChain.confidence-escalated"
        | "baton.effect.unknown"
        | "baton.tools.missing"
        | "baton.runner.waiting"
        | "baton.map.itemFailed"
        | "baton.map.stopping" => kind.yellow().to_string(),
        _ => kind,
    }
}

/// The part of the payload a person looks for.
fn fact(event: &RunEvent) -> String {
    if let Some(fact) = loop_event::fact(event).or_else(|| versioned::fact(event)).or_else(|| agent_event::fact(event))
    {
        return fact;
    }
    let payload = &event.payload;
    let text = |name: &str| payload.get(name).map(|value| brief(value, LONGEST_FACT)).unwrap_or_default();
    match event.kind.as_str() {
        "run.started" => text("workflowId"),
        "run.completed" | "node.completed" => text("outputs"),
        "run.failed" | "node.failed" => fault(payload.get("error")),
        "node.started" => text("typeId"),
        "node.retried" => {
            format!("attempt {} in {}ms: {}", text("attempt"), text("delayMs"), fault(payload.get("lastError")))
        }
        "node.skipped" | "node.cancelled" | "run.cancelled" | "run.paused" => text("reason"),
        "node.suspended" | "interrupt.requested" => text("kind"),
        "node.resumed" => text("resumeValue"),
        "interrupt.resolved" => text("outcome"),
        "approval.requested" => text("title"),
        "approval.received" => format!("{} {}", text("action"), text("decidedBy")).trim_end().to_owned(),
        "clarification.requested" => text("questions"),
        "clarification.resolved" => text("answers"),
        "variable.changed" => format!("{} = {}", text("name"), text("next")),
        "channel.written" => format!("{} <- {}", text("channel"), text("value")),
        "cap.breached" => format!("{}: {} > {}", text("kind"), text("observed"), text("limit")),
        "output.chunk" => text("chunk"),
        "baton.map.started" => format!("{} items, {} at once", text("count"), text("maxConcurrency")),
        "baton.map.itemStarted" => format!("item {} as {}", text("index"), text("childRunId")),
        "baton.map.itemCompleted" => format!("item {}", text("index")),
        "baton.map.itemFailed" => format!("item {}: {}", text("index"), fault(payload.get("error"))),
        "baton.map.itemRetried" => format!(
            "item {}, attempt {} in {}ms: {}",
            text("index"),
            text("attempt"),
            text("delayMs"),
            fault(payload.get("lastError"))
        ),
        "baton.map.stopping" => format!("no further item begins: {}", fault(payload.get("error"))),
        "budget.reserved" => text("effectiveBudget"),
        "budget.consumed" | "budget.threshold.crossed" | "budget.exhausted" => {
            format!("{}: {} of {}", text("dimension"), text("consumed"), text("limit"))
        }
        _ => match payload {
            Value::Null => String::new(),
            Value::Object(fields) if fields.is_empty() => String::new(),
            other => brief(other, LONGEST_FACT),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn event(seq: u64, kind: &str, node: Option<&str>, at: &str, payload: Value) -> RunEvent {
        let mut json = serde_json::json!({
            "eventId": format!("e{seq}"), "runId": "run_1", "sequence": seq, "type": kind,
            "timestamp": at, "payload": payload,
        });
        if let Some(node) = node {
            json["nodeId"] = node.into();
        }
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn lines_read_without_colour() {
        let mut lines = EventLines::default();
        let described: Vec<String> = [
            event(0, "run.started", None, "2026-01-01T00:00:00Z", serde_json::json!({"workflowId": "w"})),
            event(1, "node.started", Some("a"), "2026-01-01T00:00:00.012Z", serde_json::json!({"typeId": "core.noop"})),
            event(2, "node.skipped", Some("b"), "2026-01-01T00:01:01Z", serde_json::json!({})),
            event(3, "x.y.z", None, "2026-01-01T00:01:01Z", serde_json::json!({"q": 1})),
            event(
                4,
                "baton.map.started",
                Some("m"),
                "2026-01-01T00:01:01Z",
                serde_json::json!({"nodeId": "m", "count": 300, "maxConcurrency": 8}),
            ),
            event(
                5,
                "baton.map.itemFailed",
                Some("m"),
                "2026-01-01T00:01:01Z",
                serde_json::json!({"index": 7, "attempts": 2, "error": {"code": "node_timeout", "message": "No."}}),
            ),
        ]
        .iter()
        .map(|event| anstream::adapter::strip_str(&lines.line(event)).to_string())
        .collect();
        assert_eq!(
            described,
            [
                "   0    +0.000s  run.started             -                 w",
                "   1    +0.012s  node.started            a                 core.noop",
                "   2   +61.000s  node.skipped            b",
                "   3   +61.000s  x.y.z                   -                 {\"q\":1}",
                "   4   +61.000s  baton.map.started       m                 300 items, 8 at once",
                "   5   +61.000s  baton.map.itemFailed    m                 item 7: node_timeout: No.",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_gets_short_lines() {
        let long = serde_json::json!({"typeId": "core.orchestrator.supervisor"});
        let started = event(1, "node.started", Some("lead"), "2026-01-01T00:00:00Z", long);
        let described = |width| EventLines::fitting(Some(width)).line(&started);
        assert_eq!(described(60), "   1 node.started lead core.orchestrator.supervisor");
        assert_eq!(described(40), "   1 node.started lead core.orchestrato…");
        assert_eq!(described(120).chars().count(), 87);
        assert_eq!(described(20), "   1 node.started lead core.orches…");
    }

    #[test]
    fn failures_name_their_code() {
        let failed = event(
            4,
            "node.failed",
            Some("n"),
            "2026-01-01T00:00:00Z",
            serde_json::json!({"error": {"code": "boom", "message": "it broke"}}),
        );
        assert_eq!(fact(&failed), "boom: it broke");
    }
}
