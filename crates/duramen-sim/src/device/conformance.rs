//! What every device does: real files, memory and the simulation run the same tests.

use std::io::ErrorKind;
use std::sync::Arc;

use duramen::io::{
    Access, Device, DirectoryDevice, File, MAPPED_BYTES, MemoryDevice, read_exact_at, write_all_at,
};

use super::{Profile, SimulatedDevice};
use crate::Random;

fn on_every_device(check: impl Fn(&dyn Device)) {
    let home = tempfile::tempdir().unwrap();
    check(&DirectoryDevice::new(home.path().join("made/on/demand")));
    check(&MemoryDevice::new());
    check(&SimulatedDevice::new(1, Profile::CRUEL));
}

fn content(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0xee; usize::try_from(file.len().unwrap()).unwrap()];
    read_exact_at(file, &mut bytes, 0).unwrap();
    bytes
}

fn kind<T: std::fmt::Debug>(result: std::io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn directories_are_made_with_their_parents_and_listed_in_order() {
    on_every_device(|device| {
        device.create_dir("").unwrap();
        device.create_dir("b/c/d").unwrap();
        device.create_dir("b/c").unwrap();
        device.open("b/z", Access::Create).unwrap();
        device.open("b/a", Access::Create).unwrap();
        device.open("b.c", Access::Create).unwrap();
        device.open("made/for/it", Access::Create).unwrap();
        assert_eq!(device.list("").unwrap(), ["b", "b.c", "made"]);
        assert_eq!(device.list("b").unwrap(), ["a", "c", "z"]);
        assert_eq!(device.list("made/for").unwrap(), ["it"]);
        assert_eq!(kind(device.list("missing")), ErrorKind::NotFound);
        assert_eq!(kind(device.list("b/a")), ErrorKind::NotADirectory);
        assert!(device.create_dir("b/a").is_err());
        assert!(device.create_dir("b/a/x").is_err());
        device.sync_dir("").unwrap();
        device.sync_dir("b/c").unwrap();
        assert_eq!(kind(device.sync_dir("missing")), ErrorKind::NotFound);
    });
}

#[test]
fn a_name_opens_once_it_is_made_and_is_made_once() {
    on_every_device(|device| {
        assert_eq!(kind(device.open("x", Access::Read)), ErrorKind::NotFound);
        assert_eq!(kind(device.open("x", Access::Write)), ErrorKind::NotFound);
        let made = device.open("x", Access::Create).unwrap();
        assert!(made.is_empty().unwrap());
        assert_eq!(kind(device.open("x", Access::Create)), ErrorKind::AlreadyExists);
        write_all_at(&*made, b"oak", 0).unwrap();
        made.sync().unwrap();
        let read_only = device.open("x", Access::Read).unwrap();
        assert_eq!(content(&*read_only), b"oak");
        assert!(read_only.write_at(b"elm", 0).is_err());
        assert!(read_only.set_len(0).is_err());
        device.open("x", Access::Write).unwrap().write_at(b"elm", 0).unwrap();
        assert_eq!(content(&*read_only), b"elm");
    });
}

#[test]
fn bytes_stand_where_they_were_written_and_gaps_are_zeros() {
    on_every_device(|device| {
        let file = device.open("x", Access::Create).unwrap();
        write_all_at(&*file, b"tail", 9_000).unwrap();
        write_all_at(&*file, b"head", 0).unwrap();
        assert_eq!(file.len().unwrap(), 9_004);
        let bytes = content(&*file);
        assert_eq!((&bytes[..4], &bytes[9_000..]), (&b"head"[..], &b"tail"[..]));
        assert!(bytes[4..9_000].iter().all(|&byte| byte == 0));
        let mut buf = [0; 10];
        assert_eq!(file.read_at(&mut buf, 9_002).unwrap(), 2);
        assert_eq!(file.read_at(&mut buf, 9_004).unwrap(), 0);
        assert_eq!(file.read_at(&mut buf, 1 << 40).unwrap(), 0);
        assert_eq!(kind(read_exact_at(&*file, &mut buf, 9_000)), ErrorKind::UnexpectedEof);
        assert_eq!(file.write_at(&[], 20_000).unwrap(), 0);
        assert_eq!(file.len().unwrap(), 9_004);
    });
}

#[test]
fn what_is_cut_off_comes_back_as_zeros() {
    on_every_device(|device| {
        let file = device.open("x", Access::Create).unwrap();
        write_all_at(&*file, &[7; 10_000], 0).unwrap();
        file.set_len(5_000).unwrap();
        file.set_len(10_000).unwrap();
        let bytes = content(&*file);
        assert_eq!(bytes.len(), 10_000);
        assert!(bytes[..5_000].iter().all(|&byte| byte == 7));
        assert!(bytes[5_000..].iter().all(|&byte| byte == 0));
    });
}

#[test]
fn a_rename_replaces_and_open_files_stay_open() {
    on_every_device(|device| {
        let new = device.open("new", Access::Create).unwrap();
        let old = device.open("dir/name", Access::Create).unwrap();
        write_all_at(&*new, b"new", 0).unwrap();
        write_all_at(&*old, b"old", 0).unwrap();
        device.rename("new", "dir/name").unwrap();
        assert_eq!(content(&*device.open("dir/name", Access::Read).unwrap()), b"new");
        assert_eq!(content(&*old), b"old");
        write_all_at(&*new, b"NEW", 0).unwrap();
        assert_eq!(content(&*device.open("dir/name", Access::Read).unwrap()), b"NEW");
        assert_eq!(device.list("").unwrap(), ["dir"]);
        device.rename("dir/name", "dir/name").unwrap();
        assert_eq!(device.list("dir").unwrap(), ["name"]);
        assert_eq!(kind(device.rename("new", "other")), ErrorKind::NotFound);
        assert_eq!(kind(device.rename("dir/name", "no/where")), ErrorKind::NotFound);
        assert!(device.rename("dir/name", "dir").is_err());
    });
}

#[test]
fn a_removed_file_stays_for_those_who_have_it_open() {
    on_every_device(|device| {
        let file = device.open("x", Access::Create).unwrap();
        write_all_at(&*file, b"oak", 0).unwrap();
        device.remove("x").unwrap();
        assert_eq!(kind(device.remove("x")), ErrorKind::NotFound);
        write_all_at(&*file, b"elm", 3).unwrap();
        assert_eq!(content(&*file), b"oakelm");
        let again = device.open("x", Access::Create).unwrap();
        assert!(again.is_empty().unwrap());
        device.create_dir("dir").unwrap();
        assert!(device.remove("dir").is_err());
    });
}

#[test]
fn no_path_leads_out_of_the_device() {
    on_every_device(|device| {
        device.open("x", Access::Create).unwrap();
        for path in ["../x", "/x", "a/../../x", "./x", "a//x", ".."] {
            assert_eq!(kind(device.open(path, Access::Create)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.open(path, Access::Read)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.create_dir(path)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.rename("x", path)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.remove(path)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.list(path)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.sync_dir(path)), ErrorKind::InvalidInput);
            assert_eq!(kind(device.lock(path, "")), ErrorKind::InvalidInput);
            assert_eq!(kind(device.lock_holder(path)), ErrorKind::InvalidInput);
        }
        assert!(device.open("", Access::Create).is_err());
        assert_eq!(device.list("").unwrap(), ["x"]);
    });
}

#[test]
fn a_lock_has_one_holder_who_is_named() {
    on_every_device(|device| {
        assert_eq!(kind(device.lock_holder("LOCK")), ErrorKind::NotFound);
        let lock = device.lock("LOCK", "process 4711, a long name").unwrap();
        assert_eq!(kind(device.lock("LOCK", "process 12")), ErrorKind::WouldBlock);
        assert_eq!(device.lock_holder("LOCK").unwrap(), "process 4711, a long name");
        let other = device.lock("OTHER", "process 12").unwrap();
        drop(lock);
        let _lock = device.lock("LOCK", "process 12").unwrap();
        assert_eq!(device.lock_holder("LOCK").unwrap(), "process 12");
        drop(other);
    });
}

#[test]
fn threads_share_a_file() {
    on_every_device(|device| {
        let file = device.open("x", Access::Create).unwrap();
        std::thread::scope(|scope| {
            for part in 0..4_u8 {
                let file = &*file;
                scope.spawn(move || write_every_fourth(file, part));
            }
        });
        let bytes = content(&*file);
        assert_eq!(bytes.len(), 200_000);
        for (at, chunk) in bytes.chunks(1_000).enumerate() {
            assert!(chunk.iter().all(|&byte| usize::from(byte) == at % 4 + 1), "chunk {at}");
        }
    });
}

fn write_every_fourth(file: &dyn File, part: u8) {
    for step in 0..50 {
        let offset = (u64::from(part) + 4 * step) * 1_000;
        write_all_at(file, &[part + 1; 1_000], offset).unwrap();
    }
}

#[test]
fn a_random_script_has_the_same_outcome_everywhere() {
    for seed in 0..20 {
        let outcomes = std::sync::Mutex::new(Vec::new());
        on_every_device(|device| {
            outcomes.lock().unwrap().push(play(device, &mut Random::new(seed)));
        });
        let outcomes = outcomes.into_inner().unwrap();
        for (step, expected) in outcomes[0].iter().enumerate() {
            assert_eq!(&outcomes[1][step], expected, "memory, seed {seed}, step {step}");
            assert_eq!(&outcomes[2][step], expected, "simulation, seed {seed}, step {step}");
        }
    }
}

/// Does random things to four names; returns what each gave.
fn play(device: &dyn Device, random: &mut Random) -> Vec<String> {
    device.create_dir("d").unwrap();
    let mut open: Vec<Arc<dyn File>> = Vec::new();
    let mut outcomes = Vec::new();
    for _ in 0..200 {
        let (name, other) = (random.choose(&NAMES), random.choose(&NAMES));
        let outcome = match random.below(8) {
            0 => device.open(name, Access::Create).map(|file| {
                open.push(file);
                String::new()
            }),
            1 => device.rename(name, other).map(|()| String::new()),
            2 => device.remove(name).map(|()| String::new()),
            3 => device.list("d").map(|names| names.join(",")),
            4 => device.open(name, Access::Read).map(|file| format!("{:?}", content(&*file))),
            _ if open.is_empty() => continue,
            step => {
                let file = random.choose(&open);
                let (len, offset) = (random.index(30), random.below(60));
                let noise = vec![u8::try_from(random.below(256)).unwrap(); len];
                let changed = match step {
                    5 => file.set_len(offset),
                    _ => write_all_at(&*file, &noise, offset),
                };
                changed.map(|()| format!("{:?}", content(&*file)))
            }
        };
        outcomes.push(outcome.unwrap_or_else(|error| format!("{:?}", error.kind())));
    }
    outcomes
}

const NAMES: [&str; 4] = ["a", "b", "d/a", "d/b"];

#[test]
fn what_is_written_to_a_mapping_is_in_the_file() {
    on_every_device(|device| {
        let file = device.open("dir/mapped", Access::Create).unwrap();
        write_all_at(&*file, &[7; 5_000], 0).unwrap();
        let mut mapping = device.map("dir/mapped", 5_000).unwrap();
        mapping.write((8, 9), 5_000 - MAPPED_BYTES as u64).unwrap();
        mapping.write((10 << 64, u128::MAX), 4_095).unwrap();
        let mut expected = [7; 5_000];
        expected[5_000 - MAPPED_BYTES..].fill(0);
        (expected[5_000 - MAPPED_BYTES], expected[5_000 - MAPPED_BYTES / 2]) = (8, 9);
        expected[4_095..][..MAPPED_BYTES / 2].fill(0);
        expected[4_095 + 8] = 10;
        expected[4_095 + MAPPED_BYTES / 2..][..MAPPED_BYTES / 2].fill(0xff);
        assert_eq!(content(&*file), expected);
        file.sync().unwrap();
        assert_eq!(kind(device.map("dir/mapped", 5_001)), ErrorKind::UnexpectedEof);
        assert_eq!(kind(device.map("dir/none", 1)), ErrorKind::NotFound);
    });
}
