//! The quota budget through the shim: a scripted gh, and a program that stands in for sleeping.

mod backoff;
mod gate;
mod ledger;
mod real_gh;
mod refresh;
mod report;
mod rows;
mod waits;

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::command::Call;
use crate::support::sandbox::Sandbox;

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// What `gh api rate_limit` answers: GraphQL with this much left, the others full.
fn rate_limit(remaining: u64, reset_at: u64) -> String {
    let used = 5_000 - remaining;
    format!(
        "on api rate_limit\n out {{\"resources\":{{\"core\":{{\"limit\":5000,\"used\":0,\"remaining\":5000,\
         \"reset\":{reset_at}}},\"graphql\":{{\"limit\":5000,\"used\":{used},\"remaining\":{remaining},\"reset\":\
         {reset_at}}},\"search\":{{\"limit\":30,\"used\":0,\"remaining\":30,\"reset\":{reset_at}}}}}}}\n"
    )
}

/// A sandbox whose gh has a quota and answers everything else.
fn answering(remaining: u64, reset_in_s: u64) -> Sandbox {
    with(&(rate_limit(remaining, now_s() + reset_in_s) + "on *\n out answer\\n\n"))
}

/// A sandbox with a program that stands in for sleeping and writes down for how long.
fn with(script: &str) -> Sandbox {
    let sandbox = Sandbox::new(script);
    // A project of its own: a read that fails is not answered from the cache of the checkout around it.
    sandbox.checkout("acme/widget");
    sandbox.shell("nap", "echo \"$1\" >> \"$0.log\"");
    sandbox
}

/// `gh LINE` with the budget on and no real sleep.
fn gh<'s>(sandbox: &'s Sandbox, line: &str) -> Call<'s> {
    let args: Vec<&str> = line.split_whitespace().collect();
    sandbox.gh(&args).env("BOB_FORGE_BUDGET", "1").env("BOB_FORGE_SLEEP", sandbox.path("nap"))
}

/// How long was slept, wait by wait.
fn naps(sandbox: &Sandbox) -> Vec<String> {
    lines(&sandbox.path("nap.log"))
}

fn lines(path: &std::path::Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(String::from).collect()
}

/// The budget's log: event, quota, remaining, seconds, subcommand.
fn events(sandbox: &Sandbox) -> Vec<String> {
    let line = |line: String| line.split_once('\t').unwrap().1.replace('\t', " ");
    lines(&sandbox.state().join("budget.log")).into_iter().map(line).collect()
}

/// The events that are no refresh.
fn waits(sandbox: &Sandbox) -> Vec<String> {
    events(sandbox).into_iter().filter(|event| !event.starts_with("refresh ")).collect()
}

/// How often gh was asked for the quota, and for anything else.
fn calls(sandbox: &Sandbox) -> (usize, usize) {
    let all = sandbox.calls();
    let asked =
        all.iter().filter(|call| call.words().ends_with(&["api".into(), "rate_limit".into()])).count();
    (asked, all.len() - asked)
}

/// Fills the ledger with calls, `age_s` seconds old.
fn ledger(sandbox: &Sandbox, calls: usize, quota: &str, kind: &str, age_s: u64) {
    let line = format!("{}\t{quota}\t{kind}\n", now_s() - age_s);
    sandbox.file("bob/forge/rate.log", line.repeat(calls));
}

fn hh_mm(epoch_s: u64) -> String {
    format!("{:02}:{:02}", epoch_s / 3_600 % 24, epoch_s / 60 % 60)
}
