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
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn seen(signal: Signal, at: u64) -> Observation {
        let exit = i32::from(signal != Signal::Ok);
        let (subcommand, dash) = ("issue list".to_string(), "-".to_string());
        let (quota, caller, session) = (dash.clone(), dash.clone(), dash);
        Observation { at, exit, ms: 5, signal, subcommand, quota, cost: 0, caller, session }
    }

    /// One observation a word, oldest first, one a second, the last one now.
    fn calls(words: &str) -> Vec<Observation> {
        let signals: Vec<_> = words.split_whitespace().map(|w| Signal::parse(w).unwrap()).collect();
        let first = NOW + 1 - signals.len() as u64;
        signals.into_iter().zip(first..).map(|(signal, at)| seen(signal, at)).collect()
    }

    fn verdict(words: &str) -> (State, Reason, Vec<Signal>) {
        let verdict = classify(&calls(words), NOW, 300);
        let causes = verdict.causes().into_iter().map(|(signal, _)| signal).collect();
        (verdict.state, verdict.reason, causes)
    }

    #[test]
    fn every_rule_gives_its_state_reason_and_causes() {
        use Reason::*;
        use Signal::{Auth, Net, RateLimit, Server};
        use State::*;
        let table: &[(&str, State, Reason, &[Signal])] = &[
            ("", Unknown, NoEvidence, &[]),
            ("other other other", Unknown, NoEvidence, &[]),
            ("ok", Operational, RecentCallsSucceeded, &[]),
            ("ok notfound ok", Operational, RecentCallsSucceeded, &[]),
            ("notfound", Operational, RecentCallsSucceeded, &[]),
            ("ok other other", Operational, RecentCallsSucceeded, &[]),
            ("ratelimit", Degraded, RateLimited, &[RateLimit]),
            ("ratelimit ratelimit", Degraded, RateLimited, &[RateLimit]),
            ("ok ratelimit", Degraded, RateLimited, &[RateLimit]),
            ("notfound ratelimit", Degraded, RateLimited, &[RateLimit]),
            ("auth", Degraded, AuthFailures, &[Auth]),
            ("ok auth ok", Degraded, AuthFailures, &[Auth]),
            ("net", Unreachable, NetworkFailures, &[Net]),
            ("net net server", Unreachable, NetworkFailures, &[Net, Server]),
            ("net server", Unreachable, AllCallsFailing, &[Net, Server]),
            ("net net server auth", Unreachable, AllCallsFailing, &[Net, Server, Auth]),
            ("server", Unreachable, AllCallsFailing, &[Server]),
            ("server server", Unreachable, AllCallsFailing, &[Server]),
            ("auth ratelimit", Unreachable, AllCallsFailing, &[RateLimit, Auth]),
            ("ratelimit net", Unreachable, AllCallsFailing, &[Net, RateLimit]),
            ("net other", Unreachable, NetworkFailures, &[Net]),
            ("ok net", Degraded, PartialFailures, &[Net]),
            ("ok server", Degraded, PartialFailures, &[Server]),
            ("server ok ok ok ok ok ok ok ok ok", Degraded, PartialFailures, &[Server]),
            ("net net net notfound", Degraded, PartialFailures, &[Net]),
            ("auth net ok ratelimit", Degraded, PartialFailures, &[Net, RateLimit, Auth]),
        ];
        for (words, state, reason, causes) in table {
            assert_eq!(verdict(words), (*state, *reason, causes.to_vec()), "{words:?}");
        }
    }

    #[test]
    fn only_the_newest_ten_pieces_of_evidence_count() {
        let ten_ok = "ok ".repeat(10);
        assert_eq!(verdict(&format!("net server {ten_ok}")).0, State::Operational);
        assert_eq!(verdict(&format!("server {}", "ok ".repeat(9))).0, State::Degraded);
        let others = "other ".repeat(50);
        assert_eq!(verdict(&format!("server {ten_ok} {others}")).0, State::Operational);
        assert_eq!(verdict(&format!("net {others}")).0, State::Unreachable);
        assert_eq!(classify(&calls(&ten_ok.repeat(3)), NOW, 300).sample.total, 10);
    }

    #[test]
    fn the_sample_counts_every_signal_once() {
        let sample = classify(&calls("ok ok net server ratelimit auth notfound other"), NOW, 60).sample;
        let expected = Sample {
            total: 7,
            ok: 2,
            answered: 3,
            failures: 4,
            net: 1,
            server: 1,
            ratelimit: 1,
            auth: 1,
            notfound: 1,
            window_s: 60,
        };
        assert_eq!(sample, expected);
    }

    #[test]
    fn the_edge_of_the_window_is_inside() {
        let at = |age| classify(&[seen(Signal::Ok, NOW - age)], NOW, 300).state;
        assert_eq!((at(300), at(301)), (State::Operational, State::Unknown));
        assert_eq!(classify(&[seen(Signal::Ok, NOW)], NOW, 0).state, State::Operational);
    }

    #[test]
    fn an_observation_further_ahead_than_the_skew_is_no_evidence() {
        let ahead = |by| classify(&[seen(Signal::Ok, NOW + by)], NOW, 300).state;
        assert_eq!((ahead(0), ahead(2), ahead(3)), (State::Operational, State::Operational, State::Unknown));
        let rows = [seen(Signal::Ok, NOW + 3600), seen(Signal::Net, NOW)];
        assert_eq!(classify(&rows, NOW + 3600, 300).state, State::Unknown);
        assert_eq!(classify(&rows, NOW, 300).state, State::Unreachable);
        assert_eq!(classify(&[seen(Signal::Ok, u64::MAX)], u64::MAX, u64::MAX).state, State::Operational);
    }

    #[test]
    fn the_order_of_the_log_beats_a_clock_that_was_set_back() {
        let mut rows: Vec<_> = (0..10).map(|i| seen(Signal::Ok, NOW - i)).rev().collect();
        rows.push(seen(Signal::Server, NOW - 100));
        let verdict = classify(&rows, NOW, 300);
        assert_eq!((verdict.state, verdict.sample.ok), (State::Degraded, 9));
        assert_eq!(verdict.newest_at, Some(NOW - 100));
    }

    #[test]
    fn evidence_from_before_a_clock_was_set_back_does_not_come_to_life_again() {
        let rows = [seen(Signal::Ok, NOW), seen(Signal::Other, NOW - 3600)];
        assert_eq!(classify(&rows, NOW, 300).state, State::Unknown);
        assert!(within(&rows, NOW, 300).is_empty());
    }

    #[test]
    fn the_same_observations_give_the_same_verdict() {
        let rows = calls("ok net auth ratelimit server notfound other ok");
        let (first, before) = (classify(&rows, NOW, 300), rows.clone());
        for _ in 0..100 {
            assert_eq!(classify(&rows, NOW, 300), first);
        }
        assert_eq!(rows, before);
        let hour_later: Vec<_> = rows.iter().cloned().map(|r| Observation { at: r.at + 3600, ..r }).collect();
        let later = classify(&hour_later, NOW + 3600, 300);
        assert_eq!((later.state, later.reason, later.sample), (first.state, first.reason, first.sample));
    }

    #[test]
    fn within_keeps_the_order_of_the_log_and_what_is_no_evidence() {
        let rows = calls("ok other net");
        let old = [vec![seen(Signal::Ok, NOW - 301)], rows.clone()].concat();
        let kept: Vec<_> = within(&old, NOW, 300).into_iter().cloned().collect();
        assert_eq!(kept, rows);
    }

    #[test]
    fn outcomes_in_any_order_are_judged_by_their_time() {
        use Signal::{Net, Ok};
        let newest_first: Vec<_> = (0..12).map(|i| (Some(NOW - i), if i < 10 { Ok } else { Net })).collect();
        assert_eq!(classify_outcomes(&newest_first, Some(NOW), 300).state, State::Operational);
        let old_last = [(Some(NOW), Ok), (Some(NOW - 4_000), Net)];
        assert_eq!(classify_outcomes(&old_last, Some(NOW), 300).state, State::Operational);
        assert_eq!(classify_outcomes(&old_last, None, 300).state, State::Operational);
        assert_eq!(classify_outcomes(&old_last, None, 5_000).state, State::Degraded);
        assert_eq!(classify_outcomes(&[], None, 300).state, State::Unknown);
        let timeless = [(None, Net), (Some(NOW - 400), Ok), (Some(NOW), Ok)];
        assert_eq!(classify_outcomes(&timeless, None, 300).sample.total, 2);
    }

    #[test]
    fn a_stored_verdict_outlives_neither_its_ttl_nor_its_evidence() {
        let stored = |age| Stored {
            verdict: classify(&[seen(Signal::Ok, NOW - age)], NOW, 300),
            ttl_s: 60,
            checked_at: NOW,
        };
        let fresh = |age, now_s| stored(age).is_fresh(now_s, 60, 300);
        assert!(fresh(0, NOW) && fresh(0, NOW + 59) && !fresh(0, NOW + 60), "the TTL");
        assert!(fresh(290, NOW + 10) && !fresh(290, NOW + 11), "the evidence leaves the window");
        assert!(fresh(0, NOW - 2) && !fresh(0, NOW - 3), "a clock that was set back");
        assert!(!stored(0).is_fresh(NOW, 61, 300) && !stored(0).is_fresh(NOW, 60, 301), "other settings");
    }

    #[test]
    fn states_and_reasons_are_stored_under_their_names() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert_eq!(State::ALL.map(State::exit_code), [0, 3, 4, 5]);
    }
}
