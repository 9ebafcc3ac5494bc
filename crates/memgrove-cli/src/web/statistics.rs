//! How much there is, how much happens, and who does it.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::Zoned;
use jiff::civil::Date;
use maud::html;
use memgrove::backend::{FileKind, Info, Past};
use memgrove::{Locator, Result};

use super::browse::{SHAPES, counts};
use super::charts::{lying, standing};
use super::frame::{Frame, Live, at_base, base};
use crate::address::is_memory;
use crate::http::Call;
use crate::journals::Journals;
use crate::page::counted;
use crate::portion;

/// How many days the chart of changes shows.
const DAYS: i64 = 30;
/// How many changes are looked at.
const CHANGES_MAX: usize = 5_000;
/// How many of the largest memories are named.
const LARGEST: usize = 8;

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let counts = counts(&call).await?;
    let past = call.work(|cx| Journals::reading(cx)?.history(None, None, CHANGES_MAX, true)).await?;
    let (mut files, now) = call
        .work(|cx| {
            let memory = cx.reading()?;
            let mut files: Vec<Info> = Vec::new();
            for shape in SHAPES {
                files.extend(memory.store().list_all(&Locator::new(shape.folder)?)?);
            }
            Ok((files, memory.clock().now().to_zoned(cx.environment().zone.zone())))
        })
        .await?;
    files.retain(|info| info.kind == FileKind::File && is_memory(&info.locator));
    files.sort_by_key(|info| std::cmp::Reverse(info.size));
    let bytes: u64 = files.iter().map(|info| info.size).sum();
    let shapes: Vec<(String, u64, String)> = counts
        .iter()
        .map(|count| {
            (
                count.shape.title.to_owned(),
                count.bytes,
                format!("{}, {}", counted(count.files, "file", "files"), portion::size(count.bytes)),
            )
        })
        .collect();
    let statistics = call.verb("record_stats", serde_json::json!({})).await?.json();
    let by_type = &statistics["statistics"]["by_type"];
    let kinds = ["core", "learning", "task"].map(|kind| {
        let count = by_type[kind].as_u64().unwrap_or_default();
        (kind.to_owned(), count, count.to_string())
    });
    let base = base(&call);
    let body = html! {
        h1 { "Statistics" }
        dl.figures {
            div { dt { @if files.len() == 1 { "file" } @else { "files" } } dd { (files.len()) } }
            div { dt { "in all" } dd { (portion::size(bytes)) } }
            div { dt { "about, in tokens" } dd { (thousands(bytes / 4)) } }
            div { dt { @if past.len() == 1 { "change" } @else { "changes" } } dd { (past.len()) @if past.len() == CHANGES_MAX { "+" } } }
        }
        div.panels {
            section {
                h2 { "Changes, the last " (DAYS) " days" } (standing("Changes a day", &by_day(&past, &now)))
            }
            section { h2 { "By shape" } (lying(&shapes)) }
            section {
                h2 { "Who writes" }
                @if past.is_empty() { p.dim { "Nobody yet." } } @else { (lying(&by_actor(&past))) }
            }
            section { h2 { "Records" } (lying(&kinds)) }
            section {
                h2 { "Largest" }
                ul.plain {
                    @for info in files.iter().take(LARGEST) {
                        li {
                            a href=(at_base(&base, "/read", &[("at", info.locator.key())])) { (info.locator) } span.facts {
                                (portion::size(info.size))
                            }
                        }
                    }
                }
                @if files.is_empty() { p.empty { "Nothing yet." } }
            }
        }
    };
    let frame = Frame { title: "Statistics", tab: "/statistics", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn by_day(past: &[Past], now: &Zoned) -> Vec<(String, usize)> {
    let back = |days: i64| now.date().saturating_sub(jiff::Span::new().days(days));
    let mut days: BTreeMap<Date, usize> = (0..DAYS).map(|days| (back(days), 0)).collect();
    for change in past {
        if let Some(count) = days.get_mut(&now.time_zone().to_datetime(change.time).date()) {
            *count += 1;
        }
    }
    days.into_iter().map(|(day, count)| (day.to_string(), count)).collect()
}

fn by_actor(past: &[Past]) -> Vec<(String, u64, String)> {
    let mut actors: BTreeMap<String, u64> = BTreeMap::new();
    for change in past {
        let actor = &change.note.actor;
        let name = actor.client.clone().unwrap_or_else(|| actor.origin.name().to_owned());
        *actors.entry(name).or_default() += 1;
    }
    let mut actors: Vec<(String, u64, String)> =
        actors.into_iter().map(|(name, count)| (name, count, count.to_string())).collect();
    actors.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    actors.truncate(10);
    actors
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut told = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(super::thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
