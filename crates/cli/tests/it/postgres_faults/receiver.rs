//! Somebody who subscribed, and remembers every delivery.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// Run and sequence → the event, and how often it came.
pub type Received = BTreeMap<(String, u64), (Value, usize)>;

pub struct Receiver {
    pub url: String,
    received: Arc<Mutex<Received>>,
}

impl Receiver {
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let received: Arc<Mutex<Received>> = Arc::default();
        let all = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                // A host may freeze in the middle of a delivery; the others must not wait for it.
                std::thread::spawn(move || {
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
                    take(stream, &all);
                });
            }
        });
        Self { url, received }
    }

    pub fn received(&self) -> Received {
        self.received.lock().unwrap().clone()
    }
}

/// Everything that comes over one connection. Each delivery is noted before it is answered.
fn take(stream: TcpStream, all: &Mutex<Received>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), None);
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some((name, value)) = line.trim().split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
            line.clear();
        }
        let Some(length) = length else { return };
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body: Value = serde_json::from_slice(&body).unwrap();
        let event = body["event"].clone();
        let key = (event["runId"].as_str().unwrap().to_owned(), event["sequence"].as_u64().unwrap());
        let before = {
            let mut all = all.lock().unwrap();
            let entry = all.entry(key.clone()).or_insert_with(|| (event.clone(), 0));
            entry.1 += 1;
            entry.0.clone()
        };
        assert_eq!(before, event, "{key:?} was told twice, and differently");
        if reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}
