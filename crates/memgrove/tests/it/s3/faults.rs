//! A network that fails: answers that are lost after the request was carried out, requests that
//! never arrive, delays, and the codes that a busy service sends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::service::Service;
use hyper::{Method, Request, Response, StatusCode};
use s3s::service::S3Service;
use s3s::{Body, HttpError};

use super::google::Generations;

/// What goes wrong, and how often.
#[derive(Default)]
pub(crate) struct Faults {
    /// How many of a thousand requests meet a fault.
    pub(crate) per_mille: AtomicU64,
    /// How long every request takes beside its work.
    pub(crate) latency_ms: AtomicU64,
    /// Whether nothing gets through.
    pub(crate) cut: AtomicBool,
    /// How many requests came.
    pub(crate) requests: AtomicU64,
    /// How many of them wrote.
    pub(crate) writes: AtomicU64,
    /// How many bytes they wrote.
    pub(crate) bytes_written: AtomicU64,
    /// How many met each kind of fault.
    pub(crate) met: [AtomicU64; KINDS],
}

/// Reset before, lost answer, delay, 409, 500, 503.
pub(crate) const KINDS: usize = 6;

#[derive(Clone)]
pub(crate) struct Faulty {
    /// For those who sign as Amazon's clients do.
    pub(crate) inner: S3Service,
    /// For clients of Google's, whose account needs no token.
    pub(crate) unsigned: S3Service,
    pub(crate) generations: Arc<Generations>,
    pub(crate) faults: Arc<Faults>,
}

impl Faults {
    /// The fault of the next request, if it has one. The same in every run.
    fn draw(&self) -> Option<usize> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let mut dice = number.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        dice ^= dice >> 29;
        dice = dice.wrapping_mul(0x94d0_49bb_1331_11eb);
        dice ^= dice >> 32;
        let unlucky = dice % 1000 < self.per_mille.load(Ordering::SeqCst);
        unlucky.then_some((dice >> 20) as usize % KINDS)
    }
}

fn lost() -> HttpError {
    HttpError::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into())
}

fn plainly(status: StatusCode, code: &str) -> Response<Body> {
    let xml = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>a fault</Message></Error>");
    Response::builder().status(status).body(Body::from(xml)).unwrap()
}

impl Faulty {
    async fn carry_out(&self, request: Request<Incoming>) -> Result<Response<Body>, HttpError> {
        let mut request = request.map(Body::from);
        if request.headers().get(AUTHORIZATION).is_some_and(|how| how.as_bytes().starts_with(b"AWS4")) {
            return self.inner.call(request).await;
        }
        request.headers_mut().remove(AUTHORIZATION);
        self.generations.asked(request.headers_mut());
        let mut response = self.unsigned.call(request).await?;
        self.generations.answered(response.headers_mut());
        Ok(response)
    }
}

impl Service<Request<Incoming>> for Faulty {
    type Response = Response<Body>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (server, faults) = (self.clone(), Arc::clone(&self.faults));
        Box::pin(async move {
            let latency = faults.latency_ms.load(Ordering::SeqCst);
            if latency > 0 {
                tokio::time::sleep(Duration::from_millis(latency)).await;
            }
            if faults.cut.load(Ordering::SeqCst) {
                return Err(lost());
            }
            if request.method() == Method::PUT {
                faults.writes.fetch_add(1, Ordering::SeqCst);
                let length = request.headers().get("content-length").and_then(|text| text.to_str().ok());
                let length: u64 = length.and_then(|text| text.parse().ok()).unwrap_or(0);
                faults.bytes_written.fetch_add(length, Ordering::SeqCst);
            }
            let fault = faults.draw();
            if let Some(kind) = fault {
                faults.met[kind].fetch_add(1, Ordering::SeqCst);
            }
            match fault {
                Some(0) => Err(lost()),
                Some(1) => {
                    server.carry_out(request).await?;
                    Err(lost())
                }
                Some(2) => {
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    server.carry_out(request).await
                }
                Some(3) if request.method() == Method::PUT => {
                    Ok(plainly(StatusCode::CONFLICT, "ConditionalRequestConflict"))
                }
                Some(4) => Ok(plainly(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
                Some(5) => Ok(plainly(StatusCode::SERVICE_UNAVAILABLE, "SlowDown")),
                _ => server.carry_out(request).await,
            }
        })
    }
}
