//! The six file operations, their errors, batches, and that an edit touches nothing but its span.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod batch;
mod splice;

use std::sync::Arc;

use memgrove::backend::{Note, Version};
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::memory::{Done, Plan};
use memgrove::shapes::files::{self, Limits, Operation, Outcome, Viewed};
use memgrove::{Error, Kind, Locator, Memory, Result, Store};

/// Files in memory, with the operations as a caller makes them.
struct Files {
    memory: Memory,
    limits: Limits,
}

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

impl Files {
    fn new() -> Self {
        let memory = Memory::new(Store::new(Ram::default()), Arc::new(ManualClock::default()));
        Files { memory, limits: Limits::default() }
    }

    fn holding(files: &[(&str, &str)]) -> Self {
        let made = Files::new();
        for (path, content) in files {
            made.create(path, content).expect("a free place");
        }
        made
    }

    fn apply<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        plan: impl FnMut(&Store) -> Result<Plan<T>>,
    ) -> Result<Done<T>> {
        self.memory.apply(Note::default(), plan)
    }

    fn create(&self, path: &str, content: &str) -> Result<Done<Outcome>> {
        self.apply(|store| files::create(store, &at(path), content.into(), &self.limits))
    }

    fn replace(&self, path: &str, old: &str, new: &str) -> Result<Done<Outcome>> {
        self.apply(|store| files::replace(store, &at(path), old, new, None, &self.limits))
    }

    fn insert(&self, path: &str, line: usize, text: &str) -> Result<Done<Outcome>> {
        self.apply(|store| files::insert(store, &at(path), line, text, None, &self.limits))
    }

    fn delete(&self, path: &str) -> Result<Done<Outcome>> {
        self.apply(|store| files::delete(store, &at(path), None))
    }

    fn rename(&self, from: &str, to: &str) -> Result<Done<Outcome>> {
        self.apply(|store| files::rename(store, &at(from), &at(to), None))
    }

    fn batch(&self, operations: &str) -> Result<Done<Vec<Outcome>>> {
        let operations: Vec<Operation> = serde_json::from_str(operations).expect("operations as JSON");
        self.apply(|store| files::batch(store, &operations, &self.limits))
    }

    fn view(&self, path: &str) -> Result<Viewed> {
        files::view(self.memory.store(), &at(path))
    }

    fn text(&self, path: &str) -> String {
        self.memory.store().read(&at(path)).expect("a text")
    }

    fn version(&self, path: &str) -> Version {
        self.memory.store().read_bytes(&at(path)).expect("a file").version
    }

    fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let plan = |store: &Store| files::write(store, &at(path), bytes.to_vec(), None, &self.limits);
        self.apply(plan).expect("a place for bytes");
    }

    /// Everything there is, for "nothing was changed".
    fn everything(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let store = self.memory.store();
        let all = store.list_all(&Locator::root()).expect("a listing").into_iter();
        all.map(|info| (info.locator.key().to_owned(), store.read_bytes(&info.locator).ok().map(|c| c.bytes)))
            .collect()
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T>, kind: Kind, code: &str) -> Error {
    let error = result.expect_err("a refusal");
    assert_eq!((error.kind(), error.code_name()), (kind, Some(code)), "{error}");
    error
}

// The specification's own tests, in its order and with its names.

#[test]
fn create_and_view_file() {
    let files = Files::holding(&[("/test.txt", "hello")]);
    let Viewed::File { bytes, version } = files.view("/test.txt").unwrap() else { panic!("a file") };
    assert_eq!(bytes, b"hello");
    assert_eq!(version, files.version("/test.txt"));
}

#[test]
fn str_replace() {
    let files = Files::holding(&[("/test.txt", "hello world")]);
    files.replace("/test.txt", "world", "universe").unwrap();
    assert_eq!(files.text("/test.txt"), "hello universe");
}

#[test]
fn insert_at_line() {
    let files = Files::holding(&[("/test.txt", "line1\nline3")]);
    files.insert("/test.txt", 2, "line2").unwrap();
    assert_eq!(files.text("/test.txt"), "line1\nline2\nline3");
}

#[test]
fn delete_file() {
    let files = Files::holding(&[("/test.txt", "hello")]);
    files.delete("/test.txt").unwrap();
    refused(files.view("/test.txt"), Kind::NotFound, "FILE_NOT_FOUND");
}

#[test]
fn rename_file() {
    let files = Files::holding(&[("/old.txt", "hello")]);
    files.rename("/old.txt", "/new.txt").unwrap();
    assert_eq!(files.text("/new.txt"), "hello");
    refused(files.view("/old.txt"), Kind::NotFound, "FILE_NOT_FOUND");
}

#[test]
fn view_directory() {
    let files = Files::holding(&[("/dir/file1.txt", "a"), ("/dir/file2.txt", "b"), ("/dir/deep/c", "c")]);
    let Viewed::Folder { entries } = files.view("/dir").unwrap() else { panic!("a folder") };
    let names: Vec<&str> = entries.iter().map(|info| info.locator.name()).collect();
    assert_eq!(names, ["deep", "file1.txt", "file2.txt"]);
    assert!(matches!(files.view("/").unwrap(), Viewed::Folder { entries } if entries.len() == 1));
}

#[test]
fn create_existing_file_throws() {
    let files = Files::holding(&[("/test.txt", "hello")]);
    let error = refused(files.create("/test.txt", "world"), Kind::Exists, "FILE_EXISTS");
    assert_eq!(error.message(), "`test.txt` already exists");
    assert_eq!(files.text("/test.txt"), "hello");
}

#[test]
fn str_replace_with_non_unique_string_throws() {
    let files = Files::holding(&[("/test.txt", "hello hello")]);
    let error = refused(files.replace("/test.txt", "hello", "hi"), Kind::Invalid, "STRING_NOT_UNIQUE");
    assert_eq!(error.message(), "`test.txt` contains the text to replace 2 times, on line 1");
    assert_eq!(files.text("/test.txt"), "hello hello");
}

// What the specification leaves open.

#[test]
fn replace_says_why_it_did_nothing() {
    let files = Files::holding(&[("a.md", "one\ntwo\none\n\none aaa"), ("crlf.md", "one\r\ntwo\r\n")]);
    let check = |path, old, code, message: &str, hint: &str| {
        let error = refused(files.replace(path, old, "new"), Kind::Invalid, code);
        assert_eq!(error.message(), message);
        assert!(error.hint_text().is_some_and(|text| text.contains(hint)), "{:?}", error.hint_text());
    };
    check(
        "a.md",
        "one",
        "STRING_NOT_UNIQUE",
        "`a.md` contains the text to replace 3 times, on lines 1, 3, 5",
        "until it is unique",
    );
    check("a.md", "aa", "STRING_NOT_UNIQUE", "`a.md` contains the text to replace 2 times, on line 5", "");
    check("a.md", "One", "STRING_NOT_FOUND", "`a.md` does not contain the text to replace", "exact");
    check("a.md", "", "STRING_NOT_FOUND", "the text to replace in `a.md` is empty", "insert at a line");
    check(
        "crlf.md",
        "one\ntwo",
        "STRING_NOT_FOUND",
        "`crlf.md` does not contain the text to replace",
        "CRLF",
    );
}

#[test]
fn a_text_that_is_everywhere_is_refused_quickly() {
    let files = Files::holding(&[("a.md", &"a\n".repeat(500_000))]);
    let error = refused(files.replace("a.md", "a", "b"), Kind::Invalid, "STRING_NOT_UNIQUE");
    assert!(error.message().contains("1000 times or more, on lines 1, 2, 3"), "{error}");
    assert!(error.message().ends_with("20, …"), "{error}");
}

#[test]
fn a_replacement_is_never_read_as_a_pattern() {
    let files = Files::holding(&[("a.md", "cost: x")]);
    files.replace("a.md", "x", "$& $1 $$ \\0").unwrap();
    assert_eq!(files.text("a.md"), "cost: $& $1 $$ \\0");
    files.replace("a.md", " $& $1 $$ \\0", "").unwrap();
    assert_eq!(files.text("a.md"), "cost:");
}

#[test]
fn insert_follows_the_lines_of_the_specification() {
    let check = |before: &str, line: usize, text: &str, after: &str| {
        let files = Files::holding(&[("a.md", before)]);
        let done = files.insert("a.md", line, text).unwrap();
        assert_eq!(files.text("a.md"), after, "{before:?} at {line} with {text:?}");
        let path = at("a.md");
        assert_eq!(done.outcome, Outcome::Edited { path, size: after.len() as u64, line });
    };
    check("# Kitchen\n\nBudget: $50k\n\nEnd\n", 5, "Timeline: Q1 2026\n", {
        "# Kitchen\n\nBudget: $50k\n\nTimeline: Q1 2026\nEnd\n"
    });
    check("a\nb\n", 1, "x", "x\na\nb\n");
    check("a\nb\n", 3, "x", "a\nb\nx\n");
    check("a\nb\n", 4, "x", "a\nb\n\nx");
    check("a\nb", 3, "x", "a\nb\nx");
    check("a\nb", 3, "x\n", "a\nb\nx\n");
    check("a\nb", 2, "x\ny", "a\nx\ny\nb");
    check("a\nb", 2, "x\n\n", "a\nx\n\nb");
    check("a\nb", 2, "", "a\n\nb");
    check("", 1, "x", "x\n");
    check("", 2, "x", "\nx");
    check("a\r\nb\r\n", 2, "x\ny", "a\r\nx\r\ny\r\nb\r\n");
    check("a\r\nb", 3, "x", "a\r\nb\r\nx");
    check("a\r\nb\nc", 2, "x", "a\r\nx\r\nb\nc");
    check("a\r\nb\nc", 3, "x", "a\r\nb\nx\nc");
    check("\u{feff}a\nb", 1, "x", "\u{feff}x\na\nb");
}

#[test]
fn insert_outside_the_file_is_refused() {
    let files = Files::holding(&[("a.md", "a\nb\n")]);
    for line in [0, 5, usize::MAX] {
        let error = refused(files.insert("a.md", line, "x"), Kind::Invalid, "INVALID_LINE");
        assert_eq!(error.message(), format!("`a.md` has no line {line} to insert at"));
        assert_eq!(error.hint_text(), Some("lines are counted from 1: use 1 to 3 (the end)"));
    }
    assert_eq!(files.text("a.md"), "a\nb\n");
}

#[test]
fn folders_are_deleted_when_empty_and_renamed_whole() {
    let files = Files::holding(&[("dir/a.md", "a"), ("dir/deep/b.md", "b")]);
    let error = refused(files.delete("dir"), Kind::Invalid, "DIRECTORY_NOT_EMPTY");
    assert_eq!(error.message(), "the folder `dir` is not empty");
    files.rename("dir", "far/away").unwrap();
    assert_eq!(files.text("far/away/deep/b.md"), "b");
    refused(files.rename("far", "far/away/in"), Kind::Invalid, "INVALID_PATH");
    refused(files.rename("far", "far"), Kind::Exists, "FILE_EXISTS");
    files.delete("far/away/deep/b.md").unwrap();
    files.delete("far/away/deep").unwrap();
    refused(files.view("far/away/deep"), Kind::NotFound, "FILE_NOT_FOUND");
}

#[test]
fn a_wrong_kind_of_place_is_refused() {
    let files = Files::holding(&[("dir/a.md", "a")]);
    let before = files.everything();
    refused(files.create("dir", "x"), Kind::Exists, "FILE_EXISTS");
    refused(files.create("", "x"), Kind::Exists, "FILE_EXISTS");
    refused(files.create("dir/a.md/b", "x"), Kind::Invalid, "NOT_DIRECTORY");
    refused(files.rename("dir/a.md", "dir/a.md/b"), Kind::Invalid, "NOT_DIRECTORY");
    refused(files.rename("dir/a.md", "dir"), Kind::Exists, "FILE_EXISTS");
    refused(files.replace("dir", "a", "b"), Kind::Invalid, "IS_DIRECTORY");
    refused(files.insert("dir", 1, "b"), Kind::Invalid, "IS_DIRECTORY");
    refused(files.insert("", 1, "b"), Kind::Invalid, "IS_DIRECTORY");
    refused(files.delete(""), Kind::Invalid, "INVALID_PATH");
    refused(files.rename("", "x"), Kind::Invalid, "INVALID_PATH");
    refused(files.rename("nope", "x"), Kind::NotFound, "FILE_NOT_FOUND");
    refused(files.delete("nope"), Kind::NotFound, "FILE_NOT_FOUND");
    assert_eq!(files.everything(), before);
}

#[test]
fn an_absent_file_is_answered_with_the_nearest_one() {
    let files = Files::holding(&[("files/projects/silica.md", ""), ("files/people/ada.md", "")]);
    let check = |path: &str, hint: &str| {
        let error = refused(files.view(path), Kind::NotFound, "FILE_NOT_FOUND");
        assert_eq!(error.hint_text(), Some(hint), "{path}");
        refused(files.replace(path, "a", "b"), Kind::NotFound, "FILE_NOT_FOUND");
    };
    check("files/projects/silcia.md", "did you mean `files/projects/silica.md`?");
    check("files/projects/Silica.MD", "did you mean `files/projects/silica.md`?");
    check("files/project", "did you mean `files/projects`?");
    check("files/ada.md", "did you mean `files/people/ada.md`?");
    check("files/nowhere/silica", "did you mean `files/projects/silica.md`?");
    check("files/projects/rust.md", "`memgrove file view` shows what is there");
}

#[test]
fn bytes_that_are_no_text_are_kept_and_left_alone() {
    let files = Files::new();
    let bytes = b"%PDF\0\xff\xfe\r\n";
    files.write_bytes("doc.pdf", bytes);
    refused(files.replace("doc.pdf", "PDF", "x"), Kind::Invalid, "NOT_TEXT");
    refused(files.insert("doc.pdf", 1, "x"), Kind::Invalid, "NOT_TEXT");
    assert!(matches!(files.view("doc.pdf").unwrap(), Viewed::File { bytes: there, .. } if there == bytes));
}

#[test]
fn a_file_that_would_be_too_large_is_refused() {
    let mut files = Files::holding(&[("a.md", "0123456789")]);
    files.limits = Limits { file_bytes_max: 12 };
    let error = refused(files.create("b.md", "0123456789abc"), Kind::Invalid, "TOO_LARGE");
    assert_eq!(error.message(), "`b.md` would have 13 bytes, and a file has at most 12");
    assert_eq!(error.hint_text(), Some("split it into several files"));
    refused(files.replace("a.md", "9", "9abc"), Kind::Invalid, "TOO_LARGE");
    refused(files.insert("a.md", 1, "ab"), Kind::Invalid, "TOO_LARGE");
    refused(files.batch(r#"[{"type":"write","path":"a.md","content":"0123456789abc"}]"#), Kind::Invalid, {
        "TOO_LARGE"
    });
    files.replace("a.md", "9", "9ab").unwrap();
    assert_eq!(files.text("a.md"), "0123456789ab");
}

#[test]
fn an_expected_version_that_is_not_there_is_a_conflict() {
    let files = Files::holding(&[("a.md", "one"), ("dir/b.md", "b")]);
    let (seen, limits) = (files.version("a.md"), Limits::default());
    files.replace("a.md", "one", "two").unwrap();
    let before = files.everything();
    let a = &at("a.md");
    let conflict = |result: Result<Done<Outcome>>| refused(result, Kind::Conflict, "VERSION_MISMATCH");
    conflict(files.apply(|store| files::replace(store, a, "two", "x", Some(&seen), &limits)));
    conflict(files.apply(|store| files::replace(store, a, "gone", "x", Some(&seen), &limits)));
    conflict(files.apply(|store| files::insert(store, a, 1, "x", Some(&seen), &limits)));
    conflict(files.apply(|store| files::delete(store, a, Some(&seen))));
    conflict(files.apply(|store| files::rename(store, a, &at("c.md"), Some(&seen))));
    conflict(files.apply(|store| files::write(store, a, vec![], Some(&seen), &limits)));
    conflict(files.apply(|store| files::write(store, &at("new.md"), vec![], Some(&seen), &limits)));
    let gone = conflict(files.apply(|store| files::delete(store, &at("nope.md"), Some(&seen))));
    assert!(gone.message().starts_with("`nope.md` is gone"), "{gone}");
    refused(
        files.apply(|store| files::delete(store, &at("dir"), Some(&seen))),
        Kind::Invalid,
        "IS_DIRECTORY",
    );
    assert_eq!(files.everything(), before);
    let now = files.version("a.md");
    files.apply(|store| files::replace(store, a, "two", "three", Some(&now), &limits)).unwrap();
    assert_eq!(files.text("a.md"), "three");
}

#[test]
fn what_others_write_in_between_is_never_overwritten() {
    let files = Files::holding(&[("a.md", "one\n")]);
    let mut rounds = 0;
    let done = files.apply(|store| {
        let plan = files::insert(store, &at("a.md"), 1, "mine", None, &files.limits);
        rounds += 1;
        if rounds < 3 {
            let theirs = store.read(&at("a.md"))? + "theirs\n";
            store.write(&at("a.md"), &theirs)?;
        }
        plan
    });
    assert!(done.is_ok());
    assert_eq!((rounds, files.text("a.md").as_str()), (3, "mine\none\ntheirs\ntheirs\n"));
}
