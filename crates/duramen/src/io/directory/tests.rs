use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A lock that cut its file before it wrote to it once named no holder in between.
#[test]
fn whoever_asks_while_the_lock_changes_hands_reads_one_holder_or_the_other() {
    const HOLDERS: [&str; 2] = ["4194303", "12"];
    let folder = tempfile::tempdir().unwrap();
    let device = DirectoryDevice::new(folder.path());
    drop(device.lock("LOCK", HOLDERS[0]).unwrap());
    std::thread::scope(|scope| {
        let takes = scope.spawn(|| {
            for turn in 0..2_000 {
                drop(device.lock("LOCK", HOLDERS[turn % 2]).unwrap());
            }
        });
        while !takes.is_finished() {
            let holder = device.lock_holder("LOCK").unwrap();
            assert!(HOLDERS.contains(&holder.as_str()), "{holder:?}");
        }
    });
}

/// A read once saw the first half of a write and the rest of the holder before.
#[test]
fn a_holder_that_is_half_written_is_none() {
    let [old, new] = ["4194303\n4194303\n", "12\n12\n          "];
    assert_eq!(whole_holder(old), Some("4194303"));
    assert_eq!(whole_holder(new), Some("12"));
    for written in 1..6 {
        let text = format!("{}{}", &new[..written], &old[written..]);
        assert_eq!(whole_holder(&text), None, "{text:?}");
        assert_eq!(whole_holder(&old[..written + 9]), None);
    }
}

/// Closing the file alone once left the lock with a process that was just forked off.
#[test]
fn a_lock_that_is_dropped_is_free_though_the_file_is_open_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let device = DirectoryDevice::new(folder.path());
    let file = fs::File::create(folder.path().join("LOCK")).unwrap();
    file.try_lock().unwrap();
    // A copy of the descriptor is of the same open file, as that of a forked process is.
    let copy = file.try_clone().unwrap();
    let refused = device.lock("LOCK", "7").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    let place = Arc::new(LockPlace::of(&file, &folder.path().join("LOCK")).unwrap());
    drop(DirectoryLock { file: DirectoryFile(file), place });
    drop(device.lock("LOCK", "7").unwrap());
    drop(copy);
}

#[test]
fn a_lock_is_held_without_writing_and_keeps_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let device = DirectoryDevice::new(folder.path());
    assert!(device.hold("LOCK").unwrap().is_none());
    assert!(device.list("").unwrap().is_empty());
    let locked = device.lock("LOCK", "7").unwrap();
    let refused = device.hold("LOCK").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(locked);
    let mut permissions = fs::metadata(folder.path().join("LOCK")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path().join("LOCK"), permissions).unwrap();
    let held = device.hold("LOCK").unwrap();
    assert!(held.is_some());
    let refused = device.hold("LOCK").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(held);
    assert_eq!(device.lock_holder("LOCK").unwrap(), "7");
    drop(device.hold("LOCK").unwrap());
}

/// Whoever opened the file before it was removed once got a lock that keeps nobody out.
#[test]
fn a_lock_whose_file_is_removed_has_one_holder_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let (device, is_held) = (DirectoryDevice::new(folder.path()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut taken = 0;
                while taken < 2_000 {
                    let Ok(lock) = device.lock("LOCK", "7") else { continue };
                    assert!(!is_held.swap(true, Ordering::SeqCst), "two hold it");
                    taken += 1;
                    std::thread::yield_now();
                    is_held.store(false, Ordering::SeqCst);
                    device.remove("LOCK").unwrap();
                    drop(lock);
                }
            });
        }
    });
}

#[test]
fn a_holder_that_comes_again_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let device = DirectoryDevice::new(folder.path());
    let written = || fs::metadata(folder.path().join("LOCK")).unwrap().modified().unwrap();
    drop(device.lock("LOCK", "7").unwrap());
    let first = written();
    drop(device.lock("LOCK", "7").unwrap());
    assert_eq!(written(), first);
}

/// What a process went on to write once became part of what another one had put there meanwhile.
#[test]
fn nothing_is_changed_in_a_folder_that_took_the_place_of_the_locked_one() {
    let home = tempfile::tempdir().unwrap();
    let device = DirectoryDevice::new(home.path().join("db"));
    let lock = device.lock("LOCK", "7").unwrap();
    device.open("old", Access::Create).unwrap();
    assert!(device.is_in_place());
    fs::remove_dir_all(home.path().join("db")).unwrap();
    let other = DirectoryDevice::new(home.path().join("db"));
    other.lock("LOCK", "8").unwrap();
    other.open("a/old", Access::Create).unwrap();

    assert!(!device.is_in_place() && !lock.is_in_place());
    let refused = [
        device.open("new", Access::Create).map(drop),
        device.open("a/old", Access::Write).map(drop),
        device.create_dir("b"),
        device.rename("a/old", "new"),
        device.remove("a/old"),
        device.map("a/old", 0).map(drop),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::StaleNetworkFileHandle);
    }
    device.open("a/old", Access::Read).unwrap();
    assert_eq!(other.list("").unwrap(), ["LOCK", "a"]);
    assert_eq!(other.list("a").unwrap(), ["old"]);
    drop(lock);
    device.remove("a/old").unwrap();
}

#[test]
fn a_watched_file_is_in_place_as_long_as_nobody_else_changes_it() {
    let home = tempfile::tempdir().unwrap();
    let (device, path) = (DirectoryDevice::new(home.path()), home.path().join("M"));
    let lock = device.lock("LOCK", "7").unwrap();
    device.watch("M");
    let write = |name: &str, text: &str| fs::write(home.path().join(name), text).unwrap();
    assert!(device.is_in_place());
    write("M", "one");
    assert!(!device.is_in_place(), "it was not there");
    fs::remove_file(&path).unwrap();
    for text in ["one", "two", "three"] {
        write("M.new", text);
        device.rename("M.new", "M").unwrap();
        assert!(device.is_in_place() && lock.is_in_place());
        write("M", text);
        assert!(device.is_in_place(), "it has what it had");
        write("copy", text);
        fs::rename(home.path().join("copy"), &path).unwrap();
        assert!(device.is_in_place());
    }
    write("M", "something else");
    assert!(!device.is_in_place() && !lock.is_in_place());
    let refused = device.remove("M").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::StaleNetworkFileHandle);
    write("M", "three");
    assert!(device.is_in_place());
    fs::remove_file(&path).unwrap();
    assert!(!device.is_in_place());
    write("M", "three");
    device.remove("M").unwrap();
    assert!(device.is_in_place(), "this process removed it");
    write("M", "three");
    assert!(!device.is_in_place());
    drop(lock);
    assert!(device.is_in_place());
}

/// Who looks while the file is being replaced is not told that somebody else did it.
#[test]
fn a_watched_file_is_in_place_while_it_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let device = DirectoryDevice::new(home.path());
    let _lock = device.lock("LOCK", "7").unwrap();
    device.watch("M");
    std::thread::scope(|scope| {
        let replaces = scope.spawn(|| {
            for number in 0..2_000 {
                fs::write(home.path().join("M.new"), number.to_string()).unwrap();
                device.rename("M.new", "M").unwrap();
            }
        });
        while !replaces.is_finished() {
            assert!(device.is_in_place());
        }
    });
}
