//! Every rule, every edge of time.

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
