use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use super::{BulkOptions, BulkProgress};
use crate::io::MemoryDevice;
use crate::{
    CommitOptions, Database, Document, DocumentOptions, ErrorKind, Format, JsonPointer, Options,
    Result, Revision,
};

fn load(db: &Database, name: &str, text: &str, options: &BulkOptions) -> Result<BulkProgress> {
    let mut text = text.as_bytes();
    let loaded = db.bulk_load(name, &mut text, options, &mut |_| ControlFlow::Continue(()));
    loaded.map(|(commit, progress)| {
        assert_eq!(commit.revision, Revision(1));
        progress
    })
}

fn held(bytes: usize) -> BulkOptions {
    BulkOptions { held_bytes: Some(bytes), ..BulkOptions::default() }
}

/// The document with every node's number, kind, birth and last change.
fn nodes(document: &Document) -> String {
    let format = Format { metadata: true, ..Format::default() };
    let mut text = Vec::new();
    document.head().unwrap().write_json(&JsonPointer::root(), &format, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn is_sound(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

fn reopened(device: &Arc<MemoryDevice>) -> Database {
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

fn arb_json() -> impl Strategy<Value = String> {
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
        load(&db, "d", &text, &BulkOptions::default()).unwrap();
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
                prop_assert_eq!(loaded.head().unwrap().to_json().unwrap(), put.head().unwrap().to_json().unwrap());
                is_sound(&db);
            }
            Err(error) => {
                prop_assert!(error.message().contains("twice"), "{}", error);
                prop_assert!(load(&db, "d", &text, &BulkOptions::default()).is_ok());
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
            let loaded = db.bulk_load("d", &mut text.as_slice(), &options, &mut |_| ControlFlow::Continue(()));
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
