//! Changing a memory by hand: a version is checked, and when someone else was faster the two texts
//! are shown side by side.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::backend::Version;
use memgrove::error::code;
use memgrove::shapes::files::{self, Limits};
use memgrove::{Error, Kind, Locator, Result, Store};
use serde::Deserialize;
use serde_json::json;

use super::browse::crumbs;
use super::compare::{Sides, side_by_side, with_ends_of};
use super::frame::{Frame, Live, done, may_write, sentence, url};
use super::read::file_meant;
use super::{led_to, place};
use crate::address::address_of;
use crate::context::{Context, Guard};
use crate::http::Call;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    under: String,
    #[serde(default)]
    done: String,
}

/// What the form sends.
#[derive(Debug, Clone, Deserialize)]
struct Sent {
    at: String,
    /// The version that was edited; none for a new file.
    #[serde(default)]
    version: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    reason: String,
}

/// The form.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { under, done: said } = call.query()?;
    if !may_write(&call) {
        return Err(
            Error::new(Kind::Denied, "nothing may be changed here").hint("it can be read all the same")
        );
    }
    if call.query::<place::Which>()?.is_none() {
        let under = if under.is_empty() { "files".to_owned() } else { under };
        let sent = Sent {
            at: format!("{under}/"),
            version: String::new(),
            text: String::new(),
            reason: String::new(),
        };
        let body = html! { h1 { "New file" } (form(&call, &sent, "Create")) };
        let frame = Frame { title: "New file", tab: "/browse", ..Frame::default() };
        return Ok(frame.around(&call, &body));
    }
    let at = match file_meant(&call, "edit").await? {
        Ok(at) => at,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let there = at.clone();
    let (text, version, address) = call
        .work(move |cx| {
            let (text, version) = current(cx, &there)?.ok_or_else(|| memgrove::backend::not_found(&there))?;
            Ok((text, version, address_of(cx, &there)))
        })
        .await?;
    if sent_bytes(&text) > call.served.limits.body_bytes_max {
        let message = format!("`{}` has {} bytes, more than a form can send", at.name(), text.len());
        let hint = format!("edit it elsewhere, or send it whole: PUT /api/content?address={address}");
        return Err(Error::new(Kind::Full, message).code(code::TOO_LARGE).hint(hint));
    }
    let sent = Sent { at: at.key().to_owned(), version, text, reason: String::new() };
    let body = html! {
        (done(&said))
        (crumbs(&call, &at))
        div.heading {
            h1 { "Edit " (at.name()) }
            form.actions method="post" action=(url(&call, "/delete", &[])) {
                input type="hidden" name="at" value=(sent.at);
                input type="hidden" name="version" value=(sent.version);
                button.danger { "Delete" }
            }
        }
        (form(&call, &sent, "Save"))
    };
    let title = format!("Edit {}", at.name());
    let frame = Frame { title: &title, tab: "/browse", live: Live::Warn(address), ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// How much of a form a text takes, with room for the rest of it.
fn sent_bytes(text: &str) -> usize {
    const REST: usize = 16 * 1024;
    // A browser sends line breaks as CR LF, and what is no letter or digit as three characters.
    let bytes = text.bytes().map(|byte| match byte {
        b'\n' => 6,
        byte if byte.is_ascii_alphanumeric() || b" *-._".contains(&byte) => 1,
        _ => 3,
    });
    bytes.sum::<usize>() + REST
}

fn form(call: &Call, sent: &Sent, button: &str) -> Markup {
    let is_new = sent.version.is_empty();
    let rows = sent.text.lines().count().clamp(12, 40).to_string();
    let back = match is_new {
        true => url(call, "/browse", &[]),
        false => url(call, "/read", &[("at", &sent.at)]),
    };
    html! {
        form.edit method="post" action=(url(call, "/edit", &[])) {
            @if is_new {
                label { "Place " input name="at" value=(sent.at) required spellcheck="false"; }
            } @else {
                input type="hidden" name="at" value=(sent.at);
            }
            input type="hidden" name="version" value=(sent.version);
            label.block {
                span.hidden { "Text" }
                // The first line break after the tag does not count.
                textarea name="text" rows=(rows) spellcheck="true" { "\n" (sent.text) }
            }
            label { "Why, for the history " input name="reason" value=(sent.reason) autocomplete="off"; }
            p.actions {
                button.main { (button) } " "
                a.button href=(back) data-key="Escape" { "Cancel" }
            }
        }
    }
}

/// The text that is there and its version.
fn current(cx: &Context, at: &Locator) -> Result<Option<(String, String)>> {
    let Some(content) = cx.reading()?.store().read_optional(at)? else { return Ok(None) };
    let version = content.version.as_str().to_owned();
    match String::from_utf8(content.bytes) {
        Ok(text) if !text.contains('\0') => Ok(Some((text, version))),
        _ => Err(Error::new(Kind::Invalid, format!("`{at}` is not text"))
            .hint("replace it whole: `memgrove file create --from FILE --expect VERSION`")),
    }
}

/// Keeps what the form sent.
pub(super) async fn save(call: Call) -> Result<Response> {
    let sent: Sent = sent(&call).await?;
    let named = sent.at.trim().trim_end_matches('/').to_owned();
    let at = call.work(move |cx| place::addressed(cx, &named)).await?;
    let (place, given) = (at.clone(), sent.clone());
    let saved = call.work(move |cx| saved(cx, &place, given)).await;
    match saved {
        Ok(Saved::Written) => led_to(&url(&call, "/read", &[("at", at.key()), ("done", "saved")])),
        Ok(Saved::Same) => led_to(&url(&call, "/read", &[("at", at.key()), ("done", "same")])),
        Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Exists) => {
            conflict(&call, &at, sent).await
        }
        Err(error) if error.code_name() == Some(NOT_JSON) => Ok(not_json(&call, &at, &sent, &error)),
        Err(error) => Err(error),
    }
}

/// Said of a text that its shape could not read.
const NOT_JSON: &str = "NOT_JSON";

/// Refuses a text in which its shape would find no JSON. A line that was there before may stay as it was.
fn checked(at: &Locator, old: &str, text: &str) -> Result<()> {
    let wrong = |line: usize, error: &serde_json::Error| {
        let place = if line > 0 { format!("line {line}") } else { "it".to_owned() };
        Err(Error::new(Kind::Invalid, format!("{place} is not JSON: {error}")).code(NOT_JSON))
    };
    let parsed = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text);
    match at.name().rsplit_once('.') {
        _ if at.key().starts_with("files/") => Ok(()),
        Some((_, "json")) => parsed(text).map(drop).or_else(|error| wrong(0, &error)),
        Some((_, "jsonl")) => {
            let mut lines = text.lines().enumerate();
            let fits = |line: &str| line.trim().is_empty() || old.lines().any(|old| old == line);
            lines.try_for_each(|(number, line)| match parsed(line) {
                Err(error) if !fits(line) => wrong(number + 1, &error),
                _ => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

/// What was typed, to be mended.
fn not_json(call: &Call, at: &Locator, sent: &Sent, error: &Error) -> Response {
    let sent = Sent { text: sent.text.replace("\r\n", "\n"), ..sent.clone() };
    let body = html! {
        (crumbs(call, at))
        h1 { "Edit " (at.name()) }
        p.warning role="status" { (sentence(error.message())) " Nothing was saved." }
        (form(call, &sent, "Save"))
    };
    let title = format!("Edit {}", at.name());
    Frame { title: &title, tab: "/browse", ..Frame::default() }.around(call, &body)
}

/// The fields of a form.
pub(super) async fn sent<T: serde::de::DeserializeOwned>(call: &Call) -> Result<T> {
    let body = call.body().await?;
    serde_urlencoded::from_bytes(&body)
        .map_err(|error| Error::new(Kind::Invalid, format!("the form does not fit: {error}")))
}

enum Saved {
    Written,
    Same,
}

fn saved(cx: &Context, at: &Locator, sent: Sent) -> Result<Saved> {
    let there = current(cx, at)?;
    let text = with_ends_of(there.as_ref().map_or("", |(text, _)| text), &sent.text);
    if there.as_ref().is_some_and(|(old, _)| *old == text) && !sent.version.is_empty() {
        return Ok(Saved::Same);
    }
    checked(at, there.as_ref().map_or("", |(text, _)| text), &text)?;
    let reason = Some(sent.reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    let note = cx.note("edit", &Guard { reason, ..Guard::default() });
    let plan = |store: &Store| match sent.version.as_str() {
        "" => files::create(store, at, text.clone().into_bytes(), &Limits::default()),
        version => {
            let version = Version::new(version);
            files::write(store, at, text.clone().into_bytes(), Some(&version), &Limits::default())
        }
    };
    cx.writing()?.apply(note, plan)?;
    cx.touched([at])?;
    Ok(Saved::Written)
}

/// Someone else was faster: what they wrote and what was sent, side by side.
async fn conflict(call: &Call, at: &Locator, sent: Sent) -> Result<Response> {
    let there = at.clone();
    let theirs = call.work(move |cx| current(cx, &there)).await?;
    let mine = sent.text.replace("\r\n", "\n");
    let (text, version) = theirs.unwrap_or_default();
    let is_new = sent.version.is_empty() && !version.is_empty();
    let kept = Sent { at: at.key().to_owned(), version: version.clone(), text: mine.clone(), ..sent };
    let body = html! {
        (crumbs(call, at))
        h1 { @if is_new { (at.name()) " is there already" } @else { "Someone else was faster" } }
        p {
            @if is_new { "Go back and choose another name, or put both together. " }
            @else if version.is_empty() { (at.name()) " was deleted while you edited it. " }
            @else { (at.name()) " was changed while you edited it. " }
            "Nothing of yours is lost: put together what shall stay, and save that."
        }
        (side_by_side(&text, &mine, &Sides { left: "There now", right: "Yours" }))
        h2 { "Yours" }
        (form(call, &kept, "Save mine instead"))
    };
    let title = format!("Conflict in {}", at.name());
    let frame = Frame { title: &title, tab: "/browse", ..Frame::default() };
    Ok(frame.around(call, &body))
}

#[derive(Deserialize)]
struct Doomed {
    at: String,
    version: String,
}

/// Deletes a memory, if it is still what was seen.
pub(super) async fn delete(call: Call) -> Result<Response> {
    let Doomed { at, version } = sent(&call).await?;
    let at = place::located(&at)?;
    let list = super::browse::shape_of(&at).map_or("files", |shape| shape.name);
    if let Some(thing) = place::in_graph(&at) {
        let address = thing.clone();
        let seen = call.work(move |cx| place::seen_in_graph(cx, &address, &at, &version)).await?;
        call.verb("forget", json!({"address": thing, "expect": seen})).await?;
    } else {
        call.work(move |cx| {
            let note = cx.note("delete", &Guard::default());
            let version = Version::new(version);
            cx.writing()?.apply(note, |store| files::delete(store, &at, Some(&version)))?;
            cx.touched([&at])
        })
        .await?;
    }
    led_to(&url(&call, &format!("/browse/{list}"), &[("done", "deleted")]))
}
