//! What an error means to each surface: one table.

use memgrove::{Error, Kind};
use serde::Serialize;

/// What one kind of error means outside the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// The kind.
    pub(crate) kind: Kind,
    /// The program's exit code.
    pub(crate) exit: u8,
    /// The status of an HTTP answer.
    pub(crate) http: u16,
    /// What the caller should do.
    pub(crate) advice: &'static str,
}

/// Every kind of error, in the order of the documentation.
pub(crate) const STATUS: [Status; 10] = [
    status(Kind::Invalid, 2, 400, "fix the request"),
    status(Kind::NotFound, 3, 404, "name something that exists"),
    status(Kind::Exists, 4, 409, "choose another name, or pass its version"),
    status(Kind::Conflict, 5, 412, "read again, then retry"),
    status(Kind::Unsupported, 6, 501, "use another backend"),
    status(Kind::Corrupt, 7, 500, "run `memgrove doctor`"),
    status(Kind::Busy, 8, 503, "retry unchanged"),
    status(Kind::Full, 9, 507, "archive or delete something"),
    status(Kind::Denied, 10, 403, "check permissions"),
    status(Kind::Io, 1, 500, "fix the machine"),
];

const fn status(kind: Kind, exit: u8, http: u16, advice: &'static str) -> Status {
    Status { kind, exit, http, advice }
}

/// The exit code for a kind of error.
pub(crate) fn exit_code(kind: Kind) -> u8 {
    STATUS.iter().find(|status| status.kind == kind).map_or(1, |status| status.exit)
}

/// The status of an HTTP answer for a kind of error.
pub(crate) fn http_status(kind: Kind) -> u16 {
    STATUS.iter().find(|status| status.kind == kind).map_or(500, |status| status.http)
}

/// An error as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    error: ReportedError<'a>,
}

#[derive(Debug, Serialize)]
struct ReportedError<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> From<&'a Error> for Report<'a> {
    fn from(error: &'a Error) -> Self {
        let error = ReportedError {
            kind: error.kind().name(),
            code: error.code_name(),
            message: error.message(),
            hint: error.hint_text(),
        };
        Report { error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_exit_code() {
        let mut codes: Vec<u8> = STATUS.iter().map(|status| status.exit).collect();
        assert_eq!(STATUS.map(|status| status.kind), Kind::ALL);
        codes.sort_unstable();
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn an_error_is_reported_whole() {
        let error =
            Error::new(Kind::NotFound, "`a.md` is not there").code("FILE_NOT_FOUND").hint("look around");
        let told = serde_json::to_value(Report::from(&error)).expect("a report is plain data");
        assert_eq!(
            told,
            serde_json::json!({"error": {"kind": "not_found", "code": "FILE_NOT_FOUND",
                "message": "`a.md` is not there", "hint": "look around"}})
        );
    }
}
