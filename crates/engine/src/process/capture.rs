//! A child of our own (a probe): its output is ours, and it is ended when it takes too long.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use std::os::unix::process::ExitStatusExt;

use super::clock::Stopwatch;
use crate::decide::signal::Ended;

/// What a child of our own came to.
#[derive(Debug)]
pub struct Captured {
    /// How it ended; by SIGKILL when it was `timed_out`.
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
    let readers = (reader(out), reader(err));
    let timed_out = !wait_at_most(&mut child, timeout, &stopwatch)?;
    if timed_out {
        child.kill()?;
    }
    let status = child.wait()?;
    let ended = status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or(0)), Ended::Code);
    let ms = stopwatch.ms();
    Ok(Captured { ended, stdout: collect(readers.0), stderr: collect(readers.1), ms, timed_out })
}

type Reader = std::sync::mpsc::Receiver<Vec<u8>>;

/// Two pipes are read by two short-lived threads: this is no hot path, and a full pipe would stop
/// the child.
fn reader<R: Read + Send + 'static>(pipe: Option<R>) -> Reader {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What could not be read is not there to be classified.
            let _ = pipe.take(16 << 20).read_to_end(&mut bytes);
        }
        send.send(bytes)
    });
    receive
}

/// The child has ended: its output is complete, unless a grandchild keeps the pipe open.
fn collect(reader: Reader) -> Vec<u8> {
    reader.recv_timeout(Duration::from_millis(200)).unwrap_or_default()
}

fn wait_at_most(child: &mut Child, timeout: Duration, since: &Stopwatch) -> io::Result<bool> {
    let mut pause_ms = 1;
    while child.try_wait()?.is_none() {
        if u128::from(since.ms()) >= timeout.as_millis() {
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
    fn a_child_that_hangs_is_ended() {
        let done = sh("exec sleep 60", 50);
        assert_eq!((done.ended, done.timed_out), (Ended::Signal(libc::SIGKILL), true));
    }
}
