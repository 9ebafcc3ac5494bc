//! The link that works once: printed at the start, and whenever its owner asks for another.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use memgrove::{Error, Kind, Result};
use serde_json::{Value, json};

use super::access::Keys;
use super::route::Call;
use crate::context::Context;

/// How long a server that runs may take to answer.
const WAIT: Duration = Duration::from_secs(10);

/// A link as it is printed.
pub(super) fn printed(at: SocketAddr, link: &str) -> String {
    format!("http://{at}/open?link={link}")
}

#[derive(serde::Deserialize)]
struct Link {
    #[serde(default)]
    link: String,
}

/// Lets a browser in by a link that works once. The page leads on by itself, because a browser does
/// not send a strict cookie along with a redirection that began on another site.
pub(super) async fn open(call: Call) -> Result<Response> {
    let Link { link } = call.query()?;
    let Some(cookie) = call.served.access.redeem(&link) else {
        return Err(Error::new(Kind::Denied, "this link was already used, or is not from this server")
            .hint("`memgrove serve --link` prints a new one"));
    };
    let headers = [(header::SET_COOKIE, cookie), (header::REFRESH, "0; url=/".to_owned())];
    Ok((headers, Html("<!doctype html><title>memgrove</title><a href=\"/\">Go on</a>")).into_response())
}

/// Makes a new link, for whoever holds the server's own token: the link lets in as that token does.
pub(super) async fn made(call: Call) -> Result<Response> {
    if !call.asker.as_ref().is_some_and(|asker| asker.is_owner) {
        return Err(Error::new(Kind::Denied, "only the server's own token can create links"));
    }
    Ok(axum::Json(json!({"link": call.served.access.link()})).into_response())
}

/// Asks the server that runs at an address for a new link.
pub(super) fn fresh(at: SocketAddr, cx: &Context) -> Result<String> {
    let keys = Keys::read(&cx.environment().state_folder()?)?;
    let ask = format!(
        "POST /api/link HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        keys.own().token
    );
    let answered = TcpStream::connect_timeout(&at, WAIT).and_then(|mut stream| {
        stream.set_read_timeout(Some(WAIT))?;
        stream.write_all(ask.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    });
    let nobody = || {
        Error::new(Kind::NotFound, format!("you have no server running at `{at}`"))
            .hint("start it with `memgrove serve`, or name its address with --listen")
    };
    let text = answered.map_err(|error| nobody().caused_by(error))?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let link = serde_json::from_str::<Value>(body).ok();
    let link = link.as_ref().and_then(|answer| answer["link"].as_str()).ok_or_else(nobody)?;
    Ok(printed(at, link))
}
