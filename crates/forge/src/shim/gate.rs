//! The gate before gh, and the way back to it after a rate-limited answer (#3190).

use std::path::Path;

use engine::decide::plan::Plan;
use engine::decide::signal::{Ended, Outcome};
use engine::ops::budget::{Again, Around, Calling, Passage, REFUSED, Turn};
use engine::process::invocation::{Invocation, Stderr, variable};
use engine::process::run::{Hold, Ran};
use engine::process::signals::Watch;
use engine::process::{exit, signals, sleep};
use engine::settings::Settings;

use super::effects::shielded;
use super::queue::Spool;

/// The budget's side of one call; nothing at all for a call that is never gated.
pub struct Gate<'a> {
    turn: Option<Turn<'a>>,
    waiting: Waiting<'a>,
}

impl<'a> Gate<'a> {
    /// A gate for this call.
    pub fn new(
        invocation: &Invocation,
        plan: &'a Plan,
        gh: &'a Path,
        watch: &'a Watch,
        spool: &'a Spool,
    ) -> Gate<'a> {
        let streams = invocation.streams;
        let terminal = streams.stdin_is_terminal && streams.stderr == Stderr::Terminal;
        let calling = Calling { plan, gh, terminal, captured_stdin: spool.stdin().is_some() };
        let found = shielded(|| {
            let settings = Settings::read(&variable);
            (Turn::new(calling, &settings), settings.budget.sleep)
        });
        let (turn, program) = found.unwrap_or_default();
        Gate { turn, waiting: Waiting { watch, program, spool } }
    }

    /// Returns when the call may go; false when its caller gives up before that. Ends this process when it
    /// may not go, or when a signal ended its wait.
    pub fn pass(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return true };
        // A defect of ours lets the call go, without the gate from here on.
        match shielded(|| turn.pass(&mut self.waiting)) {
            Some(Passage::Go) => match signals::received() {
                // It came between the wait and gh: the write is still in the queue, and safer there.
                Some(signal) if self.waiting.spool.is_journalled() => self.cut_short(signal),
                _ => return true,
            },
            Some(Passage::OutOfTime) => return false,
            Some(Passage::Refused) => {
                // 75 says that nothing was made and nothing will be.
                self.waiting.spool.take_back();
                exit::end_as(Ended::Code(REFUSED))
            }
            Some(Passage::Interrupted(signal)) => self.cut_short(signal),
            None => self.turn = None,
        }
        true
    }

    /// What has to be held back so that a rate-limited attempt can be dropped. `gh api` prints the forge's
    /// error on standard output too: a retried call must not print it twice.
    pub fn hold(&self, plan: &Plan) -> Hold {
        match &self.turn {
            Some(turn) if turn.may_retry() && plan.command.starts_with("api") => Hold::All,
            Some(turn) if turn.may_retry() => Hold::Messages,
            _ => Hold::Nothing,
        }
    }

    /// Whether the call is made again. Returns after the wait for it; ends this process when a signal ended
    /// that wait.
    pub fn again(&mut self, outcome: Option<&Outcome>, ran: &Ran) -> bool {
        let (Some(turn), Some(outcome)) = (&mut self.turn, outcome) else { return false };
        match shielded(|| turn.after(outcome, !ran.has_flowed(), &mut self.waiting)) {
            Some(Again::Yes) => true,
            Some(Again::Interrupted(signal)) => self.cut_short(signal),
            Some(Again::No) | None => false,
        }
    }

    /// A signal ended the wait, or came on the way out of it: what was queued before it stays queued, and
    /// that is said.
    fn cut_short(&self, signal: i32) -> ! {
        self.waiting.spool.promise_journalled();
        exit::end_as(Ended::Signal(signal))
    }
}

/// How this process waits.
struct Waiting<'a> {
    watch: &'a Watch,
    program: Option<std::ffi::OsString>,
    spool: &'a Spool,
}

impl Around for Waiting<'_> {
    fn say(&mut self, line: &str) {
        exit::say(line);
    }

    fn sleep(&mut self, ms: u64) -> sleep::Slept {
        sleep::sleep(self.watch, ms, self.program.as_deref())
    }

    fn before_wait(&mut self, _wait_s: u64) {
        self.spool.journal();
    }
}
