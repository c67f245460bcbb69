//! Rate-limited answers: retried inside the shim, closed for everybody, recorded.

use super::{answering, calls, gh, lines, naps, now_s, rate_limit, waits, with};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

const SECONDARY: &str = "err HTTP 403: You have exceeded a secondary rate limit. Please wait a few minutes before \
                         you try again. (https://api.github.com/graphql)\\n\n exit 1\n";
const PRIMARY: &str = "err GraphQL: API rate limit exceeded for user ID 1.\\n\n exit 1\n";

/// A sandbox whose gh answers `limited` to the first `times` calls, whatever they are.
fn limited(times: usize, answer: &str, remaining: u64, reset_in_s: u64) -> Sandbox {
    let mut script = rate_limit(remaining, now_s() + reset_in_s);
    for n in 1..=times {
        script += &format!("on * #{n}\n out partial\\n\n {answer}");
    }
    with(&(script + "on *\n out answer\\n\n"))
}

#[test]
fn a_burst_limit_is_waited_out_and_the_caller_sees_a_slow_call() {
    let sandbox = limited(3, SECONDARY, 4_000, 400);
    sandbox.script(&without_partial(&sandbox));
    let run = gh(&sandbox, "issue list").run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
    assert_eq!(naps(&sandbox), ["5", "10", "20"]);
    let seconds = |s: u64| {
        format!(
            "[forge-budget] GitHub answered with a rate limit on graphql (secondary): retrying in {s}s. This call \
             finishes on its own: do not retry it and do not stop.\n"
        )
    };
    assert_eq!(run.err(), [5, 10, 20].map(seconds).concat());
    let signals: Vec<String> = sandbox.observations().iter().map(|line| line[3].clone()).collect();
    assert_eq!(signals, ["ratelimit", "ratelimit", "ratelimit", "ok"]);
    let met = lines(&sandbox.state().join("ratelimit.log"));
    assert_eq!(met.len(), 3);
    assert!(met[0].ends_with("\tgraphql\tissue list\twork\t-\tsecondary"), "{}", met[0]);
    let logged: Vec<String> = waits(&sandbox);
    assert_eq!(
        logged,
        [5, 10, 20].map(|s| format!("backoff graphql 4000 {s} issue list")),
        "every wait is in the log"
    );
}

#[test]
fn when_the_bound_is_spent_the_call_falls_through_to_its_own_failure() {
    let sandbox = with(&(rate_limit(4_000, now_s() + 400) + "on *\n " + SECONDARY));
    let run = gh(&sandbox, "issue list").run();
    assert_eq!(run.exit, Exit::Code(1));
    assert_eq!(naps(&sandbox), ["5", "10", "20", "40", "80", "145"]);
    assert_eq!(run.err().matches("secondary rate limit").count(), 1, "the last attempt's own: {}", run.err());
    assert!(run.err().contains("(https://api.github.com/graphql)\n"));
    assert_eq!(waits(&sandbox).last().unwrap(), "backoff-capped graphql 4000 0 issue list");
    let shorter = with(&(rate_limit(4_000, now_s() + 400) + "on *\n " + SECONDARY));
    gh(&shorter, "issue list").env("BOB_FORGE_BACKOFF_START", "1").env("BOB_FORGE_BACKOFF_MAX", "3").run();
    assert_eq!(naps(&shorter), ["1", "2"]);
}

#[test]
fn a_spent_quota_is_waited_for_until_the_reset_on_file() {
    let sandbox = limited(1, PRIMARY, 4_000, 400);
    sandbox.script(&without_partial(&sandbox));
    let run = gh(&sandbox, "issue list").run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
    let slept: f64 = naps(&sandbox)[0].parse().unwrap();
    assert!((398.0..=400.0).contains(&slept) && naps(&sandbox).len() == 1, "{:?}", naps(&sandbox));
    assert!(run.err().contains("rate limit on graphql (primary): retrying in"), "{}", run.err());
    assert_eq!(calls(&sandbox), (2, 2), "the quota is read again after the wait");
    let unknown = with(&format!("on api rate_limit\n exit 1\non * #1\n {PRIMARY}on *\n out answer\\n\n"));
    gh(&unknown, "issue list").run();
    assert_eq!(naps(&unknown), ["5"]);
}

fn without_partial(sandbox: &Sandbox) -> String {
    let script = std::fs::read_to_string(sandbox.path("real/fake-gh.script")).unwrap();
    script.replace(" out partial\\n\n", "")
}

#[test]
fn what_is_never_retried_fails_as_it_did_and_still_closes_the_quota() {
    let body = || Stdin::Bytes(b"text".to_vec());
    for (line, stdin, interactive) in [
        ("api repos/o/r/issues --input -", body(), "0"),
        ("api repos/o/r/issues -F body=@-", body(), "0"),
        ("api repos/o/r --paginate", Stdin::Null, "0"),
        ("issue list", Stdin::Null, "1"),
        ("run watch 5", Stdin::Null, "0"),
    ] {
        let sandbox = with(&(rate_limit(4_000, now_s() + 400) + "on *\n out partial\\n\n " + SECONDARY));
        let run = gh(&sandbox, line).stdin(stdin).env("BOB_FORGE_INTERACTIVE", interactive).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(1), "partial\n".into()), "{line}");
        assert_eq!((calls(&sandbox).1, naps(&sandbox).len()), (1, 0), "{line}");
        assert_eq!(lines(&sandbox.state().join("ratelimit.log")).len(), 1, "{line}");
        let hold = std::fs::read_to_string(sandbox.state().join("hold.env")).unwrap();
        assert!(hold.lines().any(|l| l.contains("closed_until_ms=") && !l.ends_with("=0")), "{line}: {hold}");
    }
}

#[test]
fn another_hosts_limit_is_recorded_and_nothing_else() {
    let sandbox = with(&format!("on *\n {SECONDARY}"));
    let run = gh(&sandbox, "issue list -R ghe.example.com/o/r").run();
    assert_eq!((run.exit, calls(&sandbox), naps(&sandbox).len()), (Exit::Code(1), (0, 1), 0));
    let met = lines(&sandbox.state().join("ratelimit.log"));
    assert!(met[0].contains("\t-\tissue list\t"), "{met:?}");
    assert!(!sandbox.state().join("hold.env").exists());
}

#[test]
fn the_error_body_that_gh_api_prints_is_not_printed_by_a_retried_attempt() {
    let sandbox =
        limited(2, "err gh: API rate limit exceeded for user ID 1. (HTTP 403)\\n\n exit 1\n", 4_000, 400);
    let run = gh(&sandbox, "api repos/o/r").run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
    let merged = limited(2, SECONDARY, 4_000, 400);
    let run = gh(&merged, "api repos/o/r").merged().run();
    let own: Vec<String> =
        run.out().lines().filter(|l| !l.starts_with("[forge-budget]")).map(Into::into).collect();
    assert_eq!((run.exit, own), (Exit::Code(0), vec!["answer".to_string()]));
}

#[test]
fn a_rate_limited_answer_closes_the_quota_for_everybody_and_each_leaves_in_turn() {
    let sandbox = limited(1, SECONDARY, 4_000, 400);
    // Nobody retries it: the caller is a person.
    gh(&sandbox, "issue list").env("BOB_FORGE_INTERACTIVE", "1").run();
    for _ in 0..3 {
        let run = gh(&sandbox, "issue list").run();
        assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
        assert!(
            run.err().contains("a rate-limited answer has closed the GitHub graphql quota"),
            "{}",
            run.err()
        );
    }
    let slept: Vec<f64> = naps(&sandbox).iter().map(|nap| nap.parse().unwrap()).collect();
    assert_eq!(slept.len(), 3);
    assert!(slept.iter().all(|s| *s > 2.0 && *s <= 6.0), "{slept:?}");
    let core = gh(&sandbox, "run list").run();
    assert_eq!((core.err(), naps(&sandbox).len()), (String::new(), 3), "another quota is open");
}

#[test]
fn a_budget_that_is_off_retries_nothing() {
    let sandbox = with(&format!("on *\n {SECONDARY}"));
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_BUDGET", "0").run();
    assert_eq!((run.exit, calls(&sandbox), naps(&sandbox).len()), (Exit::Code(1), (0, 1), 0));
    assert_eq!(lines(&sandbox.state().join("ratelimit.log")).len(), 1);
}

#[test]
fn no_retry_goes_past_the_callers_deadline() {
    let sandbox = with(&(rate_limit(4_000, now_s() + 400) + "on *\n " + SECONDARY));
    let soon = (now_s() + 18).to_string();
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_DEADLINE", soon).run();
    assert_eq!((run.exit, naps(&sandbox)), (Exit::Code(1), vec!["5".to_string(), "10".into()]));
}

#[test]
fn what_is_no_rate_limit_is_never_retried() {
    for (answer, code) in
        [("err HTTP 502: Bad Gateway (https://api.github.com/graphql)\\n\n exit 1", 1), ("exit 4", 4)]
    {
        let sandbox = with(&(rate_limit(4_000, now_s() + 400) + &format!("on *\n {answer}\n")));
        let run = gh(&sandbox, "issue list").run();
        assert_eq!((run.exit, calls(&sandbox).1, naps(&sandbox).len()), (Exit::Code(code), 1, 0));
    }
    let fine = answering(4_000, 400);
    assert_eq!(gh(&fine, "issue list").run().err(), "");
}
