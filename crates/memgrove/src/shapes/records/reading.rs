//! How one object is read as a record, whatever its faults: some are corrected, and the others reported.

use serde_json::{Map, Value};

use super::limits::Limits;
use super::rewrite::kind_of_file;
use super::schema::{Importance, Record, RecordType, Status, TaskMetadata, moment, spelled};
use crate::clock::Timestamp;
use crate::text::jsonl;

/// The result of reading an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The record, corrected.
    pub record: Record,
    /// When it was made, changed and read, in milliseconds since the epoch.
    pub moments: [i64; 3],
    /// The members that were corrected, as JSON: setting them repairs the line.
    pub corrections: Vec<Correction>,
    /// Faults that are left alone, because correcting them would lose something.
    pub remarks: Vec<String>,
}

/// One corrected member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The member.
    pub field: &'static str,
    /// Its corrected value, as JSON.
    pub value: String,
    /// What was wrong.
    pub what: String,
}

/// Reads an object in a file of this type.
///
/// # Errors
/// Why it cannot be a record, as the end of a sentence after "line 3".
pub fn read(object: &str, kind: RecordType, limits: &Limits, now: Timestamp) -> Result<Reading, String> {
    let record = match serde_json::from_str::<Record>(object) {
        Ok(record) if record.kind == kind => record,
        _ => return corrected(object, kind, limits, now),
    };
    if let Some(moments) = record.moments()
        && record.faults_beside_times(limits).is_empty()
    {
        return Ok(Reading { record, moments, corrections: Vec::new(), remarks: Vec::new() });
    }
    corrected(object, kind, limits, now)
}

/// Returns why an object cannot be a record in a file of this name; `None` if it can, or if the file is
/// not one of records.
pub fn unfit(file: &str, object: &str) -> Option<String> {
    read(object, kind_of_file(file)?, &Limits::default(), Timestamp::UNIX_EPOCH).err()
}

/// The members of an object, with the corrections made so far.
struct Desk<'a> {
    object: &'a str,
    members: Map<String, Value>,
    corrections: Vec<Correction>,
}

fn corrected(object: &str, kind: RecordType, limits: &Limits, now: Timestamp) -> Result<Reading, String> {
    let members = match serde_json::from_str(object) {
        Ok(Value::Object(members)) => members,
        Ok(_) => return Err("it is not a JSON object".to_owned()),
        Err(error) => return Err(jsonl::Damage::of(&error).to_string()),
    };
    let mut desk = Desk { object, members, corrections: Vec::new() };
    let content = match desk.members.get("content") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(Value::String(_)) => return Err("its `content` is empty".to_owned()),
        Some(_) => return Err("its `content` is not text".to_owned()),
        None => return Err("it has no `content`".to_owned()),
    };
    let id = match desk.members.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        _ => return Err("it has no `id`".to_owned()),
    };
    if desk.members.get("type").and_then(Value::as_str) != Some(kind.name()) {
        desk.correct("type", kind.name(), "is not that of its file");
    }
    let category = desk.category();
    let updated = desk.time("updated_at");
    let accessed = desk.time("accessed_at");
    let created = desk.time("created_at").or(updated).or(accessed).unwrap_or(now);
    let created_at = desk.settled("created_at", created);
    let updated = updated.unwrap_or(created);
    let updated_at = desk.settled("updated_at", updated);
    let accessed_at = desk.settled("accessed_at", accessed.unwrap_or(updated));
    let record = Record {
        id,
        kind,
        content,
        category,
        access_count: desk.count(),
        tags: desk.tags(),
        importance: desk.importance(),
        archived: desk.archived(),
        task_metadata: desk.task(&updated_at),
        created_at,
        updated_at,
        accessed_at,
    };
    let faults = record.faults(limits).into_iter();
    let mut remarks: Vec<String> = faults.map(|(field, what)| format!("its `{field}` {what}")).collect();
    if record.task_metadata.is_none()
        && desk.members.get("task_metadata").is_some_and(|value| !value.is_null())
    {
        remarks.push("its `task_metadata` cannot be understood".to_owned());
    }
    let moments = record.moments().unwrap_or_default();
    Ok(Reading { record, moments, corrections: desk.corrections, remarks })
}

impl Desk<'_> {
    fn correct(&mut self, field: &'static str, value: impl Into<Value>, what: &str) {
        self.correct_as(field, value.into().to_string(), what);
    }

    fn correct_as(&mut self, field: &'static str, value: String, what: &str) {
        let what = match self.members.get(field) {
            None => format!("`{field}` is missing"),
            Some(_) => format!("`{field}` {what}"),
        };
        self.corrections.push(Correction { field, value, what });
    }

    fn category(&mut self) -> Option<String> {
        match self.members.get("category") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => {
                let text = other.to_string();
                self.correct("category", text.clone(), "is not text");
                Some(text)
            }
        }
    }

    /// Reads the moment in a member. One without a zone is taken as UTC, and a number as seconds.
    fn time(&mut self, field: &'static str) -> Option<Timestamp> {
        match self.members.get(field)? {
            Value::String(text) => moment(text).or_else(|| {
                let civil: jiff::civil::DateTime = text.parse().ok()?;
                civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
            }),
            Value::Number(number) => {
                let seconds = number.as_f64().filter(|seconds| seconds.is_finite())?;
                Timestamp::from_millisecond((seconds * 1000.0) as i64).ok()
            }
            _ => None,
        }
    }

    /// Returns the member as it is if it is valid, else the corrected time.
    fn settled(&mut self, field: &'static str, time: Timestamp) -> String {
        if let Some(text) = self.members.get(field).and_then(Value::as_str)
            && moment(text).is_some()
        {
            return text.to_owned();
        }
        let text = spelled(time);
        self.correct(field, text.clone(), "is not a time of ISO 8601 with a zone");
        text
    }

    fn count(&mut self) -> u64 {
        let given = self.members.get("access_count");
        if let Some(count) = given.and_then(Value::as_u64) {
            return count;
        }
        let count = match given {
            Some(Value::Number(number)) => number.as_f64().filter(|count| *count > 0.0).unwrap_or(0.0) as u64,
            Some(Value::String(text)) => text.trim().parse().unwrap_or(0),
            _ => 0,
        };
        self.correct("access_count", count, "is not a count");
        count
    }

    fn tags(&mut self) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        let (tags, right) = match self.members.get("tags") {
            Some(Value::Array(values)) => {
                (values.iter().filter_map(text).collect(), values.iter().all(Value::is_string))
            }
            Some(other) => (text(other).into_iter().collect::<Vec<_>>(), false),
            None => (Vec::new(), false),
        };
        if !right {
            self.correct("tags", tags.clone(), "is not a list of texts");
        }
        tags
    }

    fn importance(&mut self) -> Importance {
        let given = self.members.get("importance").and_then(Value::as_str).unwrap_or("");
        if let Ok(importance) = given.parse() {
            return importance;
        }
        let importance: Importance = given.trim().to_lowercase().parse().unwrap_or_default();
        self.correct("importance", importance.name(), "is not high, medium or low");
        importance
    }

    fn archived(&mut self) -> bool {
        let archived = match self.members.get("archived") {
            Some(Value::Bool(archived)) => return *archived,
            Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            _ => false,
        };
        self.correct("archived", archived, "is not true or false");
        archived
    }

    fn task(&mut self, updated_at: &str) -> Option<TaskMetadata> {
        let given = self.members.get("task_metadata").filter(|value| !value.is_null())?;
        let mut task: TaskMetadata = serde_json::from_value(given.clone()).ok()?;
        if task.status == Status::Completed && task.completed_at.is_none() {
            task.completed_at = Some(updated_at.to_owned());
            // Set within the written metadata, which may have unknown members.
            let written = jsonl::value(self.object, "task_metadata")?;
            let value =
                jsonl::spliced(written, &[("completed_at", Some(Value::from(updated_at).to_string()))]);
            self.correct_as("task_metadata", value, "lacks `completed_at`, though the task is completed");
        }
        Some(task)
    }
}
