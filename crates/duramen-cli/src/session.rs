//! The database that the commands of a shell share; on the command line each command opens its own.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use duramen::{Database, Options};

use crate::exit::Failure;
use crate::interruption::{self, Interruption};
use crate::notice::notice;
use crate::{Result, progress};

/// What one command leaves open for the next.
#[derive(Debug, Default)]
pub(crate) struct Session {
    shared: Option<Shared>,
    /// The database that the command which runs has made, and its folder.
    made: RefCell<Option<(PathBuf, Database)>>,
    /// Whether a command has opened a database for writing.
    has_written: Cell<bool>,
}

#[derive(Debug)]
struct Shared {
    /// The database's folder; a command may name others.
    folder: PathBuf,
    reader: Database,
    /// Opened by the first command that writes, until it is released.
    writer: RefCell<Option<Database>>,
}

impl Session {
    /// A session on the database in `folder`.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let reader = open_for_reading(folder)?;
        let folder = folder.to_path_buf();
        let shared = Some(Shared { folder, reader, writer: RefCell::default() });
        Ok(Self { shared, ..Self::default() })
    }

    /// The database in `folder` for reading, in its newest state.
    pub(crate) fn reader(&self, folder: &Path) -> Result<Database> {
        self.leave_made();
        let Some(shared) = self.shared(folder) else { return open_for_reading(folder) };
        if let Some(writer) = &*shared.writer.borrow() {
            return Ok(writer.clone());
        }
        shared.reader.refresh()?;
        Ok(shared.reader.clone())
    }

    /// The database in `folder` for writing.
    pub(crate) fn writer(&self, folder: &Path, options: Options) -> Result<Database> {
        self.leave_made();
        interruption::say("what was being changed is saved as a whole, or not at all");
        // Who pressed Ctrl-C does not wait for what closing does for the next open.
        let options = Options { hurry: Interruption::of_process().flag(), ..options };
        let Some(shared) = self.shared(folder) else { return self.open_or_make(folder, options) };
        let mut writer = shared.writer.borrow_mut();
        if let Some(writer) = &*writer {
            return Ok(writer.clone());
        }
        let opened = open(folder, options)?;
        *writer = Some(opened.clone());
        self.has_written.set(true);
        Ok(opened)
    }

    /// How commands ended: if they may have changed something that could not be told, that is.
    pub(crate) fn told<T>(&self, result: Result<T>) -> Result<T> {
        if self.has_written.get() { result.map_err(Failure::after_writing) } else { result }
    }

    fn open_or_make(&self, folder: &Path, options: Options) -> Result<Database> {
        let database = open(folder, options)?;
        self.has_written.set(true);
        if database.was_created() {
            // If nothing comes into it, it goes again.
            Interruption::watch();
            self.made.replace(Some((folder.to_path_buf(), database.clone())));
        }
        Ok(database)
    }

    /// Closes the database that the command has made: one that opens it once more, as statements of
    /// SQL do, finds it as others have left it.
    fn leave_made(&self) {
        drop(self.made.take());
    }

    /// Ends a command: of one that failed nothing is left of a database that it made and committed
    /// nothing to.
    pub(crate) fn end<T>(&self, result: &Result<T>) {
        let Some((folder, database)) = self.made.take() else { return };
        // Who has read enough of the output did not make it fail.
        if result.as_ref().is_err_and(|failure| !failure.is_broken_pipe()) {
            // Of one that cannot be removed, the failure of the command is what matters.
            if let Ok(true) = database.close_or_remove() {
                notice!("removed the database {} again: nothing is in it", folder.display());
            }
        }
    }

    /// What is shared of the database in `folder`.
    fn shared(&self, folder: &Path) -> Option<&Shared> {
        self.shared.as_ref().filter(|shared| is_same(&shared.folder, folder))
    }

    /// Lets other processes write.
    pub(crate) fn release(&self) {
        if let Some(shared) = &self.shared {
            shared.writer.take();
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Opens a database beside a process that may be writing.
fn open_for_reading(folder: &Path) -> Result<Database> {
    let options = Options { create: false, read_only: true, ..Options::default() };
    open(folder, options)
}

/// Opens a database, which may take its time: it makes whole what a crash left, and ends a purge.
fn open(folder: &Path, options: Options) -> Result<Database> {
    let what = format!("opening {}", folder.display());
    Ok(progress::late(&what, || Database::open(folder, options))?)
}
