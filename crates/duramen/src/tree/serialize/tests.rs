use crate::{CommitOptions, Database, Document, Format, JsonPointer, Revision};

const ROWS: usize = 700;

/// A row of one of several kinds: what is printed by columns stands beside what is not.
fn row(index: usize, round: usize) -> String {
    let long = "long ".repeat(1_000);
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    let many: Vec<String> = (0..40).map(|at| format!("\"{at} \\n {}\"", index + round)).collect();
    let is_changed = index % 97 == round || (round == 3 && index.is_multiple_of(2));
    let number = if is_changed { round * 1_000 + index } else { index };
    match index % 11 {
        0 => format!("{{\"id\":{number},\"name\":\"row {index}\",\"price\":{index}.50}}"),
        1 => format!("{{\"id\":{number},\"name\":\"a \\\"{number}\\\" \\u0001\",\"price\":null}}"),
        2 => format!("{{\"name\":\"only\",\"in\":{{\"x\":[{number},true],\"y\":{{}}}},\"id\":-0}}"),
        3 => format!("{{\"id\":1e400,\"tags\":[],\"in\":{{\"x\":[[],[{{}}]],\"z\":{number}}}}}"),
        4 if index.is_multiple_of(3) => {
            format!("{{\"id\":{index},\"text\":\"{long}{number}\",\"end\":1}}")
        }
        5 if index.is_multiple_of(5) => format!("[{deep},{number}]"),
        6 => format!("[{}]", many.join(",")),
        7 if is_changed => "\"was an object\"".to_owned(),
        8 => format!("{number}.25"),
        _ => format!("{{\"id\":{number},\"name\":\"same\",\"price\":1.5}}"),
    }
}

/// The values of some rounds: rows change, go, come and move.
fn values(opening: &str, closing: &str, row: impl Fn(usize, usize) -> String) -> Vec<String> {
    let mut order: Vec<usize> = (0..ROWS).collect();
    let mut values = Vec::new();
    for round in 0..6 {
        match round {
            1 => drop(order.drain(100..103)),
            2 => order.extend(ROWS..ROWS + 150),
            4 => order.splice(300..300, [2_000, 2_001, 2_006]).for_each(drop),
            5 => order.swap(20, 500),
            _ => {}
        }
        let rows: Vec<String> = order.iter().map(|&index| row(index, round)).collect();
        values.push(format!("{opening}{}{closing}", rows.join(",")));
    }
    values
}

/// Both ways of printing: into memory at once, and piece by piece.
fn read(document: &Document, revision: u64) -> [String; 2] {
    let snapshot = document.at(Revision(revision)).unwrap();
    let mut pieces = Vec::new();
    snapshot.write_json(&JsonPointer::root(), &Format::default(), &mut pieces).unwrap();
    [snapshot.to_json().unwrap(), String::from_utf8(pieces).unwrap()]
}

fn check(values: &[String]) {
    for checkpoints in [0b00_0000, 0b11_1111, 0b00_1001] {
        let db = Database::memory().unwrap();
        let document = db.create_document("d").unwrap();
        for (round, value) in values.iter().enumerate() {
            document.put(value, &CommitOptions::default()).unwrap();
            if checkpoints & 1 << round != 0 {
                db.checkpoint().unwrap();
            }
            for (revision, value) in (1..).zip(&values[..=round]) {
                for found in read(&document, revision) {
                    assert!(found == *value, "revision {revision} after round {round}");
                }
            }
        }
    }
}

#[test]
fn arrays_of_rows_of_many_kinds_come_back_as_they_were_at_each_revision() {
    check(&values("{\"rows\":[", "],\"end\":true}", row));
}

#[test]
fn maps_of_rows_of_many_kinds_come_back_as_they_were_at_each_revision() {
    let entry = |index, round| format!("\"key \\\" {index}\":{}", row(index, round));
    check(&values("{", "}", entry));
}

/// A row that is printed flat, or one of those in between that are not.
fn flat_row(index: usize, round: usize) -> String {
    let number = if index % 89 == round { index + 1_000_000 * round } else { index };
    let escaped = if index.is_multiple_of(37) { "\\n" } else { "" };
    match index % 64 {
        0..30 => format!("{{\"id\":{number},\"name\":\"row {index}{escaped}\",\"on\":true}}"),
        30..50 => format!("{{\"id\":-{number},\"on\":{}}}", index.is_multiple_of(2)),
        50..53 => format!("{{\"id\":{number},\"price\":{index}.5,\"name\":null}}"),
        53 => "{}".to_owned(),
        54 => format!("\"row {number}\""),
        55..58 => format!("{{\"id\":{number},\"name\":\"{}\"}}", "wide".repeat(index)),
        _ => format!("{{\"name\":\"\",\"id\":{number}}}"),
    }
}

#[test]
fn flat_rows_come_back_as_they_were_at_each_revision() {
    check(&values("{\"rows\":[", "],\"end\":true}", flat_row));
    check(&values("{", "}", |index, round| format!("\"{index}\":{}", flat_row(index, round))));
}

#[test]
fn flat_rows_of_arrays_behind_each_other_come_back() {
    let rows = |at: usize, round: usize| {
        let rows: Vec<String> = (0..60 + at % 9).map(|row| flat_row(at * row, round)).collect();
        format!("[{}]", rows.join(","))
    };
    check(&values(
        "[",
        "]",
        |index, round| if index < 90 { rows(index, round) } else { "0".into() },
    ));
}
