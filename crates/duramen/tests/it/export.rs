//! Histories that leave one database and come into another.

use duramen::{
    CommitOptions, Database, Document, Error, ErrorKind, ExportedContent, ExportedRevision,
    JsonPointer, Micros, Position, Revision, Target,
};
use proptest::prelude::*;

fn exported(document: &Document) -> Vec<ExportedRevision> {
    document.export().unwrap().collect::<Result<_, _>>().unwrap()
}

/// Takes a history over and gives the document.
fn imported(database: &Database, history: &[ExportedRevision]) -> Result<Document, Error> {
    let mut import = database.import_history("d", None)?;
    for revision in history {
        import.push(revision)?;
    }
    import.finish()?;
    database.document("d")
}

fn with_time(number: i64) -> CommitOptions {
    CommitOptions { timestamp: Some(Micros(number * 1_000_000)), ..CommitOptions::default() }
}

fn three_revisions() -> (Database, Document) {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    doc.put(r#"{"a":1.10,"b":[1,2,3]}"#, &with_time(1)).unwrap();
    doc.put(r#"{"a":1.1,"b":[1,3],"c":null}"#, &with_time(2)).unwrap();
    doc.put(r#"{"b":[1,3],"a":1.1,"c":null}"#, &with_time(3)).unwrap();
    (db, doc)
}

#[test]
fn a_patch_stands_only_where_it_gives_the_same_text() {
    let (_db, doc) = three_revisions();
    let history = exported(&doc);
    assert!(matches!(&history[0].content, ExportedContent::Value(_)));
    assert!(matches!(&history[1].content, ExportedContent::Patch(_)));
    let ExportedContent::Value(text) = &history[2].content else { panic!("{history:?}") };
    assert_eq!(text, r#"{"b":[1,3],"a":1.1,"c":null}"#);

    doc.put(r#"{"b":[1,3],"x":0,"a":1.1,"c":null}"#, &with_time(4)).unwrap();
    doc.put(r#"{"b":[1,3],"x":0,"a":1.1,"c":null,"y":1}"#, &with_time(5)).unwrap();
    let history = exported(&doc);
    assert!(matches!(&history[3].content, ExportedContent::Value(_)), "a member in the middle");
    assert!(matches!(&history[4].content, ExportedContent::Patch(_)), "a member at the end");
}

#[test]
fn import_goes_on_where_it_was_stopped() {
    let (_db, doc) = three_revisions();
    let history = exported(&doc);
    let db = Database::memory().unwrap();
    let mut import = db.import_history("d", None).unwrap();
    assert!(import.push(&history[0]).unwrap());
    drop(import);

    let mut import = db.import_history("d", None).unwrap();
    let made: Vec<bool> = history.iter().map(|revision| import.push(revision).unwrap()).collect();
    assert_eq!(made, [false, true, true]);
    assert_eq!(import.finish().unwrap(), Revision(3));
    assert_eq!(db.document("d").unwrap().head().unwrap().timestamp().unwrap(), Micros(3_000_000));
}

#[test]
fn import_into_another_history_is_a_conflict() {
    let (_db, doc) = three_revisions();
    let history = exported(&doc);
    let changes: [fn(&mut ExportedRevision); 4] = [
        |revision| revision.timestamp = Micros(1_500_000),
        |revision| revision.author = Some("ann".into()),
        |revision| revision.message = Some("why".into()),
        |revision| revision.content = ExportedContent::Value("1".into()),
    ];
    for change in changes {
        let db = Database::memory().unwrap();
        let mut other = history.clone();
        change(&mut other[1]);
        imported(&db, &other).unwrap();
        assert_eq!(imported(&db, &history).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(db.document("d").unwrap().head_revision().unwrap(), Revision(3));
    }
    let db = Database::memory().unwrap();
    imported(&db, &history).unwrap();
    let shorter = imported(&db, &history[..2]).unwrap_err();
    assert_eq!(shorter.kind(), ErrorKind::Conflict);
}

#[test]
fn a_write_between_two_revisions_is_a_conflict() {
    let (_db, doc) = three_revisions();
    let history = exported(&doc);
    let db = Database::memory().unwrap();
    let mut import = db.import_history("d", None).unwrap();
    import.push(&history[0]).unwrap();
    db.document("d").unwrap().put("0", &CommitOptions::default()).unwrap();
    assert_eq!(import.push(&history[1]).unwrap_err().kind(), ErrorKind::Conflict);

    let mut import = db.import_history("new", None).unwrap();
    db.create_document("new").unwrap();
    assert_eq!(import.push(&history[0]).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn what_is_no_history_is_refused_and_leaves_nothing() {
    let (_db, doc) = three_revisions();
    let history = exported(&doc);
    let refused = |revisions: &[ExportedRevision]| {
        let db = Database::memory().unwrap();
        let kind = imported(&db, revisions).unwrap_err().kind();
        (kind, db.documents().unwrap().len())
    };
    assert_eq!(refused(&history[1..]), (ErrorKind::Invalid, 0));
    assert_eq!(refused(&[history[0].clone(), history[2].clone()]), (ErrorKind::Invalid, 1));
    let broken = |content| ExportedRevision { content, ..history[0].clone() };
    assert_eq!(refused(&[broken(ExportedContent::Value("{".into()))]), (ErrorKind::Invalid, 0));
    let patch = broken(ExportedContent::Patch(r#"[{"op":"remove","path":"/a"}]"#.into()));
    assert_eq!(refused(&[patch]).1, 0);
    let same = ExportedRevision {
        revision: Revision(2),
        timestamp: Micros(2_000_000),
        ..history[0].clone()
    };
    assert_eq!(refused(&[history[0].clone(), same]), (ErrorKind::Invalid, 1));
}

/// One change of a random history.
#[derive(Debug, Clone)]
enum Step {
    Put(String),
    Set(usize, String),
    Remove(usize),
    Move(usize, usize),
    Rename(usize, String),
    Delete,
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        prop::sample::select(vec!["1.10", "1.1", "-0", "1E22", "0.5", "1e400"])
            .prop_map(str::to_owned),
        "[a-c\u{e9}/~]{0,3}".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|elements| format!("[{}]", elements.join(","))),
            prop::collection::vec(("[a-e]", inner), 0..5).prop_map(|members| {
                let mut seen = std::collections::BTreeSet::new();
                let members = members.into_iter().filter(|(name, _)| seen.insert(name.clone()));
                let members: Vec<String> =
                    members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => value().prop_map(Step::Put),
        3 => (any::<usize>(), value()).prop_map(|(at, value)| Step::Set(at, value)),
        3 => any::<usize>().prop_map(Step::Remove),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => (any::<usize>(), "[a-e]").prop_map(|(at, name)| Step::Rename(at, name)),
        1 => Just(Step::Delete),
    ]
}

/// The place of every value, the root first.
fn places(json: &str) -> Vec<JsonPointer> {
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let mut found = vec![(JsonPointer::root(), &value)];
    let mut next = 0;
    while let Some((place, value)) = found.get(next).cloned() {
        let mut below = |token: String, value| {
            let mut place = place.clone();
            place.push(token);
            found.push((place, value));
        };
        match value {
            serde_json::Value::Array(elements) => elements
                .iter()
                .enumerate()
                .for_each(|(index, element)| below(index.to_string(), element)),
            serde_json::Value::Object(members) => {
                members.iter().for_each(|(name, member)| below(name.clone(), member));
            }
            _ => {}
        }
        next += 1;
    }
    found.into_iter().map(|(place, _)| place).collect()
}

/// Does a step if it is possible; what is refused leaves the document as it was.
fn apply((db, doc): (&Database, &Document), step: &Step, options: &CommitOptions) {
    let Ok(head) = doc.head() else {
        doc.put(r#"{"a":[1,2]}"#, options).unwrap();
        return;
    };
    let places = places(&head.to_json().unwrap());
    let place = |index: usize| places[index % places.len()].clone();
    let done = match step {
        Step::Put(json) => doc.put(json, options),
        Step::Set(at, json) => doc.set(&place(*at), json, options),
        Step::Remove(at) => doc.remove(&place(*at), options),
        Step::Move(from, to) => {
            let position = Position::Before(Target::Pointer(place(*to)));
            doc.move_to(&place(*from), &position, None, options)
        }
        Step::Delete => db.delete_document("d", options),
        Step::Rename(at, name) => doc.rename_field(&place(*at), name, options),
    };
    if let Err(error) = done {
        assert!(
            matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict),
            "{step:?}: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Exporting a history and importing it gives the same history, as cloning a repository does.
    #[test]
    fn a_history_that_is_exported_and_imported_is_the_same(
        steps in prop::collection::vec(step(), 1..30)
    ) {
        let source = Database::memory().unwrap();
        let old = source.create_document("d").unwrap();
        for (number, step) in (0..).zip(&steps) {
            let options = CommitOptions {
                author: (number % 3 > 0).then(|| format!("author {}", number % 3)),
                message: (number % 2 > 0).then(|| format!("step {number}")),
                ..with_time(number + 1)
            };
            apply((&source, &old), step, &options);
        }
        let history = exported(&old);
        let db = Database::memory().unwrap();
        let new = imported(&db, &history).unwrap();
        prop_assert_eq!(new.head_revision().unwrap(), old.head_revision().unwrap());
        let again = exported(&new);
        for (before, after) in history.iter().zip(&again) {
            let revision = before.revision;
            let text = |doc: &Document| doc.at(revision).and_then(|at| at.to_json()).ok();
            prop_assert_eq!(text(&new), text(&old));
            prop_assert_eq!(text(&old).is_none(), before.content == ExportedContent::Deleted);
            prop_assert_eq!(
                (after.timestamp, &after.author, &after.message),
                (before.timestamp, &before.author, &before.message)
            );
            prop_assert_eq!(&after.content, &before.content);
        }
        prop_assert_eq!(history.len(), again.len());
    }
}
