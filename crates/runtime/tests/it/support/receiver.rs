//! A subscriber on loopback: answers as told, 200 when nothing was said, and remembers what it was sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use baton_model::Timestamp;
use baton_runtime::Clock;
use baton_testkit::SimClock;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// What the test's clock said when it came.
    pub(crate) at: Timestamp,
}

impl Request {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    got: watch::Receiver<Vec<Request>>,
}

impl Receiver {
    /// Gives `answers` in turn, then 200 for ever.
    pub(crate) async fn start(clock: &Arc<SimClock>, answers: &[u16]) -> Self {
        Self::serve(clock, answers, 0).await
    }

    /// Answers 200 to everything once the test's clock has moved on by so much.
    #[allow(dead_code)]
    pub(crate) async fn slow(clock: &Arc<SimClock>, millis: u64) -> Self {
        Self::serve(clock, &[], millis).await
    }

    async fn serve(clock: &Arc<SimClock>, answers: &[u16], millis: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?key=1", listener.local_addr().unwrap());
        let (sender, got) = watch::channel(Vec::new());
        let shared = Arc::new(Shared {
            clock: Arc::clone(clock),
            answers: parking_lot::Mutex::new(answers.iter().copied().collect()),
            got: sender,
            millis,
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { while_open(stream, &shared).await });
            }
        });
        Self { url, got }
    }

    pub(crate) fn got(&self) -> Vec<Request> {
        self.got.borrow().clone()
    }
}

struct Shared {
    clock: Arc<SimClock>,
    answers: parking_lot::Mutex<VecDeque<u16>>,
    got: watch::Sender<Vec<Request>>,
    millis: u64,
}

async fn while_open(stream: TcpStream, shared: &Shared) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream, &shared.clock).await {
        let status = shared.answers.lock().pop_front().unwrap_or(200);
        let answer_at = request.at.plus_millis(shared.millis);
        shared.got.send_modify(|got| got.push(request));
        shared.clock.until(answer_at).await;
        let answer = format!("HTTP/1.1 {status} x\r\nLocation: /elsewhere\r\nContent-Length: 2\r\n\r\nok");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>, clock: &SimClock) -> Option<Request> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { line: line.trim().to_owned(), headers, body: String::from_utf8(body).ok()?, at: clock.now() })
}
