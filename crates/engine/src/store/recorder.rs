//! The recorder's folder: the shim as `gh`, and a record beside it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        sweep(state);
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

/// A measurement that was killed leaves its folder behind; one this old is nobody's any more.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Best effort: what cannot be looked at or removed stays.
fn sweep(state: &Path) {
    let Ok(entries) = fs::read_dir(state) else { return };
    for entry in entries.flatten() {
        let is_old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().map(|age| age > ABANDONED);
        if entry.file_name().to_string_lossy().starts_with("measure.") && is_old() == Some(true) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A call that is still running keeps its program; a record nobody reads is no loss.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    #[test]
    fn a_recorder_is_the_shim_beside_an_empty_record_and_goes_with_its_value() {
        let home = tempfile::tempdir().unwrap();
        let (state, shim) = (home.path().join("forge"), home.path().join("shim"));
        fs::write(&shim, "shim").unwrap();
        let one = Folder::make(&state, &shim, "calls", 7).unwrap();
        let two = Folder::make(&state, &shim, "calls", 7).unwrap();
        assert_ne!(one.path(), two.path());
        assert_eq!(fs::read(one.path().join("gh")).unwrap(), b"shim");
        assert_eq!(one.record().unwrap(), "");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(one.path()), mode(&one.path().join("calls"))), (0o700, 0o600));
        let gone = one.path().to_path_buf();
        drop(one);
        assert!(!gone.exists() && two.path().exists() && shim.exists());
    }

    #[test]
    fn what_a_killed_measurement_left_goes_after_a_week() {
        let home = tempfile::tempdir().unwrap();
        let shim = home.path().join("shim");
        fs::write(&shim, "shim").unwrap();
        let left = |name: &str, age_days: u64| {
            let path = home.path().join(name);
            fs::create_dir(&path).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age_days * 24 * 3_600);
            fs::File::open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let (old, new, other) = (left("measure.1.0", 8), left("measure.2.0", 6), left("other", 9));
        Folder::make(home.path(), &shim, "calls", 7).unwrap();
        assert!(!old.exists() && new.exists() && other.exists());
    }
}
