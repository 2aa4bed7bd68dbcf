use super::*;
use crate::{CommitOptions, Database, KeyKind, ScanOptions};

/// Records with names and lines around the lengths that are printed flat, and of other states.
fn records() -> Vec<String> {
    let mut all: Vec<String> = [
        "{}",
        r#"{"":0}"#,
        r#"{"a":-9223372036854775808,"b":"","c":true,"d":false}"#,
        r#"{"a":1.50,"b":2e9,"c":123456789012345678901234567890}"#,
        r#"{"a":null,"b":1}"#,
        r#"{"a":"\"quoted\"\n","b":2}"#,
        r#"{"a":1,"b":{"c":"below","d":{"e":[]}},"f":[1,{"g":"h"}]}"#,
        r#"{"a\"b":1,"c":2}"#,
    ]
    .map(str::to_owned)
    .into();
    for len in NAME_BYTES - 6..NAME_BYTES + 2 {
        all.push(format!(r#"{{"{}":-1,"{}":true}}"#, "n".repeat(len), "m".repeat(len)));
    }
    for len in LINE_BYTES - 40..LINE_BYTES + 2 {
        let text = "x".repeat(len);
        all.push(format!(r#"{{"a":"{text}"}}"#));
        all.push(format!(r#"{{"a":"{text}","b":-12345}}"#));
        all.push(format!(r#"{{"a":"{text}","b":false}}"#));
    }
    for len in SINGLE_BYTES - 20..SINGLE_BYTES + 2 {
        all.push(format!(r#"{{"a":"{}","b":-12345}}"#, "y".repeat(len)));
    }
    for len in SINGLE_MEMBERS - 1..SINGLE_MEMBERS + 2 {
        let members: Vec<String> = (0..len).map(|at| format!(r#""m{at}":{at}"#)).collect();
        all.push(format!("{{{}}}", members.join(",")));
    }
    for len in 17..25 {
        all.push(format!(r#"{{"{}":0.5,"{}":7}}"#, "n".repeat(len), "z".repeat(len)));
    }
    all
}

#[test]
fn records_of_whatever_members_are_printed_as_they_were_put() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("records", KeyKind::U64).unwrap();
    let records: Vec<String> = [records(), records()].concat();
    collection.put_many((0..).zip(records.clone()), &CommitOptions::default()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let scanned = collection.scan(&ScanOptions::default()).unwrap();
        let found: Vec<String> = scanned.map(|record| record.unwrap().json).collect();
        assert_eq!(found, records);
        let single = (0..records.len() as u64).map(|key| collection.get(key).unwrap());
        assert!(single.map(|record| record.unwrap().json).eq(found));
    }
}

/// A name is copied as a block where so much is behind it in the schema, and else by itself.
#[test]
fn names_at_the_end_of_the_schema_are_printed_whole() {
    for len in 1..30 {
        let db = Database::memory().unwrap();
        let collection = db.create_collection("records", KeyKind::U64).unwrap();
        let json = format!(r#"{{"{}":1}}"#, "n".repeat(len));
        collection.put(1, &json, &CommitOptions::default()).unwrap();
        assert_eq!(collection.get(1).unwrap().unwrap().json, json);
    }
}

#[test]
fn records_are_printed_as_of_each_revision_whatever_came_since() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("records", KeyKind::U64).unwrap();
    let json = |key: u64, turn: u64| match (key + turn) % 7 {
        0 => format!(r#"{{"a":{key},"b":["{turn}"]}}"#),
        1 => format!(r#"{{"b":"other shape {turn}"}}"#),
        _ => format!(r#"{{"a":{key},"b":"{turn}","c":true}}"#),
    };
    let mut expected: Vec<Vec<(u64, String)>> = vec![Vec::new()];
    for turn in 0..6 {
        let mut records = expected[expected.len() - 1].clone();
        let born = 40 * turn..40 * (turn + 1);
        let changed = (0..40 * turn).filter(|key| (key / 3 + turn) % 5 == 0);
        let saved: Vec<_> = changed.chain(born).map(|key| (key, json(key, turn))).collect();
        for (key, json) in &saved {
            records.retain(|(other, _)| other != key);
            records.push((*key, json.clone()));
        }
        records.sort();
        expected.push(records);
        collection.put_many(saved, &CommitOptions::default()).unwrap();
        if turn == 3 {
            db.checkpoint().unwrap();
        }
    }
    for (revision, records) in (1..).zip(&expected[1..]) {
        let then = collection.at(crate::Revision(revision)).unwrap();
        let scanned = then.scan(&ScanOptions::default()).unwrap();
        let found: Vec<_> = scanned.map(|record| record.unwrap()).collect();
        assert_eq!(found.len(), records.len());
        for (found, (key, json)) in found.iter().zip(records) {
            assert_eq!((&found.key, &found.json), (&crate::Key::U64(*key), json));
            assert_eq!(then.get(*key).unwrap().as_ref(), Some(found));
        }
    }
}

#[test]
fn integers_are_written_as_others_write_them_and_only_where_there_is_room() {
    let powers = (0..19).map(|power| 10_i64.pow(power));
    let near = powers.flat_map(|power| [power - 1, power, power + 1, 7 * (power / 3), power / 2]);
    let mixed = (1..3_000_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 64));
    let all = near.chain(mixed.map(u64::cast_signed)).chain([i64::MIN, i64::MAX]);
    for value in all.flat_map(|value| [value, value.wrapping_neg()]) {
        let expected = value.to_string();
        for room in [INTEGER_BYTES, INTEGER_BYTES + 9, expected.len(), expected.len() - 1] {
            let mut written = vec![0xaa; room];
            let len = write_integer(value, &mut written);
            let fits = (room >= expected.len()).then_some(expected.len());
            assert_eq!(len, fits, "{value} in {room} bytes");
            if let Some(len) = len {
                assert_eq!(&written[..len], expected.as_bytes());
            }
        }
    }
}
