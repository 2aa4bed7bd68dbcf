//! Copying, with a SHA-256 of what was copied and a report of how far it is.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use sha2::{Digest as _, Sha256};

use super::Report;
use super::destination::{COPY_BYTES, Destination};
use super::record::{self, Digest};
use crate::error::{Error, ErrorKind, Result};
use crate::segment::SegmentInfo;

/// How far copying is, and who wants to know.
pub(super) struct Transfer<'r, 'f> {
    report: &'r mut Report<'f>,
    done: u64,
    total: u64,
    is_cancelled: bool,
}

/// Content on its way.
struct Counted<'c, 't, 'r, 'f> {
    content: &'c mut dyn Read,
    digest: Sha256,
    bytes: u64,
    transfer: &'t mut Transfer<'r, 'f>,
}

impl<'r, 'f> Transfer<'r, 'f> {
    pub(super) fn new(report: &'r mut Report<'f>, total: u64) -> Self {
        Self { report, done: 0, total, is_cancelled: false }
    }

    /// `Cancelled` once whoever is told how far it is has stopped it.
    pub(super) fn go_on(&mut self) -> Result<()> {
        self.is_cancelled |= (self.report)(self.done, self.total).is_break();
        if self.is_cancelled { Err(stopped()) } else { Ok(()) }
    }

    /// Gives `take` the content to read; the SHA-256 of what it read.
    pub(super) fn run(
        &mut self,
        content: &mut dyn Read,
        take: impl FnOnce(&mut dyn Read) -> Result<()>,
    ) -> Result<Digest> {
        self.counted(content, take).map(|(digest, _)| digest)
    }

    fn counted(
        &mut self,
        content: &mut dyn Read,
        take: impl FnOnce(&mut dyn Read) -> Result<()>,
    ) -> Result<(Digest, u64)> {
        let mut counted = Counted { content, digest: Sha256::new(), bytes: 0, transfer: self };
        let taken = take(&mut counted);
        let (digest, bytes) = (counted.digest.finalize().into(), counted.bytes);
        if self.is_cancelled {
            return Err(stopped());
        }
        taken.map(|()| (digest, bytes))
    }

    /// Reads a segment of a backup into `out`, which has to have the SHA-256 that is known.
    pub(super) fn fetch(
        &mut self,
        destination: &dyn Destination,
        (number, info, expected): (u64, &SegmentInfo, &Digest),
        out: &mut dyn Write,
    ) -> Result<()> {
        let name = record::segment_name(info);
        let damaged = |what: &str| {
            let message = format!(
                "backup {number} is damaged: {name} {what}; restore another one (--at), or copy \
                 the file anew"
            );
            Error::new(ErrorKind::Corrupt, message)
        };
        let mut content = destination.get(&name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => damaged("is missing"),
            _ => Error::io(format_args!("cannot read {name} of the backup"), error),
        })?;
        let (digest, bytes) = self.counted(&mut content, |content| {
            // One byte more than there should be tells that there is more.
            copy(&mut content.take(info.file_bytes().saturating_add(1)), out, &name)
        })?;
        if bytes != info.file_bytes() {
            let found =
                if bytes > info.file_bytes() { "more".to_owned() } else { bytes.to_string() };
            return Err(damaged(&format!("has {found} of {} bytes", info.file_bytes())));
        }
        if digest != *expected {
            return Err(damaged("does not have the SHA-256 it had"));
        }
        Ok(())
    }
}

#[cold]
fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "stopped before its end")
}

/// Copies all of `content`; what fails tells on which side it did.
fn copy(content: &mut dyn Read, out: &mut dyn Write, name: &str) -> Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => out
                .write_all(&buffer[..read])
                .map_err(|error| Error::io("cannot write to the new database", error))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Error::io(format_args!("cannot read {name} of the backup"), error));
            }
        }
    }
}

impl Read for Counted<'_, '_, '_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Transfer { report, done, total, is_cancelled } = &mut *self.transfer;
        if report(*done, *total) == ControlFlow::Break(()) {
            *is_cancelled = true;
            return Err(io::Error::other("stopped before its end"));
        }
        let read = self.content.read(buf)?;
        self.digest.update(&buf[..read]);
        self.bytes += read as u64;
        *done += read as u64;
        Ok(read)
    }
}
