//! Records: a table with filters.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::Result;
use serde_json::{Map, Value, json};

use super::browse::Shape;
use super::frame::{Frame, Live, at_base, base, dated, done, url};
use super::listing::pager;
use crate::http::Call;

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
        (pager(page, total, LISTED_MAX, other))
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
                            a dir="auto" href=(at_base(base, "/record", &[("id", &text(record, "id"))])) {
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

/// The tags of a record.
pub(super) fn tags(record: &Value) -> Vec<&str> {
    record["tags"].as_array().map(|tags| tags.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// What a text begins with, on one line.
pub(super) fn beginning(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(140) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "(empty)".to_owned(),
        None => line,
    }
}
