use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use crate::bulk::tests::{arb_json, held, is_sound, nodes, reopened};
use crate::io::MemoryDevice;
use crate::{
    BulkOptions, BulkProgress, Collection, CommitOptions, Database, DocumentOptions, ErrorKind,
    Filter, IndexDefinition, Key, KeyKind, Query, Result, Revision, ScanOptions, WatchFrom,
    WatchOptions,
};

/// Loads records into a collection that is made if it is missing.
fn load<'r>(
    db: &Database,
    (name, keys): (&str, KeyKind),
    records: impl IntoIterator<Item = (Key, &'r str)>,
    options: BulkOptions,
) -> Result<BulkProgress> {
    let declared = match db.collection(name) {
        Ok(_) => DocumentOptions::default(),
        Err(_) => DocumentOptions { collection: Some(keys), ..DocumentOptions::default() },
    };
    let mut records = records.into_iter();
    let mut next = |json: &mut Vec<u8>| {
        Ok(records.next().map(|(key, record)| {
            json.extend_from_slice(record.as_bytes());
            key
        }))
    };
    let options = BulkOptions { declared, ..options };
    let loaded =
        db.bulk_load_records(name, &mut next, &options, &mut |_| ControlFlow::Continue(()));
    loaded.map(|(commit, progress)| {
        assert_eq!(commit.revision, Revision(1));
        progress
    })
}

/// Loads lines of records, of which the member `id` has the key.
fn load_lines(
    db: &Database,
    keys: KeyKind,
    mut text: &[u8],
    options: BulkOptions,
) -> Result<BulkProgress> {
    let declared = DocumentOptions { collection: Some(keys), ..DocumentOptions::default() };
    let options = BulkOptions { lines: true, key: Some("id".into()), declared, ..options };
    let mut go_on = |_| ControlFlow::Continue(());
    db.bulk_load("c", &mut text, &options, &mut go_on).map(|(_, progress)| progress)
}

/// All that a collection says of its records now and as of the first revision.
fn told(records: &Collection) -> Vec<String> {
    let mut told = Vec::new();
    for snapshot in [records.at(Revision(1)).unwrap(), records.head().unwrap()] {
        told.push(snapshot.count().unwrap().to_string());
        for record in snapshot.scan(&ScanOptions::default()).unwrap() {
            told.push(format!("{:?}", record.unwrap()));
        }
    }
    told
}

fn arb_records() -> impl Strategy<Value = BTreeMap<i64, String>> {
    let record = prop_oneof![
        2 => arb_json().prop_map(|value| format!("{{\"value\":{value}}}")),
        3 => (0_i64..9, "[a-z]{0,3}").prop_map(|(n, s)| format!("{{\"n\":{n},\"s\":\"{s}\"}}")),
        1 => Just("{}".to_owned()),
    ];
    prop::collection::btree_map(any::<i64>(), record, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn loaded_records_are_what_puts_make_and_live_on(
        records in arb_records(),
        is_reverse in any::<bool>(),
        from in any::<prop::sample::Index>(),
        bytes in prop::option::of(1_usize..2_000),
    ) {
        let commit = CommitOptions::default();
        let device = Arc::new(MemoryDevice::new());
        let (db, beside) = (reopened(&device), Database::memory().unwrap());
        let put = beside.create_collection("c", KeyKind::I64).unwrap();
        let mut all: Vec<_> = records.iter().map(|(key, json)| (*key, json.as_str())).collect();
        // Keys in order go to a segment of their own, until one comes that is not.
        let len = all.len();
        all.rotate_left(from.index(len));
        if is_reverse {
            all.reverse();
        }
        put.put_many(all.iter().copied(), &commit).unwrap();
        let given = all.iter().map(|(key, json)| (Key::from(*key), *json));
        let options = bytes.map_or_else(BulkOptions::default, held);
        let progress = load(&db, ("c", KeyKind::I64), given, options).unwrap();
        prop_assert_eq!(progress.values, records.len() as u64);
        let loaded = db.collection("c").unwrap();
        prop_assert_eq!(nodes(loaded.document()), nodes(put.document()));
        is_sound(&db);
        drop((loaded, db));
        let db = reopened(&device);
        let loaded = db.collection("c").unwrap();
        prop_assert_eq!(told(&loaded), told(&put));
        let first = all[0].0;
        for records in [&loaded, &put] {
            records.put(first, r#"{"n":1,"late":true}"#, &commit).unwrap();
            records.delete(first, &commit).unwrap();
            records.put(first, r#"{"n":2}"#, &commit).unwrap();
            let definition = IndexDefinition::new("by-n", &["n"]).unwrap();
            records.create_index(&definition).unwrap();
        }
        prop_assert_eq!(told(&loaded), told(&put));
        for revision in 1..=4 {
            let found = |records: &Collection| {
                let query = Query::new().filter(Filter::eq("n", 2));
                let found = records.at(Revision(revision)).unwrap().query(&query).unwrap();
                found.map(|record| record.unwrap().key.to_string()).collect::<Vec<_>>()
            };
            prop_assert_eq!(found(&loaded), found(&put));
        }
        db.checkpoint().unwrap();
        is_sound(&db);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lines_are_loaded_as_their_records_are(
        records in arb_records(),
        is_text in any::<bool>(),
        bytes in prop::option::of(1_usize..2_000),
    ) {
        let keys = if is_text { KeyKind::Text } else { KeyKind::I64 };
        let with_key = |(key, json): (&i64, &String)| {
            let json = json.replace('\n', " ");
            let member = if is_text { format!("\"k{key}\"") } else { key.to_string() };
            let rest = json.strip_prefix('{').unwrap_or_default();
            let comma = if rest == "}" { "" } else { "," };
            let name = if is_text { Key::Text(format!("k{key}")) } else { Key::I64(*key) };
            // Sometimes the key comes first, sometimes last.
            if key % 2 == 0 {
                (name, format!("{{\"id\":{member}{comma}{rest}"))
            } else {
                let rest = rest.strip_suffix('}').unwrap_or_default();
                (name, format!("{{{rest}{comma}\"id\":{member}}}"))
            }
        };
        let records: Vec<_> = records.iter().map(with_key).collect();
        let lines: Vec<_> = records.iter().map(|(_, json)| format!(" {json} \r\n\n")).collect();
        let text = lines.concat();
        let options = || bytes.map_or_else(BulkOptions::default, held);
        let (db, beside) = (Database::memory().unwrap(), Database::memory().unwrap());
        let given = records.iter().map(|(key, json)| (key.clone(), json.as_str()));
        load(&beside, ("c", keys), given, options()).unwrap();
        let progress = load_lines(&db, keys, text.as_bytes(), options()).unwrap();
        prop_assert_eq!(progress.values, records.len() as u64);
        let (loaded, other) = (db.collection("c").unwrap(), beside.collection("c").unwrap());
        prop_assert_eq!(told(&loaded), told(&other));
        prop_assert_eq!(nodes(loaded.document()), nodes(other.document()));
        is_sound(&db);
    }
}

#[test]
fn lines_that_are_no_records_are_told_with_their_numbers() {
    let good = "{\"id\":1,\"n\":1}\n\n{\"id\":2,\"n\":1}\n";
    let nested = "{\"a\":{\"b\":[1,{\"id\":5}]},\"id\":3}\n";
    for (line, why) in [
        ("[1]", "line 5: it is no JSON object, but an array"),
        ("[{\"id\":7},\n{\"id\":8}]", "line 5: it is no JSON object, but an array"),
        ("[", "line 5: it is no JSON object, but an array"),
        ("7", "line 5: it is no JSON object: a record has fields"),
        ("{\"n\":1}", "line 5: the member \"id\" is missing"),
        ("{\"id\":\"x\",\"n\":1}", "line 5: member \"id\": the key \"x\" is not of"),
        ("{\"id\":null,\"n\":1}", "line 5: member \"id\": null is no key"),
        ("{\"id\":[5],\"n\":1}", "line 5: member \"id\": [5] is no key"),
        ("{\"id\":9223372036854775808,\"n\":1}", "line 5: member \"id\": the key"),
        ("{\"id\":6,\"n\":1,\"id\":true}", "line 5: member \"id\": true is no key"),
        ("{\"id\":7,\"n\":}", "at line 5, column 13"),
        ("{\"id\":7,\"n\":1} {", "at line 5, column 16: expected the end of the line"),
        ("{\"id\":7,\n\"n\":1}", "at line 5, column 9: expected the value to end in its line"),
        ("{\"id\":7", "at line 5, column 8: expected ',' or '}', found the end"),
        ("{\"id\":7\n", "at line 5, column 8: expected ',' or '}', found the end"),
        ("{\"id\":7\n{\"id\":8}", "at line 5, column 8: expected ',' or '}', found the end"),
    ] {
        for bytes in [1, 1 << 20] {
            let db = Database::memory().unwrap();
            let text = format!("{good}{nested}{line}");
            let error = load_lines(&db, KeyKind::I64, text.as_bytes(), held(bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.message().contains(why), "{line}: {error}");
            assert!(db.documents().unwrap().is_empty());
        }
    }
    let db = Database::memory().unwrap();
    let text = format!("{good}{nested}{{\"id\":2,\"n\":9}}");
    let error = load_lines(&db, KeyKind::I64, text.as_bytes(), BulkOptions::default());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
    let options = BulkOptions { key: Some("id".into()), ..BulkOptions::default() };
    let mut go_on = |_| ControlFlow::Continue(());
    let error = db.bulk_load("c", &mut good.as_bytes(), &options, &mut go_on).unwrap_err();
    assert!(error.message().contains("only for a text of lines"), "{error}");
    load_lines(&db, KeyKind::I64, format!("{good}{nested}").as_bytes(), BulkOptions::default())
        .unwrap();
    let records = db.collection("c").unwrap();
    assert_eq!(records.get(3).unwrap().unwrap().json, r#"{"a":{"b":[1,{"id":5}]},"id":3}"#);
}

#[test]
fn an_index_and_a_feed_see_what_is_loaded() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    records.create_index(&IndexDefinition::new("by-n", &["n"]).unwrap()).unwrap();
    let watch = WatchOptions { from: WatchFrom::Now, ..WatchOptions::default() };
    let mut feed = db.watch(&watch).unwrap();
    let all: Vec<_> = (0..5_000).map(|n| (format!("k{n}"), format!("{{\"n\":{n}}}"))).collect();
    let given = all.iter().map(|(key, json)| (Key::from(key.as_str()), json.as_str()));
    load(&db, ("c", KeyKind::Text), given, BulkOptions::default()).unwrap();
    let found =
        records.head().unwrap().query(&Query::new().filter(Filter::ge("n", 4_998))).unwrap();
    let keys: Vec<_> = found.map(|record| record.unwrap().key.to_string()).collect();
    assert_eq!(keys, ["k4998", "k4999"]);
    let told = feed.try_next().unwrap().unwrap();
    assert_eq!(told.filter(|event| event.as_ref().unwrap().new.is_some()).count(), 5_000);
    is_sound(&db);
}

#[test]
fn keys_that_no_signed_integer_is_stand_among_those_that_one_is() {
    let middle = i64::MAX.cast_unsigned();
    for keys in [vec![middle + 1, 3, u64::MAX, 1], (middle - 3_000..middle + 3_000).collect()] {
        let device = Arc::new(MemoryDevice::new());
        let db = reopened(&device);
        let lines: Vec<_> = keys.iter().map(|key| format!("{{\"id\":{key}}}")).collect();
        let text = lines.join("\n");
        load_lines(&db, KeyKind::U64, text.as_bytes(), BulkOptions::default()).unwrap();
        is_sound(&db);
        drop(db);
        let records = reopened(&device).collection("c").unwrap();
        let scanned = records.head().unwrap().scan(&ScanOptions::default()).unwrap();
        let found: Vec<_> = scanned.map(|record| record.unwrap().key).collect();
        let mut expected: Vec<_> = keys.iter().copied().map(Key::U64).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        for key in [keys[0], keys[2]] {
            assert_eq!(records.get(key).unwrap().unwrap().json, format!("{{\"id\":{key}}}"));
        }
    }
}

#[test]
fn a_key_that_comes_twice_is_a_conflict_wherever_it_comes() {
    let few = [7, 8, 7].map(Key::I64).to_vec();
    // In order but for one that came before: just now, in the same segment, in one before it.
    let among = |other: i64| (0..200).chain([other]).chain(200..300).map(Key::I64).collect();
    for keys in [few, among(199), among(150), among(7), among(250)] {
        for bytes in [1, 1_000, 6_000, 1 << 20] {
            let db = Database::memory().unwrap();
            let records = keys.iter().map(|key| (key.clone(), r#"{"n":1}"#));
            let error = load(&db, ("c", KeyKind::I64), records, held(bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.message().contains("two records have the key 00000"), "{error}");
            assert!(db.documents().unwrap().is_empty());
            is_sound(&db);
        }
    }
}

#[test]
fn what_cannot_be_loaded_leaves_nothing() {
    let db = Database::memory().unwrap();
    let commit = CommitOptions::default();
    let fails = |name: &str, keys: KeyKind, records: &[(Key, &str)], wanted: (ErrorKind, &str)| {
        let before = db.documents().unwrap();
        let all = records.iter().cloned();
        let error = load(&db, (name, keys), all, BulkOptions::default()).unwrap_err();
        assert_eq!(error.kind(), wanted.0, "{error}");
        assert!(error.message().contains(wanted.1), "{error}");
        assert_eq!(db.documents().unwrap(), before);
    };
    let one = |json| [(Key::I64(1), "{}"), (Key::I64(2), json)];
    let invalid = |what| (ErrorKind::Invalid, what);
    fails("c", KeyKind::I64, &one("[1]"), invalid("record 2: it is no JSON object"));
    fails("c", KeyKind::I64, &one("{} {}"), invalid("record 2: JSON is invalid"));
    fails("c", KeyKind::U64, &[(Key::I64(-1), "{}")], invalid("is not of the collection's key"));
    fails("c", KeyKind::Text, &[(Key::from(""), "{}")], invalid("empty"));

    db.create_document("d").unwrap();
    fails("d", KeyKind::I64, &one("{}"), (ErrorKind::Conflict, "declare"));
    let bare = |name: &str| {
        let options = BulkOptions::default();
        db.bulk_load_records(name, &mut |_| Ok(None), &options, &mut |_| ControlFlow::Continue(()))
    };
    for name in ["d", "missing"] {
        assert_eq!(bare(name).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    let unique = db.create_collection("unique", KeyKind::I64).unwrap();
    unique.create_index(&IndexDefinition::new("by-n", &["n"]).unwrap().unique()).unwrap();
    fails("unique", KeyKind::I64, &one("{}"), (ErrorKind::Unsupported, "unique index"));
    let full = db.create_collection("full", KeyKind::I64).unwrap();
    full.put(9, "{}", &commit).unwrap();
    fails("full", KeyKind::I64, &one("{}"), (ErrorKind::Conflict, "revisions"));
    let mut stop = |_| ControlFlow::Break(());
    let empty = db.create_collection("empty", KeyKind::I64).unwrap();
    let options = BulkOptions::default();
    let stopped = db.bulk_load_records("empty", &mut |_| Ok(None), &options, &mut stop);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(empty.count().unwrap(), 0);
    is_sound(&db);
}

#[test]
fn lines_without_keys_are_no_records() {
    let db = Database::memory().unwrap();
    db.create_collection("c", KeyKind::I64).unwrap();
    let mut text: &[u8] = b"{}";
    let mut go_on = |_| ControlFlow::Continue(());
    let lines = BulkOptions { lines: true, ..BulkOptions::default() };
    let error = db.bulk_load("c", &mut text, &lines, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("is a collection"), "{error}");
}
