//! Reading an answer, within bounds.

use std::time::Duration;

use baton_model::{ModelReply, Usage};
use baton_sse::Parser;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::Response;

use super::limits::CallLimits;
use crate::wire::{Decoder, Progress, broken_off, garbled};
use crate::{Broken, DeltaSink, ProviderFault};

/// Reads the answer to its end, and lets `sink` hear it on the way. What the vendor says it used is `counted` as it comes:
/// it is paid for even if the rest never does. Whether it is a stream is seen from how it begins:
/// servers do not always do what they were asked, nor always say what they do.
pub(super) async fn listen(
    mut response: Response,
    mut decoder: Box<dyn Decoder>,
    sink: &dyn DeltaSink,
    bounds: &CallLimits,
    counted: &Mutex<Usage>,
) -> Result<ModelReply, ProviderFault> {
    let mut first = Vec::new();
    let begin = loop {
        let Some(piece) = piece(&mut response, bounds.idle).await? else { break None };
        first.extend_from_slice(&piece);
        if let Some(begin) = piece.iter().find(|byte| !byte.is_ascii_whitespace()) {
            break Some(*begin);
        }
        within(first.len(), bounds.whole_bytes)?;
    };
    match begin {
        None => return Err(broken_off()),
        Some(b'{' | b'[') => {
            read_rest(&mut response, &mut first, bounds.whole_bytes, bounds.idle).await?;
            let body = serde_json::from_slice(&first).map_err(|_| garbled())?;
            let read = decoder.whole(&body);
            *counted.lock() = decoder.usage();
            read?;
        }
        Some(_) => stream(&mut response, first, &mut *decoder, sink, bounds, counted).await?,
    }
    decoder.finish()
}

async fn stream(
    response: &mut Response,
    first: Vec<u8>,
    decoder: &mut dyn Decoder,
    sink: &dyn DeltaSink,
    bounds: &CallLimits,
    counted: &Mutex<Usage>,
) -> Result<(), ProviderFault> {
    let mut events = Parser::default();
    let mut next = Some(Bytes::from(first));
    let (mut read, mut any, mut heard) = (0_usize, false, Vec::new());
    while let Some(bytes) = next {
        read = read.saturating_add(bytes.len());
        within(read, bounds.stream_bytes)?;
        for event in events.push(&bytes) {
            any = true;
            let data = std::str::from_utf8(&event.data).map_err(|_| garbled())?;
            let progress = decoder.event(data, &mut heard);
            *counted.lock() = decoder.usage();
            let progress = progress?;
            heard.drain(..).for_each(|delta| sink.push(delta));
            if progress == Progress::Done {
                return Ok(());
            }
        }
        next = piece(response, bounds.idle).await?;
    }
    // Something that is cut in the middle does not count, and whether it was needed is the decoder's to say.
    if let Some(event) = events.finish()
        && let Ok(data) = std::str::from_utf8(&event.data)
        && decoder.event(data, &mut heard).is_ok()
    {
        any = true;
        heard.drain(..).for_each(|delta| sink.push(delta));
    }
    if any { Ok(()) } else { Err(garbled()) }
}

/// The whole body, unless it is longer than this.
pub(super) async fn read_all(mut response: Response, most: usize, idle: Duration) -> Result<Vec<u8>, ProviderFault> {
    let mut body = Vec::new();
    read_rest(&mut response, &mut body, most, idle).await?;
    Ok(body)
}

async fn read_rest(
    response: &mut Response,
    body: &mut Vec<u8>,
    most: usize,
    idle: Duration,
) -> Result<(), ProviderFault> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    within(announced.unwrap_or(0).max(body.len()), most)?;
    while let Some(piece) = piece(response, idle).await? {
        within(body.len().saturating_add(piece.len()), most)?;
        body.extend_from_slice(&piece);
    }
    Ok(())
}

async fn piece(response: &mut Response, idle: Duration) -> Result<Option<Bytes>, ProviderFault> {
    match tokio::time::timeout(idle, response.chunk()).await {
        Err(_) => Err(ProviderFault::TimedOut),
        // The client's own words name the address.
        Ok(Err(_)) => Err(broken_off()),
        Ok(Ok(piece)) => Ok(piece),
    }
}

fn within(bytes: usize, most: usize) -> Result<(), ProviderFault> {
    if bytes <= most {
        return Ok(());
    }
    let fault = ProviderFault::Unavailable(format!("its answer is longer than the {most} bytes that are read"));
    // Whoever says too much says it again.
    Err(ProviderFault::Broken(Box::new(Broken { fault, usage: Usage::default(), again: false })))
}
