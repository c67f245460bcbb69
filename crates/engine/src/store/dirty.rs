//! `queue-dirty`: the real paths of the projects that have something pending, one a line (#3635).
//!
//! It is what automatic replay looks at before anything else: one `stat` where nothing is pending
//! anywhere, and no delivery for a project that is not named.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::Folder;
use super::lock::Lock;
use super::private;

const FILE: &str = "queue-dirty";
const LOCK: &str = "queue-dirty.lock";
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Past this it is not one of ours.
const READ_MAX: u64 = 1 << 20;

/// Whether any project has something pending: one `stat`.
pub fn any(state: &Path) -> bool {
    fs::metadata(state.join(FILE)).is_ok_and(|found| found.len() > 0)
}

/// Whether this project (its real path) is marked.
pub fn is_marked(state: &Path, project: &Path) -> bool {
    read(state).is_ok_and(|marks| lines(&marks).any(|line| line == project.as_os_str().as_bytes()))
}

/// Every marked project.
pub fn marked(state: &Path) -> Vec<PathBuf> {
    let marks = read(state).unwrap_or_default();
    lines(&marks).map(|line| PathBuf::from(std::ffi::OsStr::from_bytes(line))).collect()
}

/// Marks a project. A mark that is found counts as synced where `is_relied_on`: an entry waits under it.
/// Otherwise its maker may have been killed before it was.
pub fn mark(state: &Path, project: &Path, is_relied_on: bool) -> io::Result<()> {
    let path = project.as_os_str().as_bytes();
    if path.contains(&b'\n') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the project's path holds a line break"));
    }
    if is_marked(state, project) {
        return if is_relied_on { Ok(()) } else { Folder::root(state)?.sync() };
    }
    private::ensure_folder(state)?;
    let _lock = lock(state)?;
    let mut marks = whole_lines(read(state)?);
    if !lines(&marks).any(|line| line == path) {
        marks.extend_from_slice(path);
        marks.push(b'\n');
        // Synced: what was promised to replay by itself must not wait for a person after a power cut.
        Folder::root(state)?.replace(FILE, &marks)?;
    }
    Ok(())
}

/// Takes a project's mark away; the last one takes the file with it.
pub fn unmark(state: &Path, project: &Path) -> io::Result<()> {
    if !is_marked(state, project) {
        return Ok(());
    }
    let _lock = lock(state)?;
    let marks = read(state)?;
    let kept: Vec<&[u8]> = lines(&marks).filter(|line| *line != project.as_os_str().as_bytes()).collect();
    if kept.is_empty() {
        return fs::remove_file(state.join(FILE));
    }
    let mut text = kept.join(&b'\n');
    text.push(b'\n');
    Folder::root(state)?.replace(FILE, &text)
}

fn lock(state: &Path) -> io::Result<Lock> {
    Lock::exclusive(&state.join(LOCK), LOCK_WAIT)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "another process keeps queue-dirty locked"))
}

fn read(state: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match private::open(fs::OpenOptions::new().read(true), &state.join(FILE)) {
        Ok(file) => {
            io::Read::read_to_end(&mut io::Read::take(file, READ_MAX), &mut bytes)?;
            Ok(bytes)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(bytes),
        Err(e) => Err(e),
    }
}

fn whole_lines(mut marks: Vec<u8>) -> Vec<u8> {
    if marks.last().is_some_and(|last| *last != b'\n') {
        marks.push(b'\n');
    }
    marks
}

fn lines(marks: &[u8]) -> impl Iterator<Item = &[u8]> {
    marks.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_made_once_and_the_last_one_takes_the_file_with_it() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("forge");
        let (a, b) = (Path::new("/p/a"), Path::new("/p/b"));
        assert!(!any(&state) && !is_marked(&state, a));
        for _ in 0..2 {
            mark(&state, a, false).unwrap();
        }
        mark(&state, b, false).unwrap();
        assert_eq!(marked(&state), [a, b]);
        assert!(is_marked(&state, b) && !is_marked(&state, Path::new("/p")));
        unmark(&state, a).unwrap();
        assert!(any(&state) && !is_marked(&state, a));
        unmark(&state, b).unwrap();
        assert!(!any(&state) && !state.join(FILE).exists());
        unmark(&state, b).unwrap();
        assert!(mark(&state, Path::new("/p/a\nb"), false).is_err());
    }
}
