//! `budget.env`: who reads the quota, when, and what an unreadable one means.

use std::fs;
use std::time::{Duration, SystemTime};

use super::{answering, calls, events, gh, lines, naps, now_s, rate_limit, with};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;

/// What is on file: GraphQL with this much left, read `age_s` seconds ago.
fn on_file(sandbox: &Sandbox, remaining: u64, age_s: u64) {
    let (at, reset) = (now_s() - age_s, now_s() + 400);
    let text = format!(
        "schema=bob-forge-budget/1\nfetched_at={at}\ngraphql_limit=5000\ngraphql_remaining={remaining}\n\
         graphql_used=1\ngraphql_reset={reset}\nnote=kept\n"
    );
    sandbox.file("bob/forge/budget.env", text);
}

#[test]
fn the_quota_is_read_once_a_ttl_for_everybody() {
    let sandbox = answering(4_000, 400);
    for _ in 0..5 {
        gh(&sandbox, "issue list").run();
    }
    let running: Vec<_> = (0..10).map(|_| gh(&sandbox, "run list").start()).collect();
    running.into_iter().for_each(|call| assert_eq!(call.finish().exit, Exit::Code(0)));
    assert_eq!(calls(&sandbox), (1, 15));
    let text = fs::read_to_string(sandbox.state().join("budget.env")).unwrap();
    let keys: Vec<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key).collect();
    let expected = "schema fetched_at tried_at graphql_limit graphql_remaining graphql_used graphql_reset \
                    core_limit core_remaining core_used core_reset search_limit search_remaining search_used \
                    search_reset";
    assert_eq!(keys.join(" "), expected);
    assert!(text.starts_with("schema=bob-forge-budget/1\n"), "{text}");
    let columns: Vec<usize> =
        lines(&sandbox.state().join("quota.log")).iter().map(|line| line.split('\t').count()).collect();
    assert_eq!(columns, [7]);
    assert_eq!(events(&sandbox), ["refresh graphql 4000 0 issue list"]);
}

#[test]
fn fifty_callers_at_once_ask_once() {
    let sandbox = with(&(rate_limit(4_000, now_s() + 400) + " sleep 200\non *\n exit 0\n"));
    let running: Vec<_> = (0..50).map(|_| gh(&sandbox, "issue list").start()).collect();
    running.into_iter().for_each(|call| assert_eq!(call.finish().exit, Exit::Code(0)));
    assert_eq!(calls(&sandbox), (1, 50));
}

#[test]
fn a_reading_gets_old_after_a_ttl_and_sooner_near_a_floor() {
    let table = [
        (4_000, 50, "60", 0),
        (4_000, 61, "60", 1),
        (4_000, 50, "30", 1),
        (601, 50, "60", 0),
        (600, 10, "60", 0),
        (600, 16, "60", 1),
    ];
    for (remaining, age_s, ttl, asked) in table {
        let sandbox = answering(4_000, 400);
        on_file(&sandbox, remaining, age_s);
        gh(&sandbox, "issue list").env("BOB_FORGE_BUDGET_TTL", ttl).run();
        assert_eq!(calls(&sandbox), (asked, 1), "{remaining} left, {age_s}s old, TTL {ttl}");
        let text = fs::read_to_string(sandbox.state().join("budget.env")).unwrap();
        assert!(text.contains("\nnote=kept\n"), "unknown keys are kept: {text}");
    }
}

#[test]
fn a_quota_that_cannot_be_read_holds_nobody_back_and_is_not_asked_for_by_every_call() {
    for answer in ["err HTTP 502\\n\n exit 1", "out <html>", "out {}", "die KILL"] {
        let sandbox = with(&format!("on api rate_limit\n {answer}\non *\n out answer\\n\n"));
        on_file(&sandbox, 0, 61);
        for _ in 0..3 {
            let run = gh(&sandbox, "issue list").run();
            assert_eq!((run.out(), run.err()), ("answer\n".into(), String::new()), "{answer}");
        }
        assert_eq!((calls(&sandbox), naps(&sandbox).len()), ((1, 3), 0), "{answer}");
        assert_eq!(events(&sandbox), ["refresh-unreadable graphql - 0 issue list"], "{answer}");
    }
}

#[test]
fn a_quota_that_hangs_is_given_up() {
    let sandbox = with("on api rate_limit\n wait never\non *\n out answer\\n\n");
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_PROBE_TIMEOUT", "1").run();
    assert_eq!(run.out(), "answer\n");
    assert!(run.took < Duration::from_secs(20), "{:?}", run.took);
}

#[test]
fn a_read_of_the_quota_takes_no_more_than_half_of_what_its_caller_has_left() {
    let sandbox = with("on api rate_limit\n wait never\non *\n out answer\\n\n");
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_DEADLINE", (now_s() + 5).to_string()).run();
    assert_eq!((run.out(), calls(&sandbox)), ("answer\n".into(), (1, 1)));
    assert!(run.took < Duration::from_secs(8), "{:?}", run.took);
    // One caller's hurry is no word about the forge: the next one asks for itself.
    assert!(!sandbox.state().join("budget.env").exists());
    gh(&sandbox, "issue list").env("BOB_FORGE_PROBE_TIMEOUT", "1").run();
    assert_eq!(calls(&sandbox), (2, 2));
    // Whose time is up already asks nothing at all.
    fs::remove_file(sandbox.state().join("budget.env")).unwrap();
    gh(&sandbox, "issue list").env("BOB_FORGE_DEADLINE", "1").run();
    assert_eq!(calls(&sandbox), (2, 3));
}

#[test]
fn a_torn_file_is_unknown_and_is_written_anew() {
    let sandbox = answering(4_000, 400);
    sandbox.file("bob/forge/budget.env", "fetched_at=99999999999\ngraphql_limit=5000\ngraphql_remai");
    gh(&sandbox, "issue list").run();
    assert_eq!((calls(&sandbox), naps(&sandbox).len()), ((1, 1), 0));
}

#[test]
fn a_caller_that_finds_the_lock_held_goes_by_the_number_on_file() {
    let sandbox = answering(4_000, 400);
    on_file(&sandbox, 500, 61);
    // An older shim's lock is a plain folder.
    let lock = sandbox.state().join("budget.lock");
    fs::create_dir(&lock).unwrap();
    gh(&sandbox, "issue list").run();
    assert_eq!((calls(&sandbox), naps(&sandbox)), ((0, 1), vec!["2".to_string()]));
    let long_ago = SystemTime::now() - Duration::from_secs(31);
    fs::File::open(&lock).unwrap().set_modified(long_ago).unwrap();
    gh(&sandbox, "issue list").run();
    assert_eq!(calls(&sandbox), (1, 2), "its owner has died");
    assert!(!lock.exists());
}

#[test]
fn the_quota_is_githubs_whatever_host_the_call_is_for() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list -R github.com/o/r").env("GH_HOST", "ghe.example.com").run();
    let asked = sandbox.calls().into_iter().find(|call| call.words().contains(&"rate_limit".into())).unwrap();
    assert_eq!(asked.words(), ["api", "rate_limit", "--hostname", "github.com"]);
}

#[test]
fn colours_that_a_caller_forces_do_not_reach_the_question() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").env("GH_FORCE_TTY", "100").run();
    let all = sandbox.calls();
    let forced: Vec<bool> = all.iter().map(|call| call.var("GH_FORCE_TTY").is_some()).collect();
    assert_eq!(forced, [false, true]);
}
