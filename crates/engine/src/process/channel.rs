//! One stream of a child on its way to the caller: copied as it comes, or held until somebody has
//! decided what the caller shall see.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::signals;
use super::sys;

/// How much of a call's messages is kept for classification: their end, where gh says why it failed.
pub const KEPT: usize = 256 << 10;

/// How much is held back at most; past it the stream flows, and what it says can no longer be replaced.
pub const HELD_MAX: usize = 8 << 20;

const CHUNK: usize = 64 << 10;

/// A pipe from the child and the descriptor its bytes are for.
#[derive(Debug)]
pub struct Channel {
    from: Option<OwnedFd>,
    to: RawFd,
    holding: bool,
    held: Vec<u8>,
    kept: VecDeque<u8>,
    /// The reader of what we write has gone away.
    pub reader_gone: bool,
    /// Something could not be written (a full disk), though its reader is there.
    pub is_lossy: bool,
    /// Something has been written out.
    pub has_flowed: bool,
}

impl Channel {
    /// A channel to `to`, and the end of its pipe that the child gets.
    pub fn open(to: RawFd, holding: bool) -> io::Result<(Channel, OwnedFd)> {
        let (from, child_end) = sys::pipe()?;
        sys::set_nonblocking(&from)?;
        let channel = Channel {
            from: Some(from),
            to,
            holding,
            held: Vec::new(),
            kept: VecDeque::new(),
            reader_gone: false,
            is_lossy: false,
            has_flowed: false,
        };
        Ok((channel, child_end))
    }

    /// What to poll, while the child's end is open.
    pub fn poll_fd(&self) -> Option<RawFd> {
        self.from.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Moves one chunk; false when there is nothing (more) to move.
    pub fn step(&mut self) -> bool {
        let Some(from) = &self.from else { return false };
        let mut chunk = [0; CHUNK];
        match sys::read(from.as_raw_fd(), &mut chunk) {
            Ok(0) => {
                self.from = None;
                false
            }
            Ok(n) => {
                self.take(&chunk[..n]);
                true
            }
            Err(e) => e.kind() == io::ErrorKind::Interrupted,
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        if self.holding {
            self.held.extend_from_slice(chunk);
            if self.held.len() > HELD_MAX {
                self.flow();
            }
            return;
        }
        self.kept.extend(chunk);
        let surplus = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..surplus);
        self.write(chunk);
    }

    /// Lets go of what is held, and holds nothing more.
    fn flow(&mut self) {
        self.holding = false;
        let held = std::mem::take(&mut self.held);
        let tail = held.len().saturating_sub(KEPT);
        self.kept.extend(&held[tail..]);
        self.write(&held);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.has_flowed |= !bytes.is_empty();
        let mut left = bytes;
        match write_from(self.to, &mut left) {
            Ok(()) => {}
            // Closing our end hands the child what it would have met itself.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.reader_gone = true;
                self.from = None;
            }
            // What gh had written before it ended would be there for a slow reader.
            Err(e) if e.kind() == io::ErrorKind::TimedOut => self.leave(left),
            // A full disk kills nobody, and there is no way to hand it on: a closed pipe would.
            Err(_) => self.is_lossy = true,
        }
    }

    /// After the child's end: moves what is left in the pipe.
    pub fn drain(&mut self) {
        // More than a pipe holds can only come from a grandchild that goes on writing.
        const PIPE_HOLDS: usize = 2 << 20;
        let mut left = PIPE_HOLDS / CHUNK;
        while left > 0 && self.step() {
            left -= 1;
        }
    }

    /// The end of what the child said here, held or not.
    pub fn said(&self) -> Vec<u8> {
        if self.holding {
            return self.held[self.held.len().saturating_sub(KEPT)..].to_vec();
        }
        self.kept.iter().copied().collect()
    }

    /// Everything the child said here, where it is still held whole.
    pub fn held(&self) -> Option<&[u8]> {
        self.holding.then_some(self.held.as_slice())
    }

    /// Whether a part of what was for standard output could not be written.
    pub fn lost_answer(&self) -> bool {
        self.is_lossy && self.to == libc::STDOUT_FILENO
    }

    /// Ends the channel: what is held is written out, and a grandchild that keeps the pipe open can
    /// go on writing.
    pub fn release(&mut self) {
        if self.holding {
            self.flow();
        }
        self.leave(&[]);
    }

    /// Ends the channel without showing what is held: the caller sees something else instead.
    pub fn discard(&mut self) {
        self.holding = false;
        self.held = Vec::new();
        self.leave(&[]);
    }

    fn leave(&mut self, left: &[u8]) {
        let from = self.from.take();
        if from.is_some() || !left.is_empty() {
            sys::leave_copying(left, from.as_ref().map(AsRawFd::as_raw_fd), self.to);
        }
    }
}

/// What a pipe that is ready for more takes without blocking.
const READY_MEANS: usize = 4 << 10;

/// Writes everything, however slow the reader. Once a signal has asked this process to end and the child
/// has ended, a reader that takes nothing more is not waited for: gh itself would not have been either.
///
/// # Errors
/// The reader has gone (`BrokenPipe`), the disk is full, or a signal ended the wait (`TimedOut`).
pub fn write_all(to: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    write_from(to, &mut bytes)
}

/// As [`write_all`]; `left` is what has not been written yet.
fn write_from(to: RawFd, left: &mut &[u8]) -> io::Result<()> {
    while !left.is_empty() {
        let mut next = *left;
        if signals::received().is_some() {
            wait_until_ready(to)?;
            next = &left[..left.len().min(READY_MEANS)];
        }
        match sys::write(to, next) {
            Ok(n) => *left = &left[n..],
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                wait_until_ready(to)?;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Not in one long wait: a signal may come between the look and the wait.
fn wait_until_ready(to: RawFd) -> io::Result<()> {
    const STEP_MS: i32 = 50;
    loop {
        let is_over = signals::received().is_some() && signals::child_has_ended();
        match sys::poll(&[(to, libc::POLLOUT)], if is_over { 0 } else { STEP_MS }) {
            Ok(ready) if ready[0] => return Ok(()),
            Ok(_) if is_over => return Err(io::Error::from(io::ErrorKind::TimedOut)),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // The write itself will tell.
            Err(_) => return Ok(()),
        }
    }
}
