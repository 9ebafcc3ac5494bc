//! An S3 server on loopback: HTTP, signatures, conditions and pages are those of `s3s`; objects are
//! kept in memory, with ETags that depend on the content alone, as Amazon's do. Who does
//! not sign is taken for a client of Google's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::Builder;
use memgrove::backends::object::{Bucket, Cloud, ObjectStore};
use memgrove::clock::SystemClock;
use memgrove::{Backend, Result};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

mod faults;
mod google;
mod objects;

pub(crate) use faults::Faults;
use objects::Objects;

const KEY: &str = "memgrove-test";
const SECRET: &str = "memgrove-test-secret";
/// What a client of Google's takes for an account that needs no token.
const GOOGLE: &str = r#"{"client_email":"test","private_key":"","private_key_id":"","disable_oauth":true}"#;

/// A running server.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    pub(crate) faults: Arc<Faults>,
    pub(crate) objects: Objects,
    next: AtomicU64,
    _runtime: tokio::runtime::Runtime,
}

/// Whether a server honours the conditions of writes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Conditions {
    Honoured,
    Ignored,
}

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start(conditions: Conditions) -> Server {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let objects = Objects::new(conditions == Conditions::Honoured);
        let faults = Arc::new(Faults::default());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let unsigned = S3ServiceBuilder::new(objects.clone()).build();
        let mut builder = S3ServiceBuilder::new(objects.clone());
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let (inner, generations) = (builder.build(), Arc::default());
        let faulty = faults::Faulty { inner, unsigned, generations, faults: Arc::clone(&faults) };
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let _ = stream.set_nodelay(true);
                let service = faulty.clone();
                tokio::spawn(async move {
                    let _ = Builder::new(hyper_util::rt::TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Server { endpoint, faults, objects, next: AtomicU64::new(0), _runtime: runtime }
    }

    /// The server that most tests share, each with a prefix of its own.
    pub(crate) fn shared() -> &'static Server {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Server::start(Conditions::Honoured))
    }

    /// A prefix that nobody else uses.
    pub(crate) fn fresh_prefix(&self) -> String {
        format!("team/space-{}", self.next.fetch_add(1, Ordering::SeqCst))
    }

    /// What a client needs to know.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let settings = [
            ("endpoint", &*self.endpoint),
            ("region", "us-east-1"),
            ("aws_access_key_id", KEY),
            ("aws_secret_access_key", SECRET),
        ];
        settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    pub(crate) fn connect(&self) -> Arc<dyn Bucket> {
        let (cloud, _) = Cloud::connect("s3://bucket", &self.settings()).unwrap();
        Arc::new(cloud)
    }

    /// The same bucket through Google's interface.
    pub(crate) fn connect_as_google(&self) -> Arc<dyn Bucket> {
        let settings = [("endpoint", &*self.endpoint), ("google_service_account_key", GOOGLE)];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Arc::new(Cloud::connect("gs://bucket", &settings).unwrap().0)
    }

    /// Opens the store beneath a prefix, as a machine of its own.
    pub(crate) fn open(&self, prefix: &str) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(ObjectStore::open(self.connect(), prefix, Arc::new(SystemClock))?))
    }
}
