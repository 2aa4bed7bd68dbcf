//! A text of any length as the first revision of a document, with a progress line and Ctrl-C.

use std::ops::ControlFlow;

use duramen::{BulkOptions, BulkProgress, Commit, Database, ErrorKind};
use indicatif::ProgressBar;

use crate::exit::Failure;
use crate::input::LongText;
use crate::interruption::Interruption;
use crate::{Result, input, progress};

/// Shows how far a load is, until Ctrl-C is pressed.
pub(crate) fn tell<'t>(
    bar: &'t ProgressBar,
    interruption: &'t Interruption,
) -> impl FnMut(BulkProgress) -> ControlFlow<()> + 't {
    |progress| {
        bar.set_position(progress.bytes);
        bar.set_message(format!("{} values", progress.values));
        // Ctrl-C also ends the program at the other end of a pipe: what came last may be cut.
        if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Loads the text; whether it ends well or not, nothing is half done.
pub(crate) fn load(
    (database, document): (&Database, &str),
    mut text: LongText,
    options: &BulkOptions,
) -> Result<(Commit, BulkProgress)> {
    let interruption = Interruption::watch();
    let bar = progress::text("loading", text.bytes);
    let mut tell = tell(&bar, &interruption);
    let loaded = database.bulk_load(document, &mut text.reader, options, &mut tell);
    bar.finish_and_clear();
    loaded.map_err(|error| match error.kind() {
        // What comes through a pipe is cut by Ctrl-C as well.
        _ if interruption.is_asked() => {
            Failure::Interrupted("interrupted: nothing was stored".to_owned())
        }
        ErrorKind::Invalid => input::advised(error, b"").in_context(&text.name).into(),
        _ => error.into(),
    })
}
