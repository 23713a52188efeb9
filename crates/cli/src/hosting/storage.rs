//! Where everything is kept: a folder of this host's own, or a database that hosts share. What belongs to the data and
//! not to a host (its name among others, the secret that signs links) is kept with it.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use baton_store::Store;
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::{SqliteOptions, SqliteStore};

use super::{host_id, link_secret};
use crate::config::Config;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) struct Storage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) host_id: String,
    pub(crate) link_secret: Vec<u8>,
}

pub(crate) async fn open(config: &Config, address: SocketAddr) -> Result<Storage, Failure> {
    let Some(settings) = &config.database else {
        create_data(&config.data)?;
        let store = open_folder(&config.data, config.readers)?;
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

fn open_folder(data: &Path, readers: usize) -> Result<SqliteStore, Failure> {
    let suits = SqliteOptions::default();
    let readers = u32::try_from(readers).ok().filter(|readers| *readers > 0).unwrap_or(suits.readers);
    SqliteStore::open_with(data, SqliteOptions { readers }).map_err(|error| store_failure(&error))
}

/// For a look at everything, which needs the folder to itself.
pub(crate) fn open_idle_folder(data: &Path) -> Result<SqliteStore, Failure> {
    SqliteStore::open(data).map_err(|error| match error {
        baton_store::Error::Locked { .. } => {
            Failure::new(Exit::Conflict, error.to_string()).hint("stop that process first")
        }
        error => store_failure(&error),
    })
}

pub(crate) fn create_data(data: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(|error| {
        Failure::new(Exit::Failed, format!("the data folder {} cannot be created: {error}", data.display()))
            .hint("choose another with --data")
    })
}

fn store_failure(error: &baton_store::Error) -> Failure {
    let hint = match error {
        baton_store::Error::Locked { .. } => "stop that process, or use another folder with --data",
        baton_store::Error::Corrupt { .. } => "run `baton doctor`; copy the folder before you repair anything",
        baton_store::Error::Unavailable { .. } => "check that the disk is mounted, writable and not full",
    };
    Failure::new(Exit::Failed, error.to_string()).hint(hint)
}

/// What the database said, and what to do about it.
pub(crate) fn database_failure(error: &baton_store::Error) -> Failure {
    let text = error.to_string();
    match text.rsplit_once("; ") {
        Some((message, hint)) => Failure::new(Exit::Failed, message).hint(hint),
        None => Failure::new(Exit::Failed, text).hint("run `baton doctor` for details"),
    }
}
