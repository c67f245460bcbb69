//! Runs the real gh and copies what it says, so that the outcome can be classified.
//!
//! One thread and one `poll` loop: signals (through a pipe that the handlers write to), the child's
//! diverted output, the child's end. The loop ends with the child, not with the pipe.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use super::clock::Stopwatch;
use super::exit;
use super::invocation::Stderr;
use super::signals::{self, Watch};
use super::sys::{self, Block, Change};
use crate::decide::signal::Ended;
use crate::settings;

/// How much of a call's messages is kept for classification: their end, where gh says why it failed.
pub const KEPT: usize = 256 << 10;

/// What one run of gh came to. Nothing after this can fail the call.
#[derive(Debug)]
pub struct Ran {
    /// How the child ended: what is classified and recorded.
    pub ended: Ended,
    /// How the shim has to end; differs only when the reader of our output went away, which kills a
    /// `gh` that writes to it directly.
    pub leave_as: Ended,
    /// Latency.
    pub ms: u64,
    /// The end of what it wrote to stderr (with `2>&1`, of both), at most [`KEPT`] bytes.
    pub said: Vec<u8>,
}

/// Starts gh, copies its stderr and waits for its end.
///
/// # Errors
/// gh could not be started; nothing has happened yet, and the caller can still become gh.
pub fn run(program: &Path, argv: &[OsString], depth: u32, stderr: Stderr) -> io::Result<Ran> {
    let watch = Watch::install()?;
    let (copy, pipe_end) = divert(stderr)?;
    let stopwatch = Stopwatch::start();
    let started = start(program, argv, depth, pipe_end.as_ref(), stderr, &watch);
    drop(pipe_end);
    let pid = match started {
        Ok(pid) => pid,
        Err(e) => {
            watch.restore();
            return Err(e);
        }
    };
    watch.adopt(pid);
    let mut child = Child { pid, watch, copy, said: VecDeque::new(), reader_gone: false };
    let ended = child.wait();
    let ms = stopwatch.ms();
    child.drain();
    let leave_as =
        if child.reader_gone && child.watch.sigpipe_kills { Ended::Signal(libc::SIGPIPE) } else { ended };
    Ok(Ran { ended, leave_as, ms, said: child.said.into() })
}

/// What is read from the child and where it goes.
struct Copy {
    from: OwnedFd,
    to: RawFd,
}

/// stderr is diverted unless it is a terminal or closed; with `2>&1` one pipe carries both streams,
/// so that their order stays exact.
fn divert(stderr: Stderr) -> io::Result<(Option<Copy>, Option<OwnedFd>)> {
    let to = match stderr {
        Stderr::Closed | Stderr::Terminal => return Ok((None, None)),
        Stderr::SameAsStdout => 1,
        Stderr::Own => 2,
    };
    let (from, pipe_end) = sys::pipe()?;
    sys::set_nonblocking(&from)?;
    Ok((Some(Copy { from, to }), Some(pipe_end)))
}

fn start(
    program: &Path,
    argv: &[OsString],
    depth: u32,
    pipe_end: Option<&OwnedFd>,
    stderr: Stderr,
    watch: &Watch,
) -> io::Result<libc::pid_t> {
    let targets: &[RawFd] = if stderr == Stderr::SameAsStdout { &[1, 2] } else { &[2] };
    let redirect: Vec<_> =
        pipe_end.iter().flat_map(|end| targets.iter().map(|to| (end.as_raw_fd(), *to))).collect();
    let env = Block::environment_with(settings::DEPTH, &depth.to_string());
    let spawn = |program: &std::ffi::CStr, argv: &Block| {
        let spawn = if watch.sigchld_was_ignored { sys::spawn_ignoring_sigchld } else { sys::spawn };
        spawn(program, argv, &env, &redirect, &watch.inherited_mask)
    };
    match spawn(&sys::c_string(program.into()), &Block::argv(argv)) {
        Err(e) if e.raw_os_error() == Some(libc::ENOEXEC) => {
            let (shell, argv) = exit::through_shell(program, argv);
            spawn(&shell, &argv)
        }
        started => started,
    }
}

struct Child {
    pid: libc::pid_t,
    watch: Watch,
    copy: Option<Copy>,
    said: VecDeque<u8>,
    reader_gone: bool,
}

impl Child {
    fn wait(&mut self) -> Ended {
        loop {
            if sys::has_ended(self.pid) {
                self.watch.release();
            }
            match sys::collect(self.pid) {
                Some(Change::Exited(code)) => return Ended::Code(code),
                Some(Change::Killed(signal)) => return Ended::Signal(signal),
                Some(Change::Stopped) => {
                    sys::stop_self();
                    sys::kill(self.pid, libc::SIGCONT);
                }
                None => self.copy_until_woken(),
            }
        }
    }

    /// Copies what comes until a signal came.
    fn copy_until_woken(&mut self) {
        loop {
            let mut fds = vec![(self.watch.wake_fd(), libc::POLLIN)];
            fds.extend(self.copy.as_ref().map(|copy| (copy.from.as_raw_fd(), libc::POLLIN)));
            let ready = match sys::poll(&fds, -1) {
                Ok(ready) => ready,
                // A signal: its handler has written to the wake pipe as well.
                Err(_) => continue,
            };
            if ready.get(1) == Some(&true) {
                self.copy_once();
            }
            if ready[0] {
                self.watch.settle();
                return;
            }
        }
    }

    /// Copies one chunk; false when there is nothing (more) to copy.
    fn copy_once(&mut self) -> bool {
        let Some(copy) = &self.copy else { return false };
        let mut chunk = [0; 64 << 10];
        match sys::read(copy.from.as_raw_fd(), &mut chunk) {
            Ok(0) => {
                self.copy = None;
                false
            }
            Ok(n) => {
                keep(&mut self.said, &chunk[..n]);
                if let Err(e) = write_all(copy.to, &chunk[..n]) {
                    // Closing our end hands the child what it would have met itself.
                    self.reader_gone = e.kind() == io::ErrorKind::BrokenPipe;
                    self.copy = None;
                }
                true
            }
            Err(e) => e.kind() == io::ErrorKind::Interrupted,
        }
    }

    /// After the child's end: what is left in the pipe, and somebody who stays for a grandchild.
    fn drain(&mut self) {
        // More than a pipe holds can only be a grandchild that goes on writing.
        const PIPE_HOLDS: usize = 2 << 20;
        let mut left = PIPE_HOLDS / (64 << 10);
        while left > 0 && self.copy_once() {
            left -= 1;
        }
        if let Some(copy) = &self.copy {
            sys::leave_copying(copy.from.as_raw_fd(), copy.to);
        }
    }
}

fn keep(said: &mut VecDeque<u8>, chunk: &[u8]) {
    said.extend(chunk);
    if said.len() > KEPT {
        said.drain(..said.len() - KEPT);
    }
}

/// Writes everything, however slow the reader. Once a signal has asked this process to end, a reader
/// that takes nothing more is not waited for: gh itself would not have been either.
fn write_all(to: RawFd, mut left: &[u8]) -> io::Result<()> {
    while !left.is_empty() {
        match sys::write(to, left) {
            Ok(n) => left = &left[n..],
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                let patience_ms = if signals::received().is_some() { 0 } else { -1 };
                match sys::poll(&[(to, libc::POLLOUT)], patience_ms) {
                    Ok(ready) if !ready[0] => return Err(io::Error::from(io::ErrorKind::TimedOut)),
                    _ => {}
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
