//! The database that the commands of a shell share; on the command line each command opens its own.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use duramen::{Database, Options};

use crate::Result;

/// What one command leaves open for the next.
#[derive(Debug, Default)]
pub(crate) struct Session {
    shared: Option<Shared>,
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
        Ok(Self { shared: Some(Shared { folder, reader, writer: RefCell::default() }) })
    }

    /// The database in `folder` for reading, in its newest state.
    pub(crate) fn reader(&self, folder: &Path) -> Result<Database> {
        let Some(shared) = self.shared(folder) else { return open_for_reading(folder) };
        if let Some(writer) = &*shared.writer.borrow() {
            return Ok(writer.clone());
        }
        shared.reader.refresh()?;
        Ok(shared.reader.clone())
    }

    /// The database in `folder` for writing.
    pub(crate) fn writer(&self, folder: &Path, options: Options) -> Result<Database> {
        let Some(shared) = self.shared(folder) else { return Ok(Database::open(folder, options)?) };
        let mut writer = shared.writer.borrow_mut();
        if let Some(writer) = &*writer {
            return Ok(writer.clone());
        }
        let opened = Database::open(folder, options)?;
        *writer = Some(opened.clone());
        Ok(opened)
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
    Ok(Database::open(folder, options)?)
}
