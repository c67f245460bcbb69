use super::*;
use crate::decide::reading::{Each, Quota};
use crate::settings::Settings;

const NOW: u64 = 10_000;

fn budget() -> Budget {
    Settings::read(&|_: &str| None).budget
}

fn reading(remaining: u64, reset_at: u64) -> Reading {
    let quota = Some(Quota { limit: 5_000, remaining, used: 5_000 - remaining, reset_at });
    Reading { fetched_at: Some(NOW), tried_at: Some(NOW), quotas: Each { graphql: quota, ..Each::default() } }
}

fn slots(count: usize, at: u64) -> Vec<Slot> {
    vec![Slot { at, resource: Resource::Graphql, background: false }; count]
}

struct Case {
    reading: Reading,
    ledger: Vec<Slot>,
    closed: Closed,
    budget: Budget,
    interactive: bool,
    waited_s: u64,
    has_ticket: bool,
    extra: &'static [(Resource, u8)],
}

impl Case {
    fn new() -> Case {
        Case {
            reading: Reading::default(),
            ledger: Vec::new(),
            closed: Closed::default(),
            budget: budget(),
            interactive: false,
            waited_s: 0,
            has_ticket: false,
            extra: &[],
        }
    }

    fn left(remaining: u64) -> Case {
        Case { reading: reading(remaining, NOW + 412), ..Case::new() }
    }

    fn scene(&self, resource: Option<Resource>) -> Scene<'_> {
        Scene {
            resource,
            extra: self.extra,
            reading: &self.reading,
            closed: self.closed,
            ledger: &self.ledger,
            budget: &self.budget,
            interactive: self.interactive,
            now_ms: NOW * 1_000,
            waited_ms: self.waited_s * 1_000,
            has_ticket: self.has_ticket,
        }
    }

    fn gate(&self) -> Gate {
        gate(&self.scene(Some(Resource::Graphql)))
    }

    fn says(&self) -> (Action, u64) {
        let gate = self.gate();
        (gate.action, gate.wait_s())
    }
}

#[test]
fn the_pacing_table_for_unattended_and_interactive_callers() {
    let table = [
        (1_000, (Action::Run, 0)),
        (999, (Action::Pace, 2)),
        (300, (Action::Pace, 2)),
        (299, (Action::Wait, 412)),
        (0, (Action::Wait, 412)),
    ];
    for (remaining, expected) in table {
        assert_eq!(Case::left(remaining).says(), expected, "{remaining} left");
        let person = Case { interactive: true, ..Case::left(remaining) };
        assert_eq!(person.says(), (Action::Run, 0), "{remaining} left, a person");
        let is_warned = matches!(person.gate().cause, Cause::Low { line: 300, .. });
        assert_eq!(is_warned, remaining < 300, "{remaining} left, a person");
    }
}

#[test]
fn a_quota_that_nobody_knows_holds_nobody_back() {
    assert_eq!(Case::new().gate(), Gate::FREE);
    let last_window = Case { reading: reading(0, NOW - 1), ..Case::new() };
    assert_eq!(last_window.gate(), Gate::FREE);
}

#[test]
fn a_call_that_spends_nothing_and_a_budget_that_is_off_are_never_gated() {
    let mut case = Case { ledger: slots(60, NOW), ..Case::left(0) };
    case.closed.close(NOW * 1_000 + 5_000);
    assert_eq!(gate(&case.scene(None)), Gate::FREE);
    case.budget.enabled = false;
    assert_eq!(case.gate(), Gate::FREE);
}

#[test]
fn a_wait_is_bounded_in_total_and_then_the_call_goes_ahead() {
    let far = |waited_s, reset_at| {
        let case = Case { reading: reading(0, reset_at), waited_s, ..Case::new() };
        let gate = case.gate();
        (gate.action, gate.capped)
    };
    assert_eq!(far(0, NOW + 3_900), (Action::Wait, false));
    assert_eq!(far(0, NOW + 3_901), (Action::Run, true));
    assert_eq!(far(3_000, NOW + 900), (Action::Wait, false));
    assert_eq!(far(3_000, NOW + 901), (Action::Run, true));
}

#[test]
fn no_wait_goes_past_the_callers_deadline() {
    let mut case = Case::left(0);
    case.budget.deadline = Some(NOW + 412);
    assert_eq!(case.says(), (Action::Wait, 412));
    case.budget.deadline = Some(NOW + 411);
    assert_eq!(case.says(), (Action::GiveUp, 0));
    let mut paced = Case::left(500);
    paced.budget.deadline = Some(NOW + 1);
    assert_eq!(paced.says(), (Action::Run, 0), "a pacing sleep is not worth a deadline");
    let mut held = Case { ledger: slots(60, NOW - 10), ..Case::new() };
    held.budget.deadline = Some(NOW + 49);
    assert_eq!(held.says(), (Action::GiveUp, 0));
}

#[test]
fn the_window_holds_no_more_calls_than_its_ceiling() {
    let case = |count, at| Case { ledger: slots(count, at), ..Case::new() };
    assert_eq!(case(59, NOW).says(), (Action::Run, 0));
    assert_eq!(case(60, NOW - 20).says(), (Action::Hold, 40));
    assert_eq!(case(60, NOW - 60).says(), (Action::Run, 0), "they have left the window");
    let mixed = Case { ledger: [slots(3, NOW - 50), slots(59, NOW - 20)].concat(), ..Case::new() };
    assert_eq!(mixed.says(), (Action::Hold, 10), "three have to leave");
    let ahead = Case { ledger: slots(60, NOW + 1_000_000), ..Case::new() };
    assert_eq!(ahead.says(), (Action::Hold, 60), "a clock that was set back locks out for a window");
    let mut off = case(100, NOW);
    off.budget.rate.graphql = 0;
    assert_eq!(off.says(), (Action::Run, 0));
    assert_eq!(gate(&case(60, NOW).scene(Some(Resource::Core))), Gate::FREE, "another quota's");
}

#[test]
fn a_background_caller_gives_way_at_its_share() {
    let mut case = Case { ledger: slots(29, NOW - 26), ..Case::new() };
    case.budget.background = true;
    assert_eq!(case.says(), (Action::Run, 0));
    case.ledger = slots(31, NOW - 26);
    assert_eq!(case.says(), (Action::Defer, 34));
    let cause = Cause::Rate { resource: Resource::Graphql, count: 31, bound: 30, ceiling: 60 };
    assert_eq!(case.gate().cause, cause);
    case.budget.background_defer = false;
    assert_eq!(case.says(), (Action::Refuse, 0));
    case.budget.background_share = 0;
    case.ledger.clear();
    assert_eq!(case.says(), (Action::Refuse, 0), "a share of nothing");
    case.budget.background_defer = true;
    assert_eq!(case.says(), (Action::Defer, 60));
    let foreground = Case { ledger: slots(31, NOW), ..Case::new() };
    assert_eq!(foreground.says(), (Action::Run, 0));
}

#[test]
fn what_else_a_call_spends_needs_room_too() {
    let core = |count| vec![Slot { at: NOW, resource: Resource::Core, background: false }; count];
    let case = |count, extra| Case { ledger: core(count), extra, ..Case::new() };
    assert_eq!(case(118, &[(Resource::Core, 2)]).says(), (Action::Run, 0));
    assert_eq!(case(119, &[(Resource::Core, 2)]).says(), (Action::Hold, 60));
    assert_eq!(case(0, &[(Resource::Core, 200)]).says(), (Action::Run, 0), "more than fits at all");
}

#[test]
fn a_closed_quota_is_waited_for_like_a_floor() {
    let mut case = Case::new();
    case.closed.close(NOW * 1_000 + 7_500);
    assert_eq!(case.says(), (Action::Wait, 8));
    assert_eq!(case.gate().cause, Cause::Closed { until_ms: NOW * 1_000 + 7_500 });
    case.interactive = true;
    assert_eq!(case.says(), (Action::Run, 0));
    assert!(matches!(case.gate().cause, Cause::Closed { .. }), "and a person is warned");
}

#[test]
fn callers_leave_a_hold_one_by_one_and_newcomers_line_up_behind_them() {
    let now_ms = NOW * 1_000;
    let mut closed = Closed::default();
    closed.close(now_ms + 5_000);
    closed.close(now_ms + 3_000);
    let tickets: Vec<u64> = (0..3).map(|_| closed.line_up(closed.until_ms) - now_ms).collect();
    assert_eq!(tickets, [5_000, 5_500, 6_000]);
    let at = |later_ms: u64, has_ticket| {
        let case = Case { closed, has_ticket, ..Case::new() };
        let scene = Scene { now_ms: now_ms + later_ms, ..case.scene(Some(Resource::Graphql)) };
        let gate = gate(&scene);
        (gate.action, gate.wait_ms)
    };
    assert_eq!(at(5_000, true), (Action::Run, 0));
    assert_eq!(at(5_000, false), (Action::Wait, 1_500));
    assert_eq!(at(6_500, false), (Action::Run, 0));
    assert_eq!(at(4_900, true), (Action::Wait, 100), "closed again meanwhile");
}

#[test]
fn a_full_window_counts_before_the_pace_line_and_for_a_person_too() {
    let full = Case { ledger: slots(60, NOW - 20), ..Case::left(500) };
    assert_eq!(full.says(), (Action::Hold, 40));
    let person = Case { interactive: true, ledger: slots(60, NOW - 20), ..Case::left(10) };
    assert_eq!(person.says(), (Action::Hold, 40));
    let capped = Case { reading: reading(0, NOW + 9_999), ledger: slots(60, NOW - 20), ..Case::new() };
    assert_eq!(capped.says(), (Action::Hold, 40), "a reset too far away leaves the window");
}

#[test]
fn a_hold_that_was_too_short_is_longer_the_next_time_for_everybody() {
    let mut closed = Closed::default();
    assert_eq!(closed.strike(NOW, NOW + 100), 0);
    closed.close(NOW + 5_000);
    assert_eq!(closed.strike(NOW + 50, NOW + 200), 0, "it was on its way already");
    assert_eq!(closed.strike(NOW + 5_000, NOW + 5_900), 1);
    closed.close(NOW + 15_000);
    assert_eq!(
        closed.strike(NOW + 5_500, NOW + 6_100),
        1,
        "the next in line had left before the answer came"
    );
    assert_eq!(closed.strike(NOW + 15_000, NOW + 15_500), 2);
    assert_eq!(closed.strike(NOW + 90_000, NOW + 90_100), 0, "long ago");
}
