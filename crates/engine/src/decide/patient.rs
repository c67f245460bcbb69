//! A caller with a time limit in front of a shim that waits: how long the call may take, and whether how
//! it ended is a reason to run it once more.
//!
//! A script that ends `gh` after twenty seconds undoes a wait of seven minutes: the shim is killed, and the
//! script takes the gap for an answer. So the limit makes room for the wait that the gate is about to make,
//! and a call that ended in a rate limit, or in the middle of a wait, is run once more, with room for a
//! full backoff.

use std::ffi::OsString;

use super::argv::{self, Parsed};
use super::plan::{GhEnv, Plan, plan};
use super::signal::{Ended, Signal, classify};
use super::write::Write;
use crate::settings::budget::Budget;

/// The longest that a timer of Node's can be set to, in milliseconds; a longer one fires at once.
pub const MAX_TIMER_MS: u64 = i32::MAX as u64;

/// The room of one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// How long it may take, in milliseconds; `None` for a caller without a limit.
    pub timeout_ms: Option<u64>,
    /// When the caller gives up, in epoch seconds: the shim waits no longer than that.
    pub deadline: Option<u64>,
}

/// The room for the first attempt (`is_again` false) or the second, of a caller that would give a call
/// `timeout_ms` when nothing is in its way. `wait_s` is what the gate would make it wait now.
pub fn room(timeout_ms: Option<u64>, wait_s: u64, is_again: bool, budget: &Budget, now_s: u64) -> Room {
    let Some(timeout_ms) = timeout_ms else {
        return Room { timeout_ms: None, deadline: budget.deadline };
    };
    let held_s = if is_again { wait_s.saturating_add(budget.backoff_max_s) } else { wait_s };
    let timeout_ms = timeout_ms.saturating_add(held_s.saturating_mul(1_000)).min(MAX_TIMER_MS);
    let ends = now_s.saturating_add(timeout_ms / 1_000);
    Room { timeout_ms: Some(timeout_ms), deadline: Some(budget.deadline.map_or(ends, |own| own.min(ends))) }
}

/// How an attempt ended, as far as its runner tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// gh's exit code; `None` when it was killed or could not be started.
    pub exit: Option<i32>,
    /// Its standard error.
    pub stderr: String,
    /// The runner ended it because its time was up.
    pub timed_out: bool,
    /// It was ended in a way that leaves it no last word (SIGKILL).
    pub was_cut_off: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// What the gate would have made it wait when it started, in seconds.
    pub wait_s: u64,
}

/// Whether the call is to be run once more.
///
/// A call that was refused with a rate limit, or that was still held when its time was up, has not been
/// made: it can be repeated. So can a read that may have been made. A write that may have been, and one
/// that the queue has taken over, never is.
pub fn again(args: &[OsString], env: &GhEnv, outcome: &Outcome) -> bool {
    if outcome.exit == Some(0) || lines(&outcome.stderr, "[forge-queue]").next().is_some() {
        return false;
    }
    if !outcome.timed_out {
        let Some(exit) = outcome.exit else { return false };
        return classify(Ended::Code(exit), outcome.stderr.as_bytes(), args).signal == Signal::RateLimit;
    }
    let announced_s = announced_s(&outcome.stderr);
    let held_s = announced_s.max(outcome.wait_s);
    if held_s == 0 {
        return false;
    }
    if is_read(args) {
        return true;
    }
    // A queueable write that waits long is in the queue already; cut off, it could not say so.
    let may_be_queued = outcome.was_cut_off && matches!(plan(args, env).write, Write::Queueable(_));
    outcome.elapsed_ms <= held_s.saturating_mul(1_000) && !may_be_queued
}

/// The seconds of every wait that the shim has announced.
fn announced_s(stderr: &str) -> u64 {
    let number = |word: &str| word.trim_end_matches([':', '.']).strip_suffix('s')?.parse::<u64>().ok();
    let seconds = |line: &str| line.split_whitespace().find_map(number);
    lines(stderr, "[forge-budget]").filter_map(seconds).fold(0, u64::saturating_add)
}

fn lines<'a>(stderr: &'a str, by: &'a str) -> impl Iterator<Item = &'a str> {
    stderr.lines().filter(move |line| line.starts_with(by))
}

/// Whether the call surely changes nothing on the forge.
fn is_read(args: &[OsString]) -> bool {
    let parsed = argv::parse(args);
    let Plan { command, .. } = plan(args, &GhEnv::default());
    match command.split_once(' ') {
        _ if command.starts_with("api") => api_reads(&parsed),
        Some(("search", _)) => true,
        Some((_, verb)) => matches!(verb, "list" | "view" | "status" | "checks" | "diff"),
        None => command == "status",
    }
}

fn api_reads(parsed: &Parsed) -> bool {
    let text = |name: &str| parsed.value(name).map(|value| value.to_string_lossy().to_ascii_uppercase());
    let fields = || ["field", "raw-field"].into_iter().flat_map(|name| parsed.values(name));
    match text("method") {
        Some(method) => method == "GET",
        None if parsed.given("input") => false,
        None => {
            fields().next().is_none() || is_graphql_query(fields().map(|f| f.to_string_lossy().into_owned()))
        }
    }
}

fn is_graphql_query(mut fields: impl Iterator<Item = String>) -> bool {
    let query = fields.find_map(|field| field.strip_prefix("query=").map(String::from));
    query.is_some_and(|query| query.trim_start().starts_with(['q', '{']) && !query.contains("mutation"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    const LIMIT: &str = "GraphQL: API rate limit exceeded for user ID 1.\n";
    const HELD: &str = "[forge-budget] waiting 412s for the GitHub graphql quota to reset at 10:47 (120 left, \
                        floor 300). This call finishes on its own: do not retry it and do not stop.\n";
    const RETRY: &str = "[forge-budget] GitHub answered with a rate limit on core (secondary): retrying in 5s. \
                         This call finishes on its own: do not retry it and do not stop.\n";
    const QUEUED: &str = "[forge-queue] not delivered yet — the live call failed (ratelimit). Spooled as q000003; \
                          it replays in order when the forge recovers (queue depth 3).\n";

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn is_again(line: &str, outcome: Outcome) -> bool {
        again(&words(line), &GhEnv::default(), &outcome)
    }

    fn failed(stderr: &str) -> Outcome {
        Outcome { exit: Some(1), stderr: stderr.into(), ..Outcome::default() }
    }

    fn ended(stderr: &str, elapsed_ms: u64) -> Outcome {
        Outcome { stderr: stderr.into(), timed_out: true, elapsed_ms, ..Outcome::default() }
    }

    #[test]
    fn the_room_grows_by_the_wait_and_then_by_a_full_backoff() {
        let budget = Settings::read(&|_: &str| None).budget;
        let room = |timeout, wait_s, is_again| room(timeout, wait_s, is_again, &budget, 1_000);
        let some = |timeout_ms, deadline| Room { timeout_ms: Some(timeout_ms), deadline: Some(deadline) };
        assert_eq!(room(Some(20_000), 0, false), some(20_000, 1_020));
        assert_eq!(room(Some(20_500), 412, false), some(432_500, 1_432));
        assert_eq!(room(Some(20_000), 0, true), some(320_000, 1_320));
        assert_eq!(room(Some(20_000), 412, true), some(732_000, 1_732));
        assert_eq!(room(None, 412, true), Room { timeout_ms: None, deadline: None });
        assert_eq!(room(Some(u64::MAX), 9, true).timeout_ms, Some(MAX_TIMER_MS));
    }

    #[test]
    fn an_outer_deadline_is_kept() {
        let mut budget = Settings::read(&|_: &str| None).budget;
        budget.deadline = Some(1_010);
        assert_eq!(room(Some(20_000), 0, false, &budget, 1_000).deadline, Some(1_010));
        assert_eq!(room(None, 0, false, &budget, 1_000).deadline, Some(1_010));
        assert_eq!(room(Some(5_000), 0, false, &budget, 1_000).deadline, Some(1_005));
    }

    #[test]
    fn a_refusal_with_a_rate_limit_is_run_again_and_no_other_failure() {
        assert!(is_again("issue list", failed(LIMIT)));
        assert!(is_again("issue comment 3 --body x", failed(LIMIT)));
        assert!(is_again("issue list", failed(&format!("{RETRY}{RETRY}{LIMIT}"))));
        for stderr in ["HTTP 503: Service Unavailable (https://api.github.com/graphql)\n", "", HELD] {
            assert!(!is_again("issue list", failed(stderr)), "{stderr}");
        }
        let answered = Outcome { exit: Some(0), stderr: LIMIT.into(), ..Outcome::default() };
        assert!(!is_again("issue list", answered));
        assert!(
            !is_again("issue list", Outcome { stderr: LIMIT.into(), ..Outcome::default() }),
            "never started"
        );
    }

    #[test]
    fn a_read_that_was_held_is_run_again() {
        let planned = Outcome { wait_s: 30, ..ended("", 50_000) };
        for line in [
            "issue list",
            "pr view 3",
            "search prs x",
            "api repos/o/r/issues",
            "api -X GET search -f q=x",
            "api graphql -f query={viewer{login}}",
            "status",
        ] {
            assert!(is_again(line, ended(HELD, 900_000)), "{line}");
            assert!(is_again(line, planned.clone()), "{line}");
            assert!(!is_again(line, ended("", 20_000)), "{line}: nothing held it");
        }
    }

    #[test]
    fn what_may_have_been_made_is_run_again_only_while_it_was_surely_held() {
        for line in [
            "issue comment 3 --body x",
            "pr create --title x --body y",
            "api -X POST repos/o/r/issues",
            "api repos/o/r/issues -f title=x",
            "api graphql -f query=mutation{x}",
            "api x --input -",
        ] {
            assert!(is_again(line, ended(HELD, 20_000)), "{line}");
            assert!(is_again(line, ended(&format!("{RETRY}{HELD}"), 417_000)), "{line}");
            assert!(!is_again(line, ended(HELD, 412_500)), "{line}");
        }
        let cut_off = Outcome { was_cut_off: true, ..ended(HELD, 20_000) };
        assert!(!is_again("issue comment 3 --body x", cut_off.clone()), "the queue may have it");
        assert!(is_again("pr create --title x --body y", cut_off));
    }

    #[test]
    fn what_the_queue_has_taken_over_is_never_run_again() {
        assert!(!is_again("issue comment 3 --body x", failed(&format!("{LIMIT}{QUEUED}"))));
        assert!(!is_again("issue comment 3 --body x", ended(&format!("{HELD}{QUEUED}"), 20_000)));
    }
}
