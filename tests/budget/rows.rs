//! The rows of the specification's tables that no other file of this folder goes through: each answer of
//! "Backoff" with its bound and where the call falls to, and each setting with an effect.

use std::fs;

use super::{answering, calls, gh, ledger, naps, now_s, rate_limit, waits, with};
use crate::support::queued::{checkout, folder};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::{Out, Stdin};

const PRIMARY: &str = "err GraphQL: API rate limit exceeded for user ID 1.\\n\n exit 1\n";

/// A gh with its quota full that answers this once, and then as it should.
fn once(answer: &str) -> Sandbox {
    with(&(rate_limit(4_000, now_s() + 400) + &format!("on * #1\n {answer} exit 1\non *\n out answer\\n\n")))
}

#[test]
fn an_answer_that_names_a_retry_after_is_waited_for_as_long_as_it_says() {
    let asks = |s: u64| {
        let limit = "HTTP 403: You have exceeded a secondary rate limit. (https://api.github.com/graphql)";
        once(&format!("err Retry-After: {s}\\n\n err {limit}\\n\n"))
    };
    let sandbox = asks(37);
    let run = gh(&sandbox, "issue list").run();
    assert_eq!((run.exit, run.out(), naps(&sandbox)), (Exit::Code(0), "answer\n".into(), vec!["37".into()]));
    assert!(
        run.err().contains("retrying in 37s") && !run.err().contains("secondary rate limit"),
        "{}",
        run.err()
    );
    assert_eq!(waits(&sandbox), ["backoff graphql 4000 37 issue list"]);
    // Its bound is the backoff's, and what is longer is not waited for in part.
    let longer = asks(301);
    let run = gh(&longer, "issue list").run();
    assert_eq!((run.exit, calls(&longer).1, naps(&longer).len()), (Exit::Code(1), 1, 0));
    assert_eq!(waits(&longer), ["backoff-capped graphql 4000 0 issue list"]);
    let patient = asks(301);
    gh(&patient, "issue list").env("BOB_FORGE_BACKOFF_MAX", "400").run();
    assert_eq!(naps(&patient), ["301"]);
}

#[test]
fn each_wording_of_a_burst_limit_waits_five_seconds() {
    for said in [
        "HTTP 403: You have exceeded a secondary rate limit. Please wait. (https://api.github.com/graphql)",
        "HTTP 403: You have triggered an abuse detection mechanism. Please retry your request again later. \
         (https://api.github.com/graphql)",
        "HTTP 429: Too Many Requests (https://api.github.com/graphql)",
    ] {
        let sandbox = once(&format!("err {said}\\n\n"));
        let run = gh(&sandbox, "issue list").run();
        assert_eq!(
            (run.exit, run.out(), naps(&sandbox)),
            (Exit::Code(0), "answer\n".into(), vec!["5".into()])
        );
        assert!(run.err().contains("(secondary): retrying in 5s"), "{said}: {}", run.err());
    }
}

#[test]
fn a_spent_quota_is_waited_for_within_the_bound_of_a_wait() {
    // The reset is further away than a call may wait: it falls through at once.
    let far = with(&(rate_limit(4_000, now_s() + 400) + "on *\n " + PRIMARY));
    let run = gh(&far, "issue list").env("BOB_FORGE_MAX_WAIT", "60").run();
    assert_eq!((run.exit, naps(&far).len(), calls(&far).1), (Exit::Code(1), 0, 1));
    // No reset is known: it doubles, and the bound is the wait's, not the backoff's.
    let unknown = with(&format!("on api rate_limit\n exit 1\non *\n {PRIMARY}"));
    let run =
        gh(&unknown, "issue list").env("BOB_FORGE_MAX_WAIT", "40").env("BOB_FORGE_BACKOFF_MAX", "1").run();
    assert_eq!(
        (run.exit, naps(&unknown)),
        (Exit::Code(1), ["5", "10", "20", "5"].map(String::from).to_vec())
    );
}

#[test]
fn when_the_bound_is_spent_a_read_falls_to_the_cache_and_a_write_to_the_queue() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").run();
    let limited = rate_limit(4_000, now_s() + 400) + "on *\n stdin\n out partial\\n\n " + PRIMARY;
    sandbox.script(&limited);
    let read = gh(&sandbox, "issue list").env("BOB_FORGE_MAX_WAIT", "10").run();
    assert_eq!((read.exit, read.out()), (Exit::Code(0), "answer\n".into()));
    assert!(read.err().contains("[forge-cache] served from cache"), "{}", read.err());
    let scene = Sandbox::new(&limited);
    checkout(&scene);
    scene.shell("nap", "echo \"$1\" >> \"$0.log\"");
    let write = gh(&scene, "issue comment 7 --body-file -")
        .stdin(Stdin::Bytes(b"text".to_vec()))
        .env("BOB_FORGE_MAX_WAIT", "10")
        .run();
    assert_eq!((write.exit, write.out()), (Exit::Code(0), String::new()), "{}", write.err());
    assert!(write.err().contains("the live call failed (ratelimit). Spooled as q000001"), "{}", write.err());
    assert_eq!(fs::read(folder(&scene).join("000001.d/body.md")).unwrap(), b"text");
}

#[test]
fn a_write_with_its_body_on_standard_input_is_retried_with_the_same_body() {
    let answer =
        "on issue comment #1\n stdin\n err GraphQL: API rate limit exceeded for user ID 1.\\n\n exit 1\n";
    let sandbox = with(&(rate_limit(4_000, now_s() + 400) + answer + "on *\n stdin\n out url\\n\n"));
    let body = b"a body\nthat can be read once\n".to_vec();
    let run = gh(&sandbox, "issue comment 7 --body-file -").stdin(Stdin::Bytes(body.clone())).run();
    assert_eq!(
        (run.exit, run.out(), naps(&sandbox).len()),
        (Exit::Code(0), "url\n".into(), 1),
        "{}",
        run.err()
    );
    let all = sandbox.calls();
    let fed: Vec<_> =
        all.iter().filter(|call| call.words()[0] == "issue").map(|call| call.stdin.clone()).collect();
    assert_eq!(fed, [Some(body.clone()), Some(body)]);
}

/// GraphQL, REST and search with this much left.
fn quotas(left: [u64; 3]) -> Sandbox {
    let (reset, [graphql, core, search]) = (now_s() + 400, left);
    let one = |name: &str, limit: u64, left: u64| {
        format!("\"{name}\":{{\"limit\":{limit},\"remaining\":{left},\"reset\":{reset}}}")
    };
    let all = [one("graphql", 5_000, graphql), one("core", 5_000, core), one("search", 30, search)].join(",");
    with(&format!("on api rate_limit\n out {{\"resources\":{{{all}}}}}\non *\n out answer\\n\n"))
}

#[test]
fn every_threshold_is_a_setting_of_its_quota() {
    let table = [
        ("issue list", "BOB_FORGE_FLOOR_GRAPHQL", "2000", "wait graphql 1500"),
        ("run list", "BOB_FORGE_FLOOR_CORE", "2000", "wait core 1500"),
        ("search issues x", "BOB_FORGE_FLOOR_SEARCH", "20", "wait search 15"),
        ("issue list", "BOB_FORGE_PACE_GRAPHQL", "2000", "pace graphql 1500 2"),
        ("run list", "BOB_FORGE_PACE_CORE", "2000", "pace core 1500 2"),
        ("search issues x", "BOB_FORGE_PACE_SEARCH", "20", "pace search 15 2"),
    ];
    for (line, variable, value, event) in table {
        let sandbox = quotas([1_500, 1_500, 15]);
        gh(&sandbox, line).run();
        assert_eq!(waits(&sandbox).len(), 0, "{line} by default");
        gh(&sandbox, line).env(variable, value).env("BOB_FORGE_MAX_WAIT", "500").run();
        assert!(waits(&sandbox)[0].starts_with(event), "{variable}: {:?}", waits(&sandbox));
        let sandbox = quotas([1_500, 1_500, 15]);
        gh(&sandbox, line).env(variable, "not a number").run();
        assert_eq!(waits(&sandbox).len(), 0, "{variable}: what is no number is the default");
    }
}

#[test]
fn every_ceiling_is_a_setting_of_its_quota() {
    let table = [
        ("issue list", "graphql", "BOB_FORGE_RATE_GRAPHQL"),
        ("run list", "core", "BOB_FORGE_RATE_CORE"),
        ("api search/issues", "search", "BOB_FORGE_RATE_SEARCH"),
    ];
    for (line, quota, variable) in table {
        let sandbox = answering(4_000, 400);
        ledger(&sandbox, 10, quota, "fg", 20);
        gh(&sandbox, line).env(variable, "11").run();
        assert_eq!(waits(&sandbox).len(), 0, "{variable}");
        ledger(&sandbox, 10, quota, "fg", 20);
        gh(&sandbox, line).env(variable, "10").run();
        assert!(waits(&sandbox)[0].starts_with(&format!("hold {quota} 10 ")), "{:?}", waits(&sandbox));
        ledger(&sandbox, 500, quota, "fg", 1);
        gh(&sandbox, line).env(variable, "0").run();
        assert_eq!(waits(&sandbox).len(), 1, "{variable}: 0 turns it off");
    }
}

#[test]
fn the_pacing_sleep_and_what_a_caller_says_about_itself_are_settings() {
    let sandbox = answering(900, 400);
    gh(&sandbox, "issue list").env("BOB_FORGE_PACE_SECONDS", "7").run();
    gh(&sandbox, "issue list").env("BOB_FORGE_PACE_SECONDS", "0").run();
    assert_eq!(naps(&sandbox), ["7"]);
    // At a terminal, and yet not a person.
    let run =
        gh(&sandbox, "issue list").stdin(Stdin::Tty).stderr(Out::Tty).env("BOB_FORGE_INTERACTIVE", "0").run();
    assert_eq!((run.exit, naps(&sandbox)), (Exit::Code(0), vec!["7".to_string(), "2".into()]));
}

#[test]
fn a_write_is_queued_before_a_wait_that_is_longer_than_its_setting_and_only_then() {
    for (after, is_queued) in [("60", false), ("40", true)] {
        let sandbox = Sandbox::new(&(rate_limit(4_000, now_s() + 400) + "on *\n out url\\n\n"));
        checkout(&sandbox);
        let seen = sandbox.path("seen");
        sandbox.shell(
            "nap",
            &format!(
                "[ -e '{}' ] && : > '{}'; exit 0",
                folder(&sandbox).join("000001.json").display(),
                seen.display()
            ),
        );
        let until_ms = (now_s() + 60) * 1_000;
        sandbox.file(
            "bob/forge/hold.env",
            format!("schema=bob-forge-hold/1\ngraphql_closed_until_ms={until_ms}\n"),
        );
        let run = gh(&sandbox, "issue comment 7 --body x").env("BOB_FORGE_JOURNAL_AFTER", after).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(0), "url\n".into()), "{}", run.err());
        assert!(run.err().starts_with("[forge-budget] waiting"), "{}", run.err());
        assert_eq!(seen.exists(), is_queued, "{after}");
        assert!(!folder(&sandbox).join("000001.json").exists());
    }
}
