//! The recorder's folder: the shim as `gh`, and a record beside it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::private;

/// A recorder's folder; it goes with this value.
pub struct Folder {
    path: PathBuf,
    record: PathBuf,
}

impl Folder {
    /// Makes one in the state folder: the shim in it is a second name of the same file where that is
    /// possible, so that nothing is copied.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn make(state: &Path, shim: &Path, record: &str, owner: u32) -> io::Result<Folder> {
        private::ensure_folder(state)?;
        let path = (0..1_000)
            .map(|n| state.join(format!("measure.{owner}.{n}")))
            .find(|path| DirBuilder::new().mode(0o700).create(path).is_ok())
            .ok_or(io::ErrorKind::PermissionDenied)?;
        // PATH takes no relative folder, and a program is asked for its place by its full name.
        let path = fs::canonicalize(path)?;
        let folder = Folder { record: path.join(record), path };
        let gh = folder.path.join("gh");
        let shim = fs::canonicalize(shim)?;
        if fs::hard_link(&shim, &gh).is_err() {
            fs::copy(&shim, &gh)?;
        }
        private::open(OpenOptions::new().write(true).create_new(true), &folder.record)?;
        Ok(folder)
    }

    /// Where it is: what goes first on PATH.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was noted.
    ///
    /// # Errors
    /// The record is gone.
    pub fn record(&self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.record)?).into_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A call that is still running keeps its program; a record nobody reads is no loss.
        let _ = fs::remove_dir_all(&self.path);
    }
}
