//! The one door to files: results, scratch folders, and what a folder takes on the disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Bytes that files take, as their lengths say and as the file system charges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Space {
    /// The sum of the lengths.
    pub(crate) apparent: u64,
    /// The sum of the allocated blocks.
    pub(crate) allocated: u64,
}

impl Space {
    /// What has been added since an earlier look; never below nothing.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            apparent: self.apparent.saturating_sub(before.apparent),
            allocated: self.allocated.saturating_sub(before.allocated),
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            apparent: self.apparent + other.apparent,
            allocated: self.allocated + other.allocated,
        }
    }
}

/// Makes or empties a file.
#[expect(clippy::disallowed_methods, reason = "results and logs are files of the benchmark's own")]
pub(crate) fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Reads a text file, such as one of `/proc`.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Opens a file for reading.
#[expect(clippy::disallowed_methods, reason = "texts to load are files of the benchmark's own")]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Replaces a file's content.
#[expect(clippy::disallowed_methods, reason = "results are files of the benchmark's own")]
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::write(path, content)
}

/// What a folder and all below it takes; files that vanish meanwhile count as nothing.
pub(crate) fn space(folder: &Path) -> io::Result<Space> {
    let mut space = Space::default();
    each_file(folder, &mut |path| {
        if let Ok(found) = path.metadata() {
            let file = Space { apparent: found.len(), allocated: found.blocks() * 512 };
            space = space.plus(file);
        }
        Ok(())
    })?;
    Ok(space)
}

/// Drops a folder's files from the page cache, so that the next read comes from the disk.
#[cfg(target_os = "linux")]
pub(crate) fn drop_from_cache(folder: &Path) -> io::Result<()> {
    each_file(folder, &mut |path| {
        let file = open(path)?;
        // Only clean pages can be dropped.
        file.sync_data()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    })
}

/// Elsewhere there is no way to; a figure that did not do what it says is worse than none.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_from_cache(_folder: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn each_file(folder: &Path, work: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            each_file(&entry.path(), work)?;
        } else if kind.is_file() {
            work(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_sums_a_folder_with_its_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        write(&folder.path().join("a"), &[1; 100]).unwrap();
        write(&folder.path().join("inner/b"), &[1; 23]).unwrap();
        let space = space(folder.path()).unwrap();
        assert_eq!(space.apparent, 123);
        assert_eq!(space.allocated % 512, 0);
        assert_eq!(drop_from_cache(folder.path()).is_ok(), cfg!(target_os = "linux"));
    }
}
