//! The quota under `forge health`, and `forge budget`.

use serde_json::Value;

use super::{answering, gh, now_s};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;

#[test]
fn forge_health_shows_the_quota_under_the_verdict_and_in_its_document() {
    let sandbox = answering(4_120, 1_500);
    for _ in 0..3 {
        gh(&sandbox, "issue list").env("CLAUDE_CODE_SESSION_ID", "56b20441-xyz").run();
    }
    gh(&sandbox, "run list").env("BOB_FORGE_CALLER", "groom").run();
    let run = sandbox.forge(&["health"]).run();
    let text = run.out();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(run.exit, Exit::Code(0));
    assert_eq!(
        lines[0],
        "forge: operational (recent-calls-succeeded) — 4/4 recent calls ok, source: observations"
    );
    let quota = |line: &str, start: &str, end: &str| line.starts_with(start) && line.ends_with(end);
    assert!(
        quota(
            lines[1],
            "quota: graphql 4,120 of 5,000 left, resets ",
            "0 spent in the last 60 min by this token"
        ),
        "{text}"
    );
    assert!(lines[1].contains("(in 25 min)") || lines[1].contains("(in 24 min)"), "{text}");
    assert!(quota(lines[2], "quota: core 5,000 of 5,000 left", "by this token"), "{text}");
    assert!(quota(lines[3], "quota: read ", "s ago; floor graphql 300, core 200"), "{text}");
    assert!(quota(lines[4], "rate: graphql 3 of 60 (0 background) in the last 60s", "share 50%"), "{text}");
    assert!(lines.contains(&"spent by: 4 call(s) from this machine in the last 60 min"), "{text}");
    assert!(lines.contains(&"  work (session 56b20441): 3 call(s), at least graphql 3"), "{text}");
    assert!(lines.contains(&"  work/groom: 1 call(s), at least core 1"), "{text}");
    assert_eq!(lines.last(), Some(&"rate-limited answers this week: 0 (target 0)"));
    let document: Value = serde_json::from_str(&sandbox.forge(&["health", "--json"]).run().out()).unwrap();
    assert_eq!(document["quota"]["quotas"]["graphql"]["remaining"], 4_120);
    assert_eq!(sandbox.forge(&["budget"]).run().out(), lines[1..].join("\n") + "\n");
}

#[test]
fn a_rate_limited_answer_is_shown_as_the_defect_it_is_and_changes_no_verdict() {
    let sandbox = answering(4_120, 1_500);
    gh(&sandbox, "issue list").run();
    let met = format!("{}\tgraphql\tissue list\twork\u{202e}\t-\tsecondary\n", now_s() - 86_400);
    sandbox.file("bob/forge/ratelimit.log", met);
    let run = sandbox.forge(&["health"]).run();
    assert_eq!(run.exit, Exit::Code(0));
    let text = run.out();
    let lines: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(lines[0].starts_with("  DEFECT: the forge is meant to prevent every one of these."), "{text}");
    assert!(lines[1].ends_with("on graphql from work? (secondary)"), "{text}");
    let doctor = sandbox.forge(&["budget", "doctor"]).run().out();
    assert!(doctor.starts_with("WARN forge quota: graphql 4,120 of 5,000 left"), "{doctor}");
}

#[test]
fn a_setting_that_is_no_number_is_named_by_the_command_and_never_by_the_shim() {
    let sandbox = answering(4_120, 1_500);
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_FLOOR_GRAPHQL", "many").run();
    assert_eq!((run.out(), run.err()), ("answer\n".into(), String::new()));
    let said = |args: &[&str]| sandbox.forge(args).env("BOB_FORGE_FLOOR_GRAPHQL", "many").run().err();
    for args in [["budget", "status"], ["health", "status"]] {
        let expected = "forge: BOB_FORGE_FLOOR_GRAPHQL=\"many\" is not a whole number; its default is used\n";
        assert_eq!(said(&args), expected);
    }
}

#[test]
fn a_refresh_that_the_forge_does_not_answer_exits_with_3() {
    let sandbox = Sandbox::new("on *\n exit 1\n");
    let run = sandbox.forge(&["budget", "refresh"]).run();
    assert_eq!((run.exit, run.out().contains("cannot be read")), (Exit::Code(3), true));
    let fine = answering(10, 400);
    assert_eq!(fine.forge(&["budget", "refresh"]).run().exit, Exit::Code(0));
    let asked = fine.forge(&["budget", "plan", "--", "issue", "list"]);
    let plan = asked.env("BOB_FORGE_BUDGET", "1").run().out();
    assert!(
        plan.starts_with("wait ") && plan.ends_with("issue list on graphql — 10 left, under 300\n"),
        "{plan}"
    );
}
