//! A thousand subscribers, most of them dead, mute, late or moody, and one connection to read the store with: the host goes on
//! for everybody, and who is well gets everything.

use crate::support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_testkit::postgres::Database;
use serde_json::{Value, json};
use support::flow::{chain, node};
use support::web::Web;
use support::{NOBODY, PATIENCE, Running};

const SUBSCRIBERS: usize = 1000;
/// Of each client.
const RUNS: usize = 10;
/// Of each tenant; there are two.
const CLIENTS: usize = 2;
/// Well is one of so many; the others are dead, mute, late and moody by turns.
const WELL_EVERY: usize = 10;
/// How late somebody answers who does so well: longer than others should wait.
const LATE: Duration = Duration::from_millis(1500);

/// A subscriber for all: the path says who it is and how it behaves.
struct Crowd {
    port: u16,
    got: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Crowd {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let counts = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = Arc::clone(&counts);
                std::thread::spawn(move || serve(stream, &counts));
            }
        });
        Self { port, got }
    }

    fn got(&self, who: &str) -> usize {
        self.got.lock().unwrap().get(who).copied().unwrap_or(0)
    }
}

/// Answers requests on one connection until it ends.
fn serve(stream: TcpStream, counts: &Mutex<BTreeMap<String, usize>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if header.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let calls = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(path.clone()).or_insert(0);
            *count += 1;
            *count
        };
        let answer: &[u8] = match path.split('-').next().unwrap_or_default() {
            // Never answers; the other side gives up.
            "mute" => {
                let _ = reader.read_line(&mut String::new());
                return;
            }
            "late" => {
                std::thread::sleep(LATE);
                b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            }
            "moody" if calls % 2 == 1 => b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        };
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

fn flow() -> Value {
    chain("noop", vec![node("a", "core.noop", json!({}))])
}

fn crowd_on(env: &[(&str, &str)], folder: &std::path::Path) {
    let crowd = Crowd::open();
    let keys = ("BATON_API_KEYS", "alpha:acme,beta:elsewhere");
    let env: Vec<(&str, &str)> = env
        .iter()
        .copied()
        .chain([
            keys,
            ("BATON_READERS", "1"),
            ("OPENWOP_WEBHOOK_ALLOW_PRIVATE", "true"),
            ("BATON_RATE_LIMIT_PER_SECOND", "100000"),
        ])
        .collect();
    let host = Running::start(folder, &["serve"], &env);
    let (acme, other) = (Web::new(&host.url, Some("alpha")), Web::new(&host.url, Some("beta")));
    acme.post("/v1/workflows", flow()).expect(201);
    other.post("/v1/workflows", flow()).expect(201);
    let subscribe = |web: &Web, url: String| {
        web.post("/v1/webhooks", json!({"url": url, "events": ["run.completed"]})).expect(201);
    };
    let mut well = Vec::new();
    for number in 0..SUBSCRIBERS {
        let port = crowd.port;
        let url = match number % WELL_EVERY {
            0 => {
                well.push(format!("well-{number}"));
                format!("http://127.0.0.1:{port}/well-{number}")
            }
            1..=2 => format!("http://127.0.0.1:{port}/mute-{number}"),
            3 => format!("http://127.0.0.1:{port}/late-{number}"),
            4..=6 => format!("http://127.0.0.1:{port}/moody-{number}"),
            _ => format!("http://{NOBODY}/dead-{number}"),
        };
        subscribe(&acme, url);
    }
    subscribe(&other, format!("http://127.0.0.1:{}/well-other", crowd.port));

    let clients = [&acme, &other].into_iter().flat_map(|web| std::iter::repeat_n(web, CLIENTS));
    let load: Vec<_> = clients
        .map(|web| {
            let web = web.clone();
            std::thread::spawn(move || {
                for _ in 0..RUNS {
                    let run = web.start("noop");
                    web.until_status(&run, "completed");
                }
            })
        })
        .collect();
    for client in load {
        client.join().unwrap();
    }
    well.push("well-other".to_owned());
    // Tens of thousands of calls, on a machine that may be busy.
    let deadline = Instant::now() + 3 * PATIENCE;
    while let Some(missing) = well.iter().find(|who| crowd.got(who) < CLIENTS * RUNS) {
        acme.get("/readiness").expect(200);
        acme.get("/v1/runs").expect(200);
        assert!(Instant::now() < deadline, "{missing} got {} of {}", crowd.got(missing), CLIENTS * RUNS);
        std::thread::sleep(Duration::from_millis(50));
    }
    // Ends in time though hundreds of calls are under way.
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_thousand_moody_subscribers_on_a_folder_read_by_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    crowd_on(&[], folder.path());
}

#[test]
fn a_thousand_moody_subscribers_on_a_database_read_by_one_connection() {
    let Some(database) = Database::fresh_blocking() else { return };
    let folder = tempfile::tempdir().unwrap();
    crowd_on(&[("BATON_DATABASE_URL", database.url.as_str())], folder.path());
}
