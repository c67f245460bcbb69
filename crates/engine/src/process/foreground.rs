//! A command in the foreground, as a shell runs one: its streams are ours, signals reach it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use super::clock::Stopwatch;
use super::run::wait;
use super::signals::{Borrowed, Watch};
use super::sys;
use crate::decide::signal::Ended;

/// Runs `command` (a program, found on the PATH of `env`, and its arguments) to its end, and tells how it
/// ended and how many milliseconds it took. With `stdout_is_ours`, what it prints goes to standard error.
///
/// # Errors
/// It could not be started.
pub fn run(
    command: &[OsString],
    env: &[(OsString, OsString)],
    cwd: Option<&Path>,
    stdout_is_ours: bool,
) -> io::Result<(Ended, u64)> {
    let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program);
    child.args(args).env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = cwd {
        child.current_dir(cwd);
    }
    // Handed on by hand: node closes its own at `exec`. One that is closed stays closed.
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let handed = |fd: BorrowedFd| fd.try_clone_to_owned().ok().map(Stdio::from);
    if let Some(stdin) = handed(stdin.as_fd()) {
        child.stdin(stdin);
    }
    if let Some(stdout) = handed(if stdout_is_ours { stderr.as_fd() } else { stdout.as_fd() }) {
        child.stdout(stdout);
    }
    if let Some(stderr) = handed(stderr.as_fd()) {
        child.stderr(stderr);
    }
    let _borrowed = Borrowed::take();
    let watch = Watch::install()?;
    let stopwatch = Stopwatch::start();
    let pid = child.spawn()?.id() as libc::pid_t;
    watch.adopt(pid);
    let ended = wait(pid, &watch, || {
        // A signal interrupts the wait, and its handler has written to the wake pipe.
        let _ = sys::poll(&[(watch.wake_fd(), libc::POLLIN)], -1);
        watch.settle();
    });
    Ok((ended, stopwatch.ms()))
}
