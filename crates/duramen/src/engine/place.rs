//! Whether a place without a manifest may become a database, and what to say where there is none.
//!
//! Invariant: what a lost manifest leaves is never overwritten.

use std::io::ErrorKind as Os;
use std::path::Path;
use std::sync::Arc;

use crate::engine::recovery::LOCK;
use crate::engine::salvage::COPIES;
use crate::engine::unfinished;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Device, DirectoryDevice, is_numbered};
use crate::manifest::Manifest;
use crate::segment::salvage::numbers;
use crate::{journal, manifest, segment, staging};

/// The error for a place without a manifest.
pub(super) fn absence(device: &Arc<dyn Device>) -> Error {
    check_remains(device).err().unwrap_or_else(|| {
        let message = "there is no Duramen database here: create one with \"duramen init\", or \
                       check the path";
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Refuses a place that has what only a database with a manifest has, or one in the making.
pub(super) fn check_remains(device: &Arc<dyn Device>) -> Result<()> {
    if device.open(unfinished::MANIFEST, Access::Read).is_ok() {
        let message = format!(
            "there is no Duramen database here: {} is of a load, restore or repair that has not \
             ended or was interrupted; if none is running, remove the folder and run it again",
            unfinished::MANIFEST
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    // Cells that a repair copied are made for a new database, and of no use to another.
    let number = numbers(device.as_ref())?.into_iter().find(|&number| number < COPIES);
    let segment = number.map(crate::segment::path);
    let Some(file) =
        segment.map_or_else(|| journal::written(Arc::clone(device)), |path| Ok(Some(path)))?
    else {
        return Ok(());
    };
    if device.open(manifest::PATH, Access::Read).is_ok() {
        let message = "another process has just made the database: try again";
        return Err(Error::new(ErrorKind::Busy, message));
    }
    let message = format!(
        "{}: it is missing, though {file} of a database is there: restore a backup, salvage what \
         is there with \"duramen repair\", or remove the folder if nothing of it is wanted",
        manifest::PATH
    );
    Err(Error::new(ErrorKind::Corrupt, message))
}

/// Refuses to make a database where something else is, or if it should not be made.
pub(super) fn check_place(device: &Arc<dyn Device>, create: bool) -> Result<()> {
    if !create {
        return Err(absence(device));
    }
    check_remains(device)?;
    let list = |folder: &str| match device.list(folder) {
        Err(error) if error.kind() == Os::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| Error::io("cannot look into the database folder", error)),
    };
    let names = list("")?;
    // Another process has just made it.
    if names.iter().any(|name| name == manifest::PATH) {
        return Ok(());
    }
    let ours = |name: &&String| {
        [LOCK, manifest::NEW_PATH].contains(&name.as_str()) || FOLDERS.contains(&name.as_str())
    };
    let mut other = names.iter().find(|name| !ours(name)).cloned();
    for folder in FOLDERS {
        let mut within = list(folder)?.into_iter().filter(|name| !is_of_engine(folder, name));
        other = other.or_else(|| within.next().map(|name| format!("{folder}/{name}")));
    }
    let Some(other) = other else { return Ok(()) };
    let message = format!(
        "the folder is not a Duramen database: it has \"{other}\"; name an empty or a new one"
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The folders of a database.
const FOLDERS: [&str; 3] = [journal::DIRECTORY, segment::DIRECTORY, staging::DIRECTORY];

/// Whether a database has, or may come to have, a file of its own at a path.
pub(crate) fn is_of_database(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let name = name.to_string_lossy();
    let is_database = |folder: &Path| match Manifest::load(&DirectoryDevice::new(folder)) {
        Ok(manifest) => manifest.is_some(),
        Err(error) => error.kind() == ErrorKind::Corrupt,
    };
    if [LOCK, manifest::PATH, manifest::NEW_PATH].contains(&name.as_ref()) {
        return is_database(folder);
    }
    let within = folder.file_name().unwrap_or_default().to_string_lossy();
    FOLDERS.contains(&within.as_ref())
        && is_of_engine(&within, &name)
        && folder.parent().is_some_and(is_database)
}

/// Whether the engine gives a file in one of its folders such a name.
pub(super) fn is_of_engine(folder: &str, name: &str) -> bool {
    match folder {
        journal::DIRECTORY => {
            is_numbered(name, ".journal", u8::is_ascii_digit)
                || ["unfinished", "RESERVE"].contains(&name)
        }
        segment::DIRECTORY => segment::is_of_engine(name),
        _ => staging::is_of_engine(name),
    }
}
