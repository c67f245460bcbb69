//! `forge health`: states and exit codes, one probe for everybody, and what it does when things are broken.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::running::Run;
use crate::support::sandbox::{Sandbox, forge_command};
use crate::support::spawn::Exit;
use crate::support::streams::Out;

/// A sandbox whose gh answers the probe with exit 0.
fn answering() -> Sandbox {
    Sandbox::new("on api rate_limit\n out {}\n exit 0\n")
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// One observation a word, `age_s` seconds old.
fn calls(words: &str, age_s: u64) -> String {
    let line =
        |word: &str| format!("{}\t{}\t5\t{word}\tissue list\n", now_s() - age_s, i32::from(word != "ok"));
    words.split_whitespace().map(line).collect()
}

fn with_log(log: &str) -> Sandbox {
    let sandbox = answering();
    sandbox.file("bob/forge/observations.log", log);
    sandbox
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.out()).unwrap()
}

#[test]
fn every_state_has_its_exit_code_and_its_line() {
    let ten = "ok ".repeat(10);
    let table: &[(&str, i32, &str)] = &[
        (
            &ten,
            0,
            "forge: operational (recent-calls-succeeded) — 10/10 recent calls ok, source: observations\n",
        ),
        (
            "ok ok server",
            3,
            "forge: degraded (partial-failures) — 2/3 recent calls ok, 1 failed (server 1), ",
        ),
        ("ratelimit", 3, "forge: degraded (rate-limited) — 0/1 recent calls ok, 1 failed (ratelimit 1), "),
        ("auth", 3, "forge: degraded (auth-failures) — "),
        ("net net", 4, "forge: unreachable (network-failures) — 0/2 recent calls ok, 2 failed (net 2), "),
        ("server", 4, "forge: unreachable (all-calls-failing) — "),
        ("other", 5, "forge: unknown (no-evidence) — no call in the last 300s "),
        ("", 5, "forge: unknown (no-evidence) — "),
    ];
    for (words, code, line) in table {
        let sandbox = with_log(&calls(words, 1));
        let run = sandbox.forge(&["health", "--no-probe"]).run();
        assert_eq!((run.exit, run.err()), (Exit::Code(*code), String::new()), "{words}");
        assert!(run.out().starts_with(line), "{words}: {}", run.out());
        assert_eq!(run.out().lines().count(), 1, "{}", run.out());
        assert!(sandbox.calls().is_empty(), "--no-probe never issues a call");
    }
}

#[test]
fn the_document_holds_the_verdict_and_its_evidence() {
    let sandbox = with_log(&calls("ok notfound server net other", 2));
    let before = now_s();
    let document = json(&sandbox.forge(&["health", "status", "--json", "--window", "60"]).run());
    let checked_at = document["checkedAt"].as_u64().unwrap();
    assert!((before..=now_s()).contains(&checked_at));
    let expected = serde_json::json!({
        "schema": "bob-forge-health/1", "state": "degraded", "reason": "partial-failures",
        "causes": ["net", "server"], "source": "observations",
        "sample": {"total": 4, "ok": 1, "answered": 2, "failures": 2, "net": 1, "server": 1, "ratelimit": 0,
                   "auth": 0, "notfound": 1, "window": 60},
        "checkedAt": checked_at, "ageSeconds": 0, "cache": no_reads(), "quota": null,
    });
    assert_eq!(document, expected);
    let again = json(&sandbox.forge(&["health", "--json", "--window", "60"]).run());
    assert_eq!((&again["source"], &again["state"]), (&"cache".into(), &"degraded".into()));
}

#[test]
fn ten_callers_at_once_cost_one_probe_that_goes_past_the_shim() {
    let sandbox = Sandbox::new("on api rate_limit\n sleep 300\n exit 0\n");
    let running: Vec<_> = (0..10).map(|_| sandbox.forge(&["health", "--json"]).start()).collect();
    let ended: Vec<_> = running.into_iter().map(|r| r.finish()).collect();
    for run in &ended {
        assert_eq!((run.exit, &json(run)["state"]), (Exit::Code(0), &"operational".into()));
    }
    let probes = ended.iter().filter(|run| json(run)["source"] == "probe").count();
    assert_eq!((probes, sandbox.calls().len(), sandbox.observations().len()), (1, 1, 1));
    assert_eq!(sandbox.observations()[0][3..7], ["ok", "api", "-", "0"]);
}

#[test]
fn a_probe_that_hangs_is_ended_and_is_a_network_failure() {
    let sandbox = Sandbox::new("on *\n wait never\n");
    let run = sandbox.forge(&["health"]).env("BOB_FORGE_PROBE_TIMEOUT", "1").run();
    assert_eq!(run.exit, Exit::Code(4));
    assert!(run.out().contains("(network-failures)") && run.out().contains("source: probe"), "{}", run.out());
    assert_eq!(sandbox.only_signal(), "net");
    let fd0 = &sandbox.only_call().fds[0];
    assert_eq!((fd0.number, fd0.kind.as_str()), (0, "char"), "a probe has nothing to read");
}

#[test]
fn a_record_is_evidence_at_once() {
    let sandbox = answering();
    fs::create_dir(sandbox.path("work/.git")).unwrap();
    let record = |args: &[&str]| sandbox.forge(&[&["health", "record"], args].concat()).run();
    assert_eq!(record(&["--rc", "0", "--ms", "7", "--sub", "issue list"]).exit, Exit::Code(0));
    assert_eq!(sandbox.forge(&["health"]).run().exit, Exit::Code(0));
    assert_eq!(record(&["--rc", "1", "--signal", "server"]).exit, Exit::Code(0));
    assert_eq!(sandbox.forge(&["health"]).run().exit, Exit::Code(3));
    assert_eq!(record(&["--rc", "1"]).exit, Exit::Code(0));
    let rows = sandbox.observations();
    let columns: Vec<_> = rows.iter().map(|row| row[1..6].join(" ")).collect();
    assert_eq!(columns, ["0 7 ok issue list -", "1 0 server - -", "1 0 other - -"]);
    assert_eq!(rows[0][7..], ["work", "-"]);
    let mode = |name: &str| fs::metadata(sandbox.state().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("."), mode("observations.log"), mode("health.json")), (0o700, 0o600, 0o600));
}

#[test]
fn usage_errors_exit_2_and_change_nothing() {
    let sandbox = answering();
    let nothing = sandbox.forge::<&str>(&[]).run();
    assert_eq!((nothing.exit, nothing.err().contains("Usage: ")), (Exit::Code(2), true));
    let table: &[&[&str]] = &[
        &["health", "record"],
        &["health", "record", "--rc", "one"],
        &["health", "record", "--rc", "1", "--signal", "splendid"],
        &["health", "record", "--rc", "1", "--ms", "-5"],
        &["health", "status", "--ttl", "-1"],
        &["health", "status", "--window", "5m"],
        &["health", "--bogus"],
        &["health", "splendid"],
        &["splendid"],
    ];
    for args in table {
        let run = sandbox.forge(args).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(2), String::new()), "{args:?}");
        assert_eq!(run.err().lines().count(), 1, "{args:?}: {}", run.err());
        assert!(run.err().starts_with("forge: "), "{args:?}: {}", run.err());
    }
    assert!(sandbox.calls().is_empty() && !sandbox.state().exists());
    let help = sandbox.forge(&["health", "--help"]).run();
    assert_eq!(help.exit, Exit::Code(0));
    assert!(help.out().contains("--no-probe"), "{}", help.out());
}

#[test]
fn junk_in_the_log_is_skipped_and_counted() {
    let mut log = b"junk\n\xff\xfe\t\t\n1\t2\n\n".to_vec();
    log.extend(calls("ok ok", 1).into_bytes());
    log.extend(format!("{}\t1\t5\tnet\ttorn", now_s()).into_bytes());
    let sandbox = answering();
    sandbox.file("bob/forge/observations.log", log);
    let status = json(&sandbox.forge(&["health", "--json", "--no-probe"]).run());
    assert_eq!((&status["state"], &status["sample"]["total"]), (&"operational".into(), &2.into()));
    let evidence = json(&sandbox.forge(&["health", "observations", "--json"]).run());
    assert_eq!(
        (&evidence["bad_lines"], &evidence["schema"]),
        (&3.into(), &"bob-forge-observations/1".into())
    );
    assert_eq!(evidence["observations"].as_array().unwrap().len(), 2);
    let text = sandbox.forge(&["health", "observations"]).run().out();
    assert!(text.ends_with("3 line(s) of the log do not parse and were skipped\n"), "{text}");
}

#[test]
fn a_damaged_verdict_file_is_made_again() {
    for junk in ["", "{", "[]", "{\"schema\":\"bob-forge-verdict/1\",\"state\":\"operational\"}"] {
        let sandbox = with_log(&calls("net", 1));
        sandbox.file("bob/forge/health.json", junk);
        assert_eq!(sandbox.forge(&["health"]).run().exit, Exit::Code(4), "{junk}");
    }
}

#[test]
fn evidence_out_of_the_window_or_ahead_of_the_clock_is_none() {
    let old = with_log(&calls("ok ok", 400));
    assert_eq!(old.forge(&["health", "--no-probe"]).run().exit, Exit::Code(5));
    assert_eq!(old.forge(&["health", "--no-probe", "--window", "500"]).run().exit, Exit::Code(0));
    let ahead = with_log(&format!("{}\t0\t5\tok\tissue list\n", now_s() + 3600));
    assert_eq!(ahead.forge(&["health", "--no-probe"]).run().exit, Exit::Code(5));
    let run = ahead.forge(&["health"]).run();
    assert!(run.out().contains("source: probe"), "{}", run.out());
}

#[test]
fn a_state_folder_that_cannot_be_used_does_not_keep_status_from_answering() {
    let sandbox = answering();
    sandbox.file("bob/forge", "a file in the folder's place");
    let quiet = sandbox.forge(&["health", "--no-probe"]).run();
    assert_eq!(quiet.exit, Exit::Code(5));
    assert!(quiet.err().starts_with("forge: cannot read the observation log "), "{}", quiet.err());
    let asked = sandbox.forge(&["health"]).run();
    assert_eq!(asked.exit, Exit::Code(0));
    assert!(asked.out().contains("source: probe"), "{}", asked.out());
    let record = sandbox.forge(&["health", "record", "--rc", "0"]).run();
    assert_eq!((record.exit, record.out()), (Exit::Code(1), String::new()));
    assert!(record.err().contains("BOB_FORGE_STATE"), "{}", record.err());
}

#[test]
fn without_a_real_gh_the_state_is_unknown_and_the_reason_says_why() {
    let sandbox = answering();
    let only_the_shim = sandbox.path("bin");
    let run = sandbox.forge(&["health"]).search_path(&[&only_the_shim]).run();
    assert_eq!(run.exit, Exit::Code(5));
    assert!(run.out().starts_with("forge: unknown (no-gh) — "), "{}", run.out());
}

#[test]
fn a_setting_that_does_not_parse_is_named_and_its_default_used() {
    let sandbox = with_log(&calls("ok", 1));
    let run = sandbox.forge(&["health"]).env("BOB_FORGE_TTL", "5m").env("BOB_FORGE_WINDOW", "-1").run();
    assert_eq!(run.exit, Exit::Code(0));
    assert_eq!(run.err().lines().count(), 2, "{}", run.err());
    assert!(run.err().contains("BOB_FORGE_TTL=\"5m\""), "{}", run.err());
}

#[test]
fn under_its_alias_it_is_forge_health() {
    let sandbox = with_log(&calls("net", 1));
    std::os::unix::fs::symlink(forge_command(), sandbox.path("bin/forge-health")).unwrap();
    let run = sandbox.program(sandbox.path("bin/forge-health"), &["--no-probe"]).run();
    assert_eq!(run.exit, Exit::Code(4));
    let same = sandbox.forge(&["health", "status", "--no-probe", "--ttl", "0"]).run();
    assert!(same.out().starts_with("forge: unreachable (network-failures)"), "{}", same.out());
}

#[test]
fn a_closed_reader_is_no_error_and_the_exit_code_still_answers() {
    let sandbox = with_log(&calls("server", 1));
    for out in [Out::PipeThatCloses(0), Out::Closed, Out::Full] {
        let run = sandbox.forge(&["health"]).stdout(out).run();
        assert_eq!((run.exit, run.err()), (Exit::Code(4), String::new()));
    }
}

#[test]
fn where_the_caller_ignores_sigchld_a_probe_is_still_seen_to_end() {
    let sandbox = answering();
    let run = sandbox.forge(&["health"]).ignoring(libc::SIGCHLD).run();
    assert_eq!((run.exit, run.err()), (Exit::Code(0), String::new()), "{}", run.out());
}

#[test]
fn nothing_in_the_log_can_speak_to_the_terminal() {
    let odd =
        format!("{}\t0\t5\tok\tissue \u{1b}]0;x\u{7}\tcore\t1\ta\u{202e}b\u{9b}2J\t\u{2028}\r\n", now_s());
    let sandbox = with_log(&odd);
    let run = sandbox.forge(&["health", "observations"]).run();
    assert_eq!(run.out().lines().count(), 1, "{:?}", run.out());
    let speaks = |c: char| c != '\n' && (c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c));
    assert!(!run.out().contains(speaks), "{:?}", run.out());
    let newline = sandbox
        .forge(&["health", "record", "--rc", "0"])
        .env("BOB_FORGE_STATE", "/dev/null/a\nb\u{1b}")
        .run();
    assert_eq!((newline.exit, newline.err().lines().count()), (Exit::Code(1), 1), "{:?}", newline.err());
    assert!(!newline.err().contains('\u{1b}'));
}

#[test]
fn a_reset_forgets_everything() {
    let sandbox = with_log(&calls("net", 1));
    sandbox.forge(&["health"]).run();
    assert_eq!(sandbox.forge(&["health", "reset"]).run().exit, Exit::Code(0));
    assert!(!exists(&sandbox, "observations.log") && !exists(&sandbox, "health.json"));
    assert_eq!(sandbox.forge(&["health", "--no-probe"]).run().exit, Exit::Code(5));
}

fn exists(sandbox: &Sandbox, name: &str) -> bool {
    Path::new(&sandbox.state()).join(name).exists()
}

/// The cache's block when nothing was read from it.
fn no_reads() -> Value {
    serde_json::json!({
        "served": 0, "stale": 0, "lastServedAt": null, "lastAnswerAgeSeconds": null, "lastSignal": null,
        "lastCommand": null, "window": 3600,
    })
}
