//! Where everything is kept: a folder of this host's own, or a database that hosts share. What belongs to the data and
//! not to a host (its name among others, the secret that signs links) is kept with it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use baton_runtime::StepNotes;
use baton_store::Store;
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::{DataAccess, FolderRefusal, SqliteOptions, SqliteStore, prepare_folder};

use super::{host_id, link_secret};
use crate::config::Config;
use crate::dev_file;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) struct Storage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) host_id: String,
    pub(crate) link_secret: Vec<u8>,
}

pub(crate) async fn open(config: &Config, address: SocketAddr) -> Result<Storage, Failure> {
    let Some(settings) = &config.database else {
        create_data(&config.data, config.data_access)?;
        let store = open_folder(config)?;
        let (host_id, link_secret) = (host_id::load(config)?, link_secret::load(&config.data)?);
        return Ok(Storage { store: Arc::new(store), host_id, link_secret });
    };
    let settings = Settings { host: format!("{address}, pid {}", std::process::id()), ..settings.clone() };
    let store = PostgresStore::open(&settings).await.map_err(|error| database_failure(&error))?;
    let secret =
        store.common(link_secret::NAME, &link_secret::fresh()?).await.map_err(|error| database_failure(&error))?;
    let host_id = match host_id::given(config) {
        Some(given) => given,
        None => {
            let proposed = host_id::fresh()?;
            let kept =
                store.common(host_id::NAME, proposed.as_bytes()).await.map_err(|error| database_failure(&error))?;
            String::from_utf8_lossy(&kept).trim().to_owned()
        }
    };
    Ok(Storage { store: Arc::new(store), host_id, link_secret: secret })
}

fn open_folder(config: &Config) -> Result<SqliteStore, Failure> {
    let suits = SqliteOptions::default();
    let readers = u32::try_from(config.readers).ok().filter(|readers| *readers > 0).unwrap_or(suits.readers);
    let options = SqliteOptions { readers, access: config.data_access, ..suits };
    SqliteStore::open_with(&config.data, options).map_err(|error| store_failure(&error))
}

/// For a look at everything, which needs the folder to itself. Whom it is open to is not judged: `doctor` does. What is
/// damaged is opened only by whoever wants what is left.
pub(crate) fn open_idle_folder(data: &Path, refuse_damage: bool) -> Result<SqliteStore, Failure> {
    let options = SqliteOptions { access: DataAccess::Any, refuse_damage, ..SqliteOptions::default() };
    SqliteStore::open_with(data, options).map_err(|error| match error {
        baton_store::Error::Locked { .. } => {
            Failure::new(Exit::Conflict, error.to_string()).hint("stop that process first")
        }
        error => store_failure(&error),
    })
}

/// Files of the data folder that the store knows nothing of.
pub(crate) fn other_files() -> Vec<&'static str> {
    let own = [link_secret::NAME, "link-secret.new", host_id::NAME, "host-id.new", dev_file::NAME, "dev.new"];
    own.into_iter().chain(StepNotes::FILES).collect()
}

/// Makes the data folder, and closes it and the files in it to everybody else.
pub(crate) fn create_data(data: &Path, access: DataAccess) -> Result<(), Failure> {
    prepare_folder(data, access, &other_files())
        .map_err(|FolderRefusal { message, advice }| Failure::new(Exit::Failed, message).hint(advice))
}

fn store_failure(error: &baton_store::Error) -> Failure {
    let hint = match error {
        baton_store::Error::Locked { .. } => "stop that process, or use another folder with --data",
        baton_store::Error::Corrupt { .. } | baton_store::Error::Damaged { .. } => {
            "keep a copy of the folder. `baton storage check` says what is damaged; restore the last backup, or go on \
             without what is lost: `baton storage accept`, and `baton storage copy --salvage` where that refuses"
        }
        baton_store::Error::Unavailable { .. } => "check that the disk is mounted, writable and not full",
    };
    Failure::new(Exit::Failed, error.to_string()).hint(hint)
}

/// What only a pooler says, or a database behind one that gives every transaction another connection: statements are gone
/// that were prepared, or there that were not.
fn is_a_poolers(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["prepared statement", "unsupported startup parameter", "(26000)", "(42p05)"]
        .iter()
        .any(|sign| lower.contains(sign))
}

/// What the database said, and what to do about it.
pub(crate) fn database_failure(error: &baton_store::Error) -> Failure {
    let text = error.to_string();
    if is_a_poolers(&text) {
        let message = text.rsplit_once("; ").map_or(text.as_str(), |(message, _)| message);
        return Failure::new(Exit::Failed, message.to_owned()).hint(
            "is there a pooler such as PgBouncer in between? Use its session mode (pool_mode = session), or the \
             database itself",
        );
    }
    match text.rsplit_once("; ") {
        Some((message, hint)) => Failure::new(Exit::Failed, message).hint(hint),
        None => Failure::new(Exit::Failed, text).hint("run `baton doctor` for details"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pooler_in_between_is_named() {
        let unavailable = |reason: &str| baton_store::Error::Unavailable { reason: reason.to_owned(), source: None };
        for told in [
            "cannot use db: prepared statement \"s1\" does not exist (26000); is the server running there?",
            "cannot use db: unsupported startup parameter: options (08P01); is the server running there?",
            "prepared statement \"s0\" already exists (42P05)",
        ] {
            let failure = format!("{:?}", database_failure(&unavailable(told)));
            assert!(failure.contains("session mode") && !failure.contains("is the server running"), "{failure}");
        }
        let failure = format!("{:?}", database_failure(&unavailable("cannot use db: refused; is it running?")));
        assert!(failure.contains("is it running?") && !failure.contains("pooler"), "{failure}");
    }
}
