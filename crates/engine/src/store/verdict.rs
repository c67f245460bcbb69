//! `health.json`: the last verdict, with the identity of the log it was derived from (#1748).
//!
//! Any append, trim or replacement of the log changes its identity, so a stored verdict is out of date
//! the moment anybody records anything: no delete, no order of writes, no race to lose. The last of
//! several writers wins, and whose verdict it is does not matter.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ring::Identity;
use super::{atomic, private};
use crate::control::Guard;
use crate::decide::verdict::Stored;

/// What the file says about its own form; a file of another form is no verdict.
const SCHEMA: &str = "bob-forge-verdict/1";

/// Past this it is not a file of ours.
const READ_MAX: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    log: Identity,
    #[serde(flatten)]
    stored: Stored,
}

/// The stored verdict, if there is one that was derived from exactly this log. A missing, damaged or
/// foreign file is no verdict, never an error.
pub fn read(state: &Path, log: &Identity) -> Option<Stored> {
    let file = private::open(OpenOptions::new().read(true), &path(state)).ok()?;
    let mut bytes = Vec::with_capacity(1024);
    file.take(READ_MAX).read_to_end(&mut bytes).ok()?;
    let document: Document = serde_json::from_slice(&bytes).ok()?;
    (document.schema == SCHEMA && (document.log == *log || Guard::VerdictIdentity.is_off()))
        .then_some(document.stored)
}

/// Stores a verdict derived from this log.
pub fn write(state: &Path, log: &Identity, stored: &Stored) -> io::Result<()> {
    private::ensure_folder(state)?;
    let document = Document { schema: SCHEMA.into(), log: *log, stored: stored.clone() };
    atomic::replace(&path(state), &serde_json::to_vec(&document)?)
}

/// Forgets the stored verdict.
pub fn reset(state: &Path) -> io::Result<()> {
    private::remove(&path(state))
}

fn path(state: &Path) -> PathBuf {
    state.join("health.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::verdict::classify;

    fn stored() -> Stored {
        Stored { verdict: classify(&[], 7, 300), ttl_s: 60, checked_at: 7 }
    }

    #[test]
    fn a_verdict_is_read_back_only_for_the_log_it_came_from() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("forge");
        let log = Identity { dev: 1, ino: 2, size: 3, mtime_ns: 1_790_000_000_123_456_789 };
        assert_eq!(read(&state, &log), None);
        write(&state, &log, &stored()).unwrap();
        assert_eq!(read(&state, &log), Some(stored()));
        for other in [
            Identity { dev: 9, ..log },
            Identity { ino: 9, ..log },
            Identity { size: 9, ..log },
            Identity { mtime_ns: log.mtime_ns + 1, ..log },
        ] {
            assert_eq!(read(&state, &other), None);
        }
        reset(&state).unwrap();
        reset(&state).unwrap();
        assert_eq!(read(&state, &log), None);
    }

    #[test]
    fn a_damaged_or_foreign_file_is_no_verdict() {
        let home = tempfile::tempdir().unwrap();
        let log = Identity::default();
        write(home.path(), &log, &stored()).unwrap();
        let whole = std::fs::read_to_string(path(home.path())).unwrap();
        let damaged = ["", "{}", "[1]", "nul\0", &whole[..whole.len() / 2]];
        let foreign = [whole.replace("verdict/1", "verdict/2"), whole.replace("unknown", "splendid")];
        for text in damaged.into_iter().map(String::from).chain(foreign) {
            std::fs::write(path(home.path()), &text).unwrap();
            assert_eq!(read(home.path(), &log), None, "{text:?}");
        }
        std::fs::write(path(home.path()), whole).unwrap();
        assert_eq!(read(home.path(), &log), Some(stored()));
    }
}
