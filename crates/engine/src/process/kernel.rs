//! What a lease asks the kernel: who a process is, what time it is since the boot, and a rename that never
//! replaces anything. Local time besides.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// This process's number.
pub fn pid() -> u32 {
    std::process::id()
}

/// Seconds since the boot, suspended ones included.
pub fn boot_s() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    // SAFETY: plain data, filled by the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(CLOCK, &mut time);
        u64::try_from(time.tv_sec).unwrap_or(0)
    }
}

/// Which boot of which machine; empty where the kernel does not tell.
pub fn boot_id() -> String {
    first_line("/proc/sys/kernel/random/boot_id")
}

/// Which numbering of processes this process lives in; empty where the kernel does not tell.
pub fn pid_namespace() -> String {
    if !cfg!(target_os = "linux") {
        return "the only one".into();
    }
    let link = std::fs::read_link("/proc/self/ns/pid");
    link.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// When the process with this number started, in the kernel's own unit; empty where the kernel does not
/// tell. `None` when there is no such process.
pub fn start_of(pid: u32) -> Option<String> {
    if proc_counts_as_we_do() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold spaces and parentheses; the 20th word after it is the time.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_ascii_whitespace();
        let state = words.next()?;
        // A zombie does nothing any more.
        return if state == "Z" { None } else { words.nth(18).map(String::from) };
    }
    let pid = libc::pid_t::try_from(pid).ok()?;
    // SAFETY: signal 0 only asks.
    let found = unsafe { libc::kill(pid, 0) } == 0;
    let forbidden = io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    (found || forbidden).then(String::new)
}

/// Whether `/proc` is there and has our own numbers: in a new numbering (`unshare --pid`, a container) it may
/// still be the old one's, where the same number is another process.
fn proc_counts_as_we_do() -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|me| me.as_os_str() == pid().to_string().as_str())
}

/// Renames to a name that is free; `AlreadyExists` when it is not. A file system that cannot do that
/// renames as ever, which a folder that is not empty refuses as well.
pub fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (from_text, to_text) = (text(from)?, text(to)?);
    // SAFETY: two strings that outlive the call.
    #[cfg(target_os = "linux")]
    let failed = unsafe {
        let here = libc::AT_FDCWD;
        // By number: not every C library has the function.
        let flags = libc::RENAME_NOREPLACE;
        libc::syscall(libc::SYS_renameat2, here, from_text.as_ptr(), here, to_text.as_ptr(), flags) != 0
    };
    // SAFETY: two strings that outlive the call.
    #[cfg(target_os = "macos")]
    let failed = unsafe { libc::renamex_np(from_text.as_ptr(), to_text.as_ptr(), libc::RENAME_EXCL) != 0 };
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    let failed = {
        let _ = (from_text, to_text);
        return std::fs::rename(from, to);
    };
    if !failed {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    match e.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS | libc::ENOTSUP) => std::fs::rename(from, to),
        _ => Err(e),
    }
}

/// A number that no other caller on this machine has at this time.
pub fn unique() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // Seeded by the kernel, and different with every call.
    std::hash::RandomState::new().build_hasher().finish()
}

/// An epoch second as `10:47` in this machine's time zone.
pub fn local_time(epoch_s: u64) -> String {
    // SAFETY: plain data; localtime_r keeps no pointer.
    let local = unsafe {
        let at = libc::time_t::try_from(epoch_s).unwrap_or(0);
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&at, &mut local);
        local
    };
    format!("{:02}:{:02}", local.tm_hour, local.tm_min)
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_process_has_a_start_and_a_dead_one_has_none() {
        assert_eq!(start_of(pid()), start_of(pid()));
        assert!(start_of(pid()).is_some());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        assert_eq!(start_of(dead), None);
        assert!(boot_s() > 0);
    }

    #[test]
    fn a_taken_name_is_never_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = home.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (from, taken) = (folder("from"), folder("taken"));
        let refused = rename_to_free(&from, &taken).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        rename_to_free(&from, &home.path().join("free")).unwrap();
        assert!(!from.exists());
    }

    #[test]
    fn numbers_of_two_calls_differ() {
        assert_ne!(unique(), unique());
    }
}
