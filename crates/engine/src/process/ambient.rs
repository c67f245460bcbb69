//! The ambient state of a program with an ordinary `main` (the `forge` command), read once.

use std::ffi::OsString;
use std::path::PathBuf;

use super::sys;

/// Every word of the command line, `argv[0]` first.
pub fn argv() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The whole environment.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The working directory; `None` when it has been deleted.
pub fn folder() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// Makes sure that this process is told how its children end: a caller that ignores SIGCHLD hands that on.
pub fn wait_for_children() {
    sys::reset_sigchld();
}
