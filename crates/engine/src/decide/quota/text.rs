//! The report as lines of text, as the specification shows them.

use super::{HeldBack, Report, Spender, Standing, State, Waits};
use crate::decide::resource::Resource;
use crate::decide::signal::Limit;

/// How many callers are named.
const NAMED: usize = 10;

/// What a rate-limited answer is.
const DEFECT: &str = "  DEFECT: the forge is meant to prevent every one of these. File it as a bug on the forge \
                      (label bug, area:forge-resilience) with this output.";

/// The lines under the verdict. `clock` tells an epoch second as `10:47` in the reader's own time.
pub fn lines(report: &Report, clock: &dyn Fn(u64) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for resource in Resource::ALL {
        if let Some(standing) = &report.quotas[resource] {
            // Search comes back within the minute: it is worth a line only when something waits for it.
            if resource != Resource::Search || matches!(standing.state, State::Pacing | State::Waiting) {
                lines.push(quota(resource, standing, report, clock));
            }
        }
    }
    lines.push(read(report));
    lines.extend(Resource::ALL.into_iter().filter_map(|resource| rate(resource, report)));
    spenders(report, &mut lines);
    lines.extend(held_back(&report.held_back));
    limited(report, &mut lines);
    lines
}

fn quota(resource: Resource, standing: &Standing, report: &Report, clock: &dyn Fn(u64) -> String) -> String {
    let (name, q) = (resource.as_str(), standing.quota);
    let (remaining, limit, at) = (grouped(q.remaining), grouped(q.limit), clock(q.reset_at));
    let spent = match standing.spent {
        Some(spent) => format!(", {} spent in the last 60 min by this token", grouped(spent)),
        None => String::new(),
    };
    if standing.state == State::Reset {
        let ago = span(report.now_s.saturating_sub(q.reset_at));
        return format!("quota: {name} was reset {at} ({ago} ago), {remaining} of {limit} were left{spent}");
    }
    let within = span(q.reset_at.saturating_sub(report.now_s));
    let note = match standing.state {
        State::Waiting => " — under the floor: unattended calls wait for the reset",
        State::Pacing => " — under the pace line: unattended calls are slowed",
        State::Ok | State::Reset => "",
    };
    format!("quota: {name} {remaining} of {limit} left, resets {at} (in {within}){spent}{note}")
}

fn read(report: &Report) -> String {
    let floor = &report.budget.floor;
    let floors = format!("floor graphql {}, core {}", grouped(floor.graphql), grouped(floor.core));
    match report.fetched_at {
        Some(at) => format!("quota: read {} ago; {floors}", span(report.now_s.saturating_sub(at))),
        None => format!("quota: not read yet; {floors}"),
    }
}

fn rate(resource: Resource, report: &Report) -> Option<String> {
    let rate = &report.rates[resource];
    if rate.count == 0 && !rate.deferred {
        return None;
    }
    let (name, window, share) =
        (resource.as_str(), report.budget.rate_window_s, report.budget.background_share);
    let ceiling = if rate.ceiling == 0 { String::new() } else { format!(" of {}", grouped(rate.ceiling)) };
    let when = format!("in the last {window}s; background share {share}%");
    let (count, background) = (grouped(rate.count), rate.background);
    Some(match rate.deferred {
        true => {
            format!(
                "rate: {name} {count}{ceiling} ({background} background) — background calls deferred {when}"
            )
        }
        false => format!("rate: {name} {count}{ceiling} ({background} background) {when}"),
    })
}

fn spenders(report: &Report, lines: &mut Vec<String>) {
    let all: u64 = report.spenders.iter().map(|spender| spender.calls).sum();
    lines.push(format!("spent by: {} call(s) from this machine in the last 60 min", grouped(all)));
    lines.extend(report.spenders.iter().take(NAMED).map(spender));
    let rest = report.spenders.iter().skip(NAMED);
    let (others, calls) = rest.fold((0_u64, 0), |(n, calls), spender| (n + 1, calls + spender.calls));
    if others > 0 {
        lines.push(format!("  {others} other(s): {} call(s)", grouped(calls)));
    }
}

fn spender(spender: &Spender) -> String {
    let named = |resource: Resource| match spender.cost[resource] {
        0 => None,
        cost => Some(format!("{} {}", resource.as_str(), grouped(cost))),
    };
    let costs: Vec<String> = Resource::ALL.into_iter().filter_map(named).collect();
    let mut parts = vec![format!("{} call(s)", grouped(spender.calls))];
    if !costs.is_empty() {
        parts.push(format!("at least {}", costs.join(", ")));
    }
    if spender.rate_limited > 0 {
        parts.push(format!("{} rate-limited", grouped(spender.rate_limited)));
    }
    let session =
        if spender.session == "-" { String::new() } else { format!(" (session {})", spender.session) };
    format!("  {}{session}: {}", spender.caller, parts.join(", "))
}

fn held_back(held: &HeldBack) -> Option<String> {
    let counted = |waits: &Waits, what: &str, with_time: bool| match (waits.count, with_time) {
        (0, _) => None,
        (n, false) => Some(format!("{} {what}", grouped(n))),
        (n, true) => Some(format!("{} {what} ({})", grouped(n), span(waits.seconds))),
    };
    let plain = |count: u64, what: &str| counted(&Waits { count, seconds: 0 }, what, false);
    let parts: Vec<String> = [
        counted(&held.waits, "wait(s) for a reset", true),
        counted(&held.paced, "paced call(s)", false),
        counted(&held.retries, "retry wait(s)", true),
        counted(&held.holds, "held call(s)", true),
        counted(&held.defers, "deferred background call(s)", true),
        plain(held.refused, "refused background call(s)"),
        plain(held.capped, "call(s) past their bound"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("held back: {} in the last 60 min", parts.join(", ")))
}

fn limited(report: &Report, lines: &mut Vec<String>) {
    let mut line = format!("rate-limited answers this week: {} (target 0)", grouped(report.limited));
    let Some(last) = &report.last_limited else { return lines.push(line) };
    let (at, quota, caller) = (instant(last.at), &last.quota, &last.caller);
    line += &format!(" — last {at} on {quota} from {caller} ({})", limit_name(last.limit));
    lines.push(line);
    lines.push(DEFECT.into());
}

/// The name that files and messages use.
pub fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Primary => "primary",
        Limit::Secondary => "secondary",
    }
}

/// How loud the doctor's line is. It is never graded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// All is well.
    Info,
    /// A quota is under its floor, or an answer was rate-limited this week.
    Warn,
}

impl Level {
    /// The name that `bob doctor` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Warn => "WARN",
        }
    }
}

/// The one line for `bob doctor`.
pub fn doctor_line(report: &Report, clock: &dyn Fn(u64) -> String) -> (Level, String) {
    let part = |resource: Resource| {
        let Standing { quota, state, .. } = report.quotas[resource]?;
        let (name, at) = (resource.as_str(), clock(quota.reset_at));
        let (remaining, limit) = (grouped(quota.remaining), grouped(quota.limit));
        Some(match state {
            State::Reset => format!("{name} was reset {at}"),
            State::Waiting => format!("{name} {remaining} of {limit} left, under its floor until {at}"),
            State::Ok | State::Pacing => format!("{name} {remaining} of {limit} left, resets {at}"),
        })
    };
    let mut parts: Vec<String> = [Resource::Graphql, Resource::Core].into_iter().filter_map(part).collect();
    match report.fetched_at {
        Some(at) => parts.push(format!("read {} ago", span(report.now_s.saturating_sub(at)))),
        None => parts.push("not read yet".into()),
    }
    parts.push(match report.limited {
        0 => "no rate-limited answer this week".into(),
        n => format!("{} rate-limited answer(s) this week (target 0): a defect of the forge", grouped(n)),
    });
    let is_waiting = |r: Resource| report.quotas[r].is_some_and(|standing| standing.state == State::Waiting);
    let is_loud = report.limited > 0 || Resource::ALL.into_iter().any(is_waiting);
    (if is_loud { Level::Warn } else { Level::Info }, format!("forge quota: {}", parts.join("; ")))
}

/// `5s`, `25 min`, `3 h`.
pub fn span(s: u64) -> String {
    match s {
        0..60 => format!("{s}s"),
        60..7_200 => format!("{} min", (s + 30) / 60),
        _ => format!("{} h", (s + 1_800) / 3_600),
    }
}

/// `4,120`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `2026-09-27T09:41:40.000Z`, as JavaScript writes an instant.
pub fn instant(epoch_s: u64) -> String {
    let (days, s) = (epoch_s / 86_400, epoch_s % 86_400);
    let (year, month, day) = date(days);
    let (h, m, s) = (s / 3_600, s / 60 % 60, s % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.000Z")
}

/// Days since 1970 as a date of the Gregorian calendar, counted in its cycles of 400 years that begin on
/// a first of March.
fn date(days: u64) -> (u64, u64, u64) {
    const UP_TO_1970: u64 = 719_468;
    const CYCLE: u64 = 146_097;
    let days = days + UP_TO_1970;
    let (cycle, of_cycle) = (days / CYCLE, days % CYCLE);
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}
