//! The write queue's files, `<project>/.claude/forge/queue/` (#1750).
//!
//! | file | holds | why `kill -9` is safe |
//! | --- | --- | --- |
//! | `NNNNNN.seq` | nothing; it takes the number | created `O_EXCL`; alone it is an orphan that nobody was told of |
//! | `NNNNNN.d/body.md` | the body | synced before the entry exists |
//! | `NNNNNN.json` | the entry | written aside, synced, renamed, its folder synced; only then is it promised |
//! | `replay.log` | attempts and outcomes | one synced append each, before and after a delivery; a replay starts by syncing the names a killed one left |
//! | `handles.json` | `BOB-Q3` → number | derived from the log, written aside and renamed |
//! | `queue.lock`, `replay.lock` | who numbers and changes; who delivers | kernel locks, never unlinked |
//!
//! Lock order: `replay.lock`, `queue.lock`, the state folder's `queue-dirty.lock`.

mod add;
mod log;
mod records;
mod seal;

pub use add::{Draft, NotAdded, key_of};
pub use log::{Log, handles};
pub use records::{Found, Loaded, Record};
pub use seal::digest;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::{Folder, Unfit};
use super::lock::Lock;
use seal::Key;

/// How long somebody waits for the queue's own lock, which nobody holds for longer than a few writes.
pub const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The largest body that is queued (`CONTRACT` section 4).
pub const BODY_MAX: u64 = 16 << 20;

const QUEUE_LOCK: &str = "queue.lock";
const REPLAY_LOCK: &str = "replay.lock";

/// One project's queue, open.
#[derive(Debug)]
pub struct Queue {
    root: PathBuf,
    state: PathBuf,
    folder: Folder,
    key: Option<Key>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Where a project keeps its queue.
pub fn path(root: &Path) -> PathBuf {
    root.join(".claude/forge/queue")
}

/// Whether a project has a queue folder at all: one `stat`.
pub fn exists(root: &Path) -> bool {
    std::fs::symlink_metadata(path(root)).is_ok()
}

/// Spooled texts may be private: a careless `git add -A` must not publish them, even where the project's
/// own ignore file does not name them. That it could not be written is no reason to lose a write.
fn ignore_by_git(root: &Path) {
    let forge =
        Folder::root(root).and_then(|root| root.sub(".claude")).and_then(|claude| claude.sub("forge"));
    if let Ok(forge) = forge
        && forge.stat(".gitignore").is_none()
    {
        let _ = forge.replace(".gitignore", b"*\n");
    }
}

/// A project's real path, by which it is marked.
pub fn real_root(root: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(root).ok()
}

impl Queue {
    /// Opens the queue of the project at `root`; `None` where it has none.
    ///
    /// # Errors
    /// Something on the way to it is a symlink or no folder, or cannot be opened.
    pub fn open(root: &Path, state: &Path) -> io::Result<Option<Queue>> {
        let root = std::fs::canonicalize(root)?;
        let folder = match Folder::existing(&root, "queue") {
            Ok(folder) => folder,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let key = Key::read(state)?;
        Ok(Some(Queue { root, state: state.to_path_buf(), folder, key }))
    }

    /// Opens the queue of the project at `root`, making what is missing.
    ///
    /// # Errors
    /// As [`open`](Queue::open); or a folder is another user's, or cannot be made.
    pub fn create(root: &Path, state: &Path) -> io::Result<Queue> {
        let root = std::fs::canonicalize(root)?;
        let folder = Folder::prepare(&root, "queue")?;
        ignore_by_git(&root);
        let key = Some(Key::open(state)?);
        Ok(Queue { root, state: state.to_path_buf(), folder, key })
    }

    /// The project's real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state folder.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The folder's path, for messages and for children.
    pub fn path(&self) -> PathBuf {
        path(&self.root)
    }

    /// The lock under which entries are numbered and changed; never held across a child.
    ///
    /// # Errors
    /// It cannot be taken within [`LOCK_WAIT`].
    pub fn lock(&self) -> io::Result<Lock> {
        let held = "another process keeps the queue locked";
        Lock::on(self.folder.open_or_create(QUEUE_LOCK)?, LOCK_WAIT)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, held))
    }

    /// The lock of the one replay; `Err(Some(pid))` names who holds it.
    ///
    /// # Errors
    /// The lock cannot be tried at all.
    pub fn try_replay_lock(&self) -> io::Result<Result<Lock, Option<u32>>> {
        let file = self.folder.open_or_create(REPLAY_LOCK)?;
        match Lock::on(file, Duration::ZERO)? {
            Some(lock) => {
                // For whoever comes second; a replay that cannot say who it is goes on all the same.
                let _ = lock.file().set_len(0);
                let _ =
                    io::Write::write_all(&mut lock.file(), format!("{}\n", std::process::id()).as_bytes());
                Ok(Ok(lock))
            }
            None => {
                let text = self.folder.read(REPLAY_LOCK, 64).unwrap_or_default();
                Ok(Err(String::from_utf8_lossy(&text).trim().parse().ok()))
            }
        }
    }

    /// Makes every change of the folder survive a power cut, also what a killed process has left unsynced.
    ///
    /// # Errors
    /// The system's own.
    pub fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    /// Whether this machine has the key that seals entries.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// This machine's seal over the project and these parts; empty without a key, which is nobody's.
    fn seal(&self, parts: &[&[u8]]) -> String {
        let Some(key) = &self.key else { return String::new() };
        let mut all = vec![self.root.as_os_str().as_bytes()];
        all.extend_from_slice(parts);
        key.seal(&all)
    }

    /// The body of an entry, by the one descriptor that was checked.
    ///
    /// # Errors
    /// It is missing or not what this machine wrote there.
    pub fn body(&self, seq: u32) -> Result<Vec<u8>, Unfit> {
        let folder = match self.folder.sub(records::body_folder(seq)) {
            Ok(folder) => folder,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Unfit::Missing),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                return Err(Unfit::Strange("lies behind a symlink"));
            }
            Err(e) => return Err(Unfit::Unreadable(e)),
        };
        folder.read(records::BODY, BODY_MAX)
    }

    /// What nobody should send, for the reliability suite's control arm: whatever stands under the body's name
    /// by now.
    pub fn body_by_its_path(&self, seq: u32) -> Vec<u8> {
        let path = self.path().join(records::body_folder(seq)).join(records::BODY);
        crate::store::private::read_foreign(&path, BODY_MAX).unwrap_or_default()
    }

    /// The names in the queue folder that git would have brought along, as replay asks git about them.
    pub fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }
}

#[cfg(test)]
mod tests;
