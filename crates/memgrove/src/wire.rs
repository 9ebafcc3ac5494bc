//! A small blocking client for HTTP, without redirects and proxies, so that a key goes nowhere else.

use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::error::{Error, Kind, Result};

/// Whether a client sends something that others must not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    /// A key.
    Key,
    /// Nothing of the kind.
    Nothing,
}

/// Makes a client for one endpoint. A key is sent only over TLS or to this machine.
///
/// # Errors
/// `Invalid` for an endpoint that is not safe; `Io` where the system has no certificates.
pub(crate) fn client(url: &str, carries: Carries, timeout: Duration) -> Result<ureq::Agent> {
    let open = url.starts_with("http://") && (carries == Carries::Nothing || is_here(url));
    if !open && !url.starts_with("https://") {
        return Err(Error::new(Kind::Invalid, format!("the endpoint `{url}` is not safe to send a key to"))
            .hint("use https://, or http:// on this machine"));
    }
    let mut config = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("memgrove/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("https://") {
        config = config.tls_config(tls()?);
    }
    Ok(ureq::Agent::new_with_config(config.build()))
}

/// Whether a URL leads to this machine.
fn is_here(url: &str) -> bool {
    let Ok(uri) = url.parse::<ureq::http::Uri>() else { return false };
    // What stands before an `@` is a user's name and password, not a host.
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    is_plain && matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// TLS with the system's certificates.
fn tls() -> Result<TlsConfig> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(Error::new(Kind::Io, "the system has no certificates to check the server with")
            .hint("install the package of CA certificates"));
    }
    let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::from(certificates.collect::<Vec<_>>()))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}
