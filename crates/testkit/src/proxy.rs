//! A network between two hosts, in the test's hands: it forwards HTTP requests over TCP, one a connection, and drops,
//! repeats, delays or tears those it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// What becomes of one request.
#[derive(Clone)]
pub enum Fate {
    /// It never arrives.
    Lost,
    /// It arrives, and the answer is lost.
    AnswerLost,
    /// It arrives, and the answer is kept back: whoever asked waits for as long as the test wants.
    Silence,
    /// It arrives twice at the same time; the answer to one of them comes back.
    Twice,
    /// Whoever asked sees the connection break at once; the request arrives when the test says so.
    Late(Arc<Notify>),
    /// Half of the answer comes back.
    Torn,
}

#[derive(Clone)]
struct Rule {
    request: String,
    fate: Fate,
    times: usize,
}

#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    rules: Arc<Mutex<Vec<Rule>>>,
    /// Heads of the requests that came in.
    heads: Arc<Mutex<Vec<String>>>,
    /// First lines of the requests that came in, and statuses of the answers to those that arrived.
    heard: Arc<watch::Sender<Vec<String>>>,
    answered: Arc<watch::Sender<Vec<(String, u16)>>>,
}

impl Proxy {
    pub async fn before(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            rules: Arc::default(),
            heads: Arc::default(),
            heard: Arc::new(watch::Sender::new(Vec::new())),
            answered: Arc::new(watch::Sender::new(Vec::new())),
        };
        let own = proxy.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let proxy = own.clone();
                tokio::spawn(async move { proxy.serve(socket, upstream).await });
            }
        });
        proxy
    }

    /// The next `times` requests whose first line begins like this fare like that.
    pub fn next(&self, request: &str, times: usize, fate: Fate) {
        self.rules.lock().unwrap().push(Rule { request: request.to_owned(), fate, times });
    }

    /// The heads of all requests so far, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// How many requests whose first line begins like this came in.
    pub fn heard(&self, request: &str) -> usize {
        self.heard.borrow().iter().filter(|line| line.starts_with(request)).count()
    }

    /// Waits until that many such requests came in.
    pub async fn reasoning_chars(&self, request: &str, times: usize) {
        let enough = |lines: &Vec<String>| lines.iter().filter(|line| line.starts_with(request)).count() >= times;
        self.heard.subscribe().wait_for(enough).await.unwrap();
    }

    /// Waits until that many such requests were answered at the other end, and gives the statuses.
    pub async fn answers(&self, request: &str, times: usize) -> Vec<u16> {
        let of = |all: &[(String, u16)]| -> Vec<u16> {
            all.iter().filter(|(line, _)| line.starts_with(request)).map(|(_, status)| *status).collect()
        };
        of(&self.answered.subscribe().wait_for(|all| of(all).len() >= times).await.unwrap())
    }

    fn fate(&self, line: &str) -> Option<Fate> {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules.iter_mut().find(|rule| rule.times > 0 && line.starts_with(&rule.request))?;
        rule.times -= 1;
        Some(rule.fate.clone())
    }

    async fn serve(self, mut client: TcpStream, upstream: SocketAddr) {
        let Some((line, request)) = read_request(&mut client).await else { return };
        let head = String::from_utf8_lossy(&request).split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
        self.heads.lock().unwrap().push(head);
        let fate = self.fate(&line);
        self.heard.send_modify(|lines| lines.push(line.clone()));
        match fate {
            Some(Fate::Lost) => {}
            Some(Fate::AnswerLost) => drop(self.forward(&line, &request, upstream).await),
            Some(Fate::Silence) => {
                self.forward(&line, &request, upstream).await;
                // Until whoever asked hangs up.
                let _ = client.read(&mut [0; 1]).await;
            }
            Some(Fate::Late(now)) => {
                drop(client);
                now.notified().await;
                self.forward(&line, &request, upstream).await;
            }
            Some(Fate::Twice) => {
                let (one, _) =
                    tokio::join!(self.forward(&line, &request, upstream), self.forward(&line, &request, upstream));
                let _ = client.write_all(&one).await;
            }
            Some(Fate::Torn) => {
                let answer = self.forward(&line, &request, upstream).await;
                let _ = client.write_all(&answer[..answer.len() / 2]).await;
            }
            None => {
                let answer = self.forward(&line, &request, upstream).await;
                let _ = client.write_all(&answer).await;
            }
        }
    }

    /// The whole answer; nothing if the other end is not there.
    async fn forward(&self, line: &str, request: &[u8], upstream: SocketAddr) -> Vec<u8> {
        let mut answer = Vec::new();
        if let Ok(mut server) = TcpStream::connect(upstream).await {
            let _ = server.write_all(request).await;
            let _ = server.read_to_end(&mut answer).await;
        }
        let status = std::str::from_utf8(answer.get(9..12).unwrap_or_default()).unwrap_or_default().parse();
        if let Ok(status) = status {
            self.answered.send_modify(|all| all.push((line.to_owned(), status)));
        }
        answer
    }
}

/// The first line and the bytes of one request, which asks for the connection to be closed behind it.
async fn read_request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head = loop {
        let mut chunk = [0; 4096];
        let read = client.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).ok()?;
    let length = text
        .lines()
        .find_map(|line| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length")))
        .map_or(0, |(_, length)| length.trim().parse().unwrap());
    while bytes.len() < head + 4 + length {
        let mut chunk = [0; 4096];
        let read = client.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
    }
    let mut request = format!("{text}\r\nconnection: close\r\n\r\n").into_bytes();
    request.extend_from_slice(&bytes[head + 4..]);
    Some((text.lines().next()?.to_owned(), request))
}
