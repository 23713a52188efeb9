//! One conformance host for the tests of a file. Tests that overlap share it; the last to leave stops it, since a
//! static is never dropped.

use std::sync::{Arc, Mutex, Weak};

use super::Running;
use super::web::Web;

/// `alpha` may do everything in acme, `reader` may only read there, `beta` belongs to somebody else.
pub const KEYS: &str = "alpha:acme,beta:elsewhere,reader:acme:runs:read";

pub struct TestServer {
    // Stopped before its folder goes.
    host: Running,
    _folder: tempfile::TempDir,
}

pub fn test_server() -> Arc<TestServer> {
    static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(test_server) = shared.upgrade() {
        return test_server;
    }
    let folder = tempfile::tempdir().unwrap();
    let host = conformance_host(folder.path(), &[]);
    let test_server = Arc::new(TestServer { host, _folder: folder });
    *shared = Arc::downgrade(&test_server);
    test_server
}

/// `baton serve --conformance` over the data in `folder`.
pub fn conformance_host(folder: &std::path::Path, more: &[&str]) -> Running {
    let arguments: Vec<&str> = ["serve", "--conformance"].into_iter().chain(more.iter().copied()).collect();
    Running::start(folder, &arguments, &[("BATON_API_KEYS", KEYS)])
}

impl TestServer {
    pub fn web(&self) -> Web {
        self.keyed("alpha")
    }

    pub fn keyed(&self, key: &str) -> Web {
        Web::new(&self.host.url, Some(key))
    }

    pub fn anonymous(&self) -> Web {
        Web::new(&self.host.url, None)
    }
}
