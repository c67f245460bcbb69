//! Exit code and stderr of one `gh` call → one signal (the specification's signal table, #1748).

use std::ffi::OsString;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

/// What one call's outcome says about the forge. Only `Net`, `Server`, `RateLimit` and `Auth` move
/// the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// Exit 0.
    Ok,
    /// DNS failure, connection refused, timeout, reset.
    Net,
    /// HTTP 5xx.
    Server,
    /// A primary or secondary rate limit, HTTP 429, abuse detection.
    RateLimit,
    /// HTTP 401/403, bad credentials.
    Auth,
    /// HTTP 404, "Could not resolve to": a real answer.
    NotFound,
    /// Usage errors and everything else that is the client's own.
    Other,
}

impl Signal {
    /// Every signal, in the order of the specification's table.
    pub const ALL: [Signal; 7] = [
        Signal::Ok,
        Signal::Net,
        Signal::Server,
        Signal::RateLimit,
        Signal::Auth,
        Signal::NotFound,
        Signal::Other,
    ];

    /// The name that observations, messages and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::Ok => "ok",
            Signal::Net => "net",
            Signal::Server => "server",
            Signal::RateLimit => "ratelimit",
            Signal::Auth => "auth",
            Signal::NotFound => "notfound",
            Signal::Other => "other",
        }
    }

    /// The signal with this name.
    pub fn parse(name: &str) -> Option<Signal> {
        Signal::ALL.into_iter().find(|s| s.as_str() == name)
    }

    /// Whether the call failed in a way that says the forge could not be read or written.
    pub fn is_availability_failure(self) -> bool {
        matches!(self, Signal::Net | Signal::Server | Signal::RateLimit | Signal::Auth)
    }
}

/// Which of GitHub's limits a rate-limited answer met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The hourly quota is spent.
    Primary,
    /// A burst limit: secondary rate limit, abuse detection, HTTP 429.
    Secondary,
}

/// What [`classify`] reads out of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The signal.
    pub signal: Signal,
    /// Which limit, where the signal is [`Signal::RateLimit`].
    pub limit: Option<Limit>,
    /// Seconds a named Retry-After asks for, where the output shows one.
    pub retry_after_s: Option<u64>,
}

/// Classifies one call. `args` is gh's argv without `gh` itself.
pub fn classify(_ended: Ended, _stderr: &[u8], _args: &[OsString]) -> Outcome {
    Outcome { signal: Signal::Other, limit: None, retry_after_s: None }
}
