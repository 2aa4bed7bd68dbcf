//! `duramen backup`: a copy of a database, taken while it is written.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use duramen::{BackupFolder, BackupOptions, BackupReport, ErrorKind};
use indicatif::HumanCount;
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, moment, progress};

const EXAMPLES: &str = "\
Examples:
  duramen backup shop.duramen /backups/shop
  duramen backup shop.duramen /backups/shop --incremental --verify
  duramen backup shop.duramen /backups/shop --keep 7
  duramen restore /backups/shop restored.duramen

The backup is consistent at the last commit, while other processes go on writing. All backups of a
database go into one folder; a copy of its folder that is changed is another database, and needs one
of its own. An incremental backup copies only what the newest one there does not have, and can be
restored as any other. Only a backup that is complete counts: one that was cut short is as if it had
never begun. What a retention took out of the database stays in the backups from before: --keep
removes old ones, once the new one is there. Copying the folder of a database that no process writes
is a backup too.";

/// Copy a database into a folder of backups
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backup {
    #[command(flatten)]
    database: ReadDatabase,
    /// The folder of its backups, made if it is missing
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Copy only what the newest backup in the folder does not have
    #[arg(long)]
    incremental: bool,
    /// Read the whole backup back and compare it
    #[arg(long)]
    verify: bool,
    /// Then remove all but so many of the newest backups, and what only the others need
    #[arg(long, value_name = "COUNT")]
    keep: Option<NonZeroUsize>,
}

impl Backup {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        let folder = BackupFolder::new(&self.folder);
        let options = BackupOptions { incremental: self.incremental, verify: self.verify };
        let made = watched("copying", |report| {
            let made = database.backup(&folder, options, report);
            made.map_err(|error| {
                let (from, to) = (self.database.folder().display(), self.folder.display());
                error.in_context(format_args!("backup of {from} to {to}"))
            })
        })?;
        let mut line = Made::new(&made, self.verify);
        if let Some(keep) = self.keep {
            let pruned = duramen::Backup::prune(&folder, keep).map_err(|error| {
                let (made, folder) = (line.backup, self.folder.display());
                error.in_context(format_args!("{folder}: backup {made} is made, none is removed"))
            })?;
            line.removed = Some(pruned.backups);
        }
        output.record(&line)?;
        Ok(Success::Done)
    }
}

/// Runs a backup or a restore, with its progress on a terminal, until Ctrl-C.
pub(super) fn watched<T>(
    what: &str,
    run: impl FnOnce(&mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> duramen::Result<T>,
) -> Result<T> {
    let interruption = Interruption::watch();
    let bar = progress::bar(what, Some(0));
    let done = run(&mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
        if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    done.map_err(|error| match error.kind() {
        ErrorKind::Cancelled => Failure::Interrupted("interrupted: nothing was made".to_owned()),
        _ => error.into(),
    })
}

#[derive(Debug, Serialize)]
struct Made {
    backup: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    commit: u64,
    timestamp: String,
    segments: u64,
    bytes: u64,
    copied_bytes: u64,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Vec<u64>>,
}

impl Made {
    fn new(report: &BackupReport, verified: bool) -> Self {
        let backup = &report.backup;
        Self {
            backup: backup.number,
            parent: backup.parent,
            commit: backup.commit.0,
            timestamp: moment::format(backup.timestamp),
            segments: backup.segments,
            bytes: backup.bytes,
            copied_bytes: report.copied_bytes,
            verified,
            removed: None,
        }
    }
}

impl Record for Made {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { backup, commit, timestamp, .. } = self;
        let (time, revision) = (palette.time, palette.revision);
        let (bytes, copied) = (HumanCount(self.bytes), HumanCount(self.copied_bytes));
        let verified = if self.verified { ", verified" } else { "" };
        writeln!(
            out,
            "backup {backup}: up to commit {revision}{commit}{revision:#} of \
             {time}{timestamp}{time:#}, {bytes} bytes, of which {copied} were copied{verified}"
        )?;
        match self.removed.as_deref() {
            None | Some([]) => Ok(()),
            Some([one]) => writeln!(out, "removed backup {one}"),
            Some([first, .., last]) => writeln!(out, "removed backups {first} to {last}"),
        }
    }
}
