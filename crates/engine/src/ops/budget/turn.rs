//! One call's way through the gate, and back to it after a rate-limited answer.
//!
//! A call that need not wait reads two small files and takes a slot in the ledger: no JSON, no thread, no
//! process, unless the quota has to be read again. Whatever fails here lets the call go.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::messages;
use super::refresh::{Asking, Refreshed, refresh};
use crate::decide::backoff::{Answer, backoff, may_retry};
use crate::decide::gate::{Action, Cause, Closed, Gate, Scene, Slot, gate};
use crate::decide::plan::Plan;
use crate::decide::quota::{Entry, Event};
use crate::decide::reading::Reading;
use crate::decide::resource::Resource;
use crate::decide::signal::{Limit, Outcome, Signal};
use crate::process::{ambient, clock, kernel, signals, sleep::Slept};
use crate::settings::Settings;
use crate::settings::budget::Budget;
use crate::store::{budget, hold, ledger, records};

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
    calling: Calling<'a>,
    settings: Settings,
    state: PathBuf,
    resource: Resource,
    /// How far the time that counts is ahead of the clock.
    ahead_ms: u64,
    began_s: u64,
    /// When it was last let go, in epoch milliseconds.
    sent_ms: u64,
    waited_ms: u64,
    backed_off_ms: u64,
    retries: u32,
    has_ticket: bool,
    /// A wait ended here: an older reading is the last window's, in epoch seconds.
    stale_before_s: Option<u64>,
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

    /// Decides over everything that is on file, and takes the call's slots when it goes. With the moment that
    /// was decided at, in epoch milliseconds.
    ///
    /// # Errors
    /// This signal came while another process held the ledger.
    fn look(&mut self) -> Result<(Gate, Closed, u64), i32> {
        let reading = self.reading();
        if let Some(signal) = signals::received() {
            return Err(signal);
        }
        let closed = hold::read(&self.state)[self.resource];
        let now_ms = self.now_ms();
        let now = ledger::Now {
            s: now_ms / 1_000,
            window_s: self.budget().rate_window_s,
            interrupted: &|| signals::received().is_some(),
        };
        let decide = |rows: &[Slot]| gate(&self.scene(&reading, closed, rows, now_ms));
        let decided = ledger::take(&self.state, now, |rows| {
            let gate = decide(rows);
            let slots = if gate.lets_through() { self.slots(now.s) } else { Vec::new() };
            (gate, slots)
        });
        match (decided, signals::received()) {
            (Ok(gate), _) => Ok((gate, closed, now_ms)),
            (Err(e), Some(signal)) if e.kind() == io::ErrorKind::Interrupted => Err(signal),
            // The ledger fails open; the quotas still count.
            (Err(_), _) => Ok((decide(&[]), closed, now_ms)),
        }
    }

    fn scene<'s>(&'s self, reading: &'s Reading, closed: Closed, rows: &'s [Slot], now_ms: u64) -> Scene<'s> {
        Scene {
            resource: Some(self.resource),
            extra: self.calling.plan.extra,
            reading,
            closed,
            ledger: rows,
            budget: self.budget(),
            interactive: self.is_interactive(),
            now_ms,
            waited_ms: self.waited_ms,
            has_ticket: self.has_ticket,
        }
    }

    /// One slot for the quota the call spends, and one for every further call it makes.
    fn slots(&self, at: u64) -> Vec<Slot> {
        let background = self.budget().background;
        let slot = |resource| Slot { at, resource, background };
        let mut slots = vec![slot(self.resource)];
        for (resource, calls) in self.calling.plan.extra {
            slots.extend((0..*calls).map(|_| slot(*resource)));
        }
        slots
    }

    /// What is on file about the quotas, read again when it is due or when a wait has ended.
    fn reading(&mut self) -> Reading {
        let now_s = self.now_ms() / 1_000;
        let (floor, ttl_s) = (self.budget().floor, self.budget().ttl_s);
        let (ahead_s, began_s) = (self.ahead_ms / 1_000, self.began_s);
        // A reading of this call's own time moves with it.
        let shift =
            |at: Option<u64>| at.map(|at| if at >= began_s { at.saturating_add(ahead_s) } else { at });
        let moved = move |reading: Reading| Reading {
            fetched_at: shift(reading.fetched_at),
            tried_at: shift(reading.tried_at),
            ..reading
        };
        let stale_before_s = self.stale_before_s.take();
        let is_due = |reading: &Reading| {
            let reading = moved(*reading);
            let is_stale = stale_before_s.is_some_and(|s| reading.fetched_at.is_none_or(|at| at < s));
            is_stale || reading.is_due(&floor, ttl_s, now_s)
        };
        let on_file = budget::read(&self.state);
        if !is_due(&on_file) {
            return moved(on_file);
        }
        let asking = Asking {
            state: &self.state,
            gh: self.calling.gh,
            env: &ambient::environment(),
            timeout: Duration::from_secs(self.settings.probe_timeout_s),
            now_s: clock::now_s(),
        };
        match refresh(&asking, is_due) {
            Ok(Refreshed::Read(reading)) => {
                self.log_refresh(Event::Refresh, &reading);
                moved(reading)
            }
            Ok(Refreshed::Known(reading)) => moved(reading),
            Ok(Refreshed::Busy) => moved(on_file),
            Ok(Refreshed::Unreadable) => {
                self.log_refresh(Event::RefreshUnreadable, &Reading::default());
                Reading::default()
            }
            Err(_) => Reading::default(),
        }
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

    fn log(&self, event: Event, seconds: u64, gate: Option<&Gate>) {
        let (quota, remaining) = match gate.map(|gate| gate.cause) {
            Some(Cause::Low { remaining, .. }) => (self.resource, Some(remaining)),
            Some(Cause::Rate { resource, count, .. }) => (resource, Some(count)),
            _ => (self.resource, budget::read(&self.state).quotas[self.resource].map(|q| q.remaining)),
        };
        self.write(event, quota, remaining, seconds);
    }

    fn log_refresh(&self, event: Event, reading: &Reading) {
        self.write(event, self.resource, reading.quotas[self.resource].map(|q| q.remaining), 0);
    }

    fn write(&self, event: Event, quota: Resource, remaining: Option<u64>, seconds: u64) {
        let (quota, subcommand) = (quota.as_str().to_string(), self.calling.plan.command.to_string());
        let entry = Entry { at: clock::now_s(), event, quota, remaining, seconds, subcommand };
        // What could not be written down has happened all the same.
        let _ = records::append_entry(&self.state, &entry);
    }

    fn is_closed(&self) -> bool {
        hold::read(&self.state)[self.resource].until_ms > self.now_ms()
    }

    fn passes_deadline(&self, wait_ms: u64) -> bool {
        let deadline_ms = self.budget().deadline.map(|deadline| deadline.saturating_mul(1_000));
        deadline_ms.is_some_and(|deadline_ms| self.now_ms().saturating_add(wait_ms) > deadline_ms)
    }

    fn is_interactive(&self) -> bool {
        self.budget().interactive.unwrap_or(self.calling.terminal)
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms() + self.ahead_ms
    }

    fn budget(&self) -> &Budget {
        &self.settings.budget
    }
}

fn interrupted(slept: Slept) -> Option<i32> {
    match slept {
        Slept::Interrupted(signal) => Some(signal),
        Slept::Whole { .. } => None,
    }
}
