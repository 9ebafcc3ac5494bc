//! Who may ask, and for what: one token that needs no user step, further ones with scopes, and a
//! link that works once and leaves a cookie in the browser.

mod keys;

use std::collections::VecDeque;
use std::sync::Mutex;

use axum::http::{HeaderMap, Method, header};
use memgrove::{Error, Kind};

#[cfg(test)]
pub(crate) use keys::Key;
pub(crate) use keys::{Keys, secret};

/// How many links may be open at once.
const LINKS_MAX: usize = 16;

/// What a request may do at most. Ordered: who may write may read.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Deserialize, serde::Serialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// Look.
    #[default]
    Read,
    /// Look and change.
    Write,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The name of the token.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) scope: Scope,
    /// The only space that it may do it in; `None` is all of them.
    pub(crate) space: Option<String>,
    /// Whether it is the server's own token, or a cookie that came of it.
    pub(crate) is_owner: bool,
    /// How it said who it is.
    pub(crate) by: By,
}

/// How an asker said who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A header that only a program with the token can send.
    Token,
    /// A cookie, which the browser sends by itself.
    Cookie,
}

/// The tokens of a running server.
pub(crate) struct Access {
    keys: Keys,
    cookie: String,
    links: Mutex<VecDeque<String>>,
    /// Whether nobody may write.
    pub(super) read_only: bool,
}

impl Access {
    /// Access by these keys to a server at this port. A cookie is named after the port, because
    /// browsers hand cookies to every port of a host.
    pub(crate) fn new(keys: Keys, port: u16, read_only: bool) -> Self {
        Access { keys, cookie: format!("memgrove_{port}"), links: Mutex::default(), read_only }
    }

    /// Makes a secret for a link that works once; when too many are unused, the oldest stops working.
    pub(crate) fn link(&self) -> String {
        let fresh = secret();
        let mut links = self.links.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        links.truncate(LINKS_MAX - 1);
        links.push_front(fresh.clone());
        fresh
    }

    /// The header that makes a browser remember, if the link's secret is right. It works once.
    pub(crate) fn redeem(&self, given: &str) -> Option<String> {
        let mut links = self.links.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let right = links.iter().position(|secret| keys::same(secret, given))?;
        links.remove(right);
        let (name, value) = (&self.cookie, self.keys.own().cookie());
        Some(format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"))
    }

    /// Who asks, by the headers of a request.
    ///
    /// # Errors
    /// `Denied` without a token and with a wrong one.
    pub(crate) fn asker(&self, headers: &HeaderMap) -> Result<Asker, Error> {
        let token = bearer(headers).or_else(|| text(headers, "x-api-key"));
        let (key, by) = match token {
            // A given token counts, even beside a cookie.
            Some(token) => (self.keys.by_token(token), By::Token),
            None => (cookie(headers, &self.cookie).and_then(|value| self.keys.by_cookie(value)), By::Cookie),
        };
        let key = key.ok_or_else(|| match token.is_some() {
            true => unknown("unknown token"),
            false => unknown("a token is required"),
        })?;
        let scope = if self.read_only { Scope::Read } else { key.scope };
        let is_owner = std::ptr::eq(key, self.keys.own());
        Ok(Asker { name: key.name.clone(), scope, space: key.space.clone(), is_owner, by })
    }
}

impl Asker {
    /// Whether another site's page made the browser send this: cookies come with every request, so a request
    /// with a cookie must show where it comes from.
    pub(crate) fn is_forged(&self, method: &Method, headers: &HeaderMap) -> bool {
        let site = text(headers, "sec-fetch-site");
        let foreign = site.is_some_and(|site| !["same-origin", "none"].contains(&site));
        let unsigned = !method.is_safe() && site.is_none() && !headers.contains_key(header::ORIGIN);
        self.by == By::Cookie && (foreign || unsigned)
    }
}

fn unknown(message: &str) -> Error {
    Error::new(Kind::Denied, message)
        .code("NO_TOKEN")
        .hint("open the link that `memgrove serve` printed, or send the token as `Authorization: Bearer`")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(given, _)| *given == name).map(|(_, value)| value)
}

/// A header as text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
