//! What a read leaves in the cache, and what it gets from there when the forge cannot be read (#1749).

use std::ffi::OsString;

use engine::decide::plan::Plan;
use engine::decide::signal::{Ended, Outcome, Signal};
use engine::ops::cache::{self, Asked, Came};
use engine::process::invocation::{Invocation, Stderr, variable};
use engine::process::run::{Hold, Ran, answer_without};
use engine::process::signals::Watch;
use engine::process::{clock, exit};

use super::effects::shielded;

type Environment = fn(&str) -> Option<OsString>;
static ENVIRONMENT: Environment = variable;

/// The cache's side of one call; nothing at all for a call that is not cached.
pub struct Reading<'a> {
    asked: Option<Asked<'a, Environment>>,
}

impl<'a> Reading<'a> {
    /// Whether this call's answer is stored and may be replaced. With a terminal on either stream it is
    /// not: one answer is shaped for it, and on the other nobody can see what gh said.
    /// `argv` has every handle that has landed as its number: what is known of that issue goes by it.
    pub fn new(invocation: &'a Invocation, plan: &'a Plan, argv: &'a [OsString]) -> Reading<'a> {
        let streams = invocation.streams;
        let both_seen = !streams.stdout_is_terminal
            && !streams.stdout_is_closed
            && matches!(streams.stderr, Stderr::Own | Stderr::SameAsStdout);
        let applies = both_seen && shielded(|| cache::applies(plan, &ENVIRONMENT)).unwrap_or(false);
        let (args, cwd) = (argv.get(1..).unwrap_or_default(), invocation.cwd.as_deref());
        let asked = Asked { args, plan, env: &ENVIRONMENT, cwd, started_ns: 0 };
        Reading { asked: applies.then_some(asked) }
    }

    /// What has to be held back: the whole answer, so that no part of one that fails reaches the reader
    /// before the stored one.
    pub fn hold(&self, otherwise: Hold) -> Hold {
        if self.asked.is_some() { Hold::AnswerApart } else { otherwise }
    }

    /// An attempt starts now: of two answers, the one that was asked for later is newer.
    pub fn start(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.started_ns = clock::now_ns();
        }
    }

    /// The caller gives up before the call could go (`CONTRACT` section 5): ends this process with what was
    /// known last, and returns when nothing was.
    pub fn instead(&mut self, watch: &Watch) {
        self.start();
        let Some(asked) = &self.asked else { return };
        let now_ns = clock::now_ns();
        let came = Came { signal: Signal::RateLimit, answer: None, said: &[], has_flowed: false, now_ns };
        if let Some(reply) = shielded(|| asked.conclude(came)).flatten() {
            exit::end_as(answer_without(watch, &reply.answer, &reply.marker));
        }
    }

    /// Shows what gh said, or what was known last. Says how this process ends.
    pub fn reply(self, ran: Ran, outcome: Option<Outcome>) -> Ended {
        let reply = self.asked.zip(outcome).and_then(|(asked, outcome)| {
            let said = ran.said();
            let (answer, has_flowed, now_ns) = (ran.answer(), ran.has_flowed(), clock::now_ns());
            let came = Came { signal: outcome.signal, answer, said: &said, has_flowed, now_ns };
            shielded(|| asked.conclude(came)).flatten()
        });
        match reply {
            None => ran.show(),
            Some(reply) => ran.replace(&reply.answer, &reply.marker),
        }
    }
}
