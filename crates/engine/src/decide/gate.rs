//! May a call go now? Quota, hold, ledger and settings → run, pace, wait, hold, defer, refuse (#3190,
//! #3978, `CONTRACT` section 5).

use super::reading::Reading;
use super::resource::Resource;
use crate::settings::budget::Budget;

/// One call in the machine's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When it was let through, in epoch seconds.
    pub at: u64,
    /// The quota it spends.
    pub resource: Resource,
    /// Whether its caller was a background one.
    pub background: bool,
}

/// Until when a quota is closed for everybody on the machine, after a rate-limited answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Nobody goes before this, in epoch milliseconds; 0 for never closed.
    pub until_ms: u64,
    /// The first moment not promised to a waiting caller: newcomers line up behind it. Epoch
    /// milliseconds.
    pub line_ms: u64,
    /// How often in a row the first calls after a hold were limited again.
    pub strikes: u32,
}

/// Callers leave a wait this far apart.
pub const SPACING_MS: u64 = 500;

/// A limit this long after a hold is a new one.
const CALM_MS: u64 = 60_000;

impl Closed {
    /// Gives a caller its moment: not before `opens_ms`, and [`SPACING_MS`] after whoever is in front.
    pub fn line_up(&mut self, opens_ms: u64) -> u64 {
        let ticket_ms = opens_ms.max(self.line_ms);
        self.line_ms = ticket_ms.saturating_add(SPACING_MS);
        ticket_ms
    }

    /// Counts a rate-limited answer to a call that was let go at `sent_ms`, and returns how many holds in a
    /// row have not been long enough. Calls that were on their way when the hold began say nothing about it.
    pub fn strike(&mut self, sent_ms: u64, now_ms: u64) -> u32 {
        if self.until_ms == 0 || now_ms > self.until_ms.saturating_add(CALM_MS) {
            self.strikes = 0;
        } else if sent_ms >= self.until_ms {
            self.strikes = self.strikes.saturating_add(1);
        }
        self.strikes
    }

    /// Closes until `until_ms`, unless it is closed for longer.
    pub fn close(&mut self, until_ms: u64) {
        self.until_ms = self.until_ms.max(until_ms);
    }

    /// When this opens for a caller that has waited for its moment already (`has_ticket`), or not yet.
    fn opens_ms(&self, has_ticket: bool) -> u64 {
        if has_ticket { self.until_ms } else { self.until_ms.max(self.line_ms) }
    }
}

/// Everything a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The quota the call spends; a call that spends none is never gated.
    pub resource: Option<Resource>,
    /// What else it spends: the ledger counts it.
    pub extra: &'a [(Resource, u8)],
    /// What is on file about the quotas.
    pub reading: &'a Reading,
    /// The machine's hold of the call's quota.
    pub closed: Closed,
    /// The calls of the ledger's window; older ones do no harm.
    pub ledger: &'a [Slot],
    /// The settings.
    pub budget: &'a Budget,
    /// Whether a person is waiting: both standard input and standard error are a terminal.
    pub interactive: bool,
    /// The time in epoch milliseconds.
    pub now_ms: u64,
    /// How long this call has waited, in milliseconds.
    pub waited_ms: u64,
    /// Whether the call has waited for the moment that it was given.
    pub has_ticket: bool,
}

/// What a call has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Go at once.
    Run,
    /// One short sleep, then go.
    Pace,
    /// Sleep until the quota is open again, then ask anew.
    Wait,
    /// Sleep until the window has room, then ask anew.
    Hold,
    /// The same for a background call over its share.
    Defer,
    /// End with exit 75: a background call over its share that may not wait.
    Refuse,
    /// The caller will have given up before the wait is over: fall back at once.
    GiveUp,
}

impl Action {
    /// The name that documents and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Run => "run",
            Action::Pace => "pace",
            Action::Wait => "wait",
            Action::Hold => "hold",
            Action::Defer => "defer",
            Action::Refuse => "refuse",
            Action::GiveUp => "give-up",
        }
    }
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing is in the way.
    Free,
    /// Less is left than `line`, the floor or the pace line.
    Low {
        /// Points left.
        remaining: u64,
        /// The line.
        line: u64,
        /// When the window ends, in epoch seconds.
        reset_at: u64,
    },
    /// A rate-limited answer has closed the quota.
    Closed {
        /// Until when, in epoch milliseconds; callers in front included.
        until_ms: u64,
    },
    /// The window is full.
    Rate {
        /// Whose window.
        resource: Resource,
        /// Calls in it.
        count: u64,
        /// How many this caller may find there.
        bound: u64,
        /// How many any caller may find there.
        ceiling: u64,
    },
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// What to do.
    pub action: Action,
    /// For how long to sleep first, in milliseconds.
    pub wait_ms: u64,
    /// Why; with [`Action::Run`], what the caller should know.
    pub cause: Cause,
    /// The wait would have been longer than a call may wait: it goes ahead instead.
    pub capped: bool,
}

impl Gate {
    /// Go, with nothing to say about it.
    pub const FREE: Gate = Gate { action: Action::Run, wait_ms: 0, cause: Cause::Free, capped: false };

    /// The wait in whole seconds, never short.
    pub fn wait_s(&self) -> u64 {
        self.wait_ms.div_ceil(1_000)
    }

    /// Whether the call goes now, or after its pacing sleep.
    pub fn lets_through(&self) -> bool {
        matches!(self.action, Action::Run | Action::Pace)
    }
}

/// Decides.
pub fn gate(scene: &Scene) -> Gate {
    let Some(resource) = scene.resource.filter(|_| scene.budget.enabled) else { return Gate::FREE };
    let shut = shut(scene, resource);
    if let Some(gate) = shut.filter(|gate| gate.action != Action::Run) {
        return gate;
    }
    match crowded(scene, resource) {
        Some(gate) if gate.action != Action::Run => gate,
        crowded => shut.or(crowded).or_else(|| low(scene, resource)).unwrap_or(Gate::FREE),
    }
}

/// The quota is closed, or under its floor. A person is warned and goes on.
fn shut(scene: &Scene, resource: Resource) -> Option<Gate> {
    let opens_ms = scene.closed.opens_ms(scene.has_ticket);
    let (cause, opens_ms) = if opens_ms > scene.now_ms {
        (Cause::Closed { until_ms: opens_ms }, opens_ms)
    } else {
        let (cause, reset_at) = under(scene, resource, scene.budget.floor[resource])?;
        (cause, reset_at.saturating_mul(1_000))
    };
    if scene.interactive {
        return Some(Gate { cause, ..Gate::FREE });
    }
    Some(bounded(scene, Action::Wait, opens_ms.saturating_sub(scene.now_ms), cause))
}

fn under(scene: &Scene, resource: Resource, line: u64) -> Option<(Cause, u64)> {
    let quota = scene.reading.usable(resource, scene.budget.ttl_s, scene.now_ms / 1_000)?;
    let (remaining, reset_at) = (quota.remaining, quota.reset_at);
    (remaining < line).then_some((Cause::Low { remaining, line, reset_at }, reset_at))
}

/// The quota is under its pace line: one short sleep, which no deadline is worth.
fn low(scene: &Scene, resource: Resource) -> Option<Gate> {
    if scene.interactive {
        return None;
    }
    let (cause, _) = under(scene, resource, scene.budget.pace[resource])?;
    let wait_ms = scene.budget.pace_s.saturating_mul(1_000);
    let fits = wait_ms > 0 && !passes_deadline(scene, wait_ms);
    fits.then_some(Gate { action: Action::Pace, wait_ms, cause, capped: false })
}

/// A window of the ledger has no room: for the quota the call spends, or for what else it spends.
fn crowded(scene: &Scene, resource: Resource) -> Option<Gate> {
    let spends = std::iter::once((resource, 1)).chain(scene.extra.iter().copied());
    let full = spends.filter_map(|(resource, calls)| full(scene, resource, calls.into()));
    let (wait_ms, cause) = full.max_by_key(|(wait_ms, _)| *wait_ms)?;
    if !scene.budget.background {
        return Some(bounded(scene, Action::Hold, wait_ms, cause));
    }
    if !scene.budget.background_defer {
        return Some(Gate { action: Action::Refuse, wait_ms: 0, cause, capped: false });
    }
    Some(bounded(scene, Action::Defer, wait_ms, cause))
}

fn full(scene: &Scene, resource: Resource, calls: u64) -> Option<(u64, Cause)> {
    let ceiling = scene.budget.rate[resource];
    if ceiling == 0 {
        return None;
    }
    let bound = bound(scene.budget, resource);
    let window_ms = scene.budget.rate_window_s.saturating_mul(1_000);
    let ends_ms = |slot: &Slot| ends_ms(slot, window_ms, scene.now_ms);
    let live = |slot: &&Slot| slot.resource == resource && ends_ms(slot) > scene.now_ms;
    let mut ends: Vec<u64> = scene.ledger.iter().filter(live).map(ends_ms).collect();
    let count = ends.len() as u64;
    // A call that spends more than the bound at once still gets through an empty window.
    let room = bound.saturating_sub(calls.min(bound));
    let surplus = usize::try_from(count.saturating_sub(room)).unwrap_or(usize::MAX);
    if surplus == 0 && bound > 0 {
        return None;
    }
    ends.sort_unstable();
    // As many calls as are too many have to leave the window first. Nobody ever leaves an empty one.
    let opens_ms = surplus.checked_sub(1).and_then(|at| ends.get(at)).copied();
    let wait_ms = opens_ms.map_or(window_ms, |opens_ms| opens_ms - scene.now_ms);
    Some((wait_ms, Cause::Rate { resource, count, bound, ceiling }))
}

/// How many calls of the window this caller may find and still go.
fn bound(budget: &Budget, resource: Resource) -> u64 {
    let ceiling = budget.rate[resource];
    if budget.background { share(ceiling, budget.background_share) } else { ceiling }
}

/// A background caller's part of a ceiling.
pub fn share(ceiling: u64, percent: u64) -> u64 {
    ceiling.saturating_mul(percent) / 100
}

/// When a slot leaves the window. One that is ahead of now was written before the clock was set back, and
/// counts as one of now: nobody is locked out for longer than a window.
fn ends_ms(slot: &Slot, window_ms: u64, now_ms: u64) -> u64 {
    slot.at.saturating_mul(1_000).min(now_ms).saturating_add(window_ms)
}

/// No call waits longer than it may, and none past its caller's deadline.
fn bounded(scene: &Scene, action: Action, wait_ms: u64, cause: Cause) -> Gate {
    if scene.waited_ms.saturating_add(wait_ms) > scene.budget.max_wait_s.saturating_mul(1_000) {
        return Gate { action: Action::Run, wait_ms: 0, cause, capped: true };
    }
    if passes_deadline(scene, wait_ms) {
        return Gate { action: Action::GiveUp, wait_ms: 0, cause, capped: false };
    }
    Gate { action, wait_ms, cause, capped: false }
}

fn passes_deadline(scene: &Scene, wait_ms: u64) -> bool {
    let deadline_ms = scene.budget.deadline.map(|deadline| deadline.saturating_mul(1_000));
    deadline_ms.is_some_and(|deadline_ms| scene.now_ms.saturating_add(wait_ms) > deadline_ms)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
