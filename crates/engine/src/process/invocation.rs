//! One call's ambient state, read once and passed on.

use std::ffi::{OsString, c_char, c_int};
use std::path::PathBuf;

use super::sys;

/// What the shim was called with.
#[derive(Debug)]
pub struct Invocation {
    /// Every word, `argv[0]` first.
    pub argv: Vec<OsString>,
    /// The working directory; `None` when it has been deleted.
    pub cwd: Option<PathBuf>,
    /// What the standard descriptors are.
    pub streams: Streams,
}

/// The standard descriptors as the shim found them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// Standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Standard output was closed: gh gets none either.
    pub stdout_is_closed: bool,
    /// What standard error is.
    pub stderr: Stderr,
}

/// Standard error decides how a call's outcome can be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    /// It was closed.
    Closed,
    /// A terminal: never diverted, prompts stay unbuffered and in order.
    Terminal,
    /// The same open file as standard output (`2>&1`): the order of both is seen by a reader.
    SameAsStdout,
    /// A file or pipe of its own.
    Own,
}

impl Invocation {
    /// Reads it all, and keeps closed standard descriptors from being taken by files of ours.
    pub fn read(argc: c_int, argv: *const *const c_char) -> Invocation {
        let stderr = match (sys::is_open(2), sys::is_open(1)) {
            (false, _) => Stderr::Closed,
            _ if sys::is_terminal(2) => Stderr::Terminal,
            (_, true) if sys::same_destination(1, 2) => Stderr::SameAsStdout,
            _ => Stderr::Own,
        };
        let stdout_is_closed = !sys::is_open(1);
        sys::occupy_closed_standard_descriptors();
        Invocation {
            argv: sys::arguments(argc, argv),
            cwd: std::env::current_dir().ok(),
            streams: Streams {
                stdin_is_terminal: sys::is_terminal(0),
                stdout_is_terminal: sys::is_terminal(1),
                stdout_is_closed,
                stderr,
            },
        }
    }

    /// gh's own arguments, without `argv[0]`.
    pub fn args(&self) -> &[OsString] {
        self.argv.get(1..).unwrap_or_default()
    }
}

/// A variable of this process's environment.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Everything on standard input.
///
/// # Errors
/// It cannot be read.
pub fn read_stdin() -> std::io::Result<Vec<u8>> {
    let (mut all, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match sys::read(0, &mut chunk) {
            Ok(0) => return Ok(all),
            Ok(n) => all.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
