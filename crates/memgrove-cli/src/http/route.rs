//! The routes in one place: each says where it is, what it needs, and what answers it. The router and
//! the test that tries every route read this table.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use memgrove::backend::{Actor, Origin, Version};
use memgrove::{Error, Kind, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle as Threads;

use super::access::{Asker, By, Scope, text};
use super::problem;
use super::served::{Served, Space};
use crate::context::Context;
use crate::signing::signed;
use crate::verbs::{self, Reply};
use crate::web::Site;

/// Where a space's routes are: beneath this, and the default one's at the root too.
const SPACE: &str = "/s/{space}";

/// What a route asks of whoever calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// No token: it tells nothing about memories.
    Nothing,
    /// A token.
    Scope(Scope),
}

/// Whom a route answers, which decides how a failure reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Programs, in problem documents.
    Program,
    /// People, in pages.
    Person,
    /// Anthropic's clients, in their own documents.
    Anthropic,
}

/// What answers.
pub(crate) type Answer = BoxFuture<'static, Result<Response>>;
type Handle = Arc<dyn Fn(Call) -> Answer + Send + Sync>;

/// One route.
#[derive(Clone)]
pub(crate) struct Route {
    /// The method.
    pub(crate) method: Method,
    /// The path, with `{names}` for what varies; beneath `/s/{space}` too, unless it is of the server.
    pub(crate) path: String,
    /// What it needs.
    pub(crate) need: Need,
    /// Whom it answers.
    pub(crate) voice: Voice,
    /// Whether it belongs to the server rather than to a space.
    pub(crate) of_server: bool,
    handle: Handle,
}

impl Route {
    /// A route of every space, for programs.
    pub(crate) fn new<F>(
        method: Method,
        path: impl Into<String>,
        need: Need,
        handle: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response>> + Send + 'static,
    {
        let handle: Handle = Arc::new(move |call| Box::pin(handle(call)));
        Route { method, path: path.into(), need, voice: Voice::Program, of_server: false, handle }
    }

    /// The same, of the server rather than of a space.
    pub(crate) fn of_server(self) -> Self {
        Route { of_server: true, ..self }
    }

    /// The same route, with failures told in another voice.
    pub(crate) fn speaking_to(self, voice: Voice) -> Self {
        Route { voice, ..self }
    }

    /// Where it is to be found.
    pub(crate) fn paths(&self) -> Vec<String> {
        let beneath = (!self.of_server).then(|| format!("{SPACE}{}", self.path));
        // Whoever types `/s/NAME` may leave out the final slash.
        let bare = beneath.as_deref().filter(|_| self.path == "/").map(|_| SPACE.to_owned());
        std::iter::once(self.path.clone()).chain(beneath).chain(bare).collect()
    }
}

/// The router over all routes. Unknown paths and methods are refused as routes refuse.
pub(crate) fn router(routes: Vec<Route>, served: Arc<Served>) -> Router {
    let mut router = Router::new();
    for route in routes {
        let filter = MethodFilter::try_from(route.method.clone()).expect("the table names plain methods");
        for path in route.paths() {
            let route = route.clone();
            let answer = move |State(served): State<Arc<Served>>, params: RawPathParams, request| {
                let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                async move { route.answer(served, params, request).await }
            };
            router = router.route(&path, on(filter, answer));
        }
    }
    router.fallback(nowhere).method_not_allowed_fallback(not_so).with_state(served)
}

async fn nowhere(State(served): State<Arc<Served>>, request: axum::extract::Request) -> Response {
    let voice = Voice::of(&request);
    match served.access.asker(request.headers()) {
        Ok(_) => voice.failure(&problem::nowhere(request.uri().path()), Site::of_root(&served).as_ref()),
        Err(error) => voice.refusal(StatusCode::UNAUTHORIZED, &error),
    }
}

async fn not_so(State(served): State<Arc<Served>>, request: axum::extract::Request) -> Response {
    let message = format!("`{}` does not take {}", request.uri().path().escape_default(), request.method());
    // This was not a request for a page, even from a browser.
    let voice =
        Some(Voice::of(&request)).filter(|voice| *voice == Voice::Anthropic).unwrap_or(Voice::Program);
    match served.access.asker(request.headers()) {
        Ok(_) => voice.refusal(StatusCode::METHOD_NOT_ALLOWED, &Error::new(Kind::Invalid, message)),
        Err(error) => voice.refusal(StatusCode::UNAUTHORIZED, &error),
    }
}

impl Route {
    async fn answer(&self, served: Arc<Served>, params: Params, request: axum::extract::Request) -> Response {
        let (head, body) = request.into_parts();
        let call = match self.admit(served, params, head, body) {
            Ok(call) => call,
            Err((status, error)) => return self.voice.refusal(status, &error),
        };
        let site = Site::of(&call);
        let done = (self.handle)(call).await;
        if self.need == Need::Scope(Scope::Write) {
            site.space.changes.look();
        }
        done.unwrap_or_else(|error| self.voice.failure(&error, Some(&site)))
    }

    /// Returns the call, if its sender may make it.
    fn admit(
        &self,
        served: Arc<Served>,
        params: Params,
        head: Parts,
        body: Body,
    ) -> Result<Call, (StatusCode, Error)> {
        let denied = |message: &str, code, hint: &str| {
            let error = Error::new(Kind::Denied, message).code(code).hint(hint);
            Err((StatusCode::FORBIDDEN, error))
        };
        let asker = match self.need {
            Need::Nothing => None,
            Need::Scope(scope) => {
                let asker =
                    served.access.asker(&head.headers).map_err(|error| (StatusCode::UNAUTHORIZED, error))?;
                if asker.is_forged(&head.method, &head.headers) {
                    return denied("another site sent this", "FOREIGN_SITE", "open the page directly");
                }
                if asker.scope < scope && served.access.read_only {
                    let hint = "restart it without `--read-only`";
                    return denied("the server is read-only", "READ_ONLY", hint);
                }
                if asker.scope < scope {
                    return denied("the token is read-only", "READ_ONLY", "use a token that may write");
                }
                Some(asker)
            }
        };
        let named = params.iter().find(|(name, _)| name == "space").map(|(_, value)| value.as_str());
        let space = served.space(named);
        if let Some(only) = asker.as_ref().and_then(|asker| asker.space.as_deref())
            && space.as_ref().is_none_or(|space| space.name != only)
        {
            return denied("the token is for another space", "OTHER_SPACE", &format!("it opens /s/{only}/"));
        }
        let space = space.ok_or_else(|| {
            let error = Error::new(Kind::NotFound, "there is no such space");
            let names: Vec<&str> = served.spaces().collect();
            // The names of spaces are told only to those with a token.
            let told = asker.as_ref().map(|_| format!("there are: {}", names.join(", ")));
            (StatusCode::NOT_FOUND, told.into_iter().fold(error, Error::hint))
        })?;
        Ok(Call { served, asker, space, params, head, body: Mutex::new(body), sent: OnceLock::new() })
    }
}

impl Voice {
    /// The voice for a request that no route took, by its path and by what the client accepts.
    fn of(request: &axum::extract::Request) -> Self {
        let accepts = text(request.headers(), header::ACCEPT.as_str()).unwrap_or_default();
        match accepts.contains("text/html") {
            true => Voice::Person,
            false => Voice::at(request.uri().path()),
        }
    }

    /// The voice for programs at a path.
    pub(crate) fn at(path: &str) -> Self {
        let in_space = path.strip_prefix("/s/").and_then(|rest| rest.find('/').map(|end| &rest[end..]));
        match in_space.unwrap_or(path).starts_with(super::memory_stores::ROOT) {
            true => Voice::Anthropic,
            false => Voice::Program,
        }
    }

    fn failure(self, error: &Error, site: Option<&Site>) -> Response {
        match self {
            Voice::Program => problem::answer(error),
            Voice::Person => crate::web::failure(error, site),
            Voice::Anthropic => super::memory_stores::failure(error),
        }
    }

    /// A refusal at the door.
    pub(crate) fn refusal(self, status: StatusCode, error: &Error) -> Response {
        match self {
            Voice::Program => problem::refusal(status, error),
            Voice::Person => crate::web::refusal(status, error),
            Voice::Anthropic => super::memory_stores::refusal(status, error),
        }
    }
}

type Params = Vec<(String, String)>;

/// One request that was let in, and everything that answering it takes.
pub(crate) struct Call {
    /// The server.
    pub(crate) served: Arc<Served>,
    /// Who asks; `None` on a route that needs no token.
    pub(crate) asker: Option<Asker>,
    /// The space that is asked about.
    pub(crate) space: Arc<Space>,
    /// The method, the address and the headers.
    pub(crate) head: Parts,
    params: Params,
    /// Behind a lock only because a body cannot be shared between threads, and a call is.
    body: Mutex<Body>,
    /// The version of the body, once it is read.
    sent: OnceLock<Version>,
}

impl Call {
    /// What varied in the path.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
    }

    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        text(&self.head.headers, name)
    }

    /// The idempotency key; an empty one is none.
    pub(crate) fn key(&self) -> Option<String> {
        let key = self.header("idempotency-key")?.trim().trim_matches('"');
        (!key.trim().is_empty()).then(|| key.to_owned())
    }

    /// What stands behind the question mark.
    ///
    /// # Errors
    /// `Invalid` for what does not fit.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T> {
        let query = axum::extract::Query::try_from_uri(&self.head.uri);
        query.map(|query| query.0).map_err(|error| Error::new(Kind::Invalid, error.body_text()))
    }

    /// What the request may do.
    pub(crate) fn scope(&self) -> Scope {
        self.asker.as_ref().map_or(Scope::Read, |asker| asker.scope)
    }

    /// The store, acting for whoever asks; it refuses changes if they may not make any.
    pub(crate) fn cx(&self) -> Context {
        let (origin, client) = match &self.asker {
            Some(Asker { by: By::Cookie, .. }) => (Origin::User, Some("web".to_owned())),
            Some(asker) => (Origin::Tool, Some(signed(&asker.name, self.header("x-memgrove-client")))),
            None => (Origin::Tool, None),
        };
        let session =
            self.header("x-memgrove-session").map_or_else(|| self.served.session.clone(), str::to_owned);
        let mut cx = self.space.cx.asked_by(Actor { origin, client, session: Some(session) });
        if self.header("idempotency-key").is_some() {
            cx = cx.asking(&(&self.head.method, &self.head.uri, self.sent.get()));
        }
        if self.scope() == Scope::Write { cx } else { cx.only_reading() }
    }

    /// Does work on the store, on a thread where it may wait.
    ///
    /// # Errors
    /// The work's own; `Io` if the server is ending.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Context) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.work_by(&Threads::current(), work).await
    }

    /// As [`Call::work`], on the given threads.
    ///
    /// # Errors
    /// As [`Call::work`].
    pub(crate) async fn work_by<T: Send + 'static>(
        &self,
        threads: &Threads,
        work: impl FnOnce(&Context) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let cx = self.cx();
        let done = threads.spawn_blocking(move || work(&cx)).await;
        done.map_err(|_| Error::new(Kind::Io, "the request was aborted").hint("try again"))?
    }

    /// Runs a verb of the table, as if it were called over the API: what a page is made of.
    ///
    /// # Errors
    /// `Denied` for a verb that changes something, if whoever asks may not; else the verb's own.
    pub(crate) async fn verb(&self, name: &'static str, arguments: Value) -> Result<Box<dyn Reply>> {
        let entry = verbs::TABLE.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| Error::new(Kind::Invalid, format!("`{name}` is not a verb")))?;
        self.work(move |cx| (entry.run_json)(arguments, cx)).await
    }

    /// Turns the call back into a request, for handlers that answer requests themselves.
    pub(crate) fn into_request(self) -> axum::extract::Request {
        let body = self.body.into_inner().unwrap_or_else(PoisonError::into_inner);
        axum::extract::Request::from_parts(self.head, body)
    }

    /// The whole body, which may not be larger than the limit.
    ///
    /// # Errors
    /// `Full` for more than the limit; `Busy` if it does not come; `Invalid` if it breaks off.
    pub(crate) async fn body(&self) -> Result<Bytes> {
        self.body_within(self.served.limits.body_bytes_max).await
    }

    /// The whole body of what may be as large as a memory.
    ///
    /// # Errors
    /// As [`Call::body`].
    pub(crate) async fn large_body(&self) -> Result<Bytes> {
        self.body_within(self.served.limits.content_bytes_max).await
    }

    async fn body_within(&self, limit: usize) -> Result<Bytes> {
        let body = std::mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = self.read(body, limit).await?;
        if self.header("idempotency-key").is_some() {
            let _ = self.sent.set(Version::of(&bytes));
        }
        Ok(bytes)
    }

    /// Reads a body piece by piece, so that a stalled one fails sooner than an answer may take.
    async fn read(&self, body: Body, limit: usize) -> Result<Bytes> {
        let limits = &self.served.limits;
        let (mut pieces, mut read) = (body.into_data_stream(), Vec::new());
        while let Some(piece) = tokio::time::timeout(limits.body_wait, pieces.next())
            .await
            .map_err(|_| super::content::stalled())?
        {
            let piece =
                piece.map_err(|_| Error::new(Kind::Invalid, "the body was cut off").hint("send it again"))?;
            if read.len() + piece.len() > limit {
                drop(read);
                // Most clients read only after sending everything: they would just see a closed connection.
                let mut rest = limits.content_bytes_max;
                while let Ok(Some(Ok(piece))) = tokio::time::timeout(limits.body_wait, pieces.next()).await
                    && piece.len() <= rest
                {
                    rest -= piece.len();
                }
                return Err(super::content::too_large(limit));
            }
            read.extend_from_slice(&piece);
        }
        Ok(read.into())
    }
}
