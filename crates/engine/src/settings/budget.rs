//! The variables of the quota budget (#3190, #3978).

use std::ffi::OsString;

use super::{Lookup, Reader};
use crate::decide::reading::Each;

/// `BOB_FORGE_BUDGET`: 0 turns the gate and the backoff off. Default 1.
pub const BUDGET: &str = "BOB_FORGE_BUDGET";
/// `BOB_FORGE_BUDGET_TTL`: seconds a read of the quota is reused. Default 60.
pub const BUDGET_TTL: &str = "BOB_FORGE_BUDGET_TTL";
/// `BOB_FORGE_FLOOR_…`: under this much left, an unattended call waits for the reset. Default 300, 200, 3.
pub const FLOOR: Each<&str> = Each {
    graphql: "BOB_FORGE_FLOOR_GRAPHQL",
    core: "BOB_FORGE_FLOOR_CORE",
    search: "BOB_FORGE_FLOOR_SEARCH",
};
/// `BOB_FORGE_PACE_…`: under this much left, an unattended call is slowed. Default 1000, 600, 8.
pub const PACE: Each<&str> =
    Each { graphql: "BOB_FORGE_PACE_GRAPHQL", core: "BOB_FORGE_PACE_CORE", search: "BOB_FORGE_PACE_SEARCH" };
/// `BOB_FORGE_PACE_SECONDS`: the pacing sleep. Default 2.
pub const PACE_SECONDS: &str = "BOB_FORGE_PACE_SECONDS";
/// `BOB_FORGE_MAX_WAIT`: most seconds one call waits for a reset. Default 3900, a window and five minutes.
pub const MAX_WAIT: &str = "BOB_FORGE_MAX_WAIT";
/// `BOB_FORGE_BACKOFF_START`: the first backoff wait in seconds; it doubles. Default 5.
pub const BACKOFF_START: &str = "BOB_FORGE_BACKOFF_START";
/// `BOB_FORGE_BACKOFF_MAX`: most seconds one call spends backing off. Default 300.
pub const BACKOFF_MAX: &str = "BOB_FORGE_BACKOFF_MAX";
/// `BOB_FORGE_INTERACTIVE`: 1 or 0 overrides the terminal test. Unset by default.
pub const INTERACTIVE: &str = "BOB_FORGE_INTERACTIVE";
/// `BOB_FORGE_RATE_…`: most calls per window across the machine; 0 turns the pacing of that quota off.
/// Default 60, 120, 20.
pub const RATE: Each<&str> =
    Each { graphql: "BOB_FORGE_RATE_GRAPHQL", core: "BOB_FORGE_RATE_CORE", search: "BOB_FORGE_RATE_SEARCH" };
/// `BOB_FORGE_RATE_WINDOW`: the window of the ledger in seconds. Default 60.
pub const RATE_WINDOW: &str = "BOB_FORGE_RATE_WINDOW";
/// `BOB_FORGE_BACKGROUND`: 1 marks the caller as background. Default 0.
pub const BACKGROUND: &str = "BOB_FORGE_BACKGROUND";
/// `BOB_FORGE_BACKGROUND_SHARE`: percent of the ceiling a background caller may use. Default 50.
pub const BACKGROUND_SHARE: &str = "BOB_FORGE_BACKGROUND_SHARE";
/// `BOB_FORGE_BACKGROUND_DEFER`: 0 refuses a background call over its share instead of waiting. Default 1.
pub const BACKGROUND_DEFER: &str = "BOB_FORGE_BACKGROUND_DEFER";
/// `BOB_FORGE_JOURNAL_AFTER`: a spoolable write that is about to wait longer than this many seconds is
/// spooled first (`CONTRACT` section 5). Default 10.
pub const JOURNAL_AFTER: &str = "BOB_FORGE_JOURNAL_AFTER";
/// `BOB_FORGE_DEADLINE`: the epoch second at which the caller gives up; no wait goes past it.
pub const DEADLINE: &str = "BOB_FORGE_DEADLINE";
/// `BOB_FORGE_SLEEP`: a program that is run with the seconds in place of sleeping (for tests).
pub const SLEEP: &str = "BOB_FORGE_SLEEP";

/// The settings of the quota budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Whether calls are gated, and retried after a rate limit.
    pub enabled: bool,
    /// Seconds a read of the quota is reused.
    pub ttl_s: u64,
    /// Under this much left an unattended call waits for the reset.
    pub floor: Each<u64>,
    /// Under this much left an unattended call is slowed.
    pub pace: Each<u64>,
    /// The pacing sleep in seconds.
    pub pace_s: u64,
    /// Most seconds one call waits for a reset.
    pub max_wait_s: u64,
    /// The first backoff wait in seconds.
    pub backoff_start_s: u64,
    /// Most seconds one call spends backing off.
    pub backoff_max_s: u64,
    /// What the caller says about itself; by default the terminals decide.
    pub interactive: Option<bool>,
    /// Most calls per window; 0 for no limit.
    pub rate: Each<u64>,
    /// The ledger's window in seconds, at least 1.
    pub rate_window_s: u64,
    /// Whether this caller gives way to the others.
    pub background: bool,
    /// Percent of the ceiling a background caller may use.
    pub background_share: u64,
    /// Whether a background call over its share waits (else it is refused).
    pub background_defer: bool,
    /// A spoolable write is spooled before a wait longer than this many seconds.
    pub journal_after_s: u64,
    /// The epoch second at which the caller gives up.
    pub deadline: Option<u64>,
    /// What is run in place of sleeping.
    pub sleep: Option<OsString>,
}

impl Budget {
    /// How many milliseconds the caller still waits, where it says so.
    pub fn left_ms(&self, now_ms: u64) -> Option<u64> {
        self.deadline.map(|deadline_s| deadline_s.saturating_mul(1_000).saturating_sub(now_ms))
    }

    pub(super) fn read<L: Lookup>(reader: &mut Reader<'_, L>) -> Budget {
        Budget {
            enabled: reader.flag(BUDGET, true),
            ttl_s: reader.number(BUDGET_TTL, 60),
            floor: reader.each(FLOOR, (300, 200, 3)),
            pace: reader.each(PACE, (1_000, 600, 8)),
            pace_s: reader.number(PACE_SECONDS, 2),
            max_wait_s: reader.number(MAX_WAIT, 3_900),
            backoff_start_s: reader.number(BACKOFF_START, 5),
            backoff_max_s: reader.number(BACKOFF_MAX, 300),
            interactive: reader.optional(INTERACTIVE).map(|n| n != 0),
            rate: reader.each(RATE, (60, 120, 20)),
            rate_window_s: reader.number(RATE_WINDOW, 60).max(1),
            background: reader.flag(BACKGROUND, false),
            background_share: reader.number(BACKGROUND_SHARE, 50).min(100),
            background_defer: reader.flag(BACKGROUND_DEFER, true),
            journal_after_s: reader.number(JOURNAL_AFTER, 10),
            deadline: reader.optional(DEADLINE),
            sleep: reader.text(SLEEP),
        }
    }
}

impl<L: Lookup> Reader<'_, L> {
    fn each(&mut self, names: Each<&'static str>, (graphql, core, search): (u64, u64, u64)) -> Each<u64> {
        Each {
            graphql: self.number(names.graphql, graphql),
            core: self.number(names.core, core),
            search: self.number(names.search, search),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn every_default_is_the_specifications() {
        let budget = Settings::read(&|_: &str| None).budget;
        let expected = Budget {
            enabled: true,
            ttl_s: 60,
            floor: Each { graphql: 300, core: 200, search: 3 },
            pace: Each { graphql: 1_000, core: 600, search: 8 },
            pace_s: 2,
            max_wait_s: 3_900,
            backoff_start_s: 5,
            backoff_max_s: 300,
            interactive: None,
            rate: Each { graphql: 60, core: 120, search: 20 },
            rate_window_s: 60,
            background: false,
            background_share: 50,
            background_defer: true,
            journal_after_s: 10,
            deadline: None,
            sleep: None,
        };
        assert_eq!(budget, expected);
    }

    #[test]
    fn every_variable_reaches_its_setting() {
        let seven = |name: &str| (name != SLEEP).then(|| OsString::from("7"));
        let budget = Settings::read(&seven).budget;
        let all = Each { graphql: 7, core: 7, search: 7 };
        assert_eq!((budget.floor, budget.pace, budget.rate), (all, all, all));
        let numbers = [
            budget.ttl_s,
            budget.pace_s,
            budget.max_wait_s,
            budget.backoff_start_s,
            budget.backoff_max_s,
            budget.rate_window_s,
            budget.background_share,
            budget.journal_after_s,
        ];
        assert_eq!((numbers, budget.deadline, budget.interactive), ([7; 8], Some(7), Some(true)));
        let off = Settings::read(&|_: &str| Some(OsString::from("0"))).budget;
        assert!(!off.enabled && !off.background && !off.background_defer);
        assert_eq!((off.interactive, off.rate_window_s), (Some(false), 1));
        assert_eq!(off.sleep, Some("0".into()));
    }
}
