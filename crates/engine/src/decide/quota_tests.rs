use super::*;
use crate::decide::reading::Quota;
use crate::decide::signal::Limit;
use crate::settings::Settings;

/// 2026-09-27T10:22:00Z, the moment of the specification's example.
const NOW: u64 = 1_790_504_520;

fn budget() -> Budget {
    Settings::read(&|_: &str| None).budget
}

fn utc(epoch_s: u64) -> String {
    format!("{:02}:{:02}", epoch_s / 3_600 % 24, epoch_s / 60 % 60)
}

fn quota(limit: u64, remaining: u64, reset_at: u64) -> Option<Quota> {
    Some(Quota { limit, remaining, used: limit - remaining, reset_at })
}

fn call(caller: &str, session: &str, quota: &str, signal: Signal) -> Observation {
    Observation {
        at: NOW - 100,
        exit: 0,
        ms: 1,
        signal,
        subcommand: "issue list".into(),
        quota: quota.into(),
        cost: u64::from(quota != "-"),
        caller: caller.into(),
        session: session.into(),
    }
}

fn entry(event: Event, seconds: u64) -> Entry {
    let (quota, subcommand) = ("graphql".to_string(), "issue list".to_string());
    Entry { at: NOW - 50, event, quota, remaining: Some(10), seconds, subcommand }
}

fn read(at: u64, used: u64, core_used: u64) -> Read {
    let counter = |used, reset_at| Some(Counter { used, remaining: 5_000 - used, reset_at });
    Read { at, graphql: counter(used, NOW + 1_500), core: counter(core_used, NOW + 2_400) }
}

fn limited(at: u64) -> Limited {
    Limited {
        at,
        quota: "graphql".into(),
        subcommand: "issue list".into(),
        caller: "example-web/groom".into(),
        session: "-".into(),
        limit: Limit::Primary,
    }
}

struct Scene {
    reading: Reading,
    reads: Vec<Read>,
    observations: Vec<Observation>,
    limited: Vec<Limited>,
    entries: Vec<Entry>,
    ledger: Vec<Slot>,
}

impl Scene {
    fn empty() -> Scene {
        Scene {
            reading: Reading::default(),
            reads: vec![],
            observations: vec![],
            limited: vec![],
            entries: vec![],
            ledger: vec![],
        }
    }

    /// The state behind the specification's example.
    fn example() -> Scene {
        let quotas = Each {
            graphql: quota(5_000, 4_120, NOW + 1_500),
            core: quota(5_000, 4_990, NOW + 2_400),
            search: quota(30, 30, NOW + 40),
        };
        let bigbrain = |quota| call("bigbrain", "56b20441", quota, Signal::Ok);
        Scene {
            reading: Reading { fetched_at: Some(NOW - 20), tried_at: Some(NOW - 20), quotas },
            reads: vec![read(NOW - 3_000, 120, 0), read(NOW - 1_000, 1_000, 7), read(NOW - 20, 1_600, 13)],
            observations: vec![
                bigbrain("graphql"),
                bigbrain("core"),
                bigbrain("graphql"),
                call("example-web/groom", "-", "graphql", Signal::RateLimit),
                call("example-web/groom", "-", "graphql", Signal::Ok),
            ],
            limited: vec![limited(NOW - WEEK_S - 1), limited(NOW - 86_400), limited(NOW - 2_420)],
            entries: vec![
                entry(Event::Refresh, 0),
                entry(Event::Wait, 300),
                entry(Event::Pace, 2),
                entry(Event::Pace, 2),
                entry(Event::Backoff, 5),
            ],
            ledger: vec![],
        }
    }

    fn report(&self) -> Report {
        let Scene { reading, reads, observations, limited, entries, ledger } = self;
        report(&Files { reading, reads, observations, limited, entries, ledger }, &budget(), NOW)
    }

    fn lines(&self) -> Vec<String> {
        lines(&self.report(), &utc)
    }
}

#[test]
fn the_text_is_the_specifications_line_for_line() {
    let expected = "\
quota: graphql 4,120 of 5,000 left, resets 10:47 (in 25 min), 1,480 spent in the last 60 min by this token
quota: core 4,990 of 5,000 left, resets 11:02 (in 40 min), 13 spent in the last 60 min by this token
quota: read 20s ago; floor graphql 300, core 200
spent by: 5 call(s) from this machine in the last 60 min
  bigbrain (session 56b20441): 3 call(s), at least graphql 2, core 1
  example-web/groom: 2 call(s), at least graphql 2, 1 rate-limited
held back: 1 wait(s) for a reset (5 min), 2 paced call(s), 1 retry wait(s) (5s) in the last 60 min
rate-limited answers this week: 2 (target 0) — last 2026-09-27T09:41:40.000Z on graphql from example-web/groom (primary)
  DEFECT: the forge is meant to prevent every one of these. File it as a bug on the forge (label bug, area:forge-resilience) with this output.";
    assert_eq!(Scene::example().lines().join("\n"), expected);
}

#[test]
fn nothing_on_file_is_said_to_be_unknown() {
    let expected = [
        "quota: not read yet; floor graphql 300, core 200",
        "spent by: 0 call(s) from this machine in the last 60 min",
        "rate-limited answers this week: 0 (target 0)",
    ];
    assert_eq!(Scene::empty().lines(), expected);
}

#[test]
fn every_state_of_a_quota() {
    let table = [
        (1_000, NOW + 60, State::Ok, "(in 1 min)"),
        (999, NOW + 60, State::Pacing, "under the pace line: unattended calls are slowed"),
        (300, NOW + 60, State::Pacing, ""),
        (299, NOW + 60, State::Waiting, "under the floor: unattended calls wait for the reset"),
        (299, NOW, State::Reset, "quota: graphql was reset 10:22 (0s ago), 299 of 5,000 were left"),
    ];
    for (remaining, reset_at, state, part) in table {
        let mut scene = Scene::empty();
        scene.reading.quotas.graphql = quota(5_000, remaining, reset_at);
        let found = scene.report().quotas.graphql.unwrap().state;
        assert_eq!(found, state, "{remaining} {reset_at}");
        assert!(scene.lines()[0].contains(part), "{:?}", scene.lines());
    }
    assert_eq!(State::ALL.map(State::as_str), ["ok", "pacing", "waiting", "reset"]);
}

#[test]
fn search_has_a_line_only_when_something_waits_for_it() {
    let mut scene = Scene::example();
    scene.reading.quotas.search = quota(30, 2, NOW + 30);
    let line = "quota: search 2 of 30 left, resets 10:22 (in 30s) — under the floor: unattended calls wait \
                for the reset";
    assert!(scene.lines().contains(&line.to_string()), "{:?}", scene.lines());
}

#[test]
fn measured_spend_is_the_rise_and_after_a_reset_what_the_new_window_used() {
    let spent = |reads: Vec<Read>| Scene { reads, ..Scene::example() }.report().quotas.graphql.unwrap().spent;
    let reset = |mut read: Read| {
        read.graphql = read.graphql.map(|c| Counter { reset_at: c.reset_at + 3_600, ..c });
        read
    };
    assert_eq!(spent(vec![]), None);
    assert_eq!(spent(vec![read(NOW - 20, 900, 0)]), Some(0), "one read measures nothing");
    let before = read(NOW - 3_000, 4_000, 0);
    assert_eq!(spent(vec![before, reset(read(NOW - 20, 70, 0))]), Some(70));
    assert_eq!(spent(vec![before, read(NOW - 2_000, 4_100, 0), reset(read(NOW, 70, 0))]), Some(170));
    assert_eq!(spent(vec![read(NOW - 9_000, 1, 0), read(NOW - 7_000, 900, 0)]), Some(0), "hours ago");
    assert_eq!(spent(vec![before, read(NOW - 20, 3_999, 0)]), Some(0), "an answer from a replica");
}

#[test]
fn the_rate_stands_beside_the_quota() {
    let slot = |background| Slot { at: NOW - 5, resource: Resource::Graphql, background };
    let old = Slot { at: NOW - 60, resource: Resource::Graphql, background: false };
    let ledger = [vec![slot(false); 19], vec![slot(true); 12], vec![old; 9]].concat();
    let mut scene = Scene { ledger, ..Scene::empty() };
    let line = "rate: graphql 31 of 60 (12 background) in the last 60s; background share 50%";
    assert_eq!(scene.lines()[1], line);
    scene.entries = vec![entry(Event::Defer, 34)];
    let line = "rate: graphql 31 of 60 (12 background) — background calls deferred in the last 60s; \
                background share 50%";
    assert_eq!(scene.lines()[1], line);
    assert_eq!(scene.lines()[3], "held back: 1 deferred background call(s) (34s) in the last 60 min");
}

#[test]
fn only_what_happened_inside_the_hour_and_the_week_counts() {
    let mut scene = Scene::example();
    for o in &mut scene.observations {
        o.at = NOW - HOUR_S - 1;
    }
    for e in &mut scene.entries {
        e.at = NOW - HOUR_S - 1;
    }
    scene.limited.truncate(1);
    let report = scene.report();
    assert_eq!((report.spenders.len(), report.held_back, report.limited), (0, HeldBack::default(), 0));
    assert_eq!(report.last_limited, None);
}

#[test]
fn the_eleventh_caller_is_counted_with_the_others() {
    let observations = (0..13).map(|n| call(&format!("c{n}"), "-", "-", Signal::Ok)).collect();
    let lines = Scene { observations, ..Scene::empty() }.lines();
    assert_eq!(lines[1], "spent by: 13 call(s) from this machine in the last 60 min");
    assert_eq!((lines[2].as_str(), lines[12].as_str()), ("  c0: 1 call(s)", "  3 other(s): 3 call(s)"));
}

#[test]
fn the_doctor_warns_of_a_floor_and_of_every_limited_answer() {
    let doctor = |scene: &Scene| doctor_line(&scene.report(), &utc);
    let (level, line) = doctor(&Scene::example());
    assert_eq!(level, Level::Warn);
    let expected = "forge quota: graphql 4,120 of 5,000 left, resets 10:47; core 4,990 of 5,000 left, resets \
                    11:02; read 20s ago; 2 rate-limited answer(s) this week (target 0): a defect of the forge";
    assert_eq!(line, expected);
    let mut calm = Scene { limited: vec![], ..Scene::example() };
    assert_eq!(doctor(&calm).0, Level::Info);
    calm.reading.quotas.core = quota(5_000, 199, NOW + 60);
    assert_eq!(doctor(&calm).0, Level::Warn);
    let unknown = "forge quota: not read yet; no rate-limited answer this week";
    assert_eq!(doctor(&Scene::empty()), (Level::Info, unknown.into()));
}

#[test]
fn the_document_and_its_compact_form() {
    let report = Scene::example().report();
    let document = to_json(&report);
    assert_eq!(document["schema"], "bob-forge-quota/1");
    assert_eq!(document["quotas"]["graphql"]["spentLastHour"], 1_480);
    assert_eq!(document["quotas"]["search"]["spentLastHour"], serde_json::Value::Null);
    assert_eq!(document["spentBy"]["callers"][0]["cost"]["core"], 1);
    assert_eq!(document["heldBack"]["waits"]["seconds"], 300);
    assert_eq!(document["rateLimited"]["last"]["at"], "2026-09-27T09:41:40.000Z");
    let compact = compact(&report);
    assert_eq!(compact["graphql"]["remaining"], 4_120);
    assert_eq!(compact["rateLimited"], 2);
}

#[test]
fn instants_spans_and_numbers_read_as_people_write_them() {
    use super::text::{grouped, instant, span};
    assert_eq!(instant(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(instant(951_782_400), "2000-02-29T00:00:00.000Z");
    assert_eq!(instant(4_107_542_399), "2100-02-28T23:59:59.000Z");
    assert_eq!(instant(4_107_542_400), "2100-03-01T00:00:00.000Z");
    assert_eq!(
        [5, 59, 60, 300, 1_500, 7_199, 7_200].map(span).join(" "),
        "5s 59s 1 min 5 min 25 min 120 min 2 h"
    );
    assert_eq!([0, 999, 1_000, 5_000_000].map(grouped).join(" "), "0 999 1,000 5,000,000");
}

#[test]
fn names_of_events_read_back() {
    for event in Event::ALL {
        assert_eq!(Event::parse(event.as_str()), Some(event));
    }
    assert_eq!(Event::parse("splendid"), None);
}
