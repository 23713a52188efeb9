//! Somebody who speaks like OpenAI, on loopback: reads chat completions off the wire and plays the demo's script, so that
//! a run on it must come out like one on the scripted model. It can be told to keep a caller waiting.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;

/// What the server was asked, and what it holds back.
#[derive(Default)]
struct Desk {
    seen: Vec<Seen>,
    /// The next request that this is about gets no answer until it is lifted.
    held: Option<Hold>,
}

struct Hold {
    system: String,
    /// Which call of its conversation.
    call: usize,
    /// What its last message contains.
    last: String,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub authorization: Option<String>,
    pub body: Value,
}

pub struct ModelServer {
    pub base_url: String,
    desk: Arc<(Mutex<Desk>, Condvar)>,
}

impl ModelServer {
    pub fn start(script: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let desk = Arc::new((Mutex::new(Desk::default()), Condvar::new()));
        let (script, shared) = (Arc::new(script), Arc::clone(&desk));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, shared) = (Arc::clone(&script), Arc::clone(&shared));
                // A caller that dies in the middle is what some tests are about.
                std::thread::spawn(move || stream.and_then(|stream| answer(stream, &script, &shared)));
            }
        });
        Self { base_url: format!("http://{address}/v1"), desk }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.desk.0.lock().unwrap().seen.clone()
    }

    /// Keeps the caller waiting who asks as `system`, in this call of its conversation, with this in its last message.
    pub fn hold(&self, system: &str, call: usize, last: &str) {
        self.desk.0.lock().unwrap().held = Some(Hold { system: system.to_owned(), call, last: last.to_owned() });
    }

    /// Waits until the held request has arrived.
    #[track_caller]
    pub fn until_held(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut desk = self.desk.0.lock().unwrap();
        loop {
            let held = desk.held.as_ref().unwrap();
            if desk.seen.iter().any(|seen| held.is_about(&seen.body)) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the held request never came: {:?}", desk.seen.len());
            desk = self.desk.1.wait_timeout(desk, left).unwrap().0;
        }
    }

    pub fn release(&self) {
        self.desk.0.lock().unwrap().held = None;
        self.desk.1.notify_all();
    }
}

impl Hold {
    fn is_about(&self, body: &Value) -> bool {
        let scene = Scene::of(body);
        scene.system.contains(&self.system) && scene.call == self.call && scene.last.contains(&self.last)
    }
}

/// What a rule of the script looks at.
struct Scene {
    system: String,
    last: String,
    call: usize,
}

impl Scene {
    fn of(body: &Value) -> Self {
        let messages = body["messages"].as_array().unwrap();
        let of = |role: &str| messages.iter().filter(|message| message["role"] == role).collect::<Vec<_>>();
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        Self {
            system: of("system").into_iter().map(text).collect(),
            last: messages.last().map(text).unwrap_or_default(),
            call: 1 + of("assistant").len(),
        }
    }

    fn fits(&self, when: &Value) -> bool {
        let within = |name: &str, text: &str| when[name].as_str().is_none_or(|wanted| text.contains(wanted));
        within("system", &self.system)
            && within("last", &self.last)
            && when["call"].as_u64().is_none_or(|call| call == self.call as u64)
    }
}

fn answer(mut stream: TcpStream, script: &Value, desk: &(Mutex<Desk>, Condvar)) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some(seen) = read(&stream)? else { return Ok(()) };
    let reply = reply(script, &seen.body);
    let mut state = desk.0.lock().unwrap();
    state.seen.push(seen.clone());
    desk.1.notify_all();
    while state.held.as_ref().is_some_and(|held| held.is_about(&seen.body)) {
        state = desk.1.wait_timeout(state, PATIENCE).unwrap().0;
    }
    drop(state);
    let (kind, text) = match seen.body["stream"] == true {
        true => ("text/event-stream", stream_of(&reply)),
        false => ("application/json", reply.to_string()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

fn read(stream: &TcpStream) -> std::io::Result<Option<Seen>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut authorization) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or_default(),
            "authorization" => authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap();
    Ok(Some(Seen { path, authorization, body }))
}

/// The script's reply in the vendor's words.
fn reply(script: &Value, body: &Value) -> Value {
    let scene = Scene::of(body);
    let rules = script["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| scene.fits(&rule["when"])).unwrap_or_else(|| panic!("no rule for {body}"));
    let said = &rule["reply"];
    let calls: Vec<Value> = said["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(i, tool)| {
            let name = their_name(body, tool["name"].as_str().unwrap());
            let id = format!("call_{}_{i}", scene.call);
            json!({"index": i, "id": id, "type": "function",
            "function": {"name": name, "arguments": tool["arguments"].to_string()}})
        })
        .collect();
    let (content, why) = match calls.is_empty() {
        true => (Value::from(said["json"].to_string()), "stop"),
        false => (Value::Null, "tool_calls"),
    };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": why}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    })
}

/// Vendors take plain letters only, so the caller has renamed its tools; like any model we go by what is offered.
fn their_name(body: &Value, id: &str) -> String {
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let offered = body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["function"]["name"].as_str());
    let found = offered.into_iter().find(|name| plain(name).contains(&plain(id)));
    found.unwrap_or_else(|| panic!("{id} is not offered: {}", body["tools"])).to_owned()
}

/// The same, piece by piece.
fn stream_of(reply: &Value) -> String {
    let choice = &reply["choices"][0];
    let chunk = |delta: &Value, why: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": reply["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": why}]})
    };
    let chunks = [
        chunk(&choice["message"], Value::Null),
        chunk(&json!({}), choice["finish_reason"].clone()),
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": reply["model"], "choices": [],
            "usage": reply["usage"]}),
    ];
    let mut text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    text
}
