//! The use cases on real files, with a script for `gh`.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::decide::verdict::{Reason, State};

const NOW: u64 = 1_800_000_000;

struct Scene {
    home: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene { home: tempfile::tempdir().unwrap() }
    }

    /// A `gh` that writes one line a call and then does what `script` says.
    fn with_gh(script: &str) -> Scene {
        let scene = Scene::new();
        fs::create_dir(scene.path("bin")).unwrap();
        let calls = scene.path("calls").display().to_string();
        let text = format!("#!/bin/sh\necho \"$*\" >> '{calls}'\n{script}\n");
        fs::write(scene.path("bin/gh"), text).unwrap();
        fs::set_permissions(scene.path("bin/gh"), fs::Permissions::from_mode(0o755)).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn at(&self, now_s: u64) -> Context {
        let env = [
            ("BOB_FORGE_STATE", self.path("state").display().to_string()),
            ("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display())),
            ("BOB_FORGE_PROBE_TIMEOUT", "5".to_string()),
        ];
        let env = env.map(|(name, value)| (name.into(), value.into())).to_vec();
        Context::new(env, Some(self.path("")), Some(now_s))
    }

    fn record(&self, now_s: u64, signals: &str) {
        for name in signals.split_whitespace() {
            let signal = Signal::parse(name);
            let rc = i32::from(signal != Some(Signal::Ok));
            record(&self.at(now_s), &Report { rc, signal, ..Report::default() }).unwrap();
        }
    }

    fn status(&self, now_s: u64) -> Status {
        status(&self.at(now_s), &Options::default())
    }

    fn read_only(&self, now_s: u64) -> Status {
        status(&self.at(now_s), &Options { probe: false, ..Options::default() })
    }

    fn probes(&self) -> usize {
        fs::read_to_string(self.path("calls")).map_or(0, |calls| calls.lines().count())
    }
}

#[test]
fn a_verdict_is_served_from_the_cache_until_anybody_records_anything() {
    let scene = Scene::new();
    scene.record(NOW, "ok ok");
    assert_eq!(scene.status(NOW).source, Source::Observations);
    let cached = scene.status(NOW + 30);
    assert_eq!((cached.source, cached.age_s, cached.checked_at), (Source::Cache, 30, NOW));
    scene.record(NOW + 30, "server");
    let after = scene.status(NOW + 30);
    assert_eq!((after.source, after.verdict.state), (Source::Observations, State::Degraded));
}

#[test]
fn an_append_by_a_shell_shim_invalidates_too() {
    use std::io::Write;
    let scene = Scene::new();
    scene.record(NOW, "ok");
    scene.status(NOW);
    let log = scene.path("state/observations.log");
    writeln!(fs::File::options().append(true).open(log).unwrap(), "{NOW}\t1\t5\tnet\tissue").unwrap();
    assert_eq!(scene.status(NOW).verdict.state, State::Degraded);
}

#[test]
fn the_cache_ends_with_its_ttl_its_evidence_and_its_settings() {
    let scene = Scene::new();
    scene.record(NOW, "ok");
    scene.status(NOW);
    assert_eq!(scene.read_only(NOW + 60).source, Source::Observations, "the TTL has passed");
    assert_eq!(scene.read_only(NOW + 61).source, Source::Cache);
    let other = Options { window_s: Some(200), ..Options::default() };
    assert_eq!(status(&scene.at(NOW + 61), &other).source, Source::Observations);
    let none = Options { ttl_s: Some(0), ..Options::default() };
    for _ in 0..2 {
        assert_eq!(status(&scene.at(NOW + 61), &none).source, Source::Observations);
    }
    scene.status(NOW + 299);
    assert_eq!(scene.read_only(NOW + 301).verdict.state, State::Unknown, "the evidence left the window");
}

#[test]
fn a_clock_set_back_or_ahead_makes_nothing_immortal() {
    let scene = Scene::new();
    scene.record(NOW, "ok");
    scene.status(NOW);
    assert_eq!(scene.read_only(NOW - 3600).verdict.state, State::Unknown);
    assert_eq!(scene.read_only(NOW + 86_400).verdict.state, State::Unknown);
    scene.record(NOW - 3600, "net");
    assert_eq!(scene.read_only(NOW - 3600).verdict.reason, Reason::NetworkFailures);
    assert_eq!(scene.read_only(NOW).verdict.state, State::Unknown, "the old success stays dead");
}

#[test]
fn without_evidence_one_probe_is_made_and_recorded_like_any_other_call() {
    let scene = Scene::with_gh("exit 0");
    assert_eq!(scene.read_only(NOW).verdict.reason, Reason::NoEvidence);
    assert_eq!(scene.probes(), 0);
    let first = scene.status(NOW);
    assert_eq!((first.source, first.verdict.state), (Source::Probe, State::Operational));
    assert_eq!(scene.status(NOW).source, Source::Cache);
    assert_eq!(scene.probes(), 1);
    assert_eq!(fs::read_to_string(scene.path("calls")).unwrap(), "api rate_limit\n");
    let evidence = observations(&scene.at(NOW), None).unwrap();
    let row = &evidence.rows[0];
    assert_eq!((row.subcommand.as_str(), row.quota.as_str(), row.cost), ("api", "-", 0));
}

#[test]
fn callers_that_come_at_once_cost_one_probe() {
    let scene = Scene::with_gh("sleep 0.3; exit 0");
    let sources = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| scene.status(NOW));
        let callers: Vec<_> = (0..8).map(start).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(sources.iter().all(|status| status.verdict.state == State::Operational));
    assert_eq!(sources.iter().filter(|status| status.source == Source::Probe).count(), 1);
    assert_eq!(scene.probes(), 1);
}

#[test]
fn a_probe_that_says_nothing_about_the_forge_is_not_repeated_by_every_caller() {
    let scene = Scene::with_gh("echo 'unknown flag: --bogus' >&2; exit 1");
    for _ in 0..3 {
        assert_eq!(scene.status(NOW).verdict.state, State::Unknown);
    }
    assert_eq!(scene.probes(), 1);
    assert_eq!(scene.status(NOW + 61).source, Source::Probe);
    assert_eq!(scene.probes(), 2);
}

#[test]
fn an_unknown_that_nobody_looked_into_is_never_stored() {
    let scene = Scene::with_gh("exit 0");
    scene.record(NOW, "other");
    assert_eq!(scene.read_only(NOW).verdict.state, State::Unknown);
    assert_eq!(scene.status(NOW).verdict.state, State::Operational);
}

#[test]
fn a_probe_that_hangs_is_ended_and_is_a_network_failure() {
    let scene = Scene::with_gh("exec sleep 60");
    let mut context = scene.at(NOW);
    context.settings.probe_timeout_s = 1;
    let status = status(&context, &Options::default());
    assert_eq!((status.verdict.state, status.verdict.sample.net), (State::Unreachable, 1));
    assert!(status.checked_at > NOW, "the time goes on while a probe runs");
}

#[test]
fn no_real_gh_is_unknown_and_the_reason_says_so() {
    let scene = Scene::new();
    let mut context = scene.at(NOW);
    context.env.retain(|(name, _)| name != "PATH");
    let status = status(&context, &Options::default());
    assert_eq!((status.verdict.state, status.verdict.reason), (State::Unknown, Reason::NoGh));
    assert_eq!(status.trouble.unwrap().code(), "EFORGE_NO_GH", "and what was searched is not lost");
    assert_eq!(probe(&context).unwrap_err().code(), "EFORGE_NO_GH");
}

#[test]
fn reads_from_a_cache_that_cannot_be_looked_up_are_not_said_to_be_none() {
    let scene = Scene::new();
    scene.record(NOW, "ok");
    let none = scene.status(NOW);
    assert_eq!((none.cache.unwrap().served, none.trouble.is_some()), (0, false));
    fs::create_dir(scene.path("state/cache.log")).unwrap();
    let unread = scene.status(NOW);
    assert!(unread.to_json().contains(r#""cache":null"#));
    assert!(unread.cache.is_none() && unread.trouble.unwrap().to_string().contains("cache.log"));
}

#[test]
fn a_state_folder_that_cannot_be_used_never_keeps_status_from_answering() {
    let scene = Scene::with_gh("exit 0");
    fs::write(scene.path("state"), "a file in the folder's place").unwrap();
    let quiet = scene.read_only(NOW);
    assert_eq!(quiet.verdict.state, State::Unknown);
    assert!(quiet.trouble.is_some());
    let asked = scene.status(NOW);
    assert_eq!((asked.verdict.state, asked.source), (State::Operational, Source::Probe));
    let error = record(&scene.at(NOW), &Report::default()).unwrap_err();
    assert_eq!(error.code(), "EFORGE_STATE");
    assert!(error.to_string().contains("observations.log"), "{error}");
}

#[test]
fn junk_lines_are_skipped_and_counted() {
    let scene = Scene::new();
    scene.record(NOW, "ok");
    let log = scene.path("state/observations.log");
    let mut bytes = b"junk\n\xff\xff\t\n".to_vec();
    bytes.extend(fs::read(&log).unwrap());
    bytes.extend(b"1800000000\t1\t5\tnet\ttorn");
    fs::write(&log, bytes).unwrap();
    let evidence = observations(&scene.at(NOW), None).unwrap();
    assert_eq!((evidence.rows.len(), evidence.bad_lines), (1, 2));
    assert_eq!(scene.read_only(NOW).verdict.state, State::Operational);
}

#[test]
fn record_derives_the_signal_from_the_exit_code_when_it_is_not_told() {
    let scene = Scene::new();
    let say = |rc, signal| record(&scene.at(NOW), &Report { rc, signal, ms: 7, sub: None }).unwrap();
    assert_eq!((say(0, None).signal, say(1, None).signal), (Signal::Ok, Signal::Other));
    let told = say(1, Some(Signal::Server));
    assert_eq!((told.signal, told.exit, told.ms, told.subcommand.as_str()), (Signal::Server, 1, 7, "-"));
    assert_eq!(observations(&scene.at(NOW), None).unwrap().rows.len(), 3);
}

#[test]
fn a_reset_forgets_the_evidence_and_the_verdict() {
    let scene = Scene::new();
    scene.record(NOW, "ok");
    scene.status(NOW);
    reset(&scene.at(NOW)).unwrap();
    assert!(!scene.path("state/health.json").exists());
    assert_eq!(scene.read_only(NOW).verdict.state, State::Unknown);
    reset(&scene.at(NOW)).unwrap();
}

#[test]
fn a_fresh_failure_is_never_masked_however_many_readers_store_verdicts() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let scene = Scene::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    scene.read_only(NOW);
                }
            });
        }
        let states = (0..200).map(|_| {
            scene.record(NOW, "ok");
            let before = scene.read_only(NOW).verdict.state;
            scene.record(NOW, "net");
            let after = scene.read_only(NOW).verdict.state;
            reset(&scene.at(NOW)).unwrap();
            (before, after)
        });
        let masked = states.filter(|seen| *seen != (State::Operational, State::Degraded)).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(masked, 0);
    });
}
