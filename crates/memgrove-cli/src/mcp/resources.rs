//! Memories as resources: `memgrove://<kind>/<rest>` is the address `<kind>:<rest>`.

use memgrove::backend::FileKind;
use memgrove::{Error, Kind, Result};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use crate::address::{address_of, memory_at};
use crate::context::Context;
use crate::verbs;

const SCHEME: &str = "memgrove://";
/// How many resources are listed at once.
const PAGE: usize = 200;
/// How many completions are offered.
const COMPLETIONS_MAX: usize = 100;
/// The most tokens that a resource is read with.
const TOKENS_MAX: usize = 200_000;
/// The kinds of memories that have addresses, and what they are.
const KINDS: &[(&str, &str, &str)] = &[
    ("file", "memories/{+path}", "A file beneath /memories"),
    ("record", "{id}", "A core memory, learning or task"),
    ("entity", "{type}/{name}", "An entity with its observations and relations"),
];

/// The resources after a cursor, and the cursor after them.
pub(super) fn list(cx: &Context, after: Option<&str>) -> Result<(Vec<Resource>, Option<String>)> {
    let memory = cx.reading()?;
    let mut listed = Vec::new();
    for info in memory.store().list_all(&memgrove::Locator::root())? {
        let key = info.locator.key();
        if info.kind != FileKind::File || after.is_some_and(|after| key <= after) {
            continue;
        }
        let address = address_of(cx, &info.locator);
        // What has no address is not a memory of its own.
        let Some(uri) = uri_of(&address) else { continue };
        if listed.len() == PAGE {
            let last = listed.last().map(|(key, _): &(String, Resource)| key.clone());
            return Ok((listed.into_iter().map(|(_, resource)| resource).collect(), last));
        }
        let name = key.rsplit('/').next().unwrap_or(key).to_owned();
        let resource =
            Resource::new(uri, name).with_title(address).with_size(info.size).with_mime_type(kind_of(key));
        listed.push((key.to_owned(), resource));
    }
    Ok((listed.into_iter().map(|(_, resource)| resource).collect(), None))
}

fn kind_of(key: &str) -> &'static str {
    match key.rsplit('.').next() {
        Some("md") => "text/markdown",
        Some("json" | "jsonl") => "application/json",
        _ => "text/plain",
    }
}

/// How resources of each kind are named.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |(kind, rest, words): &(&str, &str, &str)| {
        ResourceTemplate::new(format!("{SCHEME}{kind}/{rest}"), *kind).with_description(*words)
    };
    KINDS.iter().map(template).collect()
}

/// Reads a resource.
pub(super) fn read(cx: &Context, uri: &str) -> Result<ResourceContents> {
    let address = address_in(uri)?;
    let entry = verbs::TABLE.iter().find(|entry| entry.name == "read").expect("read is a verb");
    let answer = (entry.run_json)(json!({"address": address, "budget": TOKENS_MAX}), cx)?.json();
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    Ok(match (text("text"), text("base64")) {
        (Some(text), _) => ResourceContents::text(text, uri).with_mime_type(kind_of(uri)),
        (None, blob) => {
            let blob = blob.ok_or_else(|| Error::new(Kind::Full, format!("`{address}` is too large")))?;
            ResourceContents::blob(blob, uri).with_mime_type("application/octet-stream")
        }
    })
}

/// What the history calls the memory behind a resource, to see when it changes. It need not be there
/// yet, and what is no memory of ours never changes.
pub(super) fn watched(cx: &Context, uri: &str) -> String {
    let address = address_in(uri).unwrap_or_else(|_| uri.to_owned());
    memory_at(cx, &address).map_or(address, |at| address_of(cx, &at))
}

/// Addresses that begin so, as values of the template's variable.
pub(super) fn complete(cx: &Context, template: &str, begun: &str) -> Result<Vec<String>> {
    let fixed = template.split('{').next().unwrap_or_default();
    let memory = cx.reading()?;
    let mut found = Vec::new();
    for info in memory.store().list_all(&memgrove::Locator::root())? {
        let uri = uri_of(&address_of(cx, &info.locator));
        let rest = uri.as_deref().and_then(|uri| uri.strip_prefix(fixed)).map(decoded);
        if let Some(rest) = rest.flatten()
            && info.kind == FileKind::File
            && rest.starts_with(begun)
        {
            found.push(rest);
        }
        if found.len() == COMPLETIONS_MAX {
            break;
        }
    }
    Ok(found)
}

/// The resource of an address.
fn uri_of(address: &str) -> Option<String> {
    let (kind, rest) = address.split_once(':')?;
    let known = KINDS.iter().any(|(name, ..)| *name == kind);
    known.then(|| format!("{SCHEME}{kind}/{}", encoded(rest.trim_start_matches('/'))))
}

/// The address of a resource.
fn address_in(uri: &str) -> Result<String> {
    let unknown = || {
        Error::new(Kind::NotFound, format!("there is no resource `{}`", uri.escape_default()))
            .hint("resources look like memgrove://file/memories/notes.md")
    };
    let (kind, rest) = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).ok_or_else(unknown)?;
    let rest = decoded(rest).ok_or_else(unknown)?;
    let slash = if kind == "file" { "/" } else { "" };
    Ok(format!("{kind}:{slash}{rest}"))
}

fn encoded(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                safe.push(byte.into())
            }
            byte => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    safe
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                bytes.push(digit(high)? * 16 + digit(low)?);
                rest = tail;
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_resources_name_each_other() {
        for address in ["file:/memories/a b/ü#?.md", "entity:person/Alice", "record:0c1"] {
            let uri = uri_of(address).expect("it has an address");
            assert_eq!(address_in(&uri).expect("it leads back"), address);
        }
        assert_eq!(uri_of("file:/memories/a.md").as_deref(), Some("memgrove://file/memories/a.md"));
        assert_eq!(uri_of("knowledge/x.md"), None);
        assert!(address_in("test://nothing").is_err());
        assert!(address_in("memgrove://file/%zz").is_err());
    }
}
