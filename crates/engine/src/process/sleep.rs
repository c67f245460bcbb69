//! The one place where a call waits. A signal ends the wait; with `BOB_FORGE_SLEEP` a program is run in its
//! place, and the time that was asked for counts as waited.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::clock::{self, Stopwatch};
use super::signals::{self, Watch};
use super::sys;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// It was waited out.
    Whole {
        /// By how much the time that counts is ahead of the clock, in milliseconds: a program that stands
        /// in for sleeping takes none, and a clock that was set back does not make a caller wait twice. A
        /// clock that went on while the machine slept is ahead by itself.
        ahead_ms: u64,
    },
    /// This signal ended it.
    Interrupted(i32),
}

/// A signal is looked for at least this often, and a clock that jumped (a laptop that slept) noticed.
const STEP_MS: u64 = 10_000;

/// Waits `ms` milliseconds, or runs `program` with them as seconds.
pub fn sleep(watch: &Watch, ms: u64, program: Option<&OsStr>) -> Slept {
    let ends_ms = clock::now_ms().saturating_add(ms);
    if !program.is_some_and(|program| stand_in(program, ms)) {
        wait(watch, ms, ends_ms);
    }
    slept(ends_ms)
}

/// The same for a process that watches no signals of its own (the command, the addon).
pub fn sleep_unwatched(ms: u64, program: Option<&OsStr>) -> Slept {
    let ends_ms = clock::now_ms().saturating_add(ms);
    if !program.is_some_and(|program| stand_in(program, ms)) {
        clock::pause_ms(ms);
    }
    slept(ends_ms)
}

fn slept(ends_ms: u64) -> Slept {
    match signals::received() {
        Some(signal) => Slept::Interrupted(signal),
        None => Slept::Whole { ahead_ms: ends_ms.saturating_sub(clock::now_ms()) },
    }
}

fn wait(watch: &Watch, ms: u64, ends_ms: u64) {
    let stopwatch = Stopwatch::start();
    loop {
        // Whichever clock gets there first: the one stops with the machine, the other may be set.
        let left_ms = ms.saturating_sub(stopwatch.ms()).min(ends_ms.saturating_sub(clock::now_ms()));
        if left_ms == 0 || signals::received().is_some() {
            return;
        }
        let step_ms = i32::try_from(left_ms.min(STEP_MS)).unwrap_or(i32::MAX);
        // Interrupted or not: the loop looks at the clock and at the signals again.
        let _ = sys::poll(&[(watch.wake_fd(), libc::POLLIN)], step_ms);
        watch.settle();
    }
}

/// Runs the program; false when it cannot be run.
fn stand_in(program: &OsStr, ms: u64) -> bool {
    let mut command = Command::new(program);
    command.arg(seconds(ms)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A caller that ignores SIGCHLD takes the status away; the program has run all the same.
    command.spawn().map(|mut child| child.wait()).is_ok()
}

/// Milliseconds as seconds, with decimals only where there are some.
pub fn seconds(ms: u64) -> String {
    match (ms / 1_000, ms % 1_000) {
        (s, 0) => s.to_string(),
        (s, rest) => format!("{s}.{rest:03}").trim_end_matches('0').to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_decimals_only_where_there_are_some() {
        assert_eq!([0, 2_000, 412_500, 34, 1_010].map(seconds).join(" "), "0 2 412.5 0.034 1.01");
    }
}
