//! A file that is replaced whole: written aside, then renamed over the old one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::private;
use crate::checkpoint::step;
use crate::control::Guard;

/// Replaces `path` by a file (mode 600) with these bytes; readers see the old or the new one. It is
/// not synced: derived state that a power cut may take is written again.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if Guard::Aside.is_off() {
        let file = private::open(OpenOptions::new().write(true).create(true).truncate(true), path);
        let (start, rest) = bytes.split_at(bytes.len() / 2);
        return file.and_then(|mut file| {
            file.write_all(start)?;
            step("aside: write in place")?;
            file.write_all(rest)
        });
    }
    let aside = aside(path);
    let written = private::open(OpenOptions::new().write(true).create_new(true), &aside)
        .and_then(|mut file| step("aside: write").and_then(|()| file.write_all(bytes)))
        .and_then(|()| step("aside: rename"))
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // Whatever stopped the write must not leave its debris.
        let _ = fs::remove_file(&aside);
    }
    written
}

/// A name beside `path` that no other process and no other thread of this one uses.
fn aside(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = format!(".tmp.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(unique);
    let aside = path.with_file_name(name);
    // A killed process of the same number may have left one.
    let _ = fs::remove_file(&aside);
    aside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_no_debris() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("health.json");
        replace(&path, b"old").unwrap();
        fs::create_dir(home.path().join("folder")).unwrap();
        assert!(replace(&home.path().join("folder"), b"x").is_err(), "a folder cannot be replaced");
        assert!(replace(&home.path().join("missing/file"), b"x").is_err());
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let mut names: Vec<_> = fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["folder", "health.json"]);
    }
}
