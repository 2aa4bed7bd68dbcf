//! Questions to the past: what was it then, what changed, who did it, how did one value move.
//!
//! `cargo run --example time_travel`

use duramen::{CommitOptions, Database, JsonPointer, LogQuery, Micros, Moment, Result, Revision};

/// 2024-05-01T00:00:00Z, and the length of a day.
const MAY: Micros = Micros(1_714_521_600_000_000);
const DAY: i64 = 86_400_000_000;

fn main() -> Result<()> {
    let database = Database::memory()?;
    let prices = database.create_document("prices")?;

    // History from elsewhere is loaded with the times it had there.
    for (day, author, json) in [
        (0, "ann", r#"{"tea":2.50,"coffee":3.00}"#),
        (10, "ben", r#"{"tea":2.50,"coffee":3.20}"#),
        (20, "ann", r#"{"tea":2.80,"coffee":3.20,"cake":4.00}"#),
    ] {
        let options = CommitOptions {
            author: Some(author.into()),
            timestamp: Some(Micros(MAY.0 + day * DAY)),
            ..CommitOptions::default()
        };
        prices.put(json, &options)?;
    }

    // What was it? By revision, or by time.
    assert_eq!(prices.at(Revision(1))?.to_json()?, r#"{"tea":2.50,"coffee":3.00}"#);
    let mid_may = prices.at_time(Micros(MAY.0 + 15 * DAY))?;
    assert_eq!(mid_may.revision(), Revision(2));
    println!("in the middle of May: {}", mid_may.to_json()?);

    // What changed between? As a JSON Patch, or change by change.
    let diff = prices.diff(Revision(1), Revision(3))?;
    for change in &diff.changes {
        println!("{:?} {}: {:?} -> {:?}", change.kind, change.pointer, change.before, change.after);
    }
    assert_eq!(diff.changes.len(), 3);
    println!("as a patch: {}", diff.to_json_patch());

    // How did one value move? Each run is a value and the revisions that had it.
    let coffee = prices.head()?.history(&JsonPointer::parse("/coffee")?)?;
    let runs = coffee.collect::<Result<Vec<_>>>()?;
    for run in &runs {
        println!("coffee, revisions {} to {}: {}", run.first, run.last, run.value);
    }
    assert_eq!(runs.len(), 2);

    // Who changed it, and when? Newest first.
    let query = LogQuery {
        author: Some("ann".into()),
        from: Some(Moment::Time(Micros(MAY.0 + DAY))),
        ..LogQuery::default()
    };
    let by_ann = prices.log(&query)?.collect::<Result<Vec<_>>>()?;
    assert_eq!(by_ann.len(), 1);
    assert_eq!(by_ann[0].revision, Revision(3));
    Ok(())
}
