//! One record, with a form.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::address::Scheme;
use memgrove::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::compare::{Sides, side_by_side, with_ends_of};
use super::edit::sent;
use super::frame::{Frame, Live, base, dated, done, may_write, sentence, url};
use super::led_to;
use super::markdown::{Here, rendered};
use super::records::{beginning, tags};
use crate::http::Call;
use crate::page::counted;
use crate::portion;

#[derive(Deserialize)]
struct Asked {
    id: String,
    #[serde(default)]
    done: String,
}

/// One record.
pub(super) async fn one(call: Call) -> Result<Response> {
    let Asked { id, done: said } = call.query()?;
    let past = url(&call, "/history", &[("address", &Scheme::Record.address(&id))]);
    let got = match call.verb("record_get", json!({"id": id})).await {
        // A deleted record can be restored from its history.
        Err(error) if error.kind() == Kind::NotFound && was_ever(&call, id).await => return led_to(&past),
        got => got?.json(),
    };
    let (record, version) = (&got["record"], got["version"].as_str().unwrap_or_default());
    let content = record["content"].as_str().unwrap_or_default();
    let base = base(&call);
    let body = html! {
        (done(&said))
        nav.crumbs aria-label="Place" { a href=(url(&call, "/browse/records", &[])) { "Records" } }
        div.heading { h1 dir="auto" { (beginning(content)) } }
        p.facts {
            span.kind { (fact(record, "type")) }
            span data-importance=(fact(record, "importance")) { (fact(record, "importance")) }
            @for tag in tags(record) { span.tag { "#" (tag) } }
            (dated(fact(record, "updated_at")))
            span { "≈ " (counted(portion::tokens(content), "token", "tokens")) }
            span { "read " (counted(record["access_count"].as_u64().unwrap_or_default() as usize, "time", "times")) }
            code { "record:" (fact(record, "id")) }
        }
        article dir="auto" { (rendered(content, &Here { base: &base, at: "records/" })) }
        @if may_write(&call) {
            details.edit open[said == "edit"] {
                summary data-key="e" { "Edit" }
                (form(&call, record, version, &Filled::Fresh))
            }
        }
        p.dim { a href=(past) data-key="h" { "History" } }
    };
    let live = Live::Of(Scheme::Record.address(fact(record, "id")));
    let frame = Frame { title: &beginning(content), tab: "/browse", live, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// Whether there was such a record once.
async fn was_ever(call: &Call, id: String) -> bool {
    call.work(move |cx| cx.reading_records()?.history_of(&id, 1)).await.is_ok()
}

/// What a form is filled with.
#[derive(PartialEq, Eq)]
enum Filled {
    /// What is kept.
    Fresh,
    /// What was typed, and is not saved.
    Typed,
    /// What was typed for a record that is gone.
    Orphaned,
}

fn form(call: &Call, record: &Value, version: &str, filled: &Filled) -> Markup {
    let archived = record["archived"].as_bool().unwrap_or_default();
    let is_dirty = (*filled != Filled::Fresh).then_some("");
    html! {
        form.edit method="post" action=(url(call, "/record", &[])) data-dirty=[is_dirty] {
            input type="hidden" name="id" value=(fact(record, "id"));
            input type="hidden" name="version" value=(version);
            input type="hidden" name="type" value=(fact(record, "type"));
            input type="hidden" name="status" value=(fact(&record["task_metadata"], "status"));
            label.block { span.hidden { "Memory" } textarea name="content" rows="6" dir="auto" { "\n" (fact(record, "content")) } }
            label { "Tags " input name="tags" value=(tags(record).join(", ")); }
            label { "Category " input name="category" value=(fact(record, "category")); }
            label {
                "Importance "
                select name="importance" {
                    @for value in ["high", "medium", "low"] {
                        option value=(value) selected[value == fact(record, "importance")] { (value) }
                    }
                }
            }
            p.actions {
                @if *filled == Filled::Orphaned {
                    button.main name="act" value="record_add" { "Add as a new record" }
                } @else {
                    button.main name="act" value="record_update" { "Save" } " "
                    @if archived { button name="act" value="record_restore" { "Bring back" } }
                    @else { button name="act" value="record_archive" { "Archive" } } " "
                    button.danger name="act" value="record_delete" { "Delete" }
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Sent {
    id: String,
    version: String,
    content: String,
    #[serde(default)]
    tags: String,
    #[serde(default)]
    category: String,
    importance: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    act: String,
}

/// Handles the form.
pub(super) async fn save(call: Call) -> Result<Response> {
    let sent: Sent = sent(&call).await?;
    let is_typed = ["record_update", "record_add"].contains(&sent.act.as_str());
    match acted(&call, &sent).await {
        Ok(next) => led_to(&next),
        Err(error) if error.kind() == Kind::Conflict => conflict(&call, &sent).await,
        Err(error) if error.kind() == Kind::NotFound && is_typed => Ok(orphaned(&call, &sent)),
        Err(error) if matches!(error.kind(), Kind::Invalid | Kind::Full) && is_typed => {
            Ok(refused(&call, &sent, &error))
        }
        Err(error) => Err(error),
    }
}

/// Does what the form asks for, and returns the page to go to next.
async fn acted(call: &Call, sent: &Sent) -> Result<String> {
    let guarded = json!({"id": sent.id, "expect": sent.version});
    let listed = |word| Ok(url(call, "/browse/records", &[("done", word)]));
    match sent.act.as_str() {
        "record_archive" => {
            call.verb("record_archive", json!({"ids": [sent.id], "expect": sent.version})).await?;
            listed("archived")
        }
        "record_restore" => call.verb("record_restore", guarded).await.and_then(|_| listed("restored")),
        "record_delete" => call.verb("record_delete", guarded).await.and_then(|_| listed("deleted")),
        "record_add" => {
            let added = call.verb("record_add", sent.anew()).await?.json();
            let id = added["records"][0]["id"].as_str().unwrap_or_default();
            Ok(url(call, "/record", &[("id", id), ("done", "added")]))
        }
        _ => {
            let id = sent.id.clone();
            let there = call.work(move |cx| Ok(cx.reading_records()?.view(&id)?.record)).await?;
            let mut update = json!({
                "id": sent.id, "expect": sent.version, "content": with_ends_of(&there.content, &sent.content),
                "category": sent.category, "importance": sent.importance,
            });
            // Tags that were not edited are not split again, as one may contain a comma.
            if sent.tags != there.tags.join(", ") {
                update["tags"] = sent.tag_list().collect();
            }
            call.verb("record_update", update).await?;
            Ok(url(call, "/record", &[("id", &sent.id), ("done", "saved")]))
        }
    }
}

/// Shows what was typed into a record that someone has deleted meanwhile.
fn orphaned(call: &Call, sent: &Sent) -> Response {
    let past = url(call, "/history", &[("address", &Scheme::Record.address(&sent.id))]);
    let body = html! {
        h1 { "The record was deleted while you edited it" }
        p {
            "Nothing of yours is lost: add it as a new record, or bring the old one back from "
            a href=(past) target="_blank" { "its history" } "."
        }
        (form(call, &sent.laid_over(&sent.itself()), "", &Filled::Orphaned))
    };
    Frame { title: "A record that is gone", tab: "/browse", ..Frame::default() }.around(call, &body)
}

/// Shows what was typed and could not be saved, so that it can be mended.
fn refused(call: &Call, sent: &Sent, error: &Error) -> Response {
    let filled = if sent.act == "record_add" { Filled::Orphaned } else { Filled::Typed };
    let body = html! {
        h1 { "Edit a record" }
        p.warning role="status" { (sentence(error.message())) " Nothing was saved." }
        (form(call, &sent.laid_over(&sent.itself()), &sent.version, &filled))
    };
    Frame { title: "Edit a record", tab: "/browse", ..Frame::default() }.around(call, &body)
}

/// Shows both states after someone else was faster.
async fn conflict(call: &Call, sent: &Sent) -> Result<Response> {
    let got = match call.verb("record_get", json!({"id": sent.id})).await {
        Err(error) if error.kind() == Kind::NotFound => return Ok(orphaned(call, sent)),
        got => got?.json(),
    };
    let (theirs, mine) = (&got["record"], sent.laid_over(&got["record"]));
    let body = html! {
        h1 { "Someone else was faster" }
        p { "The record was changed while you edited it. Combine what should stay, and save that." }
        (side_by_side(&said(theirs), &said(&mine), &Sides { left: "There now", right: "Yours" }))
        h2 { "Yours" }
        (form(call, &mine, got["version"].as_str().unwrap_or_default(), &Filled::Typed))
    };
    let frame = Frame { title: "Conflict in a record", tab: "/browse", ..Frame::default() };
    Ok(frame.around(call, &body))
}

impl Sent {
    /// The record with the form's values in place of its own.
    fn laid_over(&self, record: &Value) -> Value {
        let mut mine = record.clone();
        mine["content"] = self.content.replace("\r\n", "\n").into();
        mine["category"] = self.category.as_str().into();
        mine["importance"] = self.importance.as_str().into();
        if self.tags != tags(record).join(", ") {
            mine["tags"] = self.tag_list().collect();
        }
        mine
    }

    /// The values that the form holds but the user cannot edit.
    fn itself(&self) -> Value {
        json!({"id": self.id, "type": self.kind, "task_metadata": {"status": self.status}})
    }

    /// The form's values as a new record.
    fn anew(&self) -> Value {
        let mut new = json!({
            "content": self.content.replace("\r\n", "\n"), "importance": self.importance,
            "tags": self.tag_list().collect::<Vec<_>>(),
        });
        let told = [("type", &self.kind), ("category", &self.category), ("status", &self.status)];
        // The form does not know what a blocked task waits for.
        for (name, value) in told.into_iter().filter(|(_, value)| !["", "blocked"].contains(&value.as_str()))
        {
            new[name] = value.as_str().into();
        }
        new
    }

    fn tag_list(&self) -> impl Iterator<Item = &str> {
        self.tags.split(',').map(str::trim).filter(|tag| !tag.is_empty())
    }
}

/// All that the form shows of a record, as a text that can be compared.
fn said(record: &Value) -> String {
    let mut text = fact(record, "content").trim_end().to_owned();
    for (title, value) in [
        ("Tags", tags(record).join(", ")),
        ("Category", fact(record, "category").to_owned()),
        ("Importance", fact(record, "importance").to_owned()),
    ] {
        text.push_str(&format!("\n{title}: {value}"));
    }
    text
}

fn fact<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}
