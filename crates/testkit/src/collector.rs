//! A collector on loopback that keeps what it is sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn decoded(&self) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest::decode(self.body.as_slice()).unwrap()
    }
}

#[derive(Default)]
struct CollectedSpans {
    requests: Mutex<Vec<Request>>,
    bell: Condvar,
    /// What is answered; 0 = nothing, ever.
    status: AtomicU16,
}

pub struct Collector {
    pub url: String,
    kept: Arc<CollectedSpans>,
}

impl Collector {
    pub fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(CollectedSpans { status: AtomicU16::new(status), ..CollectedSpans::default() });
        let own = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let own = Arc::clone(&own);
                std::thread::spawn(move || while own.serve(stream.as_ref().unwrap()).is_some() {});
            }
        });
        Self { url, kept }
    }

    pub fn answer(&self, status: u16) {
        self.kept.status.store(status, Ordering::SeqCst);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.kept.requests.lock().unwrap().clone()
    }

    /// Waits until this many requests have come.
    pub fn wait_for(&self, count: usize) -> Vec<Request> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut requests = self.kept.requests.lock().unwrap();
        while requests.len() < count {
            let left = deadline.checked_duration_since(Instant::now()).expect("requests come");
            requests = self.kept.bell.wait_timeout(requests, left).unwrap().0;
        }
        requests.clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        let decoded = self.requests().iter().map(Request::decoded).collect::<Vec<_>>();
        let resources = decoded.into_iter().flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

impl CollectedSpans {
    /// One request on a connection. `None` when there is no more.
    fn serve(&self, mut stream: &TcpStream) -> Option<()> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&buffer[..count]);
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        let length: usize = length.expect("a length");
        while bytes.len() < end + length {
            let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&buffer[..count]);
        }
        // Decided before anybody can see the request and change it.
        let status = self.status.load(Ordering::SeqCst);
        self.requests.lock().unwrap().push(Request { head, body: bytes[end..].to_vec() });
        self.bell.notify_all();
        if status == 0 {
            // Holds the connection until the other side has had enough.
            while stream.read(&mut buffer).ok().is_some_and(|count| count > 0) {}
            return None;
        }
        write!(stream, "HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n").ok()
    }
}
