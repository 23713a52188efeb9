use std::path::Path;

use baton_store_sqlite::{DataAccess, FolderRefusal, inspect_folder};

use super::finding::{Finding, State};
use crate::hosting::storage::other_files;

const NAME: &str = "permissions";

/// Whether others can read the data folder. Changes nothing: the host closes what it can when it starts.
pub(super) fn check(data: &Path, access: DataAccess) -> Finding {
    if !data.is_dir() {
        return Finding::ok(NAME, format!("{} does not exist yet; only its owner will read it", data.display()));
    }
    match (access, inspect_folder(data, access, &other_files())) {
        (_, Err(FolderRefusal { message, advice })) => Finding::bad(NAME, State::Wrong, message, advice),
        (DataAccess::Any, Ok(_)) => Finding::ok(NAME, "not checked (data_access is any)"),
        (DataAccess::Group, Ok(open)) if open.is_empty() => Finding::ok(NAME, "the owner and the group can read it"),
        (DataAccess::Owner, Ok(open)) if open.is_empty() => Finding::ok(NAME, "only the owner can read it"),
        (_, Ok(open)) => {
            let first = open.first().map(|path| path.display().to_string()).unwrap_or_default();
            let more = if open.len() > 1 { format!(" and {} more", open.len() - 1) } else { String::new() };
            let found = format!("others can read {first}{more}");
            let fix = format!("start the host, which closes them, or run chmod -R go-rwx {}", data.display());
            Finding::bad(NAME, State::Warning, found, fix)
        }
    }
}
