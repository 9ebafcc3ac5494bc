//! Versions of memories: changes in the history, and taking one out of it for good.

use axum::response::Response;
use memgrove::backend::{Actor, Moment, Origin};
use memgrove::clock::Timestamp;
use memgrove::error::code;
use memgrove::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::memories::{Desk, View, Viewed, at_old_desk, sha256};
use super::paths::path_of;
use super::{CURRENT, Order, Page, answered, limit, moment};
use crate::http::route::Call;
use crate::memory_stores::{Catalog, Digest, Lineage, Operation, Redaction, VersionOf, absent, note};
use crate::signing::signer;

#[derive(Deserialize)]
struct Listed {
    limit: Option<usize>,
    page: Option<String>,
    memory_id: Option<String>,
    operation: Option<Operation>,
    session_id: Option<String>,
    api_key_id: Option<String>,
    service_account_id: Option<String>,
    #[serde(rename = "created_at[gte]")]
    created_at_gte: Option<Timestamp>,
    #[serde(rename = "created_at[lte]")]
    created_at_lte: Option<Timestamp>,
    view: Option<View>,
}

impl Listed {
    fn wants(&self, lineage: &Lineage, version: &VersionOf) -> bool {
        let by = version.actor.as_ref().map_or(Value::Null, told_actor);
        let is = |asked: &Option<String>, found: Option<&str>| {
            asked.as_deref().is_none_or(|asked| Some(asked) == found)
        };
        is(&self.memory_id, Some(&lineage.id))
            && self.operation.is_none_or(|asked| asked == version.operation)
            && is(&self.session_id, by["session_id"].as_str())
            && is(&self.api_key_id, by["api_key_id"].as_str())
            // This server has no service accounts.
            && self.service_account_id.is_none()
            && self.created_at_gte.is_none_or(|from| version.time >= from)
            && self.created_at_lte.is_none_or(|upto| version.time <= upto)
    }
}

impl Desk<'_> {
    /// The versions of this memory store's memories.
    fn versions<'a>(&self, catalog: &'a Catalog) -> Vec<(&'a Lineage, &'a VersionOf)> {
        let all = catalog.memories.iter();
        let all = all.flat_map(|lineage| lineage.versions.iter().map(move |version| (lineage, version)));
        let own = |version: &VersionOf| {
            version.at.is_within(&self.root)
                && self.of.since().is_none_or(|since| version.time >= since)
                && self.until.is_none_or(|until| version.time <= until)
        };
        all.filter(|(_, version)| own(version)).collect()
    }

    fn version<'a>(&self, catalog: &'a Catalog, id: &str) -> Result<(&'a Lineage, &'a VersionOf)> {
        let found = self.versions(catalog).into_iter().find(|(_, version)| version.id == id);
        found.ok_or_else(|| absent("memory version", id))
    }

    fn told_version(
        &self,
        catalog: &Catalog,
        (lineage, version): (&Lineage, &VersionOf),
        view: View,
    ) -> Result<Value> {
        let mut told = json!({
            "type": "memory_version",
            "id": version.id,
            "memory_id": lineage.id,
            "memory_store_id": self.of.id,
            "operation": version.operation.name(),
            "path": path_of(&self.root, &version.at),
            "content": null,
            "content_sha256": null,
            "content_size_bytes": null,
            "created_at": version.time,
            "created_by": version.actor.as_ref().map(told_actor),
            "redacted_at": null,
            "redacted_by": null,
        });
        if version.operation == Operation::Deleted {
            if let Some(redaction) = catalog.redaction(version) {
                tell_redacted(&mut told, version, Some(redaction));
            }
            return Ok(told);
        }
        if let Some(digest) = catalog.digest(version).filter(|_| view == View::Basic) {
            digest.tell(&mut told);
            return Ok(told);
        }
        let store = self.cx.reading()?;
        let held = store.store().backend().read_past(&version.at, &version.moment);
        match held {
            Ok(bytes) => {
                let bytes = bytes.unwrap_or_default();
                let digest = Digest { sha256: sha256(&bytes), size: bytes.len() };
                digest.tell(&mut told);
                catalog.keep_digest(version, digest);
                if view == View::Full {
                    told["content"] = String::from_utf8(bytes).ok().into();
                }
            }
            Err(error) if error.code_name() == Some(code::REDACTED) => {
                tell_redacted(&mut told, version, catalog.redaction(version));
            }
            // The content was pruned from the history or is damaged, but the version still existed.
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Corrupt) => {}
            Err(error) => return Err(error),
        }
        Ok(told)
    }
}

impl Digest {
    fn tell(&self, told: &mut Value) {
        told["content_sha256"] = self.sha256.as_str().into();
        told["content_size_bytes"] = self.size.into();
    }
}

fn tell_redacted(told: &mut Value, version: &VersionOf, redaction: Option<&Redaction>) {
    told["path"] = Value::Null;
    told["redacted_at"] = json!(redaction.map_or(version.time, |redaction| redaction.time));
    told["redacted_by"] = redaction.map_or(Value::Null, |redaction| told_actor(&redaction.actor));
}

/// Who made a change, in the API's words.
fn told_actor(actor: &Actor) -> Value {
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
    match actor.origin {
        Origin::User => json!({"type": "user_actor", "user_id": format!("user_{}", named(&actor.client))}),
        Origin::Agent => {
            json!({"type": "session_actor", "session_id": format!("sesn_{}", named(&actor.session))})
        }
        _ => {
            let client = named(&actor.client);
            json!({"type": "api_actor", "api_key_id": format!("apikey_{}", signer(&client))})
        }
    }
}

pub(super) async fn list(call: Call) -> Result<Response> {
    let asked: Listed = call.query()?;
    let view = asked.view.unwrap_or(View::Basic);
    let limit = limit(asked.limit, if view == View::Full { 20 } else { 100 })?;
    let listed = at_old_desk(&call, move |desk| {
        let catalog = desk.catalog();
        let all = desk.versions(&catalog).into_iter();
        let wanted = all.filter(|(lineage, version)| asked.wants(lineage, version));
        let key = |(_, version): &(&Lineage, &VersionOf)| {
            let (order, change) = match &version.moment {
                Moment::Before(change) => (0, change),
                Moment::After(change) => (1, change),
            };
            format!("{} {:0>20} {order} {}", moment(version.time), change.as_str(), version.id)
        };
        let page = Page::of(wanted.collect(), Order::Falling, limit, asked.page.as_deref(), key)?;
        let told = page.data.iter().map(|found| desk.told_version(&catalog, *found, view));
        let data = told.collect::<Result<Vec<Value>>>()?;
        Ok(json!({"data": data, "next_page": page.next}))
    });
    Ok(answered(&listed.await?))
}

pub(super) async fn retrieve(call: Call) -> Result<Response> {
    let view = call.query::<Viewed>()?.view.unwrap_or(View::Full);
    let id = call.param("version").to_owned();
    let found = at_old_desk(&call, move |desk| {
        let catalog = desk.catalog();
        desk.told_version(&catalog, desk.version(&catalog, &id)?, view)
    });
    Ok(answered(&found.await?))
}

/// Takes what a version held out of the journal for good.
pub(super) async fn redact(call: Call) -> Result<Response> {
    let id = call.param("version").to_owned();
    let redacted = at_old_desk(&call, move |desk| {
        let (at, moment, operation) = {
            let catalog = desk.catalog();
            let (_, version) = desk.version(&catalog, &id)?;
            (version.at.clone(), version.moment.clone(), version.operation)
        };
        let (memory, note) = (desk.cx.writing()?, note(desk.cx, "memory_version_redact", None));
        if operation == Operation::Deleted {
            memory.keep_redaction(note, &at, &moment)?;
        } else {
            memory.redact(note, &at, &moment).map_err(still_there)?;
            // It is out of the store, whatever comes of the index.
            if let Err(error) = desk.cx.index().and_then(|index| index.scrub()) {
                crate::notice(&format!("the index may still hold what was redacted: {error}"));
            }
        }
        let mut catalog = desk.catalog();
        catalog.refresh(desk.cx)?;
        desk.told_version(&catalog, desk.version(&catalog, &id)?, View::Basic)
    });
    Ok(answered(&redacted.await?))
}

fn still_there(error: Error) -> Error {
    match error.kind() {
        Kind::Conflict => Error::new(Kind::Conflict, "this version is what the memory holds now")
            .code(CURRENT)
            .hint("update or delete the memory first"),
        _ => error,
    }
}
