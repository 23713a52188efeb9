//! Other hosts, made ready to be asked.

use std::net::SocketAddr;
use std::sync::Arc;

use baton_model::{MIN_SECRET_BYTES, Secret, TenantId};
use baton_remote::HttpRemote;
use baton_runtime::Remotes;

use super::secrets;
use crate::config::{Config, Remote};
use crate::failure::Failure;

/// What is needed to ask other hosts: their credentials, by the id each is known under, and a way back.
pub(crate) struct Credentials(Vec<(String, String)>);

impl Credentials {
    pub(crate) fn read(config: &Config) -> Result<Self, Failure> {
        if !config.remotes.is_empty() && config.public_url.is_none() && !config.listen.ip().is_loopback() {
            return Err(Failure::usage("remotes are configured, but public_url is not set")
                .hint("set public_url: remote runs use it to reach their parent on this host"));
        }
        let read = |remote: &Remote| {
            let (name, value) = (&remote.credential.id, secrets::value(&remote.credential, "remotes")?.text);
            if value.len() < MIN_SECRET_BYTES {
                let message = format!("the credential of the remote `{name}` has fewer than {MIN_SECRET_BYTES} bytes");
                return Err(
                    Failure::usage(message).hint("use a longer key on the other host; this one is easy to guess")
                );
            }
            Ok((format!("remotes.{name}"), value))
        };
        Ok(Self(config.remotes.iter().map(read).collect::<Result<_, Failure>>()?))
    }

    /// So that nothing ever keeps them.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret> {
        self.0.iter().map(|(id, key)| Secret::new(id, key))
    }
}

/// The remotes of a host that listens at `address`. Without another way back, children on the same machine find their
/// parent there.
pub(crate) fn open(config: &Config, credentials: &Credentials, address: SocketAddr) -> Result<Remotes, Failure> {
    let own = config.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let mut remotes = Remotes::new(own, config.remote_timeout_ms);
    for (remote, (_, key)) in config.remotes.iter().zip(&credentials.0) {
        let tenants = remote.tenants.as_ref().map(|tenants| tenants.iter().map(TenantId::new).collect());
        let name = &remote.credential.id;
        let remote = HttpRemote::new(name, &remote.origin, key, tenants)
            .map_err(|error| Failure::usage(format!("the remote `{name}` cannot be used: {error}")))?;
        remotes = remotes.with(Arc::new(remote));
    }
    Ok(remotes)
}
