//! How far a long command is, on standard error while that is a terminal.

use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long people wait for what tells nothing.
const LATE: Duration = Duration::from_millis(500);

/// A bar up to `total`, or a count where the total is not known.
pub(crate) fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{msg} {wide_bar} {human_pos} of {human_len}"),
        None => (ProgressBar::no_length(), "{msg} {human_pos}"),
    };
    styled(bar, template).with_message(what.to_owned())
}

/// A bar of bytes, with their rate and the time left, up to a length that is set later.
pub(crate) fn bytes(what: &str) -> ProgressBar {
    let template = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    styled(ProgressBar::new(0), template).with_message(what.to_owned())
}

/// Bytes of a text, with the rate and, where the total is known, the time that is left.
pub(crate) fn text(what: &str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{prefix} {wide_bar} {percent}% of {decimal_total_bytes}, {decimal_bytes_per_sec}, \
             {eta} left, {msg}",
        ),
        None => (
            ProgressBar::no_length(),
            "{prefix} {decimal_bytes}, {decimal_bytes_per_sec}, {elapsed}, {msg}",
        ),
    };
    styled(bar, template).with_prefix(what.to_owned())
}

/// A sign of life for work that tells nothing on its way.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let spinner = styled(ProgressBar::no_length(), "{spinner} {msg} {elapsed}");
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner.with_message(what.to_owned())
}

/// The same of work that mostly takes no time to speak of.
pub(crate) fn late<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let show = |ended: &mpsc::Receiver<()>| {
        let spinner = spinner(what);
        let _ = ended.recv();
        spinner.finish_and_clear();
    };
    shown_after(LATE, show, work)
}

/// Works, and shows something once that takes so long, until it ends.
fn shown_after<T>(
    late: Duration,
    show: impl FnOnce(&mpsc::Receiver<()>) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (running, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(late) == Err(mpsc::RecvTimeoutError::Timeout) {
                show(&ended);
            }
        });
        let worked = work();
        drop(running);
        worked
    })
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_takes_long_shows_a_sign_of_life() {
        let is_shown = |late, work: &dyn Fn()| {
            let (shown, seen) = mpsc::channel();
            let show = |ended: &mpsc::Receiver<()>| {
                shown.send(true).unwrap();
                assert_eq!(ended.recv(), Err(mpsc::RecvError), "it ends with the work");
            };
            assert_eq!(
                shown_after(late, show, || {
                    work();
                    7
                }),
                7
            );
            seen.try_recv().is_ok()
        };
        assert!(!is_shown(Duration::from_mins(10), &|| ()));
        assert!(is_shown(Duration::from_millis(1), &|| thread::sleep(Duration::from_millis(200))));
    }
}
