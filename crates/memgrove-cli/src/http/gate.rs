//! What every request passes, whatever it asks for: how many at once, for which host, from which
//! origin, for how long; and the headers that every answer carries.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use memgrove::{Error, Kind};

use super::access::text;
use super::log;
use super::route::Voice;
use super::served::Served;

/// What a page may load: nothing that is not ours, no inline script, no frame around it.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
connect-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What every answer says. There are no CORS headers: no other site may read anything.
const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// Lets a request through, or says why not.
pub(crate) async fn gate(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = passed(&served, request, next).await;
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let took = started.elapsed();
    served.metrics.answered(&method, response.status(), took);
    log::request(&method, &path, response.status(), took);
    response
}

async fn passed(served: &Served, request: Request, next: Next) -> Response {
    let voice = Voice::at(request.uri().path());
    let named = request.uri().authority().map(|authority| authority.as_str());
    if let Err(error) = checked(served, request.headers(), named) {
        return voice.refusal(StatusCode::FORBIDDEN, &error);
    }
    // Health checks must be answered even when the server is busiest.
    if request.uri().path() == "/healthz" {
        return next.run(request).await;
    }
    let path = request.uri().path().to_owned();
    let Some(_turn) = served.metrics.turn() else {
        let message = format!("more than {} requests at once", served.limits.requests_max);
        let error = Error::new(Kind::Busy, message).hint("wait a second and send it again");
        return voice.refusal(StatusCode::SERVICE_UNAVAILABLE, &error);
    };
    // A panic must fail only the answer that it happened in.
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(served.limits.timeout, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            let error = Error::new(Kind::Io, "internal server error");
            log::event(
                "panic",
                &format!("internal error while answering {path}: please report the message above"),
            );
            voice.refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.hint("please report it"))
        }
        Err(_) => {
            let message = format!("no answer within {} seconds", served.limits.timeout.as_secs());
            let hint = "the change may still be made: send it again with the same Idempotency-Key";
            let error = Error::new(Kind::Busy, message).hint(hint);
            voice.refusal(StatusCode::SERVICE_UNAVAILABLE, &error)
        }
    }
}

/// Checks that the request is meant for this server, and does not come from a foreign page.
fn checked(served: &Served, headers: &HeaderMap, in_uri: Option<&str>) -> Result<(), Error> {
    let denied =
        |message: String, code, hint: &str| Err(Error::new(Kind::Denied, message).code(code).hint(hint));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let known = served.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    // A host in the request line, as sent to a proxy, must be the same.
    let other = in_uri.is_some_and(|named| !named.eq_ignore_ascii_case(host));
    if !known || hosts.next().is_some() || other {
        let message = format!("`{}` is not a name of this server", host.escape_default());
        return denied(message, "FOREIGN_HOST", "if it is, add it with `memgrove serve --host NAME`");
    }
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = text(headers, header::ORIGIN.as_str()).unwrap_or_default();
    let at = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    // The origin is the site of the page that sent this: it must be this very server, by the same name.
    match at.is_some_and(|at| at.eq_ignore_ascii_case(host))
        && headers.get_all(header::ORIGIN).iter().count() == 1
    {
        true => Ok(()),
        false => denied(
            format!("`{}` is not an origin of this server", origin.escape_default()),
            "FOREIGN_ORIGIN",
            "pages of other sites are refused",
        ),
    }
}
