//! Compares what copies of the collections know of each key with the model: in one that is made of
//! a dump, or of exported histories, keys go on counting their versions, also those that no kept
//! revision shows.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::MemoryDevice;
use duramen::{
    CommitOptions, Database, DepartedRecords, DumpItem, DumpLoad, ExportedRevision, Options,
};

use super::change::key;
use super::model::Model;
use super::{COLLECTIONS, KEYS};
use crate::SimulatedClock;
use crate::expectation::Check;
use crate::oracle::said;

/// Compares both copies; whether a key had departed.
pub(super) fn compare(db: &Database, model: &Model, clock: &SimulatedClock) -> Check<bool> {
    let options =
        Options { background: false, clock: Arc::new(clock.clone()), ..Options::default() };
    let (loaded, has_departed) = said("load a dump", loaded(db, &options))?;
    keys(&loaded, model).map_err(|what| format!("loaded from a dump: {what}"))?;
    let imported = said("import histories", imported(db, options))?;
    keys(&imported, model).map_err(|what| format!("imported: {what}"))?;
    Ok(has_departed)
}

fn loaded(db: &Database, options: &Options) -> duramen::Result<(Database, bool)> {
    let device = Arc::new(MemoryDevice::new());
    let mut load = DumpLoad::into_new(Arc::<MemoryDevice>::clone(&device), options.clone())?;
    let (mut dump, mut has_departed) = (db.snapshot().dump()?, false);
    for item in &mut dump {
        let item = item?;
        has_departed |= matches!(&item, DumpItem::Revision(told) if !told.departed.is_empty());
        load.push(item)?;
    }
    load.finish(Some(dump.summary().hash))?;
    Ok((Database::open_device(device, options.clone())?, has_departed))
}

/// Begun by a version that knew of no keys that departed, and gone on with.
fn imported(db: &Database, options: Options) -> duramen::Result<Database> {
    let copy = Database::open_device(Arc::new(MemoryDevice::new()), options)?;
    for (name, _) in COLLECTIONS {
        let document = db.document(name)?;
        let history: Vec<ExportedRevision> = document.export()?.collect::<duramen::Result<_>>()?;
        let facts = document.export()?.facts()?;
        if let [first, _, ..] = &history[..] {
            let mut import = copy.import_history(name, None)?;
            import.set_facts(facts.clone())?;
            let departed = DepartedRecords::default();
            import.push(&ExportedRevision { departed, ..first.clone() })?;
        }
        let mut import = copy.import_history(name, None)?;
        import.set_facts(facts)?;
        for revision in &history {
            import.push(revision)?;
        }
        import.finish()?;
    }
    Ok(copy)
}

/// Saves each key once more, and compares the versions that come of it.
fn keys(copy: &Database, model: &Model) -> Check {
    said("compact a copy", copy.compact(&mut |_, _| ControlFlow::Continue(())))?;
    for (number, (name, _)) in COLLECTIONS.into_iter().enumerate() {
        let collection = said("collection", copy.collection(name))?;
        for place in (0..KEYS).map(|at| (number, at)) {
            let expected = model.newest().get(&place).map_or(0, |held| held.versions) + 1;
            let saved = collection.put(key(place), r#"{"copied":true}"#, &CommitOptions::default());
            let found = said("put into a copy", saved)?.version;
            if found != expected {
                return Err(format!(
                    "record {place:?} of {name} is saved as version {found}, expected {expected}"
                ));
            }
        }
    }
    let report = said("check a copy", copy.check())?;
    report.findings.first().map_or(Ok(()), |finding| {
        Err(format!("check found {}: {}", finding.place, finding.message))
    })
}
