//! One call's way through the gate, and back to it after a rate-limited answer.
//!
//! A call that need not wait reads two small files and takes a slot in the ledger: no JSON, no thread, no
//! process, unless the quota has to be read again. Whatever fails here lets the call go.

use std::path::{Path, PathBuf};

use super::messages;
use crate::decide::backoff::{Answer, backoff, may_retry};
use crate::decide::gate::{Action, Closed, Gate};
use crate::decide::plan::Plan;
use crate::decide::quota::Event;
use crate::decide::resource::Resource;
use crate::decide::signal::{Limit, Outcome, Signal};
use crate::process::{clock, kernel, signals, sleep::Slept};
use crate::settings::Settings;
use crate::settings::budget::Budget;
use crate::store::{budget, hold};

/// What the gate's surroundings do for it.
pub trait Around {
    /// Shows one line on standard error.
    fn say(&mut self, line: &str);
    /// Waits this many milliseconds.
    fn sleep(&mut self, ms: u64) -> Slept;
    /// The call is about to wait this many seconds, once it is longer than
    /// [`Budget::journal_after_s`]: the moment to make sure that nothing is lost when the caller gives up.
    fn before_wait(&mut self, wait_s: u64);
}

/// The call.
#[derive(Clone, Copy, Debug)]
pub struct Calling<'a> {
    /// What it is.
    pub plan: &'a Plan,
    /// The real gh.
    pub gh: &'a Path,
    /// Whether standard input and standard error are both a terminal.
    pub terminal: bool,
    /// Whether the shim has taken the call's standard input and can feed it again.
    pub captured_stdin: bool,
}

/// How a call leaves the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It goes.
    Go,
    /// It ends with [`REFUSED`](super::REFUSED).
    Refused,
    /// Its caller gives up before it could go.
    OutOfTime,
    /// This signal ended its wait.
    Interrupted(i32),
}

/// What follows on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The call is made again; it has to pass the gate first.
    Yes,
    /// The answer stands.
    No,
    /// This signal ended the wait for it.
    Interrupted(i32),
}

/// The budget's memory of one call.
#[derive(Debug)]
pub struct Turn<'a> {
    pub(super) calling: Calling<'a>,
    pub(super) settings: Settings,
    pub(super) state: PathBuf,
    pub(super) resource: Resource,
    /// How far the time that counts is ahead of the clock.
    pub(super) ahead_ms: u64,
    pub(super) began_s: u64,
    /// When it was last let go, in epoch milliseconds.
    sent_ms: u64,
    pub(super) waited_ms: u64,
    backed_off_ms: u64,
    retries: u32,
    pub(super) has_ticket: bool,
    /// A wait ended here: an older reading is the last window's, in epoch seconds.
    pub(super) stale_before_s: Option<u64>,
    has_said_rate: bool,
    has_warned: bool,
}

impl<'a> Turn<'a> {
    /// `None` for a call that is never gated: it spends no quota, the budget is off, or there is no place
    /// for its files.
    pub fn new(calling: Calling<'a>, settings: &Settings) -> Option<Turn<'a>> {
        let resource = calling.plan.resource.filter(|_| settings.budget.enabled)?;
        Some(Turn {
            calling,
            settings: settings.clone(),
            state: settings.state.clone()?,
            resource,
            ahead_ms: 0,
            began_s: clock::now_s(),
            sent_ms: 0,
            waited_ms: 0,
            backed_off_ms: 0,
            retries: 0,
            has_ticket: false,
            stale_before_s: None,
            has_said_rate: false,
            has_warned: false,
        })
    }

    /// Whether the call would be made again after a rate-limited answer.
    pub fn may_retry(&self) -> bool {
        may_retry(self.calling.plan, self.is_interactive(), self.calling.captured_stdin)
    }

    /// Waits until the call may go.
    pub fn pass(&mut self, around: &mut dyn Around) -> Passage {
        let passage = self.wait_for_turn(around);
        self.sent_ms = self.now_ms();
        passage
    }

    fn wait_for_turn(&mut self, around: &mut dyn Around) -> Passage {
        loop {
            let (gate, closed, asked_ms) = match self.look() {
                Ok(seen) => seen,
                Err(signal) => return Passage::Interrupted(signal),
            };
            let slept = match gate.action {
                Action::Run => {
                    self.note_what_is_low(&gate, around);
                    return Passage::Go;
                }
                Action::Pace => {
                    self.log(Event::Pace, gate.wait_s(), Some(&gate));
                    let slept = self.sleep(gate.wait_ms, around);
                    // Somebody may have met a limit meanwhile: then it is back to the line.
                    if interrupted(slept).is_none() && !self.is_closed() {
                        return Passage::Go;
                    }
                    slept
                }
                Action::Refuse => {
                    self.log(Event::Refuse, 0, Some(&gate));
                    around.say(&messages::refused(&gate, self.budget()));
                    return Passage::Refused;
                }
                Action::GiveUp => return Passage::OutOfTime,
                Action::Wait => match self.wait(&gate, closed, asked_ms, around) {
                    Some(slept) => slept,
                    None => return Passage::OutOfTime,
                },
                Action::Hold | Action::Defer => self.hold(&gate, around),
            };
            if let Some(signal) = interrupted(slept) {
                return Passage::Interrupted(signal);
            }
        }
    }

    /// What follows on how the call ended. A rate-limited answer closes its quota for every caller on the
    /// machine, whether this call is made again or not.
    pub fn after(&mut self, outcome: &Outcome, can_replace: bool, around: &mut dyn Around) -> Again {
        if outcome.signal != Signal::RateLimit {
            return Again::No;
        }
        let limit = outcome.limit.unwrap_or(Limit::Primary);
        let asked = signals::received().is_none() && can_replace && self.may_retry();
        let now_ms = self.now_ms();
        let decide = |strikes: u32| {
            let retries = self.retries.max(strikes);
            backoff(&self.answer(limit, outcome.retry_after_s, retries, now_ms), self.budget())
        };
        let closed = hold::update(&self.state, self.resource, |closed| {
            let decided = decide(closed.strike(self.sent_ms, now_ms));
            let opens_ms = now_ms.saturating_add(decided.wait_ms);
            closed.close(opens_ms);
            (decided, if asked && decided.again { closed.line_up(closed.until_ms) } else { opens_ms })
        });
        // A hold that cannot be written down is this call's own.
        let (decided, opens_ms) = closed.unwrap_or_else(|_| {
            let decided = decide(0);
            (decided, now_ms.saturating_add(decided.wait_ms))
        });
        let wait_ms = opens_ms.saturating_sub(now_ms);
        if !asked {
            return Again::No;
        }
        let fits =
            self.backed_off_ms.saturating_add(wait_ms) <= decided.bound_ms && !self.passes_deadline(wait_ms);
        if !(decided.again && fits) {
            self.log(Event::BackoffCapped, 0, None);
            return Again::No;
        }
        self.retry(limit, wait_ms, around)
    }

    fn retry(&mut self, limit: Limit, wait_ms: u64, around: &mut dyn Around) -> Again {
        let wait_s = wait_ms.div_ceil(1_000);
        around.say(&messages::retrying(self.resource, limit, wait_s));
        self.log(Event::Backoff, wait_s, None);
        let opens_s = self.now_ms().saturating_add(wait_ms) / 1_000;
        if let Some(signal) = interrupted(self.long_sleep(wait_ms, around)) {
            return Again::Interrupted(signal);
        }
        self.backed_off_ms += wait_ms;
        self.retries += 1;
        self.has_ticket = true;
        self.stale_before_s = (limit == Limit::Primary).then_some(opens_s);
        Again::Yes
    }

    fn answer(&self, limit: Limit, retry_after_s: Option<u64>, retries: u32, now_ms: u64) -> Answer {
        let reset_at = budget::read(&self.state).quotas[self.resource].map(|quota| quota.reset_at);
        let backed_off_ms = self.backed_off_ms;
        Answer { limit, retry_after_s, reset_at, retries, backed_off_ms, now_ms }
    }

    /// Waits for the quota to open, each caller for a moment of its own; `None` when its caller gives up
    /// before that.
    fn wait(&mut self, gate: &Gate, closed: Closed, asked_ms: u64, around: &mut dyn Around) -> Option<Slept> {
        let now_ms = self.now_ms();
        let opens_ms = asked_ms.saturating_add(gate.wait_ms);
        // Whoever has waited already goes first: its moment was given before.
        let base_ms = if self.has_ticket { opens_ms } else { opens_ms.max(closed.line_ms) };
        let ticket_ms =
            hold::update(&self.state, self.resource, |closed| closed.line_up(opens_ms)).unwrap_or(base_ms);
        let wait_ms = ticket_ms.saturating_sub(now_ms);
        if self.passes_deadline(wait_ms) {
            return None;
        }
        let wait_s = wait_ms.div_ceil(1_000);
        let line = messages::waiting(self.resource, gate.cause, wait_s, self.budget(), kernel::local_time);
        around.say(&line);
        self.log(Event::Wait, wait_s, Some(gate));
        let slept = self.long_sleep(wait_ms, around);
        self.waited_ms += wait_ms;
        self.has_ticket = true;
        self.stale_before_s = Some(opens_ms / 1_000);
        Some(slept)
    }

    /// Waits for room in the window.
    fn hold(&mut self, gate: &Gate, around: &mut dyn Around) -> Slept {
        if !self.has_said_rate {
            let (wait_s, budget) = (gate.wait_s(), self.budget());
            let line = messages::waiting(self.resource, gate.cause, wait_s, budget, kernel::local_time);
            around.say(&line);
            self.has_said_rate = true;
        }
        let event = if gate.action == Action::Defer { Event::Defer } else { Event::Hold };
        self.log(event, gate.wait_s(), Some(gate));
        self.waited_ms += gate.wait_ms;
        self.long_sleep(gate.wait_ms, around)
    }

    fn note_what_is_low(&mut self, gate: &Gate, around: &mut dyn Around) {
        if gate.capped {
            self.log(Event::WaitCapped, 0, Some(gate));
        } else if !self.has_warned {
            self.has_warned = true;
            if let Some(line) = messages::warning(self.resource, gate.cause, kernel::local_time) {
                around.say(&line);
            }
        }
    }

    fn long_sleep(&mut self, ms: u64, around: &mut dyn Around) -> Slept {
        let wait_s = ms.div_ceil(1_000);
        if wait_s > self.budget().journal_after_s {
            around.before_wait(wait_s);
        }
        self.sleep(ms, around)
    }

    fn sleep(&mut self, ms: u64, around: &mut dyn Around) -> Slept {
        let slept = around.sleep(ms);
        if let Slept::Whole { ahead_ms } = slept {
            self.ahead_ms += ahead_ms;
        }
        slept
    }

    fn is_closed(&self) -> bool {
        hold::read(&self.state)[self.resource].until_ms > self.now_ms()
    }

    fn passes_deadline(&self, wait_ms: u64) -> bool {
        let deadline_ms = self.budget().deadline.map(|deadline| deadline.saturating_mul(1_000));
        deadline_ms.is_some_and(|deadline_ms| self.now_ms().saturating_add(wait_ms) > deadline_ms)
    }

    /// How long the caller still waits, where it says so.
    pub(super) fn left_ms(&self) -> Option<u64> {
        self.budget().left_ms(self.now_ms())
    }

    pub(super) fn is_interactive(&self) -> bool {
        self.budget().interactive.unwrap_or(self.calling.terminal)
    }

    pub(super) fn now_ms(&self) -> u64 {
        clock::now_ms() + self.ahead_ms
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.settings.budget
    }
}

fn interrupted(slept: Slept) -> Option<i32> {
    match slept {
        Slept::Interrupted(signal) => Some(signal),
        Slept::Whole { .. } => None,
    }
}
