//! One call through the shim:
//! argv → plan → gate → run → classify → record → fall back → drain → exit.
//!
//! Before gh has started, whatever fails on our side ends in becoming gh ([`effects::shielded`]).
//! After it has started there is no error to return: what is recorded or not changes nothing.

mod drain;
mod effects;
mod fall_back;
mod gate;
mod queue;
mod recorder;

use std::path::Path;

use engine::decide::plan::{GhEnv, Kind, Plan, plan};
use engine::decide::signal::{Outcome, Signal, classify};
use engine::ops::place::settle;
use engine::ops::record::{Call, record};
use engine::process::invocation::{Invocation, variable};
use engine::process::run::{Ran, Request, run};
use engine::process::signals::Watch;
use engine::process::{clock, exit};

use effects::{become_gh, depth, real_gh, shielded};
use fall_back::Reading;
use gate::Gate;
use queue::Spool;

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
    let plan = plan(invocation.args(), &GhEnv::of(&variable));
    settle(plan, &variable, invocation.cwd.as_deref())
}

fn watch(invocation: &Invocation, gh: &Path, plan: &Plan, depth: u32) -> ! {
    let spool = Spool::take(invocation, plan);
    let Ok(signals) = Watch::install() else { give_up(&spool, invocation, gh, depth) };
    spool.queue_behind();
    let mut reading = Reading::new(invocation, plan, spool.argv());
    let mut gate = Gate::new(invocation, plan, gh, &signals, &spool);
    let request = Request {
        program: gh,
        argv: spool.argv(),
        depth,
        streams: invocation.streams,
        hold: spool.hold(reading.hold(gate.hold(plan))),
        stdin: spool.stdin(),
    };
    loop {
        if !gate.pass() {
            reading.instead(&signals);
            spool.instead();
        }
        spool.take_back();
        spool.start();
        reading.start();
        let Ok(ran) = run(&request, &signals) else { give_up(&spool, invocation, gh, depth) };
        let outcome = shielded(|| learn(invocation, plan, &ran));
        spool.attempted(&ran);
        if outcome.is_some_and(|outcome| outcome.signal == Signal::Ok) {
            spool.landed(invocation, plan, &ran);
        }
        if !gate.again(outcome.as_ref(), &ran) {
            let ended =
                if spool.is_write() { spool.reply(ran, outcome) } else { reading.reply(ran, outcome) };
            spool.explain_handles(outcome);
            drain::after(invocation, outcome);
            exit::end_as(ended)
        }
        ran.discard();
    }
}

/// gh could not be started: this process becomes it, unless it has read what gh would have to read.
fn give_up(spool: &Spool, invocation: &Invocation, gh: &Path, depth: u32) -> ! {
    match spool.stdin() {
        Some(_) => effects::cannot_run(gh),
        None => become_gh(invocation, gh, depth),
    }
}

fn learn(invocation: &Invocation, plan: &Plan, ran: &Ran) -> Outcome {
    let outcome = classify(ran.ended, &ran.said(), invocation.args());
    let call = Call { plan, ended: ran.ended, ms: ran.ms, outcome, now_s: clock::now_s() };
    // No state folder, a full disk, no rights: the call has been made, and that is what counts.
    let _ = record(call, &variable, invocation.cwd.as_deref());
    outcome
}
