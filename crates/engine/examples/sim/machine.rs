//! One machine: its files in memory, its agents, and the same order of steps as the shim's gate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use engine::decide::backoff::{Answer, backoff};
use engine::decide::gate::{Action, Closed, Scene, Slot, gate};
use engine::decide::reading::{Each, Reading};
use engine::decide::signal::Limit;
use engine::settings::Settings;
use engine::settings::budget::Budget;

use super::Scenario;
use super::agents::{Call, Dice, call};
use super::forge::Forge;

/// Any time will do, as long as it is not 0.
const BEGIN_MS: u64 = 1_800_000_000_000;
const REFRESH_MS: u64 = 400;
/// A call that was let go reaches the forge this much later.
const START_MS: u64 = 60;
/// When the stranger's bursts meet the secondary limit, in minutes.
const BURSTS: [u64; 4] = [17, 41, 73, 101];

#[derive(Default)]
pub struct Figures {
    pub calls: u64,
    pub limited: u64,
    pub in_hold: u64,
    pub peak_after_reset: usize,
    pub unspent: Vec<u64>,
    pub starved: u64,
    pub foreground_waits_ms: Vec<u64>,
    pub background_waits_ms: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A new call.
    Begin,
    /// The quota has been read.
    Refreshed,
    /// Back from a wait: before the gate.
    Look,
    /// A request of the call arrives at the forge.
    Arrive { request: usize },
    /// The call ends well.
    Finish,
    /// The call ends with a primary (or secondary) limit.
    Limited { primary: bool },
    /// Let go: the requests leave; or first a look at the hold, after a pacing sleep.
    Send { paced: bool },
    /// The stranger's burst.
    Burst,
}

/// One agent's call in progress.
struct Agent {
    background: bool,
    call: Call,
    sent_ms: u64,
    waited_ms: u64,
    backed_off_ms: u64,
    retries: u32,
    has_ticket: bool,
    stale_before_s: Option<u64>,
}

pub struct Machine {
    dice: Dice,
    think_ms: u64,
    foreground: Budget,
    background: Budget,
    forge: Forge,
    reading: Reading,
    is_refreshing: bool,
    closed: Each<Closed>,
    ledger: Vec<Slot>,
    agents: Vec<Agent>,
    events: BinaryHeap<Reverse<(u64, u64, Step, usize)>>,
    order: u64,
    sent_ms: Vec<u64>,
    figures: Figures,
}

impl Machine {
    pub fn new(scenario: &Scenario, seed: u64) -> Machine {
        let Scenario { agents, think_s, stranger, gated, .. } = *scenario;
        let foreground = Budget { enabled: gated, ..Settings::read(&|_: &str| None).budget };
        let mut dice = Dice::new(seed);
        let agent = |at: usize, dice: &mut Dice| Agent {
            // One in five runs in the background.
            background: at % 5 == 4,
            call: call(dice),
            sent_ms: 0,
            waited_ms: 0,
            backed_off_ms: 0,
            retries: 0,
            has_ticket: false,
            stale_before_s: None,
        };
        let agents: Vec<Agent> = (0..agents).map(|at| agent(at, &mut dice)).collect();
        let mut machine = Machine {
            dice,
            think_ms: think_s * 1_000,
            background: Budget { background: true, ..foreground.clone() },
            foreground,
            forge: Forge::new(BEGIN_MS),
            reading: Reading::default(),
            is_refreshing: false,
            closed: Each::default(),
            ledger: Vec::new(),
            agents,
            events: BinaryHeap::new(),
            order: 0,
            sent_ms: Vec::new(),
            figures: Figures::default(),
        };
        for at in 0..machine.agents.len() {
            let begins_ms = BEGIN_MS + machine.dice.arrival_ms(machine.think_ms);
            machine.at(begins_ms, Step::Begin, at);
        }
        for minute in BURSTS.into_iter().filter(|_| stranger) {
            machine.at(BEGIN_MS + minute * 60_000, Step::Burst, 0);
        }
        machine
    }

    /// Plays this many hours.
    pub fn run(mut self, hours: u64) -> Figures {
        let ends_ms = BEGIN_MS + hours * 3_600_000;
        while let Some(Reverse((now_ms, _, step, agent))) = self.events.pop() {
            if now_ms > ends_ms {
                break;
            }
            match step {
                Step::Begin => self.begin(agent, now_ms),
                Step::Refreshed => self.refreshed(agent, now_ms),
                Step::Look => self.look(agent, now_ms),
                Step::Send { paced } => self.send(agent, paced, now_ms),
                Step::Arrive { request } => self.arrive(agent, request, now_ms),
                Step::Finish => self.finish(agent, now_ms),
                Step::Limited { primary: true } => self.limited(agent, Limit::Primary, now_ms),
                Step::Limited { primary: false } => self.limited(agent, Limit::Secondary, now_ms),
                Step::Burst => self.forge.shut(now_ms),
            }
        }
        self.forge.reading(ends_ms);
        self.count()
    }

    fn count(mut self) -> Figures {
        for (reset_ms, unspent) in self.forge.resets {
            self.figures.unspent.push(unspent);
            let of_second = |s: u64| {
                let from_ms = reset_ms + s * 1_000;
                self.sent_ms.iter().filter(|at| (from_ms..from_ms + 1_000).contains(at)).count()
            };
            let peak = (0..60).map(of_second).max().unwrap_or(0);
            self.figures.peak_after_reset = self.figures.peak_after_reset.max(peak);
        }
        self.figures
    }

    fn at(&mut self, ms: u64, step: Step, agent: usize) {
        self.order += 1;
        self.events.push(Reverse((ms, self.order, step, agent)));
    }

    fn begin(&mut self, at: usize, now_ms: u64) {
        let call = call(&mut self.dice);
        let agent = &mut self.agents[at];
        *agent = Agent {
            call,
            background: agent.background,
            sent_ms: 0,
            waited_ms: 0,
            backed_off_ms: 0,
            retries: 0,
            has_ticket: false,
            stale_before_s: None,
        };
        self.look(at, now_ms);
    }

    /// Reads the quota first where it is due and nobody else is reading it.
    fn look(&mut self, at: usize, now_ms: u64) {
        let stale_before_s = self.agents[at].stale_before_s.take();
        let is_stale = stale_before_s.is_some_and(|s| self.reading.fetched_at.is_none_or(|f| f < s));
        let budget = &self.foreground;
        let is_due = is_stale || self.reading.is_due(&budget.floor, budget.ttl_s, now_ms / 1_000);
        if is_due && !self.is_refreshing && budget.enabled {
            self.is_refreshing = true;
            self.at(now_ms + REFRESH_MS, Step::Refreshed, at);
        } else {
            self.gate(at, now_ms);
        }
    }

    fn refreshed(&mut self, at: usize, now_ms: u64) {
        // The number is as old as the request.
        self.reading = self.forge.reading(now_ms - REFRESH_MS / 2);
        self.is_refreshing = false;
        self.gate(at, now_ms);
    }

    fn gate(&mut self, at: usize, now_ms: u64) {
        let window_s = self.foreground.rate_window_s;
        self.ledger.retain(|slot| slot.at + window_s > now_ms / 1_000);
        let agent = &self.agents[at];
        let resource = agent.call.resource;
        let decided = gate(&Scene {
            resource: Some(resource),
            extra: agent.call.extra,
            reading: &self.reading,
            closed: self.closed[resource],
            ledger: &self.ledger,
            budget: if agent.background { &self.background } else { &self.foreground },
            interactive: false,
            now_ms,
            waited_ms: agent.waited_ms,
            has_ticket: agent.has_ticket,
        });
        match decided.action {
            Action::Run | Action::Pace => self.let_go(at, now_ms, decided.wait_ms),
            Action::Wait => {
                let opens_ms = now_ms + decided.wait_ms;
                let ticket_ms = self.closed[resource].line_up(opens_ms);
                let agent = &mut self.agents[at];
                agent.waited_ms += ticket_ms - now_ms;
                agent.has_ticket = true;
                agent.stale_before_s = Some(opens_ms / 1_000);
                self.again(at, ticket_ms);
            }
            Action::Hold | Action::Defer => {
                self.agents[at].waited_ms += decided.wait_ms;
                self.again(at, now_ms + decided.wait_ms);
            }
            Action::Refuse | Action::GiveUp => self.figures.starved += 1,
        }
    }

    fn let_go(&mut self, at: usize, now_ms: u64, pace_ms: u64) {
        let agent = &self.agents[at];
        let background = agent.background;
        let slot = |resource| Slot { at: now_ms / 1_000, resource, background };
        self.ledger.push(slot(agent.call.resource));
        for (resource, calls) in agent.call.extra {
            self.ledger.extend((0..*calls).map(|_| slot(*resource)));
        }
        self.at(now_ms + pace_ms, Step::Send { paced: pace_ms > 0 }, at);
    }

    /// The caller wakes up and is at the gate again.
    fn again(&mut self, at: usize, ms: u64) {
        // A moment of its own for each, as processes have.
        let wakes_ms = ms + self.dice.below(5);
        self.at(wakes_ms, Step::Look, at);
    }

    fn send(&mut self, at: usize, paced: bool, now_ms: u64) {
        let call = self.agents[at].call.clone();
        if paced && self.closed[call.resource].until_ms > now_ms {
            return self.look(at, now_ms);
        }
        self.figures.calls += 1;
        self.sent_ms.push(now_ms);
        self.agents[at].sent_ms = now_ms;
        if self.closed[call.resource].until_ms > now_ms {
            self.figures.in_hold += 1;
        }
        self.at(now_ms + START_MS, Step::Arrive { request: 0 }, at);
    }

    fn arrive(&mut self, at: usize, request: usize, now_ms: u64) {
        let ends_ms = now_ms + 150 + self.dice.below(600);
        let requests = &self.agents[at].call.requests;
        let next = match self.forge.answer(&requests[request], now_ms, ends_ms) {
            Err(limit) => Step::Limited { primary: limit == Limit::Primary },
            Ok(()) if request + 1 < requests.len() => Step::Arrive { request: request + 1 },
            Ok(()) => Step::Finish,
        };
        self.at(ends_ms, next, at);
    }

    fn finish(&mut self, at: usize, now_ms: u64) {
        let agent = &self.agents[at];
        let waited_ms = agent.waited_ms + agent.backed_off_ms;
        match agent.background {
            true => self.figures.background_waits_ms.push(waited_ms),
            false => self.figures.foreground_waits_ms.push(waited_ms),
        }
        let next_ms = now_ms + self.dice.arrival_ms(self.think_ms);
        self.at(next_ms, Step::Begin, at);
    }

    fn limited(&mut self, at: usize, limit: Limit, now_ms: u64) {
        self.figures.limited += 1;
        if !self.foreground.enabled {
            return self.finish(at, now_ms);
        }
        let agent = &self.agents[at];
        let resource = agent.call.resource;
        let closed = &mut self.closed[resource];
        let answer = Answer {
            limit,
            retry_after_s: None,
            reset_at: self.reading.quotas[resource].map(|quota| quota.reset_at),
            retries: agent.retries.max(closed.strike(agent.sent_ms, now_ms)),
            backed_off_ms: agent.backed_off_ms,
            now_ms,
        };
        let decided = backoff(&answer, &self.foreground);
        closed.close(now_ms + decided.wait_ms);
        if !decided.again {
            return self.finish(at, now_ms);
        }
        let ticket_ms = closed.line_up(closed.until_ms);
        let agent = &mut self.agents[at];
        agent.backed_off_ms += ticket_ms - now_ms;
        agent.retries += 1;
        agent.has_ticket = true;
        agent.stale_before_s = (limit == Limit::Primary).then_some(ticket_ms / 1_000);
        self.again(at, ticket_ms);
    }
}
