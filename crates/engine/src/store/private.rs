//! Folders 700, files 600, whatever the umask, and closed again when an older version left them open.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::checkpoint::step;
use crate::control::Guard;

/// The mode bit of a folder that everybody may write into (`/tmp`).
const SHARED: u32 = 0o1000;

/// Makes sure that `folder` exists and is open to its owner alone. Its parents are made as any
/// program would make them.
pub fn ensure_folder(folder: &Path) -> io::Result<()> {
    step("state: look at the folder")?;
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        // Everybody's folder (`/tmp`) named as ours is not ours to close.
        Ok(found) if found.mode() & SHARED != 0 => Ok(()),
        Ok(found) => close(folder, found.mode()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            step("state: make the folder")?;
            if let Some(parent) = folder.parent().filter(|p| !p.as_os_str().is_empty()) {
                fs::create_dir_all(parent)?;
            }
            match DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => close(folder, fs::metadata(folder)?.mode()),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                Err(e) => Err(e),
            }
        }
        Err(e) => Err(e),
    }
}

/// Makes the name of `folder` survive a power cut, and the names of the folders that lead to it, as far as this
/// user can have made them.
///
/// # Errors
/// A folder of this user cannot be synced.
pub fn sync_names_above(folder: &Path) -> io::Result<()> {
    if Guard::Sync.is_off() {
        return Ok(());
    }
    let user = rustix::process::geteuid().as_raw();
    for above in fs::canonicalize(folder)?.ancestors().skip(1) {
        let synced = File::open(above).and_then(|above| above.sync_all());
        if fs::metadata(above)?.uid() != user {
            // Somebody else's (`/tmp`): what is above it was there before us.
            break;
        }
        synced?;
    }
    Ok(())
}

/// Opens a file of ours with `options`: no symlink, a regular file (a FIFO put in its place blocks
/// nobody), mode 600 from its first moment and closed when it was found more open.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    step("state: open")?;
    if Guard::Plain.is_off() {
        return options.mode(0o600).open(path);
    }
    let file = options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if found.mode() & 0o777 != 0o600 {
        // A file of another owner cannot be changed and is none of ours to judge.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// Removes a file; a missing one is removed already.
pub fn remove(path: &Path) -> io::Result<()> {
    step("state: remove")?;
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// The text of a small file that is not ours. Whatever else stands there (a FIFO, a device) is no text and
/// must not hold up a call; nor must more than `max_bytes`, past which nothing is read.
pub fn read_foreign(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn close(folder: &Path, mode: u32) -> io::Result<()> {
    if mode & 0o777 == 0o700 {
        return Ok(());
    }
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_folder_found_open_is_closed_on_the_next_write() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/forge");
        ensure_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        ensure_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    #[test]
    fn a_folder_that_belongs_to_everybody_stays_open() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o1777)).unwrap();
        ensure_folder(home.path()).unwrap();
        assert_eq!(fs::metadata(home.path()).unwrap().mode() & 0o7777, 0o1777);
    }

    #[test]
    fn a_file_found_open_is_closed_when_it_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        open(OpenOptions::new().append(true), &path).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_is_no_file_of_ours_is_refused_and_blocks_nobody() {
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert!(open(OpenOptions::new().append(true), &link).is_err());
        assert!(open(OpenOptions::new().read(true), home.path()).is_err());
        let fifo = home.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(open(OpenOptions::new().read(true), &fifo).is_err());
        assert!(ensure_folder(&fifo).is_err());
    }
}
