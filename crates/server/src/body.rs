//! Request bodies: bounded, parsed straight into their type, refused with the place of the mistake.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use baton_model::code;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::app::App;
use crate::arrival::Arrival;
use crate::error::ApiError;

/// How much of a body that is too large is read before the answer.
const DRAINED: usize = 64 * 1024 * 1024;

/// Reads a body of at most `limit` bytes. A declared length is judged before anything is read.
pub async fn read(headers: &HeaderMap, body: Body, limit: usize, arrival: Arrival) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(arrival.whole, receive(headers, body, limit, arrival.next)).await {
        Ok(received) => received,
        Err(_) => Err(too_slow()),
    }
}

fn too_slow() -> ApiError {
    let message = "The request body did not arrive in time. Send it again.";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, code::REQUEST_TIMEOUT, message)
}

/// The next piece, if it comes in time.
async fn piece(frames: &mut BodyDataStream, next: Duration) -> Result<Option<Result<Bytes, axum::Error>>, ApiError> {
    tokio::time::timeout(next, frames.next()).await.map_err(|_| too_slow())
}

/// Most clients send all of a body before they read; closing on them would lose the answer. So what is too much is read
/// and dropped, within reason.
async fn too_large(mut frames: BodyDataStream, limit: usize, next: Duration) -> ApiError {
    let mut left = DRAINED;
    while let Ok(Some(Ok(frame))) = piece(&mut frames, next).await
        && left > frame.len()
    {
        left -= frame.len();
    }
    ApiError::payload_too_large(limit)
}

async fn receive(headers: &HeaderMap, body: Body, limit: usize, next: Duration) -> Result<Bytes, ApiError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    let mut frames = body.into_data_stream();
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(too_large(frames, limit, next).await);
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = piece(&mut frames, next).await? {
        let frame = frame.map_err(|_| ApiError::invalid("The request body ended early."))?;
        if first.len() + rest.len() + frame.len() > limit {
            return Err(too_large(frames, limit, next).await);
        }
        if first.is_empty() {
            first = frame;
        } else {
            rest.extend_from_slice(&frame);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

/// Parses a JSON object into `T`. The content type is not looked at.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    // Serde would also accept an array for a struct, field by field.
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        None => return Err(ApiError::invalid("A JSON object is required as the request body.")),
        // Something that may not be JSON at all: let the parser say so before complaining about its shape.
        Some(_) => {
            serde_json::from_slice::<serde::de::IgnoredAny>(body).map_err(|error| not_json(&error))?;
            return Err(ApiError::invalid("The request body must be a JSON object.").with("pointer", ""));
        }
    }
    serde_json::from_slice(body).map_err(|_| explain::<T>(body))
}

/// Like [`parse`], for routes whose whole body is optional.
pub(crate) fn parse_or_default<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { parse(body) }
}

/// A JSON object as the request body.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body, app.max_body_bytes, app.arrival).await?;
        Ok(Self(parse(&bytes).map_err(|error| error.without(&app.host.options().secrets))?))
    }
}

/// Parses once more, slowly, to find where the mistake is.
fn explain<T: DeserializeOwned>(body: &[u8]) -> ApiError {
    let mut parser = serde_json::Deserializer::from_slice(body);
    match serde_path_to_error::deserialize::<_, T>(&mut parser) {
        Ok(_) => match parser.end() {
            Err(error) => not_json(&error),
            Ok(()) => ApiError::invalid("The request body could not be read."),
        },
        Err(error) if error.inner().is_data() => wrong_data(error.path(), error.inner()),
        Err(error) => not_json(error.inner()),
    }
}

fn not_json(error: &serde_json::Error) -> ApiError {
    let (line, column) = (error.line(), error.column());
    ApiError::invalid(format!("The request body is not valid JSON (line {line}, column {column}): {}.", text_of(error)))
        .with("line", line)
        .with("column", column)
}

fn wrong_data(path: &Path, error: &serde_json::Error) -> ApiError {
    let text = text_of(error);
    let mut pointer = pointer_of(path);
    if let Some(field) = text.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        // The path may or may not already end in the offending name.
        let token = format!("/{}", escape(field));
        if !pointer.ends_with(&token) {
            pointer.push_str(&token);
        }
    }
    let place = if pointer.is_empty() { "The request body" } else { &pointer };
    ApiError::invalid(format!("{place}: {text}."))
        .with("pointer", pointer)
        .with("line", error.line())
        .with("column", error.column())
}

/// The parser's sentence without its own position, which is reported separately.
fn text_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn pointer_of(path: &Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escape(key))),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
        pointer
    })
}

fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde::Deserialize;

    const ARRIVAL: Arrival = Arrival { whole: Duration::from_secs(30), next: Duration::from_secs(10) };

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Order {
        name: String,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        inner: Option<Inner>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        n: u8,
    }

    fn refuse(body: &str) -> ApiError {
        parse::<Order>(body.as_bytes()).unwrap_err()
    }

    #[test]
    fn mistakes_have_a_pointer_and_a_position() {
        let cases = [
            (r#"{"name":"x","tags":["a",1]}"#, "/tags/1"),
            (r#"{"name":"x","inner":{"n":300}}"#, "/inner/n"),
            (r#"{"name":"x","extra/one":1}"#, "/extra~1one"),
            (r#"{"name":"x","inner":{"n":1,"m":2}}"#, "/inner/m"),
            (r#"{"tags":[]}"#, ""),
            (r#"["x"]"#, ""),
        ];
        for (body, pointer) in cases {
            let error = refuse(body);
            assert_eq!(error.status, 400, "{body}");
            assert_eq!(error.details["pointer"], pointer, "{body}: {}", error.message);
            assert!(!error.message.contains(" at line "), "{}", error.message);
        }
        assert!(refuse(r#"{"name":"x","nmae":1}"#).message.contains("expected one of `name`"));
    }

    #[test]
    fn what_is_not_json_says_where() {
        for body in ["{", r#"{"name":"x",}"#, "nonsense", r#"{"name":"x"} trailing"#, "{\"name\":\"\u{0}\"}"] {
            let error = refuse(body);
            assert!(error.message.contains("not valid JSON"), "{body}: {}", error.message);
            assert!(error.details["line"].as_u64().unwrap() >= 1, "{body}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let deep = format!("{{\"name\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(refuse(&deep).status, 400);
    }

    #[test]
    fn an_optional_body_may_be_empty() {
        assert_eq!(parse_or_default::<Order>(b" \n").unwrap(), Order::default());
        assert!(parse::<Order>(b"").is_err());
        assert!(parse_or_default::<Order>(b"null").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_comes_is_given_up() {
        let never = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read(&HeaderMap::new(), never, 5, ARRIVAL).await.unwrap_err().status, 408);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up_and_one_that_stops_is_sooner() {
        let trickle = |every: u64| {
            let pieces = futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_secs(every)).await;
                Some((Ok::<_, std::io::Error>(Bytes::from("x")), ()))
            });
            Body::from_stream(pieces)
        };
        for (every, given_up_after) in [(9, 30), (60, 10)] {
            let began = tokio::time::Instant::now();
            assert_eq!(read(&HeaderMap::new(), trickle(every), 1000, ARRIVAL).await.unwrap_err().status, 408);
            assert_eq!(began.elapsed().as_secs(), given_up_after);
        }
    }

    #[tokio::test]
    async fn size_is_bounded_with_and_without_a_declared_length() {
        let mut headers = HeaderMap::new();
        assert_eq!(read(&headers, Body::from("12345"), 5, ARRIVAL).await.unwrap(), "12345");
        assert_eq!(read(&headers, Body::from("123456"), 5, ARRIVAL).await.unwrap_err().status, 413);
        let frames = || ["12", "34", "56"].map(|part| Ok::<_, std::io::Error>(Bytes::from(part)));
        let chunked = || Body::from_stream(futures_util::stream::iter(frames()));
        assert_eq!(read(&headers, chunked(), 6, ARRIVAL).await.unwrap(), "123456");
        assert_eq!(read(&headers, chunked(), 5, ARRIVAL).await.unwrap_err().status, 413);
        headers.insert(CONTENT_LENGTH, 6.into());
        assert_eq!(read(&headers, Body::empty(), 5, ARRIVAL).await.unwrap_err().status, 413);
    }
}
