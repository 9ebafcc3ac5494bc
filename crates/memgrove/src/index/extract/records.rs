//! How a file of records becomes documents: one for each record that can be read.

use std::fmt::Write as _;

use super::{Source, links, speaker};
use crate::address::Scheme;
use crate::clock::Timestamp;
use crate::document::{Document, Shape, Weight};
use crate::shapes::records::{Importance, Limits, RecordType, TaskMetadata, kind_of_file, reading};
use crate::text::jsonl::{Piece, lines, pieces};

const ARCHIVE: &str = "archive/";
/// Records that were made within this time of each other belong together.
const SESSION_MS: i64 = 30 * 60 * 1000;

/// Whether a file holds records, be they archived or not.
pub(super) fn wants(inside: &str) -> bool {
    kind(inside).is_some()
}

fn kind(inside: &str) -> Option<RecordType> {
    let kind = kind_of_file(inside.rsplit('/').next()?)?;
    (inside.starts_with(ARCHIVE) || inside == kind.file()).then_some(kind)
}

/// Returns the text of a record. That of a task also says its status, what it waits for, and its outcome.
fn text_of(mut content: String, task: Option<&TaskMetadata>) -> String {
    let Some(task) = task else { return content };
    let _ = write!(content, "\n[{}]", task.status);
    let blockers = task.blockers.as_deref().unwrap_or_default();
    if !blockers.is_empty() {
        let _ = write!(content, " waits for: {}", blockers.join("; "));
    }
    if let Some(outcome) = &task.outcome {
        let _ = write!(content, " outcome: {outcome}");
    }
    content
}

/// Returns the tags of a record; the status of a task is one of them.
fn tags_of(mut tags: Vec<String>, task: Option<&TaskMetadata>) -> Vec<String> {
    let status = task.map(|task| task.status.name()).filter(|status| !tags.iter().any(|tag| tag == status));
    tags.extend(status.map(str::to_owned));
    tags
}

/// The documents of one file.
pub(super) fn documents(source: &Source<'_>) -> Vec<Document> {
    let Some(kind) = kind(source.inside) else { return Vec::new() };
    let limits = Limits::unbounded();
    let mut found: Vec<Document> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let (mut session, mut last) = (0, i64::MIN);
    for line in lines(source.bytes) {
        for piece in pieces(&source.bytes[line.body.clone()]) {
            let Piece::Object(span) = piece else { continue };
            let span = line.body.start + span.start..line.body.start + span.end;
            let Ok(text) = std::str::from_utf8(&source.bytes[span.clone()]) else { continue };
            let Ok(read) = reading::read(text, kind, &limits, Timestamp::UNIX_EPOCH) else { continue };
            // If several records share an id, the first counts.
            if !seen.insert(read.record.id.clone()) {
                continue;
            }
            let (made, record) = (read.moments[0], read.record);
            if made.saturating_sub(last) > SESSION_MS {
                session += 1;
            }
            last = made;
            let address = Scheme::Record.address(&record.id);
            let subject = speaker(&record.content).unwrap_or_default().to_owned();
            found.push(Document {
                // Turns of a conversation belong together; facts that were stored one after another do
                // not.
                group: if subject.is_empty() { address.clone() } else { format!("{}#{session}", source.key) },
                address,
                shape: Shape::Records,
                kind: kind.name().to_owned(),
                title: record.category.unwrap_or_default(),
                subject,
                links: links(&record.content),
                text: text_of(record.content, record.task_metadata.as_ref()),
                tags: tags_of(record.tags, record.task_metadata.as_ref()),
                date: Timestamp::from_millisecond(read.moments[1])
                    .ok()
                    .filter(|date| *date != Timestamp::UNIX_EPOCH),
                importance: match record.importance {
                    Importance::High => Weight::High,
                    Importance::Medium => Weight::Medium,
                    Importance::Low => Weight::Low,
                },
                uses: record.access_count,
                name: String::new(),
                hidden: record.archived || source.inside.starts_with(ARCHIVE),
                holds: None,
                span,
            });
        }
    }
    found
}
