//! Tokens of events: a feed goes on exactly behind each, also in the middle of a commit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    Database, ErrorKind, Key, KeyFilter, KeyKind, Options, ResumeToken, Retention, Revision,
    WatchFrom, WatchOptions,
};

use crate::feeds::{Random, Told, change, drain, filter, how, make, options, without_tokens};

/// Everything that a feed has now which goes on at a token that was written down.
fn rest(db: &Database, token: ResumeToken, options: &WatchOptions) -> Vec<Told> {
    let from = WatchFrom::Token(token.to_string().parse().unwrap());
    drain(&mut db.watch(&WatchOptions { from, ..options.clone() }).unwrap())
}

fn all(db: &Database, options: &WatchOptions) -> Vec<Told> {
    let from = WatchFrom::Beginning;
    drain(&mut db.watch(&WatchOptions { from, ..options.clone() }).unwrap())
}

/// Which document or record a commit did something to.
fn what((sequence, event): &Told) -> (u64, String, Option<Key>) {
    (*sequence, event.document.clone(), event.key.clone())
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

/// Goes on behind every third event of a feed, with its filter, another one, and none.
fn go_on_everywhere(db: &Database, random: &mut Random) -> usize {
    let everything = WatchOptions::default();
    let order = all(db, &everything);
    let places: BTreeMap<_, _> = order.iter().map(what).zip(0..).collect();
    assert_eq!(places.len(), order.len());
    let first = filter(random);
    let told = all(db, &first);
    let kinds = [first.clone(), filter(random), everything].map(|kind| (all(db, &kind), kind));
    let mut inside = 0;
    for event in told.iter().skip(usize::try_from(random.below(3)).unwrap()).step_by(3) {
        let (place, token) = (places[&what(event)], event.1.token);
        assert_eq!(token.sequence().0, event.0);
        inside += usize::from(token.is_inside());
        for (told, kind) in &kinds {
            let wanted = told.iter().filter(|event| places[&what(event)] > place).cloned();
            let (wanted, rest) = (without_tokens(wanted), rest(db, token, kind));
            assert_eq!(without_tokens(rest), wanted, "{first:?}, then {kind:?}, behind {token}");
        }
    }
    inside
}

/// Events of one commit once shared a token, so that who stopped between them lost some or was
/// told of some again.
#[test]
fn a_feed_goes_on_behind_each_event_whatever_it_watches() {
    let mut inside = 0;
    for seed in 0..30 {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let db = Database::open_device(Arc::clone(&device), options()).unwrap();
        make(&db);
        let mut random = Random(seed);
        for step in 0..60 {
            change(&db, &mut random);
            match step {
                20 => db.checkpoint().unwrap(),
                40 => compact(&db),
                _ => {}
            }
        }
        inside += go_on_everywhere(&db, &mut random);
        db.close().unwrap();
        let db = Database::open_device(device, Options::default()).unwrap();
        inside += go_on_everywhere(&db, &mut random);
    }
    assert!(inside > 200, "{inside} events inside of commits");
}

#[test]
fn what_is_last_in_its_commit_has_the_token_of_the_commit() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    db.create_document("d").unwrap();
    let keys = ["a", "b", "c"];
    records.put_many(keys.map(|key| (key, r#"{"n":1}"#)), &how()).unwrap();
    let mut transaction = db.transaction();
    for key in ["b", "a", "e"] {
        transaction.put_record("c", &Key::Text(key.to_owned()), br#"{"n":2}"#).unwrap();
    }
    transaction.put("d", b"2").unwrap();
    transaction.commit(&how()).unwrap();
    let token = |(_, event): &Told| {
        let (text, commit) = (event.token.to_string(), event.token.sequence());
        let parts: Vec<_> = text.split('.').skip(3).collect();
        (commit.0, parts.join("."))
    };
    let told = all(&db, &WatchOptions::default());
    let begins = told[0].0;
    let tokens: Vec<_> = told.iter().map(token).collect();
    // The feed began when the second commit was the last.
    let last = format!("b{}", begins + 1);
    let wanted = ["1.0.", "1.1.", "", "1.0.", "1.1.", "1."];
    let wanted = wanted.into_iter().zip(0..);
    let wanted: Vec<_> =
        wanted.map(|(text, at)| (begins + at / 3, format!("{text}{last}"))).collect();
    assert_eq!(tokens[..6], wanted);
    assert_eq!(tokens[6], (begins + 1, String::new()));
    // Whether other documents were changed is not looked up.
    let documents = vec!["d".to_owned()];
    let told = all(&db, &WatchOptions { documents, ..WatchOptions::default() });
    assert_eq!(token(&told[0]), (begins + 1, format!("2.{last}")));
}

const NUMBERS: [Key; 3] = [Key::I64(-1), Key::I64(2), Key::I64(3)];

/// A collection of which the history begins with a commit of three records, and what was told of
/// that commit before and after it came to that.
fn cut(kind: KeyKind, keys: [Key; 3]) -> (Database, Vec<Told>, Vec<Told>) {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", kind).unwrap();
    records.put_many(keys.clone().map(|key| (key, r#"{"n":1}"#)), &how()).unwrap();
    let from = WatchFrom::Now;
    let mut feed = db.watch(&WatchOptions { from, ..WatchOptions::default() }).unwrap();
    records.put_many(keys.map(|key| (key, r#"{"n":2}"#)), &how()).unwrap();
    let before = drain(&mut feed);
    records.document().retain(Retention::Last(1), &how()).unwrap();
    compact(&db);
    let after = all(&db, &WatchOptions::default());
    assert_eq!((before.len(), after.len()), (3, 3));
    assert!(after.iter().all(|(_, event)| event.is_first_kept));
    (db, before, after)
}

#[test]
fn the_rest_of_a_commit_of_which_the_state_before_was_dropped_is_an_error_and_no_gap() {
    let (db, told, _) = cut(KeyKind::I64, NUMBERS);
    let everything = WatchOptions::default();
    for (_, event) in &told[..2] {
        let from = WatchFrom::Token(event.token);
        let mut feed = db.watch(&WatchOptions { from, ..everything.clone() }).unwrap();
        for _ in 0..2 {
            let error = feed.try_next().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains("\"c\" begins at revision 2"), "{error}");
            assert_eq!(feed.token(), event.token);
        }
    }
    assert_eq!(rest(&db, told[2].1.token, &everything), []);
    // Behind the only record that is watched there is no rest.
    let texts = ["a", "b", "c"].map(|key| Key::Text(key.to_owned()));
    for (kind, keys) in [(KeyKind::I64, NUMBERS), (KeyKind::Text, texts)] {
        let (db, told, _) = cut(kind, keys.clone());
        let (documents, keys) = (vec!["c".to_owned()], KeyFilter::Key(keys[0].clone()));
        let one = WatchOptions { documents, keys, ..WatchOptions::default() };
        assert_eq!(rest(&db, told[0].1.token, &one), []);
    }
}

#[test]
fn a_feed_from_the_beginning_goes_on_inside_the_first_commit_that_was_kept() {
    let (db, _, told) = cut(KeyKind::I64, NUMBERS);
    let everything = WatchOptions::default();
    for (at, (_, event)) in told.iter().enumerate() {
        let rest = without_tokens(rest(&db, event.token, &everything));
        assert_eq!(rest, without_tokens(told[at + 1..].to_vec()));
    }
}

/// Records that do not stand in the order in which their keys came were left out behind a token,
/// or told again, where their collection went or came as a whole.
#[test]
fn a_feed_goes_on_in_a_collection_that_went_whatever_the_order_of_its_records() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::Text).unwrap();
    let document = records.document();
    for key in ["a", "b", "c", "d", "e"] {
        records.put(key, "{}", &how()).unwrap();
    }
    // What is undone comes back behind what it stood behind, though another came back before it.
    records.delete("b", &how()).unwrap();
    records.delete_many(&["c".into(), "d".into(), "e".into()], &how()).unwrap();
    let deleted = document.head_revision().unwrap();
    records.put("b", "{}", &how()).unwrap();
    document.undo(deleted, &how()).unwrap();
    let json = document.head().unwrap().to_json().unwrap();
    assert_eq!(json, r#"{"a":{},"c":{},"d":{},"e":{},"b":{}}"#);
    let mut transaction = db.transaction();
    transaction.delete_document("r").unwrap();
    transaction.commit(&how()).unwrap();
    records.document().revert_to(Revision(deleted.0 + 2), &how()).unwrap();
    let everything = WatchOptions::default();
    let told = all(&db, &everything);
    let wanted = without_tokens(told.clone());
    assert!(told.len() > 20);
    for (at, (_, event)) in told.iter().enumerate() {
        let rest = without_tokens(rest(&db, event.token, &everything));
        assert_eq!(rest, wanted[at + 1..], "behind {}", event.token);
    }
    assert!(db.check().unwrap().is_clean());
}
