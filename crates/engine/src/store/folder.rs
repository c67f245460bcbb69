//! Folders reached component by component, following no symlink, and files used through the one
//! descriptor that was checked (`RELIABILITY` D13): a checkout can hold anything, also under our names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::checkpoint::step;
use crate::control::Guard;
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags};

const FOLDER: Mode = Mode::RWXU;
/// A longer file is not kept aside.
const ASIDE_MAX: u64 = 1 << 20;
const FILE: Mode = Mode::from_raw_mode(0o600);

/// An open folder of ours.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
}

/// Why a file is not read. Each is a refusal of its own, none of them an I/O error.
#[derive(Debug)]
pub enum Unfit {
    /// There is none.
    Missing,
    /// It is not what this machine writes there; the text says in what way.
    Strange(&'static str),
    /// It cannot be read.
    Unreadable(io::Error),
}

impl Unfit {
    /// The system's own trouble (a full table of open files, a bad sector), which may be over the next time and
    /// says nothing about the file.
    ///
    /// # Errors
    /// Itself, where something is wrong with the file.
    pub fn trouble(self) -> Result<io::Error, Unfit> {
        match self {
            Unfit::Unreadable(e) if e.kind() != io::ErrorKind::PermissionDenied => Ok(e),
            unfit => Err(unfit),
        }
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Missing => f.write_str("is missing"),
            Unfit::Strange(how) => f.write_str(how),
            Unfit::Unreadable(e) => write!(f, "cannot be read ({e})"),
        }
    }
}

impl Folder {
    /// Opens `root` itself, which may be reached through symlinks.
    pub fn root(root: &Path) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        step("folder: open the root")?;
        Ok(Folder { fd: sys::open(root, flags, Mode::empty())? })
    }

    /// Opens a folder inside this one; a symlink is refused.
    pub fn sub(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        step("folder: open")?;
        match sys::openat(&self.fd, name.as_ref(), flags, Mode::empty()) {
            Ok(fd) => Ok(Folder { fd }),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                Err(io::Error::new(io::ErrorKind::NotADirectory, "a symlink or a file stands in its place"))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Opens a folder inside this one, making it (mode 700) where it is missing. Its name is not synced.
    pub fn make(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        match self.sub(&name) {
            Ok(folder) => Ok(folder),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                step("folder: make")?;
                match sys::mkdirat(&self.fd, name.as_ref(), FOLDER) {
                    Ok(()) => {}
                    Err(rustix::io::Errno::EXIST) => return self.sub(name),
                    Err(e) => return Err(e.into()),
                }
                let folder = self.sub(name)?;
                // The umask may have taken more away than we want to be without.
                sys::fchmod(&folder.fd, FOLDER)?;
                Ok(folder)
            }
            Err(e) => Err(e),
        }
    }

    /// Makes a folder that must not exist yet.
    pub fn make_new(&self, name: &str) -> io::Result<Folder> {
        step("folder: make anew")?;
        sys::mkdirat(&self.fd, name, FOLDER)?;
        let folder = self.sub(name)?;
        sys::fchmod(&folder.fd, FOLDER)?;
        Ok(folder)
    }

    /// Whether it belongs to this user.
    pub fn is_ours(&self) -> io::Result<bool> {
        Ok(sys::fstat(&self.fd)?.st_uid == rustix::process::geteuid().as_raw())
    }

    /// Closes a folder that was found open to others, and what lies in it (#3636).
    pub fn close_to_others(&self) -> io::Result<()> {
        if sys::fstat(&self.fd)?.st_mode & 0o777 == 0o700 {
            return Ok(());
        }
        sys::fchmod(&self.fd, FOLDER)?;
        for name in self.names()? {
            match self.open(&name, OFlags::RDONLY) {
                Ok(file) if is_plain(&file) => sys::fchmod(&file, FILE)?,
                _ => {
                    if let Ok(sub) = self.sub(&name) {
                        sub.close_to_others()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The names in it, in no order.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        step("folder: list")?;
        for entry in sys::Dir::read_from(&self.fd)? {
            // What is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_string());
            }
        }
        Ok(names)
    }

    /// Opens `<root>/.claude/forge/<store>`, making what is missing; our own folders are closed to
    /// others when they are found open, with what lies in them (#3636).
    ///
    /// # Errors
    /// A symlink, a file or another user's folder stands in the place of one of them.
    pub fn prepare(root: &Path, store: &str) -> io::Result<Folder> {
        let forge = Folder::root(root)?.make(".claude")?.make("forge")?.if_ours()?;
        forge.close_to_others()?;
        let folder = forge.make(store)?.if_ours()?;
        folder.close_to_others()?;
        Ok(folder)
    }

    /// Opens `<root>/.claude/forge/<store>` as it is, for reading.
    ///
    /// # Errors
    /// It is missing, or as in [`Folder::prepare`].
    pub fn existing(root: &Path, store: &str) -> io::Result<Folder> {
        Folder::root(root)?.sub(".claude")?.sub("forge")?.sub(store)?.if_ours()
    }

    /// Makes the names that lead to `<root>/.claude/forge/…` survive a power cut.
    pub fn sync_names(root: &Path) -> io::Result<()> {
        let root = Folder::root(root)?;
        let claude = root.sub(".claude")?;
        root.sync()?;
        claude.sync()?;
        claude.sub("forge")?.sync()
    }

    fn if_ours(self) -> io::Result<Folder> {
        match self.is_ours()? {
            true => Ok(self),
            false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder is another user's")),
        }
    }

    /// Size in bytes and time of the last change, in nanoseconds since the epoch; `None` for what is
    /// no regular file.
    pub fn stat(&self, name: &str) -> Option<(u64, i128)> {
        let found = sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let mtime_ns = i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec);
        is_file.then_some((u64::try_from(found.st_size).ok()?, mtime_ns))
    }

    /// Writes a file that must not exist yet, whole and synced.
    pub fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create_new(name)?;
        step("file: write")?;
        file.write_all(bytes)?;
        if !Guard::Sync.is_off() {
            step("file: sync")?;
            sys::fsync(&file)?;
        }
        Ok(())
    }

    /// Creates a file that must not exist yet; that is one atomic step.
    pub fn create_new(&self, name: &str) -> io::Result<File> {
        self.open_with(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file for appending, reading and locking, making it where it is missing.
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        self.open_plain(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Opens a lock's file, which may hold a memo that is written in place.
    pub fn open_lock(&self, name: &str) -> io::Result<File> {
        self.open_plain(name, OFlags::RDWR | OFlags::CREATE)
    }

    fn open_plain(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let file = self.open_with(name, flags)?;
        let found = sys::fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_nlink != 1 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
        }
        if found.st_mode & 0o777 != 0o600 {
            sys::fchmod(&file, FILE)?;
        }
        Ok(file)
    }

    /// Replaces a file by these bytes: readers see the old one or the new one, and a power cut keeps
    /// one of them.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if Guard::Aside.is_off() {
            return self.write_in_place(name, bytes);
        }
        let aside = format!("{name}.tmp");
        // Only its writer's lock lets anybody come here: what lies there was left by a killed one.
        step("file: remove an old one aside")?;
        match sys::unlinkat(&self.fd, &*aside, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
        let done =
            self.write_new(&aside, bytes).and_then(|()| self.rename(&aside, name)).and_then(|()| self.sync());
        if done.is_err() {
            let _ = self.remove(&aside);
        }
        done
    }

    /// Replaces a file by these bytes without syncing anything: for derived state that a power cut may
    /// take. Only under its writers' lock, as [`Folder::replace`].
    ///
    /// The old file is kept aside and written over by the next call: making and removing a file each time
    /// costs ext4 a millisecond once it has removed some hundred lately. So whoever reads without the lock
    /// may meet a file that is being written over, has to see that by its content, and reads again.
    pub fn replace_unsynced(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        const ASIDE: &str = "aside.tmp";
        if Guard::Aside.is_off() {
            return self.write_in_place(name, &parts.concat());
        }
        let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut file = match self.open_plain(ASIDE, OFlags::WRONLY) {
            Ok(file) => file,
            Err(_) => self.remove(ASIDE).and_then(|()| self.create_new(ASIDE))?,
        };
        // To its new length, never to none: ext4 would write it out when it is closed.
        let written = step("file: write over").and_then(|()| file.set_len(length)).and_then(|()| {
            parts.iter().try_for_each(|part| step("file: write a part").and_then(|()| file.write_all(part)))
        });
        let done = written.and_then(|()| self.exchange(ASIDE, name).or_else(|_| self.rename(ASIDE, name)));
        if done.is_err() || self.stat(ASIDE).is_some_and(|(size, _)| size > ASIDE_MAX) {
            let _ = self.remove(ASIDE);
        }
        done
    }

    /// Lets two files change names. ext4 writes a file out when it is renamed over another one
    /// (`auto_da_alloc`), which costs milliseconds; it does not for an exchange.
    #[cfg(target_os = "linux")]
    fn exchange(&self, one: &str, other: &str) -> io::Result<()> {
        step("file: exchange")?;
        Ok(sys::renameat_with(&self.fd, one, &self.fd, other, sys::RenameFlags::EXCHANGE)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn exchange(&self, _one: &str, _other: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What nobody should do, for the reliability suite's control arms: the old bytes go, the new ones come
    /// piece by piece.
    pub(super) fn write_in_place(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove(name)?;
        let mut file = self.create_new(name)?;
        bytes.chunks(bytes.len() / 2 + 1).try_for_each(|part| {
            step("file: write in place")?;
            file.write_all(part)
        })
    }

    /// Renames inside this folder.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        step("file: rename")?;
        Ok(sys::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Removes a file; a missing one is removed already.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        step("file: remove")?;
        match sys::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes a folder of ours and the files in it; a missing one is removed already.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        match self.sub(name) {
            Ok(folder) => {
                for inside in folder.names()? {
                    folder.remove(&inside)?;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A link or a file in its place: the name goes, what it points at stays.
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => return self.remove(name),
            Err(e) => return Err(e),
        }
        step("folder: remove")?;
        match sys::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Makes the names in it survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        if Guard::Sync.is_off() {
            return Ok(());
        }
        step("folder: sync")?;
        Ok(sys::fsync(&self.fd)?)
    }

    /// Reads a file that this machine wrote: regular, one name, our owner, closed to others, and no
    /// longer than `limit`. Whatever else stands under that name blocks nobody.
    pub fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, Unfit> {
        let (file, size) = self.open_ours(name)?;
        let too_long = || Unfit::Strange("is larger than anything that is written here");
        if size > limit {
            return Err(too_long());
        }
        let mut bytes = Vec::with_capacity(size as usize);
        step("file: read").map_err(Unfit::Unreadable)?;
        // It may grow between the look and the reading.
        file.take(limit + 1).read_to_end(&mut bytes).map_err(Unfit::Unreadable)?;
        if bytes.len() as u64 > limit { Err(too_long()) } else { Ok(bytes) }
    }

    /// Opens a file that this machine wrote, for reading, and says how long it is; what is not one is
    /// refused as in [`Folder::read`].
    pub fn open_ours(&self, name: &str) -> Result<(File, u64), Unfit> {
        step("file: open to read").map_err(Unfit::Unreadable)?;
        let file = match self.open(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Err(Unfit::Missing),
            Err(rustix::io::Errno::LOOP) => return Err(Unfit::Strange("is a symlink")),
            Err(rustix::io::Errno::NXIO) => return Err(Unfit::Strange("is not a regular file")),
            Err(e) => return Err(Unfit::Unreadable(e.into())),
        };
        let found = sys::fstat(&file).map_err(|e| Unfit::Unreadable(e.into()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Unfit::Strange("is not a regular file"));
        }
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Unfit::Strange("belongs to another user"));
        }
        if found.st_nlink != 1 {
            return Err(Unfit::Strange("has a second name elsewhere (a hard link)"));
        }
        if found.st_mode & 0o077 != 0 {
            return Err(Unfit::Strange("is open to other users, so this machine did not write it"));
        }
        let size = u64::try_from(found.st_size).map_err(|_| Unfit::Strange("has no size"))?;
        Ok((file, size))
    }

    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        step("file: open to write")?;
        let file = File::from(sys::openat(&self.fd, name, flags, FILE)?);
        if flags.contains(OFlags::EXCL) {
            sys::fchmod(&file, FILE)?;
        }
        Ok(file)
    }

    fn open(&self, name: &str, flags: OFlags) -> rustix::io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        sys::openat(&self.fd, name, flags, Mode::empty()).map(File::from)
    }
}

fn is_plain(file: &File) -> bool {
    sys::fstat(file).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn home() -> (tempfile::TempDir, Folder) {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::root(home.path()).unwrap();
        (home, folder)
    }

    #[test]
    fn only_a_plain_closed_file_of_ours_is_read() {
        let (home, folder) = home();
        let at = |name: &str| home.path().join(name);
        folder.write_new("plain", b"text").unwrap();
        assert_eq!(folder.read("plain", 4).unwrap(), b"text");
        assert!(matches!(folder.read("plain", 3), Err(Unfit::Strange(_))));
        assert!(matches!(folder.read("none", 3), Err(Unfit::Missing)));
        std::fs::hard_link(at("plain"), at("twin")).unwrap();
        assert!(folder.read("plain", 9).unwrap_err().to_string().contains("hard link"));
        symlink("plain", at("link")).unwrap();
        assert!(folder.read("link", 9).unwrap_err().to_string().contains("symlink"));
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        assert!(folder.read("fifo", 9).unwrap_err().to_string().contains("regular"));
        std::fs::create_dir(at("folder")).unwrap();
        assert!(folder.read("folder", 9).is_err());
        std::fs::write(at("open"), "x").unwrap();
        std::fs::set_permissions(at("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(folder.read("open", 9).unwrap_err().to_string().contains("open to other"));
        let huge = File::create(at("huge")).unwrap();
        huge.set_len(1 << 40).unwrap();
        std::fs::set_permissions(at("huge"), std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(folder.read("huge", 1 << 20).unwrap_err().to_string().contains("larger"));
    }

    #[test]
    fn a_symlink_in_a_folders_place_is_refused() {
        let (home, folder) = home();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), home.path().join("queue")).unwrap();
        assert!(folder.make("queue").is_err() && folder.sub("queue").is_err());
        folder.remove_folder("queue").unwrap();
        assert!(elsewhere.path().exists() && folder.make("queue").is_ok());
    }

    #[test]
    fn an_open_folder_is_closed_with_what_lies_in_it() {
        let (home, folder) = home();
        let mode = |name: &str| home.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        std::fs::create_dir_all(home.path().join("q/d")).unwrap();
        std::fs::write(home.path().join("q/d/body"), "x").unwrap();
        for (name, bits) in [("q", 0o755), ("q/d", 0o755), ("q/d/body", 0o644)] {
            std::fs::set_permissions(home.path().join(name), std::fs::Permissions::from_mode(bits)).unwrap();
        }
        folder.sub("q").unwrap().close_to_others().unwrap();
        assert_eq!((mode("q"), mode("q/d"), mode("q/d/body")), (0o700, 0o700, 0o600));
    }
}
