//! Kernel locks (`flock`) on permanent files: no staleness, no process numbers, no clock.
//!
//! The file is never unlinked: a lock on a file that lost its name excludes nobody.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::private;
use crate::checkpoint;
use crate::control::Guard;

/// A held lock; dropping it, or the process's end by any means, lets go.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the exclusive lock on `path`, made where it is missing. `None` when another process
    /// still holds it after about `wait`.
    ///
    /// # Errors
    /// The file cannot be opened, or its file system has no locks.
    pub fn exclusive(path: &Path, wait: Duration) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        Lock::on(private::open(options.read(true).write(true).create(true).truncate(false), path)?, wait)
    }

    /// The same on a file that was opened already.
    ///
    /// # Errors
    /// Its file system has no locks.
    pub fn on(file: File, wait: Duration) -> io::Result<Option<Lock>> {
        const STEP: Duration = Duration::from_millis(1);
        if Guard::Lock.is_off() {
            return Ok(Some(Lock { file }));
        }
        let mut left = if Guard::LockBound.is_off() { Duration::MAX } else { wait };
        loop {
            checkpoint::step("lock: take")?;
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock { file })),
                Err(TryLockError::WouldBlock) if left.is_zero() => return Ok(None),
                Err(TryLockError::WouldBlock) => checkpoint::wait(STEP.min(left)),
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(e)) => return Err(e),
            }
            left = left.saturating_sub(STEP);
        }
    }

    /// The locked file itself, for a memo that only its holder reads and writes.
    pub fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_a_bounded_wait() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.lock");
        let first = Lock::exclusive(&path, Duration::ZERO).unwrap();
        assert!(first.is_some());
        assert!(Lock::exclusive(&path, Duration::from_millis(5)).unwrap().is_none());
        drop(first);
        assert!(Lock::exclusive(&path, Duration::ZERO).unwrap().is_some());
    }
}
