//! Ctrl-C. It ends a command at once, unless that has said what it has to put in order before.
//!
//! A thread waits for the signal, so that it need not be asked for where a command computes.
//! Invariants:
//! - a command ends at once only while all that it has made is a file or folder that is removed, or
//!   a change that the engine makes as a whole or not at all;
//! - a second Ctrl-C always ends the process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use duramen::{Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::exit::{self, Failure};

/// One for the process: what is registered for a signal stays registered.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static ENDING: Mutex<Ending> = Mutex::new(Ending::AtOnce { said: String::new(), unfinished: None });

/// What Ctrl-C does.
#[derive(Debug)]
enum Ending {
    /// It ends the process.
    AtOnce {
        /// What is told then of what the command did.
        said: String,
        /// A file that stands for another one until it is whole, or the folder of a new database.
        unfinished: Option<PathBuf>,
    },
    /// It is noted for who looks whether it was pressed.
    Noted,
}

/// Whether the user asked to stop.
#[derive(Debug, Default)]
pub(crate) struct Interruption {
    asked: Arc<AtomicBool>,
}

impl Interruption {
    /// That of the process, whether it is looked at or not.
    pub(crate) fn of_process() -> Self {
        Self { asked: Arc::clone(&ASKED) }
    }

    /// From now on Ctrl-C is only noted, and that the terminal is closed; a second one ends the
    /// process at once.
    pub(crate) fn watch() -> Self {
        *ending() = Ending::Noted;
        Self::of_process()
    }

    /// Becomes true when Ctrl-C is pressed, for whoever looks at it meanwhile.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Forgets that it was; returns whether it was.
    pub(crate) fn forget(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }
}

/// Waits for Ctrl-C from now on, to the end of the process.
pub(crate) fn listen(json: bool) -> Result<()> {
    let failed = |error: io::Error| Error::io("cannot watch for Ctrl-C", error);
    // What `nohup` runs goes on when the terminal is closed.
    let watched = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let watched = watched.filter(|&signal| signal != SIGHUP || !is_ignored(signal));
    let mut signals = Signals::new(watched).map_err(failed)?;
    let wait = move || {
        for _ in signals.forever() {
            obey(json);
        }
    };
    // It ends with the process.
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop).map_err(failed)
}

/// What a command that Ctrl-C ends tells of what it did.
pub(crate) fn say(told: &str) {
    if let Ending::AtOnce { said, .. } = &mut *ending() {
        told.clone_into(said);
    }
}

/// Has a file or folder removed that is not finished, if Ctrl-C ends the process.
pub(crate) fn remove(path: &Path) {
    if let Ending::AtOnce { unfinished, .. } = &mut *ending() {
        *unfinished = Some(path.to_owned());
    }
}

fn ending() -> MutexGuard<'static, Ending> {
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn obey(json: bool) {
    // Who takes back that the process ends at once waits until it has.
    let ending = ending();
    match &*ending {
        Ending::Noted => {
            if ASKED.swap(true, Ordering::Relaxed) {
                low_level::exit(130);
            }
        }
        Ending::AtOnce { said, unfinished } => {
            if let Some(path) = unfinished {
                remove_all(path);
            }
            let colon = if said.is_empty() { "" } else { ": " };
            let failure = Failure::Interrupted(format!("interrupted{colon}{said}"));
            low_level::exit(exit::report(&failure, json).into());
        }
    }
}

/// Removes a file, or a folder in which other threads still make some: not under another name.
#[expect(clippy::disallowed_methods, reason = "these are the user's files, not the engine's")]
fn remove_all(path: &Path) {
    // What is told is of what was there before, which is as it was.
    if path.is_dir() {
        let aside = path.with_file_name(format!(".duramen-{}", std::process::id()));
        let is_aside = std::fs::rename(path, &aside).is_ok();
        let _ = std::fs::remove_dir_all(if is_aside { &aside } else { path });
    } else {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether the process was started so that a signal does nothing to it.
#[cfg(target_os = "linux")]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

#[cfg(not(target_os = "linux"))]
fn is_ignored(_signal: i32) -> bool {
    false
}
