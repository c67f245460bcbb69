//! One call through the shim:
//! argv → plan → gate → run → classify → record → fall back → drain → exit.
//!
//! Before gh has started, whatever fails on our side ends in becoming gh ([`effects::shielded`]).
//! After it has started there is no error to return: what is recorded or not changes nothing.

mod effects;
mod fall_back;
mod gate;
mod recorder;

use std::path::Path;

use engine::decide::plan::{GhEnv, Kind, Plan, plan};
use engine::decide::signal::{Outcome, classify};
use engine::ops::record::{Call, record};
use engine::process::clock;
use engine::process::invocation::{Invocation, variable};
use engine::process::run::{Ran, Request, run};
use engine::process::signals::Watch;

use effects::{become_gh, depth, real_gh, shielded};
use fall_back::Reading;
use gate::Gate;

/// Carries one call through and ends this process as gh ended.
pub fn carry(invocation: &Invocation) -> ! {
    recorder::note(invocation);
    let depth = depth();
    let gh = real_gh();
    match shielded(|| judge(invocation)) {
        Some(plan) if plan.kind != Kind::Offline => watch(invocation, &gh, &plan, depth),
        // An offline call works with the network unplugged: its success says nothing about the forge.
        _ => become_gh(invocation, &gh, depth),
    }
}

fn judge(invocation: &Invocation) -> Plan {
    plan(invocation.args(), &GhEnv::of(&variable))
}

fn watch(invocation: &Invocation, gh: &Path, plan: &Plan, depth: u32) -> ! {
    let Ok(signals) = Watch::install() else { become_gh(invocation, gh, depth) };
    let mut reading = Reading::new(invocation, plan);
    let mut gate = Gate::new(invocation, plan, gh, &signals);
    let request = Request {
        program: gh,
        argv: &invocation.argv,
        depth,
        streams: invocation.streams,
        hold: reading.hold(gate.hold(plan)),
        stdin: None,
    };
    loop {
        if !gate.pass() {
            reading.instead(&signals);
        }
        reading.start();
        let Ok(ran) = run(&request, &signals) else { become_gh(invocation, gh, depth) };
        let outcome = shielded(|| learn(invocation, plan, &ran));
        if !gate.again(outcome.as_ref(), &ran) {
            reading.end(outcome, ran)
        }
        ran.discard();
    }
}

fn learn(invocation: &Invocation, plan: &Plan, ran: &Ran) -> Outcome {
    let outcome = classify(ran.ended, &ran.said(), invocation.args());
    let call = Call { plan, ended: ran.ended, ms: ran.ms, outcome, now_s: clock::now_s() };
    // No state folder, a full disk, no rights: the call has been made, and that is what counts.
    let _ = record(call, &variable, invocation.cwd.as_deref());
    outcome
}
