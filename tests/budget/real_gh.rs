//! The budget with GitHub's own client, both versions, against the local forge.

use std::fs;

use super::{events, lines, naps};
use crate::support::command::Call;
use crate::support::forge::{Forge, REAL_GH, sandbox_with_real_gh};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;

fn gh<'s>(sandbox: &'s Sandbox, args: &[&str]) -> Call<'s> {
    sandbox.gh(args).env("BOB_FORGE_BUDGET", "1").env("BOB_FORGE_SLEEP", sandbox.path("nap"))
}

fn home(version: &str, forge: &Forge) -> Sandbox {
    let sandbox = sandbox_with_real_gh(version, forge);
    sandbox.shell("nap", "echo \"$1\" >> \"$0.log\"");
    sandbox
}

#[test]
fn the_quota_is_read_from_the_forge() {
    for version in REAL_GH {
        let forge = Forge::start(&[]);
        let quota = r#"{"graphql":{"limit":5000,"used":880,"remaining":4120,"reset_in_s":1500}}"#;
        forge.control("POST", "/_forge/quota", quota);
        let sandbox = home(version, &forge);
        let run = gh(&sandbox, &["issue", "list", "-R", "acme/widget"]).run();
        assert_eq!(run.exit, Exit::Code(0), "{version}: {}", run.err());
        let text = fs::read_to_string(sandbox.state().join("budget.env")).unwrap();
        assert!(
            text.contains("\ngraphql_remaining=4120\n") && text.contains("\ncore_limit=5000\n"),
            "{text}"
        );
        assert_eq!(events(&sandbox), ["refresh graphql 4120 0 issue list"], "{version}");
    }
}

#[test]
fn both_limits_of_the_forge_are_waited_out() {
    let table = [
        ("primary", r#"{"fault":"primary","on":"any","times":1,"operation":"IssueList"}"#, "primary"),
        ("secondary", r#"{"fault":"secondary","on":"any","times":2,"operation":"IssueList"}"#, "secondary"),
    ];
    for version in REAL_GH {
        for (what, fault, limit) in table {
            let forge = Forge::start(&[]);
            forge.control("POST", "/_forge/seed", r#"{"issues":[{"title":"one"}]}"#);
            forge.control("POST", "/_forge/fault", fault);
            let sandbox = home(version, &forge);
            let run = gh(&sandbox, &["issue", "list", "-R", "acme/widget", "--json", "title"]).run();
            assert_eq!(
                (run.exit, run.out().trim()),
                (Exit::Code(0), r#"[{"title":"one"}]"#),
                "{version} {what}"
            );
            assert!(run.err().lines().all(|line| line.starts_with("[forge-budget] ")), "{}", run.err());
            let met = lines(&sandbox.state().join("ratelimit.log"));
            assert!(!met.is_empty() && met.iter().all(|line| line.ends_with(limit)), "{version}: {met:?}");
            assert_eq!(met.len(), naps(&sandbox).len(), "{version} {what}");
        }
    }
}

#[test]
fn a_limited_write_is_made_once() {
    for version in REAL_GH {
        let forge = Forge::start(&[]);
        forge.control("POST", "/_forge/seed", r#"{"issues":[{"title":"one"}]}"#);
        forge.control("POST", "/_forge/fault", r#"{"fault":"secondary","on":"mutation","times":2}"#);
        let sandbox = home(version, &forge);
        let run = gh(&sandbox, &["issue", "comment", "1", "-R", "acme/widget", "--body", "hello"]).run();
        assert_eq!(run.exit, Exit::Code(0), "{version}: {}", run.err());
        let state = forge.control("GET", "/_forge/state", "");
        let comments = state["repos"]["acme/widget"]["issues"][0]["comments"].as_array().unwrap().len();
        assert_eq!((comments, naps(&sandbox).len()), (1, 2), "{version}");
    }
}

#[test]
fn the_error_body_of_gh_api_shows_once_when_the_bound_is_spent() {
    for version in REAL_GH {
        let forge = Forge::start(&[]);
        forge.control("POST", "/_forge/fault", r#"{"fault":"secondary","path":"/repos"}"#);
        let sandbox = home(version, &forge);
        let run = gh(&sandbox, &["api", "repos/acme/widget"]).env("BOB_FORGE_BACKOFF_MAX", "20").run();
        assert_eq!(run.exit, Exit::Code(1), "{version}");
        assert_eq!(run.out().matches("\"message\"").count(), 1, "{version}: {}", run.out());
        assert_eq!(naps(&sandbox), ["5", "10", "5"], "{version}");
    }
}
