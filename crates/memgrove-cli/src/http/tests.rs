//! Every route of the table against every way to be let in or not.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use futures_util::{FutureExt, stream};
use memgrove::backend::Actor;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::access::{Access, Key, Keys, Scope};
use super::gate::gate;
use super::route::{Need, Route, router};
use super::served::{DEFAULT_SPACE, Limits, Served};
use super::{app, routes};
use crate::config::Environment;
use crate::context::{Context, Input};
use crate::settings::make_store;

const HOST: &str = "127.0.0.1:4747";
/// What every client of the tools says.
const MCP: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// A server over two empty stores, which listens nowhere.
struct Bench {
    app: Router,
    served: Arc<Served>,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(requests_max: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let space = |name: &str| {
            let root = folder.path().join(name);
            make_store(&root, name, None).expect("a store can be made");
            let environment = Environment::default();
            let cx = Context::new(environment, Some(&root), None, Actor::default(), Input::None);
            (name.to_owned(), cx.expect("it is named"))
        };
        let spaces = vec![space(DEFAULT_SPACE), space("work")];
        let key = |name: &str, scope, space: Option<&str>| Key {
            name: name.to_owned(),
            token: format!("the-token-of-{name}"),
            scope,
            space: space.map(str::to_owned),
        };
        let keys = vec![
            key("owner", Scope::Write, None),
            key("reader", Scope::Read, None),
            key("worker", Scope::Read, Some("work")),
        ];
        let access = Access::new(Keys::of(keys), 4747, false);
        let limits = Limits {
            body_bytes_max: 1_000_000,
            content_bytes_max: 1_000_000,
            reply_bytes_max: 1_000_000,
            requests_max,
            timeout: Duration::from_secs(30),
            body_wait: Duration::from_millis(50),
            streams_max: 1_000_000,
            sessions_max: 2,
        };
        let hosts = vec![HOST.to_owned()];
        let served = Arc::new(Served::new(spaces, access, hosts, limits, "test".to_owned()));
        Bench { app: app(&served), served, _folder: folder }
    }

    async fn ask(&self, method: &Method, path: &str, headers: &[(&str, &str)]) -> StatusCode {
        let mut request =
            Request::builder().method(method).uri(path).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from("{}")).expect("a plain request")).await.status()
    }

    async fn send(&self, request: Request<Body>) -> Response {
        self.app.clone().oneshot(request).await.expect("it always answers")
    }

    /// A request of the owner.
    async fn owned(&self, method: &Method, path: &str, more: &[(&str, &str)], body: Body) -> Response {
        let request = Request::builder().method(method).uri(path).header("host", HOST);
        let mut request = request.header("authorization", "Bearer the-token-of-owner");
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        self.send(request.body(body).expect("a plain request")).await
    }

    /// A message to the tools, in a session or to begin one.
    async fn say(&self, session: Option<&str>, message: Value) -> Response {
        let session = session.map(|session| ("mcp-session-id", session));
        let headers: Vec<(&str, &str)> = MCP.into_iter().chain(session).collect();
        self.owned(&Method::POST, "/mcp", &headers, message.to_string().into()).await
    }

    /// A session with the handshake done.
    async fn begun(&self) -> String {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let welcome = self.say(None, hello).await;
        let session = welcome.headers()["mcp-session-id"].to_str().expect("text").to_owned();
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.say(Some(&session), done).await.status(), StatusCode::ACCEPTED);
        session
    }

    /// How a session answers; 404 if it is gone.
    async fn ping(&self, session: &str) -> StatusCode {
        self.say(Some(session), json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await.status()
    }
}

/// A path with something in the place of its names.
fn filled(path: &str) -> String {
    let mut out = String::new();
    for part in path.split('/').skip(1) {
        out.push('/');
        match part {
            "{space}" => out.push_str("work"),
            name if name.starts_with('{') => out.push('x'),
            plain => out.push_str(plain),
        }
    }
    out
}

/// What must come of a request, before it is looked at what it asks for.
fn expected(route: &Route, path: &str, who: Option<&str>) -> Option<StatusCode> {
    let Need::Scope(scope) = route.need else { return None };
    match who {
        None | Some("wrong") => Some(StatusCode::UNAUTHORIZED),
        Some("reader") if scope == Scope::Write => Some(StatusCode::FORBIDDEN),
        Some("worker") if scope == Scope::Write || !path.starts_with("/s/work") => {
            Some(StatusCode::FORBIDDEN)
        }
        Some(_) => None,
    }
}

#[tokio::test]
async fn every_route_is_guarded() {
    let bench = Bench::new(1_000);
    let (routes, mut tried) = (routes(), 0);
    assert!(routes.len() > 50, "the table is whole");
    for route in &routes {
        for path in route.paths().iter().map(|path| filled(path)) {
            for who in [None, Some("wrong"), Some("reader"), Some("worker")] {
                let token = who.map(|who| format!("Bearer the-token-of-{who}"));
                for host in [Some(HOST), Some("evil.example"), Some("127.0.0.1:4748"), None] {
                    for origin in
                        [None, Some("http://127.0.0.1:4747"), Some("http://evil.example"), Some("null")]
                    {
                        let pairs = [("authorization", token.as_deref()), ("host", host), ("origin", origin)];
                        let headers: Vec<(&str, &str)> =
                            pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                        let status = bench.ask(&route.method, &path, &headers).await;
                        let foreign =
                            host != Some(HOST) || origin.is_some_and(|origin| !origin.ends_with(HOST));
                        let what = format!("{} {path} {headers:?}", route.method);
                        let wanted =
                            if foreign { Some(StatusCode::FORBIDDEN) } else { expected(route, &path, who) };
                        match wanted {
                            Some(wanted) => assert_eq!(status, wanted, "{what}"),
                            // Whoever may is let in, whatever then comes of it.
                            None => assert_ne!(status, StatusCode::UNAUTHORIZED, "{what}"),
                        }
                        tried += 1;
                    }
                }
            }
        }
    }
    println!("{tried} requests over {} routes", routes.len());
    let past = bench.served.space(None).expect("it is served").cx.reading().expect("it opens");
    assert_eq!(past.history(&Default::default()).expect("it can be read"), [], "nothing was changed");
}

#[tokio::test]
async fn methods_that_are_not_in_the_table_are_refused() {
    let bench = Bench::new(1_000);
    let routes = routes();
    let paths: std::collections::BTreeSet<String> = routes.iter().flat_map(Route::paths).collect();
    for path in paths {
        let known = |method: &Method| {
            routes.iter().any(|route| route.method == *method && route.paths().contains(&path))
        };
        for method in METHODS.iter().filter(|method| !known(method)) {
            let open = bench.ask(method, &filled(&path), &[("host", HOST)]).await;
            assert_eq!(open, StatusCode::UNAUTHORIZED, "{method} {path}");
            let token = [("host", HOST), ("authorization", "Bearer the-token-of-owner")];
            assert_eq!(
                bench.ask(method, &filled(&path), &token).await,
                StatusCode::METHOD_NOT_ALLOWED,
                "{method} {path}"
            );
        }
    }
    let token = [("host", HOST), ("authorization", "Bearer the-token-of-owner")];
    assert_eq!(bench.ask(&Method::GET, "/nowhere", &token).await, StatusCode::NOT_FOUND);
    assert_eq!(bench.ask(&Method::GET, "/nowhere", &[("host", HOST)]).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_cookie_alone_lets_no_other_site_in() {
    let bench = Bench::new(10);
    let (link, other) = (bench.served.access.link(), bench.served.access.link());
    let cookie = bench.served.access.redeem(&link).expect("the link is right");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert_eq!(bench.served.access.redeem(&link), None, "a link works once");
    assert!(bench.served.access.redeem(&other).is_some(), "whatever other links there are");
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let ask = async |method: Method, more: &[(&str, &str)]| {
        let headers = [&[("host", HOST), ("cookie", cookie.as_str())], more].concat();
        bench.ask(&method, "/api/find?text=x", &headers).await
    };
    assert_eq!(ask(Method::GET, &[]).await, StatusCode::OK);
    assert_eq!(ask(Method::GET, &[("sec-fetch-site", "same-origin")]).await, StatusCode::OK);
    assert_eq!(ask(Method::GET, &[("sec-fetch-site", "cross-site")]).await, StatusCode::FORBIDDEN);
    assert_eq!(ask(Method::POST, &[]).await, StatusCode::FORBIDDEN, "nobody says where it comes from");
    let own = ("origin", "http://127.0.0.1:4747");
    assert_eq!(
        ask(Method::POST, &[own]).await,
        StatusCode::BAD_REQUEST,
        "it is let in, and asks for nothing"
    );
    let wrong = [("host", HOST), ("cookie", cookie.as_str()), ("authorization", "Bearer wrong")];
    assert_eq!(bench.ask(&Method::GET, "/api/find?text=x", &wrong).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn more_requests_than_allowed_are_told_to_come_back() {
    let bench = Bench::new(1);
    let _turn = bench.served.metrics.turn().expect("the first is free");
    let request = Request::builder().uri("/api/find?text=x").header("host", HOST);
    let request =
        request.header("authorization", "Bearer the-token-of-owner").body(Body::empty()).expect("plain");
    let answer = bench.app.clone().oneshot(request).await.expect("it always answers");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(bench.ask(&Method::GET, "/healthz", &[("host", HOST)]).await, StatusCode::OK);
}

#[tokio::test]
async fn a_mistake_is_told_and_is_one_answers_alone() {
    let mut bench = Bench::new(10);
    let wrong = |_| async { panic!("a mistake of a test") };
    let routes = vec![Route::new(Method::GET, "/wrong", Need::Nothing, wrong)];
    let gate = axum::middleware::from_fn_with_state(Arc::clone(&bench.served), gate);
    bench.app = router(routes, Arc::clone(&bench.served)).layer(gate);
    assert_eq!(bench.ask(&Method::GET, "/wrong", &[("host", HOST)]).await, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(bench.served.metrics.told().contains("status=\"5xx\"} 1"), "{}", bench.served.metrics.told());
    assert!(bench.served.metrics.turn().is_some(), "its turn is over");
}

#[tokio::test]
async fn listeners_that_leave_at_once_leave_the_others_listening() {
    let bench = Bench::new(10);
    let changes = &bench.served.space(None).expect("it is served").changes;
    assert!(changes.listen().now_or_never().is_none(), "it takes a while to begin");
    let mut listener = changes.listen().await;
    let at = "/api/content?address=file:/memories/a.md";
    assert_eq!(bench.owned(&Method::PUT, at, &[], "x".into()).await.status(), StatusCode::OK);
    let heard = tokio::time::timeout(Duration::from_secs(120), listener.recv()).await;
    assert!(heard.expect("it is told").expect("it goes on").change().is_some());
    for since in ["a%0Ab", "%00", "a%0D"] {
        let asked = format!("/api/events?since={since}");
        let answer = bench.owned(&Method::GET, &asked, &[], Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{since}");
    }
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_no_others_from_coming() {
    let bench = Bench::new(10);
    let put = async |name: &str, more: &[(&str, &str)], body: Body| {
        let at = format!("/api/content?address=file:/memories/{name}");
        bench.owned(&Method::PUT, &at, more, body).await.status()
    };
    let stuck = || Body::from_stream(stream::pending::<Result<axum::body::Bytes, std::io::Error>>());
    assert_eq!(put("stuck.md", &[("content-length", "9000000")], stuck()).await, StatusCode::REQUEST_TIMEOUT);
    let turns = bench.served.large_bodies.acquire_many(4).await.expect("they are all free");
    assert_eq!(put("small.md", &[("content-length", "1")], "x".into()).await, StatusCode::OK);
    let large = put("large.md", &[("content-length", "9000000")], "x".into()).now_or_never();
    assert_eq!(large, None, "what is large waits for its turn");
    drop(turns);
}

#[tokio::test]
async fn the_session_that_was_idle_longest_makes_room() {
    let bench = Bench::new(10);
    let (first, second) = (bench.begun().await, bench.begun().await);
    assert_eq!(bench.ping(&first).await, StatusCode::OK);
    let third = bench.begun().await;
    assert_eq!(bench.ping(&second).await, StatusCode::NOT_FOUND, "the second was idle longest");
    assert_eq!((bench.ping(&first).await, bench.ping(&third).await), (StatusCode::OK, StatusCode::OK));
}

/// The official client takes any other answer for a failure, and says so.
#[tokio::test]
async fn a_session_that_is_ended_is_gone() {
    let bench = Bench::new(10);
    let session = bench.begun().await;
    for path in ["/mcp", "/mcp?tools=kg"] {
        let ended = bench.owned(&Method::DELETE, path, &[("mcp-session-id", &session)], Body::empty()).await;
        assert_eq!(ended.status(), StatusCode::NO_CONTENT, "{path}");
    }
    assert_eq!(bench.ping(&session).await, StatusCode::NOT_FOUND);
}

/// As on standard input: a client waits for an answer that it can read.
#[tokio::test]
async fn a_body_that_is_no_message_is_answered_in_the_words_of_the_protocol() {
    let bench = Bench::new(10);
    for path in ["/mcp", "/mcp?tools=kg"] {
        for (body, id, code) in [
            ("no JSON", json!(null), -32700),
            ("", json!(null), -32700),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e400}}"#, json!(7), -32700),
            ("[]", json!(null), -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(null), -32600),
            (r#"{"jsonrpc":"2.0","id":"a","method":3}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":"x"}"#, json!(8), -32602),
        ] {
            let answer = bench.owned(&Method::POST, path, &MCP, body.into()).await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{body}");
            assert_eq!(answer.headers()["content-type"], "application/json", "{body}");
            let told = axum::body::to_bytes(answer.into_body(), usize::MAX).await.expect("a whole body");
            let told: Value = serde_json::from_slice(&told).expect("JSON");
            assert_eq!((&told["id"], &told["error"]["code"]), (&id, &json!(code)), "{body}: {told}");
            assert!(told["error"]["message"].is_string(), "{told}");
        }
        let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(1_000_000));
        let answer = bench.owned(&Method::POST, path, &MCP, large.into()).await;
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let form = [("content-type", "text/plain"), MCP[1]];
        let answer = bench.owned(&Method::POST, path, &form, "no JSON".into()).await;
        assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
