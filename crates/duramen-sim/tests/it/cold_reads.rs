//! How much of the device reads touch.

use std::sync::Arc;

use duramen::io::Device;
use duramen::{CommitOptions, Database, Format, JsonPointer, Options};
use duramen_sim::{Operation, Profile, SimulatedDevice};

/// Ordinals in a row group.
const GROUP: u64 = 4_096;
const GROUPS: u64 = 24;

fn open(device: &SimulatedDevice) -> Database {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let options = Options { background: false, ..Options::default() };
    Database::open_device(device, options).unwrap()
}

fn record(index: u64) -> String {
    let city = ["NYC", "LA", "SF"][usize::try_from(index % 3).unwrap()];
    let active = index.is_multiple_of(2);
    format!(
        r#"{{"id":{index},"age":{},"city":"{city}","active":{active}}}"#,
        18 + index * 7 % 4_800
    )
}

fn reads(device: &SimulatedDevice) -> u64 {
    device.count(Operation::Read)
}

/// A row group whose cells fit a block stands in one, so that a record comes with one read.
#[test]
fn a_record_of_a_row_group_that_nobody_read_yet_is_in_one_block() {
    let device = SimulatedDevice::new(1, Profile::CRUEL);
    let db = open(&device);
    let records: Vec<String> = (0..GROUP * GROUPS).map(record).collect();
    let document = db.create_document("d").unwrap();
    document.put(format!("[{}]", records.join(",")), &CommitOptions::default()).unwrap();
    drop(document);
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open(&device);
    let snapshot = db.document("d").unwrap().head().unwrap();
    let mut blocks = 0;
    for group in 0..GROUPS {
        let index = group * GROUP + group * 7 % GROUP;
        let place = JsonPointer::parse(&format!("/{index}")).unwrap();
        let before = reads(&device);
        let mut text = Vec::new();
        snapshot.append_json(&place, &Format::default(), &mut text).unwrap();
        assert_eq!(text, record(index).as_bytes());
        let read = reads(&device) - before;
        // The first read also reads the way to the array.
        assert!(read <= 1 || group == 0, "{read} reads for a record of row group {group}");
        blocks += read;
    }
    assert!(blocks >= GROUPS / 4, "{blocks} reads are too few to be from the device");
}
