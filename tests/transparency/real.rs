//! GitHub's own `gh`, in two versions, against a local forge: alone and through the shim.
//!
//! Not on a terminal: there gh draws a spinner, and waits seconds for the terminal to tell its colours.

use crate::support::command::Call;
use crate::support::forge::{Forge, REAL_GH, sandbox_with_real_gh};
use crate::support::running::Run;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;
use serde_json::{Value, json};

/// Words, and the signal that the call leaves on record.
const READS: [(&[&str], &str); 11] = [
    (&["issue", "list", "-R", "acme/widget"], "ok"),
    (&["issue", "list", "-R", "acme/widget", "--json", "number,title", "--jq", ".[].number"], "ok"),
    (&["issue", "view", "1", "-R", "acme/widget", "--comments"], "ok"),
    (&["label", "list", "-R", "acme/widget"], "ok"),
    (&["pr", "list", "-R", "acme/widget"], "ok"),
    (&["api", "repos/acme/widget/issues/1"], "ok"),
    (&["api", "graphql", "-f", "query={viewer{login}}"], "ok"),
    (&["issue", "view", "999", "-R", "acme/widget"], "notfound"),
    (&["api", "repos/acme/nothing"], "notfound"),
    (&["issue", "list", "--no-such-flag"], "other"),
    (&["no-such-command"], "other"),
];

/// Faults of the forge, and the signal of a call that meets one.
const FAULTS: [(&str, &str); 8] = [
    ("502", "server"),
    ("503", "server"),
    ("drop", "net"),
    ("401", "auth"),
    ("403", "auth"),
    ("404", "notfound"),
    ("primary", "ratelimit"),
    ("secondary", "ratelimit"),
];

/// Writes, their input, and whether the forge has to be the same after them.
const WRITES: [(&[&str], &str); 5] = [
    (&["issue", "create", "-R", "acme/widget", "-t", "new", "-b", "body"], ""),
    (&["issue", "create", "-R", "acme/widget", "-t", "new", "--body-file", "-"], "from\nstdin\n"),
    (&["issue", "comment", "1", "-R", "acme/widget", "-F", "-"], "a comment"),
    (&["issue", "close", "1", "-R", "acme/widget", "-c", "done"], ""),
    (&["issue", "edit", "1", "-R", "acme/widget", "--title", "changed", "--add-label", "bug"], ""),
];

fn seeded() -> Forge {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    seed(&forge);
    forge
}

fn seed(forge: &Forge) {
    forge.control("POST", "/_forge/reset", "{}");
    let issue = json!({"number": 1, "title": "First", "body": "text", "labels": ["bug"],
        "created_at": "2026-01-02T03:04:05Z", "comments": [{"author": "hubot", "body": "hello", "created_at": "2026-01-02T03:04:06Z"}]});
    forge.control("POST", "/_forge/seed", &json!({"repo": "acme/widget", "issues": [issue]}).to_string());
}

/// What the forge holds, without what differs from run to run.
fn content(forge: &Forge) -> Vec<Value> {
    let state = forge.control("GET", "/_forge/state", "");
    let issues = state["repos"]["acme/widget"]["issues"].as_array().unwrap().clone();
    let comments = |issue: &Value| -> Vec<Value> {
        issue["comments"].as_array().unwrap().iter().map(|c| c["body"].clone()).collect()
    };
    issues
        .iter()
        .map(|i| json!([i["number"], i["title"], i["body"], i["state"], i["labels"], comments(i)]))
        .collect()
}

/// Runs the words alone and through the shim; both have to look the same. Returns the latter's signal.
fn signal_of_the_same(
    sandbox: &Sandbox,
    words: &[&str],
    shape: impl Fn(Call) -> Call,
    before: impl Fn(),
) -> String {
    sandbox.reset();
    before();
    let alone = shape(sandbox.bare_gh(words)).run();
    before();
    let through = shape(sandbox.gh(words)).run();
    let seen = |run: &Run| (run.exit, run.out(), without_addresses(&run.err()));
    assert_eq!(seen(&alone), seen(&through), "gh {words:?}");
    sandbox.only_signal()
}

/// gh's network errors name ports and sockets that differ from call to call.
fn without_addresses(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

#[test]
fn reads_are_the_same_on_pipes_and_on_one_pipe() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = sandbox_with_real_gh(version, &forge);
        for (words, signal) in READS {
            assert_eq!(
                signal_of_the_same(&sandbox, words, |call| call, || ()),
                signal,
                "{version} {words:?}"
            );
            let merged = signal_of_the_same(&sandbox, words, |call| call.merged(), || ());
            assert_eq!(merged, signal, "{version} {words:?} 2>&1");
        }
    }
}

#[test]
fn failures_are_the_same_and_their_signal_is_told() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = sandbox_with_real_gh(version, &forge);
        for (fault, signal) in FAULTS {
            let fail = || {
                forge.control("DELETE", "/_forge/faults", "");
                forge.control("POST", "/_forge/fault", &json!({"fault": fault}).to_string());
            };
            let words = ["pr", "list", "-R", "acme/widget"];
            let seen = signal_of_the_same(&sandbox, &words, |call| call, fail);
            assert_eq!(seen, signal, "{version} {words:?} with {fault}");
            let words = ["api", "repos/acme/widget"];
            let seen = signal_of_the_same(&sandbox, &words, |call| call.merged(), fail);
            assert_eq!(seen, signal, "{version} {words:?} 2>&1 with {fault}");
        }
        forge.control("DELETE", "/_forge/faults", "");
    }
}

#[test]
fn writes_arrive_once_and_are_the_same() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = sandbox_with_real_gh(version, &forge);
        for (words, input) in WRITES {
            let shape = |call: Call<'_>| -> Run { call.stdin(Stdin::Bytes(input.into())).run() };
            let mut after = Vec::new();
            for through_shim in [false, true] {
                sandbox.reset();
                seed(&forge);
                let run = shape(if through_shim { sandbox.gh(words) } else { sandbox.bare_gh(words) });
                assert_eq!(run.exit, Exit::Code(0), "{version} {words:?}");
                after.push((run.out(), run.err(), content(&forge)));
            }
            // A comment's URL ends in a number of its own.
            let [alone, through] = [&after[0], &after[1]]
                .map(|(out, err, content)| (without_addresses(out), err.clone(), content.clone()));
            assert_eq!(alone, through, "{version} {words:?}");
            assert_eq!(sandbox.only_signal(), "ok", "{version} {words:?}");
        }
    }
}

#[test]
fn without_a_token_gh_says_so_and_it_is_auth() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = sandbox_with_real_gh(version, &forge);
        let words = ["issue", "list", "-R", "acme/widget"];
        let signal = signal_of_the_same(&sandbox, &words, |call| call.env_remove("GH_TOKEN"), || ());
        assert_eq!(signal, "auth", "{version}");
    }
}

#[test]
fn offline_commands_are_the_same_and_leave_nothing() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = sandbox_with_real_gh(version, &forge);
        for words in [
            ["--version"].as_slice(),
            &["help"],
            &["issue", "list", "--help"],
            &["completion", "-s", "bash"],
            &[],
        ] {
            let [alone, through] = [sandbox.bare_gh(words), sandbox.gh(words)].map(Call::run);
            assert_eq!((alone.exit, alone.out(), alone.err()), (through.exit, through.out(), through.err()));
            assert!(!sandbox.state().exists(), "gh {words:?}");
        }
    }
}
