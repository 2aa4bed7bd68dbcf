//! A database in a folder: make a document, change it, read it, and find it again.
//!
//! `cargo run --example first_steps`

use duramen::{CommitOptions, Database, Error, JsonPointer, Options, Outcome, Result};

fn main() -> Result<()> {
    let name = format!("first-steps-{}.duramen", std::process::id());
    let folder = std::env::temp_dir().join(name);

    // The folder is made if it is missing.
    let database = Database::open(&folder, Options::default())?;
    let shop = database.create_document("shop")?;

    // Each commit that changes something is a revision: 1, 2, 3 ...
    let opened = CommitOptions { message: Some("opened".into()), ..CommitOptions::default() };
    shop.put(r#"{"name":"Corner shop","open":["mon","tue"],"price":9.90}"#, &opened)?;

    // One value is set at a JSON Pointer; `-` is the place after the last element.
    let by_ann = CommitOptions { author: Some("ann".into()), ..CommitOptions::default() };
    shop.set(&JsonPointer::parse("/price")?, "10.90", &by_ann)?;
    shop.set(&JsonPointer::parse("/open/-")?, r#""wed""#, &by_ann)?;

    // A whole document may be put again: only what differs is stored.
    let same = r#"{"name":"Corner shop","open":["mon","tue","wed"],"price":10.90}"#;
    let outcome = shop.put(same, &CommitOptions::default())?;
    assert!(matches!(outcome, Outcome::Unchanged(revision) if revision.0 == 3));

    // Numbers keep the form in which they were written.
    let head = shop.head()?;
    assert_eq!(head.revision().0, 3);
    assert_eq!(head.to_json()?, same);
    println!("{}", head.to_json()?);

    // All is there after the database was closed, which it is when its last handle goes.
    drop((head, shop));
    database.close()?;
    let database = Database::open(&folder, Options { create: false, ..Options::default() })?;
    assert_eq!(database.documents()?, ["shop"]);
    assert_eq!(database.document("shop")?.head()?.to_json()?, same);
    drop(database);
    std::fs::remove_dir_all(&folder).map_err(|error| Error::io("cannot clean up", error))
}
