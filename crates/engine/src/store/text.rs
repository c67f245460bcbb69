//! Files of the user's that a call names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// A plain file's bytes, at most `limit` of them. A pipe in its place is not waited for: what it held has
/// been read by gh.
pub fn plain_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a path leads to a pipe, whose text can be read only once (`<(…)`, `/dev/stdin`).
pub fn is_a_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Reads a pipe to its end.
pub fn read_pipe(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Whether two paths lead to one place.
pub fn same_place(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
