//! The report as `bob-forge-quota/1`, whole and compact.

use serde_json::{Map, Value, json};

use super::text::{instant, limit_name};
use super::{HOUR_S, Report, Spender, Standing, WEEK_S, Waits};
use crate::decide::reading::Each;
use crate::decide::resource::Resource;

/// The document. Every surface shows this one.
pub fn to_json(report: &Report) -> Value {
    let budget = &report.budget;
    json!({
        "schema": "bob-forge-quota/1",
        "checkedAt": report.now_s,
        "fetchedAt": report.fetched_at,
        "ageSeconds": report.fetched_at.map(|at| report.now_s.saturating_sub(at)),
        "quotas": each(|r| report.quotas[r].map_or(Value::Null, |standing| quota(report, r, &standing))),
        "rates": each(|r| {
            let rate = report.rates[r];
            json!({
                "window": budget.rate_window_s,
                "count": rate.count,
                "background": rate.background,
                "ceiling": rate.ceiling,
                "backgroundShare": rate.share,
                "backgroundDeferred": rate.deferred,
            })
        }),
        "spentBy": {
            "window": HOUR_S,
            "calls": report.spenders.iter().map(|s| s.calls).sum::<u64>(),
            "callers": report.spenders.iter().map(spender).collect::<Vec<_>>(),
        },
        "heldBack": held_back(report),
        "rateLimited": {
            "window": WEEK_S,
            "count": report.limited,
            "target": 0,
            "defect": report.limited > 0,
            "last": report.last_limited.as_ref().map(|last| json!({
                "epoch": last.at,
                "at": instant(last.at),
                "quota": last.quota,
                "subcommand": last.subcommand,
                "caller": last.caller,
                "session": last.session,
                "limit": limit_name(last.limit),
            })),
        },
    })
}

/// The form that the fleet snapshot carries a machine.
pub fn compact(report: &Report) -> Value {
    let quota = |r: Resource| {
        report.quotas[r].map_or(Value::Null, |Standing { quota, state, .. }| {
            json!({
                "remaining": quota.remaining,
                "limit": quota.limit,
                "resetAt": quota.reset_at,
                "state": state.as_str(),
            })
        })
    };
    json!({
        "schema": "bob-forge-quota-compact/1",
        "fetchedAt": report.fetched_at,
        "graphql": quota(Resource::Graphql),
        "core": quota(Resource::Core),
        "search": quota(Resource::Search),
        "callers": report.spenders.iter().map(|s| json!({ "caller": s.caller, "calls": s.calls }))
            .collect::<Vec<_>>(),
        "rateLimited": report.limited,
    })
}

fn quota(report: &Report, resource: Resource, standing: &Standing) -> Value {
    let Standing { quota, state, spent } = *standing;
    json!({
        "limit": quota.limit,
        "remaining": quota.remaining,
        "used": quota.used,
        "resetAt": quota.reset_at,
        "resetInSeconds": quota.reset_at.saturating_sub(report.now_s),
        "state": state.as_str(),
        "floor": report.budget.floor[resource],
        "pace": report.budget.pace[resource],
        "spentLastHour": spent,
    })
}

fn spender(spender: &Spender) -> Value {
    let Spender { caller, session, calls, cost, rate_limited } = spender;
    let Each { graphql, core, search } = cost;
    json!({
        "caller": caller,
        "session": if session == "-" { None } else { Some(session) },
        "calls": calls,
        "cost": { "graphql": graphql, "core": core, "search": search },
        "rateLimited": rate_limited,
    })
}

fn held_back(report: &Report) -> Value {
    let held = &report.held_back;
    let waits = |waits: &Waits| json!({ "count": waits.count, "seconds": waits.seconds });
    json!({
        "window": HOUR_S,
        "waits": waits(&held.waits),
        "paced": waits(&held.paced),
        "retries": waits(&held.retries),
        "holds": waits(&held.holds),
        "defers": waits(&held.defers),
        "refused": held.refused,
        "capped": held.capped,
    })
}

fn each(value: impl Fn(Resource) -> Value) -> Value {
    let named = |r: Resource| (r.as_str().to_string(), value(r));
    Value::Object(Resource::ALL.into_iter().map(named).collect::<Map<_, _>>())
}
