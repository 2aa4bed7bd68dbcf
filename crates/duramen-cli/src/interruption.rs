//! Ctrl-C for commands that have to put something in order before they stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duramen::{Error, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the user asked to stop.
#[derive(Debug)]
pub(crate) struct Interruption {
    asked: Arc<AtomicBool>,
}

impl Interruption {
    /// From now on Ctrl-C is noted; a second one ends the process at once.
    pub(crate) fn watch() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let register = |signal| -> io::Result<()> {
            // The order matters: the first signal finds the flag down, the second finds it up.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
            Ok(())
        };
        let registered = register(SIGINT).and_then(|()| register(SIGTERM));
        registered.map_err(|error| Error::io("cannot watch for Ctrl-C", error))?;
        Ok(Self { asked })
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
