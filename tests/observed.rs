//! What one call leaves in `observations.log`.

use serde_json::Value;

use crate::support::bytes::escape;
use crate::support::command::Call;
use crate::support::sandbox::Sandbox;
use crate::support::streams::{Out, Stdin};
use std::time::{SystemTime, UNIX_EPOCH};

/// One outcome: the steps of the fake, the exit column and the signal column.
const OUTCOMES: [(&str, &str, &str); 12] = [
    ("out fine\\n\n exit 0", "0", "ok"),
    ("err HTTP 502: 502 Bad Gateway (https://api.github.com/graphql)\\n\n exit 1", "1", "server"),
    (
        "err non-200 OK status code: 503 Service Unavailable body: \"<html>404</html>\"\\n\n exit 1",
        "1",
        "server",
    ),
    (
        "err error connecting to api.github.com\\ncheck your internet connection or https://githubstatus.com\\n\n exit 1",
        "1",
        "net",
    ),
    (
        "err Post \"https://api.github.com/graphql\": dial tcp 1.2.3.4:443: connect: connection refused\\n\n exit 1",
        "1",
        "net",
    ),
    (
        "err HTTP 401: Bad credentials (https://api.github.com/graphql)\\nTry authenticating with:  gh auth login\\n\n exit 1",
        "1",
        "auth",
    ),
    ("err To get started with GitHub CLI, please run:  gh auth login\\n\n exit 4", "4", "auth"),
    (
        "err GraphQL: Could not resolve to a Repository with the name 'o/r'. (repository)\\n\n exit 1",
        "1",
        "notfound",
    ),
    ("err unknown flag: --x\\n\\nUsage:  gh pr status [flags]\\n\n exit 1", "1", "other"),
    ("exit 8", "8", "other"),
    ("die TERM", "143", "other"),
    ("die SEGV", "139", "other"),
];

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Runs one call and returns its nine columns.
fn observe(script: &str, words: &[&str], shape: impl Fn(Call) -> Call) -> Vec<String> {
    let sandbox = Sandbox::new(script);
    sandbox.checkout("acme/widget");
    let before = now_s();
    shape(sandbox.gh(words)).run();
    let after = now_s();
    let mut lines = sandbox.observations();
    assert_eq!(lines.len(), 1, "gh {words:?}: {lines:?}");
    let columns = lines.remove(0);
    assert_eq!(columns.len(), 9, "{columns:?}");
    assert!((before..=after).contains(&columns[0].parse().unwrap()), "{columns:?}");
    assert!(columns[2].parse::<u64>().unwrap() < 60_000, "{columns:?}");
    columns
}

fn column(script: &str, words: &[&str], index: usize, shape: impl Fn(Call) -> Call) -> String {
    observe(script, words, shape)[index].clone()
}

#[test]
fn every_outcome_is_recorded_with_its_exit_and_signal() {
    for (steps, exit, signal) in OUTCOMES {
        let columns = observe(&format!("on *\n {steps}\n"), &["pr", "status"], |call| call);
        assert_eq!((columns[1].as_str(), columns[3].as_str()), (exit, signal), "{steps}");
    }
}

#[test]
fn every_outcome_is_told_when_both_streams_are_one() {
    for (steps, exit, signal) in OUTCOMES {
        let script = format!("on *\n out some output\\n\n {steps}\n");
        for shape in [|call: Call| call.merged().run(), |call: Call| call.stdout(Out::Append).merged().run()]
        {
            let sandbox = Sandbox::new(&script);
            shape(sandbox.gh(&["pr", "status"]));
            let columns = sandbox.observations().remove(0);
            assert_eq!((columns[1].as_str(), columns[3].as_str()), (exit, signal), "{steps}");
        }
    }
}

#[test]
fn on_a_terminal_the_exit_is_all_that_is_known() {
    let on_terminal =
        |call: Call<'_>| -> _ { call.stdin(Stdin::Tty).stdout(Out::Tty).stderr(Out::Tty).run() };
    for (steps, exit, signal) in
        [("exit 0", "0", "ok"), ("exit 4", "4", "auth"), ("err HTTP 502\\n\n exit 1", "1", "other")]
    {
        let sandbox = Sandbox::new(&format!("on *\n {steps}\n"));
        on_terminal(sandbox.gh(&["pr", "status"]));
        let columns = sandbox.observations().remove(0);
        assert_eq!((columns[1].as_str(), columns[3].as_str()), (exit, signal), "{steps}");
    }
}

#[test]
fn the_last_words_of_a_long_message_decide() {
    let script =
        "on *\n err-mb 2\n err \\nHTTP 502: 502 Bad Gateway (https://api.github.com/graphql)\\n\n exit 1\n";
    assert_eq!(column(script, &["pr", "status"], 3, |call| call), "server");
}

#[test]
fn the_command_is_recorded_and_never_an_operand() {
    for (words, subcommand) in [
        (["-R", "acme/secret", "issue", "ls"].as_slice(), "issue list"),
        (&["issue", "view", "12345", "--comments"], "issue view"),
        (&["api", "graphql", "-f", "query=secret"], "api graphql"),
        (&["api", "repos/acme/secret/issues"], "api"),
        (&["search", "issues", "secret words"], "search issues"),
    ] {
        let columns = observe("on *\n exit 0\n", words, |call| call);
        assert_eq!(columns[4], subcommand, "{words:?}");
        let line = columns.join("\t");
        assert!(!line.contains("secret") && !line.contains("12345"), "{line}");
    }
}

#[test]
fn the_quota_and_its_cost_are_recorded() {
    for (words, quota, cost) in [
        (["issue", "list"].as_slice(), "graphql", "1"),
        (&["api", "graphql"], "graphql", "1"),
        (&["api", "repos/acme/widget"], "core", "1"),
        (&["api", "--hostname", "git.example.org", "user"], "-", "0"),
    ] {
        let columns = observe("on *\n exit 0\n", words, |call| call);
        assert_eq!((columns[5].as_str(), columns[6].as_str()), (quota, cost), "{words:?}");
    }
}

#[test]
fn caller_and_session_are_recorded() {
    let script = "on *\n exit 0\n";
    let words = ["pr", "status"];
    let ends = |columns: Vec<String>| (columns[7].clone(), columns[8].clone());
    assert_eq!(ends(observe(script, &words, |call| call)), ("work".into(), "-".into()));
    let named = observe(script, &words, |call| {
        call.env("BOB_FORGE_CALLER", "groom").env("CLAUDE_CODE_SESSION_ID", "56b20441-1111-2222")
    });
    assert_eq!(ends(named), ("work/groom".into(), "56b20441".into()));
    assert_eq!(column(script, &words, 7, |call| call.in_removed_folder()), "-");
    assert_eq!(column(script, &words, 7, |call| call.cwd("/")), "-");
}

#[test]
fn no_value_can_break_out_of_its_column() {
    let sandbox = Sandbox::new("on *\n exit 0\n");
    let odd = sandbox.path("a\tb\nc\u{1b}[31m");
    std::fs::create_dir(&odd).unwrap();
    let call = sandbox.gh(&["pr", "status"]).cwd(odd).env("BOB_FORGE_CALLER", "x\ty\nz");
    call.env("CLAUDE_CODE_SESSION_ID", "\t\n\t\n12345678").run();
    sandbox.gh(&["pr\tx", "sta\ntus"]).env("BOB_FORGE_CALLER", "k".repeat(4000)).run();
    let lines = sandbox.observations();
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [9, 9], "{lines:?}");
    let log = std::fs::read(sandbox.state().join("observations.log")).unwrap();
    assert!(log.split(|b| *b == b'\n').all(|line| line.len() < 512));
    assert!(!log.contains(&0x1b));
}

#[test]
fn a_folder_below_the_checkouts_root_counts_for_the_checkout() {
    let sandbox = Sandbox::new("on *\n exit 0\n");
    sandbox.checkout("acme/widget");
    sandbox.file("work/deep/down/file", "");
    sandbox.gh(&["pr", "status"]).cwd(sandbox.path("work/deep/down")).run();
    assert_eq!(sandbox.observations()[0][7], "work");
}

#[test]
fn the_latency_is_the_childs() {
    let ms: u64 = column("on *\n sleep 120\n exit 0\n", &["pr", "status"], 2, |call| call).parse().unwrap();
    assert!((120..5_000).contains(&ms), "{ms} ms");
}

/// The golden table of real failures, through the whole shim and the log. A call that is no network call
/// leaves nothing, and a retried or held one belongs to other suites: both are off here.
#[test]
fn the_golden_failures_are_recorded_with_their_signals() {
    let rows =
        include_str!("golden/signals.jsonl").lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    let mut wrong = Vec::new();
    let mut through = 0;
    for row in rows {
        let (Some(words), Some(exit @ 0..=127)) = (row["argv"].as_array(), row["exit"].as_i64()) else {
            continue;
        };
        let words: Vec<_> = words.iter().map(|w| w.as_str().unwrap()).collect();
        let sandbox = Sandbox::new("");
        let (said, answer) = (row["stderr"].as_str().unwrap_or(""), row["stdout"].as_str().unwrap_or(""));
        let streams = format!("out {}\n err {}", escape(answer.as_bytes()), escape(said.as_bytes()));
        sandbox.script(&format!("on *\n {streams}\n exit {exit}\n"));
        sandbox
            .gh(&words)
            .env("BOB_FORGE_BUDGET", "0")
            .env("BOB_FORGE_CACHE", "0")
            .env("BOB_FORGE_QUEUE", "0")
            .run();
        let lines = sandbox.observations();
        let Some(seen) = lines.first().map(|columns| columns[3].clone()) else { continue };
        let also = row["also_ok"].as_array().into_iter().flatten();
        if !also.chain([&row["signal"]]).any(|s| s.as_str() == Some(&seen)) {
            wrong.push(format!("{}: {} was recorded as {seen}", row["id"], row["signal"]));
        }
        through += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(through > 140, "only {through} rows went through");
}
