//! The same objects as Google's interface shows them: conditions name generations instead of ETags, and what is
//! remembered beside an object has another prefix.

use std::collections::HashMap;
use std::sync::Mutex;

use hyper::header::{ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};

const GENERATION: &str = "x-goog-generation";
const WHEN_GENERATION: &str = "x-goog-if-generation-match";
const META: (&str, &str) = ("x-goog-meta-", "x-amz-meta-");

/// The ETag of each generation that was told. A generation is the number that its ETag begins with.
#[derive(Default)]
pub(crate) struct Generations(Mutex<HashMap<String, HeaderValue>>);

impl Generations {
    /// Says in Amazon's words what a client of Google's asks for.
    pub(super) fn asked(&self, headers: &mut HeaderMap) {
        renamed(headers, META.0, META.1);
        let Some(generation) = headers.remove(WHEN_GENERATION) else { return };
        match generation.to_str().unwrap() {
            "0" => headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*")),
            known => {
                let tags = self.0.lock().unwrap();
                let never = HeaderValue::from_static("\"never\"");
                headers.insert(IF_MATCH, tags.get(known).cloned().unwrap_or(never))
            }
        };
    }

    /// Says in Google's words what was answered.
    pub(super) fn answered(&self, headers: &mut HeaderMap) {
        renamed(headers, META.1, META.0);
        let Some(tag) = headers.get(ETAG) else { return };
        let digits: String = tag.to_str().unwrap().trim_matches('"').chars().take(15).collect();
        let generation =
            u64::from_str_radix(&digits, 16).expect("an ETag is a hexadecimal number").to_string();
        self.0.lock().unwrap().insert(generation.clone(), tag.clone());
        headers.insert(GENERATION, HeaderValue::from_str(&generation).unwrap());
    }
}

fn renamed(headers: &mut HeaderMap, from: &str, to: &str) {
    let named: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(from)).cloned().collect();
    for name in named {
        let value = headers.remove(&name).unwrap();
        headers.insert(HeaderName::try_from(name.as_str().replacen(from, to, 1)).unwrap(), value);
    }
}
