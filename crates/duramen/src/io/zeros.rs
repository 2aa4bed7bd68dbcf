//! Overwriting: what was in a file is not there any more.

use std::io;

use super::{Access, Device, File, write_all_at};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Writes zeros from `start` to `end`.
pub(crate) fn write(file: &dyn File, start: u64, end: u64) -> io::Result<()> {
    let mut offset = start;
    while offset < end {
        let bytes = (end - offset).min(ZEROS.len() as u64);
        write_all_at(file, &ZEROS[..usize::try_from(bytes).unwrap_or(ZEROS.len())], offset)?;
        offset += bytes;
    }
    Ok(())
}

/// Overwrites all of a file, durably. One that is not there is fine.
pub(crate) fn overwrite(device: &dyn Device, path: &str) -> io::Result<()> {
    let file = match device.open(path, Access::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    write(file.as_ref(), 0, file.len()?)?;
    file.sync()
}
