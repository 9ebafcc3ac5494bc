//! Records: a table with filters, and one of them with a form.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::address::Scheme;
use memgrove::{Kind, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::browse::Shape;
use super::compare::{Sides, side_by_side, with_ends_of};
use super::edit::sent;
use super::frame::{Frame, Live, at_base, base, dated, done, many, may_write, url};
use super::led_to;
use super::markdown::{Here, rendered};
use crate::http::Call;
use crate::portion;

/// The most records of one page of the table.
const LISTED_MAX: usize = 300;

/// The most pages: a number that is typed may be any.
const PAGES_MAX: usize = 10_000;

/// The filters that are choices: name, title, values.
const CHOICES: &[(&str, &str, &[&str])] = &[
    ("type", "Type", &["core", "learning", "task"]),
    ("importance", "Importance", &["high", "medium", "low"]),
    ("status", "Status", &["in-progress", "blocked", "completed"]),
    ("archived", "Archived", &["no", "only", "any"]),
    ("sort", "Order", &["updated", "created", "oldest", "accessed", "used", "importance"]),
];

/// The filters that are words: name, title.
const WORDS: &[(&str, &str)] = &[("text", "Words"), ("tag", "Tag"), ("category", "Category")];

/// The table.
pub(super) async fn list(shape: &'static Shape, call: Call) -> Result<Response> {
    let given: std::collections::BTreeMap<String, String> = call.query()?;
    let value = |name: &str| given.get(name).map(|value| value.trim()).unwrap_or_default();
    let page = value("page").parse::<usize>().unwrap_or(1).clamp(1, PAGES_MAX);
    let limit = json!(LISTED_MAX * page);
    let mut asked = Map::from_iter([("limit".to_owned(), limit), ("budget".to_owned(), json!(1_u64 << 40))]);
    let names = CHOICES.iter().map(|(name, ..)| *name).chain(["text", "category"]);
    asked.extend(
        names.filter(|name| !value(name).is_empty()).map(|name| (name.to_owned(), json!(value(name)))),
    );
    if !value("tag").is_empty() {
        asked.insert("tags".to_owned(), json!([value("tag")]));
    }
    let answer = call.verb("record_list", Value::Object(asked)).await?.json();
    let records = answer["records"].as_array().map(Vec::as_slice).unwrap_or_default();
    let records = records.get(LISTED_MAX * (page - 1)..).unwrap_or_default();
    let total = answer["total"].as_u64().unwrap_or_default() as usize;
    let other = |number: usize| {
        let number = number.to_string();
        let kept = given.iter().filter(|(name, _)| !["page", "done"].contains(&name.as_str()));
        let mut query: Vec<(&str, &str)> =
            kept.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        query.push(("page", &number));
        url(&call, "/browse/records", &query)
    };
    let body = html! {
        (done(value("done")))
        div.heading { h1 { (shape.title) } p.facts { (total) } }
        form.filters method="get" action=(url(&call, "/browse/records", &[])) {
            @for (name, title) in WORDS {
                label { (title) " " input type="search" name=(name) value=(value(name)); }
            }
            @for (name, title, values) in CHOICES { (choice(name, title, values, value(name))) }
            button { "Show" }
        }
        @if records.is_empty() { p.empty { "No records." } } @else { (table(&base(&call), records)) }
        @if total > LISTED_MAX {
            p.actions {
                @if page > 1 { a.button href=(other(page - 1)) { "Earlier page" } }
                @if total > LISTED_MAX * page { a.button href=(other(page + 1)) { "Next page" } }
                span.dim { "page " (page) " of " (total.div_ceil(LISTED_MAX)) }
            }
        }
    };
    let frame = Frame { title: shape.title, tab: "/browse", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn choice(name: &str, title: &str, values: &[&str], chosen: &str) -> Markup {
    let has_default = ["archived", "sort"].contains(&name);
    html! {
        label {
            (title) " "
            select name=(name) {
                @if !has_default { option value="" { "all" } }
                @for value in values { option value=(value) selected[*value == chosen] { (value) } }
            }
        }
    }
}

fn table(base: &str, records: &[Value]) -> Markup {
    let text = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    html! {
        table.wide {
            thead { tr { th { "Memory" } th { "Type" } th { "Importance" } th { "Tags" } th { "Changed" } } }
            tbody {
                @for record in records {
                    @let content = text(record, "content");
                    tr data-item="" {
                        td {
                            a href=(at_base(base, "/record", &[("id", &text(record, "id"))])) {
                                (beginning(&content))
                            }
                        }
                        td {
                            span.kind { (text(record, "type")) }
                            @if let Some(status) = record["task_metadata"]["status"].as_str() {
                                " " span.dim { (status) }
                            }
                        }
                        td {
                            span data-importance=(text(record, "importance")) { (text(record, "importance")) }
                        }
                        td { @for tag in tags(record) { span.tag { "#" (tag) } " " } }
                        td { (dated(&text(record, "updated_at"))) }
                    }
                }
            }
        }
    }
}

fn tags(record: &Value) -> Vec<&str> {
    record["tags"].as_array().map(|tags| tags.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

fn beginning(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(140) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "(empty)".to_owned(),
        None => line,
    }
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    #[serde(default)]
    done: String,
}

/// One record.
pub(super) async fn one(call: Call) -> Result<Response> {
    let Asked { id, done: said } = call.query()?;
    let got = call.verb("record_get", json!({"id": id})).await?.json();
    let (record, version) = (&got["record"], got["version"].as_str().unwrap_or_default());
    let content = record["content"].as_str().unwrap_or_default();
    let base = base(&call);
    let body = html! {
        (done(&said))
        nav.crumbs aria-label="Place" { a href=(url(&call, "/browse/records", &[])) { "Records" } }
        div.heading { h1 { (beginning(content)) } }
        p.facts {
            span.kind { (fact(record, "type")) }
            span data-importance=(fact(record, "importance")) { (fact(record, "importance")) }
            @for tag in tags(record) { span.tag { "#" (tag) } }
            (dated(fact(record, "updated_at")))
            span { "≈ " (portion::tokens(content)) " tokens" }
            span { "read " (many(record["access_count"].as_u64().unwrap_or_default() as usize, "time", "times")) }
            code { (Scheme::Record.address(fact(record, "id"))) }
        }
        article { (rendered(content, &Here { base: &base, at: "records/" })) }
        @if may_write(&call) {
            details.edit open[said == "edit"] {
                summary data-key="e" { "Edit" }
                (form(&call, record, version, content))
            }
        }
        p.dim {
            a href=(url(&call, "/history", &[("at", got["file"].as_str().unwrap_or("records"))])) data-key="h" {
                "History of its file"
            }
        }
    };
    let frame = Frame { title: &beginning(content), tab: "/browse", ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn form(call: &Call, record: &Value, version: &str, content: &str) -> Markup {
    let archived = record["archived"].as_bool().unwrap_or_default();
    html! {
        form.edit method="post" action=(url(call, "/record", &[])) {
            input type="hidden" name="id" value=(fact(record, "id"));
            input type="hidden" name="version" value=(version);
            label.block { span.hidden { "Memory" } textarea name="content" rows="6" { "\n" (content) } }
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
                button.main name="act" value="record_update" { "Save" } " "
                @if archived { button name="act" value="record_restore" { "Bring back" } }
                @else { button name="act" value="record_archive" { "Archive" } } " "
                button.danger name="act" value="record_delete" { "Delete" }
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
    act: String,
}

/// What the form asks for.
pub(super) async fn save(call: Call) -> Result<Response> {
    let sent: Sent = sent(&call).await?;
    let guarded = json!({"id": sent.id, "expect": sent.version});
    let listed = |word| url(&call, "/browse/records", &[("done", word)]);
    let (done, next) = match sent.act.as_str() {
        "record_archive" => {
            let ids = json!({"ids": [sent.id], "expect": sent.version});
            (call.verb("record_archive", ids).await, listed("archived"))
        }
        "record_restore" => (call.verb("record_restore", guarded).await, listed("restored")),
        "record_delete" => (call.verb("record_delete", guarded).await, listed("deleted")),
        _ => {
            let id = sent.id.clone();
            let there = call.work(move |cx| Ok(cx.records()?.view(&id)?.record)).await?;
            let mut update = json!({
                "id": sent.id, "expect": sent.version, "content": with_ends_of(&there.content, &sent.content),
                "category": sent.category, "importance": sent.importance,
            });
            // What was not touched is not taken apart.
            if sent.tags != there.tags.join(", ") {
                update["tags"] = sent.tag_list().collect();
            }
            let next = url(&call, "/record", &[("id", &sent.id), ("done", "saved")]);
            (call.verb("record_update", update).await, next)
        }
    };
    match done {
        Ok(_) => led_to(&next),
        Err(error) if error.kind() == Kind::Conflict => conflict(&call, &sent).await,
        Err(error) => Err(error),
    }
}

/// Someone else was faster.
async fn conflict(call: &Call, sent: &Sent) -> Result<Response> {
    let got = call.verb("record_get", json!({"id": sent.id})).await?.json();
    let (theirs, mine) = (&got["record"], sent.laid_over(&got["record"]));
    let body = html! {
        h1 { "Someone else was faster" }
        p { "The record was changed while you edited it. Put together what shall stay, and save that." }
        (side_by_side(&said(theirs), &said(&mine), &Sides { left: "There now", right: "Yours" }))
        h2 { "Yours" }
        (form(call, &mine, got["version"].as_str().unwrap_or_default(), fact(&mine, "content")))
    };
    let frame = Frame { title: "Conflict in a record", tab: "/browse", ..Frame::default() };
    Ok(frame.around(call, &body))
}

impl Sent {
    /// The record with what the form says of it.
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
