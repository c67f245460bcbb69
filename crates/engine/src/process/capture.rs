//! A child of our own (a probe): its output is ours, and it is ended when it takes too long.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use std::os::unix::process::ExitStatusExt;

use super::clock::Stopwatch;
use super::signals;
use super::{exit, sys};
use crate::decide::signal::Ended;

/// What a child of our own came to.
#[derive(Debug)]
pub struct Captured {
    /// How it ended; mostly by SIGTERM when it was `timed_out`.
    pub ended: Ended,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Latency.
    pub ms: u64,
    /// It was ended by us.
    pub timed_out: bool,
}

/// Which environment a child of our own gets.
#[derive(Clone, Debug)]
pub enum Environment {
    /// This process's own.
    Inherited,
    /// Exactly these entries (a JS caller's `env`, a worker thread's copy).
    Given(Vec<(OsString, OsString)>),
}

/// Runs `program` with standard input empty and waits at most `timeout` for it.
///
/// # Errors
/// It could not be started.
pub fn capture(
    program: &Path,
    args: &[&str],
    env: &Environment,
    cwd: Option<&Path>,
    timeout: Duration,
) -> io::Result<Captured> {
    run(program, args, env, cwd, timeout, reader)
}

/// The same for a `gh` that a caller waits for: what a shim says to the caller while it holds the call (its
/// lines begin with `[forge-`) goes to our own standard error as it comes. A `gh` that takes too long is asked
/// to end first, so that a shim can take the real gh along and say what it leaves behind.
///
/// # Errors
/// It could not be started.
pub fn consult(
    program: &Path,
    args: &[&str],
    env: &Environment,
    cwd: Option<&Path>,
    timeout: Duration,
) -> io::Result<Captured> {
    run(program, args, env, cwd, timeout, relay)
}

/// What is kept of one stream.
const OUTPUT_MAX: u64 = 16 << 20;

/// How the lines begin that a shim says to its caller, and not gh.
const SHIM_SPEAKS: &[u8] = b"[forge-";

/// How long a child that was asked to end may take.
const GRACE: Duration = Duration::from_secs(2);

fn run(
    program: &Path,
    args: &[&str],
    env: &Environment,
    cwd: Option<&Path>,
    timeout: Duration,
    listen: fn(Option<ChildStderr>) -> io::Result<Reader>,
) -> io::Result<Captured> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Environment::Given(entries) = env {
        command.env_clear().envs(entries.iter().map(|(name, value)| (name, value)));
    }
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let stopwatch = Stopwatch::start();
    let mut child = command.spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let readers = reader(out).and_then(|out| Ok((out, listen(err)?))).inspect_err(|_| abandon(&mut child))?;
    let timed_out = !wait_at_most(&mut child, timeout, &stopwatch)?;
    if timed_out {
        end(&mut child)?;
    }
    let status = child.wait()?;
    let ended = status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or(0)), Ended::Code);
    let ms = stopwatch.ms();
    Ok(Captured { ended, stdout: collect(readers.0), stderr: collect(readers.1), ms, timed_out })
}

/// What a reader has read so far comes in pieces; its end is the end of the stream.
pub(super) type Reader = Receiver<Vec<u8>>;

/// Two pipes are read by two short-lived threads: this is no hot path, and a full pipe would stop
/// the child.
pub(super) fn reader<R: Read + Send + 'static>(pipe: Option<R>) -> io::Result<Reader> {
    let (send, receive) = channel();
    Builder::new().spawn(move || {
        let mut pipe = pipe.map(|pipe| pipe.take(OUTPUT_MAX));
        let mut piece = vec![0; 64 << 10];
        // What could not be read is not there to be classified.
        while let Some(Ok(n @ 1..)) = pipe.as_mut().map(|pipe| pipe.read(&mut piece)) {
            if send.send(piece[..n].to_vec()).is_err() {
                break;
            }
        }
    })?;
    Ok(receive)
}

/// Reads messages, and passes on at once the lines by which a shim speaks to its caller.
fn relay(pipe: Option<ChildStderr>) -> io::Result<Reader> {
    let (send, receive) = channel();
    Builder::new().spawn(move || {
        let mut lines = pipe.map(|pipe| BufReader::new(pipe.take(OUTPUT_MAX)));
        let mut line = Vec::new();
        while let Some(Ok(1..)) = lines.as_mut().map(|lines| lines.read_until(b'\n', &mut line)) {
            if line.starts_with(SHIM_SPEAKS) {
                exit::pass_on(&line);
            }
            if send.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    })?;
    Ok(receive)
}

/// Nobody can listen to the child (no more threads): it is ended and collected, whatever it says.
pub(super) fn abandon(child: &mut Child) {
    let _ = child.kill().and_then(|()| child.wait());
}

/// Asks the child to end, and ends it when it does not.
fn end(child: &mut Child) -> io::Result<()> {
    sys::kill(child.id() as libc::pid_t, libc::SIGTERM);
    match wait_at_most(child, GRACE, &Stopwatch::start())? {
        true => Ok(()),
        false => child.kill(),
    }
}

/// The child has ended: its output is complete, unless a grandchild keeps the pipe open; then what came
/// until now is all that counts.
pub(super) fn collect(reader: Reader) -> Vec<u8> {
    const PATIENCE_MS: u64 = 200;
    let (mut bytes, stopwatch) = (Vec::new(), Stopwatch::start());
    let left = || Duration::from_millis(PATIENCE_MS.saturating_sub(stopwatch.ms()));
    while let Ok(piece) = reader.recv_timeout(left()) {
        bytes.extend_from_slice(&piece);
        if left().is_zero() {
            break;
        }
    }
    bytes
}

pub(super) fn wait_at_most(child: &mut Child, timeout: Duration, since: &Stopwatch) -> io::Result<bool> {
    let mut pause_ms = 1;
    while child.try_wait()?.is_none() {
        // A signal that asked this process to end ends its child's time as well.
        if u128::from(since.ms()) >= timeout.as_millis() || signals::received().is_some() {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(pause_ms));
        pause_ms = (pause_ms * 2).min(20);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout_ms: u64) -> Captured {
        let timeout = Duration::from_millis(timeout_ms);
        capture(Path::new("/bin/sh"), &["-c", script], &Environment::Inherited, None, timeout).unwrap()
    }

    #[test]
    fn output_and_end_are_captured() {
        let done = sh("echo out; echo err >&2; exit 3", 10_000);
        assert_eq!((done.ended, done.timed_out), (Ended::Code(3), false));
        assert_eq!((done.stdout.as_slice(), done.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn a_child_that_hangs_is_asked_to_end_and_then_ended() {
        let done = sh("exec sleep 60", 50);
        assert_eq!((done.ended, done.timed_out), (Ended::Signal(libc::SIGTERM), true));
        let done = sh("trap '' TERM; echo deaf; while :; do sleep 1; done", 200);
        assert_eq!((done.ended, done.timed_out), (Ended::Signal(libc::SIGKILL), true));
        assert_eq!(done.stdout, b"deaf\n");
    }

    #[test]
    fn a_grandchild_that_goes_on_writing_is_not_waited_for() {
        let since = Stopwatch::start();
        let script = "(for i in $(seq 50); do echo more; sleep 0.1; done) & echo out; exit 2";
        let done = sh(script, 10_000);
        assert_eq!((done.ended, done.timed_out), (Ended::Code(2), false));
        assert!(done.stdout.starts_with(b"out\n") || done.stdout.starts_with(b"more\n"));
        assert!(since.ms() < 3_000, "took {} ms", since.ms());
    }

    #[test]
    fn what_a_consulted_child_says_is_kept_whole() {
        let script = "echo '[forge-budget] waiting' >&2; printf 'gh: no\nhalf' >&2; exit 1";
        let timeout = Duration::from_secs(10);
        let env = Environment::Inherited;
        let done = consult(Path::new("/bin/sh"), &["-c", script], &env, None, timeout).unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stderr), "[forge-budget] waiting\ngh: no\nhalf");
    }
}
