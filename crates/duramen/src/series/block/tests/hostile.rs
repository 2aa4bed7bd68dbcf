//! Damaged blocks: errors, never panics, and never more memory than a block may take.

use super::*;

fn read(bytes: &[u8]) -> Option<usize> {
    let block = Block::parse(Bytes::copy_from_slice(bytes)).ok()?;
    let mut points = Points::new(block.value_type());
    let decoded = block.decode(0..block.len(), &mut points);
    assert!(points.len() == if decoded.is_ok() { block.len() } else { 0 });
    let _ = (block.sequences().is_ok(), block.check().is_ok());
    decoded.ok().map(|()| points.len())
}

#[test]
fn blocks_that_are_cut_are_refused() {
    for seed in 0..60 {
        let (points, sequences) = drawn(seed, 200);
        let block = encoded(&points, &sequences, Density::Sealed);
        let bytes = block.bytes();
        assert_eq!(read(bytes), Some(200));
        for len in (0..bytes.len()).step_by(7) {
            assert_eq!(read(&bytes[..len]), None, "{len} of {} bytes", bytes.len());
        }
        let longer = [bytes, &b"x"[..]].concat();
        assert_eq!(read(&longer), None);
    }
}

#[test]
fn damaged_blocks_do_not_panic() {
    let random = &mut Numbers64(7);
    for seed in 0..400 {
        let (points, sequences) = drawn(seed, 100 + (seed as usize % 7) * 50);
        let density = if seed % 2 == 0 { Density::Sealed } else { Density::Hot };
        let block = encoded(&points, &sequences, density);
        for _ in 0..60 {
            let mut bytes = block.bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next() as u8;
            }
            read(&bytes);
        }
    }
}
