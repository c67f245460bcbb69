//! Both ends of what a process reads and writes.

use super::spawn;
use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where a process's stdin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// Closed.
    Closed,
    /// These bytes, through a pipe.
    Bytes(Vec<u8>),
    /// These bytes, through a socket.
    Socket(Vec<u8>),
    /// These bytes, in a file.
    File(Vec<u8>),
    /// The terminal.
    Tty,
}

/// Where a process's stdout or stderr goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// A pipe that is read to its end.
    Pipe,
    /// A pipe that is read 64 KiB at a time, with a millisecond between.
    SlowPipe,
    /// A pipe whose reader takes this many bytes and closes it; 0: closed from the start.
    PipeThatCloses(usize),
    /// The same open file description as the other stream (`2>&1`).
    Merged,
    /// The same named file as stdout, opened once more (`>f 2>f`, or `>>f 2>>f` where stdout appends).
    SameFileAgain,
    /// A socket, as Node gives its children; in non-blocking mode where set.
    Socket {
        /// Whether a write to a full socket fails instead of waiting.
        nonblocking: bool,
    },
    /// A pipe in non-blocking mode that is read slowly.
    NonblockingPipe,
    /// A file, opened like `>`.
    File,
    /// A file, opened like `>>`.
    Append,
    /// `/dev/null`.
    Null,
    /// `/dev/full`.
    Full,
    /// Closed.
    Closed,
    /// The terminal.
    Tty,
}

/// Bytes that a thread collects from a descriptor, readable while they come.
#[derive(Clone)]
pub struct Collected(Arc<(Mutex<Seen>, Condvar)>);

/// What has come, and whether the stream has ended.
type Seen = (Vec<u8>, bool);

impl Collected {
    /// Reads `from` to its end (an error is one: that is how a terminal ends), at most `limit` bytes.
    pub fn start(from: OwnedFd, limit: usize, pause: Duration) -> (Collected, JoinHandle<()>) {
        let collected = Collected(Arc::default());
        let shared = collected.clone();
        let thread = std::thread::spawn(move || {
            let mut from = File::from(from);
            let mut block = vec![0; 65536];
            let mut left = limit;
            while left > 0 {
                let most = left.min(block.len());
                match from.read(&mut block[..most]) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                    Ok(n) => {
                        left -= n;
                        shared.push(&block[..n]);
                    }
                }
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            drop(from);
            let (state, changed) = &*shared.0;
            state.lock().unwrap().1 = true;
            changed.notify_all();
        });
        (collected, thread)
    }

    fn push(&self, bytes: &[u8]) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().0.extend_from_slice(bytes);
        changed.notify_all();
    }

    /// What has come so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.0.lock().unwrap().0.clone()
    }

    /// Waits until `text` has come; fails at the end of the stream or after a long time.
    pub fn wait_for(&self, text: &[u8]) {
        let (state, changed) = &*self.0;
        let until = Instant::now() + Duration::from_secs(60);
        let mut seen = state.lock().unwrap();
        while !seen.0.windows(text.len()).any(|w| w == text) {
            let so_far = String::from_utf8_lossy(&seen.0).into_owned();
            assert!(!seen.1, "the stream ended without {:?}: {so_far:?}", text.escape_ascii().to_string());
            assert!(Instant::now() < until, "no {:?} came: {so_far:?}", text.escape_ascii().to_string());
            seen = changed.wait_timeout(seen, Duration::from_millis(100)).unwrap().0;
        }
    }
}

/// A pipe, both ends closed on exec: (read, write).
pub fn pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = io::pipe().unwrap();
    (read.into(), write.into())
}

/// A pair of connected sockets.
pub fn sockets() -> (OwnedFd, OwnedFd) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    (ours.into(), theirs.into())
}

/// Makes the open file description of `fd` non-blocking.
pub fn set_nonblocking(fd: &OwnedFd) {
    // SAFETY: flags of an open descriptor.
    unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

/// A pseudo-terminal: (the side that is typed on, the side that a process has).
pub fn terminal() -> (OwnedFd, OwnedFd) {
    let _guard = spawn::FORKING.lock();
    let (mut master, mut slave): (c_int, c_int) = (0, 0);
    // SAFETY: fills two numbers that are then owned here alone; no name, settings or size are passed.
    unsafe {
        let done = libc::openpty(
            &mut master,
            &mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        assert_eq!(done, 0, "openpty: {}", io::Error::last_os_error());
        for end in [master, slave] {
            libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    }
}

/// Writes `bytes` from a thread, so that a reader that stops reading cannot hold the test up.
pub fn feed(to: OwnedFd, bytes: Vec<u8>) {
    std::thread::spawn(move || {
        let _ = File::from(to).write_all(&bytes);
    });
}

/// A device for writing or reading.
pub fn device(path: &str) -> OwnedFd {
    OpenOptions::new().read(true).write(true).open(path).unwrap().into()
}

/// A file for writing, as `>` or as `>>`.
pub fn output_file(path: &Path, append: bool) -> OwnedFd {
    let mut options = OpenOptions::new();
    match append {
        true => options.append(true),
        false => options.write(true).truncate(true),
    };
    options.create(true).open(path).unwrap().into()
}

/// `device:inode` of an open descriptor, as the fake's record shows it.
pub fn identity(fd: &OwnedFd) -> String {
    // SAFETY: fills a zeroed value from a descriptor that is open.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd.as_raw_fd(), &mut stat);
        format!("{}:{}", stat.st_dev, stat.st_ino)
    }
}
