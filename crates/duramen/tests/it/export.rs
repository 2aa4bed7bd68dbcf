//! Histories that leave one database and come into another.

use std::ops::ControlFlow;

use duramen::{
    CommitOptions, ContentHash, Database, Document, DocumentOptions, Error, ErrorKind,
    ExportedContent, ExportedFacts, ExportedRevision, IndexDefinition, JsonPointer, KeyKind,
    Micros, Position, Retention, Revision, Target,
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

/// The patch of a revision and its moves, each as `member before sibling`.
fn patch_and_moves(revision: &ExportedRevision) -> (String, Vec<String>) {
    let ExportedContent::Patch { patch, moves } = &revision.content else { panic!("{revision:?}") };
    let shown = moves.iter().map(|moved| {
        format!("{} before {}", moved.member, moved.before.as_deref().unwrap_or("nothing"))
    });
    (patch.clone(), shown.collect())
}

#[test]
fn a_patch_comes_with_the_fewest_moves_or_the_value_stands_if_that_is_shorter() {
    let (_db, doc) = three_revisions();
    let long = "x".repeat(200);
    let texts = [
        format!(r#"{{"b":[1,3],"x":0,"a":1.1,"c":null,"d":"{long}"}}"#),
        format!(r#"{{"b":[1,3],"y":2,"x":0,"a":1.1,"c":null,"d":"{long}"}}"#),
        format!(r#"{{"y":2,"x":0,"a":1.1,"c":null,"d":"{long}","b":[1,3]}}"#),
        format!(r#"{{"y":2,"x":0,"a":1.1,"c":null,"d":"{long}","b":[1,3],"z":1}}"#),
    ];
    for (number, text) in (4..).zip(&texts) {
        doc.put(text, &with_time(number)).unwrap();
    }
    let history = exported(&doc);
    assert!(matches!(&history[0].content, ExportedContent::Value(_)));
    assert!(patch_and_moves(&history[1]).1.is_empty(), "a member at the end");
    let ExportedContent::Value(text) = &history[2].content else { panic!("{history:?}") };
    assert_eq!(text, r#"{"b":[1,3],"a":1.1,"c":null}"#, "shorter than two moves");
    assert!(matches!(&history[3].content, ExportedContent::Value(_)), "shorter than the patch");
    let expected =
        (r#"[{"op":"add","path":"/y","value":2}]"#.to_owned(), vec!["/y before x".into()]);
    assert_eq!(patch_and_moves(&history[4]), expected);
    assert_eq!(patch_and_moves(&history[5]), ("[]".to_owned(), vec!["/b before nothing".into()]));
    assert!(patch_and_moves(&history[6]).1.is_empty());
    let last = ContentHash::of_json(texts[3].as_bytes());
    assert_eq!(history[6].hash, Some(last));

    let db = Database::memory().unwrap();
    let taken = imported(&db, &history).unwrap();
    assert_eq!(taken.head().unwrap().to_json().unwrap(), texts[3]);
    assert_eq!(exported(&taken)[5].content, history[5].content);
}

#[test]
fn a_revision_that_has_not_its_hash_is_not_taken_over() {
    let (_db, doc) = three_revisions();
    let mut history = exported(&doc);
    let ExportedContent::Patch { patch, .. } = &mut history[1].content else { panic!() };
    *patch = patch.replace("null", "true");
    let db = Database::memory().unwrap();
    let error = imported(&db, &history).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let [expected, found] = [r#"{"a":1.1,"b":[1,3],"c":null}"#, r#"{"a":1.1,"b":[1,3],"c":true}"#]
        .map(|json| ContentHash::of_json(json.as_bytes()).to_string());
    let message = error.to_string();
    assert!(message.contains("revision 2") && message.contains(&expected), "{message}");
    assert!(message.contains(&found), "{message}");
    assert_eq!(db.document("d").unwrap().head_revision().unwrap(), Revision(1));
    // The first one of all leaves no document.
    let broken = ExportedRevision { hash: Some(ContentHash::of_json(b"2")), ..history[0].clone() };
    let db = Database::memory().unwrap();
    assert_eq!(imported(&db, &[broken]).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(db.documents().unwrap().is_empty());
}

#[test]
fn a_history_without_hashes_is_taken_over_and_compared_by_its_content() {
    let (_db, doc) = three_revisions();
    let bare = |revision: ExportedRevision| ExportedRevision { hash: None, ..revision };
    let history: Vec<_> = exported(&doc).into_iter().map(bare).collect();
    let db = Database::memory().unwrap();
    imported(&db, &history).unwrap();
    imported(&db, &history).unwrap();
    let content = |doc: &Document| -> Vec<_> {
        exported(doc).into_iter().map(|revision| (revision.content, revision.hash)).collect()
    };
    assert_eq!(content(&db.document("d").unwrap()), content(&doc));
    // A value stands for a patch.
    let mut values = history.clone();
    values[1].content = ExportedContent::Value(doc.at(Revision(2)).unwrap().to_json().unwrap());
    imported(&db, &values).unwrap();
}

/// Takes the revisions of a document over, and what is said of it.
fn imported_with_facts(
    db: &Database,
    history: &[ExportedRevision],
    facts: &ExportedFacts,
) -> Result<Document, Error> {
    let mut import = db.import_history("d", None)?;
    import.set_facts(facts.clone())?;
    for revision in history {
        import.push(revision)?;
    }
    import.finish()?;
    db.document("d")
}

fn declared() -> DocumentOptions {
    DocumentOptions {
        ids: [("$.b".parse().unwrap(), "id".to_owned())].into(),
        maps: ["$.m".parse().unwrap()].into(),
        keep: Retention::Last(9),
        ..DocumentOptions::default()
    }
}

#[test]
fn options_and_tags_are_taken_over_with_who_set_them() {
    let (_db, doc) = three_revisions();
    let by_ann = CommitOptions {
        author: Some("ann".into()),
        message: Some("good".into()),
        ..CommitOptions::default()
    };
    doc.set_options(&declared(), &by_ann).unwrap();
    doc.tag("v1", Some(Revision(1)), &by_ann).unwrap();
    doc.tag("v2", Some(Revision(3)), &CommitOptions::default()).unwrap();
    let facts = doc.export().unwrap().facts().unwrap();
    let history = exported(&doc);
    let db = Database::memory().unwrap();
    // Stopped before its end it sets no tag; begun again it does.
    let mut import = db.import_history("d", None).unwrap();
    import.set_facts(facts.clone()).unwrap();
    import.push(&history[0]).unwrap();
    let late = import.set_facts(facts.clone()).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Invalid);
    drop(import);
    assert!(db.document("d").unwrap().tags().unwrap().is_empty());
    // They were once as new as the import.
    std::thread::sleep(std::time::Duration::from_millis(2));
    for _ in 0..2 {
        let taken = imported_with_facts(&db, &history, &facts).unwrap();
        assert_eq!(taken.options().unwrap(), declared());
        let tags = taken.tags().unwrap();
        assert_eq!((tags.len(), tags[0].revision, tags[1].revision), (2, Revision(1), Revision(3)));
        assert_eq!(
            (tags[0].author.as_deref(), tags[0].message.as_deref()),
            (Some("ann"), Some("good"))
        );
        assert_eq!(tags, doc.tags().unwrap());
        assert!(db.check().unwrap().is_clean());
    }
}

/// What a history declares to be kept was let go of while it was taken over: its tags, which come
/// last, found nothing, and begun again the import found another document.
#[test]
fn a_history_that_was_refused_in_the_middle_goes_on_behind_what_stays() {
    let source = Database::memory().unwrap();
    let records = source.create_collection("d", KeyKind::U64).unwrap();
    records.create_index(&IndexDefinition::new("n", &["n"]).unwrap().unique()).unwrap();
    for n in 0..8_u64 {
        records.put(n % 3, format!("{{\"n\":{n}}}"), &CommitOptions::default()).unwrap();
    }
    let doc = records.document();
    doc.tag("old", Some(Revision(2)), &CommitOptions::default()).unwrap();
    doc.retain(Retention::Last(2), &CommitOptions::default()).unwrap();
    let (facts, history) = (doc.export().unwrap().facts().unwrap(), exported(doc));
    let mut wrong = history.clone();
    wrong[5].content = ExportedContent::Value("{}".into());

    let db = Database::memory().unwrap();
    let compact = || db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let mut import = db.import_history("d", None).unwrap();
    import.set_facts(facts.clone()).unwrap();
    let refused = wrong.iter().find_map(|revision| import.push(revision).err()).unwrap();
    assert_eq!((refused.kind(), import.taken()), (ErrorKind::Corrupt, Revision(5)));
    assert!(refused.message().contains("revision 6 is to have the hash"), "{refused}");
    compact();
    // What is right goes on behind it, by the same import and by another one.
    assert!(import.push(&history[5]).unwrap());
    drop(import);
    compact();
    let mut import = db.import_history("d", None).unwrap();
    import.set_facts(facts.clone()).unwrap();
    let another = ExportedRevision { author: Some("eve".into()), ..history[0].clone() };
    assert_eq!(import.push(&another).unwrap_err().kind(), ErrorKind::Conflict);
    let made = history.iter().map(|revision| import.push(revision).unwrap());
    assert_eq!(made.filter(|is_made| *is_made).count(), 2);
    compact();
    assert_eq!(import.finish().unwrap(), Revision(8));
    let taken = db.document("d").unwrap();
    assert_eq!(taken.options().unwrap().keep, Retention::Last(2));
    assert_eq!(taken.tags().unwrap(), doc.tags().unwrap());
    assert_eq!(db.collection("d").unwrap().indexes().unwrap(), records.indexes().unwrap());
    compact();
    assert_eq!(taken.first_revision().unwrap(), Revision(7));
    assert!(taken.at_tag("old").is_ok());
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_document_without_revisions_is_taken_over_with_its_options() {
    let source = Database::memory().unwrap();
    let old = source.create_document_with("d", &declared()).unwrap();
    let db = Database::memory().unwrap();
    let facts = old.export().unwrap().facts().unwrap();
    let taken = imported_with_facts(&db, &[], &facts).unwrap();
    assert_eq!(
        (taken.options().unwrap(), taken.head_revision().unwrap()),
        (declared(), Revision(0))
    );
}

/// What makes facts wrong.
type Change = fn(&mut ExportedFacts);

#[test]
fn options_and_tags_that_do_not_fit_are_refused_and_no_tag_is_set() {
    let (_db, doc) = three_revisions();
    doc.tag("a", Some(Revision(1)), &CommitOptions::default()).unwrap();
    doc.tag("v", Some(Revision(2)), &CommitOptions::default()).unwrap();
    let facts = doc.export().unwrap().facts().unwrap();
    let history = exported(&doc);
    let changes: [(Change, ErrorKind); 4] = [
        (|facts| facts.tags[1].hash = ContentHash::of_json(b"0"), ErrorKind::Corrupt),
        (|facts| facts.tags[1].revision = Revision(4), ErrorKind::Invalid),
        (|facts| facts.tags[1].revision = Revision(0), ErrorKind::Invalid),
        (|facts| facts.tags[1].name = "7".into(), ErrorKind::Invalid),
    ];
    for (change, kind) in changes {
        let db = Database::memory().unwrap();
        let mut wrong = facts.clone();
        change(&mut wrong);
        assert_eq!(imported_with_facts(&db, &history, &wrong).unwrap_err().kind(), kind);
        assert!(db.document("d").unwrap().tags().unwrap().is_empty());
    }
    let db = Database::memory().unwrap();
    let taken = imported(&db, &history).unwrap();
    taken.tag("v", Some(Revision(3)), &CommitOptions::default()).unwrap();
    let error = imported_with_facts(&db, &history, &facts).unwrap_err();
    assert_eq!((error.kind(), taken.tags().unwrap().len()), (ErrorKind::Conflict, 1));
    let other = ExportedFacts { options: declared(), ..ExportedFacts::default() };
    let error = imported_with_facts(&db, &history, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

/// The patch of a move among equal elements takes one out and puts in a new one.
#[test]
fn a_revision_with_new_elements_of_the_same_values_is_imported() {
    let db = Database::memory().unwrap();
    let old = db.create_document("d").unwrap();
    old.put("[true,true]", &with_time(1)).unwrap();
    let place = |text: &str| JsonPointer::parse(text).unwrap();
    let first = Position::Before(Target::Pointer(place("/0")));
    old.move_to(&place("/1"), &first, None, &with_time(2)).unwrap();
    let history = exported(&old);
    assert_eq!(history.len(), 2);
    let new = imported(&Database::memory().unwrap(), &history).unwrap();
    assert_eq!(new.head_revision().unwrap(), Revision(2));
    assert_eq!(new.head().unwrap().to_json().unwrap(), "[true,true]");
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
        |revision| {
            revision.content = ExportedContent::Value("1".into());
            revision.hash = None;
        },
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
    let broken = |content| ExportedRevision { content, hash: None, ..history[0].clone() };
    assert_eq!(refused(&[broken(ExportedContent::Value("{".into()))]), (ErrorKind::Invalid, 0));
    let patch = r#"[{"op":"remove","path":"/a"}]"#.to_owned();
    let patch = broken(ExportedContent::Patch { patch, moves: Vec::new() });
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

/// A value that makes a document so long that moves are shorter.
fn long_value() -> impl Strategy<Value = String> {
    value().prop_map(|value| format!(r#"{{"c":"{}","a":{value}}}"#, "x".repeat(500)))
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
        2 => value().prop_map(Step::Put),
        3 => long_value().prop_map(Step::Put),
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
        steps in prop::collection::vec(step(), 1..30),
        maps in prop::collection::btree_set(prop::sample::select(vec!["$", "$.a", "$.a.b"]), 0..2),
        tagged in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let source = Database::memory().unwrap();
        let maps = maps.into_iter().map(|path| path.parse().unwrap()).collect();
        let declared = DocumentOptions { maps, ..DocumentOptions::default() };
        let old = source.create_document_with("d", &declared).unwrap();
        for (number, step) in (0..).zip(&steps) {
            let options = CommitOptions {
                author: (number % 3 > 0).then(|| format!("author {}", number % 3)),
                message: (number % 2 > 0).then(|| format!("step {number}")),
                ..with_time(number + 1)
            };
            apply((&source, &old), step, &options);
        }
        let history = exported(&old);
        for (number, index) in tagged.iter().enumerate().filter(|_| !history.is_empty()) {
            let revision = index.get(&history).revision;
            // A revision that deleted the document cannot have a tag.
            let _ = old.tag(&format!("t{number}"), Some(revision), &CommitOptions::default());
        }
        let facts = old.export().unwrap().facts().unwrap();
        let db = Database::memory().unwrap();
        let new = imported_with_facts(&db, &history, &facts);
        // Nothing at all was said of it.
        prop_assume!(!(history.is_empty() && facts.is_empty()));
        let new = new.unwrap();
        let named = |doc: &Document| -> Vec<_> {
            let tags = doc.tags().unwrap().into_iter();
            tags.map(|tag| (tag.name, tag.revision, tag.hash, tag.author, tag.message)).collect()
        };
        prop_assert_eq!((named(&new), new.options().unwrap()), (named(&old), declared));
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
            prop_assert_eq!((&after.content, after.hash), (&before.content, before.hash));
        }
        prop_assert_eq!(history.len(), again.len());
    }
}
