//! A folder or a database, open for looking at as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_store::Store;
use baton_store::archive::{Archive, Table};
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::DataAccess;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::storage::{create_data, database_failure, open_idle_folder};
use crate::private_file;

pub(super) trait Whole: Store + Archive {}
impl<T: Store + Archive> Whole for T {}

#[derive(Clone, Debug)]
pub(super) enum Location {
    Folder(PathBuf),
    Database(Settings),
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Database(settings) => f.write_str(&settings.place()),
        }
    }
}

impl Location {
    pub(super) fn parse(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Self::Database(Settings { listen: false, ..Settings::new(text) });
        }
        Self::Folder(PathBuf::from(text))
    }

    /// Opens what is there, unless it is damaged.
    pub(super) async fn open(&self) -> Result<Open, Failure> {
        self.open_as(true).await
    }

    /// Opens what is there, damaged or not.
    pub(super) async fn open_damaged(&self) -> Result<Open, Failure> {
        self.open_as(false).await
    }

    async fn open_as(&self, refuse_damage: bool) -> Result<Open, Failure> {
        match self {
            Self::Folder(path) if !path.join("baton.db").exists() => {
                let failure = Failure::new(Exit::NotFound, format!("there is no data in {}", path.display()));
                Err(failure.hint("name the folder that `baton serve --data` uses"))
            }
            Self::Folder(path) => {
                let whole = Arc::new(open_idle_folder(path, refuse_damage)?);
                Ok(Open { whole, backend: Backend::Folder(path.clone()) })
            }
            Self::Database(settings) => {
                let store = PostgresStore::open_alone(settings).await.map_err(|error| database_failure(&error))?;
                let hosts = store.hosts().await.map_err(|error| database_failure(&error))?;
                if !hosts.is_empty() {
                    let message = format!("{self} is in use by {} hosts ({})", hosts.len(), hosts.join("; "));
                    return Err(Failure::new(Exit::Conflict, message).hint("stop them first, or wait for their lease"));
                }
                let store = Arc::new(store);
                Ok(Open { whole: Arc::clone(&store) as Arc<dyn Whole>, backend: Backend::Database(store) })
            }
        }
    }

    /// Opens it even if nothing is there yet.
    pub(super) async fn open_or_create(&self, access: DataAccess) -> Result<Open, Failure> {
        if let Self::Folder(path) = self {
            create_data(path, access)?;
            return Ok(Open { whole: Arc::new(open_idle_folder(path, true)?), backend: Backend::Folder(path.clone()) });
        }
        self.open().await
    }
}

pub(super) struct Open {
    pub(super) whole: Arc<dyn Whole>,
    backend: Backend,
}

/// Where the few things lie that belong to the data and are no part of any table.
enum Backend {
    Folder(PathBuf),
    Database(Arc<PostgresStore>),
}

impl Open {
    pub(super) async fn count(&self, table: Table) -> Result<u64, Failure> {
        self.whole.count(table).await.map_err(|error| database_failure(&error))
    }

    pub(super) async fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        match &self.backend {
            Backend::Folder(path) => match std::fs::read(path.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(unreadable(&path.join(name), &error)),
            },
            Backend::Database(store) => store.find_common(name).await.map_err(|error| database_failure(&error)),
        }
    }

    /// It, if it is one.
    pub(super) fn database(&self) -> Option<&PostgresStore> {
        match &self.backend {
            Backend::Folder(_) => None,
            Backend::Database(store) => Some(store),
        }
    }

    /// Unless there is one already.
    pub(super) async fn keep(&self, name: &str, value: &[u8]) -> Result<(), Failure> {
        match &self.backend {
            Backend::Folder(path) if path.join(name).exists() => Ok(()),
            Backend::Folder(path) => {
                private_file::replace(&path.join(name), value).map_err(|error| unreadable(&path.join(name), &error))
            }
            Backend::Database(store) => {
                store.common(name, value).await.map_err(|error| database_failure(&error)).map(|_kept| ())
            }
        }
    }

    pub(super) async fn close(self) {
        self.whole.close().await;
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}
