//! Clients that take more than their part from a host of their own process.

use crate::support;

use std::io::Read as _;
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;
use support::web::Web;
use support::{PATIENCE, Running, baton_with, eventually};

const KEYS: (&str, &str) = ("BATON_API_KEYS", "alpha:acme,reader:acme:runs:read,beta:elsewhere");

fn serve(folder: &Path, more: &[(&str, &str)]) -> Running {
    Running::start(folder, &["serve", "--conformance"], &[&[KEYS], more].concat())
}

fn connect(host: &Running) -> TcpStream {
    let socket = TcpStream::connect(host.url.strip_prefix("http://").unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Whether the host has closed it without a word. Panics if it is still open after all patience.
fn is_closed(socket: &mut TcpStream) -> bool {
    match socket.read(&mut [0; 16]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn five_hundred_silent_connections_are_closed_and_nobody_notices() {
    let folder = tempfile::tempdir().unwrap();
    let host = serve(folder.path(), &[("BATON_CONNECTIONS_HEADER_SECONDS", "2")]);
    let web = Web::new(&host.url, Some("alpha"));
    let mut silent: Vec<TcpStream> = (0..500).map(|_| connect(&host)).collect();
    web.ended(&web.start("conformance-noop"), "completed");
    assert!(silent.iter_mut().all(is_closed));
    let metrics = Web::new(&host.url, None).get("/metrics").text();
    let closed =
        metrics.lines().find_map(|line| line.strip_prefix("baton_http_connections_closed_total{why=\"header\"} "));
    assert!(closed.is_some_and(|count| count.parse::<u64>().unwrap() >= 500), "{metrics}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn with_few_files_clients_leave_some_to_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = Running::start_with_files(folder.path(), 96, &["serve", "--conformance"], &[KEYS]);
    let web = Web::new(&host.url, Some("alpha"));
    // Several times as many as there are descriptors.
    let silent: Vec<TcpStream> = (0..400).map(|_| connect(&host)).collect();
    for path in ["/health", "/readiness", "/metrics"] {
        assert_eq!(Web::new(&host.url, None).get(path).status, 200, "{path}");
    }
    for _ in 0..5 {
        web.ended(&web.start("conformance-noop"), "completed");
    }
    drop(silent);
    let told = {
        host.ask_to_stop();
        host.told_until_it_ended(PATIENCE)
    };
    assert!(told.contains("LimitNOFILE") && told.contains("connections=48"), "{told}");
}

#[test]
fn streams_of_one_tenant_leave_another_alone() {
    let folder = tempfile::tempdir().unwrap();
    let more = [("BATON_MAX_STREAMS_PER_TENANT", "50"), ("BATON_MAX_IN_FLIGHT", "200")];
    let host = serve(folder.path(), &more);
    let (owner, reader, other) =
        (Web::new(&host.url, Some("alpha")), Web::new(&host.url, Some("reader")), Web::new(&host.url, Some("beta")));
    let run = owner.start("conformance-approval");
    owner.until_status(&run, "waiting-approval");
    let mut streams: Vec<_> = (0..50)
        .map(|_| {
            let mut stream = reader.stream(&run, "", None);
            stream.next().unwrap().expect("a backlog");
            stream
        })
        .collect();
    let path = format!("/v1/runs/{run}/events");
    let asked = || reader.send("GET", &path, &[("Accept", "text/event-stream")], None);
    for _ in 0..20 {
        let refusal = asked();
        assert_eq!(refusal.header("retry-after"), Some("1"));
        let refusal = refusal.refused(429, "rate_limited");
        assert_eq!((&refusal["details"]["scope"], &refusal["details"]["limit"]), (&json!("tenant"), &json!(50)));
    }
    let theirs = other.start("conformance-approval");
    let mut stream = other.stream(&theirs, "", None);
    stream.next().unwrap().expect("a backlog");
    let metrics = Web::new(&host.url, None).get("/metrics").text();
    assert!(metrics.contains("baton_http_over_quota_total{what=\"streams\"} 20"), "{metrics}");
    // Whoever leaves makes room.
    streams.pop();
    eventually("there is room again", || {
        let again = reader.stream_if_there_is_room(&run);
        again.is_some_and(|mut again| again.next().is_ok_and(|frame| frame.is_some()))
    });
    drop(streams);
    assert_eq!(host.stop(), 0);
}

#[test]
fn the_settings_of_connections_are_shown_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("BATON_CONNECTIONS_IDLE_SECONDS", "9"), KEYS];
    let shown = baton_with(folder.path(), &["config", "show"], &env).expect(0).stdout;
    for (key, value) in [
        ("connections.max", "16384"),
        ("connections.max_per_address", "8192"),
        ("connections.header_seconds", "10"),
        ("connections.idle_seconds", "9"),
        ("max_streams_per_tenant", "0"),
    ] {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(key));
        assert!(line.is_some_and(|line| line.split_whitespace().any(|word| word == value)), "{key}: {line:?}\n{shown}");
    }
    for wrong in ["0", "86401", "ten"] {
        let env = [("BATON_CONNECTIONS_HEADER_SECONDS", wrong), KEYS];
        let told = baton_with(folder.path(), &["serve", "--listen", "127.0.0.1:0"], &env).expect(2).stderr;
        assert!(told.contains("whole seconds, from 1 to 86400"), "{told}");
    }
}
