//! How far a program is: a line on the terminal for work that takes more than a second.
//!
//! Nothing is shown where standard error is no terminal, with `-q`, or by processes of MPI jobs, whose standard error is the
//! launcher's. Lines vanish with the work that they are of, and messages are printed above them.

use std::fmt;
use std::io::{self, IsTerminal, Read, Write, stderr};
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::style::TemplateError;
use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use st_model::num::rounded;

/// Work that takes no longer is not shown.
const SHORT: Duration = Duration::from_secs(1);
/// How often a line is drawn that does not move.
const TICK: Duration = Duration::from_millis(250);

/// All lines.
static LINES: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Bytes, of so many if that is known.
    Bytes(Option<u64>),
    /// Things of a kind, in the plural, of so many.
    Things(&'static str, u64),
    /// Nothing: it is over when it is over.
    Unknown,
}

impl Amount {
    fn total(self) -> Option<u64> {
        match self {
            Self::Bytes(total) => total,
            Self::Things(_, total) => Some(total),
            Self::Unknown => None,
        }
    }

    fn template(self) -> String {
        let counted = match self {
            Self::Bytes(Some(_)) => {
                "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left".to_owned()
            }
            Self::Bytes(None) => "{bytes}, {bytes_per_sec}, {elapsed}".to_owned(),
            Self::Things(what, _) => {
                format!("{{wide_bar}} {{human_pos}} of {{human_len}} {what}, {{rate}}, {{eta}} left")
            }
            Self::Unknown => "{elapsed}".to_owned(),
        };
        format!("{{prefix}}: {{msg}} {counted}")
    }

    fn style(self) -> Result<ProgressStyle, TemplateError> {
        let show = |state: &ProgressState, out: &mut dyn fmt::Write| {
            // What cannot be written here is not seen.
            let _ = out.write_str(&rate(state.per_sec()));
        };
        Ok(ProgressStyle::with_template(&self.template())?.with_key("rate", show))
    }
}

/// `202,437/s`: the library's own has four decimals.
fn rate(per_second: f64) -> String {
    format!("{}/s", HumanCount(rounded(per_second)))
}

/// Work in progress: its line stands until this is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// What waits until the line is due: gone once the sender is.
    due: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Work of a tool, which is shown if `shown` and on a terminal.
    pub(crate) fn begin(shown: bool, tool: &str, what: &str, amount: Amount) -> Self {
        let bar = ProgressBar::with_draw_target(amount.total(), ProgressDrawTarget::hidden());
        if !shown || !stderr().is_terminal() {
            return Self { bar, due: None };
        }
        if let Ok(style) = amount.style() {
            bar.set_style(style);
        }
        bar.set_prefix(tool.to_owned());
        bar.set_message(what.to_owned());
        let (sender, receiver) = channel();
        let waiting = {
            let bar = bar.clone();
            move || {
                if receiver.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout) {
                    LINES.add(bar.clone());
                    bar.enable_steady_tick(TICK);
                }
            }
        };
        Self { bar, due: Some((sender, thread::spawn(waiting))) }
    }

    /// So much more is done.
    pub fn advance(&self, n: u64) {
        self.bar.inc(n);
    }

    /// So much more is to be done than was known.
    pub fn expect(&self, n: u64) {
        self.bar.inc_length(n);
    }

    /// How much is done, of how much.
    #[cfg(test)]
    pub(crate) fn so_far(&self) -> (u64, Option<u64>) {
        (self.bar.position(), self.bar.length())
    }

    /// A reader whose bytes are counted.
    pub fn of<R: Read>(&self, from: R) -> impl Read + use<R> {
        self.bar.wrap_read(from)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some((sender, waiting)) = self.due.take() else { return };
        drop(sender);
        // A line that came up just now is taken down below; a panic there has nothing to do with the work.
        let _ = waiting.join();
        self.bar.finish_and_clear();
        LINES.remove(&self.bar);
    }
}

/// Prints a line on standard error, above those of work in progress.
pub(crate) fn print(line: fmt::Arguments<'_>) {
    // A closed standard error must not stop the work.
    LINES.suspend(|| drop(write_line(&mut stderr().lock(), line)));
}

/// Writes a line at once: what other processes write to the same pipe comes before or after it.
fn write_line(out: &mut impl Write, line: fmt::Arguments<'_>) -> io::Result<()> {
    out.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, one write an element.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_write() {
        let mut writes = Writes::default();
        write_line(&mut writes, format_args!("{}: rank {}: {}", "st-replay", 2, "ends")).unwrap();
        assert_eq!(writes.0, [b"st-replay: rank 2: ends\n"]);
    }

    #[test]
    fn a_rate_is_a_whole_number() {
        assert_eq!([0.2, 7.0, 202_436.657_5].map(rate), ["0/s", "7/s", "202,437/s"]);
        assert!(Amount::Things("calls", 7).template().contains(" {rate}, "));
    }

    #[test]
    fn what_is_to_be_done_may_grow() {
        let progress = Progress::begin(false, "st-sync", "correcting", Amount::Things("times", 0));
        progress.expect(7);
        progress.advance(3);
        assert_eq!(progress.so_far(), (3, Some(7)));
    }

    #[test]
    fn all_amounts_can_be_shown() {
        for amount in
            [Amount::Bytes(Some(7)), Amount::Bytes(None), Amount::Things("ranks", 7), Amount::Unknown]
        {
            let style = amount.style();
            assert!(style.is_ok(), "{amount:?}: {:?}", style.err());
        }
    }
}
