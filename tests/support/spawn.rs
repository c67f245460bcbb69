//! Starts a program exactly as told: `std::process::Command` cannot close descriptors, hand on an entry
//! without `=`, or set masks and dispositions.

use std::ffi::{CString, c_char, c_int};
use std::io::{self, Read};
use std::os::fd::RawFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a test waits for a process before it kills it and fails.
const LIMIT: Duration = Duration::from_secs(90);
/// Descriptors above this number are closed in the child by close-on-exec alone.
const FDS: c_int = 1024;

/// Held from every fork to its exec. In between the child has a copy of every descriptor of this process, also
/// of those that another test is about to close and must find closed.
pub static FORKING: Mutex<()> = Mutex::new(());

/// Which process group and session the child gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The test runner's.
    Inherited,
    /// A process group of its own.
    Own,
    /// A session of its own, on the terminal that is its descriptor of this number.
    Session(RawFd),
}

/// One program to start.
#[derive(Debug)]
pub struct Spawn {
    /// Path of the program.
    pub program: CString,
    /// All words, argv\[0\] first.
    pub argv: Vec<CString>,
    /// All entries, as they are.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: CString,
    /// Whether the child removes its working directory before it starts.
    pub cwd_is_removed: bool,
    /// `(number in the child, number here)`; every other number is closed.
    pub fds: Vec<(RawFd, RawFd)>,
    /// Signals that are ignored; every other one has its default disposition.
    pub ignored: Vec<c_int>,
    /// Signals that are blocked.
    pub blocked: Vec<c_int>,
    /// The umask.
    pub umask: libc::mode_t,
    /// Soft limits: resource and value.
    pub limits: Vec<(i32, libc::rlim_t)>,
    /// The process group.
    pub group: Group,
}

/// How a process ended, or that it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Not at all: this signal stopped it.
    Stopped(i32),
}

impl Spawn {
    /// Starts it and returns its process id, once the child has become the program.
    pub fn start(&self) -> io::Result<libc::pid_t> {
        let argv = pointers(&self.argv);
        let env = pointers(&self.env);
        let _guard = FORKING.lock();
        // The write end closes when the child execs.
        let (mut exec_done, until_exec) = io::pipe()?;
        // SAFETY: between fork and exec the child only makes system calls on memory made before the fork.
        let pid = unsafe {
            match libc::fork() {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    self.become_it(&argv, &env);
                    libc::_exit(126)
                }
                pid => pid,
            }
        };
        drop(until_exec);
        exec_done.read_to_end(&mut Vec::new())?;
        Ok(pid)
    }

    /// # Safety
    /// Only in a freshly forked child.
    unsafe fn become_it(&self, argv: &[*const c_char], env: &[*const c_char]) {
        // SAFETY: see `start`; all arguments are valid for the time of their call.
        unsafe {
            for signal in (1..32).filter(|s| *s != libc::SIGKILL && *s != libc::SIGSTOP) {
                let ignored = self.ignored.contains(&signal);
                libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
            }
            let mut mask = std::mem::zeroed();
            libc::sigemptyset(&mut mask);
            for signal in &self.blocked {
                libc::sigaddset(&mut mask, *signal);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            libc::umask(self.umask);
            libc::chdir(self.cwd.as_ptr());
            if self.cwd_is_removed {
                libc::rmdir(self.cwd.as_ptr());
            }
            self.place_descriptors();
            match self.group {
                Group::Inherited => {}
                Group::Own => drop(libc::setpgid(0, 0)),
                Group::Session(terminal) => {
                    libc::setsid();
                    libc::ioctl(terminal, libc::TIOCSCTTY as _, 0);
                }
            }
            for (resource, soft) in &self.limits {
                let mut limit: libc::rlimit = std::mem::zeroed();
                libc::getrlimit(*resource as _, &mut limit);
                limit.rlim_cur = *soft;
                libc::setrlimit(*resource as _, &limit);
            }
            libc::execve(self.program.as_ptr(), argv.as_ptr(), env.as_ptr());
        }
    }

    /// # Safety
    /// Only in a freshly forked child.
    unsafe fn place_descriptors(&self) {
        const HIGH: c_int = 200;
        // SAFETY: numbers only; `fds` has at most a handful of entries.
        unsafe {
            let mut high = [-1; 16];
            for (slot, (_, here)) in high.iter_mut().zip(&self.fds) {
                *slot = libc::fcntl(*here, libc::F_DUPFD_CLOEXEC, HIGH);
            }
            for fd in 0..FDS {
                if fd < 3 {
                    libc::close(fd);
                } else {
                    libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
                }
            }
            for (slot, (there, _)) in high.iter().zip(&self.fds) {
                libc::dup2(*slot, *there);
            }
        }
    }
}

/// Waits for the end of `pid`, or for a stop where `stops` is set; kills it and fails after a long time.
pub fn wait(pid: libc::pid_t, stops: bool) -> Exit {
    let until = Instant::now() + LIMIT;
    let options = libc::WNOHANG | if stops { libc::WUNTRACED } else { 0 };
    loop {
        let mut status = 0;
        // SAFETY: waits for a child of this process.
        match unsafe { libc::waitpid(pid, &mut status, options) } {
            0 if Instant::now() > until => {
                send(pid, libc::SIGKILL);
                panic!("process {pid} did not end in {LIMIT:?}");
            }
            0 => std::thread::sleep(Duration::from_millis(1)),
            -1 => panic!("waitpid {pid}: {}", io::Error::last_os_error()),
            _ if libc::WIFSTOPPED(status) => return Exit::Stopped(libc::WSTOPSIG(status)),
            _ if libc::WIFSIGNALED(status) => return Exit::Signal(libc::WTERMSIG(status)),
            _ => return Exit::Code(libc::WEXITSTATUS(status)),
        }
    }
}

/// Sends a signal to a process, or to a process group where `pid` is negative.
pub fn send(pid: libc::pid_t, signal: c_int) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, signal) };
}

/// A null-terminated vector of pointers into `strings`.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}
