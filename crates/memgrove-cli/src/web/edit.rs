//! Editing a memory by hand: the version is checked, and if someone else was faster, both texts are shown
//! side by side.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::backend::Version;
use memgrove::error::code;
use memgrove::shapes::files::{self, Limits};
use memgrove::shapes::graph::Removal;
use memgrove::shapes::records::reading::unfit;
use memgrove::{Error, Kind, Locator, Result, Store};
use serde::Deserialize;

use super::browse::crumbs;
use super::compare::{Sides, side_by_side, with_ends_of};
use super::frame::{Frame, Live, done, may_write, sentence, url, with_code};
use super::in_graph::Thing;
use super::read::file_meant;
use super::{led_to, nodes, place};
use crate::address::{address_of, was_ever};
use crate::context::{Context, Guard};
use crate::http::Call;
use crate::page::counted;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    under: String,
    #[serde(default)]
    done: String,
    /// Whether what was to be deleted had changed.
    #[serde(default)]
    changed: String,
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

/// What a form is filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// What is kept, or nothing.
    Fresh,
    /// What was typed, and is not saved.
    Typed,
}

/// The form.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { under, done: said, changed } = call.query()?;
    if !may_write(&call) {
        return Err(Error::new(Kind::Denied, "nothing may be changed here").hint("it can still be read"));
    }
    if call.query::<place::Which>()?.is_none() {
        let under = if under.is_empty() { "files".to_owned() } else { under };
        let sent = Sent {
            at: format!("{under}/"),
            version: String::new(),
            text: String::new(),
            reason: String::new(),
        };
        let body = html! { h1 { "New file" } (form(&call, &sent, "Create", Filled::Fresh)) };
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
        @if !changed.is_empty() {
            p.warning role="status" { "It was changed since you looked, so it was not deleted. This is what it is now." }
        }
        (crumbs(&call, &at))
        h1 { "Edit " (at.name()) }
        (form(&call, &sent, "Save", Filled::Fresh))
        (deletion(&call, &at, &sent.version, html! { button.danger { "Delete" } }))
    };
    let title = format!("Edit {}", at.name());
    let frame = Frame { title: &title, tab: "/browse", live: Live::Warn(address), ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// How many bytes a text takes in a sent form, with room for the other fields.
fn sent_bytes(text: &str) -> usize {
    const REST: usize = 16 * 1024;
    // A browser sends a line break as an escaped CR LF, and escapes most signs as three characters.
    let bytes = text.bytes().map(|byte| match byte {
        b'\n' => 6,
        byte if byte.is_ascii_alphanumeric() || b" *-._".contains(&byte) => 1,
        _ => 3,
    });
    bytes.sum::<usize>() + REST
}

/// A form that deletes a memory.
fn deletion(call: &Call, at: &Locator, version: &str, buttons: Markup) -> Markup {
    html! {
        form.actions method="post" action=(url(call, "/delete", &[])) {
            input type="hidden" name="at" value=(at);
            input type="hidden" name="version" value=(version);
            (buttons)
        }
    }
}

fn form(call: &Call, sent: &Sent, button: &str, filled: Filled) -> Markup {
    let is_new = sent.version.is_empty();
    let rows = sent.text.lines().count().clamp(12, 40).to_string();
    let back = match is_new {
        true => url(call, "/browse", &[]),
        false => url(call, "/read", &[("at", &sent.at)]),
    };
    html! {
        form.edit method="post" action=(url(call, "/edit", &[])) data-dirty=[(filled == Filled::Typed).then_some("")] {
            @if is_new {
                label { "Place " input name="at" value=(sent.at) required spellcheck="false"; }
            } @else {
                input type="hidden" name="at" value=(sent.at);
            }
            input type="hidden" name="version" value=(sent.version);
            label.block {
                span.hidden { "Text" }
                // HTML ignores the first line break after the tag.
                textarea name="text" rows=(rows) spellcheck="true" dir="auto" autofocus[!is_new] { "\n" (sent.text) }
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
    let at = match call.work(move |cx| place::addressed(cx, &named)).await {
        Err(error) if is_of_form(&error) => return Ok(refused(&call, &sent, &error)),
        at => at?,
    };
    let (place, given) = (at.clone(), sent.clone());
    let saved = call.work(move |cx| saved(cx, &place, given)).await;
    match saved {
        Ok(Saved::Written) => led_to(&url(&call, "/read", &[("at", at.key()), ("done", "saved")])),
        Ok(Saved::Same) => led_to(&url(&call, "/read", &[("at", at.key()), ("done", "same")])),
        Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Exists) => {
            let there = at.clone();
            match call.work(move |cx| current(cx, &there)).await? {
                // Nobody else was faster: what is in the way has another name.
                None if sent.version.is_empty() => Ok(refused(&call, &sent, &error)),
                theirs => Ok(conflict(&call, &at, sent, theirs)),
            }
        }
        Err(error) if is_of_form(&error) => Ok(refused(&call, &sent, &error)),
        Err(error) => Err(error),
    }
}

/// Whether the error is about what was typed, so that the user can mend it.
fn is_of_form(error: &Error) -> bool {
    matches!(error.kind(), Kind::Invalid | Kind::Full | Kind::NotFound)
}

/// Refuses a text that its shape could not read. Lines that were unreadable before may stay.
fn checked(at: &Locator, old: &str, text: &str) -> Result<()> {
    let wrong = |place: String, why: String| Err(Error::new(Kind::Invalid, format!("{place} {why}")));
    let parsed = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text);
    let not_json = |error: serde_json::Error| format!("is not JSON: {error}");
    match at.name().rsplit_once('.') {
        _ if at.key().starts_with("files/") => Ok(()),
        Some((_, "json")) => match parsed(text) {
            Err(error) => wrong("it".to_owned(), not_json(error)),
            Ok(_) => Ok(()),
        },
        Some((_, "jsonl")) => {
            let is_new = |line: &str| !line.trim().is_empty() && !old.lines().any(|old| old == line);
            let mut lines = text.lines().enumerate().filter(|(_, line)| is_new(line));
            lines.try_for_each(|(number, line)| {
                let unfit = || unfit(at.name(), line).map(|why| format!("cannot be a record: {why}"));
                match parsed(line).err().map(not_json).or_else(unfit) {
                    Some(why) => wrong(format!("line {}", number + 1), why),
                    None => Ok(()),
                }
            })
        }
        _ => Ok(()),
    }
}

/// Refuses a new file that no page would show.
fn shown_somewhere(cx: &Context, at: &Locator) -> Result<()> {
    let is_shown =
        ["files/", "notes/", "knowledge/entities/"].iter().any(|folder| at.key().starts_with(folder));
    let is_its_own = Thing::named(at).is_none();
    if is_shown || is_its_own && was_ever(cx, at)? {
        return Ok(());
    }
    let what = format!("a new file `{at}` would not be a memory");
    let hint =
        "create a file under files/, or a note under notes/; what was deleted is restored from its history";
    Err(Error::new(Kind::Invalid, what).hint(hint))
}

/// Shows what was typed and could not be saved, so that it can be mended.
fn refused(call: &Call, sent: &Sent, error: &Error) -> Response {
    let sent = Sent { text: sent.text.replace("\r\n", "\n"), ..sent.clone() };
    let is_new = sent.version.is_empty();
    let (title, button) = match is_new {
        true => ("New file".to_owned(), "Create"),
        false => (format!("Edit {}", sent.at.rsplit('/').next().unwrap_or_default()), "Save"),
    };
    let at = Locator::new(&sent.at).ok().filter(|_| !is_new);
    let body = html! {
        @if let Some(at) = &at { (crumbs(call, at)) }
        h1 { (title) }
        p.warning role="status" {
            (with_code(&sentence(error.message())))
            @if let Some(hint) = error.hint_text() { " " (with_code(&sentence(hint))) }
            " Nothing was saved."
        }
        (form(call, &sent, button, Filled::Typed))
    };
    Frame { title: &title, tab: "/browse", ..Frame::default() }.around(call, &body)
}

/// The fields of a form.
pub(super) async fn sent<T: serde::de::DeserializeOwned>(call: &Call) -> Result<T> {
    let body = call.body().await?;
    serde_urlencoded::from_bytes(&body)
        .map_err(|error| Error::new(Kind::Invalid, format!("invalid form: {error}")))
}

enum Saved {
    Written,
    Same,
}

fn saved(cx: &Context, at: &Locator, sent: Sent) -> Result<Saved> {
    let there = current(cx, at)?;
    let text = with_ends_of(there.as_ref().map_or("", |(text, _)| text), &sent.text);
    if there.as_ref().is_some_and(|(old, _)| *old == text) {
        return Ok(Saved::Same);
    }
    checked(at, there.as_ref().map_or("", |(text, _)| text), &text)?;
    let reason = Some(sent.reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    let guard = Guard { reason, ..Guard::default() };
    let seen = Some(sent.version).filter(|version| !version.is_empty()).map(Version::new);
    match (&seen, Thing::known(cx, at)?) {
        (Some(seen), Some(thing)) => {
            thing.write(cx, &guard, text, seen.clone())?;
            return Ok(Saved::Written);
        }
        (None, _) if there.is_none() => shown_somewhere(cx, at)?,
        _ => {}
    }
    let plan = |store: &Store| match &seen {
        None => files::create(store, at, text.clone().into_bytes(), &Limits::default()),
        Some(seen) => files::write(store, at, text.clone().into_bytes(), Some(seen), &Limits::default()),
    };
    cx.writing()?.apply(cx.note("edit", &guard), plan)?;
    cx.touched([at])?;
    Ok(Saved::Written)
}

/// Shows what someone else wrote meanwhile and what was sent, side by side.
fn conflict(call: &Call, at: &Locator, sent: Sent, theirs: Option<(String, String)>) -> Response {
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
            "Nothing of yours is lost: combine what should stay, and save that."
        }
        (side_by_side(&text, &mine, &Sides { left: "There now", right: "Yours" }))
        h2 { "Yours" }
        (form(call, &kept, "Save mine instead", Filled::Typed))
    };
    let title = format!("Conflict in {}", at.name());
    Frame { title: &title, tab: "/browse", ..Frame::default() }.around(call, &body)
}

#[derive(Deserialize)]
struct Doomed {
    at: String,
    version: String,
    /// Whether connections go with a node.
    #[serde(default)]
    cascade: String,
}

/// Deletes a memory, if it is still what was seen.
pub(super) async fn delete(call: Call) -> Result<Response> {
    let Doomed { at, version, cascade } = sent(&call).await?;
    let at = place::located(&at)?;
    let list = super::browse::shape_of(&at).map_or("files", |shape| shape.name);
    let how = if cascade.is_empty() { Removal::Refuse } else { Removal::Cascade };
    let (there, seen) = (at.clone(), Version::new(version.as_str()));
    match call.work(move |cx| deleted(cx, &there, how, seen)).await {
        Ok(()) => led_to(&url(&call, &format!("/browse/{list}"), &[("done", "deleted")])),
        Err(error) if error.kind() == Kind::Conflict => {
            led_to(&url(&call, "/edit", &[("at", at.key()), ("changed", "yes")]))
        }
        Err(error) if error.code_name() == Some(code::NODE_CONNECTED) => {
            connected(&call, &at, &version).await
        }
        Err(error) => Err(error),
    }
}

fn deleted(cx: &Context, at: &Locator, how: Removal, seen: Version) -> Result<()> {
    if let Some(thing) = Thing::known(cx, at)? {
        return thing.delete(cx, how, seen);
    }
    let note = cx.note("delete", &Guard::default());
    cx.writing()?.apply(note, |store| files::delete(store, at, Some(&seen)))?;
    cx.touched([at])
}

/// Asks first whether a node's connections are to be deleted with it, because they would lead nowhere.
async fn connected(call: &Call, at: &Locator, version: &str) -> Result<Response> {
    let there = at.clone();
    let around = call.work(move |cx| nodes::around(cx, &there)).await?;
    let total = around.as_ref().map_or(0, |around| around.total);
    let title = around.map_or_else(|| at.name().to_owned(), |around| nodes::title(&around.node));
    let connections = counted(total, "connection", "connections");
    let body = html! {
        (crumbs(call, at))
        h1 { (title) " has " (connections) }
        p { "A connection needs both of its ends. The timeline can bring all of it back." }
        (deletion(call, at, version, html! {
            button.danger name="cascade" value="yes" { "Delete it with its " (connections) }
            a.button href=(url(call, "/read", &[("at", at.key())])) data-key="Escape" { "Keep it" }
        }))
    };
    let frame = Frame { title: &title, tab: "/browse", ..Frame::default() };
    Ok(frame.around(call, &body))
}
