//! A log that many processes append to and that keeps its newest lines (`RELIABILITY` D4).
//!
//! Append and trim take the same exclusive lock on a permanent file beside the log. An append waits
//! at most [`LOCK_WAIT`] for it and then goes unlocked: recording must never hold up a call.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lock::Lock;
use super::{atomic, private};
use crate::checkpoint::step;

/// The longest line, its newline included: one `write` of it is never torn by another writer.
pub const LINE_MAX: usize = 512;

/// How long an append waits for the lock.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// Past this a log is not one of ours; only its end is read.
const READ_MAX: u64 = 16 << 20;

/// Which log, down to its last byte: it changes with every append, trim and replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Device number; 0 with `ino` 0 for a log that does not exist.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since the epoch.
    pub mtime_ns: i128,
}

/// A ring log in a folder: `NAME.log` beside `NAME.lock`.
#[derive(Clone, Debug)]
pub struct Ring {
    log: PathBuf,
    lock: PathBuf,
    max_lines: u64,
}

impl Ring {
    /// The ring `name` in `folder`, never longer than `max_lines`.
    pub fn new(folder: &Path, name: &str, max_lines: u64) -> Ring {
        let beside = |suffix: &str| folder.join(format!("{name}.{suffix}"));
        Ring { log: beside("log"), lock: beside("lock"), max_lines }
    }

    /// The same ring under another lock, for a log whose `NAME.lock` is something else.
    pub fn locked_by(self, file: &str) -> Ring {
        Ring { lock: self.lock.with_file_name(file), ..self }
    }

    /// The log's path.
    pub fn path(&self) -> &Path {
        &self.log
    }

    /// Appends one line (without its newline, cut to [`LINE_MAX`]) by one `write`.
    pub fn append(&self, line: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.log.parent() {
            private::ensure_folder(folder)?;
        }
        // No lock (a file system without any, an unwritable lock file) is no reason to lose the line.
        let lock = Lock::exclusive(&self.lock, LOCK_WAIT).unwrap_or(None);
        let mut log = private::open(OpenOptions::new().read(true).append(true).create(true), &self.log)?;
        let size = log.metadata()?.size();
        let mut bytes = Vec::with_capacity(line.len() + 2);
        // A writer that was killed, or a full disk, may have left a line without its end. Unlocked,
        // nobody can tell, and readers skip empty lines.
        if lock.is_none() || !ends_whole(&log, size)? {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(&line[..line.len().min(LINE_MAX - 2)]);
        bytes.push(b'\n');
        step("ring: append")?;
        let written = log.write(&bytes)?;
        if written < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        match lock {
            // The line is there: a count or a trim that failed is made up for by the next writer.
            Some(lock) => {
                let _ = self.settle(&lock, &log, size, bytes.len() as u64);
                Ok(())
            }
            // A trim may have replaced the log between our opening and our writing.
            None if identity_of(&log.metadata()?).ino != self.identity()?.ino => {
                private::open(OpenOptions::new().append(true).create(true), &self.log)?.write_all(&bytes)
            }
            None => Ok(()),
        }
    }

    /// Cuts the log to its newest `keep` lines, if it has more. While another process holds the lock for
    /// long it stays as it is: the next writer keeps the bound.
    pub fn trim(&self, keep: u64) -> io::Result<()> {
        match Lock::exclusive(&self.lock, Duration::from_secs(1))? {
            Some(lock) => self.trim_locked(&lock, keep),
            None => Ok(()),
        }
    }

    /// Cuts the log to its bound, which writers without the lock may have passed, and returns how many lines
    /// that took.
    pub fn cut(&self) -> io::Result<u64> {
        let lines = self.read()?.0.iter().filter(|b| **b == b'\n').count() as u64;
        if lines > self.max_lines {
            self.trim(self.max_lines)?;
        }
        Ok(lines.saturating_sub(self.max_lines))
    }

    /// The whole lines, oldest first, and what exactly was read. A missing log has none.
    pub fn read(&self) -> io::Result<(Vec<u8>, Identity)> {
        let mut log = match private::open(OpenOptions::new().read(true), &self.log) {
            Ok(log) => log,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            Err(e) => return Err(e),
        };
        let identity = identity_of(&log.metadata()?);
        let from = identity.size.saturating_sub(READ_MAX);
        step("ring: read")?;
        log.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::with_capacity((identity.size - from) as usize);
        // Not past the size the identity names: what is appended meanwhile belongs to the next reading.
        log.take(identity.size - from).read_to_end(&mut bytes)?;
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1));
        if from > 0 {
            let first_whole = bytes.iter().position(|b| *b == b'\n').map_or(0, |end| end + 1);
            bytes.drain(..first_whole);
        }
        Ok((bytes, identity))
    }

    /// The log's identity by one `stat`; the default one for a log that does not exist.
    pub fn identity(&self) -> io::Result<Identity> {
        step("ring: look")?;
        match fs::symlink_metadata(&self.log) {
            Ok(found) => Ok(identity_of(&found)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Identity::default()),
            Err(e) => Err(e),
        }
    }

    /// Removes the log; the lock file stays.
    pub fn remove(&self) -> io::Result<()> {
        // The lock keeps a trim from bringing the log back; who hangs on to it does not keep the log.
        let _lock = Lock::exclusive(&self.lock, Duration::from_secs(1)).unwrap_or(None);
        private::remove(&self.log)
    }

    /// After an append under the lock: keeps the count of lines, and the log within its bound.
    fn settle(&self, lock: &Lock, log: &File, size_before: u64, added: u64) -> io::Result<()> {
        let (size, lines) = match memo(lock.file()) {
            Some((size, lines)) if size == size_before => (size + added, lines + 1),
            _ => (size_before + added, count_lines(log)?),
        };
        remember(lock.file(), size, lines)?;
        if lines >= self.max_lines || size > READ_MAX {
            // A tenth of slack, so that not every append has to trim.
            self.trim_locked(lock, self.max_lines - self.max_lines / 10)?;
        }
        Ok(())
    }

    fn trim_locked(&self, lock: &Lock, keep: u64) -> io::Result<()> {
        let mut old = private::open(OpenOptions::new().read(true), &self.log)?;
        let (bytes, identity) = self.read()?;
        let lines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
        if lines <= keep && identity.size <= READ_MAX {
            return Ok(());
        }
        // No writer of ours makes a longer line: one would only keep the log from ever getting small.
        let is_fit = |line: &&[u8]| line.len() <= LINE_MAX;
        let newest = bytes.split_inclusive(|b| *b == b'\n').skip(lines.saturating_sub(keep) as usize);
        let mut kept: Vec<u8> = newest.filter(is_fit).flatten().copied().collect();
        // A writer that takes no lock may have appended since, and may still until the rename shows.
        step("ring: read what came since")?;
        old.seek(SeekFrom::Start(identity.size))?;
        old.read_to_end(&mut kept)?;
        atomic::replace(&self.log, &kept)?;
        let seen = kept.len();
        step("ring: read what came meanwhile")?;
        old.read_to_end(&mut kept)?;
        if kept.len() > seen {
            let mut log = private::open(OpenOptions::new().append(true), &self.log)?;
            step("ring: write what came meanwhile")?;
            log.write_all(&kept[seen..])?;
        }
        remember(lock.file(), kept.len() as u64, kept.iter().filter(|b| **b == b'\n').count() as u64)
    }
}

fn ends_whole(log: &File, size: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if size > 0 {
        log.read_exact_at(&mut last, size - 1)?;
    }
    Ok(last == *b"\n")
}

fn count_lines(log: &File) -> io::Result<u64> {
    let (mut chunk, mut at, mut lines) = ([0; 64 << 10], 0, 0);
    loop {
        match log.read_at(&mut chunk, at)? {
            0 => return Ok(lines),
            n => {
                lines += chunk[..n].iter().filter(|b| **b == b'\n').count() as u64;
                at += n as u64;
            }
        }
    }
}

/// The lock file holds `size lines`: of which size of the log the count of lines is known.
fn memo(lock: &File) -> Option<(u64, u64)> {
    let mut bytes = [0; 41];
    let n = lock.read_at(&mut bytes, 0).ok()?;
    let (size, lines) = std::str::from_utf8(&bytes[..n]).ok()?.trim_end().split_once(' ')?;
    Some((size.parse().ok()?, lines.parse().ok()?))
}

fn remember(lock: &File, size: u64, lines: u64) -> io::Result<()> {
    step("ring: count")?;
    lock.write_all_at(format!("{size:020} {lines:019}\n").as_bytes(), 0)
}

fn identity_of(found: &fs::Metadata) -> Identity {
    let mtime_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    Identity { dev: found.dev(), ino: found.ino(), size: found.size(), mtime_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(folder: &Path, max_lines: u64) -> Ring {
        Ring::new(folder, "observations", max_lines)
    }

    fn text(ring: &Ring) -> String {
        String::from_utf8(ring.read().unwrap().0).unwrap()
    }

    #[test]
    fn the_log_keeps_its_newest_lines_and_never_passes_its_bound() {
        let home = tempfile::tempdir().unwrap();
        let ring = ring(home.path(), 100);
        for n in 0..1_000 {
            ring.append(format!("line {n}").as_bytes()).unwrap();
            assert!(text(&ring).lines().count() < 100);
        }
        assert!(text(&ring).lines().count() >= 90);
        assert_eq!(text(&ring).lines().last(), Some("line 999"));
    }

    #[test]
    fn lines_of_a_writer_without_the_lock_are_counted_too() {
        let home = tempfile::tempdir().unwrap();
        let ring = ring(home.path(), 100);
        ring.append(b"first").unwrap();
        let mut raw = OpenOptions::new().append(true).open(ring.path()).unwrap();
        raw.write_all("old shim\n".repeat(120).as_bytes()).unwrap();
        ring.append(b"last").unwrap();
        assert_eq!(text(&ring).lines().count(), 90);
        assert_eq!(text(&ring).lines().last(), Some("last"));
    }

    #[test]
    fn a_log_of_huge_lines_gets_small_again_and_keeps_the_others() {
        let home = tempfile::tempdir().unwrap();
        let ring = ring(home.path(), 100);
        let huge = "x".repeat(1 << 20);
        fs::write(ring.path(), format!("{huge}\nold\n").repeat(20)).unwrap();
        ring.append(b"new").unwrap();
        assert!(ring.identity().unwrap().size < 1 << 10);
        assert_eq!(text(&ring).lines().last(), Some("new"));
        assert!(text(&ring).lines().filter(|line| *line == "old").count() >= 15);
        fs::write(ring.path(), "x".repeat(20 << 20)).unwrap();
        ring.append(b"after no line at all").unwrap();
        assert_eq!(text(&ring), "after no line at all\n");
    }

    #[test]
    fn a_torn_line_stays_alone_and_a_reader_stops_before_it() {
        let home = tempfile::tempdir().unwrap();
        let ring = ring(home.path(), 100);
        fs::write(ring.path(), "whole\ntor").unwrap();
        assert_eq!(text(&ring), "whole\n");
        ring.append(b"next").unwrap();
        assert_eq!(text(&ring), "whole\ntor\nnext\n");
    }

    #[test]
    fn a_held_lock_delays_an_append_and_never_loses_it() {
        let home = tempfile::tempdir().unwrap();
        let ring = ring(home.path(), 100);
        ring.append(b"one").unwrap();
        let held = Lock::exclusive(&home.path().join("observations.lock"), Duration::ZERO).unwrap();
        ring.append(b"two").unwrap();
        drop(held);
        assert_eq!(text(&ring), "one\n\ntwo\n", "unlocked, a line starts on a line of its own");
    }

    #[test]
    fn the_identity_changes_with_every_append_and_trim() {
        let home = tempfile::tempdir().unwrap();
        let ring = ring(home.path(), 100);
        let mut seen = vec![ring.identity().unwrap()];
        for _ in 0..5 {
            ring.append(b"x").unwrap();
            seen.push(ring.identity().unwrap());
        }
        ring.trim(2).unwrap();
        seen.push(ring.identity().unwrap());
        for (n, identity) in seen.iter().enumerate() {
            assert!(!seen[n + 1..].contains(identity));
        }
        assert_eq!(text(&ring), "x\nx\n");
    }
}
