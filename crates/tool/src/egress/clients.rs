//! HTTP clients that can only connect where a guard allows.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::guard::{Guard, Refused};

/// Connecting takes no longer than this, however patient the caller is with the answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no client for a URL.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the HTTP client could not be set up")]
    Setup(#[source] reqwest::Error),
}

/// Holds the clients of one purpose, so that connections are reused between its calls. They follow no redirect and use
/// no proxy.
pub struct Clients {
    guard: Guard,
    timeout: Option<Duration>,
    /// Each by whether its URLs are open (see [`Guard`]): only a client for open ones resolves a name to the inside,
    /// and it never sees another URL.
    secure: [OnceLock<Client>; 2],
    plain: [OnceLock<Client>; 2],
}

impl Clients {
    /// `timeout` bounds a call from its start to the last byte of its answer; a request may set its own.
    pub fn new(guard: Guard, timeout: Duration) -> Self {
        Self { guard, timeout: Some(timeout), secure: Default::default(), plain: Default::default() }
    }

    /// For answers that may take for ever, such as streams.
    pub(crate) fn patient(guard: Guard) -> Self {
        Self { guard, timeout: None, secure: Default::default(), plain: Default::default() }
    }

    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The client for one URL, and for that one only.
    pub fn client(&self, url: &Url) -> Result<Client, NoClient> {
        self.guard.check(url)?;
        let open = self.guard.is_open(url);
        let secure = url.scheme() == "https";
        let place = &(if secure { &self.secure } else { &self.plain })[usize::from(open)];
        if let Some(client) = place.get() {
            return Ok(client.clone());
        }
        let client = self.build(open, secure).map_err(NoClient::Setup)?;
        Ok(place.get_or_init(|| client).clone())
    }

    fn build(&self, open: bool, secure: bool) -> reqwest::Result<Client> {
        install_crypto();
        let builder = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(self.timeout.map_or(CONNECT_TIMEOUT, |timeout| timeout.min(CONNECT_TIMEOUT)))
            .dns_resolver(self.guard.resolver(open));
        let builder = match self.timeout {
            Some(timeout) => builder.timeout(timeout),
            None => builder,
        };
        // Plain HTTP must work where there are no CA certificates, so its client does not look for any.
        if secure { builder.https_only(true) } else { builder.tls_certs_only([]) }.build()
    }
}

/// A client cannot be built without a provider, not even for plain HTTP. Whoever embeds us may have chosen one.
pub(crate) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster; then theirs counts.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::VecDeque;
    use std::io;
    use std::net::IpAddr;
    use std::sync::Arc;

    use async_trait::async_trait;
    use parking_lot::Mutex;
    use tokio::net::TcpListener;

    use super::super::lookup::Lookup;
    use super::*;

    /// Answers each question with the next of its answers, and the last one for ever after.
    struct Scripted(Mutex<VecDeque<IpAddr>>, Mutex<usize>);

    impl Scripted {
        fn new(answers: &[&str]) -> Arc<Self> {
            Arc::new(Self(Mutex::new(answers.iter().map(|text| text.parse().unwrap()).collect()), Mutex::new(0)))
        }
    }

    #[async_trait]
    impl Lookup for Scripted {
        async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            *self.1.lock() += 1;
            let mut answers = self.0.lock();
            let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().copied() };
            Ok(vec![next.unwrap()])
        }
    }

    /// Whether a connection arrives, or why the client made none.
    async fn attempt(clients: &Clients, listener: &TcpListener, url: &Url) -> Result<(), NoClient> {
        let client = clients.client(url)?;
        tokio::select! {
            refused = client.get(url.clone()).send() => Err(NoClient::Setup(refused.unwrap_err())),
            accepted = listener.accept() => { accepted.unwrap(); Ok(()) }
        }
    }

    fn is_refusal(fault: &NoClient) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(fault);
        while let Some(error) = cause {
            if error.is::<Refused>() {
                return true;
            }
            cause = error.source();
        }
        false
    }

    #[tokio::test]
    async fn a_name_that_leads_inwards_is_refused_when_the_connection_is_made() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Looks public, and was public when somebody checked; now it points here.
        let url: Url =
            format!("https://rebound.example.com:{}/", listener.local_addr().unwrap().port()).parse().unwrap();
        let lookup = Scripted::new(&["93.184.216.34", "127.0.0.1"]);
        let guard = Guard::new(false).with_lookup(lookup.clone());
        assert_eq!(
            lookup.addresses("rebound.example.com").await.unwrap(),
            ["93.184.216.34".parse::<IpAddr>().unwrap()]
        );
        let refused = attempt(&Clients::new(guard, Duration::from_secs(5)), &listener, &url).await.unwrap_err();
        assert!(is_refusal(&refused), "{refused:?}");
        assert_eq!(*lookup.1.lock(), 2, "the connection asked once, and used nothing else");
    }

    #[tokio::test]
    async fn an_allowed_place_may_lead_inwards_and_its_neighbours_may_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let guard = Guard::new(false)
            .with_places([format!("api.example.com:{port}").parse().unwrap()])
            .with_lookup(Scripted::new(&["127.0.0.1"]));
        let clients = Clients::new(guard, Duration::from_secs(5));
        let url = |text: String| text.parse::<Url>().unwrap();
        attempt(&clients, &listener, &url(format!("http://api.example.com:{port}/"))).await.unwrap();
        // Same name, another port: the client for open places never sees it.
        let neighbour = attempt(&clients, &listener, &url("https://api.example.com:1/".to_owned())).await.unwrap_err();
        assert!(is_refusal(&neighbour), "{neighbour:?}");
        let sibling = attempt(&clients, &listener, &url(format!("https://b.example.com:{port}/"))).await.unwrap_err();
        assert!(is_refusal(&sibling), "{sibling:?}");
    }

    #[tokio::test]
    async fn the_whole_switch_lets_a_client_in() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://localhost:{}/", listener.local_addr().unwrap().port()).parse().unwrap();
        let clients = |private| Clients::new(Guard::new(private), Duration::from_secs(5));
        assert!(matches!(attempt(&clients(false), &listener, &url).await, Err(NoClient::Refused(Refused::Scheme))));
        attempt(&clients(true), &listener, &url).await.unwrap();
    }
}
