//! Taking a run to another host: its file out of one, and into another. Both are streamed.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_api::{ExportFooter, ImportedRun};
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde::Deserialize;

use crate::{Client, Error};

const NDJSON: &str = "application/x-ndjson";
/// How much of a file is read and sent at a time.
const PIECE: usize = 256 * 1024;

/// A run's file as it comes.
pub struct RunExport {
    client: Client,
    response: reqwest::Response,
    /// The last line that has begun.
    last: Vec<u8>,
}

impl RunExport {
    /// Some more of it; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let piece = self.response.chunk().await.map_err(|source| self.client.unreachable(source))?;
        if let Some(piece) = &piece {
            // Only what follows the last line break before the end can become the footer.
            let body = piece.strip_suffix(b"\n").unwrap_or(piece);
            match body.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => self.last = piece[end + 1..].to_vec(),
                None if self.last.ends_with(b"\n") => self.last = piece.to_vec(),
                None => self.last.extend_from_slice(piece),
            }
        }
        Ok(piece)
    }

    /// What the file says about itself, once all of it has come. Without this it is not whole.
    pub fn footer(&self) -> Result<ExportFooter, Error> {
        #[derive(Deserialize)]
        struct Last {
            footer: ExportFooter,
        }
        let last: Last = serde_json::from_slice(&self.last)
            .map_err(|_| self.client.not_understood("the export ends without its footer"))?;
        Ok(last.footer)
    }
}

impl Client {
    /// An ended run with its tree, its sources, and everything it takes to read, fork and replay it elsewhere.
    pub async fn export_run(&self, run: &str) -> Result<RunExport, Error> {
        let url = self.url(&["v1", "host", "baton", "runs", run, "export"]);
        let request = self.http().get(url).header(ACCEPT, NDJSON);
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        Ok(RunExport { client: self.clone(), response, last: Vec::new() })
    }

    /// Hands such a file to the host. `sent` is told how many bytes have been read.
    pub async fn import_run(
        &self,
        file: impl Read + Send + 'static,
        sent: impl Fn(u64) + Send + 'static,
    ) -> Result<ImportedRun, Error> {
        let url = self.url(&["v1", "host", "baton", "runs", "import"]);
        let total = Arc::new(AtomicU64::new(0));
        let pieces = futures_util::stream::unfold(Some((file, sent, total)), |state| async move {
            let (mut file, sent, total) = state?;
            let read = tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; PIECE];
                let length = file.read(&mut piece);
                (file, length.map(|length| Bytes::from(piece).slice(..length)))
            });
            match read.await {
                Ok((file, Ok(piece))) if !piece.is_empty() => {
                    sent(total.fetch_add(piece.len() as u64, Ordering::Relaxed) + piece.len() as u64);
                    Some((Ok(piece), Some((file, sent, total))))
                }
                Ok((_, Ok(_))) => None,
                Ok((_, Err(error))) => Some((Err(error), None)),
                Err(error) => Some((Err(io::Error::other(error)), None)),
            }
        });
        let request = self.http().post(url).header(CONTENT_TYPE, NDJSON).header(ACCEPT, "application/json");
        let request = request.body(reqwest::Body::wrap_stream(pieces));
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(|error| self.not_understood(error.to_string()))
    }
}
