use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;
use crate::io::{Access, Device, MemoryDevice};
use crate::segment::tests::META;

const TREE: TreeId = TreeId(3);

/// Entries of consecutive ordinals: the map that each is in, and its name.
type Batch = Vec<(i64, i64)>;

/// The bytes of the segment that names are written to.
fn written(names: Names) -> Result<Vec<u8>> {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let mut writer = SegmentWriter::create(&device, 1, META)?;
    names.write((TREE, Subject::Records), &mut writer)?;
    writer.finish()?;
    let file = device.open(&crate::segment::path(1), Access::Read).unwrap();
    let len = usize::try_from(file.len().unwrap()).unwrap();
    Ok(crate::io::read_vec_at(file.as_ref(), len, 0).unwrap())
}

/// The names of batches, as integers where `is_integers` says so.
fn gathered(batches: &[Batch], is_integers: impl Fn(usize) -> bool) -> Names {
    let (mut names, mut ordinal) = (Names::default(), 0);
    for (index, batch) in batches.iter().enumerate() {
        let (maps, keys): (Vec<i64>, Vec<i64>) = batch.iter().copied().unzip();
        let at = (PathId(2), ordinal);
        if is_integers(index) {
            names.push_integers(at, &maps, &keys);
        } else {
            let texts = keys.iter().map(|key| text_of_integer((*key).into()));
            names.push(at, maps.iter().map(|map| map.cast_unsigned()).zip(texts));
        }
        ordinal += batch.len() as u64;
    }
    names
}

fn outcome(written: Result<Vec<u8>>) -> Result<Vec<u8>, (ErrorKind, String)> {
    written.map_err(|error| (error.kind(), error.message().to_owned()))
}

fn arb_batches() -> impl Strategy<Value = Vec<Batch>> {
    let key = prop_oneof![any::<i64>(), -30_i64..30, Just(i64::MIN), Just(i64::MAX)];
    let some = prop::collection::vec((0_i64..3, key), 1..12);
    let rising = (0_i64..3, -200_i64..200, 1_i64..200)
        .prop_map(|(map, first, count)| (first..first + count).map(|key| (map, key)).collect());
    prop::collection::vec(prop_oneof![some, rising], 1..6)
}

proptest! {
    #[test]
    fn integers_are_written_as_their_texts_are(batches in arb_batches(), texts in 0_usize..64) {
        let mixed = gathered(&batches, |index| texts >> index & 1 == 0);
        let [all, none] = [true, false].map(|are| gathered(&batches, |_| are));
        prop_assert_eq!(all.first_in_order(TREE), none.first_in_order(TREE));
        prop_assert_eq!(mixed.first_in_order(TREE), none.first_in_order(TREE));
        let expected = outcome(written(none));
        prop_assert_eq!(outcome(written(all)), expected.clone());
        prop_assert_eq!(outcome(written(mixed)), expected);
    }
}
