//! Who gets which signal while the real gh runs.
//!
//! - From a terminal (`^C`, `^\`) the whole process group gets it, the child too: nothing to forward.
//! - Sent by a process to the shim alone (`kill`, `timeout`): forwarded to the child, once it exists.
//! - Either way the shim lives on, records the call and then ends the way the child ended.
//! - A signal that was ignored when the shim started stays ignored, for the child as well.
//! - SIGPIPE: not deadly to the shim while it copies, so that it is the child that meets it.
//!
//! A handler, unlike "ignore", is reset by `exec`: the child starts with what the shim inherited.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

use super::sys;

/// Signals that end a process and that a caller may send to a `gh` it has started.
const FORWARDED: [c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// What else a [`Watch`] handles.
const OTHERS: [c_int; 4] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD, libc::SIGCONT];

static CHILD: AtomicI32 = AtomicI32::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// A SIGCONT came; a child that still counts as stopped is about to get it too.
static CONTINUED: AtomicBool = AtomicBool::new(false);
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// The shim's signal handling, from before a child runs until the shim ends.
pub struct Watch {
    wake: OwnedFd,
    _wake_writer: OwnedFd,
    /// The mask the shim started with: the child's.
    pub(super) inherited_mask: libc::sigset_t,
    /// Whether the shim was started with SIGCHLD ignored.
    pub(super) sigchld_was_ignored: bool,
    /// Whether a write to a closed pipe would have killed the child.
    pub(super) sigpipe_kills: bool,
}

impl Watch {
    /// Installs the handlers.
    pub fn install() -> io::Result<Watch> {
        let (wake, wake_writer) = sys::pipe()?;
        sys::set_nonblocking(&wake)?;
        sys::set_nonblocking(&wake_writer)?;
        WAKE.store(wake_writer.as_raw_fd(), SeqCst);
        CHILD.store(0, SeqCst);
        for signal in FORWARDED {
            handle_unless_ignored(signal);
        }
        let sigpipe_kills = handle_unless_ignored(libc::SIGPIPE);
        // Under `ulimit -f` our own records must fail with an error, not kill the call.
        handle_unless_ignored(libc::SIGXFSZ);
        let sigchld_was_ignored = disposition(libc::SIGCHLD) == libc::SIG_IGN;
        handle(libc::SIGCHLD);
        handle_unless_ignored(libc::SIGCONT);
        let inherited_mask = unblock_sigchld();
        let watch =
            Watch { wake, _wake_writer: wake_writer, inherited_mask, sigchld_was_ignored, sigpipe_kills };
        Ok(watch)
    }

    /// The descriptor that becomes readable with every signal.
    pub fn wake_fd(&self) -> RawFd {
        self.wake.as_raw_fd()
    }

    /// Forgets the wake-ups so far.
    pub fn settle(&self) {
        let mut bytes = [0; 64];
        while let Ok(1..) = sys::read(self.wake.as_raw_fd(), &mut bytes) {}
    }

    /// Names the child that signals are for, and hands it those that came before it existed.
    pub fn adopt(&self, pid: libc::pid_t) {
        CHILD.store(pid, SeqCst);
        let early = EARLY.swap(0, SeqCst);
        for signal in FORWARDED.into_iter().filter(|s| early & (1 << s) != 0) {
            sys::kill(pid, signal);
        }
    }

    /// The child has ended: its number may soon be another's.
    pub fn release(&self) {
        CHILD.store(0, SeqCst);
    }

    /// Puts back what `exec` would not: an ignored SIGCHLD and the mask.
    pub fn restore(&self) {
        // SAFETY: plain calls on this process's own signals.
        unsafe {
            if self.sigchld_was_ignored {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &self.inherited_mask, std::ptr::null_mut());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The handlers stay, but the number of our pipe may soon be another file's.
        WAKE.store(-1, SeqCst);
    }
}

/// The signal handling of a process that is not ours alone (node): put back when this goes.
pub struct Borrowed {
    actions: Vec<(c_int, libc::sigaction)>,
    mask: libc::sigset_t,
}

impl Borrowed {
    /// Remembers what a [`Watch`] will replace.
    pub fn take() -> Borrowed {
        let remembered = |signal| {
            // SAFETY: asks only.
            let action = unsafe {
                let mut action = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                action
            };
            (signal, action)
        };
        // SAFETY: plain data, filled by the call.
        let mask = unsafe {
            let mut mask = std::mem::zeroed();
            libc::sigprocmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
            mask
        };
        Borrowed { actions: FORWARDED.into_iter().chain(OTHERS).map(remembered).collect(), mask }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: what is put back is what was there.
        unsafe {
            for (signal, action) in &self.actions {
                libc::sigaction(*signal, action, std::ptr::null_mut());
            }
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
            // The owner may have missed the end of a child of its own: it looks once more.
            libc::raise(libc::SIGCHLD);
        }
    }
}

/// A signal that asked this process to end, if one came.
pub fn received() -> Option<c_int> {
    Some(RECEIVED.load(SeqCst)).filter(|signal| *signal != 0)
}

/// Whether a SIGCONT came since this was last asked. A stopped group is continued one process after
/// the other: the shim may look at its child before the child's turn.
pub fn was_continued() -> bool {
    CONTINUED.swap(false, SeqCst)
}

/// Whether the child that signals are for has ended (or there is none any more).
pub fn child_has_ended() -> bool {
    match CHILD.load(SeqCst) {
        0 => true,
        pid => sys::has_ended(pid),
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: only atomics and calls that are safe inside a handler; errno is put back.
    unsafe {
        let errno = errno_location();
        let saved = *errno;
        if signal == libc::SIGCONT {
            CONTINUED.store(true, SeqCst);
        }
        if FORWARDED.contains(&signal) {
            RECEIVED.store(signal, SeqCst);
            if sent_by_a_process(&*info) {
                match CHILD.load(SeqCst) {
                    0 => drop(EARLY.fetch_or(1 << signal, SeqCst)),
                    child => drop(libc::kill(child, signal)),
                }
            }
        }
        libc::write(WAKE.load(SeqCst), b"!".as_ptr().cast(), 1);
        *errno = saved;
    }
}

#[cfg(target_os = "linux")]
fn sent_by_a_process(info: &libc::siginfo_t) -> bool {
    // The kernel's own (a terminal's) have a code above 0.
    info.si_code <= 0
}

#[cfg(not(target_os = "linux"))]
fn sent_by_a_process(info: &libc::siginfo_t) -> bool {
    // SAFETY: the sender's number is set for every signal that `kill` sends, 0 for a terminal's.
    unsafe { info.si_pid() != 0 }
}

#[cfg(target_os = "linux")]
unsafe fn errno_location() -> *mut c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { libc::__errno_location() }
}

#[cfg(not(target_os = "linux"))]
unsafe fn errno_location() -> *mut c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { libc::__error() }
}

fn disposition(signal: c_int) -> libc::sighandler_t {
    // SAFETY: asks only.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut current);
        current.sa_sigaction
    }
}

fn handle_unless_ignored(signal: c_int) -> bool {
    let handled = disposition(signal) != libc::SIG_IGN;
    if handled {
        handle(signal);
    }
    handled
}

/// Without SA_RESTART: a write that waits for a slow reader must learn that a signal came.
fn handle(signal: c_int) {
    // SAFETY: the handler does nothing that is not allowed in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// A caller may have blocked SIGCHLD; we wait for it. Returns the mask as it was.
fn unblock_sigchld() -> libc::sigset_t {
    // SAFETY: plain data, filled by the calls.
    unsafe {
        let (mut only, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, &mut before);
        before
    }
}
