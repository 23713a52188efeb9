use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The workspace every run of a tenant shares.
pub const DEFAULT_WORKSPACE: &str = "default";
/// What a file holds unless its writer says otherwise.
pub const DEFAULT_CONTENT_TYPE: &str = "text/markdown";

/// One file of a workspace at one version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceFile {
    #[serde(flatten)]
    pub meta: FileMeta,
    pub content: String,
}

/// A file without its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileMeta {
    pub path: String,
    /// 1, 2, 3, … since the file was last created.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub version: u64,
    pub etag: String,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    pub content_type: String,
}

/// Why a path cannot name a file; `None` if it can. The namespace is flat: a slash is a letter like any other, but a
/// `..` between slashes is refused all the same, because somebody will one day write the file to a disk.
pub fn path_problem(path: &str) -> Option<&'static str> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    if path.is_empty() || path.len() > 256 {
        Some("a path has 1 to 256 characters")
    } else if !path.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        Some("a path starts with a letter or a digit")
    } else if !path.chars().all(letter) {
        Some("a path holds letters, digits and . _ / - only")
    } else if path.split('/').any(|part| part == "..") {
        Some("a path does not climb with ..")
    } else {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_is_its_description_and_its_content_in_one_object() {
        let meta = FileMeta {
            path: "a.md".to_owned(),
            version: 2,
            etag: "\"x\"".to_owned(),
            updated_at: Timestamp::from_millis(1000),
            content_type: DEFAULT_CONTENT_TYPE.to_owned(),
        };
        let file = WorkspaceFile { meta, content: "tea".to_owned() };
        let shown = serde_json::to_value(&file).unwrap();
        let whole = json!({
            "path": "a.md", "version": 2, "etag": "\"x\"", "updatedAt": "1970-01-01T00:00:01.000000Z",
            "contentType": "text/markdown", "content": "tea"
        });
        assert_eq!(shown, whole);
        assert_eq!(serde_json::from_value::<WorkspaceFile>(shown).unwrap(), file);
    }

    #[test]
    fn paths_follow_the_pattern_and_never_climb() {
        for good in ["a", "README.md", "notes/2026/plan.md", "a..b", "a/...", "0", "a//b"] {
            assert_eq!(path_problem(good), None, "{good:?}");
        }
        let long = "a".repeat(257);
        for bad in ["", ".", "..", "/etc/passwd", "a/../b", "a/..", "-a", "a b", "a\\b", "ä", "a\0b", long.as_str()] {
            assert!(path_problem(bad).is_some(), "{bad:?}");
        }
    }
}
