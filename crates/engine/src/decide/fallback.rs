//! A finished read and what is known of it from before → what the caller gets (#1749).
//!
//! | situation | the caller gets |
//! | --- | --- |
//! | an availability failure, an answer inside the bound | the stored answer, exit 0, one line on stderr |
//! | a 404 or a usage error | the live failure: the forge, or gh, has answered |
//! | never seen live | the live failure: an empty result is never invented |
//! | an answer past the bound | the live failure; that it was past it is reported |
//! | anything that is no cacheable read | what it got |

use super::cache_key::Account;
use super::signal::Signal;

/// What is known of a question from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// When the call that was answered started, in nanoseconds since the epoch.
    pub started_ns: u64,
    /// As whom it was asked.
    pub account: Account,
}

/// A finished call that may be answered from the cache.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// What its outcome says.
    pub signal: Signal,
    /// Whether the forge refused the very credentials (401).
    pub credentials_refused: bool,
    /// As whom it was asked.
    pub account: Account,
    /// Now, in nanoseconds since the epoch.
    pub now_ns: u64,
    /// The staleness bound in seconds.
    pub max_age_s: u64,
}

/// What the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// What gh printed: the call succeeded, or failed in a way that is an answer.
    AsItRan,
    /// The stored answer.
    Served {
        /// Its age in seconds.
        age_s: u64,
    },
    /// The live failure, though the forge could not be asked.
    PassedThrough(Why),
}

/// Why a stored answer did not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none.
    NeverSeen,
    /// It is past the staleness bound.
    Stale {
        /// Its age in seconds.
        age_s: u64,
    },
    /// It is from the future: the clock was set back, and its age cannot be told.
    ClockSetBack,
    /// Another account asked.
    OtherAccount,
}

/// Decides.
pub fn decide(facts: &Facts, known: Option<Known>) -> Fallback {
    if !facts.signal.is_availability_failure() {
        return Fallback::AsItRan;
    }
    let Some(known) = known else { return Fallback::PassedThrough(Why::NeverSeen) };
    if !is_for(known.account, facts) {
        return Fallback::PassedThrough(Why::OtherAccount);
    }
    let Some(age_ns) = facts.now_ns.checked_sub(known.started_ns) else {
        return Fallback::PassedThrough(Why::ClockSetBack);
    };
    let age_s = age_ns / 1_000_000_000;
    if age_s >= facts.max_age_s {
        return Fallback::PassedThrough(Why::Stale { age_s });
    }
    Fallback::Served { age_s }
}

/// See [`Account`].
fn is_for(stored: Account, facts: &Facts) -> bool {
    let nobody = facts.account == Account::UNKNOWN || facts.credentials_refused;
    nobody || stored == Account::UNKNOWN || stored == facts.account
}

/// Whether gh's message says that the forge does not know the credentials at all.
pub fn are_credentials_refused(said: &[u8]) -> bool {
    const SHAPES: [&[u8]; 2] = [b"HTTP 401", b"status code: 401"];
    SHAPES.iter().any(|shape| said.windows(shape.len()).any(|window| window == *shape))
}

/// What the queue knows about the issues that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Writes to them that are not delivered yet.
    pub queued: u64,
    /// The issue that this machine has delivered a write to since the answer was stored.
    pub newer: Option<u64>,
    /// Whether there are such writes could not be looked up: that is not "none".
    pub is_unknown: bool,
}

/// The one line that says so, without its newline.
pub fn marker(age_s: u64, signal: Signal, unread: Unread) -> String {
    let signal = signal.as_str();
    let mut line = format!(
        "[forge-cache] served from cache (age {age_s}s) — the live call failed ({signal}). This is last-known \
         state, not live."
    );
    if unread.queued > 0 {
        line += &format!(" {} queued write(s) not in it.", unread.queued);
    }
    if let Some(number) = unread.newer {
        line += &format!(" Your own write to #{number} is newer.");
    }
    if unread.is_unknown {
        line += " Which writes of this machine are not in it could not be looked up.";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_800_000_000;

    fn facts(signal: Signal) -> Facts {
        Facts {
            signal,
            credentials_refused: false,
            account: Account(7),
            now_ns: NOW_S * 1_000_000_000,
            max_age_s: 86_400,
        }
    }

    fn known(age_s: i64) -> Option<Known> {
        let started_ns = (NOW_S as i64 - age_s) as u64 * 1_000_000_000;
        Some(Known { started_ns, account: Account(7) })
    }

    #[test]
    fn the_four_availability_signals_are_served_and_nothing_else_is() {
        for signal in Signal::ALL {
            let expected = match signal {
                Signal::Net | Signal::Server | Signal::RateLimit | Signal::Auth => {
                    Fallback::Served { age_s: 45 }
                }
                Signal::Ok | Signal::NotFound | Signal::Other => Fallback::AsItRan,
            };
            assert_eq!(decide(&facts(signal), known(45)), expected, "{signal:?}");
        }
    }

    #[test]
    fn what_was_never_seen_is_never_invented() {
        assert_eq!(decide(&facts(Signal::Net), None), Fallback::PassedThrough(Why::NeverSeen));
        assert_eq!(decide(&facts(Signal::NotFound), None), Fallback::AsItRan);
    }

    #[test]
    fn an_answer_past_the_bound_is_passed_through() {
        let at = |age_s| decide(&facts(Signal::Server), known(age_s));
        assert_eq!(at(86_399), Fallback::Served { age_s: 86_399 });
        assert_eq!(at(86_400), Fallback::PassedThrough(Why::Stale { age_s: 86_400 }));
        assert_eq!(at(0), Fallback::Served { age_s: 0 });
        assert_eq!(at(-1), Fallback::PassedThrough(Why::ClockSetBack));
        let none = Facts { max_age_s: 0, ..facts(Signal::Server) };
        assert_eq!(decide(&none, known(0)), Fallback::PassedThrough(Why::Stale { age_s: 0 }));
        let endless = Facts { max_age_s: u64::MAX, ..facts(Signal::Server) };
        assert_eq!(decide(&endless, known(1_000_000)), Fallback::Served { age_s: 1_000_000 });
    }

    #[test]
    fn another_account_is_not_served_and_no_account_is() {
        let of = |account, credentials_refused| {
            let facts = Facts { account, credentials_refused, ..facts(Signal::Auth) };
            decide(&facts, known(1))
        };
        assert_eq!(of(Account(8), false), Fallback::PassedThrough(Why::OtherAccount));
        for (account, refused) in [(Account(7), false), (Account::UNKNOWN, false), (Account(8), true)] {
            assert_eq!(of(account, refused), Fallback::Served { age_s: 1 });
        }
        let nobodys = Some(Known { account: Account::UNKNOWN, ..known(1).unwrap() });
        assert_eq!(decide(&facts(Signal::Net), nobodys), Fallback::Served { age_s: 1 });
        assert!(are_credentials_refused(b"HTTP 401: Bad credentials (https://api.github.com/graphql)\n"));
        assert!(are_credentials_refused(b"non-200 OK status code: 401 Unauthorized body: \"\"\n"));
        assert!(!are_credentials_refused(b"HTTP 403: Forbidden\n"));
    }

    #[test]
    fn the_marker_is_the_specifications_line() {
        assert_eq!(
            marker(45, Signal::Server, Unread::default()),
            "[forge-cache] served from cache (age 45s) — the live call failed (server). This is last-known state, not live."
        );
        let both = marker(1, Signal::Net, Unread { queued: 2, newer: Some(12), is_unknown: false });
        assert!(
            both.ends_with("not live. 2 queued write(s) not in it. Your own write to #12 is newer."),
            "{both}"
        );
    }
}
