//! A host on a socket, and clients that are rude to it.

use std::net::SocketAddr;
use std::time::Duration;

use baton_runtime::Host;
use baton_server::{ConnectionLimits, Keys, ServerOptions, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::PATIENCE;

pub struct Served {
    pub address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

/// What came back: the head as text, and the body.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Served {
    pub async fn new(host: &Host, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut options = ServerOptions { keys: Keys::parse(super::KEYS).unwrap(), ..ServerOptions::default() };
        change(&mut options);
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, host.clone(), options, shutdown.clone()));
        Self { address, shutdown, serving }
    }

    pub async fn limited(host: &Host, change: impl FnOnce(&mut ConnectionLimits)) -> Self {
        Self::new(host, |options| change(&mut options.connections)).await
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// From another address of this machine.
    pub async fn connect_from(&self, address: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// Sends a request, and leaves the connection as it is then.
    pub async fn asking(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> TcpStream {
        let mut socket = self.connect().await;
        ask(&mut socket, method, path, headers).await;
        socket
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let closing = [&[("connection", "close")], headers].concat();
        read_reply(self.asking("GET", path, &closing).await).await
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.serving).await.expect("serve returns").unwrap().unwrap();
    }
}

pub async fn ask(socket: &mut TcpStream, method: &str, path: &str, headers: &[(&str, &str)]) {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{text}\r\n").as_bytes()).await.unwrap();
}

/// To the end of the connection.
pub async fn read_reply(mut socket: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut bytes)).await.expect("the reply ends");
    // Closed with something unread on the other side is closed, too.
    let _ = read;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// Waits until the other side has closed it. What came before that is given back.
pub async fn until_closed(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reading = async {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = socket.read(&mut piece).await {
            bytes.extend_from_slice(&piece[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the host closes it");
    bytes
}

/// Reads until this was there.
pub async fn until(socket: &mut TcpStream, wanted: &str) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&bytes).contains(wanted) {
            assert_ne!(socket.read_buf(&mut bytes).await.unwrap(), 0, "{}", String::from_utf8_lossy(&bytes));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it comes");
    String::from_utf8(bytes).unwrap()
}

pub fn short(duration: u64) -> Duration {
    Duration::from_millis(duration)
}
