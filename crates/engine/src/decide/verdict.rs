//! Observations → state, reason, sample (the specification's classification rules, #1748, #3191).

use serde::{Deserialize, Serialize};

use super::signal::Signal;

/// How many of the newest evidence observations a verdict reads.
pub const SAMPLE: usize = 10;

/// Seconds a time may lie ahead of now and still be now: two clocks read one after the other, whole
/// seconds against fractions. What lies further ahead was written before the clock was set back.
pub const SKEW_S: u64 = 2;

/// One recorded call, as a line of `observations.log` holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When the call ended, in epoch seconds.
    pub at: u64,
    /// gh's exit code (128 + N for a death by signal N).
    pub exit: i32,
    /// Latency in milliseconds, from a monotonic clock.
    pub ms: u64,
    /// The classified outcome.
    pub signal: Signal,
    /// Command and subcommand (`issue list`).
    pub subcommand: String,
    /// The quota the call spends (`graphql`, `core`, `search`), or `-`.
    pub quota: String,
    /// 1 for a call that spends a quota, 0 for one that spends none.
    pub cost: u64,
    /// The folder the call was made from, plus `/kind` where the caller names itself; or `-`.
    pub caller: String,
    /// First eight characters of the session id, or `-`.
    pub session: String,
}

/// Whether an empty result may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Recent calls succeeded: empty means empty.
    Operational,
    /// Some calls failed with server, rate-limit or auth shapes.
    Degraded,
    /// Calls are failing and none succeeded.
    Unreachable,
    /// No evidence: absence of data is not a verdict.
    Unknown,
}

impl State {
    /// Every state, in the order of the specification's table.
    pub const ALL: [State; 4] = [State::Operational, State::Degraded, State::Unreachable, State::Unknown];

    /// The name that documents, messages and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Operational => "operational",
            State::Degraded => "degraded",
            State::Unreachable => "unreachable",
            State::Unknown => "unknown",
        }
    }

    /// The exit code that answers a shell caller: 0, 3, 4, 5.
    pub fn exit_code(self) -> u8 {
        match self {
            State::Operational => 0,
            State::Degraded => 3,
            State::Unreachable => 4,
            State::Unknown => 5,
        }
    }
}

/// Why a verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No availability failure among the sample.
    RecentCallsSucceeded,
    /// Every failure is a rate limit: the forge is up and the quota ran out (#3191).
    RateLimited,
    /// Every failure is an auth failure: the forge may be healthy, this client cannot read it.
    AuthFailures,
    /// Failures alongside answered calls, the silent partial failure of #1724.
    PartialFailures,
    /// Nothing was answered and most failures are of the network.
    NetworkFailures,
    /// Nothing was answered.
    AllCallsFailing,
    /// Nothing inside the window says anything.
    NoEvidence,
    /// Nothing inside the window says anything, and there is no real `gh` to ask with.
    NoGh,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 8] = [
        Reason::RecentCallsSucceeded,
        Reason::RateLimited,
        Reason::AuthFailures,
        Reason::PartialFailures,
        Reason::NetworkFailures,
        Reason::AllCallsFailing,
        Reason::NoEvidence,
        Reason::NoGh,
    ];

    /// The name that documents, messages and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::RecentCallsSucceeded => "recent-calls-succeeded",
            Reason::RateLimited => "rate-limited",
            Reason::AuthFailures => "auth-failures",
            Reason::PartialFailures => "partial-failures",
            Reason::NetworkFailures => "network-failures",
            Reason::AllCallsFailing => "all-calls-failing",
            Reason::NoEvidence => "no-evidence",
            Reason::NoGh => "no-gh",
        }
    }
}

/// The evidence a verdict was read from: at most [`SAMPLE`] calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Evidence observations read.
    pub total: u64,
    /// Calls that exited 0.
    pub ok: u64,
    /// Calls the forge answered: `ok` and `notfound`.
    pub answered: u64,
    /// Availability failures: `net`, `server`, `ratelimit` and `auth`.
    pub failures: u64,
    /// Network failures.
    pub net: u64,
    /// HTTP 5xx.
    pub server: u64,
    /// Rate limits.
    pub ratelimit: u64,
    /// Auth failures.
    pub auth: u64,
    /// 404s: real answers.
    pub notfound: u64,
    /// The window they were taken from, in seconds.
    #[serde(rename = "window")]
    pub window_s: u64,
}

/// What the observations say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether an empty result may be believed.
    pub state: State,
    /// Why.
    pub reason: Reason,
    /// The evidence.
    pub sample: Sample,
    /// When the newest evidence was written, in epoch seconds; a verdict must not outlive it.
    pub newest_at: Option<u64>,
}

/// Judges the calls of `observations`, given in the order in which they were written (oldest first).
///
/// Only evidence counts: `other` is the client's own doing and says nothing about the forge.
/// `notfound` is an answer, so next to failures it makes the state degraded, never unreachable.
///
/// # Time
///
/// - An observation is evidence while its age is at most `window_s`, the edge included.
/// - A line was written before every line after it, so its time counts as no later than theirs. That
///   is what keeps evidence from before a clock was set back from coming to life again when the clock
///   reaches the old time, and it makes "newest" the order of the log whatever the clock does.
/// - More than [`SKEW_S`] ahead of `now_s`, an age cannot be told, and the observation is no evidence.
///
/// # Rules
///
/// In order: no evidence → unknown; no failure → operational; every failure a rate limit → degraded
/// (the forge is up, #3191); every failure an auth failure → degraded (the forge may be healthy, this
/// client cannot read it); nothing answered → unreachable, as `network-failures` when more than half
/// of the failures are `net` (a tie is not dominance), else as `all-calls-failing`; else degraded.
pub fn classify(observations: &[Observation], now_s: u64, window_s: u64) -> Verdict {
    let (sample, newest_at) = take_sample(observations, now_s, window_s);
    let (state, reason) = judge(&sample);
    Verdict { state, reason, sample, newest_at }
}

impl Verdict {
    /// The failing signals with how often each was seen, in the order of the signal table.
    pub fn causes(&self) -> Vec<(Signal, u64)> {
        let Sample { net, server, ratelimit, auth, .. } = self.sample;
        let failures = [
            (Signal::Net, net),
            (Signal::Server, server),
            (Signal::RateLimit, ratelimit),
            (Signal::Auth, auth),
        ];
        failures.into_iter().filter(|(_, times)| *times > 0).collect()
    }
}

/// A verdict as it is kept for the next callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// For how many seconds it was made to be reused.
    #[serde(rename = "ttl")]
    pub ttl_s: u64,
    /// When it was made, in epoch seconds.
    pub checked_at: u64,
}

impl Stored {
    /// Whether this verdict may be served now to a caller with these settings. It never outlives its
    /// TTL nor the window of its newest evidence, and one from after now was made by a clock that has
    /// been set back since: its age cannot be told.
    pub fn is_fresh(&self, now_s: u64, ttl_s: u64, window_s: u64) -> bool {
        let made_for_these = (self.ttl_s, self.verdict.sample.window_s) == (ttl_s, window_s);
        let not_ahead = self.checked_at <= now_s.saturating_add(SKEW_S);
        let within_ttl = now_s.saturating_sub(self.checked_at) < ttl_s;
        let evidence_at = self.verdict.newest_at.unwrap_or(self.checked_at);
        let evidence_holds = now_s.saturating_sub(evidence_at) <= window_s;
        made_for_these && not_ahead && within_ttl && evidence_holds
    }
}

/// Judges outcomes that do not come from a log: `(epoch, signal)` in any order, equal times in the order
/// given, an outcome without a time as one of now. Without `now_s`, now is the time of the newest, so
/// that the same outcomes always give the same verdict.
pub fn classify_outcomes(outcomes: &[(Option<u64>, Signal)], now_s: Option<u64>, window_s: u64) -> Verdict {
    let now_s = now_s.or(outcomes.iter().filter_map(|(at, _)| *at).max()).unwrap_or(0);
    let call = |&(at, signal): &(Option<u64>, Signal)| {
        let (exit, dash) = (i32::from(signal != Signal::Ok), || "-".to_string());
        let (at, subcommand, quota, caller, session) = (at.unwrap_or(now_s), dash(), dash(), dash(), dash());
        Observation { at, exit, ms: 0, signal, subcommand, quota, cost: 0, caller, session }
    };
    let mut calls: Vec<_> = outcomes.iter().map(call).collect();
    calls.sort_by_key(|call| call.at);
    classify(&calls, now_s, window_s)
}

/// The observations inside the window, evidence or not, by the rules of time of [`classify`].
pub fn within(observations: &[Observation], now_s: u64, window_s: u64) -> Vec<&Observation> {
    let mut rows: Vec<_> = newest_first(observations, now_s, window_s).map(|(row, _)| row).collect();
    rows.reverse();
    rows
}

fn newest_first(
    observations: &[Observation],
    now_s: u64,
    window_s: u64,
) -> impl Iterator<Item = (&Observation, u64)> {
    let timed = observations.iter().rev().scan(u64::MAX, |latest, row| {
        *latest = row.at.min(*latest);
        Some((row, *latest))
    });
    let not_ahead = move |row: &Observation| row.at <= now_s.saturating_add(SKEW_S);
    timed.filter(move |(row, at)| not_ahead(row) && now_s.saturating_sub(*at) <= window_s)
}

fn take_sample(observations: &[Observation], now_s: u64, window_s: u64) -> (Sample, Option<u64>) {
    let mut sample = Sample { window_s, ..Sample::default() };
    let mut newest_at = None;
    let evidence = newest_first(observations, now_s, window_s);
    let evidence = evidence.filter(|(row, _)| row.signal != Signal::Other);
    for (row, at) in evidence.take(SAMPLE) {
        newest_at = newest_at.or(Some(at));
        let count = match row.signal {
            Signal::Ok => &mut sample.ok,
            Signal::Net => &mut sample.net,
            Signal::Server => &mut sample.server,
            Signal::RateLimit => &mut sample.ratelimit,
            Signal::Auth => &mut sample.auth,
            Signal::NotFound => &mut sample.notfound,
            Signal::Other => continue,
        };
        *count += 1;
        sample.total += 1;
    }
    sample.answered = sample.ok + sample.notfound;
    sample.failures = sample.total - sample.answered;
    (sample, newest_at)
}

fn judge(sample: &Sample) -> (State, Reason) {
    match sample {
        Sample { total: 0, .. } => (State::Unknown, Reason::NoEvidence),
        Sample { failures: 0, .. } => (State::Operational, Reason::RecentCallsSucceeded),
        s if s.ratelimit == s.failures => (State::Degraded, Reason::RateLimited),
        s if s.auth == s.failures => (State::Degraded, Reason::AuthFailures),
        s if s.answered > 0 => (State::Degraded, Reason::PartialFailures),
        s if s.net * 2 > s.failures => (State::Unreachable, Reason::NetworkFailures),
        _ => (State::Unreachable, Reason::AllCallsFailing),
    }
}

#[cfg(test)]
mod tests;
