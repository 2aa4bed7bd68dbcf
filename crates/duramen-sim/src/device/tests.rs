use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use duramen::io::{Access, Device, File, read_exact_at, write_all_at};

use super::*;

const BEFORE: u8 = 1;
const AFTER: u8 = 2;

fn cruel(seed: u64) -> SimulatedDevice {
    SimulatedDevice::new(seed, Profile::CRUEL)
}

/// A device with a synced file `x` of `len` bytes `BEFORE`.
fn prepared(seed: u64, profile: Profile, len: usize) -> (SimulatedDevice, Arc<dyn File>) {
    let device = SimulatedDevice::new(seed, profile);
    let file = device.open("x", Access::Create).unwrap();
    write_all_at(&*file, &vec![BEFORE; len], 0).unwrap();
    file.sync().unwrap();
    device.sync_dir("").unwrap();
    (device, file)
}

fn content(device: &SimulatedDevice, path: &str) -> Vec<u8> {
    let file = device.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn exists(device: &SimulatedDevice, path: &str) -> bool {
    device.open(path, Access::Read).is_ok()
}

/// What 200 seeds leave of `x` when the power goes.
fn losses(profile: Profile, loss: PowerLoss, change: impl Fn(&dyn File)) -> Vec<Vec<u8>> {
    let after = |seed| {
        let (device, file) = prepared(seed, profile, 8_192);
        change(&*file);
        content(&device.power_loss(loss, &mut Random::new(seed)), "x")
    };
    (0..200).map(after).collect()
}

fn is_all(bytes: &[u8], value: u8) -> bool {
    bytes.iter().all(|&byte| byte == value)
}

fn is_device_error(error: &io::Error) -> bool {
    error.to_string().contains("simulated input/output error")
}

/// Probes as a journal does: append, sync, acknowledge. Returns how many of 1,000 seeds lost an
/// acknowledged record.
fn seeds_that_lose_a_record(syncs: bool) -> usize {
    let loses = |seed: &u64| {
        let mut random = Random::new(*seed);
        let device = SimulatedDevice::new(*seed, Profile::random(&mut random));
        device.create_dir("journal").unwrap();
        let file = device.open("journal/1", Access::Create).unwrap();
        file.set_len(8_192).unwrap();
        file.sync().unwrap();
        device.sync_dir("journal").unwrap();
        device.sync_dir("").unwrap();
        let records = 1 + random.below(20);
        for record in 0..records {
            write_all_at(&*file, &[AFTER; 100], record * 100).unwrap();
            if syncs {
                file.sync().unwrap();
            }
        }
        write_all_at(&*file, &[BEFORE; 3_000], records * 100).unwrap();
        let image = device.power_loss(PowerLoss::random(&mut random), &mut random);
        let acknowledged = usize::try_from(records * 100).unwrap();
        !is_all(&content(&image, "journal/1")[..acknowledged], AFTER)
    };
    (0..1_000).filter(loses).count()
}

#[test]
fn a_synced_write_survives_every_power_loss() {
    assert_eq!(seeds_that_lose_a_record(true), 0);
}

#[test]
fn an_unsynced_write_is_lost_by_many_power_losses() {
    let lost = seeds_that_lose_a_record(false);
    assert!((500..1_000).contains(&lost), "{lost} of 1,000");
}

#[test]
fn a_kill_keeps_what_was_written_and_releases_locks() {
    let (device, file) = prepared(1, Profile::CRUEL, 100);
    let _lock = device.lock("LOCK", "1").unwrap();
    write_all_at(&*file, &[AFTER; 100], 0).unwrap();
    let next = device.kill();
    assert!(next.lock("LOCK", "2").is_ok());
    assert_eq!(content(&next, "x"), [AFTER; 100]);
    let image = next.power_loss(PowerLoss::Clean, &mut Random::new(1));
    assert_eq!(content(&image, "x"), [BEFORE; 100], "a kill syncs nothing");
    assert!(device.lock("LOCK", "3").is_err(), "the first device is as it was");
}

#[test]
fn a_power_loss_releases_locks() {
    let device = cruel(1);
    let _lock = device.lock("LOCK", "1").unwrap();
    device.sync_dir("").unwrap();
    let image = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
    assert!(image.lock("LOCK", "2").is_ok());
}

#[test]
fn a_clean_loss_keeps_what_is_durable_and_nothing_else() {
    for image in losses(Profile::CRUEL, PowerLoss::Clean, |file| {
        write_all_at(file, &[AFTER; 512], 0).unwrap();
        file.set_len(10_000).unwrap();
    }) {
        assert_eq!(image, [BEFORE; 8_192]);
    }
}

#[test]
fn a_subset_keeps_and_drops_whole_writes_independently() {
    let images = losses(Profile::CRUEL, PowerLoss::Subset, |file| {
        write_all_at(file, &[AFTER; 2_000], 0).unwrap();
        write_all_at(file, &[AFTER; 2_000], 2_000).unwrap();
    });
    let whole = |image: &Vec<u8>| {
        let parts = [&image[..2_000], &image[2_000..4_000]];
        assert!(parts.iter().all(|part| is_all(part, BEFORE) || is_all(part, AFTER)));
        assert!(is_all(&image[4_000..], BEFORE));
        (image[0], image[2_000])
    };
    assert_eq!(images.iter().map(whole).collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn a_reorder_lets_an_earlier_write_win() {
    let twice = |file: &dyn File| {
        write_all_at(file, &[7; 100], 0).unwrap();
        write_all_at(file, &[8; 100], 0).unwrap();
    };
    // With both kept, only the order decides; `Subset` shows 7 only by dropping 8.
    let images = losses(Profile::CRUEL, PowerLoss::Reorder, twice);
    let first_won = images.iter().filter(|image| image[0] == 7).count();
    let images = losses(Profile::CRUEL, PowerLoss::Subset, twice);
    let second_lost = images.iter().filter(|image| image[0] == 7).count();
    assert!(first_won > second_lost + 20, "{first_won} and {second_lost}");
}

#[test]
fn torn_writes_keep_some_sectors_of_the_disk() {
    for sector in [512, 4_096] {
        let profile = Profile { sector, ..Profile::CRUEL };
        let images = losses(profile, PowerLoss::Torn, |file| {
            write_all_at(file, &[AFTER; 6_000], 1_000).unwrap();
        });
        let mut torn = 0;
        for image in &images {
            assert!(is_all(&image[..1_000], BEFORE) && is_all(&image[7_000..], BEFORE));
            let sectors = image.chunks(usize::try_from(sector).unwrap());
            for (at, bytes) in sectors.enumerate() {
                let start = at * usize::try_from(sector).unwrap();
                let from = 1_000_usize.saturating_sub(start).min(bytes.len());
                let to = 7_000_usize.saturating_sub(start).min(bytes.len());
                let own = &bytes[from..to.max(from)];
                assert!(is_all(own, BEFORE) || is_all(own, AFTER), "sector {at}");
            }
            let own = &image[1_000..7_000];
            torn += usize::from(!is_all(own, BEFORE) && !is_all(own, AFTER));
        }
        assert!(torn > 20, "{torn} of 200 at {sector}");
    }
}

#[test]
fn a_prefix_ends_anywhere_unless_sectors_are_atomic() {
    let write = |file: &dyn File| write_all_at(file, &[AFTER; 512], 512).unwrap();
    let cut =
        |image: &Vec<u8>| image.iter().rposition(|&byte| byte == AFTER).map_or(0, |at| at - 511);
    let images = losses(Profile::CRUEL, PowerLoss::Prefix, write);
    assert!(images.iter().map(cut).collect::<BTreeSet<_>>().len() > 20);
    assert!(images.iter().all(|image| is_all(&image[512..512 + cut(image)], AFTER)));

    let atomic = Profile { atomic_sector: true, ..Profile::CRUEL };
    for loss in [PowerLoss::Prefix, PowerLoss::Garbage, PowerLoss::Torn] {
        let images = losses(atomic, loss, write);
        let cuts: BTreeSet<_> = images.iter().map(cut).collect();
        assert_eq!(cuts, BTreeSet::from([0, 512]), "{loss:?}");
    }
}

#[test]
fn garbage_is_noise_inside_the_write_only() {
    let images = losses(Profile::CRUEL, PowerLoss::Garbage, |file| {
        write_all_at(file, &[AFTER; 2_048], 1_024).unwrap();
    });
    let is_noise = |image: &&Vec<u8>| image.iter().any(|&byte| byte > AFTER);
    assert!(images.iter().filter(is_noise).count() > 20);
    for image in &images {
        assert!(is_all(&image[..1_024], BEFORE) && is_all(&image[3_072..], BEFORE));
    }
}

#[test]
fn growth_survives_without_content_and_content_without_growth() {
    let images = losses(Profile::CRUEL, PowerLoss::Subset, |file| {
        write_all_at(file, &[AFTER; 1_000], 8_192).unwrap();
    });
    let seen = images.iter().map(|image| (image.len(), image.get(8_192).copied()));
    let expected = [(8_192, None), (9_192, Some(0)), (9_192, Some(AFTER))];
    assert_eq!(seen.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
}

#[test]
fn a_sequential_disk_keeps_the_changes_up_to_one() {
    let profile = Profile { sequential: true, ..Profile::CRUEL };
    let mut lengths = BTreeSet::new();
    for loss in PowerLoss::ALL {
        for image in losses(profile, loss, |file| {
            for part in 0..16 {
                write_all_at(file, &[AFTER; 512], part * 512).unwrap();
            }
        }) {
            let kept = image.iter().take_while(|&&byte| byte == AFTER).count();
            lengths.insert(kept);
            // The last one that was kept may be torn; what follows it is as it was.
            let after = kept.next_multiple_of(512);
            assert!(loss == PowerLoss::Garbage || is_all(&image[after..], BEFORE), "{loss:?}");
        }
    }
    assert!(lengths.len() > 17);
}

#[test]
fn a_name_needs_a_sync_of_its_directory() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let device = cruel(seed);
        let file = device.open("new", Access::Create).unwrap();
        write_all_at(&*file, &[AFTER; 10], 0).unwrap();
        file.sync().unwrap();
        let image = device.power_loss(PowerLoss::Subset, &mut Random::new(seed));
        seen.insert(exists(&image, "new"));
        device.sync_dir("").unwrap();
        let image = device.power_loss(PowerLoss::Subset, &mut Random::new(seed));
        assert_eq!(content(&image, "new"), [AFTER; 10]);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_file_in_a_directory_that_was_not_synced_is_lost() {
    let device = cruel(1);
    device.create_dir("dir").unwrap();
    device.open("dir/x", Access::Create).unwrap().sync().unwrap();
    device.sync_dir("dir").unwrap();
    let image = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
    assert_eq!(image.list("").unwrap(), [""; 0]);
    device.sync_dir("").unwrap();
    let image = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
    assert_eq!(image.list("dir").unwrap(), ["x"]);
}

#[test]
fn a_rename_leaves_the_old_the_new_or_both_names() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let (device, _file) = prepared(seed, Profile::CRUEL, 10);
        device.rename("x", "y").unwrap();
        let image = device.power_loss(PowerLoss::Reorder, &mut Random::new(seed));
        for name in image.list("").unwrap() {
            assert_eq!(content(&image, &name), [BEFORE; 10]);
        }
        seen.insert(image.list("").unwrap().join(","));
        device.sync_dir("").unwrap();
        let image = device.power_loss(PowerLoss::Reorder, &mut Random::new(seed));
        assert_eq!(image.list("").unwrap(), ["y"]);
    }
    assert_eq!(seen, BTreeSet::from(["x", "x,y", "y"].map(str::to_owned)));
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let (device, _file) = prepared(seed, Profile::CRUEL, 10);
        let new = device.open("x.new", Access::Create).unwrap();
        write_all_at(&*new, &[AFTER; 10], 0).unwrap();
        new.sync().unwrap();
        device.rename("x.new", "x").unwrap();
        let image =
            device.power_loss(PowerLoss::random(&mut Random::new(seed)), &mut Random::new(seed));
        seen.insert(content(&image, "x"));
    }
    assert_eq!(seen, BTreeSet::from([vec![BEFORE; 10], vec![AFTER; 10]]));
}

#[test]
fn a_removed_file_may_come_back_with_what_it_had() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let (device, file) = prepared(seed, Profile::CRUEL, 10);
        device.remove("x").unwrap();
        drop(file);
        let image = device.power_loss(PowerLoss::Subset, &mut Random::new(seed));
        seen.insert(exists(&image, "x").then(|| content(&image, "x")));
    }
    assert_eq!(seen, BTreeSet::from([None, Some(vec![BEFORE; 10])]));
}

#[test]
fn images_enumerate_every_subset() {
    let (device, file) = prepared(1, Profile::CRUEL, 4_096);
    for part in 0..4 {
        write_all_at(&*file, &[AFTER; 100], part * 100).unwrap();
    }
    write_all_at(&*file, &[AFTER; 100], 4_096).unwrap();
    device.open("y", Access::Create).unwrap();
    assert_eq!(device.pending_operations(), 7);
    let state = |image: SimulatedDevice| (content(&image, "x"), exists(&image, "y"));
    let states: Vec<_> = device.images(1_024).map(state).collect();
    assert_eq!(states.len(), 128);
    // Content beyond the end shows only if the growth survives.
    assert_eq!(states.into_iter().collect::<BTreeSet<_>>().len(), 16 * 3 * 2);

    let sampled: Vec<_> = device.images(100).map(state).collect();
    assert_eq!(sampled.len(), 100);
    assert_eq!(sampled[0], (vec![BEFORE; 4_096], false));
    assert_eq!(sampled[1], (content(&device, "x"), true));
}

#[test]
fn files_that_no_name_can_lead_to_are_not_pending() {
    let (device, file) = prepared(1, Profile::CRUEL, 10);
    device.remove("x").unwrap();
    device.sync_dir("").unwrap();
    write_all_at(&*file, b"unseen", 0).unwrap();
    assert_eq!(device.pending_operations(), 0);
    assert_eq!(device.images(10).count(), 1);
}

#[test]
fn a_crash_stops_at_the_change_and_everything_after_it() {
    let (device, file) = prepared(1, Profile::CRUEL, 10);
    let changes = device.changes();
    assert_eq!(changes, 4, "create, write, sync, sync of the directory");
    device.crash_at(changes + 1);
    file.write_at(&[AFTER], 0).unwrap();
    assert!(file.read_at(&mut [0], 0).is_ok(), "reads have no number");
    let error = file.write_at(&[AFTER], 1).unwrap_err();
    assert!(error.get_ref().unwrap().is::<PowerOff>(), "{error}");
    assert!(device.is_off());
    assert!(file.sync().is_err() && file.len().is_err() && file.read_at(&mut [0], 0).is_err());
    assert!(device.list("").is_err() && device.lock("LOCK", "").is_err());
    let image = device.images(2).last().unwrap();
    assert_eq!(content(&image, "x")[..3], [AFTER, BEFORE, BEFORE]);
    assert!(!image.is_off());
    assert_eq!(image.changes(), 0);
}

#[test]
fn a_failed_sync_discards_what_was_pending_for_good() {
    let mut lost = 0;
    for seed in 0..50 {
        let (device, file) = prepared(seed, Profile::CRUEL, 512);
        device.fail(FaultPlan::new(FaultKind::Fail(Operation::Sync), 1));
        write_all_at(&*file, &[AFTER; 512], 0).unwrap();
        assert!(is_device_error(&file.sync().unwrap_err()));
        assert_eq!(content(&device, "x"), [AFTER; 512], "reads go on and see it");
        file.sync().unwrap();
        let image =
            device.power_loss(PowerLoss::random(&mut Random::new(seed)), &mut Random::new(seed));
        lost += usize::from(content(&image, "x") == [BEFORE; 512]);
    }
    assert!((20..50).contains(&lost), "{lost} of 50");
}

/// A reader that syncs what it reads took the only notice of a failure, and the writer went on as
/// if all was well. Linux tells each open file of it.
#[test]
fn whoever_has_a_file_open_is_told_once_of_a_sync_that_failed_elsewhere() {
    let (device, writer) = prepared(1, Profile::CRUEL, 512);
    let reader = device.open("x", Access::Read).unwrap();
    device.fail(FaultPlan::new(FaultKind::Fail(Operation::Sync), 1));
    write_all_at(&*writer, &[AFTER; 512], 0).unwrap();
    assert!(is_device_error(&reader.sync().unwrap_err()));
    reader.sync().unwrap();
    assert!(is_device_error(&writer.sync().unwrap_err()));
    writer.sync().unwrap();
    device.open("x", Access::Read).unwrap().sync().unwrap();
}

#[test]
fn a_failed_sync_of_a_directory_may_lose_the_name_for_good() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let device = cruel(seed);
        device.fail(FaultPlan::new(FaultKind::Fail(Operation::SyncDir), 1));
        device.open("x", Access::Create).unwrap();
        assert!(is_device_error(&device.sync_dir("").unwrap_err()));
        device.sync_dir("").unwrap();
        assert!(exists(&device, "x"));
        seen.insert(exists(&device.power_loss(PowerLoss::Clean, &mut Random::new(1)), "x"));
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn lying_syncs_lose_synced_writes() {
    for (one_in, expected) in [(1, 200..=200), (10, 5..=60)] {
        let mut lost = 0;
        for seed in 0..200 {
            let (device, file) = prepared(seed, Profile::CRUEL, 512);
            device.lie_about_syncs(one_in);
            write_all_at(&*file, &[AFTER; 512], 0).unwrap();
            file.sync().unwrap();
            let image = device.power_loss(PowerLoss::Clean, &mut Random::new(seed));
            lost += usize::from(content(&image, "x") == [BEFORE; 512]);
        }
        assert!(expected.contains(&lost), "{lost} of 200 at one in {one_in}");
    }
}

#[test]
fn each_operation_fails_when_it_is_planned_to() {
    type Attempt = fn(&SimulatedDevice, &dyn File) -> io::Result<()>;
    let attempts: [(Operation, Attempt); 12] = [
        (Operation::CreateDir, |device, _| device.create_dir("dir")),
        (Operation::Create, |device, _| {
            let made = device.open("new", Access::Create).map(|_| ());
            device.remove("new").or(made)
        }),
        (Operation::Open, |device, _| device.open("x", Access::Write).map(|_| ())),
        (Operation::Rename, |device, _| device.rename("x", "x")),
        (Operation::Remove, |device, _| {
            device.open("old", Access::Create).ok();
            device.remove("old")
        }),
        (Operation::List, |device, _| device.list("").map(|_| ())),
        (Operation::SyncDir, |device, _| device.sync_dir("")),
        (Operation::Lock, |device, _| device.lock("LOCK", "").map(|_| ())),
        (Operation::Read, |_, file| file.read_at(&mut [0], 0).map(|_| ())),
        (Operation::Write, |_, file| file.write_at(b"oak", 0).map(|_| ())),
        (Operation::Sync, |_, file| file.sync()),
        (Operation::SetLen, |_, file| file.set_len(20)),
    ];
    for (operation, attempt) in attempts {
        for plan in [1, 3].map(|nth| FaultPlan::new(FaultKind::Fail(operation), nth)) {
            for plan in [plan.clone(), plan.sticky()] {
                let (device, file) = prepared(1, Profile::CRUEL, 10);
                device.fail(plan.clone());
                for step in 1..=5 {
                    let fails = step == plan.nth || (plan.sticky && step > plan.nth);
                    let result = attempt(&device, &*file);
                    assert_eq!(result.is_err(), fails, "{plan:?}, step {step}: {result:?}");
                }
                device.repair();
                attempt(&device, &*file).unwrap();
            }
        }
    }
}

#[test]
fn a_failed_write_leaves_at_most_a_beginning() {
    let mut kept = BTreeSet::new();
    for seed in 0..50 {
        let (device, file) = prepared(seed, Profile::CRUEL, 512);
        device.fail(FaultPlan::new(FaultKind::Fail(Operation::Write), 1));
        assert!(is_device_error(&file.write_at(&[AFTER; 512], 0).unwrap_err()));
        let bytes = content(&device, "x");
        let part = bytes.iter().take_while(|&&byte| byte == AFTER).count();
        assert!(is_all(&bytes[part..], BEFORE));
        kept.insert(part);
    }
    assert!(kept.len() > 20);
}

#[test]
fn a_full_disk_stays_full_until_space_is_freed() {
    let (device, file) = prepared(1, Profile::CRUEL, 1_000);
    let other = device.open("other", Access::Create).unwrap();
    write_all_at(&*other, &[0; 500], 0).unwrap();
    device.fail(FaultPlan::new(FaultKind::Full, 2).sticky());
    write_all_at(&*file, &[AFTER; 10], 1_000).unwrap();
    let is_full = |result: io::Result<usize>| {
        result.is_err_and(|error| error.kind() == io::ErrorKind::StorageFull)
    };
    assert!(is_full(file.write_at(&[AFTER; 10], 1_010)));
    assert!(is_full(file.write_at(&[AFTER; 10], 1_010)));
    assert!(is_full(other.set_len(501).map(|()| 0)));
    assert_eq!(file.write_at(&[AFTER; 10], 1_000).unwrap(), 10, "no growth");
    assert!(is_full(device.kill().open("x", Access::Write).unwrap().write_at(&[1], 1_010)));
    device.remove("other").unwrap();
    assert_eq!(file.write_at(&[AFTER; 500], 1_010).unwrap(), 500);
    assert!(is_full(file.write_at(&[AFTER; 1], 1_510)));
    device.repair();
    file.set_len(5_000).unwrap();
}

#[test]
fn a_full_disk_once_is_full_once() {
    let (device, file) = prepared(1, Profile::CRUEL, 10);
    device.fail(FaultPlan::new(FaultKind::Full, 1));
    assert_eq!(file.set_len(20).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.set_len(20).unwrap();
    device.set_capacity(30);
    file.set_len(30).unwrap();
    assert_eq!(file.set_len(31).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn room_of_removed_files_comes_back_after_refusals() {
    let (device, file) = prepared(1, Profile::CRUEL, 10);
    device.set_capacity(20);
    device.lag_behind_removals(2);
    let other = device.open("other", Access::Create).unwrap();
    other.set_len(10).unwrap();
    device.remove("other").unwrap();
    for _ in 0..2 {
        assert_eq!(file.set_len(20).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
    file.set_len(20).unwrap();
}

#[test]
fn loops_get_over_short_and_interrupted_operations() {
    for kind in [
        FaultKind::ShortRead,
        FaultKind::ShortWrite,
        FaultKind::Interrupt(Operation::Read),
        FaultKind::Interrupt(Operation::Write),
    ] {
        let (device, file) = prepared(1, Profile::CRUEL, 1_000);
        device.fail(FaultPlan::new(kind, 1).sticky());
        let (before, bytes) = (device.count(Operation::Write), [AFTER; 1_000]);
        write_all_at(&*file, &bytes, 0).unwrap();
        let writes = device.count(Operation::Write) - before;
        assert_eq!(content(&device, "x"), bytes);
        let reads = device.count(Operation::Read);
        assert!(writes + reads > 2, "{kind:?} struck");
    }
}

#[test]
fn a_flipped_bit_passes_or_stays() {
    let wrong = |device: &SimulatedDevice| {
        let bytes = content(device, "x");
        bytes.iter().map(|byte| (byte ^ BEFORE).count_ones()).sum::<u32>()
    };
    let (device, file) = prepared(1, Profile::CRUEL, 5_000);
    device.fail(FaultPlan::new(FaultKind::FlipBit, 2));
    assert_eq!((wrong(&device), wrong(&device), wrong(&device)), (0, 1, 0));
    device.fail(FaultPlan::new(FaultKind::FlipBit, 1).sticky());
    assert_eq!((wrong(&device), wrong(&device)), (1, 1));
    assert_eq!(wrong(&device.power_loss(PowerLoss::Clean, &mut Random::new(1))), 1);
    write_all_at(&*file, &[BEFORE; 5_000], 0).unwrap();
    assert_eq!(wrong(&device), 0, "a write heals the medium");
}

#[test]
fn a_stale_page_is_what_stood_there_before() {
    for sticky in [false, true] {
        let (device, file) = prepared(1, Profile::CRUEL, 8_192);
        device.fail(FaultPlan { sticky, ..FaultPlan::new(FaultKind::StalePage, 1) });
        write_all_at(&*file, &[AFTER; 8_192], 0).unwrap();
        file.sync().unwrap();
        let first = content(&device, "x");
        assert!(is_all(&first[..4_096], BEFORE) ^ is_all(&first[4_096..], BEFORE));
        assert_eq!(content(&device, "x") == first, sticky);
        assert_eq!(is_all(&content(&device, "x"), AFTER), !sticky);
    }
}

#[test]
fn a_misdirected_write_lands_on_another_page_or_nowhere() {
    let mut landed = BTreeSet::new();
    for seed in 0..50 {
        let (device, file) = prepared(seed, Profile::CRUEL, 3 * 4_096);
        device.fail(FaultPlan::new(FaultKind::MisdirectedWrite, 1));
        assert_eq!(file.write_at(&[AFTER; 8], 4_100).unwrap(), 8);
        let bytes = content(&device, "x");
        let at = bytes.iter().position(|&byte| byte == AFTER).unwrap();
        assert!(is_all(&bytes[at..at + 8], AFTER) && is_all(&bytes[at + 8..], BEFORE));
        landed.insert(at);
    }
    assert_eq!(landed, BTreeSet::from([4, 8_196]));
    let (device, file) = prepared(1, Profile::CRUEL, 100);
    device.fail(FaultPlan::new(FaultKind::MisdirectedWrite, 1));
    assert_eq!(file.write_at(&[AFTER; 8], 0).unwrap(), 8);
    assert_eq!(content(&device, "x"), [BEFORE; 100]);
}

#[test]
fn a_plan_counts_only_the_paths_it_is_for() {
    let (device, file) = prepared(1, Profile::CRUEL, 10);
    device.fail(FaultPlan::new(FaultKind::Fail(Operation::Write), 2).under("segments/"));
    let segment = device.open("segments/1", Access::Create).unwrap();
    for _ in 0..3 {
        file.write_at(&[AFTER], 0).unwrap();
    }
    segment.write_at(&[AFTER], 0).unwrap();
    assert!(segment.write_at(&[AFTER], 0).is_err());
}

#[test]
fn a_seed_fixes_the_run() {
    let run = |seed: u64, value: u8| {
        let mut random = Random::new(seed);
        let (device, file) = prepared(seed, Profile::random(&mut random), 4_096);
        device.fail(FaultPlan::new(FaultKind::ShortWrite, 2).sticky());
        for _ in 0..20 {
            write_all_at(&*file, &[value; 700], random.below(4_000)).unwrap();
        }
        let image = device.power_loss(PowerLoss::Torn, &mut random);
        (device.trace(), content(&image, "x"), image.trace())
    };
    for seed in 0..20 {
        assert_eq!(run(seed, AFTER), run(seed, AFTER));
        assert_ne!(run(seed, AFTER).0, run(seed, BEFORE).0, "the bytes count");
        assert_ne!(run(seed, AFTER).0, run(seed + 1, AFTER).0);
    }
}
