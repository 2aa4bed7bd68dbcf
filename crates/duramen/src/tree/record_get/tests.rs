use std::collections::BTreeMap;

use crate::{Collection, CommitOptions, Database, ErrorKind, KeyKind, Revision};

const RECORDS: u64 = 5_000;

fn json(key: u64, n: u64) -> String {
    format!(r#"{{"n":{n},"text":"record {key} of many","tags":[{{"t":{key}}},{n}]}}"#)
}

/// More than are read whole, in segments.
fn stored(db: &Database) -> Collection {
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let all = (0..RECORDS).map(|key| (key, json(key, 0)));
    records.put_many(all, &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    records
}

fn is_remembered(records: &Collection, key: u64) -> bool {
    let tree = records.document().tree();
    let recent = tree.cells.memory().recent();
    let name = records.key_kind().text_of(&key.into()).unwrap().into_owned();
    let ordinal = recent.ordinal(tree.number, name.as_bytes());
    ordinal.is_some_and(|ordinal| recent.record(tree.number, ordinal, u32::MAX).is_some())
}

#[test]
fn a_record_of_a_segment_is_remembered_until_a_commit_changes_it() {
    let db = Database::memory().unwrap();
    let records = stored(&db);
    let how = CommitOptions::default();
    assert!(!is_remembered(&records, 7));
    let first = records.get(7).unwrap().unwrap();
    assert!(is_remembered(&records, 7) && first.json == json(7, 0));
    assert_eq!(records.get(7).unwrap().unwrap(), first);
    records.put(8, json(8, 1), &how).unwrap();
    assert!(is_remembered(&records, 7), "another record was changed");
    let patch = r#"[{"op":"replace","path":"/tags/0/t","value":1}]"#;
    records.patch(7, patch, &how).unwrap();
    assert!(!is_remembered(&records, 7));
    let second = records.get(7).unwrap().unwrap();
    assert!(second.version == 2 && second.json.ends_with(r#""tags":[{"t":1},0]}"#));
    db.checkpoint().unwrap();
    assert_eq!(records.get(7).unwrap().unwrap(), second);
    assert!(is_remembered(&records, 7));
    assert_eq!(records.get_at(7, Revision(2)).unwrap().unwrap(), first);
    records.delete(7, &how).unwrap();
    assert_eq!((records.get(7).unwrap(), is_remembered(&records, 7)), (None, false));
    assert_eq!(records.get_at(7, Revision(3)).unwrap().unwrap(), second);
}

#[test]
fn no_record_of_a_deleted_collection_is_given_whatever_is_in_memory() {
    for has_checkpoint in [false, true] {
        let db = Database::memory().unwrap();
        let records = db.create_collection("r", KeyKind::U64).unwrap();
        let how = CommitOptions::default();
        for key in 0..4_u64 {
            records.put(key, json(key, 0), &how).unwrap();
        }
        if has_checkpoint {
            db.checkpoint().unwrap();
            records.put(1, json(1, 1), &how).unwrap();
        }
        records.put(9, json(9, 0), &how).unwrap();
        assert_eq!(records.get(9).unwrap().unwrap().json, json(9, 0));
        assert_eq!(records.get(1).unwrap().unwrap().version, 1 + u64::from(has_checkpoint));
        db.delete_document("r", &how).unwrap();
        for key in [1, 9, 10] {
            assert_eq!(records.get(key).unwrap_err().kind(), ErrorKind::NotFound);
        }
        assert_eq!(records.get("no key").unwrap_err().kind(), ErrorKind::NotFound);
        records.put(2, json(2, 2), &how).unwrap();
        assert_eq!((records.get(1).unwrap(), records.get(9).unwrap()), (None, None));
        assert_eq!(records.get("no key").unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(records.get(2).unwrap().unwrap().json, json(2, 2));
    }
}

#[test]
fn what_is_read_is_what_was_committed_whatever_is_remembered() {
    let db = Database::memory().unwrap();
    let records = stored(&db);
    let how = CommitOptions::default();
    let mut model: BTreeMap<u64, String> = (0..RECORDS).map(|key| (key, json(key, 0))).collect();
    let mut past = Vec::new();
    let mut random = 9_u64;
    for step in 0..600 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = (random >> 40) % 40;
        match (random >> 33) % 7 {
            0 => {
                records.put(key, json(key, step), &how).unwrap();
                model.insert(key, json(key, step));
            }
            1 if model.remove(&key).is_some() => drop(records.delete(key, &how).unwrap()),
            2 if step % 5 == 0 => {
                db.checkpoint().unwrap();
                past.push((records.head().unwrap(), model.clone()));
            }
            3 => {
                // What is staged and taken back is seen by nobody.
                let mut transaction = db.transaction();
                let staged = json(key, 1_000);
                transaction.put_record("records", &key.into(), staged.as_bytes()).unwrap();
                drop(transaction);
            }
            _ => {}
        }
        let read = |key: u64| records.get(key).unwrap().map(|record| record.json);
        assert_eq!(read(key).as_ref(), model.get(&key), "{key} in step {step}");
        assert_eq!(read(key).as_ref(), model.get(&key), "{key} again in step {step}");
        if let Some((head, model)) = past.last() {
            let found = head.get(key).unwrap().map(|record| record.json);
            assert_eq!(found.as_ref(), model.get(&key), "{key} as of before step {step}");
        }
    }
    assert!(past.len() > 3);
}
