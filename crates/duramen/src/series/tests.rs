//! Series of whole databases.

mod aging;
mod blocks;
mod calendars;
mod changes;
mod dumps;
mod fills;
mod lifecycle;
mod model;
mod naive;
mod queries;
mod repairs;
mod restores;
mod retention;
mod rollups;
mod rules;
mod staging;
mod storage;
mod thinned;
mod together;
mod windowed;

use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use crate::io::MemoryDevice;
use crate::{Database, Durability, Options};

/// A database that is closed and opened again in the course of a test.
struct Reopened {
    device: Arc<MemoryDevice>,
    db: Option<Database>,
}

impl Reopened {
    fn new() -> Self {
        let mut new = Self { device: Arc::new(MemoryDevice::new()), db: None };
        new.reopen();
        new
    }

    fn reopen(&mut self) {
        let durability = Durability::Interval(1_000);
        let options = Options { background: false, durability, ..Options::default() };
        self.db = None;
        self.db = Some(Database::open_device(self.device.clone(), options).unwrap());
    }

    fn compact(&self) {
        self.db.as_ref().unwrap().compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    }
}

impl Deref for Reopened {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.db.as_ref().unwrap()
    }
}
