//! What a call goes by: the quotas, the hold and the ledger as they are on file, read again when it is due;
//! and what it writes down about itself.

use std::io;
use std::time::Duration;

use super::refresh::{Asking, Refreshed, refresh};
use super::turn::Turn;
use crate::decide::gate::{Cause, Closed, Gate, Scene, Slot, gate};
use crate::decide::quota::{Entry, Event};
use crate::decide::reading::Reading;
use crate::decide::resource::Resource;
use crate::process::{ambient, clock, signals};
use crate::store::{budget, hold, ledger, records};

impl Turn<'_> {
    /// Decides over everything that is on file, and takes the call's slots when it goes. With the moment that
    /// was decided at, in epoch milliseconds.
    ///
    /// # Errors
    /// This signal came while another process held the ledger.
    pub(super) fn look(&mut self) -> Result<(Gate, Closed, u64), i32> {
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
        let patience_ms = self.settings.probe_timeout_s.saturating_mul(1_000);
        // The call itself needs time too.
        let timeout_ms = self.left_ms().map_or(patience_ms, |left_ms| patience_ms.min(left_ms / 2));
        if timeout_ms == 0 {
            return moved(on_file);
        }
        let asking = Asking {
            state: &self.state,
            gh: self.calling.gh,
            env: &ambient::environment(),
            timeout: Duration::from_millis(timeout_ms),
            is_hurried: timeout_ms < patience_ms,
            now_s: clock::now_s(),
        };
        match refresh(&asking, is_due) {
            Ok(Refreshed::Read(reading)) => {
                self.log_refresh(Event::Refresh, &reading);
                moved(reading)
            }
            Ok(Refreshed::Known(reading)) => moved(reading),
            Ok(Refreshed::Busy | Refreshed::GivenUp) => moved(on_file),
            Ok(Refreshed::Unreadable) => {
                self.log_refresh(Event::RefreshUnreadable, &Reading::default());
                Reading::default()
            }
            Err(_) => Reading::default(),
        }
    }

    pub(super) fn log(&self, event: Event, seconds: u64, gate: Option<&Gate>) {
        let (quota, remaining) = match gate.map(|gate| gate.cause) {
            Some(Cause::Low { remaining, .. }) => (self.resource, Some(remaining)),
            Some(Cause::Rate { resource, count, .. }) => (resource, Some(count)),
            _ => (self.resource, budget::read(&self.state).quotas[self.resource].map(|q| q.remaining)),
        };
        self.write(event, quota, remaining, seconds);
    }

    pub(super) fn log_refresh(&self, event: Event, reading: &Reading) {
        self.write(event, self.resource, reading.quotas[self.resource].map(|q| q.remaining), 0);
    }

    fn write(&self, event: Event, quota: Resource, remaining: Option<u64>, seconds: u64) {
        let (quota, subcommand) = (quota.as_str().to_string(), self.calling.plan.command.to_string());
        let entry = Entry { at: clock::now_s(), event, quota, remaining, seconds, subcommand };
        // What could not be written down has happened all the same.
        let _ = records::append_entry(&self.state, &entry);
    }
}
