//! The manifest: replaced as a whole, damage told from a newer format.
#![expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that goes wrong may panic"
)]

use super::*;
use crate::io::Access;
use crate::segment::tests::device::TestDevice;

fn sample() -> Manifest {
    let segment = |number: u64| SegmentInfo {
        number,
        footer: BlockAddress {
            offset: (number * 1_000).into(),
            length: 136.into(),
            checksum: 0x1234_5678.into(),
        },
        cells: 17,
        level: 3,
        encoding: Encoding::Cold,
        first_sequence: CommitSequence(number),
        last_sequence: CommitSequence(number + 5),
    };
    Manifest {
        epoch: 4,
        clean: true,
        next_segment: 13,
        checkpoint: JournalPoint {
            position: JournalPosition { file: 2, offset: 4_096 },
            sequence: CommitSequence(99),
            timestamp: Micros(77),
        },
        segments: vec![segment(12), segment(7)],
        epochs: vec![
            EpochStart { epoch: 3, recovered: CommitSequence(40) },
            EpochStart { epoch: 4, recovered: CommitSequence(41) },
        ],
        ..Manifest::new(0xfeed_0001, Micros(1_700_000_000_000_000))
    }
}

/// Seals changed bytes, as a newer version would have written them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn what_was_stored_last_is_loaded() {
    let device = TestDevice::default();
    assert_eq!(Manifest::load(&device).unwrap(), None);
    Manifest::new(7, Micros(5)).store(&device).unwrap();
    assert_eq!(Manifest::load(&device).unwrap(), Some(Manifest::new(7, Micros(5))));
    // A crash may have left the beginnings of a new manifest.
    device.open(FILE.new_path, Access::Create).unwrap();
    sample().store(&device).unwrap();
    assert_eq!(Manifest::load(&device).unwrap(), Some(sample()));
    assert_eq!(device.paths(), [PATH]);
}

#[test]
fn damage_to_any_byte_is_told() {
    let sound = sample().encode();
    for at in 0..sound.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            let error = Manifest::decode(&damaged).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at} ^ {flip}: {error}");
        }
    }
    for length in 0..sound.len() {
        let error = Manifest::decode(&sound[..length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "cut to {length}: {error}");
    }
}

#[test]
fn decoding_sealed_bytes_never_panics() {
    let sound = sample().encode();
    for at in 12..sound.len() {
        let mut changed = sound.clone();
        changed[at] ^= 0xff;
        let _ = Manifest::decode(&sealed(changed));
    }
}

#[test]
fn numbers_that_no_database_comes_to_are_damage() {
    let sound = sample().encode();
    // Epoch, next segment, checkpoint, journal file, its offset, a segment and its last commit.
    for at in [56, 72, 80, 96, 104, 120, 176 + 40] {
        let mut changed = sound.clone();
        changed[at..at + 8].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
        let error = Manifest::decode(&sealed(changed)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
    }
    let mut changed = sound;
    changed[72] = 12;
    let error = Manifest::decode(&sealed(changed)).unwrap_err();
    assert!(error.message().contains("next segment: expected 13 to"), "{error}");
}

#[test]
fn a_newer_format_or_feature_is_unsupported() {
    let sound = sample().encode();
    for at in [16, 24] {
        let mut newer = sound.clone();
        newer[at] = 16;
        let error = Manifest::decode(&sealed(newer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "byte {at}: {error}");
    }
}

#[test]
fn a_feature_to_write_leaves_the_database_readable() {
    let mut bytes = sample().encode();
    bytes[32] = 1;
    let manifest = Manifest::decode(&sealed(bytes)).unwrap();
    assert_eq!(manifest.check_writable().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(sample().check_writable().is_ok());
}

#[test]
fn where_the_newest_epochs_began_is_kept() {
    let mut manifest = Manifest::new(7, Micros(5));
    for recovered in 0..2 * EPOCHS_KEPT_MAX as u64 {
        manifest.begin_epoch(CommitSequence(recovered));
    }
    assert_eq!(manifest.epochs.len(), EPOCHS_KEPT_MAX);
    let newest = EpochStart {
        epoch: 1 + 2 * EPOCHS_KEPT_MAX as u64,
        recovered: CommitSequence(2 * EPOCHS_KEPT_MAX as u64 - 1),
    };
    assert_eq!(manifest.epochs.last(), Some(&newest));
    assert_eq!(manifest.epoch, newest.epoch);
    assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
}
