//! A server on this machine that answers as the real ones do: whole, in a stream, too late, or not at
//! all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// What a client sent.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The data that the model is shown.
    pub(super) fn data(&self) -> Value {
        let messages = self.body["messages"].as_array().unwrap();
        let text = messages.last().unwrap()["content"].as_str().unwrap();
        let data = text.split_once("<data>\n").unwrap().1.split_once("\n</data>").unwrap().0;
        serde_json::from_str(data).unwrap()
    }
}

/// What a server answers.
pub(super) enum Reply {
    Json(u16, Value),
    /// With this `retry-after`.
    Later(u16, &'static str, Value),
    Stream(Vec<Value>),
    /// The connection is closed without a word.
    Nothing,
    /// After this time.
    Late(Duration, Value),
}

/// A running server.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// A server that answers each request by its number and content.
    pub(super) fn new(reply: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, reply) = (Arc::clone(&asked), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, reply) = (Arc::clone(&kept), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream, &kept, &*reply));
            }
        });
        Server { url, asked }
    }

    pub(super) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Asked>>, reply: &dyn Fn(usize, &Asked) -> Reply) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    let header =
        |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<(String, String)> = lines[1..].iter().filter_map(header).collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let asked = Asked { path, headers, body: serde_json::from_slice(&body).unwrap() };
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(asked.clone());
        kept.len()
    };
    // A client that has given up does not listen.
    let _ = answer(stream, reply(number, &asked));
}

fn answer(mut stream: TcpStream, reply: Reply) -> std::io::Result<()> {
    let whole = |stream: &mut TcpStream, status: u16, extra: &str, value: &Value| {
        let body = value.to_string();
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{extra}connection: close\r\n\r\n{body}"
        )
    };
    match reply {
        Reply::Json(status, value) => whole(&mut stream, status, "", &value),
        Reply::Later(status, when, value) => {
            whole(&mut stream, status, &format!("retry-after: {when}\r\n"), &value)
        }
        Reply::Nothing => Ok(()),
        Reply::Late(wait, value) => {
            std::thread::sleep(wait);
            whole(&mut stream, 200, "", &value)
        }
        Reply::Stream(events) => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
            )?;
            for event in events {
                let kind = event["type"].as_str().map_or(String::new(), |kind| format!("event: {kind}\n"));
                let text = format!("{kind}data: {event}\n\n");
                // In two pieces, as networks do.
                let cut = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                for part in [&text[..cut], &text[cut..]].into_iter().filter(|part| !part.is_empty()) {
                    write!(stream, "{:x}\r\n{part}\r\n", part.len())?;
                }
            }
            write!(stream, "0\r\n\r\n")
        }
    }
}
