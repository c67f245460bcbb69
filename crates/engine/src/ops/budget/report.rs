//! What the budget shows and does when somebody asks. Nothing here calls the forge, but `refresh`.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};

use super::refresh::{Asking, Refreshed, refresh as read_quota};
use crate::decide::gate::{Cause, Gate, Scene, gate};
use crate::decide::plan::{GhEnv, Plan, plan as judge};
use crate::decide::quota::{self, Entry, Event, Files, Level, Report, report};
use crate::decide::resource::Resource;
use crate::error::{Error, Result};
use crate::ops::place::settle;
use crate::ops::{Context, state_folder};
use crate::process::{find, kernel};
use crate::store::{budget, hold, ledger, observations, records};

/// The report that every surface shows; `None` when the budget has nothing on file.
///
/// # Errors
/// `EFORGE_USAGE`: there is no place for the files.
pub fn known(context: &Context) -> Result<Option<Report>> {
    gather(context).map(|report| report.is_known.then_some(report))
}

/// The report as `bob-forge-quota/1`. The logs are trimmed on the way.
///
/// # Errors
/// `EFORGE_USAGE`: there is no place for the files.
pub fn document(context: &Context) -> Result<Value> {
    gather(context).map(|report| quota::to_json(&report))
}

/// The form that the fleet snapshot carries a machine.
///
/// # Errors
/// As [`document`].
pub fn compact(context: &Context) -> Result<Value> {
    gather(context).map(|report| quota::compact(&report))
}

/// The line for `bob doctor`, and how loud it is.
///
/// # Errors
/// As [`document`].
pub fn doctor_line(context: &Context) -> Result<(Level, String)> {
    gather(context).map(|report| quota::doctor_line(&report, &kernel::local_time))
}

/// The lines under the verdict.
///
/// # Errors
/// As [`document`].
pub fn lines(context: &Context) -> Result<Vec<String>> {
    gather(context).map(|report| quota::lines(&report, &kernel::local_time))
}

/// Asks the forge now. True when it answered, or somebody else is asking.
///
/// # Errors
/// `EFORGE_NO_GH`: there is no real gh. `EFORGE_STATE`: the answer cannot be kept.
pub fn refresh(context: &Context) -> Result<bool> {
    let state = state_folder(context)?;
    let gh = find::real_gh(find::path_of(context).as_deref()).map_err(Error::no_gh)?;
    let now_s = context.clock.now_s();
    let timeout = Duration::from_secs(context.settings.probe_timeout_s);
    let asking = Asking { state, gh: &gh, env: &context.env, timeout, is_hurried: false, now_s };
    let refreshed = read_quota(&asking, |_| true)
        .map_err(|e| Error::state("refresh the quota in", &budget::path(state), e))?;
    let event = match refreshed {
        Refreshed::Busy | Refreshed::Known(_) | Refreshed::GivenUp => return Ok(true),
        Refreshed::Read(_) => Event::Refresh,
        Refreshed::Unreadable => Event::RefreshUnreadable,
    };
    let dash = || "-".to_string();
    let entry = Entry { at: now_s, event, quota: dash(), remaining: None, seconds: 0, subcommand: dash() };
    // The number is on file; a line about it is only a line.
    let _ = records::append_entry(state, &entry);
    Ok(event == Event::Refresh)
}

/// The quota that a call spends; `None` for one that spends none.
pub fn resource_for(context: &Context, args: &[OsString]) -> Option<Resource> {
    plan_of(context, args).resource
}

/// What the gate would do with a call now, and why; nothing is taken and nothing is asked.
///
/// # Errors
/// `EFORGE_USAGE`: there is no place for the files.
pub fn plan(context: &Context, args: &[OsString]) -> Result<Value> {
    let state = state_folder(context)?;
    let plan = plan_of(context, args);
    let budget = &context.settings.budget;
    let scene = Scene {
        resource: plan.resource,
        extra: plan.extra,
        reading: &budget::read(state),
        closed: plan.resource.map(|r| hold::read(state)[r]).unwrap_or_default(),
        ledger: &ledger::read(state).unwrap_or_default(),
        budget,
        interactive: budget.interactive.unwrap_or(false),
        now_ms: context.clock.now_s() * 1_000,
        waited_ms: 0,
        has_ticket: false,
    };
    Ok(described(&plan, &gate(&scene)))
}

fn described(plan: &Plan, gate: &Gate) -> Value {
    let cause = match gate.cause {
        Cause::Free => Value::Null,
        Cause::Low { remaining, line, reset_at } => {
            json!({ "kind": "low", "remaining": remaining, "line": line, "resetAt": reset_at })
        }
        Cause::Closed { until_ms } => json!({ "kind": "closed", "until": until_ms.div_ceil(1_000) }),
        Cause::Rate { resource, count, bound, ceiling } => json!({
            "kind": "rate", "quota": resource.as_str(), "count": count, "bound": bound, "ceiling": ceiling,
        }),
    };
    json!({
        "schema": "bob-forge-plan/1",
        "action": gate.action.as_str(),
        "seconds": gate.wait_s(),
        "quota": plan.resource.map(Resource::as_str),
        "command": plan.command,
        "capped": gate.capped,
        "cause": cause,
    })
}

/// Cuts every log to its bound, and returns how many lines each has lost, by its file's name.
///
/// # Errors
/// `EFORGE_STATE`: a log cannot be read or written.
pub fn trim(context: &Context) -> Result<Value> {
    let state = state_folder(context)?;
    let rings =
        [observations::ring(state), records::quota(state), records::ratelimit(state), records::budget(state)];
    let mut lost = serde_json::Map::new();
    for ring in rings {
        let cut = ring.cut().map_err(|e| Error::state("trim", ring.path(), e))?;
        let name = ring.path().file_name().unwrap_or_default().to_string_lossy();
        lost.insert(name.into_owned(), cut.into());
    }
    Ok(json!({ "schema": "bob-forge-trim/1", "removed": lost }))
}

/// A log that cannot be read counts as empty: the report shows what there is.
fn gather(context: &Context) -> Result<Report> {
    let state = state_folder(context)?;
    // An older shim appends without a lock and without a bound.
    let _ = trim(context);
    let (reading, observed) = (budget::read(state), observations::read(state).unwrap_or_default());
    let files = Files {
        reading: &reading,
        reads: &records::reads(state).unwrap_or_default(),
        observations: &observed.rows,
        limited: &records::limited(state).unwrap_or_default(),
        entries: &records::entries(state).unwrap_or_default(),
        ledger: &ledger::read(state).unwrap_or_default(),
    };
    Ok(report(&files, &context.settings.budget, context.clock.now_s()))
}

fn plan_of(context: &Context, args: &[OsString]) -> Plan {
    settle(judge(args, &GhEnv::of(context)), context, context.cwd.as_deref())
}
