use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use baton_runtime::Host;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arrival::Arrival;
use crate::document::Document;
use crate::idempotency::InFlight;
use crate::log_tail::LogTail;
use crate::metrics::Metrics;
use crate::quotas::Quotas;
use crate::rate_limit::{RateLimit, Whose};
use crate::{Keys, ServerOptions};

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

pub struct Inner {
    pub host: Host,
    pub(crate) keys: Keys,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) tenant_rate_limit: Option<RateLimit>,
    pub(crate) in_flight: InFlight,
    /// Executions that go on when their caller hangs up; waited for before the process stops.
    pub(crate) tasks: TaskTracker,
    pub(crate) max_body_bytes: usize,
    pub(crate) version: String,
    pub arrival: Arrival,
    /// Requests and open streams.
    pub(crate) quotas: Arc<Quotas>,
    /// Cancelled when the process wants to stop: streams and long polls end.
    pub(crate) shutdown: CancellationToken,
    pub(crate) documents: Documents,
    pub(crate) metrics: Metrics,
    pub(crate) logs: LogTail,
}

/// What the host says about itself.
pub(crate) struct Documents {
    /// What it can do, for everybody.
    pub(crate) discovery: Document,
    /// The same, for narrower views to be made of.
    pub(crate) capabilities: Map<String, Value>,
    /// Made when it is first asked for, as few do: making it takes more memory than the rest of an idle host.
    pub(crate) openapi: LazyLock<Document, Box<dyn FnOnce() -> Document + Send>>,
    pub(crate) vendor_extensions: Document,
}

impl App {
    pub(crate) fn new(host: Host, options: ServerOptions, shutdown: CancellationToken, documents: Documents) -> Self {
        let keys = if options.test_capabilities.is_some() { options.keys.all_test() } else { options.keys };
        let rate_limit = options.rate_limit_per_second.and_then(|limit| RateLimit::new(limit, keys.len(), Whose::Key));
        let per_tenant = options.tenants.rate_per_second;
        let tenant_rate_limit = per_tenant.and_then(|limit| RateLimit::new(limit, keys.len(), Whose::Tenant));
        let quotas = Quotas::new(options.inflight_cap, options.tenants, keys.has_several_tenants());
        Self(Arc::new(Inner {
            host,
            keys,
            rate_limit,
            tenant_rate_limit,
            in_flight: InFlight::default(),
            tasks: TaskTracker::new(),
            max_body_bytes: options.max_body_bytes,
            version: options.version,
            arrival: Arrival { whole: options.connections.body, next: options.connections.body_idle },
            quotas,
            shutdown,
            documents,
            metrics: Metrics::shared(),
            logs: options.logs,
        }))
    }
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}
