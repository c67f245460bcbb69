//! Exit code and stderr of one `gh` call → one signal (the specification's signal table, #1748).
//!
//! Words anywhere prove nothing: an issue titled "HTTP 503" that is closed prints its title, and
//! `acme/http-503` is a repository. So the stderr is read by gh's grammar, in three steps:
//! `lines` finds the lines that are gh's own, `grammar` reads each as one finding, and
//! `Evidence` folds the findings by precedence. The literal texts are in `texts` and `transport`.

mod grammar;
mod lines;
mod starts;
#[cfg(test)]
mod tests;
mod texts;
mod transport;

use std::ffi::OsString;

use super::argv::{self, Named};
use grammar::Finding;
use lines::Line;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl Ended {
    /// The exit code by which a shell and the observation log tell of it: 128 + N for signal N.
    pub fn exit_code(self) -> i32 {
        match self {
            Ended::Code(code) => code,
            Ended::Signal(signal) => 128 + signal,
        }
    }
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

/// Classifies one call by how it ended and what it wrote to stderr. `args` is gh's argv without `gh`
/// itself; it only tells gh's own exit 4 ("not logged in") from an extension's.
///
/// The order is the contract's: exit 0 → ok, an exit by a signal → other, then rate-limit wording, then
/// network errors, then the last HTTP status, then texts without a number, then other. A lost
/// connection is believed before a status because gh's calls make several requests, and the later
/// one decides whether the answer can be trusted.
///
/// Works on bytes, reads lines once, compiles no pattern and never fails: `stderr` may be cut at its
/// beginning, hold several calls' output, or not be UTF-8.
pub fn classify(ended: Ended, stderr: &[u8], args: &[OsString]) -> Outcome {
    match ended {
        Ended::Code(0) => return Outcome::of(Signal::Ok),
        // A shell's, a wrapper's or a JS caller's way to say "killed by signal N".
        Ended::Signal(_) | Ended::Code(i32::MIN..0 | 129..=159) => return Outcome::of(Signal::Other),
        Ended::Code(4) if is_own_command(args) => return Outcome::of(Signal::Auth),
        Ended::Code(_) => {}
    }
    let mut evidence = Evidence::default();
    lines::each_line(stderr, &mut |line, following| evidence.add(line, following));
    evidence.outcome()
}

impl Outcome {
    /// An outcome that is no rate limit.
    fn of(signal: Signal) -> Outcome {
        Outcome { signal, limit: None, retry_after_s: None }
    }
}

/// Whether the exit code is gh's own. An extension, an alias, and a program that gh becomes pass on
/// whatever code they like.
fn is_own_command(args: &[OsString]) -> bool {
    match argv::parse(args).named {
        // The one alias that gh comes with: `pr checkout`.
        Named::Unknown { word } => args[word] == "co",
        named => !matches!(named.path(), "" | "copilot" | "extension exec"),
    }
}

/// What the lines of one stderr add up to.
#[derive(Default)]
struct Evidence {
    limit: Option<Limit>,
    net: bool,
    hung_up: bool,
    status: Option<u16>,
    text: Option<Signal>,
    auth_hint: bool,
    /// `gh: ` has begun a message whose `(HTTP 404)` is still to come.
    open_message: bool,
    /// gh saved an interrupted form, which is where a prompt ends with `EOF`.
    form_saved: bool,
    logged_status: Option<u16>,
    retry_after_s: Option<u64>,
}

impl Evidence {
    fn add(&mut self, line: Line, following: &[u8]) {
        match line {
            Line::Own { text, titled } => {
                self.retry_after_s = retry_after(text).or(self.retry_after_s);
                self.form_saved |= text.starts_with(b"operation failed. To restore: ");
                match grammar::read(text, titled, following) {
                    Some(found) => self.found(found),
                    None if self.open_message => self.close_message(text),
                    None => {}
                }
            }
            Line::Header(header) => self.header(header),
            Line::CutLog => *self = Evidence { retry_after_s: self.retry_after_s, ..Evidence::default() },
        }
    }

    fn found(&mut self, found: Finding) {
        match found {
            Finding::RateLimit(limit) => self.limit = Some(limit),
            // The number alone is a rate limit too, and has no quota to wait for.
            Finding::Http(429) => self.limit = self.limit.or(Some(Limit::Secondary)),
            // A proxy's refusal, not the forge's.
            Finding::Http(407) | Finding::Net => self.net = true,
            Finding::Eof => self.net |= !self.form_saved,
            Finding::HungUp => self.hung_up = true,
            Finding::Http(code) => self.status = Some(code),
            Finding::Text(signal) => self.text = Some(more_telling(self.text, signal)),
            Finding::AuthHint => self.auth_hint = true,
            Finding::Open | Finding::Client => {}
        }
        self.open_message = found == Finding::Open;
    }

    fn close_message(&mut self, text: &[u8]) {
        if let Some(code) = grammar::closing_status(text) {
            self.found(Finding::Http(code));
        }
    }

    /// `GH_DEBUG=api` shows the one thing gh never prints itself: how long to wait.
    fn header(&mut self, header: &[u8]) {
        if header.starts_with(b"HTTP/") {
            let code = header.split(|&b| b == b' ').nth(1).and_then(number);
            self.logged_status = code.and_then(|c| u16::try_from(c).ok());
        } else if matches!(self.logged_status, None | Some(403 | 429)) {
            self.retry_after_s = retry_after(header).or(self.retry_after_s);
        }
    }

    fn outcome(&self) -> Outcome {
        if self.limit.is_some() {
            return Outcome {
                signal: Signal::RateLimit,
                limit: self.limit,
                retry_after_s: self.retry_after_s,
            };
        }
        let by_text = self.text.or(self.auth_hint.then_some(Signal::Auth));
        let by_hang_up = if self.hung_up { Signal::Net } else { Signal::Other };
        Outcome::of(match self.status.map(of_status) {
            _ if self.net => Signal::Net,
            // "Not found" may mean "not with this token", and then gh says so.
            Some(Signal::NotFound) if self.auth_hint => Signal::Auth,
            Some(Signal::Other) | None => by_text.unwrap_or(by_hang_up),
            Some(signal) => signal,
        })
    }
}

/// Which of two texts' signals to believe: one that says the forge failed, then one that refuses.
fn more_telling(known: Option<Signal>, new: Signal) -> Signal {
    known.filter(|known| *known <= new).unwrap_or(new)
}

/// A status's signal. 408, 425 and 499 come from an edge that gave up on a request in flight; 410 is a 404
/// that knows more.
fn of_status(code: u16) -> Signal {
    match code {
        401 | 403 => Signal::Auth,
        404 | 410 => Signal::NotFound,
        408 | 425 | 499 | 500..=599 => Signal::Server,
        _ => Signal::Other,
    }
}

/// Seconds that a line asks to wait: `Retry-After: 30`, `retry after 30 seconds`, `try again in 2 minutes`.
fn retry_after(line: &[u8]) -> Option<u64> {
    const ASKS: [&[u8]; 3] = [b"retry-after: ", b"retry after ", b"try again in "];
    let rest = ASKS.iter().find_map(|ask| {
        let at = line.windows(ask.len()).position(|w| w.eq_ignore_ascii_case(ask))?;
        Some(&line[at + ask.len()..])
    })?;
    let digits = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let minutes = rest[digits..].trim_ascii_start().starts_with(b"m");
    number(&rest[..digits])?.checked_mul(if minutes { 60 } else { 1 })
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
