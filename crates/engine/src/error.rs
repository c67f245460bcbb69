//! What can go wrong, typed near its cause and turned into text in one place per front end.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The kind of a failure; its [`code`](Kind::code) is what JS callers see as `error.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The caller's arguments do not fit.
    Usage,
    /// A file or folder of the forge state cannot be read or written.
    State,
    /// The real `gh` cannot be found or started.
    NoGh,
    /// Another process is at it.
    Busy,
    /// The queue does not carry this write.
    NotQueued,
    /// As many writes wait as may.
    QueueFull,
}

impl Kind {
    /// The stable code of this kind (`EFORGE_USAGE`, `EFORGE_STATE`, …).
    pub fn code(self) -> &'static str {
        match self {
            Kind::Usage => "EFORGE_USAGE",
            Kind::State => "EFORGE_STATE",
            Kind::NoGh => "EFORGE_NO_GH",
            Kind::Busy => "EFORGE_BUSY",
            Kind::NotQueued => "EFORGE_NOT_QUEUED",
            Kind::QueueFull => "EFORGE_QUEUE_FULL",
        }
    }
}

/// A failure with what was being done, where, and the reason underneath.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    doing: String,
    path: Option<PathBuf>,
    source: Option<io::Error>,
}

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of the caller's arguments; `what` is a whole sentence fragment.
    pub fn usage(what: impl Into<String>) -> Self {
        Error { kind: Kind::Usage, doing: what.into(), path: None, source: None }
    }

    /// A failure on a file: `doing` completes "cannot …" (`read the observation log`).
    pub fn state(doing: &str, path: &Path, source: io::Error) -> Self {
        Error { kind: Kind::State, doing: doing.into(), path: Some(path.into()), source: Some(source) }
    }

    /// The real `gh` is missing; `what` names what was searched.
    pub fn no_gh(what: impl Into<String>) -> Self {
        Error { kind: Kind::NoGh, doing: what.into(), path: None, source: None }
    }

    /// Another process is at it; `what` says which.
    pub fn busy(what: impl Into<String>) -> Self {
        Error { kind: Kind::Busy, doing: what.into(), path: None, source: None }
    }

    /// The queue does not carry this write; `what` is the reason, as a clause about it.
    pub fn not_queued(what: impl Into<String>) -> Self {
        Error { kind: Kind::NotQueued, doing: what.into(), path: None, source: None }
    }

    /// As many writes wait as may.
    pub fn queue_full(max: u64) -> Self {
        let doing = format!("the queue is full ({max} of {max} entries wait)");
        Error { kind: Kind::QueueFull, doing, path: None, source: None }
    }

    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The stable code of this failure, as JS callers see it.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// What the user can do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Usage | Kind::NotQueued => None,
            Kind::Busy => Some("wait for it to end"),
            Kind::QueueFull => Some("replay or drop what waits, or raise BOB_FORGE_QUEUE_MAX"),
            Kind::State => Some("check the permissions of the folder, or point BOB_FORGE_STATE elsewhere"),
            Kind::NoGh => Some("install GitHub's gh, or put it on PATH behind the shim"),
        }
    }
}

impl Error {
    /// The whole story in one line: what, why, and what to do about it.
    pub fn explained(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, &self.source) {
            (Some(path), Some(source)) => {
                write!(f, "cannot {} {}: {source}", self.doing, path.display())
            }
            _ => f.write_str(&self.doing),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
