//! Reading one value of a layer as the kind its setting has.

use std::net::SocketAddr;

use baton_store_sqlite::DataAccess;
use baton_telemetry::export::{Encoding, Endpoint};

use super::host_name::is_host_id;
use super::references::Reference;
use super::remotes::Remote;
use super::settings::{Kind, Value};
use super::trust;

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// From a TOML file; `None` when it is not of the kind.
pub(super) fn from_toml(kind: Kind, value: &toml::Value) -> Option<Value> {
    match (kind, value) {
        (Kind::Bool, toml::Value::Boolean(value)) => Some(Value::Bool(*value)),
        (Kind::Count, toml::Value::Integer(value)) => u64::try_from(*value).ok().map(Value::Count),
        (Kind::Seconds, toml::Value::Integer(value)) => u64::try_from(*value).ok().and_then(seconds),
        (Kind::Paths | Kind::Texts, toml::Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>().map(Value::List)
        }
        (Kind::Percent, toml::Value::Integer(value)) => from_text(kind, &value.to_string()),
        (Kind::References, toml::Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>().and_then(references)
        }
        (Kind::Remotes, toml::Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>().and_then(remotes)
        }
        (Kind::PublicKeys, toml::Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>().and_then(public_keys)
        }
        (
            Kind::PublicKeys
            | Kind::Bool
            | Kind::Count
            | Kind::Seconds
            | Kind::Percent
            | Kind::Paths
            | Kind::Texts
            | Kind::References
            | Kind::Remotes,
            _,
        ) => None,
        (_, toml::Value::String(text)) => from_text(kind, text),
        _ => None,
    }
}

/// A deadline of none would end everything at once, and one of days none of it.
fn seconds(value: u64) -> Option<Value> {
    (1..=86_400).contains(&value).then_some(Value::Count(value))
}

/// From a variable or a flag.
pub(super) fn from_text(kind: Kind, text: &str) -> Option<Value> {
    let plain = || Some(Value::Text(text.to_owned()));
    match kind {
        Kind::Bool => match text {
            "true" | "1" | "yes" | "on" => Some(Value::Bool(true)),
            "false" | "0" | "no" | "off" | "" => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::Count => text.parse().ok().map(Value::Count),
        Kind::Seconds => text.parse().ok().and_then(seconds),
        Kind::Paths => Some(Value::List(text.split(':').filter(|p| !p.is_empty()).map(str::to_owned).collect())),
        Kind::Texts => Some(Value::List(parts(text))),
        Kind::References => references(parts(text)),
        Kind::Remotes => remotes(parts(text)),
        Kind::PublicKeys => public_keys(parts(text)),
        Kind::Address => text.parse::<SocketAddr>().ok().and_then(|_| plain()),
        Kind::Level => LEVELS.contains(&text).then(plain).flatten(),
        Kind::Percent => text.parse().ok().filter(|percent| (50..=100).contains(percent)).map(Value::Count),
        Kind::Escalation => {
            matches!(text, "approval" | "clarification" | "x-host-baton-low-confidence").then(plain).flatten()
        }
        Kind::Collector => Endpoint::parse(text).and_then(|_| plain()),
        Kind::Encoding => Encoding::parse(text).and_then(|_| plain()),
        Kind::Database => {
            let fits = text.starts_with("postgres://") || text.starts_with("postgresql://");
            fits.then(plain).flatten()
        }
        Kind::HostId => is_host_id(text).then(plain).flatten(),
        Kind::Access => DataAccess::parse(text).and_then(|_| plain()),
        Kind::Format => matches!(text, "text" | "json").then(plain).flatten(),
        Kind::Path | Kind::Text | Kind::Secret => (!text.is_empty()).then(plain).flatten(),
    }
}

fn parts(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A list of other hosts, if each is one.
pub(super) fn remotes(items: Vec<String>) -> Option<Value> {
    Remote::parse_all(&items).map(|_| Value::List(items))
}

/// A list of public keys, if each is one.
pub(super) fn public_keys(items: Vec<String>) -> Option<Value> {
    trust::is_list(&items).then_some(Value::List(items))
}

/// A list of references, if each is one. What is not may be a secret itself, so nobody repeats it.
pub(super) fn references(items: Vec<String>) -> Option<Value> {
    items.iter().all(|item| Reference::parse(item).is_some()).then_some(Value::List(items))
}
