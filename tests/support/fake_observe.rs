//! What the fake `gh` sees of itself, as lines of `NAME VALUE` (read back by `record.rs`).

use crate::bytes::escape;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;

/// The highest descriptor that is looked at.
const FDS: c_int = 1024;
/// The highest signal number that is looked at.
const SIGNALS: c_int = 64;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Everything, taken before the process opens, reads or writes anything.
pub fn everything(words: &[Vec<u8>]) -> String {
    let fds = descriptors();
    let mut seen = String::new();
    for (i, word) in words.iter().enumerate() {
        let _ = writeln!(seen, "{} {}", if i == 0 { "argv0" } else { "arg" }, escape(word));
    }
    for entry in environment() {
        let _ = writeln!(seen, "env {}", escape(&entry));
    }
    let _ = writeln!(seen, "cwd {}", working_directory());
    seen.push_str(&fds);
    seen.push_str(&signals());
    seen.push_str(&identity());
    seen
}

/// The environment's entries as they lie in memory: in order, duplicates and entries without `=` included.
pub fn environment() -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    // SAFETY: the system's own null-terminated vector; nothing in this process changes it.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            entries.push(CStr::from_ptr(*next).to_bytes().to_vec());
            next = next.add(1);
        }
    }
    entries
}

/// The last error number.
pub fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Whether `signal` is ignored.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: only reads the disposition into a zeroed value.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_IGN
    }
}

fn working_directory() -> String {
    let mut buffer = [0 as c_char; 4096];
    // SAFETY: the buffer's own length is passed; the result is a string inside it.
    unsafe {
        if libc::getcwd(buffer.as_mut_ptr(), buffer.len()).is_null() {
            return format!("error {}", errno());
        }
        escape(CStr::from_ptr(buffer.as_ptr()).to_bytes())
    }
}

/// One line a descriptor: number, kind, device:inode, status flags, close-on-exec, terminal.
fn descriptors() -> String {
    let mut lines = String::new();
    for fd in 0..FDS {
        // SAFETY: queries on a number; a closed one answers with an error.
        unsafe {
            let cloexec = libc::fcntl(fd, libc::F_GETFD);
            if cloexec < 0 {
                continue;
            }
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(fd, &mut stat);
            let flags = libc::fcntl(fd, libc::F_GETFL);
            let tty = if libc::isatty(fd) == 1 { "tty" } else { "-" };
            let kind = match stat.st_mode & libc::S_IFMT {
                libc::S_IFIFO => "pipe",
                libc::S_IFCHR => "char",
                libc::S_IFREG => "file",
                libc::S_IFDIR => "dir",
                libc::S_IFSOCK => "socket",
                _ => "other",
            };
            let _ =
                writeln!(lines, "fd {fd} {kind} {}:{} {flags:o} {cloexec} {tty}", stat.st_dev, stat.st_ino);
        }
    }
    lines
}

fn signals() -> String {
    let mut lines = String::new();
    // SAFETY: reads dispositions and the mask into zeroed values.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        for signal in 1..=SIGNALS {
            if is_ignored(signal) {
                let _ = writeln!(lines, "ignored {signal}");
            }
            if libc::sigismember(&mask, signal) == 1 {
                let _ = writeln!(lines, "blocked {signal}");
            }
        }
    }
    lines
}

fn identity() -> String {
    // SAFETY: plain queries; the umask is put back at once, and the process has one thread.
    unsafe {
        let umask = libc::umask(0);
        libc::umask(umask);
        let (mut files, mut size): (libc::rlimit, libc::rlimit) = (std::mem::zeroed(), std::mem::zeroed());
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut files);
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut size);
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        let epoch_ms = now.tv_sec * 1000 + now.tv_nsec / 1_000_000;
        format!(
            "pid {}\nppid {}\npgid {}\nsid {}\nforeground {}\numask {umask:03o}\nlimits {} {}\nnice {}\nepoch_ms {epoch_ms}\n",
            libc::getpid(),
            libc::getppid(),
            libc::getpgrp(),
            libc::getsid(0),
            libc::tcgetpgrp(2),
            files.rlim_cur,
            size.rlim_cur,
            libc::getpriority(libc::PRIO_PROCESS as _, 0),
        )
    }
}
