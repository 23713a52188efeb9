//! What a run needs of the world around it: models, tools, memory, time, money, children, webhooks. Each room keeps its
//! own state.

pub(crate) mod agents;
pub(crate) mod annotations;
pub(crate) mod budgets;
pub(crate) mod children;
pub(crate) mod connections;
pub(crate) mod conversations;
pub(crate) mod dispatch;
pub(crate) mod in_flight;
pub(crate) mod models;
pub(crate) mod notifications;
pub(crate) mod observer;
pub(crate) mod observers;
pub(crate) mod retention;
pub(crate) mod retention_pass;
pub(crate) mod runners;
pub(crate) mod step_gateway;
pub(crate) mod stored_bytes;
pub(crate) mod timers;
pub(crate) mod tools;
pub(crate) mod tree_quotas;
pub(crate) mod versioned;
pub(crate) mod webhooks;
pub(crate) mod workflows;
