//! The console as the host serves it: public files, a strict policy, a budget for its size.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::support::Site;

const BUDGET_BYTES: usize = 250_000;
const GZIP: (&str, &str) = ("accept-encoding", "br, gzip");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console")
}

/// Every file that belongs to the console, as its address under `/console/`.
fn files(dir: &Path, out: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if !["e2e", "tests", "node_modules"].contains(&name.as_str()) {
                files(&path, out);
            }
        } else if ["html", "js", "css", "svg"].iter().any(|kind| name.ends_with(&format!(".{kind}"))) {
            out.insert(path.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned());
        }
    }
}

#[tokio::test]
async fn every_state_is_the_page_and_every_answer_has_the_policy() {
    let site = Site::open().await;
    for path in ["/console", "/console/", "/console/runs", "/console/runs/run_1", "/console/agents/a%2Fb"] {
        let page = site.send("GET", path, &[], "").await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
        assert!(page.text.starts_with("<!doctype html>"), "{path}");
        assert_eq!(page.header("cache-control"), "no-cache");
    }
    for path in ["/console", "/console/main.js", "/console/nothing.js"] {
        let answer = site.send("GET", path, &[], "").await;
        let policy = answer.header("content-security-policy").to_owned();
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
    }
}

#[tokio::test]
async fn files_have_their_type_and_are_not_sent_twice() {
    let site = Site::open().await;
    for (path, mime) in [("main.js", "text/javascript"), ("styles/tokens.css", "text/css"), ("icon.svg", "image/svg")] {
        for path in [format!("/console/{path}"), format!("/console/@any/{path}")] {
            let file = site.send("GET", &path, &[], "").await;
            assert_eq!(file.status, 200, "{path}");
            assert!(file.header("content-type").starts_with(mime), "{path}");
            let etag = file.header("etag").to_owned();
            assert_eq!(site.send("GET", &path, &[("if-none-match", &etag)], "").await.status, 304, "{path}");
        }
    }
    for path in ["nothing.js", "README.md", "tsconfig.json", "types.d.ts", "../Cargo.toml", "tests/query.test.mjs"] {
        site.send("GET", &format!("/console/{path}"), &[], "").await.refused(404, "not_found");
    }
    site.send("POST", "/console", &[], "").await.refused(405, "method_not_allowed");
    // What a browser opens is a state of the page even where its name has dots.
    let page = site.send("GET", "/console", &[], "").await;
    for path in ["agents/vendor.baton.team.reviewer", "link/eyJ9.c2ln", "workspace/notes/a.md"] {
        let opened = site.send("GET", &format!("/console/{path}"), &[("accept", "text/html,*/*;q=0.8")], "").await;
        assert_eq!((opened.status.as_u16(), opened.header("etag")), (200, page.header("etag")), "{path}");
    }
}

#[tokio::test]
async fn the_whole_console_fits_its_budget() {
    let site = Site::open().await;
    let mut names = BTreeSet::new();
    files(&folder(), &mut names);
    let mut total = 0;
    for name in &names {
        let file = site.send("GET", &format!("/console/@any/{name}"), &[GZIP], "").await;
        assert_eq!(file.status, 200, "{name}");
        let packed = file.header("content-encoding") == "gzip";
        let plain = std::fs::metadata(folder().join(name)).unwrap().len() as usize;
        assert!(packed || plain < 200, "{name} is not compressed");
        // As a release sends it: packed once, and as tightly as it gets.
        let mut best = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let sent = site.send("GET", &format!("/console/@any/{name}"), &[], "").await;
        best.write_all(sent.text.as_bytes()).unwrap();
        total += best.finish().unwrap().len();
    }
    assert!(names.len() > 10 && total <= BUDGET_BYTES, "{} files, {total} bytes of {BUDGET_BYTES}", names.len());
}

/// The policy would stop these in a browser; here they are found earlier, and by name.
#[tokio::test]
async fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
    let mut names = BTreeSet::new();
    files(&folder(), &mut names);
    for name in names {
        let text = std::fs::read_to_string(folder().join(&name)).unwrap();
        let stopped: &[&str] = match name.rsplit('.').next().unwrap() {
            "html" => &["style=\"", "<style", "onclick=", "<script>", "//cdn", "https://"],
            "js" => &["innerHTML", "insertAdjacentHTML", "eval(", "new Function(", "document.write", "from \"http"],
            "css" => &["@import", "url(http", "url(//"],
            _ => &[],
        };
        for word in stopped {
            assert!(!text.contains(word), "{name} has `{word}`");
        }
    }
}
