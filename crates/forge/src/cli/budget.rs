//! `forge budget`.

use std::ffi::OsString;
use std::fmt::Display;

use engine::decide::resource::Resource;
use engine::error::Error;
use engine::ops::{Context, budget};
use serde_json::{Value, json};

use super::args::{Budget, BudgetCall, BudgetStatus, BudgetVerb, Json};
use super::{Ended, Output, measure, render};

/// The exit code of a refresh that the forge did not answer.
const UNREADABLE: u8 = 3;

/// Runs one verb; without one it is `status`.
pub fn run(context: &Context, noun: Budget, output: &mut Output) -> Ended {
    match noun.verb {
        None => status(context, &noun.status, output),
        Some(BudgetVerb::Status(args)) => status(context, &args, output),
        Some(BudgetVerb::Doctor(args)) => doctor(context, &args, output),
        Some(BudgetVerb::Refresh(args)) => refresh(context, &args, output),
        Some(BudgetVerb::Plan(args)) => plan(context, &args, output),
        Some(BudgetVerb::Resource(args)) => resource(context, &args, output),
        Some(BudgetVerb::Trim(args)) => trim(context, &args, output),
        Some(BudgetVerb::Measure(args)) => measure::run(context, &args, output),
    }
}

fn status(context: &Context, args: &BudgetStatus, output: &mut Output) -> Ended {
    output.stderr.push_str(&render::ignored_settings(&context.settings));
    output.stdout = match (args.compact, args.json) {
        (true, _) => line(budget::compact(context)?),
        (false, true) => line(budget::document(context)?),
        (false, false) => budget::lines(context)?.iter().map(|text| line(render::plain(text))).collect(),
    };
    Ok(0)
}

fn doctor(context: &Context, args: &Json, output: &mut Output) -> Ended {
    let (level, text) = budget::doctor_line(context)?;
    output.stdout = match args.json {
        true => line(json!({ "schema": "bob-forge-doctor/1", "level": level.as_str(), "text": text })),
        false => line(format!("{} {}", level.as_str(), render::plain(&text))),
    };
    Ok(0)
}

fn refresh(context: &Context, args: &Json, output: &mut Output) -> Ended {
    let answered = budget::refresh(context)?;
    output.stdout = match (args.json, answered) {
        (true, _) => line(json!({ "schema": "bob-forge-refresh/1", "refreshed": answered })),
        (false, true) => line("forge: the quota is read"),
        (false, false) => line("forge: the quota cannot be read; run `gh api rate_limit` to see why"),
    };
    Ok(if answered { 0 } else { UNREADABLE })
}

fn plan(context: &Context, args: &BudgetCall, output: &mut Output) -> Ended {
    let plan = budget::plan(context, without_gh(&args.args)?)?;
    output.stdout = line(if args.json { plan.to_string() } else { described(&plan) });
    Ok(0)
}

/// gh's arguments; the word `gh` before them is a slip that would be read as a command of gh.
fn without_gh(args: &[OsString]) -> Result<&[OsString], Error> {
    match args.first() {
        Some(word) if word == "gh" => {
            Err(Error::usage("leave out gh itself: only its arguments stand after --"))
        }
        _ => Ok(args),
    }
}

fn described(plan: &Value) -> String {
    let text = |name: &str| plan[name].as_str().unwrap_or("-").to_string();
    let cause = &plan["cause"];
    let why = match cause["kind"].as_str() {
        Some("low") => format!("{} left, under {}", cause["remaining"], cause["line"]),
        Some("closed") => "closed after a rate-limited answer".into(),
        Some("rate") => format!("{} call(s) in the window, bound {}", cause["count"], cause["bound"]),
        _ if plan["quota"].is_null() => "it spends no quota".into(),
        _ => "nothing is in the way".into(),
    };
    let seconds = match plan["seconds"].as_u64() {
        Some(0) | None => String::new(),
        Some(s) => format!(" {s}s"),
    };
    let (action, command) = (text("action"), text("command"));
    let on = plan["quota"].as_str().map_or(String::new(), |quota| format!(" on {quota}"));
    format!("{action}{seconds}: {command}{on} — {why}")
}

fn resource(context: &Context, args: &BudgetCall, output: &mut Output) -> Ended {
    let resource = budget::resource_for(context, without_gh(&args.args)?).map(Resource::as_str);
    output.stdout = match args.json {
        true => line(json!({ "schema": "bob-forge-resource/1", "resource": resource })),
        false => line(resource.unwrap_or("-")),
    };
    Ok(0)
}

fn trim(context: &Context, args: &Json, output: &mut Output) -> Ended {
    let trimmed = budget::trim(context)?;
    let removed: u64 =
        trimmed["removed"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum();
    output.stdout = match args.json {
        true => line(trimmed),
        false => line(format!("forge: {removed} line(s) removed")),
    };
    Ok(0)
}

fn line(text: impl Display) -> String {
    format!("{text}\n")
}
