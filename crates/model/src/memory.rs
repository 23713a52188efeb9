use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// One thing an agent or a person wanted remembered. Never changed after it is written, only forgotten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryEntry {
    pub id: String,
    pub content: String,
    pub tags: Vec<String>,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// From this instant on nobody sees the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub expires_at: Option<Timestamp>,
}

impl MemoryEntry {
    pub fn is_expired(&self, at: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= at)
    }
}

/// The opaque handle events name a memory scope by.
pub fn memory_ref(scope: &str) -> String {
    format!("memory:{scope}")
}

/// The longest tag, in characters.
pub const MAX_TAG_CHARS: usize = 256;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(expires_at: Option<Timestamp>) -> MemoryEntry {
        let at = Timestamp::from_millis(1000);
        MemoryEntry { id: "mem_1".to_owned(), content: "tea".to_owned(), tags: vec![], created_at: at, expires_at }
    }

    #[test]
    fn an_entry_expires_at_its_instant_to_the_microsecond() {
        let end = Timestamp::from_micros(2_000_001);
        let entry = entry(Some(end));
        assert!(!entry.is_expired(Timestamp::from_micros(2_000_000)));
        assert!(entry.is_expired(end));
        assert!(!self::entry(None).is_expired(Timestamp::from_micros(i64::MAX)));
    }

    #[test]
    fn an_entry_shows_its_end_only_if_it_has_one_and_takes_no_other_field() {
        let shown = serde_json::to_value(entry(None)).unwrap();
        assert_eq!(
            shown,
            json!({"id": "mem_1", "content": "tea", "tags": [], "createdAt": "1970-01-01T00:00:01.000000Z"})
        );
        let ending = entry(Some(Timestamp::from_millis(5)));
        let text = serde_json::to_string(&ending).unwrap();
        assert_eq!(serde_json::from_str::<MemoryEntry>(&text).unwrap(), ending);
        let mut more = shown;
        more["owner"] = json!("x");
        assert!(serde_json::from_value::<MemoryEntry>(more).is_err());
    }
}
