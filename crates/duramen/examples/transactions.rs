//! Several documents in one commit, changes that must not overwrite others, and consistent reads.
//!
//! `cargo run --example transactions`

use duramen::{CommitOptions, Database, ErrorKind, JsonPointer, Result};

fn main() -> Result<()> {
    let database = Database::memory()?;
    let options = CommitOptions::default();
    let balance = JsonPointer::parse("/balance")?;

    // All or nothing: both accounts are there, or neither.
    let mut transaction = database.transaction();
    transaction.put("ann", br#"{"balance":100}"#)?;
    transaction.put("ben", br#"{"balance":0}"#)?;
    let committed = transaction.commit(&options)?;
    assert_eq!(committed.revisions.len(), 2);

    // A snapshot of the database is one commit of all documents; nothing moves under it.
    let before = database.snapshot();

    // A transaction reads what it has written.
    let mut transfer = database.transaction();
    transfer.set("ann", &balance, b"70")?;
    transfer.set("ben", &balance, b"30")?;
    assert_eq!(transfer.get("ben", &balance)?, "30");
    transfer.commit(&options)?;

    assert_eq!(before.document("ben")?.to_json()?, r#"{"balance":0}"#);
    assert_eq!(database.document("ben")?.head()?.to_json()?, r#"{"balance":30}"#);

    // Whoever bases a change on an old revision is told, and reads again.
    let read = database.document("ann")?.head()?;
    database.document("ann")?.set(&balance, "60", &options)?;
    let mut late = database.transaction();
    let conflict = late.expect("ann", read.revision()).expect_err("ann is at revision 3");
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    println!("{conflict}");
    late.rollback();

    // Dropped without a commit, a transaction has not happened.
    let mut dropped = database.transaction();
    dropped.remove("ben", &balance)?;
    drop(dropped);
    assert_eq!(database.document("ben")?.head()?.to_json()?, r#"{"balance":30}"#);
    println!("ann: {}", database.document("ann")?.head()?.to_json()?);
    Ok(())
}
