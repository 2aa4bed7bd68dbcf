//! Row groups too large to be read whole, whose changes lie in many run pieces.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::MemoryDevice;
use duramen::{CommitOptions, Database, Document, Format, JsonPointer, Options, Revision};

const RECORDS: usize = 5;
const REVISIONS: usize = 600;
/// The revision that first sets `/4/late`.
const LATE: usize = 333;

/// What `/0/text`, `/1/text` ... were at each revision, and the changes of `/4/late`.
struct Model {
    /// By revision from 1.
    texts: Vec<[String; RECORDS]>,
    device: Arc<MemoryDevice>,
}

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

fn open(device: &Arc<MemoryDevice>) -> Database {
    Database::open_device(Arc::<MemoryDevice>::clone(device), options()).unwrap()
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

/// Of the records 0 changes at every second revision, 1 at every tenth, 2 at every hundredth, 3
/// once, 4 never.
fn changed_record(revision: usize) -> usize {
    match revision {
        50 => 3,
        _ if revision.is_multiple_of(100) => 2,
        _ if revision.is_multiple_of(10) => 1,
        _ => 0,
    }
}

/// The life of the document with a checkpoint every so many revisions, and segments merged into
/// one that often.
fn build(checkpoint_every: usize) -> Model {
    build_compacted(checkpoint_every, usize::MAX)
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

fn build_compacted(checkpoint_every: usize, compact_every: usize) -> Model {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    let plain = CommitOptions::default();
    let long = |revision: usize| format!("{revision} {}", "x".repeat(300));
    let mut texts = vec![std::array::from_fn(|_| long(1))];
    let record = format!(r#"{{"text":"{}"}}"#, long(1));
    document.put(format!("[{}]", vec![record; RECORDS].join(",")), &plain).unwrap();
    for revision in 2..=REVISIONS {
        let mut now: [String; RECORDS] = texts[revision - 2].clone();
        let mut transaction = db.transaction();
        let record = changed_record(revision);
        now[record] = long(revision);
        let text = format!("\"{}\"", now[record]);
        let at = pointer(&format!("/{record}/text"));
        transaction.set("d", &at, text.as_bytes()).unwrap();
        if revision >= LATE {
            transaction.set("d", &pointer("/4/late"), revision.to_string().as_bytes()).unwrap();
        }
        transaction.commit(&plain).unwrap();
        texts.push(now);
        if revision.is_multiple_of(checkpoint_every) {
            db.checkpoint().unwrap();
        }
        if revision.is_multiple_of(compact_every) {
            compact(&db);
        }
    }
    drop(document);
    db.close().unwrap();
    Model { texts, device }
}

fn value(document: &Document, revision: usize, at: &str) -> String {
    let mut out = Vec::new();
    let snapshot = document.at(Revision(revision as u64)).unwrap();
    snapshot.append_json(&pointer(at), &Format::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Revisions in no order, each once.
fn shuffled() -> impl Iterator<Item = usize> {
    (0..REVISIONS).map(|index| index * 389 % REVISIONS + 1)
}

#[test]
fn states_are_found_in_any_order_of_revisions() {
    let compacted = [(7, 90), (100, REVISIONS), (7, REVISIONS), (1, 70)];
    for (checkpoint_every, compact_every) in
        [(7, usize::MAX), (100, usize::MAX)].into_iter().chain(compacted)
    {
        let model = build_compacted(checkpoint_every, compact_every);
        let db = open(&model.device);
        let document = db.document("d").unwrap();
        for revision in shuffled() {
            let texts = &model.texts[revision - 1];
            for (record, text) in texts.iter().enumerate() {
                let found = value(&document, revision, &format!("/{record}/text"));
                assert_eq!(found, format!("\"{text}\""), "{record} at {revision}");
            }
        }
    }
}

#[test]
fn whole_values_are_printed_from_many_pieces() {
    let model = build(40);
    let db = open(&model.device);
    let document = db.document("d").unwrap();
    for revision in shuffled().step_by(11) {
        let late = if revision >= LATE { format!(r#","late":{revision}"#) } else { String::new() };
        let texts = model.texts[revision - 1].iter().enumerate();
        let records: Vec<String> = texts
            .map(|(record, text)| {
                let late = if record == 4 { late.as_str() } else { "" };
                format!(r#"{{"text":"{text}"{late}}}"#)
            })
            .collect();
        let found = document.at(Revision(revision as u64)).unwrap().to_json().unwrap();
        assert_eq!(found, format!("[{}]", records.join(",")), "{revision}");
    }
}

#[test]
fn histories_are_whole_in_pages_of_any_size_and_over_a_checkpoint() {
    for page in [1, 10, 1_000] {
        for record in 0..RECORDS {
            let model = build_compacted(33, if page == 10 { 100 } else { usize::MAX });
            let db = open(&model.device);
            let document = db.document("d").unwrap();
            let at = pointer(&format!("/{record}/text"));
            let mut history = document.head().unwrap().history(&at).unwrap();
            let mut runs = Vec::new();
            while {
                let before = runs.len();
                history.page(page, &mut runs).unwrap();
                // What was loaded is dropped while the history goes on.
                let other = runs.len().to_string();
                document.set(&pointer("/0/other"), &other, &CommitOptions::default()).unwrap();
                db.checkpoint().unwrap();
                runs.len() > before
            } {}
            let mut expected = Vec::new();
            for revision in (1..=REVISIONS).rev() {
                let own = &model.texts[revision - 1][record];
                if revision == 1 || *own != model.texts[revision - 2][record] {
                    expected.push((revision as u64, format!("\"{own}\"")));
                }
            }
            let found: Vec<(u64, String)> =
                runs.iter().map(|run| (run.first.0, run.value.to_string())).collect();
            assert_eq!(found, expected, "record {record}, pages of {page}");
        }
    }
}

#[test]
fn a_field_tells_the_revision_that_created_it_whatever_was_read_before() {
    let models = [build(10), build_compacted(10, REVISIONS)];
    for (model, read_first) in models
        .iter()
        .flat_map(|model| [1, LATE - 1, LATE + 100, REVISIONS].map(|first| (model, first)))
    {
        let db = open(&model.device);
        let document = db.document("d").unwrap();
        value(&document, read_first, "/4");
        let format = Format { metadata: true, ..Format::default() };
        let mut out = Vec::new();
        let head = document.head().unwrap();
        head.append_json(&pointer("/4/late"), &format, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = format!(r#""created":{LATE},"changed":{REVISIONS},"#);
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn readers_of_old_revisions_see_what_they_were_while_checkpoints_and_compactions_go_on() {
    let model = build(50);
    let db = open(&model.device);
    let document = db.document("d").unwrap();
    std::thread::scope(|scope| {
        let reader = |seed: usize| {
            let (document, texts) = (document.clone(), &model.texts);
            move || {
                for revision in shuffled().skip(seed * 37).take(300) {
                    let text = &texts[revision - 1][seed];
                    let found = value(&document, revision, &format!("/{seed}/text"));
                    assert_eq!(found, format!("\"{text}\""), "{seed} at {revision}");
                }
            }
        };
        let readers: Vec<_> = (0..3).map(|seed| scope.spawn(reader(seed))).collect();
        for change in 0..40 {
            let text = format!("\"later {change}\"");
            document.set(&pointer("/0/text"), &text, &CommitOptions::default()).unwrap();
            db.checkpoint().unwrap();
            if change % 10 == 9 {
                compact(&db);
            }
            assert_eq!(value(&document, REVISIONS + 1 + change, "/0/text"), text);
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
