//! One record with very many versions: neither a read of it nor a look-up in an index that it is in
//! reads more for them, at the newest revision, in the middle and at the first one.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::Device;
use duramen::{
    Collection, CommitOptions, Database, Durability, Filter, IndexDefinition, KeyKind, Options,
    Query, Revision,
};

use crate::expectation::Check;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{Operation, Profile, SimulatedDevice};

const NAME: &str = "records";
const RECORDS: u64 = 10;
/// The record that gets the versions.
const LONG: u64 = 3;
/// Versions between two checkpoints.
const CHECKPOINTED: u64 = 100_000;
/// Reads of the device that one may take beside those that it takes with one version, once all is
/// in one segment: of each of two fields what was set since its first state, and the ways to it.
const READS_MORE: u64 = 6;
/// Entries that a look-up may visit beside those that it visits with one version: the one that took
/// out again what came with the version.
const ENTRIES_MORE: u64 = 1;

/// What the first look at a record, and in indexes, reads of a database that was just opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    get: u64,
    look_up: u64,
    /// Entries of the indexes that were visited.
    entries: u64,
}

/// One round with so many versions.
pub(super) fn suite(versions: u64) -> Report {
    run(Suite::new("versions"), &[versions], &|seed| super::Replay::Versions { seed }.round())
}

/// The seed is the number of versions.
pub(super) fn round(versions: u64) -> Check<Tally> {
    try_round(versions).map_err(|error| format!("with {versions} versions: {error}"))?
}

fn try_round(versions: u64) -> duramen::Result<Check<Tally>> {
    let device = SimulatedDevice::new(versions, Profile::KIND);
    let begin = begin(&device)?;
    let one = cost(&device, begin, 1)?;
    save(&device, versions)?;
    for is_compacted in [false, true] {
        if is_compacted {
            let db = open(&device)?;
            db.compact(&mut |_, _| ControlFlow::Continue(()))?;
            db.close()?;
        }
        for more in [0, versions / 2, versions - 1] {
            let found = cost(&device, begin + more, 1 + more)?;
            let is_near = |reads: u64, before: u64| !is_compacted || reads <= before + READS_MORE;
            let is_alike = found.entries <= one.entries + ENTRIES_MORE
                && is_near(found.get, one.get)
                && is_near(found.look_up, one.look_up);
            if !is_alike {
                return Ok(Err(format!(
                    "version {} of {versions} takes {found:?}, the only one {one:?}",
                    more + 1
                )));
            }
        }
    }
    Ok(Ok(Tally { seen: ["version"].into(), ..Tally::default() }))
}

fn open(device: &SimulatedDevice) -> duramen::Result<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let durability = Durability::Interval(1_000);
    Database::open_device(device, Options { background: false, durability, ..Options::default() })
}

fn record(key: u64, version: u64) -> String {
    format!(r#"{{"fixed":{key},"n":{}}}"#, number(key, version))
}

/// What no other version of any record has.
fn number(key: u64, version: u64) -> u64 {
    key << 32 | version
}

/// Makes the records; the revision that they are there at.
fn begin(device: &SimulatedDevice) -> duramen::Result<u64> {
    let db = open(device)?;
    let records = db.create_collection(NAME, KeyKind::U64)?;
    for name in ["fixed", "n"] {
        records.create_index(&IndexDefinition::new(name, &[name])?)?;
    }
    records.put_many((0..RECORDS).map(|key| (key, record(key, 1))), &CommitOptions::default())?;
    let revision = records.head()?.revision();
    look_up(&records, revision, 1)?;
    drop(records);
    db.checkpoint()?;
    db.close()?;
    Ok(revision.0)
}

/// Gives one of them so many versions in all.
fn save(device: &SimulatedDevice, versions: u64) -> duramen::Result<()> {
    let db = open(device)?;
    let records = db.collection(NAME)?;
    for version in 2..=versions {
        records.put(LONG, record(LONG, version), &CommitOptions::default())?;
        if version.is_multiple_of(CHECKPOINTED) || version == versions {
            // The indexes follow the records, and are written.
            look_up(&records, records.head()?.revision(), version)?;
            db.checkpoint()?;
        }
    }
    drop(records);
    db.close()
}

/// Looks for the record by a value that it always had, and by that of one version; the entries that
/// were visited.
fn look_up(records: &Collection, revision: Revision, version: u64) -> duramen::Result<u64> {
    let records = records.at(revision)?;
    let mut entries = 0;
    for filter in [Filter::eq("fixed", LONG), Filter::eq("n", number(LONG, version))] {
        let mut found = records.query(&Query::new().filter(filter))?;
        let keys: Vec<_> =
            found.by_ref().map(|record| Ok(record?.key)).collect::<duramen::Result<_>>()?;
        assert_eq!(keys, [LONG.into()], "the record is found at revision {revision}");
        entries += found.counts().entries;
    }
    Ok(entries)
}

fn cost(device: &SimulatedDevice, revision: u64, version: u64) -> duramen::Result<Cost> {
    let revision = Revision(revision);
    let reads = || device.count(Operation::Read);
    let db = open(device)?;
    let records = db.collection(NAME)?;
    let before = reads();
    let found = records.at(revision)?.get(LONG)?;
    let get = reads() - before;
    let found = found.map(|found| (found.version, found.json));
    assert_eq!(found, Some((version, record(LONG, version))), "at revision {revision}");
    drop(records);
    db.close()?;
    let db = open(device)?;
    let records = db.collection(NAME)?;
    let before = reads();
    let entries = look_up(&records, revision, version)?;
    let look_up = reads() - before;
    drop(records);
    db.close()?;
    Ok(Cost { get, look_up, entries })
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_of_a_record_do_not_grow_with_its_versions() {
        super::round(5_000).unwrap();
    }
}
