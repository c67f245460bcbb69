//! What a scripted step does to the fake's own process.

use crate::fake_observe::errno;
use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// A signal by its name or number.
pub fn signal(name: &str) -> c_int {
    match name.trim() {
        "HUP" => libc::SIGHUP,
        "INT" => libc::SIGINT,
        "QUIT" => libc::SIGQUIT,
        "KILL" => libc::SIGKILL,
        "SEGV" => libc::SIGSEGV,
        "PIPE" => libc::SIGPIPE,
        "TERM" => libc::SIGTERM,
        "USR1" => libc::SIGUSR1,
        "ABRT" => libc::SIGABRT,
        "TSTP" => libc::SIGTSTP,
        other => other.parse().unwrap_or(0),
    }
}

/// Dies by `signal` whatever was inherited; no core file is left behind.
pub fn die(signal: c_int) {
    // SAFETY: plain calls on this process; the sigset is initialised before it is used.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

static TRAPPED: [AtomicI32; 32] = [const { AtomicI32::new(0) }; 32];

extern "C" fn leave(signal: c_int) {
    let code = TRAPPED[signal as usize % 32].load(Ordering::Relaxed);
    // SAFETY: _exit may be called in a signal handler.
    unsafe { libc::_exit(code) }
}

/// `SIG CODE`: on the signal, ends with the code.
pub fn trap(rest: &str) {
    let (name, code) = rest.split_once(' ').unwrap_or((rest, "0"));
    let signal = signal(name);
    TRAPPED[signal as usize % 32].store(code.trim().parse().unwrap_or(0), Ordering::Relaxed);
    // SAFETY: `leave` only does what a signal handler may.
    unsafe { libc::signal(signal, leave as *const () as libc::sighandler_t) };
}

/// Becomes another program, found on PATH.
pub fn exec(rest: &str) {
    let words: Vec<CString> = rest.split_whitespace().filter_map(|w| CString::new(w).ok()).collect();
    let mut pointers: Vec<*const c_char> = words.iter().map(|w| w.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: a null-terminated vector of strings that outlive the call; on success it does not return.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
}

/// Reads stdin to its end.
pub fn read_all_of_stdin() -> Vec<u8> {
    let mut all = Vec::new();
    let mut block = [0_u8; 65536];
    loop {
        // SAFETY: reads into a buffer of the length that is passed.
        let n = unsafe { libc::read(0, block.as_mut_ptr().cast(), block.len()) };
        match n {
            1.. => all.extend_from_slice(&block[..n as usize]),
            _ if n < 0 && errno() == libc::EINTR => {}
            _ => return all,
        }
    }
}

/// Writes all of it, or says which error number stopped it.
pub fn write_all(fd: c_int, mut bytes: &[u8]) -> Result<(), c_int> {
    while !bytes.is_empty() {
        // SAFETY: writes from a buffer of the length that is passed.
        let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match n {
            0.. => bytes = &bytes[n as usize..],
            _ if errno() == libc::EINTR => {}
            // As Go does on a descriptor that somebody made non-blocking.
            _ if errno() == libc::EAGAIN => {
                let mut wanted = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one entry, as said.
                unsafe { libc::poll(&mut wanted, 1, -1) };
            }
            _ => return Err(errno()),
        }
    }
    Ok(())
}

static COUNTED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn add_one(_signal: c_int) {
    COUNTED.fetch_add(1, Ordering::Relaxed);
}

/// From now on counts this signal instead of dying by it.
pub fn count(signal: c_int) {
    // SAFETY: `add_one` only touches an atomic.
    unsafe { libc::signal(signal, add_one as *const () as libc::sighandler_t) };
}

/// How often the counted signal came.
pub fn counted() -> usize {
    COUNTED.load(Ordering::Relaxed)
}

/// Raises what a test made scarce for the caller's sake, so that the fake can still write its records.
pub fn lift_limits() {
    for resource in [libc::RLIMIT_FSIZE, libc::RLIMIT_NOFILE] {
        // SAFETY: plain data; only the soft limit changes, up to the hard one.
        unsafe {
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(resource, &mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(resource, &limit);
        }
    }
}
