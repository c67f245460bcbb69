//! A rate-limited answer + how long the call has backed off → the next wait, or the end of it (#3190).

use super::plan::{Kind, Plan};
use super::signal::Limit;
use crate::settings::budget::Budget;

/// A rate-limited answer, and what came before it.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Which limit it met.
    pub limit: Limit,
    /// Seconds it asks for.
    pub retry_after_s: Option<u64>,
    /// When the quota's window ends, in epoch seconds, as far as it is known and lies ahead.
    pub reset_at: Option<u64>,
    /// Which rate-limited answer in a row it is, from 0: of this call, or of the machine when it has met more.
    pub retries: u32,
    /// How long the call has backed off, in milliseconds.
    pub backed_off_ms: u64,
    /// The time in epoch milliseconds.
    pub now_ms: u64,
}

/// What a rate-limited answer means for its quota and its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// For how long nobody should call, in milliseconds.
    pub wait_ms: u64,
    /// Most milliseconds the call may back off in all.
    pub bound_ms: u64,
    /// Whether the wait fits the bound: the call is made again after it. If not, the bound is spent and
    /// the call falls through.
    pub again: bool,
}

/// Decides. A wait that somebody named (a Retry-After, a reset) is taken whole or not at all: an earlier
/// call would only be refused again. A wait that is ours to choose is cut to what is left of the bound.
pub fn backoff(answer: &Answer, budget: &Budget) -> Backoff {
    let doubling_ms =
        budget.backoff_start_s.max(1).saturating_mul(1_000).saturating_mul(1 << answer.retries.min(20));
    let until_reset_ms = answer.reset_at.and_then(|at| at.saturating_mul(1_000).checked_sub(answer.now_ms));
    let (named_ms, bound_s) = match (answer.retry_after_s, answer.limit) {
        (Some(s), _) => (Some(s.max(1).saturating_mul(1_000)), budget.backoff_max_s),
        (None, Limit::Secondary) => (None, budget.backoff_max_s),
        (None, Limit::Primary) => (until_reset_ms.filter(|ms| *ms > 0), budget.max_wait_s),
    };
    let bound_ms = bound_s.saturating_mul(1_000);
    let left_ms = bound_ms.saturating_sub(answer.backed_off_ms);
    let (wait_ms, fits) = match named_ms {
        Some(ms) => (ms, ms <= left_ms),
        None => (doubling_ms.min(left_ms.max(1_000)), left_ms > 0),
    };
    let deadline_ms = budget.deadline.map_or(u64::MAX, |deadline| deadline.saturating_mul(1_000));
    let again = fits && answer.now_ms.saturating_add(wait_ms) <= deadline_ms;
    Backoff { wait_ms, bound_ms, again }
}

/// Whether a call may be made twice. A retry runs the command line again, so never one that read its own
/// stdin (unless the shim has `captured_stdin`), one that prints pages as they come, one that streams, or
/// a person's. A call that spends no quota has none to wait for.
pub fn may_retry(plan: &Plan, interactive: bool, captured_stdin: bool) -> bool {
    let read_stdin = plan.reads_stdin && !captured_stdin;
    plan.kind == Kind::Call && plan.resource.is_some() && !interactive && !plan.paginates && !read_stdin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::plan::{GhEnv, plan};
    use crate::settings::Settings;

    const NOW: u64 = 1_000;

    fn budget() -> Budget {
        Settings::read(&|_: &str| None).budget
    }

    fn answer(limit: Limit) -> Answer {
        Answer {
            limit,
            retry_after_s: None,
            reset_at: None,
            retries: 0,
            backed_off_ms: 0,
            now_ms: NOW * 1_000,
        }
    }

    /// Every wait of a call that only ever meets this answer, in seconds.
    fn waits(first: Answer, budget: &Budget) -> Vec<u64> {
        let (mut answer, mut waits) = (first, Vec::new());
        loop {
            let next = backoff(&answer, budget);
            if !next.again {
                return waits;
            }
            waits.push(next.wait_ms / 1_000);
            answer.retries += 1;
            answer.backed_off_ms += next.wait_ms;
            answer.now_ms += next.wait_ms;
        }
    }

    #[test]
    fn a_burst_limit_doubles_from_five_seconds_to_the_bound() {
        let all = waits(answer(Limit::Secondary), &budget());
        assert_eq!(all, [5, 10, 20, 40, 80, 145]);
        assert_eq!(all.iter().sum::<u64>(), 300);
        let start = Budget { backoff_start_s: 1, backoff_max_s: 6, ..budget() };
        assert_eq!(waits(answer(Limit::Secondary), &start), [1, 2, 3]);
    }

    #[test]
    fn a_retry_after_is_waited_whole_or_not_at_all() {
        let named = |s| Answer { retry_after_s: Some(s), ..answer(Limit::Secondary) };
        assert_eq!(waits(named(120), &budget()), [120, 120]);
        assert_eq!(waits(named(300), &budget()), [300]);
        let long = backoff(&named(600), &budget());
        assert_eq!((long.again, long.wait_ms), (false, 600_000), "and the others still learn of it");
        let primary = Answer { retry_after_s: Some(7), reset_at: Some(NOW + 900), ..answer(Limit::Primary) };
        assert_eq!(backoff(&primary, &budget()).wait_ms, 7_000);
    }

    #[test]
    fn a_spent_quota_is_waited_for_until_its_reset_within_the_longer_bound() {
        let until = |reset_at| Answer { reset_at: Some(reset_at), ..answer(Limit::Primary) };
        assert_eq!(waits(until(NOW + 3_000), &budget()), [3_000, 5 * 2, 20, 40, 80, 160, 320, 270]);
        assert!(!backoff(&until(NOW + 3_901), &budget()).again);
        let unknown = waits(answer(Limit::Primary), &budget());
        assert_eq!((unknown[0], unknown.iter().sum::<u64>()), (5, 3_900));
        assert_eq!(waits(until(NOW - 1), &budget())[0], 5, "a reset that has passed is none");
    }

    #[test]
    fn no_wait_goes_past_the_deadline() {
        let by = |deadline| Budget { deadline: Some(deadline), ..budget() };
        assert_eq!(waits(answer(Limit::Secondary), &by(NOW + 15)), [5, 10]);
        assert_eq!(waits(answer(Limit::Secondary), &by(NOW + 4)), [0; 0]);
    }

    #[test]
    fn what_is_never_run_twice() {
        let plan = |line: &str| {
            let args: Vec<_> = line.split_whitespace().map(Into::into).collect();
            plan(&args, &GhEnv::default())
        };
        let table = [
            ("issue list", true),
            ("api repos/o/r", true),
            ("issue comment 5 --body x", true),
            ("issue comment 5 --body-file -", false),
            ("api repos/o/r --input -", false),
            ("api repos/o/r -F body=@-", false),
            ("api repos/o/r --paginate", false),
            ("run watch 5", false),
            ("some-extension", false),
            ("auth status", false),
            ("api rate_limit", false),
        ];
        for (line, may) in table {
            assert_eq!(may_retry(&plan(line), false, false), may, "{line}");
            assert!(!may_retry(&plan(line), true, false), "{line}, a person's");
        }
        assert!(may_retry(&plan("issue comment 5 --body-file -"), false, true), "the shim has the body");
    }
}
