use serde_json::{Map, Value};

use crate::log_tail::LogTail;
use crate::{ConnectionLimits, Keys, TenantLimits};

/// How the HTTP face behaves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub keys: Keys,
    /// Requests per second and key; no limit when absent.
    pub rate_limit_per_second: Option<u32>,
    /// Given in a test mode: what the discovery document says beside what the host can do. Every key is a test key then.
    pub test_capabilities: Option<Map<String, Value>>,
    /// Repeats capability families under `capabilities` for clients that still look there.
    pub mirror_capabilities: bool,
    /// Shown in discovery and in the OpenAPI document.
    pub version: String,
    pub max_body_bytes: usize,
    /// Requests and open streams served at once; above it callers are told to come back.
    pub inflight_cap: usize,
    /// What one tenant may have of it.
    pub tenants: TenantLimits,
    pub connections: ConnectionLimits,
    /// The newest lines of the process's log, shown to operators.
    pub logs: LogTail,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            keys: Keys::default(),
            rate_limit_per_second: None,
            test_capabilities: None,
            mirror_capabilities: true,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            max_body_bytes: 4 * 1024 * 1024,
            inflight_cap: 10_000,
            tenants: TenantLimits::default(),
            connections: ConnectionLimits::default(),
            logs: LogTail::default(),
        }
    }
}
