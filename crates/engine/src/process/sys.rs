//! Raw system calls behind safe names. What only Linux has stands beside a portable sibling here, so
//! that no other file knows which system it runs on.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;

/// The process's arguments as the kernel handed them to `main`.
pub fn arguments(argc: c_int, argv: *const *const c_char) -> Vec<OsString> {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: `main` is called with `argc` pointers to NUL-terminated strings that live as long as the
    // process.
    let word = |n: usize| unsafe { CStr::from_ptr(*argv.add(n)) };
    (0..count).map(|n| OsString::from_vec(word(n).to_bytes().to_vec())).collect()
}

/// A NULL-terminated array of strings for `exec`.
pub struct Block {
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

impl Block {
    /// The words of an argv.
    pub fn argv(words: &[OsString]) -> Block {
        let owned: Vec<CString> = words.iter().map(|w| c_string(w.clone())).collect();
        let pointers = owned.iter().map(|w| w.as_ptr()).chain([std::ptr::null()]).collect();
        Block { pointers, _owned: owned }
    }

    /// This process's environment, entry by entry as it was inherited (order, duplicates, entries
    /// without `=`), but with `name` set to `value`.
    pub fn environment_with(name: &str, value: &str) -> Block {
        let own = c_string(format!("{name}={value}").into());
        let Block { mut pointers, .. } = Block::environment_without(name);
        pointers.insert(pointers.len() - 1, own.as_ptr());
        Block { pointers, _owned: vec![own] }
    }

    /// The same without `name`.
    pub fn environment_without(name: &str) -> Block {
        let mut pointers = Vec::new();
        // SAFETY: `environ` is NULL or a NULL-terminated array of NUL-terminated strings; nothing here
        // changes it, and the shim has one thread.
        unsafe {
            let mut at = environ();
            while !at.is_null() && !(*at).is_null() {
                let entry = CStr::from_ptr(*at).to_bytes();
                if entry.strip_prefix(name.as_bytes()).is_none_or(|rest| !rest.starts_with(b"=")) {
                    pointers.push(*at);
                }
                at = at.add(1);
            }
        }
        pointers.push(std::ptr::null());
        Block { pointers, _owned: Vec::new() }
    }

    fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// A C string; what follows a NUL byte, which no argument can hold, is cut.
pub fn c_string(word: OsString) -> CString {
    let mut bytes = word.into_vec();
    if let Some(nul) = bytes.iter().position(|b| *b == 0) {
        bytes.truncate(nul);
    }
    CString::new(bytes).unwrap_or_default()
}

#[cfg(not(target_os = "macos"))]
unsafe fn environ() -> *const *const c_char {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library defines it before `main` runs.
    unsafe { environ }
}

#[cfg(target_os = "macos")]
unsafe fn environ() -> *const *const c_char {
    // SAFETY: always a valid pointer to the environment's pointer.
    unsafe { *libc::_NSGetEnviron() as *const *const c_char }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The file that holds this very code: the program, or the addon that a program has loaded.
pub fn own_file() -> Option<std::path::PathBuf> {
    // SAFETY: the structure is plain data, filled by the call; its name lives as long as the file is loaded.
    let name = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        let here = own_file as fn() -> Option<std::path::PathBuf>;
        (libc::dladdr(here as *const c_void, &mut found) != 0 && !found.dli_fname.is_null())
            .then(|| CStr::from_ptr(found.dli_fname).to_bytes().to_vec())?
    };
    let path = std::path::PathBuf::from(OsString::from_vec(name));
    path.is_absolute().then_some(path)
}

/// Whether a descriptor is open.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: F_GETFD has no argument and no effect.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::isatty(fd) == 1 }
}

/// Holds closed standard descriptors shut against our own files: a file of ours that landed on
/// descriptor 2 would take the child's messages. They close again by themselves at `exec`.
pub fn occupy_closed_standard_descriptors() {
    for fd in 0..=2 {
        if !is_open(fd) {
            // SAFETY: a constant path; the lowest free descriptor is `fd`, as those below are open.
            unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        }
    }
}

/// A pipe that no child inherits, (read end, write end).
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = std::io::pipe()?;
    Ok((read.into(), write.into()))
}

/// A file without a name that no child inherits.
#[cfg(target_os = "linux")]
pub fn nameless_file() -> io::Result<OwnedFd> {
    // SAFETY: a C string; a new descriptor that is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::memfd_create(c"gh-stdin".as_ptr(), libc::MFD_CLOEXEC))?)) }
}

/// The same where there is no memory file: one in the folder for temporary files.
#[cfg(not(target_os = "linux"))]
pub fn nameless_file() -> io::Result<OwnedFd> {
    // SAFETY: the stream's descriptor is copied, close-on-exec, before the stream is closed.
    unsafe {
        let stream = libc::tmpfile();
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        let copied = check(libc::fcntl(libc::fileno(stream), libc::F_DUPFD_CLOEXEC, 3));
        libc::fclose(stream);
        Ok(OwnedFd::from_raw_fd(copied?))
    }
}

/// Makes reads (or writes) of this end return at once.
pub fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: flags of an open descriptor.
    unsafe {
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// Reads once.
pub fn read(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as said.
    let n = unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Writes once.
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as said.
    let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Waits until one of the descriptors is ready for what is asked of it (`(fd, POLLIN or POLLOUT)`);
/// returns which are. `timeout_ms` below 0 waits for ever; a signal ends the wait with `Interrupted`.
pub fn poll(fds: &[(RawFd, i16)], timeout_ms: c_int) -> io::Result<Vec<bool>> {
    let mut set: Vec<libc::pollfd> =
        fds.iter().map(|(fd, events)| libc::pollfd { fd: *fd, events: *events, revents: 0 }).collect();
    // SAFETY: the array is as long as said.
    check(unsafe { libc::poll(set.as_mut_ptr(), set.len() as libc::nfds_t, timeout_ms) })?;
    Ok(set.iter().map(|p| p.revents != 0).collect())
}

/// Whether this process may run the file.
pub fn may_run(path: &CStr) -> bool {
    // SAFETY: asks only.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Puts SIGCHLD back to its default: children stay until they are collected.
pub fn reset_sigchld() {
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Waits a little; a signal ends the wait.
pub fn pause_ms(ms: u16) {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: libc::c_long::from(ms) * 1_000_000 };
    // SAFETY: the time left is not wanted.
    unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
}

/// Whether two descriptors write to one place with one offset (`2>&1`), so that the order of what is
/// written to them can be seen by a reader.
pub fn same_destination(a: RawFd, b: RawFd) -> bool {
    let (Some(first), Some(second)) = (stat(a), stat(b)) else { return false };
    if (first.st_dev, first.st_ino) != (second.st_dev, second.st_ino) {
        return false;
    }
    // One file opened twice (`>f 2>f`) has two offsets, whose writes run over each other, unless both
    // append (`>>f 2>>f`).
    first.st_mode & libc::S_IFMT != libc::S_IFREG || (appends(a) && appends(b)) || same_description(a, b)
}

fn stat(fd: RawFd) -> Option<libc::stat> {
    // SAFETY: a stat structure is plain data, filled by the call.
    unsafe {
        let mut found = std::mem::zeroed();
        (libc::fstat(fd, &mut found) == 0).then_some(found)
    }
}

fn appends(fd: RawFd) -> bool {
    // SAFETY: asks only.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_APPEND != 0 }
}

#[cfg(target_os = "linux")]
fn same_description(a: RawFd, b: RawFd) -> bool {
    const KCMP_FILE: c_int = 0;
    // SAFETY: kcmp only compares.
    let compared = unsafe { libc::syscall(libc::SYS_kcmp, libc::getpid(), libc::getpid(), KCMP_FILE, a, b) };
    // Containers may forbid it.
    if compared < 0 { share_flags(a, b) } else { compared == 0 }
}

#[cfg(not(target_os = "linux"))]
fn same_description(a: RawFd, b: RawFd) -> bool {
    share_flags(a, b)
}

/// Without a way to ask: status flags belong to the description. One that means nothing for a regular file
/// is changed through `a`, looked for through `b`, and put back.
fn share_flags(a: RawFd, b: RawFd) -> bool {
    // SAFETY: flags of open descriptors.
    unsafe {
        let (of_a, of_b) = (libc::fcntl(a, libc::F_GETFL), libc::fcntl(b, libc::F_GETFL));
        libc::fcntl(a, libc::F_SETFL, of_a ^ libc::O_NONBLOCK);
        let are_shared = libc::fcntl(b, libc::F_GETFL) != of_b;
        libc::fcntl(a, libc::F_SETFL, of_a);
        are_shared
    }
}

/// Starts `program` with descriptors rearranged (`(from, to)`), and the signal mask `mask`.
///
/// # Errors
/// What `exec` or the process limit says.
pub fn spawn(
    program: &CStr,
    argv: &Block,
    env: &Block,
    redirect: &[(RawFd, RawFd)],
    mask: &libc::sigset_t,
) -> io::Result<libc::pid_t> {
    let fails = |code: c_int| if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) };
    // SAFETY: both attribute objects are initialised before and destroyed after their use; argv and env
    // are NULL-terminated arrays that outlive the call, which returns only after the child's exec.
    unsafe {
        let (mut actions, mut attributes, mut pid) = (std::mem::zeroed(), std::mem::zeroed(), 0);
        fails(libc::posix_spawn_file_actions_init(&mut actions))?;
        fails(libc::posix_spawnattr_init(&mut attributes))?;
        for (from, to) in redirect {
            fails(libc::posix_spawn_file_actions_adddup2(&mut actions, *from, *to))?;
        }
        libc::posix_spawnattr_setsigmask(&mut attributes, mask);
        libc::posix_spawnattr_setflags(&mut attributes, libc::POSIX_SPAWN_SETSIGMASK as _);
        let started = libc::posix_spawn(
            &mut pid,
            program.as_ptr(),
            &actions,
            &attributes,
            argv.as_ptr().cast(),
            env.as_ptr().cast(),
        );
        libc::posix_spawn_file_actions_destroy(&mut actions);
        libc::posix_spawnattr_destroy(&mut attributes);
        fails(started).map(|()| pid)
    }
}

/// As [`spawn`], by `fork`, for the one disposition that `posix_spawn` cannot hand on: an ignored
/// SIGCHLD, which we must not ignore while we wait.
pub fn spawn_ignoring_sigchld(
    program: &CStr,
    argv: &Block,
    env: &Block,
    redirect: &[(RawFd, RawFd)],
    mask: &libc::sigset_t,
) -> io::Result<libc::pid_t> {
    // Closed by `exec`; before that, it carries the reason why there was none.
    let (failure, tell) = pipe()?;
    // SAFETY: the shim has one thread; the child calls only functions that are safe after `fork`.
    let pid = unsafe {
        let pid = check(libc::fork())?;
        if pid == 0 {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            for (from, to) in redirect {
                libc::dup2(*from, *to);
            }
            libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
            libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr());
            let code = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            let _ = write(tell.as_raw_fd(), &code.to_ne_bytes());
            libc::_exit(127);
        }
        pid
    };
    drop(tell);
    match read_code(failure.as_raw_fd()) {
        Some(code) => {
            reap(pid);
            Err(io::Error::from_raw_os_error(code))
        }
        None => Ok(pid),
    }
}

fn reap(pid: libc::pid_t) {
    // SAFETY: a child of ours that is about to end; its status is not wanted.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

fn read_code(from: RawFd) -> Option<c_int> {
    let mut code = [0; 4];
    loop {
        match read(from, &mut code) {
            Ok(n) => return (n == code.len()).then(|| c_int::from_ne_bytes(code)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Lets a child keep `fd`, which is closed in every other, and end when this process does: a killed
/// parent must not leave a child behind that goes on without anybody to hear its answer.
pub fn live_under(command: &mut std::process::Command, fd: RawFd) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the closure makes plain system calls only, which are allowed between fork and exec.
    unsafe {
        command.pre_exec(move || {
            check(libc::fcntl(fd, libc::F_SETFD, 0))?;
            end_with_parent();
            Ok(())
        });
    }
}

#[cfg(target_os = "linux")]
fn end_with_parent() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Elsewhere the inherited lock alone keeps a second replay waiting.
#[cfg(not(target_os = "linux"))]
fn end_with_parent() {}

/// Becomes `program`; returns only with the reason why not.
pub fn exec(program: &CStr, argv: &Block, env: &Block) -> io::Error {
    // SAFETY: NULL-terminated arrays of NUL-terminated strings.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Leaves a copy of this process behind that writes what is `left` to `to` and goes on copying `from`, where
/// there is one, until that ends: a grandchild may keep writing long after gh has gone, and must neither be cut
/// off nor killed; a slow reader may take its time when the call must end.
pub fn leave_copying(left: &[u8], from: Option<RawFd>, to: RawFd) {
    // SAFETY: the shim has one thread; the copy only reads, writes and leaves.
    unsafe {
        if libc::fork() != 0 {
            return;
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD, libc::SIGPIPE]
        {
            libc::signal(signal, libc::SIG_DFL);
        }
        for fd in (0..=2).filter(|fd| *fd != to && Some(*fd) != from) {
            libc::close(fd);
        }
        if write_whole(to, left)
            && let Some(from) = from
        {
            libc::fcntl(from, libc::F_SETFL, 0);
            let mut chunk = [0_u8; 16 << 10];
            while let Ok(n @ 1..) = read(from, &mut chunk) {
                if !write_whole(to, &chunk[..n]) {
                    break;
                }
            }
        }
        libc::_exit(0);
    }
}

fn write_whole(to: RawFd, mut left: &[u8]) -> bool {
    while !left.is_empty() {
        match write(to, left) {
            Ok(n) => left = &left[n..],
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                // Whatever the wait says, the next write tells.
                let _ = poll(&[(to, libc::POLLOUT)], -1);
            }
            Err(_) => return false,
        }
    }
    true
}

/// How a child changed, when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It exited with a code.
    Exited(c_int),
    /// It was killed by a signal.
    Killed(c_int),
    /// It was stopped.
    Stopped,
}

/// Whether something has happened to the child, without collecting it: a child that has ended keeps
/// its number until [`collect`], so that no signal meant for it can meet another process.
pub fn has_changed(pid: libc::pid_t) -> bool {
    shows(pid, libc::WEXITED | libc::WSTOPPED)
}

/// Whether the child has ended, without collecting it.
pub fn has_ended(pid: libc::pid_t) -> bool {
    shows(pid, libc::WEXITED)
}

fn shows(pid: libc::pid_t, changes: c_int) -> bool {
    // SAFETY: the structure is plain data, filled by the call.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = changes | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, options) != 0 || info.si_signo != 0
    }
}

/// Collects what has happened to the child; `None` when it was stopped and already goes on again.
pub fn collect(pid: libc::pid_t) -> Option<Change> {
    let mut status = 0;
    loop {
        // SAFETY: one status for one child.
        match unsafe { libc::waitpid(pid, &mut status, libc::WUNTRACED | libc::WNOHANG) } {
            0 => return None,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            // Nobody to wait for (it was collected behind our back): that it ended is all that is
            // known, and that is no success.
            -1 => return Some(Change::Exited(1)),
            _ => break,
        }
    }
    Some(match status {
        _ if libc::WIFSTOPPED(status) => Change::Stopped,
        _ if libc::WIFSIGNALED(status) => Change::Killed(libc::WTERMSIG(status)),
        _ => Change::Exited(libc::WEXITSTATUS(status)),
    })
}

/// Sends a signal.
pub fn kill(pid: libc::pid_t, signal: c_int) {
    // SAFETY: no pointers.
    unsafe { libc::kill(pid, signal) };
}

/// Stops this process as its child was stopped, so that the shell sees it; returns when continued.
pub fn stop_self() {
    // SAFETY: no pointers.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends this process at once, with a code.
pub fn exit_now(code: c_int) -> ! {
    // SAFETY: nothing of ours is buffered.
    unsafe { libc::_exit(code) }
}

/// Ends this process by a signal, as its child ended; without a second core dump.
pub fn die_by(signal: c_int) -> ! {
    // SAFETY: plain data, no pointers kept.
    unsafe {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        libc::signal(signal, libc::SIG_DFL);
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
    exit_now(128 + signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_descriptions_are_told_from_files_opened_twice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (again, copy) = (file.reopen().unwrap(), file.as_file().try_clone().unwrap());
        let number = |file: &std::fs::File| file.as_raw_fd();
        for compare in [same_description, share_flags] {
            assert!(compare(number(file.as_file()), number(&copy)));
            assert!(!compare(number(file.as_file()), number(&again)));
        }
    }
}
