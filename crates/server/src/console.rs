//! The web console: plain files, embedded in release builds and read from disk in debug builds. They are public; what
//! they show is asked of the API with the key of whoever looks.
//!
//! A path without an extension, or one that a browser opens as a page, is a state of the page, so all of them are
//! `index.html`. It names its files under `/console/@<release>/`, where `<release>` is a digest of all of them: those
//! never change and are cached for good, while the page itself is asked for each time. In debug builds nothing is cached
//! without asking.

mod comments;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use baton_model::Digest;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;

use crate::app::App;
use crate::document::etag;
use crate::error::ApiError;
use crate::headers::{has_etag, takes_gzip};

/// Nothing inline, nothing evaluated, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; font-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
const PAGE: &str = "index.html";
/// Where the page has its files, before the release is known.
const FILES: &str = "/console/@/";

#[derive(RustEmbed)]
#[folder = "../../console"]
#[include = "*.html"]
#[include = "*.svg"]
#[include = "*.js"]
#[include = "*.css"]
#[exclude = "e2e/*"]
#[exclude = "tests/*"]
#[exclude = "node_modules/*"]
struct Files;

/// One file, ready to be sent.
#[derive(Clone)]
struct Asset {
    plain: Bytes,
    gzip: Bytes,
    etag: HeaderValue,
    mime: HeaderValue,
}

/// All files of a release build, read once.
struct Site {
    assets: BTreeMap<String, Asset>,
    release: String,
}

impl Site {
    fn get() -> &'static Self {
        static SITE: OnceLock<Site> = OnceLock::new();
        SITE.get_or_init(|| {
            let names = Files::iter().filter(|name| name != PAGE);
            let assets: BTreeMap<String, Asset> =
                names.filter_map(|name| Some((name.to_string(), Asset::read(&name, "")?))).collect();
            let all: String = assets.iter().map(|(name, asset)| format!("{name} {:?}\n", asset.etag)).collect();
            let release = Digest::of_bytes(&all).as_str().chars().take(16).collect();
            Self { assets, release }
        })
    }
}

/// Where debug builds have no release: an edited file must be seen at the next reload.
const LIVE: bool = cfg!(debug_assertions);

fn asset(name: &str) -> Option<Asset> {
    match (LIVE, name) {
        (true, _) => Asset::read(name, ""),
        (false, PAGE) => Asset::read(name, &Site::get().release),
        (false, _) => Site::get().assets.get(name).cloned(),
    }
}

impl Asset {
    /// A file as it is now; the page names its files by `release`.
    fn read(name: &str, release: &str) -> Option<Self> {
        let mut plain = Bytes::from(Files::get(name)?.data.into_owned());
        if name == PAGE && !release.is_empty() {
            plain = String::from_utf8_lossy(&plain).replace(FILES, &format!("/console/@{release}/")).into();
        } else if comments::may_go(name) {
            plain = comments::without(&String::from_utf8_lossy(&plain)).into();
        }
        let etag = etag(&Digest::of_bytes(&plain));
        let gzip = gzip(&plain).unwrap_or_default();
        Some(Self { plain, gzip, etag, mime: mime(name) })
    }

    fn respond(&self, headers: &HeaderMap, cache: &'static str) -> Response {
        let known = has_etag(headers, self.etag.to_str().unwrap_or_default());
        let packed = !self.gzip.is_empty() && self.gzip.len() < self.plain.len() && takes_gzip(headers);
        let body = match (known, packed) {
            (true, _) => Body::empty(),
            (false, true) => Body::from(self.gzip.clone()),
            (false, false) => Body::from(self.plain.clone()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let sent = response.headers_mut();
        sent.insert(CONTENT_TYPE, self.mime.clone());
        sent.insert(ETAG, self.etag.clone());
        sent.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        sent.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if packed && !known {
            sent.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

fn gzip(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), if LIVE { Compression::fast() } else { Compression::best() });
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/html"))
}

fn mime(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    })
}

/// Outside of the table of routes: these are not operations of the API.
pub(crate) fn router() -> Router<App> {
    let page = |headers: HeaderMap| async move { serve("", &headers) };
    Router::new().route("/console", get(page)).route("/console/", get(page)).route(
        "/console/{*path}",
        get(|Path(path): Path<String>, headers: HeaderMap| async move { serve(&path, &headers) }),
    )
}

fn serve(path: &str, headers: &HeaderMap) -> Response {
    let mut response = find(path, headers);
    let sent = response.headers_mut();
    sent.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    sent.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    sent.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        sent.insert(HeaderName::from_static(name), HeaderValue::from_static("same-origin"));
    }
    response
}

fn find(path: &str, headers: &HeaderMap) -> Response {
    const ASK: &str = "no-cache";
    const FOR_GOOD: &str = "public, max-age=31536000, immutable";
    let (release, name) = match path.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((release, name)) => (Some(release), name),
        None => (None, path),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    // Ids of agents, signed links and names of files have dots too; whoever opens a page says that a page is wanted.
    let state = !last.contains('.') || (wants_page(headers) && asset(name).is_none());
    if release.is_none() && state {
        return match asset(PAGE) {
            Some(page) => page.respond(headers, ASK),
            None => ApiError::internal("The console is missing from this build.").into_response(),
        };
    }
    match asset(name) {
        Some(asset) if !LIVE && release == Some(Site::get().release.as_str()) => asset.respond(headers, FOR_GOOD),
        Some(asset) => asset.respond(headers, ASK),
        None => ApiError::not_found("The console has no such file.").into_response(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_its_files_by_its_digest() {
        let page = Asset::read(PAGE, "abc123").unwrap();
        let text = String::from_utf8(page.plain.to_vec()).unwrap();
        assert!(text.contains("\"/console/@abc123/main.js\"") && !text.contains(FILES), "{text}");
    }
}
