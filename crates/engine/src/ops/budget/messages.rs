//! The budget's lines on standard error. Each tells an agent what to do, so that it never has to judge
//! whether to wait.

use crate::decide::gate::{Cause, Gate};
use crate::decide::quota::limit_name;
use crate::decide::resource::Resource;
use crate::decide::signal::Limit;
use crate::settings::budget::Budget;

const PATIENCE: &str = "This call finishes on its own: do not retry it and do not stop.";

/// A call is about to wait. `clock` tells an epoch second as `10:47`.
pub fn waiting(
    resource: Resource,
    cause: Cause,
    wait_s: u64,
    budget: &Budget,
    clock: impl Fn(u64) -> String,
) -> String {
    let name = resource.as_str();
    let text = match cause {
        Cause::Low { remaining, line, reset_at } => {
            let at = clock(reset_at);
            format!(
                "waiting {wait_s}s for the GitHub {name} quota to reset at {at} ({remaining} left, floor \
                 {line}). {PATIENCE}"
            )
        }
        Cause::Closed { until_ms } => {
            let at = clock(until_ms / 1_000);
            format!(
                "waiting {wait_s}s: a rate-limited answer has closed the GitHub {name} quota until {at}. \
                 {PATIENCE}"
            )
        }
        Cause::Rate { resource, count, bound, ceiling } if bound < ceiling || budget.background => {
            let (rate, window) = (resource.as_str(), budget.rate_window_s);
            format!(
                "background call deferred {wait_s}s: {rate} rate is {count}/{window}s, above the background \
                 share of {bound} (ceiling {ceiling}). It runs on its own."
            )
        }
        Cause::Rate { resource, count, ceiling, .. } => {
            let (rate, window) = (resource.as_str(), budget.rate_window_s);
            format!(
                "waiting {wait_s}s: {rate} rate is {count}/{window}s, at the ceiling of {ceiling}. {PATIENCE}"
            )
        }
        Cause::Free => format!("waiting {wait_s}s. {PATIENCE}"),
    };
    format!("[forge-budget] {text}")
}

/// A background call over its share may not wait.
pub fn refused(gate: &Gate, budget: &Budget) -> String {
    let Cause::Rate { resource, count, bound, ceiling } = gate.cause else {
        return "[forge-budget] background call refused. Run it again later.".into();
    };
    let (rate, window) = (resource.as_str(), budget.rate_window_s);
    format!(
        "[forge-budget] background call refused: {rate} rate is {count}/{window}s, above the background share \
         of {bound} (ceiling {ceiling}). It was not sent: run it again later."
    )
}

/// A person's call goes at once, with this warning.
pub fn warning(resource: Resource, cause: Cause, clock: impl Fn(u64) -> String) -> Option<String> {
    let name = resource.as_str();
    match cause {
        Cause::Low { remaining, line, reset_at } => Some(format!(
            "[forge-budget] the GitHub {name} quota is low: {remaining} left (floor {line}), resets at {}.",
            clock(reset_at)
        )),
        Cause::Closed { until_ms } => Some(format!(
            "[forge-budget] a rate-limited answer has closed the GitHub {name} quota until {}: this call may be \
             refused.",
            clock(until_ms / 1_000)
        )),
        Cause::Free | Cause::Rate { .. } => None,
    }
}

/// A call met a rate limit and is about to wait before it is made again.
pub fn retrying(resource: Resource, limit: Limit, wait_s: u64) -> String {
    let (name, limit) = (resource.as_str(), limit_name(limit));
    format!(
        "[forge-budget] GitHub answered with a rate limit on {name} ({limit}): retrying in {wait_s}s. {PATIENCE}"
    )
}
