//! Ctrl-C for commands that have to put something in order before they stop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use duramen::{Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// One for the process: what is registered for a signal stays registered.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static WATCHED: OnceLock<()> = OnceLock::new();

/// Whether the user asked to stop.
#[derive(Debug, Default)]
pub(crate) struct Interruption {
    asked: Arc<AtomicBool>,
}

impl Interruption {
    /// That of the process, whether Ctrl-C is watched for or not.
    pub(crate) fn of_process() -> Self {
        Self { asked: Arc::clone(&ASKED) }
    }

    /// From now on Ctrl-C is noted, and that the terminal is closed; a second one ends the process
    /// at once.
    pub(crate) fn watch() -> Result<Self> {
        let interruption = Self::of_process();
        if WATCHED.get().is_some() {
            return Ok(interruption);
        }
        let register = |signal| -> io::Result<()> {
            // The order matters: the first signal finds the flag down, the second finds it up.
            flag::register_conditional_shutdown(signal, 130, interruption.flag())?;
            flag::register(signal, interruption.flag())?;
            Ok(())
        };
        let registered = [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(register);
        registered.map_err(|error| Error::io("cannot watch for Ctrl-C", error))?;
        WATCHED.get_or_init(|| ());
        Ok(interruption)
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
