//! Memories as resources: `memgrove://<kind>/<rest>` is the address `<kind>:<rest>`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memgrove::address::Scheme;
use memgrove::backend::FileKind;
use memgrove::shapes::entities::Match;
use memgrove::shapes::{graph, records};
use memgrove::{Error, Kind, Result};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use crate::address::{address_of, changes_at, memory_at};
use crate::context::Context;
use crate::mounts;
use crate::verbs;
use crate::verbs::entity::address as entity_address;

const SCHEME: &str = "memgrove://";
/// How many resources are listed at once.
const PAGE: usize = 200;
/// How many completions are offered.
const COMPLETIONS_MAX: usize = 100;
/// The token budget with which a resource is read.
const TOKENS_MAX: usize = 200_000;
/// The kinds of memories that have addresses, and what they are.
const KINDS: &[(Scheme, &str, &str)] = &[
    (Scheme::Note, "{+path}", "A note of the growing memory"),
    (Scheme::File, "memories/{+path}", "A file under /memories"),
    (Scheme::Record, "{id}", "A core memory, learning or task"),
    (Scheme::Entity, "{type}/{name}", "An entity with its observations and relations"),
    (Scheme::Node, "{id}", "A node of the graph"),
    (Scheme::Connection, "{id}", "A connection between nodes of the graph"),
];
/// The longest title of a record, in characters.
const TITLE_CHARS_MAX: usize = 60;

/// Every memory as a resource, by its name.
fn all(cx: &Context) -> Result<BTreeMap<String, Resource>> {
    let mut found = BTreeMap::new();
    let mut add = |address: String, name: String, size: Option<u64>| {
        // What has no address is not a memory of its own.
        let Some(uri) = uri_of(&address) else { return };
        let mut resource = Resource::new(uri.clone(), name).with_title(address);
        resource.mime_type = kind_of(&uri).map(str::to_owned);
        resource.size = size;
        found.insert(uri, resource);
    };
    for info in cx.reading()?.store().list_all(&memgrove::Locator::root())? {
        if info.kind == FileKind::File {
            add(address_of(cx, &info.locator), info.locator.name().to_owned(), Some(info.size));
        }
    }
    for hit in cx.reading_knowledge()?.search(&Match::default())? {
        add(entity_address(&hit.entity.kind, &hit.entity.name), hit.entity.name.clone(), None);
    }
    for record in cx.reading_records()?.list(&records::Query::default())?.records {
        let title = record.content.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = title.chars().take(TITLE_CHARS_MAX).collect();
        add(Scheme::Record.address(&record.id), title, None);
    }
    let graph = cx.reading_graph()?;
    for node in graph.list(&graph::Query::default())?.found {
        add(Scheme::Node.address(&node.id), node.id, None);
    }
    for connection in graph.connections(&graph::Query::default())?.found {
        add(Scheme::Connection.address(&connection.id), connection.id, None);
    }
    Ok(found)
}

/// The resources after a cursor, and the cursor after them.
pub(super) fn list(cx: &Context, after: Option<&str>) -> Result<(Vec<Resource>, Option<String>)> {
    let mut rest =
        all(cx)?.into_iter().filter(|(uri, _)| after.is_none_or(|after| uri.as_str() > after)).peekable();
    let mut listed = Vec::new();
    let mut last = None;
    for (uri, resource) in rest.by_ref().take(PAGE) {
        listed.push(resource);
        last = Some(uri);
    }
    Ok((listed, last.filter(|_| rest.peek().is_some())))
}

/// The type of a resource, if its name tells: a listing does not read the content.
fn kind_of(uri: &str) -> Option<&'static str> {
    let kind = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).map(|(kind, _)| kind);
    let end = uri.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    match (kind, end.as_deref().unwrap_or_default()) {
        (Some("node" | "connection"), _) => None,
        (Some("note" | "entity"), _) | (_, "md") => Some("text/markdown"),
        (Some("record"), _) | (_, "json" | "jsonl") => Some("application/json"),
        (_, "txt") => Some("text/plain"),
        (_, "png") => Some("image/png"),
        (_, "jpg" | "jpeg") => Some("image/jpeg"),
        (_, "gif") => Some("image/gif"),
        (_, "webp") => Some("image/webp"),
        (_, "pdf") => Some("application/pdf"),
        _ => None,
    }
}

/// How resources of each kind are named.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |(kind, rest, words): &(Scheme, &str, &str)| {
        let kind = kind.name();
        ResourceTemplate::new(format!("{SCHEME}{kind}/{rest}"), kind).with_description(*words)
    };
    KINDS.iter().map(template).collect()
}

/// Reads a resource.
pub(super) fn read(cx: &Context, uri: &str) -> Result<ResourceContents> {
    let address = address_in(uri)?;
    let entry = verbs::TABLE.iter().find(|entry| entry.name == "read").expect("read is a verb");
    let answer = (entry.run_json)(json!({"address": address, "budget": TOKENS_MAX}), cx)?.json();
    // A resource has no way to say that it is only a part.
    if answer.get("left_out").is_some() {
        let how = "`file_view` reads lines of a text, and `read` as much as a budget allows";
        return Err(Error::new(Kind::Full, format!("`{address}` is too large for a resource: {how}")));
    }
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let (contents, kind) = match (text("text"), text("base64")) {
        (Some(text), _) => (ResourceContents::text(text, uri), "text/plain"),
        (None, blob) => (ResourceContents::blob(blob.unwrap_or_default(), uri), "application/octet-stream"),
    };
    Ok(contents.with_mime_type(kind_of(uri).unwrap_or(kind)))
}

/// The files of the memory behind a resource.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// What the history calls them.
    pub(super) names: Vec<String>,
    /// Whether they were found: what does not exist yet may appear anywhere.
    pub(super) found: bool,
}

/// The files of the memory behind a resource, to tell when it changes. It need not exist yet; what is no
/// memory of ours never changes.
pub(super) fn watched(cx: &Context, uri: &str) -> Places {
    let address = address_in(uri).unwrap_or_else(|_| uri.to_owned());
    let (said, at) = match Scheme::split(&address) {
        // A record is a line of its file.
        Some((Scheme::Record, id)) => {
            let file = cx
                .reading_records()
                .and_then(|records| Ok(mounts::place_of(&records, &records.view(id)?.file)));
            (None, file)
        }
        Some((Scheme::Node | Scheme::Connection, _)) => {
            (changes_at(cx, &address).ok(), memory_at(cx, &address))
        }
        _ => (None, memory_at(cx, &address)),
    };
    let names: Vec<String> = said.into_iter().chain(at.ok()).map(|at| address_of(cx, &at)).collect();
    Places { found: !names.is_empty(), names }
}

/// The values that a template's variable may have, given its beginning and other variables.
pub(super) fn complete(
    cx: &Context,
    template: &str,
    variable: &str,
    begun: &str,
    known: &HashMap<String, String>,
) -> Result<Vec<String>> {
    let fixed = template.split('{').next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for uri in all(cx)?.keys() {
        let Some(rest) = uri.strip_prefix(fixed).and_then(decoded) else { continue };
        let value = match (variable, rest.split_once('/')) {
            ("type", Some((kind, _))) => kind.to_owned(),
            ("name", Some((kind, name))) => match known.get("type").is_none_or(|known| known == kind) {
                true => name.to_owned(),
                false => continue,
            },
            _ => rest,
        };
        if value.starts_with(begun) {
            found.insert(value);
        }
        if found.len() == COMPLETIONS_MAX {
            break;
        }
    }
    Ok(found.into_iter().collect())
}

/// The resource of an address.
fn uri_of(address: &str) -> Option<String> {
    let (kind, rest) = Scheme::split(address)?;
    Some(format!("{SCHEME}{}/{}", kind.name(), encoded(rest.trim_start_matches('/'))))
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

pub(crate) fn decoded(text: &str) -> Option<String> {
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
        for address in [
            "file:/memories/a b/ü#?.md",
            "entity:person/Alice",
            "record:0c1",
            "note:a/b",
            "node:x_1",
            "connection:c_1",
        ] {
            let uri = uri_of(address).expect("it has an address");
            assert_eq!(address_in(&uri).expect("it leads back"), address);
        }
        assert_eq!(uri_of("file:/memories/a.md").as_deref(), Some("memgrove://file/memories/a.md"));
        assert_eq!(uri_of("knowledge/x.md"), None);
        assert!(address_in("test://nothing").is_err());
        assert!(address_in("memgrove://file/%zz").is_err());
    }
}
