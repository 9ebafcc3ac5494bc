//! The reader of records on any bytes: it never fails, and never loses a byte.
//!
//! `make fuzz`

#![no_main]

use libfuzzer_sys::fuzz_target;
use memgrove::clock::Timestamp;
use memgrove::shapes::records::table::Table;
use memgrove::shapes::records::{Limits, RecordType};
use memgrove::text::jsonl;

fuzz_target!(|bytes: &[u8]| {
    let whole: Vec<u8> = jsonl::lines(bytes).flat_map(|line| bytes[line.whole].to_vec()).collect();
    assert_eq!(whole, bytes);
    for line in jsonl::lines(bytes) {
        let body = &bytes[line.body];
        let mut at = 0;
        for piece in jsonl::pieces(body) {
            let (jsonl::Piece::Object(range) | jsonl::Piece::Damaged(range, _)) = piece;
            assert!(range.start >= at && range.end <= body.len());
            at = range.end;
        }
    }
    let limits = Limits::default();
    let table = Table::parse(RecordType::Task, bytes.to_vec(), None, &limits, Timestamp::UNIX_EPOCH);
    for row in &table.rows {
        let object = table.object(row);
        table.reading(row, &limits);
        let spliced = jsonl::spliced(object, &[("content", Some("\"x\"".into())), ("new", Some("1".into()))]);
        jsonl::members(&spliced);
    }
});
