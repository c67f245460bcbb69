//! The golden tables, and what holds for any bytes whatever.

use std::ffi::OsString;

use serde_json::Value;

use super::{Ended, Limit, Outcome, Signal, classify};

const GOLDEN: &str = include_str!("../../../../../tests/golden/signals.jsonl");
const MORE: &str = include_str!("../../../../../tests/golden/signals-more.jsonl");

fn rows(table: &str) -> Vec<Value> {
    table.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
}

fn ended(row: &Value) -> Ended {
    let exit = row["exit"].as_i64().and_then(|code| i32::try_from(code).ok()).expect("exit is a number");
    if exit < 0 { Ended::Signal(-exit) } else { Ended::Code(exit) }
}

fn args(row: &Value) -> Vec<OsString> {
    let argv = row["argv"].as_array().map(Vec::as_slice).unwrap_or_default();
    argv.iter().map(|arg| OsString::from(arg.as_str().expect("argv holds strings"))).collect()
}

/// What is wrong with the classifier's answer for a row, if anything.
fn complaint(row: &Value, got: Outcome) -> Option<String> {
    let name = Value::from(got.signal.as_str());
    let allowed = std::iter::once(&row["signal"]).chain(row["also_ok"].as_array().into_iter().flatten());
    let signal_ok = allowed.clone().any(|signal| *signal == name);
    let kind = got.limit.map(|limit| match limit {
        Limit::Primary => "primary",
        Limit::Secondary => "secondary",
    });
    let kind_ok = row["kind"].as_str().is_none_or(|expected| kind == Some(expected));
    let retry_ok = row["retry_after"].as_u64().is_none_or(|expected| got.retry_after_s == Some(expected));
    let limit_ok = got.limit.is_some() == (got.signal == Signal::RateLimit);
    (!(signal_ok && kind_ok && retry_ok && limit_ok)).then(|| {
        let expected: Vec<_> = allowed.filter_map(Value::as_str).collect();
        format!(
            "{}: {}\n  expected {expected:?} kind {} retry_after {}\n  got      {got:?}\n  stderr   {:?}",
            row["id"], row["why"], row["kind"], row["retry_after"], row["stderr"]
        )
    })
}

fn check(table: &str, at_least: usize) {
    let rows = rows(table);
    let complaints: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let stderr = row["stderr"].as_str().expect("stderr is a string");
            complaint(row, classify(ended(row), stderr.as_bytes(), &args(row)))
        })
        .collect();
    assert!(rows.len() >= at_least, "the table lost rows: {}", rows.len());
    assert!(
        complaints.is_empty(),
        "{} of {} rows are wrong\n{}",
        complaints.len(),
        rows.len(),
        complaints.join("\n")
    );
}

#[test]
fn every_collected_failure_has_its_signal() {
    check(GOLDEN, 178);
}

#[test]
fn every_invented_failure_has_its_signal() {
    check(MORE, 80);
}

/// The rows of both tables.
fn all_rows() -> Vec<Value> {
    [rows(GOLDEN), rows(MORE)].concat()
}

/// Asserts that a change to every row's stderr that adds no evidence leaves its outcome as it was.
fn same_after(what: &str, change: impl Fn(&str) -> String) {
    for row in all_rows() {
        let stderr = row["stderr"].as_str().expect("stderr is a string");
        let (ended, args) = (ended(&row), args(&row));
        let before = classify(ended, stderr.as_bytes(), &args);
        let changed = change(stderr);
        let after = classify(ended, changed.as_bytes(), &args);
        assert_eq!(after, before, "{what} changed {}: {changed:?}", row["id"]);
    }
}

#[test]
fn line_ends_of_windows_change_nothing() {
    same_after("CRLF", |stderr| stderr.replace("\r\n", "\n").replace('\n', "\r\n"));
}

#[test]
fn a_missing_last_newline_changes_nothing() {
    same_after("a missing newline", |stderr| stderr.trim_end_matches('\n').to_owned());
}

#[test]
fn colours_change_nothing() {
    same_after("colours", |stderr| {
        let coloured = |line: &str| format!("\u{1b}[0;31m{line}\u{1b}[0m");
        stderr.split('\n').map(coloured).collect::<Vec<_>>().join("\n")
    });
}

#[test]
fn titles_of_closed_issues_change_nothing() {
    const TITLES: &str = "✓ Closed issue acme/widget#3 (HTTP 401: Bad credentials (https://x.example))\n\
        ! Issue acme/widget#4 (GraphQL: API rate limit exceeded) is already closed\n\
        + gh issue create -t 'a: Post \"https://x.example\": EOF'\n";
    same_after("titles", |stderr| format!("{TITLES}{stderr}"));
}

#[test]
fn a_log_of_an_earlier_request_changes_nothing() {
    const LOG: &str = "* Request at 2026-11-29 17:48:12 +0000 UTC m=+0.05\n* Request to https://api.github.com/x\n\
        > GET /x HTTP/1.1\n\n< HTTP/2.0 200 OK\n< Retry-After: 9\n\nHTTP 500: x (https://x.example)\n\
        gh: API rate limit exceeded (HTTP 403)\n* dial tcp: i/o timeout\n\n* Request took 8ms\n";
    same_after("a request log", |stderr| format!("{LOG}{stderr}"));
}

/// A seeded xorshift, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("below a usize")
    }

    /// A cut, a splice of another row, or a byte put in.
    fn mutate(&mut self, stderr: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(stderr.len() + 1);
        match self.below(4) {
            0 => stderr.truncate(at),
            1 => drop(stderr.drain(..at)),
            2 => drop(stderr.splice(at..at, other[self.below(other.len() + 1)..].iter().copied())),
            _ => {
                const BYTES: &[u8] = b"\"'`(): \n\r\t\x1b[]\\\xff\xef\x00HTTP 5";
                stderr.insert(at, BYTES[self.below(BYTES.len())]);
            }
        }
        stderr.truncate(20_000);
    }
}

#[test]
fn no_bytes_make_it_panic_and_the_end_outranks_the_text() {
    let rows = all_rows();
    let texts: Vec<&[u8]> = rows.iter().filter_map(|row| row["stderr"].as_str()).map(str::as_bytes).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..6000 {
        let mut stderr = texts[random.below(texts.len())].to_vec();
        for _ in 0..=random.below(5) {
            let other = texts[random.below(texts.len())];
            random.mutate(&mut stderr, other);
        }
        let failed = classify(Ended::Code(1), &stderr, &[]);
        assert_eq!(failed.limit.is_some(), failed.signal == Signal::RateLimit, "{stderr:?}");
        assert_ne!(failed.signal, Signal::Ok, "{stderr:?}");
        assert_eq!(classify(Ended::Code(0), &stderr, &[]).signal, Signal::Ok);
        assert_eq!(classify(Ended::Signal(15), &stderr, &[]).signal, Signal::Other);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures, the classifier does not")]
fn the_work_on_a_hostile_stderr_stays_small() {
    // What the shim keeps at most, filled with what makes a scanner look ahead in vain.
    const KEPT: usize = 256 * 1024;
    for unit in [
        "'",
        " '",
        "\"",
        " `",
        "(",
        ": ",
        "HTTP 502: ",
        "gh: ",
        "gh: \n",
        "Message: ",
        "GraphQL: x\n",
        "}gh: ",
        "\u{1b}[",
    ] {
        let stderr = unit.repeat(KEPT / unit.len());
        let started = std::time::Instant::now();
        let outcome = classify(Ended::Code(1), stderr.as_bytes(), &[]);
        assert_eq!(outcome.signal, Signal::Other, "{unit:?}");
        assert!(started.elapsed().as_secs() < 5, "{unit:?} took {:?}", started.elapsed());
    }
}

#[test]
fn only_an_exit_4_that_gh_itself_chose_is_a_missing_login() {
    let signal = |line: &str| {
        let args: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        classify(Ended::Code(4), b"", &args).signal
    };
    for own in ["issue list", "-R acme/widget pr view 3", "pr ls", "at verify x", "co 12", "issue lst"] {
        assert_eq!(signal(own), Signal::Auth, "{own}");
    }
    for others in ["", "--version", "my-lint", "extension exec lint", "ext exec lint", "copilot -p hi"] {
        assert_eq!(signal(others), Signal::Other, "{others}");
    }
}
