//! A child of our own (a probe, a delivery): its output is ours, and it is ended when it takes too long.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use std::os::unix::process::ExitStatusExt;

use super::clock::Stopwatch;
use super::signals;
use super::{exit, feed, sys};
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

/// Why there is nothing to say about a child of our own.
#[derive(Debug)]
pub enum Trouble {
    /// It was never started: it has done nothing.
    NotStarted(io::Error),
    /// It was started, and nobody knows how it ended: whatever it does may have been done.
    EndUnknown(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NotStarted(e) => write!(f, "cannot be started: {e}"),
            Trouble::EndUnknown(e) => write!(f, "was started, but how it ended is not known: {e}"),
        }
    }
}

impl From<Trouble> for io::Error {
    fn from(trouble: Trouble) -> io::Error {
        match trouble {
            Trouble::NotStarted(e) | Trouble::EndUnknown(e) => e,
        }
    }
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
/// [`Trouble`].
pub fn capture(
    program: &Path,
    args: &[&str],
    env: &Environment,
    cwd: Option<&Path>,
    timeout: Duration,
) -> Result<Captured, Trouble> {
    follow(command(program, args, env, cwd), None, timeout, ASKED)
}

/// The same for a `gh` that a caller waits for: what a shim says to the caller while it holds the call (its
/// lines begin with `[forge-`) goes to our own standard error as it comes. A `gh` that takes too long is asked
/// to end first, so that a shim can take the real gh along and say what it leaves behind.
///
/// # Errors
/// [`Trouble`].
pub fn consult(
    program: &Path,
    args: &[&str],
    env: &Environment,
    cwd: Option<&Path>,
    timeout: Duration,
) -> Result<Captured, Trouble> {
    follow(command(program, args, env, cwd), None, timeout, Manner { listen: relay, ..ASKED })
}

/// What is kept of one stream.
const OUTPUT_MAX: u64 = 16 << 20;

/// How the lines begin that a shim says to its caller, and not gh.
const SHIM_SPEAKS: &[u8] = b"[forge-";

/// How long a child that was asked to end may take.
const GRACE: Duration = Duration::from_secs(2);

/// How a child's messages are read, and how it is ended when it takes too long.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) listen: fn(PipeReader) -> io::Result<Reader>,
    pub(super) end: fn(&mut Child) -> io::Result<()>,
}

/// Listens in silence, and asks before it kills.
const ASKED: Manner = Manner { listen: reader, end: ask_to_end };

/// A command with exactly this environment.
pub(super) fn command<A: AsRef<OsStr>>(
    program: &Path,
    args: &[A],
    env: &Environment,
    cwd: Option<&Path>,
) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    if let Environment::Given(entries) = env {
        command.env_clear().envs(entries.iter().map(|(name, value)| (name, value)));
    }
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    command
}

/// Starts a command, feeds it, and follows it to its end.
///
/// Whatever this needs besides the child itself (pipes, threads) is there before the child is: once it runs,
/// it may have done what it does, and nothing but its end is left that can fail.
pub(super) fn follow(
    mut command: Command,
    stdin: Option<&[u8]>,
    timeout: Duration,
    manner: Manner,
) -> Result<Captured, Trouble> {
    let stopwatch = Stopwatch::start();
    let (out, err) = wire(&mut command, stdin, manner.listen).map_err(Trouble::NotStarted)?;
    let mut child = command.spawn().map_err(Trouble::NotStarted)?;
    // Our copies of the child's ends would keep its streams open.
    drop(command);
    let ended = see_to_the_end(&mut child, timeout, &stopwatch, manner.end);
    let (status, timed_out) = ended.map_err(|e| {
        abandon(&mut child);
        Trouble::EndUnknown(e)
    })?;
    let ended = status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or(0)), Ended::Code);
    let ms = stopwatch.ms();
    Ok(Captured { ended, stdout: collect(out), stderr: collect(err), ms, timed_out })
}

/// Lays the pipes between us and a child that is not there yet, with a thread at each.
fn wire(
    command: &mut Command,
    stdin: Option<&[u8]>,
    listen: fn(PipeReader) -> io::Result<Reader>,
) -> io::Result<(Reader, Reader)> {
    let ((out, its_out), (err, its_err)) = (io::pipe()?, io::pipe()?);
    let its_in = stdin.map(feed::ready).transpose()?.map_or_else(Stdio::null, Stdio::from);
    command.stdin(its_in).stdout(its_out).stderr(its_err);
    Ok((reader(out)?, listen(err)?))
}

fn see_to_the_end(
    child: &mut Child,
    timeout: Duration,
    since: &Stopwatch,
    end: fn(&mut Child) -> io::Result<()>,
) -> io::Result<(ExitStatus, bool)> {
    let timed_out = !wait_at_most(child, timeout, since)?;
    if timed_out {
        end(child)?;
    }
    Ok((child.wait()?, timed_out))
}

/// What a reader has read so far comes in pieces; its end is the end of the stream.
pub(super) type Reader = Receiver<Vec<u8>>;

/// Two pipes are read by two short-lived threads: this is no hot path, and a full pipe would stop
/// the child.
pub(super) fn reader(pipe: PipeReader) -> io::Result<Reader> {
    let (send, receive) = channel();
    Builder::new().spawn(move || {
        let mut pipe = pipe.take(OUTPUT_MAX);
        let mut piece = vec![0; 64 << 10];
        loop {
            match pipe.read(&mut piece) {
                Ok(n @ 1..) if send.send(piece[..n].to_vec()).is_ok() => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // What could not be read is not there to be classified.
                _ => break,
            }
        }
    })?;
    Ok(receive)
}

/// Reads messages, and passes on at once the lines by which a shim speaks to its caller.
fn relay(pipe: PipeReader) -> io::Result<Reader> {
    let (send, receive) = channel();
    Builder::new().spawn(move || {
        let mut lines = BufReader::new(pipe.take(OUTPUT_MAX));
        let mut line = Vec::new();
        while let Ok(1..) = lines.read_until(b'\n', &mut line) {
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

/// Nobody can tell any more how the child ends: it is ended and collected.
fn abandon(child: &mut Child) {
    let _ = child.kill().and_then(|()| child.wait());
}

/// Asks the child to end, and ends it when it does not.
fn ask_to_end(child: &mut Child) -> io::Result<()> {
    sys::kill(child.id() as libc::pid_t, libc::SIGTERM);
    match wait_at_most(child, GRACE, &Stopwatch::start())? {
        true => Ok(()),
        false => child.kill(),
    }
}

/// The child has ended: its output is complete, unless a grandchild keeps the pipe open; then what came
/// until now is all that counts.
fn collect(reader: Reader) -> Vec<u8> {
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

fn wait_at_most(child: &mut Child, timeout: Duration, since: &Stopwatch) -> io::Result<bool> {
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
    fn a_child_that_cannot_be_listened_to_is_never_started() {
        let folder = tempfile::tempdir().unwrap();
        // Long enough for a child that was started first to leave its mark.
        let refused: fn(PipeReader) -> io::Result<Reader> = |_| {
            std::thread::sleep(Duration::from_millis(300));
            Err(io::ErrorKind::WouldBlock.into())
        };
        let args = ["-c", "echo done >mark"];
        let command = command(Path::new("/bin/sh"), &args, &Environment::Inherited, Some(folder.path()));
        let manner = Manner { listen: refused, ..ASKED };
        let came = follow(command, Some(b"text"), Duration::from_secs(10), manner);
        assert!(matches!(came, Err(Trouble::NotStarted(_))), "{came:?}");
        assert!(!folder.path().join("mark").exists());
    }

    #[test]
    fn a_child_whose_end_nobody_could_see_is_not_taken_for_one_that_was_never_started() {
        let args = ["-c", "exec sleep 60"];
        let command = command(Path::new("/bin/sh"), &args, &Environment::Inherited, None);
        let manner = Manner { end: |_| Err(io::ErrorKind::PermissionDenied.into()), ..ASKED };
        let came = follow(command, None, Duration::from_millis(50), manner);
        assert!(matches!(came, Err(Trouble::EndUnknown(_))), "{came:?}");
        let nobody = Path::new("/nowhere/at/all");
        let came = capture(nobody, &[], &Environment::Inherited, None, Duration::from_secs(1));
        assert!(matches!(came, Err(Trouble::NotStarted(_))), "{came:?}");
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
