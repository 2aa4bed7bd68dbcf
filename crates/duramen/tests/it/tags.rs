//! Named revisions and content hashes.

use std::sync::Arc;

use duramen::io::MemoryDevice;
use duramen::{
    CommitOptions, ContentHash, Database, Document, DocumentOptions, ErrorKind, LogQuery, Options,
    Revision,
};

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn by(author: &str) -> CommitOptions {
    CommitOptions { author: Some(author.into()), message: Some("why".into()), ..plain() }
}

fn counted(db: &Database, name: &str) -> Document {
    let document = db.create_document(name).unwrap();
    for n in 1..=3 {
        document.put(n.to_string(), &plain()).unwrap();
    }
    document
}

fn listed(document: &Document) -> Vec<(String, u64)> {
    let tags = document.tags().unwrap();
    tags.into_iter().map(|tag| (tag.name, tag.revision.0)).collect()
}

fn kind<T: std::fmt::Debug>(result: duramen::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn tags_are_set_moved_listed_and_removed() {
    let db = Database::memory().unwrap();
    let document = counted(&db, "d");
    assert_eq!(document.tag("v1", Some(Revision(1)), &by("ann")).unwrap(), Revision(1));
    assert_eq!(document.tag("last", None, &by("bob")).unwrap(), Revision(3));
    assert_eq!(listed(&document), [("last".into(), 3), ("v1".into(), 1)]);
    assert_eq!(document.at_tag("v1").unwrap().to_json().unwrap(), "1");
    assert_eq!(document.tagged("last").unwrap(), Revision(3));

    let error = document.tag("v1", Some(Revision(2)), &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("is at revision 1 already"), "{error}");
    document.move_tag("v1", Some(Revision(2)), &by("cy")).unwrap();
    assert_eq!(document.at_tag("v1").unwrap().to_json().unwrap(), "2");
    let authors: Vec<_> = document.tags().unwrap().into_iter().map(|tag| tag.author).collect();
    assert_eq!(authors, [Some("bob".to_owned()), Some("cy".to_owned())]);

    document.untag("v1", &plain()).unwrap();
    assert_eq!(listed(&document), [("last".into(), 3)]);
    assert_eq!(kind(document.at_tag("v1")), ErrorKind::NotFound);
    assert_eq!(kind(document.untag("v1", &plain())), ErrorKind::NotFound);
    assert_eq!(kind(document.move_tag("v1", None, &plain())), ErrorKind::NotFound);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn a_tag_says_who_set_it_to_where_it_is_and_when() {
    let db = Database::memory().unwrap();
    let document = counted(&db, "d");
    document.tag("t", Some(Revision(1)), &by("ann")).unwrap();
    document.untag("t", &plain()).unwrap();
    document.tag("t", Some(Revision(1)), &by("bob")).unwrap();
    db.rename_document("d", "e", &by("cy")).unwrap();
    document.tag("t", Some(Revision(1)), &by("dan")).unwrap();
    db.checkpoint().unwrap();
    let tag = db.document("e").unwrap().tags().unwrap().remove(0);
    assert_eq!((tag.author.as_deref(), tag.message.as_deref()), (Some("bob"), Some("why")));
    assert_eq!(tag.hash, ContentHash::of_json(b"1"));
    assert!(tag.timestamp > document.timestamps().unwrap()[2]);
}

#[test]
fn tags_name_only_revisions_that_are_there() {
    let db = Database::memory().unwrap();
    let document = counted(&db, "d");
    for revision in [0, 4] {
        assert_eq!(
            kind(document.tag("t", Some(Revision(revision)), &plain())),
            ErrorKind::NotFound
        );
    }
    let empty = db.create_document("empty").unwrap();
    assert_eq!(kind(empty.tag("t", None, &plain())), ErrorKind::NotFound);
    for name in ["", "3", "2024-05-01", "#1", "/a", "$"] {
        assert_eq!(kind(document.tag(name, None, &plain())), ErrorKind::Invalid, "{name}");
    }
    let stale = CommitOptions { expect_revision: Some(Revision(2)), ..plain() };
    assert_eq!(kind(document.tag("t", None, &stale)), ErrorKind::Conflict);
    assert!(document.tags().unwrap().is_empty());
}

#[test]
fn tags_outlive_deletion_renaming_and_reopening() {
    let device = Arc::new(MemoryDevice::new());
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(device.clone(), options.clone()).unwrap();
    let document = counted(&db, "d");
    document.tag("old", Some(Revision(2)), &plain()).unwrap();
    db.delete_document("d", &plain()).unwrap();
    assert_eq!(document.at_tag("old").unwrap().to_json().unwrap(), "2");
    assert_eq!(kind(document.tag("gone", None, &plain())), ErrorKind::NotFound);
    document.tag("older", Some(Revision(1)), &plain()).unwrap();
    db.checkpoint().unwrap();
    db.rename_document("d", "e", &plain()).unwrap();
    // A new document of the old name has none of them.
    assert!(counted(&db, "d").tags().unwrap().is_empty());
    drop(document);
    db.close().unwrap();
    let reader = Options { read_only: true, ..options };
    let db = Database::open_device(device, reader).unwrap();
    let document = db.document("e").unwrap();
    assert_eq!(listed(&document), [("old".into(), 2), ("older".into(), 1)]);
    assert_eq!(document.at_tag("older").unwrap().to_json().unwrap(), "1");
    assert_eq!(kind(document.tag("t", Some(Revision(1)), &plain())), ErrorKind::Denied);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn many_tags_of_many_documents_take_no_paths_of_the_catalogue() {
    let db = Database::memory().unwrap();
    for name in ["a", "b"] {
        let document = counted(&db, name);
        for number in 0..400 {
            let revision = Some(Revision(1 + number % 3));
            document.tag(&format!("{name}-{number}"), revision, &plain()).unwrap();
        }
        assert_eq!(document.tags().unwrap().len(), 400);
        assert_eq!(document.tagged(&format!("{name}-5")).unwrap(), Revision(3));
    }
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

/// Members of one document as an object with a shape, as a map, as an object that outgrew its
/// shape, and as a subtree stored whole.
#[test]
fn the_same_value_has_the_same_hash_in_every_form() {
    let db = Database::memory().unwrap();
    let text = r#"{"x":{"a":1.10,"b":[true,null,"\u00e4\n"]},"y":1E22}"#;
    let printed = "{\"x\":{\"a\":1.10,\"b\":[true,null,\"\u{e4}\\n\"]},\"y\":1E22}";
    let expected = ContentHash::of_json(printed.as_bytes());

    let shaped = db.create_document("shaped").unwrap();
    let maps = DocumentOptions {
        maps: ["$".parse().unwrap(), "${*}".parse().unwrap()].into(),
        ..DocumentOptions::default()
    };
    let mapped = db.create_document_with("mapped", &maps).unwrap();
    let outgrown = db.create_document("outgrown").unwrap();
    outgrown.put(object(0..256), &plain()).unwrap();
    let whole = db.create_document("whole").unwrap();
    let wide: Vec<String> = (0..70_000).map(|n| format!("[[{n}]]")).collect();
    let nested = wide.iter().enumerate().map(|(n, value)| format!("\"w{n}\":{{\"v{n}\":{value}}}"));
    whole.put(format!("{{{}}}", nested.collect::<Vec<_>>().join(",")), &plain()).unwrap();
    for document in [&shaped, &mapped, &outgrown, &whole] {
        document.put(text, &plain()).unwrap();
        let head = document.head().unwrap();
        assert_eq!(head.content_hash().unwrap(), expected, "{}", document.name());
        assert_eq!(head.to_json().unwrap(), printed);
    }
    db.checkpoint().unwrap();
    for name in ["shaped", "mapped", "outgrown", "whole"] {
        let head = db.document(name).unwrap().head().unwrap();
        assert_eq!(head.content_hash().unwrap(), expected, "{name}");
    }
}

fn object(names: std::ops::Range<usize>) -> String {
    let fields: Vec<String> = names.map(|name| format!("\"w{name}\":{name}")).collect();
    format!("{{{}}}", fields.join(","))
}

#[test]
fn the_log_has_hashes_only_if_asked() {
    let db = Database::memory().unwrap();
    let document = counted(&db, "d");
    document.put("2", &plain()).unwrap();
    db.delete_document("d", &plain()).unwrap();
    let hashes = |hash| -> Vec<Option<ContentHash>> {
        let query = LogQuery { hash, ..LogQuery::default() };
        document.log(&query).unwrap().map(|entry| entry.unwrap().hash).collect()
    };
    assert_eq!(hashes(false), [None; 5]);
    let of = |text: &str| Some(ContentHash::of_json(text.as_bytes()));
    assert_eq!(hashes(true), [None, of("2"), of("3"), of("2"), of("1")]);
}
