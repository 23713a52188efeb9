//! What people and programs say about a run: how good it was, what would have been right, what to call it. Kept beside
//! the log; no replay sees it and no fork has it.

use serde::{Deserialize, Serialize};

use crate::{NodeId, RunId, Timestamp};

/// The longest note or correction, in bytes: a page or several, not a file.
pub const MAX_ANNOTATION_BYTES: usize = 16 * 1024;
/// The longest label, in characters: it is a name, and lists show it.
pub const MAX_LABEL_CHARS: usize = 256;
/// How much may be said about one run. A loop that annotates is a mistake.
pub const MAX_ANNOTATIONS: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Annotation {
    pub annotation_id: String,
    pub target: AnnotationTarget,
    pub signal: Signal,
    pub actor: AnnotationActor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationTarget {
    pub run_id: RunId,
    #[serde(flatten)]
    pub anchor: Anchor,
}

/// What of the run is meant; all of it where nothing is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Anchor {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnotationActor {
    /// Who said it, as its key is known here.
    pub principal_ref: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalKind {
    Rating,
    Correction,
    Label,
    Flag,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signal {
    pub kind: SignalKind,
    /// 1 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
}

impl Signal {
    pub fn flag() -> Self {
        Self { kind: SignalKind::Flag, rating: None, label: None, correction: None }
    }

    /// Where it is wrong, as a pointer into it, and how.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let missing = match self.kind {
            SignalKind::Rating if self.rating.is_none() => Some("/rating"),
            SignalKind::Label if self.label.is_none() => Some("/label"),
            SignalKind::Correction if self.correction.is_none() => Some("/correction"),
            _ => None,
        };
        if let Some(pointer) = missing {
            return Some((pointer, "is missing: the kind of signal needs it".to_owned()));
        }
        if self.rating.is_some_and(|rating| !(1..=5).contains(&rating)) {
            return Some(("/rating", "must be a whole number from 1 to 5".to_owned()));
        }
        if self.label.as_ref().is_some_and(|label| label.is_empty() || label.chars().count() > MAX_LABEL_CHARS) {
            return Some(("/label", format!("must have 1 to {MAX_LABEL_CHARS} characters")));
        }
        let long = self.correction.as_ref().is_some_and(|text| text.len() > MAX_ANNOTATION_BYTES);
        long.then(|| ("/correction", format!("may have at most {MAX_ANNOTATION_BYTES} bytes")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signal_has_what_its_kind_needs_within_bounds() {
        let problem = |value: serde_json::Value| {
            serde_json::from_value::<Signal>(value).unwrap().problem().map(|(pointer, _)| pointer)
        };
        for good in [
            json!({"kind": "rating", "rating": 1}),
            json!({"kind": "rating", "rating": 5}),
            json!({"kind": "label", "label": "x".repeat(MAX_LABEL_CHARS)}),
            json!({"kind": "correction", "correction": ""}),
            json!({"kind": "flag"}),
        ] {
            assert_eq!(problem(good.clone()), None, "{good}");
        }
        for (bad, pointer) in [
            (json!({"kind": "rating"}), "/rating"),
            (json!({"kind": "rating", "rating": 0}), "/rating"),
            (json!({"kind": "flag", "rating": 6}), "/rating"),
            (json!({"kind": "label"}), "/label"),
            (json!({"kind": "label", "label": ""}), "/label"),
            (json!({"kind": "label", "label": "é".repeat(MAX_LABEL_CHARS + 1)}), "/label"),
            (json!({"kind": "correction"}), "/correction"),
            (json!({"kind": "correction", "correction": "x".repeat(MAX_ANNOTATION_BYTES + 1)}), "/correction"),
        ] {
            assert_eq!(problem(bad.clone()), Some(pointer), "{bad}");
        }
        for unreadable in [json!({"kind": "praise"}), json!({"kind": "flag", "extra": 1}), json!({"rating": 3})] {
            assert!(serde_json::from_value::<Signal>(unreadable.clone()).is_err(), "{unreadable}");
        }
    }
}
