use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use super::{BulkOptions, BulkProgress};
use crate::io::{Device, MemoryDevice};
use crate::{
    Collection, CommitOptions, Database, Document, DocumentOptions, ErrorKind, Format,
    IndexDefinition, JsonPointer, KeyKind, LogQuery, Micros, Options, Result, Revision,
};

fn load(db: &Database, name: &str, text: &str, options: &BulkOptions) -> Result<BulkProgress> {
    let mut text = text.as_bytes();
    let loaded = db.bulk_load(name, &mut text, options, &mut |_| ControlFlow::Continue(()));
    loaded.map(|(commit, progress)| {
        assert_eq!(commit.revision, Revision(1));
        progress
    })
}

pub(super) fn held(bytes: usize) -> BulkOptions {
    BulkOptions { held_bytes: Some(bytes), ..BulkOptions::default() }
}

/// The usual bounds, or larger ones for a text that may have the same name twice farther apart.
fn roomy(text: &str) -> BulkOptions {
    let is_large = text.len() > 1 << 20;
    if is_large { held(64 * text.len()) } else { BulkOptions::default() }
}

/// The document with every node's number, kind, birth and last change.
pub(super) fn nodes(document: &Document) -> String {
    let format = Format { metadata: true, ..Format::default() };
    let mut text = Vec::new();
    document.head().unwrap().write_json(&JsonPointer::root(), &format, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

pub(super) fn is_sound(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

pub(super) fn reopened(device: &Arc<MemoryDevice>) -> Database {
    let options = Options { background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

fn arb_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        (0_i64..300).prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        "[a-z]{0,9}".prop_map(|text| format!("\"{text}\"")),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        (4_000_usize..4_200).prop_map(|len| format!("\"{}\"", "x".repeat(len))),
    ]
}

fn arb_space() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(""), 1 => Just(" "), 1 => Just("\n\t")]
}

pub(super) fn arb_json() -> impl Strategy<Value = String> {
    arb_scalar().prop_recursive(5, 60, 8, |inner| {
        let member = ("[a-e]{1,2}|\"|\u{e9}", inner.clone(), arb_space());
        let alike = (inner.clone(), 1_usize..40);
        prop_oneof![
            (prop::collection::vec(inner, 0..8), arb_space()).prop_map(|(elements, space)| {
                format!("[{space}{}{space}]", elements.join(&format!("{space},{space}")))
            }),
            alike.prop_map(|(element, count)| format!("[{}]", vec![element; count].join(","))),
            prop::collection::vec(member, 0..8).prop_map(|members| {
                let member = |(name, value, space): &(String, String, &str)| {
                    format!("{space}{}{space}:{space}{value}", serde_json::to_string(name).unwrap())
                };
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

fn put_beside(text: &str, options: &DocumentOptions) -> Document {
    let db = Database::memory().unwrap();
    let mut transaction = db.transaction();
    transaction.create_document("d").unwrap();
    transaction.declare("d", options).unwrap();
    transaction.put("d", text.as_bytes()).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    db.document("d").unwrap()
}

/// Makes the same changes to both documents, which have to stay alike.
fn live_on(a: &Document, b: &Document) {
    let commit = CommitOptions::default();
    for document in [a, b] {
        document.put("[1,{\"a\":2},[3]]", &commit).unwrap();
        document.undo(Revision(2), &commit).unwrap();
    }
    assert_eq!(nodes(a), nodes(b));
    assert_eq!(
        a.diff(Revision(1), Revision(2)).unwrap().to_json_patch(),
        b.diff(Revision(1), Revision(2)).unwrap().to_json_patch()
    );
    assert_eq!(a.at(Revision(1)).unwrap().to_json().unwrap(), b.head().unwrap().to_json().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_loaded_value_is_node_for_node_what_a_put_makes(text in arb_json()) {
        let put = put_beside(&text, &DocumentOptions::default());
        let device = Arc::new(MemoryDevice::new());
        let db = reopened(&device);
        load(&db, "d", &text, &roomy(&text)).unwrap();
        let loaded = db.document("d").unwrap();
        prop_assert_eq!(nodes(&loaded), nodes(&put));
        prop_assert_eq!(loaded.stats().unwrap(), put.stats().unwrap());
        is_sound(&db);
        drop((loaded, db));
        let db = reopened(&device);
        let loaded = db.document("d").unwrap();
        prop_assert_eq!(nodes(&loaded), nodes(&put));
        live_on(&loaded, &put);
        is_sound(&db);
    }

    #[test]
    fn a_text_read_in_pieces_is_the_same_value(text in arb_json(), bytes in 1_usize..200) {
        let put = put_beside(&text, &DocumentOptions::default());
        let db = Database::memory().unwrap();
        match load(&db, "d", &text, &held(bytes)) {
            Ok(_) => {
                let loaded = db.document("d").unwrap();
                let json = |document: &Document| document.head().unwrap().to_json().unwrap();
                prop_assert_eq!(json(&loaded), json(&put));
                is_sound(&db);
            }
            Err(error) => {
                prop_assert!(error.message().contains("twice"), "{}", error);
                prop_assert!(load(&db, "d", &text, &roomy(&text)).is_ok());
            }
        }
    }

    #[test]
    fn damaged_text_is_refused_as_a_put_refuses_it(
        text in arb_json(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        bytes in 1_usize..200,
    ) {
        let mut text = text.into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let put = Database::memory().unwrap();
        let expected = put.create_document("d").unwrap().put(&text, &CommitOptions::default());
        for options in [BulkOptions::default(), held(bytes)] {
            let db = Database::memory().unwrap();
            let mut go_on = |_| ControlFlow::Continue(());
            let loaded = db.bulk_load("d", &mut text.as_slice(), &options, &mut go_on);
            match (&expected, loaded) {
                (Ok(_), Ok(_)) => {}
                (Ok(_), Err(error)) => prop_assert!(error.message().contains("twice"), "{}", error),
                (Err(expected), loaded) => {
                    let error = loaded.unwrap_err();
                    prop_assert_eq!(error.kind(), ErrorKind::Invalid);
                    let is_utf8 = std::str::from_utf8(&text).is_ok();
                    if is_utf8 && !error.message().contains("twice") {
                        prop_assert_eq!(error.message(), expected.message());
                    }
                    prop_assert_eq!(db.documents().unwrap(), Vec::<String>::new());
                }
            }
        }
    }
}

/// Rows enough for several row groups, with arrays inside.
fn rows(count: usize) -> String {
    let row = |index: usize| {
        let extra = if index.is_multiple_of(7) { ",\"extra\":null" } else { "" };
        format!("{{\"id\":{index},\"tags\":[\"a\",{index}],\"deep\":{{\"x\":1.5}}{extra}}}")
    };
    (0..count).map(row).collect::<Vec<_>>().join(",")
}

#[test]
fn long_arrays_are_alike_however_little_is_held() {
    let text = format!("{{\"head\":1,\"rows\":[{}],\"tail\":[]}}", rows(9_000));
    let put = put_beside(&text, &DocumentOptions::default());
    for options in [BulkOptions::default(), held(1 << 10), held(100 << 10)] {
        let device = Arc::new(MemoryDevice::new());
        let db = reopened(&device);
        load(&db, "d", &text, &options).unwrap();
        drop(db);
        let db = reopened(&device);
        let loaded = db.document("d").unwrap();
        assert_eq!(loaded.head().unwrap().to_json().unwrap(), text);
        assert_eq!(loaded.stats().unwrap(), put.stats().unwrap());
        is_sound(&db);
        let commit = CommitOptions::default();
        loaded.set(&JsonPointer::parse("/rows/8999/tags/1").unwrap(), "0", &commit).unwrap();
        loaded.put(&text, &commit).unwrap();
        assert_eq!(loaded.at(Revision(3)).unwrap().to_json().unwrap(), text);
        let patch = loaded.diff(Revision(1), Revision(2)).unwrap().to_json_patch();
        assert_eq!(patch, r#"[{"op":"replace","path":"/rows/8999/tags/1","value":0}]"#);
        is_sound(&db);
    }
}

#[test]
fn a_long_object_becomes_a_map_and_keeps_the_fields_it_began_with() {
    let members = (0..700).map(|index| format!("\"k{index}\":{{\"v\":{index}}}"));
    let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    let put = put_beside(&text, &DocumentOptions::default());
    for options in [BulkOptions::default(), held(64)] {
        let db = Database::memory().unwrap();
        load(&db, "d", &text, &options).unwrap();
        let loaded = db.document("d").unwrap();
        assert_eq!(loaded.head().unwrap().to_json().unwrap(), text);
        is_sound(&db);
        let commit = CommitOptions::default();
        let value = loaded.head().unwrap();
        for key in ["/k3/v", "/k699/v"] {
            value.node(&JsonPointer::parse(key).unwrap()).unwrap();
            loaded.set(&JsonPointer::parse(key).unwrap(), "null", &commit).unwrap();
        }
        loaded.put(&text, &commit).unwrap();
        assert_eq!(loaded.head().unwrap().to_json().unwrap(), text);
        is_sound(&db);
        if options.held_bytes.is_none() {
            assert_eq!(loaded.stats().unwrap().paths, put.stats().unwrap().paths);
        }
    }
}

#[test]
fn a_declared_map_is_one_from_its_first_member() {
    let maps = ["$.by".parse().unwrap()].into();
    let declared = DocumentOptions { maps, ..DocumentOptions::default() };
    let text = "{\"by\":{\"ann\":{\"n\":1},\"bob\":{\"n\":2}},\"n\":[]}";
    let put = put_beside(text, &declared);
    for held_bytes in [None, Some(8)] {
        let db = Database::memory().unwrap();
        let options =
            BulkOptions { declared: declared.clone(), held_bytes, ..BulkOptions::default() };
        load(&db, "d", text, &options).unwrap();
        let loaded = db.document("d").unwrap();
        assert_eq!(loaded.stats().unwrap(), put.stats().unwrap());
        assert_eq!(loaded.options().unwrap(), declared);
        let more = text.replace("bob", "carl");
        loaded.put(&more, &CommitOptions::default()).unwrap();
        assert_eq!(loaded.stats().unwrap().paths, put.stats().unwrap().paths);
        is_sound(&db);
    }
}

#[test]
fn a_name_that_comes_again_in_a_long_object_is_refused() {
    let many: Vec<String> = (0..400).map(|index| format!("\"k{index}\":{index}")).collect();
    let again = |name: &str| format!("{{{},\"{name}\":1}}", many.join(","));
    // Among the fields, among the entries of one segment, and of two.
    for (name, bytes) in [("k1", 32), ("k399", 3_000), ("k300", 32)] {
        let db = Database::memory().unwrap();
        let error = load(&db, "d", &again(name), &held(bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(&format!("{name:?} twice")), "{error}");
        assert_eq!(db.documents().unwrap(), Vec::<String>::new());
        // Held as a whole, the last one wins.
        load(&db, "d", &again(name), &BulkOptions::default()).unwrap();
        let pointer = JsonPointer::parse(&format!("/{name}")).unwrap();
        let mut value = Vec::new();
        db.document("d")
            .unwrap()
            .head()
            .unwrap()
            .append_json(&pointer, &Format::default(), &mut value)
            .unwrap();
        assert_eq!(value, b"1");
    }
}

#[test]
fn lines_are_elements_and_blank_ones_are_passed_over() {
    let lines = BulkOptions { lines: true, ..BulkOptions::default() };
    for (text, expected) in [
        ("", "[]"),
        (" \n\r\n", "[]"),
        ("1", "[1]"),
        ("1\n\n [2, 3] \r\n\"x\"\n", "[1,[2,3],\"x\"]"),
        ("\u{feff}{\"a\":1}\n{\"a\":2}", "[{\"a\":1},{\"a\":2}]"),
    ] {
        for held_bytes in [None, Some(3)] {
            let db = Database::memory().unwrap();
            load(&db, "d", text, &BulkOptions { held_bytes, ..lines.clone() }).unwrap();
            assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), expected);
            is_sound(&db);
        }
    }
    for (text, place) in [
        ("1\n2,3\n", "line 2, column 2: expected the end of the line"),
        ("1\n[2,\n3]\n", "line 2, column 4: expected the value to end in its line"),
        ("{\"a\":1}\n{\"a\":\n", "line 3, column 1: expected a value, found the end"),
        ("1\n\n{\"a\":}\n", "line 3, column 6: expected a value, found '}'"),
    ] {
        let db = Database::memory().unwrap();
        let error = load(&db, "d", text, &lines).unwrap_err();
        assert!(error.message().contains(place), "{text:?}: {error}");
        assert_eq!(db.documents().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_failed_or_stopped_load_leaves_nothing_and_others_go_on() {
    let device = Arc::new(MemoryDevice::new());
    let db = reopened(&device);
    db.create_document("other").unwrap().put("1", &CommitOptions::default()).unwrap();
    let files = |device: &MemoryDevice| device.list(crate::segment::DIRECTORY).unwrap();
    let before = files(&device);
    let broken = format!("[{}", rows(3_000));
    let error = load(&db, "d", &broken, &held(4 << 10)).unwrap_err();
    assert!(error.message().contains("line 1, column"), "{error}");
    assert_eq!(files(&device), before);

    let whole = format!("[{}]", rows(3_000));
    let mut steps = 0;
    let stopped = db.bulk_load("d", &mut whole.as_bytes(), &held(4 << 10), &mut |progress| {
        steps += 1;
        assert!(progress.bytes > 0);
        if steps == 9 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(files(&device), before);
    assert_eq!(db.documents().unwrap(), ["other"]);
    assert_eq!(db.document("d").unwrap_err().kind(), ErrorKind::NotFound);
    is_sound(&db);

    load(&db, "d", &whole, &held(4 << 10)).unwrap();
    db.document("other").unwrap().put("2", &CommitOptions::default()).unwrap();
    drop(db);
    let db = reopened(&device);
    assert_eq!(db.documents().unwrap(), ["d", "other"]);
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), whole);
    assert_eq!(db.document("other").unwrap().head().unwrap().to_json().unwrap(), "2");
    is_sound(&db);
}

#[test]
fn a_document_that_has_or_gets_a_revision_is_a_conflict() {
    let db = Database::memory().unwrap();
    let commit = CommitOptions::default();
    db.create_document("d").unwrap().put("1", &commit).unwrap();
    assert_eq!(load(&db, "d", "2", &held(1)).unwrap_err().kind(), ErrorKind::Conflict);

    let loaded = db.bulk_load("e", &mut "[1,2,3]".as_bytes(), &held(1), &mut |_| {
        let _ = db.create_document("e").map(|document| document.put("\"first\"", &commit));
        ControlFlow::Continue(())
    });
    assert_eq!(loaded.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(db.document("e").unwrap().head().unwrap().to_json().unwrap(), "\"first\"");

    // Another document takes the name meanwhile.
    let loaded = db.bulk_load("f", &mut "[1,2,3]".as_bytes(), &held(1), &mut |_| {
        let mut transaction = db.transaction();
        if transaction.rename_document("e", "f").is_ok() {
            transaction.commit(&commit).unwrap();
        }
        ControlFlow::Continue(())
    });
    assert_eq!(loaded.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(db.documents().unwrap(), ["d", "f"]);
    is_sound(&db);
}

#[test]
fn a_load_is_one_commit_with_what_its_options_say() {
    let device = Arc::new(MemoryDevice::new());
    let db = reopened(&device);
    let empty = db.create_document("d").unwrap();
    let commit = CommitOptions {
        author: Some("ann".to_owned()),
        message: Some("all of it".to_owned()),
        timestamp: Some(Micros(1_000_000)),
        expect_revision: Some(Revision(0)),
        ..CommitOptions::default()
    };
    let options = BulkOptions { commit, ..BulkOptions::default() };
    let before = db.snapshot();
    let (made, _) = db
        .bulk_load("d", &mut "[1]".as_bytes(), &options, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(made.sequence, db.snapshot().sequence());
    assert_eq!(before.document("d").unwrap_err().kind(), ErrorKind::NotFound);
    // A handle from before sees it, and a commit goes on behind it.
    assert_eq!(empty.head().unwrap().to_json().unwrap(), "[1]");
    let next = empty.put("[1,2]", &CommitOptions::default()).unwrap();
    assert_eq!(next.revision(), Revision(2));
    drop((before, db, empty));
    let db = reopened(&device);
    let log: Vec<_> = db.document("d").unwrap().log(&LogQuery::default()).unwrap().collect();
    let first = log.last().unwrap().as_ref().unwrap();
    assert_eq!((first.author.as_deref(), first.timestamp), (Some("ann"), Micros(1_000_000)));
    assert_eq!(first.message.as_deref(), Some("all of it"));
    assert_eq!(first.sequence, made.sequence);

    let late = CommitOptions { timestamp: Some(Micros(i64::MAX)), ..CommitOptions::default() };
    let options = BulkOptions { commit: late, ..BulkOptions::default() };
    assert_eq!(load(&db, "e", "1", &options).unwrap_err().kind(), ErrorKind::Invalid);
    let wrong = CommitOptions { expect_revision: Some(Revision(3)), ..CommitOptions::default() };
    let options = BulkOptions { commit: wrong, ..BulkOptions::default() };
    assert!(load(&db, "e", "1", &options).is_err());
    assert_eq!(db.documents().unwrap(), ["d"]);
}

#[test]
fn values_over_the_inline_limit_and_too_many_paths_are_kept_as_a_put_keeps_them() {
    let long = "y".repeat(10_000);
    let fields = |from: usize| {
        (0..200).map(|index| format!("\"f{}\":{{\"z\":1}}", from + index)).collect::<Vec<_>>()
    };
    let groups = (0..30).map(|group| format!("\"g{group}\":{{{}}}", fields(group * 200).join(",")));
    let groups = groups.collect::<Vec<_>>().join(",");
    let text = format!("{{\"long\":\"{long}\",\"number\":{}1,{groups}}}", "9".repeat(5_000));
    let put = put_beside(&text, &DocumentOptions::default());
    let db = Database::memory().unwrap();
    load(&db, "d", &text, &BulkOptions::default()).unwrap();
    let loaded = db.document("d").unwrap();
    assert_eq!(nodes(&loaded), nodes(&put));
    assert_eq!(loaded.stats().unwrap(), put.stats().unwrap());
    is_sound(&db);
}

/// Loads records of which two have the same value each, while something is done to the collection.
fn load_while(meanwhile: impl Fn(&Collection)) -> (Database, Result<BulkProgress>) {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::I64).unwrap();
    let pad = "p".repeat(100);
    let line = |n: u64| format!("{{\"id\":{n},\"n\":{},\"pad\":\"{pad}\"}}\n", n / 2);
    let text: String = (0..20_000).map(line).collect();
    let key = Some("id".to_owned());
    let options = BulkOptions { lines: true, key, ..BulkOptions::default() };
    let mut is_done = false;
    let loaded = db.bulk_load("c", &mut text.as_bytes(), &options, &mut |_| {
        if !std::mem::replace(&mut is_done, true) {
            meanwhile(&collection);
        }
        ControlFlow::Continue(())
    });
    assert!(is_done);
    (db, loaded.map(|(_, progress)| progress))
}

/// What was declared was looked at before the load only: its records had the same values where an
/// index was unique that came meanwhile, or keys of another type than those of the collection.
#[test]
fn a_load_is_refused_if_something_is_declared_meanwhile_that_it_does_not_regard() {
    let index = IndexDefinition::new("n", &["n"]).unwrap();
    let unique = |collection: &Collection| {
        collection.create_index(&index.clone().unique()).unwrap();
    };
    // As a process that dies leaves it, or another thread has it just then.
    let being_made = |collection: &Collection| {
        collection.change_indexes(|indexes| indexes.begin(&index.clone().unique())).unwrap();
    };
    let keys = |collection: &Collection| {
        let text =
            DocumentOptions { collection: Some(KeyKind::Text), ..DocumentOptions::default() };
        collection.document().set_options(&text, &CommitOptions::default()).unwrap();
    };
    for meanwhile in [&unique as &dyn Fn(&Collection), &being_made, &keys] {
        let (db, loaded) = load_while(meanwhile);
        assert_eq!(loaded.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(db.collection("c").unwrap().count().unwrap(), 0);
        is_sound(&db);
    }
    // Another index has the records once they are there.
    let (db, loaded) = load_while(|collection| collection.create_index(&index).unwrap());
    loaded.unwrap();
    assert_eq!(db.collection("c").unwrap().index_stats("n").unwrap().entries, 20_000);
    is_sound(&db);
}
