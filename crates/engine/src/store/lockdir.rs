//! A lock folder that is a lease (`RELIABILITY` 5.1): taken by renaming a folder with our token into place,
//! taken over by unlinking the token that was seen, and committed by renaming the token itself onto the
//! file it protects. A holder that was taken over finds its token gone and can do no harm.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{atomic, private};
use crate::checkpoint::{self, step};
use crate::control::Guard;

/// A lease is over after this long, its owner alive or not.
pub const LEASE_S: u64 = 30;

/// A folder that never got into place is swept after this long.
const ABANDONED_S: u64 = 600;

/// Who a process is, so that another can tell whether it still lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process number.
    pub pid: u32,
    /// When it started, in the kernel's own unit: a number that is used again starts at another time.
    pub start: String,
    /// Which boot of which machine.
    pub boot: String,
    /// Which numbering of processes.
    pub namespace: String,
    /// Seconds since the boot, suspended ones included.
    pub boot_s: u64,
}

/// What the lock needs of the kernel.
pub trait Kernel {
    /// This process, now.
    fn me(&self) -> Owner;
    /// When the process with this number started, empty where that cannot be told; `None` when there is none.
    fn start_of(&self, pid: u32) -> Option<String>;
    /// Renames a folder to a name that must be free.
    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// A number that no other caller has.
    fn unique(&self) -> u64;
}

/// A held lock. Dropped without a commit, it is released.
#[derive(Debug)]
pub struct Lease {
    folder: PathBuf,
    token: PathBuf,
    done: bool,
}

/// Takes the lock `folder`, for at most `wait`; `None` when another holds it.
///
/// # Errors
/// The folder above cannot be written.
pub fn acquire(folder: &Path, wait: Duration, kernel: &dyn Kernel) -> io::Result<Option<Lease>> {
    let me = kernel.me();
    let name = format!("{}.{}.{:016x}", me.pid, me.boot_s, kernel.unique());
    let aside = beside(folder, &format!(".new.{name}"));
    let token = format!("owner.{name}");
    step("lease: make")?;
    DirBuilder::new().mode(0o700).create(&aside)?;
    let taken = write_owner(&aside.join(&token), &me).and_then(|()| contend(folder, &aside, wait, kernel));
    if !matches!(taken, Ok(true)) {
        let _ = fs::remove_file(aside.join(&token));
        let _ = fs::remove_dir(&aside);
    }
    Ok(taken?.then(|| {
        sweep(folder);
        Lease { folder: folder.into(), token: folder.join(token), done: false }
    }))
}

impl Lease {
    /// Puts `bytes` in place as `target`, by renaming the token onto it, and releases the lock.
    ///
    /// # Errors
    /// `NotFound`: the lease was taken over, and nothing is changed. Anything else stopped the write.
    pub fn commit(mut self, target: &Path, bytes: &[u8]) -> io::Result<()> {
        if Guard::Aside.is_off() || Guard::Fence.is_off() {
            // What most scripts do: whoever has once held the lock writes.
            return atomic::replace(target, bytes);
        }
        // Without O_CREAT: a token that is gone must not come back in somebody else's lock.
        let mut file = private::open(OpenOptions::new().write(true).truncate(true), &self.token)?;
        step("lease: write")?;
        file.write_all(bytes)?;
        step("lease: commit")?;
        fs::rename(&self.token, target)?;
        self.done = true;
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A token that is gone was taken over: the folder is another's then, and not empty.
        if !self.done && fs::remove_file(&self.token).is_ok() {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn contend(folder: &Path, aside: &Path, wait: Duration, kernel: &dyn Kernel) -> io::Result<bool> {
    let mut left = wait;
    loop {
        step("lease: take")?;
        match kernel.rename_to_free(aside, folder) {
            Ok(()) => return Ok(true),
            Err(e) if is_taken(&e) => {}
            Err(e) => return Err(e),
        }
        if clear_if_dead(folder, kernel) {
            continue;
        }
        if left.is_zero() {
            return Ok(false);
        }
        let pause = Duration::from_millis(1 + kernel.unique() % 20).min(left);
        checkpoint::wait(pause);
        left -= pause;
    }
}

/// Removes a lock whose owner is dead or late; true when it may be free now. Unlinking the token that was
/// seen has one winner by construction.
fn clear_if_dead(folder: &Path, kernel: &dyn Kernel) -> bool {
    if Guard::Token.is_off() {
        // What most scripts do: look, and some time later remove.
        let is_old = age_s(folder).is_some_and(|age_s| age_s >= LEASE_S);
        checkpoint::here("lease: take over");
        std::thread::sleep(Duration::from_micros(kernel.unique() % 3_000));
        return is_old && fs::remove_dir_all(folder).is_ok();
    }
    let Ok(entries) = fs::read_dir(folder) else { return !folder.exists() };
    let is_owner = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("owner.");
    let owner = entries.flatten().map(|entry| entry.file_name()).find(is_owner);
    let Some(owner) = owner else {
        // A shell shim's plain folder, or one whose breaker died half-way. Both are over in half a minute.
        return age_s(folder).is_some_and(|age_s| age_s >= LEASE_S) && fs::remove_dir(folder).is_ok();
    };
    let token = folder.join(owner);
    let is_stale = is_stale(&token, kernel);
    checkpoint::here("lease: take over");
    if !is_stale || fs::remove_file(&token).is_err() {
        return false;
    }
    let _ = fs::remove_dir(folder);
    true
}

fn is_stale(token: &Path, kernel: &dyn Kernel) -> bool {
    let Some(owner) = read_owner(token) else {
        // Being written, being committed, or not ours: its age decides.
        return age_s(token).is_some_and(|age_s| age_s >= LEASE_S);
    };
    let me = kernel.me();
    if owner.boot != me.boot {
        return true;
    }
    is_dead(&owner, &me, kernel) || me.boot_s.abs_diff(owner.boot_s) > LEASE_S
}

/// Whether the owner is certain to have ended. Numbers of another numbering say nothing; and where one of the
/// two cannot tell when a process started (a `/proc` of another numbering, or none), whoever has the number now
/// may be the owner.
fn is_dead(owner: &Owner, me: &Owner, kernel: &dyn Kernel) -> bool {
    if owner.namespace != me.namespace || owner.namespace.is_empty() {
        return false;
    }
    match kernel.start_of(owner.pid) {
        None => true,
        Some(start) if start.is_empty() || owner.start.is_empty() => false,
        Some(start) => start != owner.start && !Guard::Start.is_off(),
    }
}

fn write_owner(token: &Path, me: &Owner) -> io::Result<()> {
    let Owner { pid, start, boot, namespace, boot_s } = me;
    let mut file = private::open(OpenOptions::new().write(true).create_new(true), token)?;
    file.write_all(format!("{pid}\n{start}\n{boot}\n{namespace}\n{boot_s}\n").as_bytes())
}

fn read_owner(token: &Path) -> Option<Owner> {
    let mut text = String::new();
    let file = private::open(OpenOptions::new().read(true), token).ok()?;
    file.take(4 << 10).read_to_string(&mut text).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let [pid, start, boot, namespace, boot_s] = lines[..] else { return None };
    Some(Owner {
        pid: pid.parse().ok()?,
        start: start.into(),
        boot: boot.into(),
        namespace: namespace.into(),
        boot_s: boot_s.parse().ok()?,
    })
}

/// Seconds since the last change by the clock; a time ahead of now counts by its distance.
fn age_s(path: &Path) -> Option<u64> {
    let changed = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(changed.elapsed().unwrap_or_else(|ahead| ahead.duration()).as_secs())
}

fn is_taken(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}

fn beside(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_os_string();
    name.push(suffix);
    folder.with_file_name(name)
}

/// Removes what killed callers have left beside the lock.
fn sweep(folder: &Path) {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return };
    let prefix = format!("{}.new.", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&prefix)) {
        if age_s(&entry.path()).is_some_and(|age_s| age_s >= ABANDONED_S) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
#[path = "lockdir_tests.rs"]
mod tests;
