//! A bucket at a provider: the only file that knows the provider's client and its runtime.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, BackoffConfig, ClientOptions, Error as Fault, GetOptions, ObjectStore as Service,
    ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig, UpdateVersion,
};
use tokio::runtime::{Builder, Runtime};

use super::bucket::{Answer, Bucket, Listed, Object, Request, When};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};

/// What is remembered beside the bytes, as the provider's metadata.
const MARK: &str = "memgrove";
/// How many requests are under way at once.
const PARALLEL: usize = 32;
const TIMEOUT_MS: u64 = 10_000;
const RETRY_MS: u64 = 8_000;

/// A bucket of Amazon S3 or a service like it, of Google Cloud Storage, or of Azure.
pub struct Cloud {
    pub(super) name: String,
    service: Arc<dyn Service>,
    /// The seam is synchronous: what waits for the network waits here.
    runtime: Option<Runtime>,
}

impl Cloud {
    /// Connects to `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`, and
    /// gives back the prefix. Settings are `region`, `endpoint`, `path_style`, `timeout_ms` and
    /// `retry_ms`, and whatever the provider's own tools take, in lower case, such as
    /// `aws_access_key_id`.
    ///
    /// # Errors
    /// `Invalid` for a location or a setting that cannot be.
    pub fn connect(location: &str, settings: &BTreeMap<String, String>) -> Result<(Cloud, String)> {
        let (scheme, rest) = location.split_once("://").ok_or_else(|| not_a_bucket(location))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if bucket.is_empty() || !bucket.chars().all(fits) {
            return Err(not_a_bucket(location));
        }
        let prefix = super::checked_prefix(location, prefix)?;
        check_settings(settings)?;
        let number = |name: &str, usual: u64| match settings.get(name) {
            None => Ok(usual),
            Some(text) => text.parse().map_err(|_| {
                Error::new(Kind::Invalid, format!("`{text}` is not a number of milliseconds for `{name}`"))
            }),
        };
        let endpoint = settings.get("endpoint");
        let client = ClientOptions::new()
            .with_timeout(Duration::from_millis(number("timeout_ms", TIMEOUT_MS)?))
            .with_connect_timeout(Duration::from_secs(3))
            .with_allow_http(settings.iter().any(asks_for_http));
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(20),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: 8,
            retry_timeout: Duration::from_millis(number("retry_ms", RETRY_MS)?),
        };
        let service = match scheme {
            "s3" => s3(bucket, settings, client, retry),
            "gs" => gcs(bucket, settings, client, retry),
            "az" => azure(bucket, settings, client, retry),
            _ => return Err(not_a_bucket(location)),
        };
        let service = service.map_err(|fault| {
            Error::new(Kind::Invalid, format!("`{scheme}://{bucket}` cannot be used: {fault}"))
                .hint("check the region, the endpoint and the credentials in the environment")
        })?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = Some(runtime.map_err(|error| Error::from_io(error, "network"))?);
        let at = endpoint.map_or(String::new(), |endpoint| format!(" at {endpoint}"));
        Ok((Cloud { name: format!("{scheme}://{bucket}{at}"), service, runtime }, prefix.to_owned()))
    }

    /// Waits for a future, from any thread, also one of another runtime.
    /// `None` where the work ended without an answer: a mistake in a client, told by its panic.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        let runtime = self.runtime.as_ref().expect("it lives as long as the bucket");
        runtime.spawn(async move {
            // The other end waits for it, so it cannot fail.
            let _ = answer.send(work.await);
        });
        answered.recv().ok()
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Checks what the clients of the providers take for granted.
fn check_settings(settings: &BTreeMap<String, String>) -> Result<()> {
    let wrong = |name: &str, why: &str, hint: &str| {
        Err(Error::new(Kind::Invalid, format!("the setting `{name}` of the bucket {why}")).hint(hint))
    };
    for (name, value) in settings {
        if value.chars().any(char::is_control) {
            return wrong(name, "has a line break or another control character", "remove it");
        }
    }
    if settings.get("endpoint").is_some_and(|endpoint| host_of(endpoint).is_none()) {
        return wrong(
            "endpoint",
            "is not the address of a server",
            "write it as https://host or http://host:port",
        );
    }
    if settings.get("path_style").is_some_and(|style| !matches!(&**style, "true" | "false")) {
        return wrong("path_style", "is neither `true` nor `false`", "write one of them");
    }
    Ok(())
}

/// The host of an address, with its port if it has one; `None` for what is no address.
fn host_of(endpoint: &str) -> Option<&str> {
    let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"))?;
    let host = rest.split('/').next()?;
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let fits = !name.is_empty() && !endpoint.contains(char::is_whitespace) && port.parse::<u16>().is_ok();
    fits.then_some(host)
}

/// The address at which a service shows one bucket.
fn with_bucket(endpoint: &str, bucket: &str) -> String {
    let host = host_of(endpoint).unwrap_or_default();
    match host.starts_with(&format!("{bucket}.")) {
        true => endpoint.to_owned(),
        false => endpoint.replacen(host, &format!("{bucket}.{host}"), 1),
    }
}

/// Whether a setting, ours or the provider's, names a server that is spoken to in the clear.
fn asks_for_http((name, value): (&String, &String)) -> bool {
    match name.ends_with("allow_http") {
        true => value == "true",
        false => (name.contains("endpoint") || name.ends_with("base_url")) && value.starts_with("http://"),
    }
}

type Connected = std::result::Result<Arc<dyn Service>, Fault>;

fn s3(
    bucket: &str,
    settings: &BTreeMap<String, String>,
    client: ClientOptions,
    retry: RetryConfig,
) -> Connected {
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    for (name, value) in settings.iter().filter(|(name, _)| name.starts_with("aws_")) {
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    // After all settings of the provider: an option of theirs would replace ours.
    builder = builder.with_client_options(client).with_retry(retry);
    if let Some(region) = settings.get("region") {
        builder = builder.with_region(region);
    }
    let in_host = settings.get("path_style").is_some_and(|style| style == "false");
    if let Some(endpoint) = settings.get("endpoint") {
        builder =
            builder.with_endpoint(if in_host { with_bucket(endpoint, bucket) } else { endpoint.clone() });
    }
    if settings.contains_key("path_style") {
        builder = builder.with_virtual_hosted_style_request(in_host);
    }
    Ok(Arc::new(builder.build()?))
}

fn gcs(
    bucket: &str,
    settings: &BTreeMap<String, String>,
    client: ClientOptions,
    retry: RetryConfig,
) -> Connected {
    let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
    for (name, value) in settings.iter().filter(|(name, _)| name.starts_with("google_")) {
        if let Ok(key) = name.parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = settings.get("endpoint") {
        builder = builder.with_base_url(endpoint);
    }
    Ok(Arc::new(builder.with_client_options(client).with_retry(retry).build()?))
}

fn azure(
    container: &str,
    settings: &BTreeMap<String, String>,
    client: ClientOptions,
    retry: RetryConfig,
) -> Connected {
    let mut builder = MicrosoftAzureBuilder::new().with_container_name(container);
    for (name, value) in settings.iter().filter(|(name, _)| name.starts_with("azure_")) {
        if let Ok(key) = name.parse::<AzureConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = settings.get("endpoint") {
        builder = builder.with_endpoint(endpoint.clone());
    }
    Ok(Arc::new(builder.with_client_options(client).with_retry(retry).build()?))
}

impl Bucket for Cloud {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn send(&self, requests: Vec<Request>) -> Vec<Result<Answer>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let (service, count) = (Arc::clone(&self.service), requests.len());
        let answers = self.wait(async move {
            let sent = requests.into_iter().map(|request| answer(Arc::clone(&service), request));
            futures_util::stream::iter(sent).buffered(PARALLEL).collect::<Vec<_>>().await
        });
        let Some(answers) = answers else { return (0..count).map(|_| Err(self.broken())).collect() };
        answers.into_iter().map(|answer| answer.map_err(|fault| self.failed(fault))).collect()
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let service = Arc::clone(&self.service);
        let folder = prefix.trim_end_matches('/').to_owned();
        let listed = self.wait(async move {
            let folder = if folder.is_empty() { None } else { Some(Key::parse(folder)?) };
            service.list(folder.as_ref()).try_collect::<Vec<_>>().await
        });
        let listed = listed.ok_or_else(|| self.broken())?.map_err(|fault| match &fault {
            // The client gives up on the whole page.
            Fault::InvalidPath { source } => {
                let why = format!("{} cannot be listed while an object has such a key: {source}", self.name);
                Error::new(Kind::Invalid, why)
                    .hint("rename that object, or use a prefix that it is not under")
            }
            _ => self.failed(fault),
        })?;
        let one = |meta: object_store::ObjectMeta| Listed {
            key: meta.location.as_ref().to_owned(),
            size: meta.size,
            modified: Timestamp::from_millisecond(meta.last_modified.timestamp_millis()).unwrap_or_default(),
            tag: None,
        };
        Ok(listed.into_iter().map(one).collect())
    }
}

async fn answer(service: Arc<dyn Service>, request: Request) -> Result<Answer, Fault> {
    match request {
        Request::Get(key) => fetch(&*service, &key, false).await,
        Request::Head(key) => fetch(&*service, &key, true).await,
        Request::Put { key, bytes, when, mark } => put(&*service, &key, bytes, when, mark).await,
        Request::Delete(key) => match service.delete(&Key::parse(key)?).await {
            Ok(()) | Err(Fault::NotFound { .. }) => Ok(Answer::Deleted),
            Err(fault) => Err(fault),
        },
    }
}

async fn fetch(service: &dyn Service, key: &str, head: bool) -> Result<Answer, Fault> {
    let options = GetOptions { head, ..GetOptions::default() };
    let got = match service.get_opts(&Key::parse(key)?, options).await {
        Ok(got) => got,
        Err(Fault::NotFound { .. }) => return Ok(Answer::Absent),
        Err(fault) => return Err(fault),
    };
    let (size, tag) = (got.meta.size, tag_of(got.meta.e_tag.as_deref(), got.meta.version.as_deref()));
    let mark = got.attributes.get(&Attribute::Metadata(MARK.into())).map(|value| value.to_string());
    let bytes = if head { Vec::new() } else { got.bytes().await?.to_vec() };
    Ok(Answer::Object(Object { bytes, size, tag, mark }))
}

async fn put(
    service: &dyn Service,
    key: &str,
    bytes: Vec<u8>,
    when: When,
    mark: Option<String>,
) -> Result<Answer, Fault> {
    let mode = match when {
        When::Always => PutMode::Overwrite,
        When::Absent => PutMode::Create,
        When::Tagged(tag) => PutMode::Update(version_of(&tag)),
    };
    let kind = match std::str::from_utf8(&bytes) {
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    };
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::ContentType, kind.into());
    if let Some(mark) = mark {
        attributes.insert(Attribute::Metadata(MARK.into()), mark.into());
    }
    let options = PutOptions { mode, attributes, ..PutOptions::default() };
    match service.put_opts(&Key::parse(key)?, PutPayload::from(bytes), options).await {
        Ok(put) => Ok(Answer::Written(tag_of(put.e_tag.as_deref(), put.version.as_deref()))),
        Err(Fault::AlreadyExists { .. } | Fault::Precondition { .. } | Fault::NotModified { .. }) => {
            Ok(Answer::Refused)
        }
        Err(fault) => Err(fault),
    }
}

/// Some providers compare ETags and some generations: the tag carries both.
fn tag_of(e_tag: Option<&str>, version: Option<&str>) -> String {
    format!("{}\n{}", e_tag.unwrap_or_default(), version.unwrap_or_default())
}

fn version_of(tag: &str) -> UpdateVersion {
    let (e_tag, version) = tag.split_once('\n').unwrap_or((tag, ""));
    let kept = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    UpdateVersion { e_tag: kept(e_tag), version: kept(version) }
}

fn not_a_bucket(location: &str) -> Error {
    Error::new(Kind::Invalid, format!("`{location}` names no bucket"))
        .hint("name one as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix")
}
