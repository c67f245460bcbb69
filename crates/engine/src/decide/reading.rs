//! What is known about the token's quotas, and when it has to be asked for again (#3190).

use std::ops::{Index, IndexMut};

use serde::Deserialize;

use super::resource::Resource;
use super::verdict::SKEW_S;

/// One value for each quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Each<T> {
    /// GraphQL's.
    pub graphql: T,
    /// REST's.
    pub core: T,
    /// The search API's.
    pub search: T,
}

impl<T> Index<Resource> for Each<T> {
    type Output = T;

    fn index(&self, resource: Resource) -> &T {
        match resource {
            Resource::Graphql => &self.graphql,
            Resource::Core => &self.core,
            Resource::Search => &self.search,
        }
    }
}

impl<T> IndexMut<Resource> for Each<T> {
    fn index_mut(&mut self, resource: Resource) -> &mut T {
        match resource {
            Resource::Graphql => &mut self.graphql,
            Resource::Core => &mut self.core,
            Resource::Search => &mut self.search,
        }
    }
}

/// One quota as the forge reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Points a window.
    pub limit: u64,
    /// Points left.
    pub remaining: u64,
    /// Points spent.
    pub used: u64,
    /// When the window ends, in epoch seconds.
    pub reset_at: u64,
}

/// What is on file about the quotas. Everything is unknown by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// When the forge last answered, in epoch seconds.
    pub fetched_at: Option<u64>,
    /// When it was last asked, in epoch seconds; later than `fetched_at` when it did not answer.
    pub tried_at: Option<u64>,
    /// The quotas.
    pub quotas: Each<Option<Quota>>,
}

/// How often the quota is read once one is near its floor, in seconds.
pub const NEAR_FLOOR_S: u64 = 15;

/// A number older than this holds nobody back, in seconds (`RELIABILITY` R32).
pub const TOO_OLD_S: u64 = 600;

impl Reading {
    /// Whether the forge has to be asked again: the reading is older than `ttl_s`, or than
    /// [`NEAR_FLOOR_S`] with a quota within twice its floor. A question that was not answered counts as
    /// asked, so that a dead network costs one call a TTL and not every call.
    pub fn is_due(&self, floor: &Each<u64>, ttl_s: u64, now_s: u64) -> bool {
        let near =
            |r: Resource| self.quotas[r].is_some_and(|quota| quota.remaining <= floor[r].saturating_mul(2));
        let ttl_s = if Resource::ALL.into_iter().any(near) { ttl_s.min(NEAR_FLOOR_S) } else { ttl_s };
        match self.tried_at.max(self.fetched_at) {
            None => true,
            // Written before the clock was set back.
            Some(at) if at > now_s.saturating_add(SKEW_S) => true,
            Some(at) => now_s.saturating_sub(at) >= ttl_s,
        }
    }

    /// The quota a call may be held back on. `None` fails open: never read, unreadable for longer than
    /// `ttl_s`, too old, or a number of the last window.
    pub fn usable(&self, resource: Resource, ttl_s: u64, now_s: u64) -> Option<Quota> {
        let quota = self.quotas[resource]?;
        let age_s = now_s.checked_sub(self.fetched_at?.saturating_sub(SKEW_S))?;
        let unreadable = self.tried_at > self.fetched_at && age_s > ttl_s;
        let usable =
            quota.reset_at > now_s && !unreadable && age_s <= TOO_OLD_S.max(ttl_s).saturating_add(SKEW_S);
        usable.then_some(quota)
    }

    /// Reads the answer of `gh api rate_limit`. `None` when it is none.
    pub fn from_rate_limit(answer: &[u8], now_s: u64) -> Option<Reading> {
        let Answer { resources } = serde_json::from_slice(answer).ok()?;
        let quotas = Each {
            graphql: resources.graphql.map(Quota::from),
            core: resources.core.map(Quota::from),
            search: resources.search.map(Quota::from),
        };
        let known = Resource::ALL.into_iter().any(|r| quotas[r].is_some());
        known.then_some(Reading { fetched_at: Some(now_s), tried_at: Some(now_s), quotas })
    }
}

#[derive(Deserialize)]
struct Answer {
    resources: Resources,
}

#[derive(Deserialize)]
struct Resources {
    graphql: Option<Row>,
    core: Option<Row>,
    search: Option<Row>,
}

#[derive(Deserialize)]
struct Row {
    limit: u64,
    remaining: u64,
    used: Option<u64>,
    reset: u64,
}

impl From<Row> for Quota {
    fn from(Row { limit, remaining, used, reset }: Row) -> Quota {
        // An older enterprise server names no `used`.
        let used = used.unwrap_or(limit.saturating_sub(remaining));
        Quota { limit, remaining, used, reset_at: reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Each<u64> = Each { graphql: 300, core: 200, search: 3 };

    fn reading(fetched_at: u64, tried_at: u64, remaining: u64) -> Reading {
        let quota = Quota { limit: 5_000, remaining, used: 5_000 - remaining, reset_at: 5_000 };
        let quotas = Each { graphql: Some(quota), ..Each::default() };
        Reading { fetched_at: Some(fetched_at), tried_at: Some(tried_at), quotas }
    }

    #[test]
    fn a_reading_is_reused_for_a_ttl_and_for_fifteen_seconds_near_a_floor() {
        assert!(Reading::default().is_due(&FLOOR, 60, 1_000));
        let table = [
            (4_000, 1_000, 1_059, false),
            (4_000, 1_000, 1_060, true),
            (601, 1_000, 1_059, false),
            (600, 1_000, 1_014, false),
            (600, 1_000, 1_015, true),
            (4_000, 1_000, 998, false),
            (4_000, 1_000, 900, true),
        ];
        for (remaining, at, now, due) in table {
            assert_eq!(reading(at, at, remaining).is_due(&FLOOR, 60, now), due, "{remaining} {at} {now}");
        }
        assert!(!reading(1_000, 1_100, 4_000).is_due(&FLOOR, 60, 1_159), "asked, though not answered");
        assert!(reading(1_000, 1_000, 600).is_due(&FLOOR, 5, 1_005), "a shorter TTL stays");
    }

    #[test]
    fn a_number_that_nobody_has_holds_nobody_back() {
        let known = |reading: Reading, now| reading.usable(Resource::Graphql, 60, now).is_some();
        assert!(known(reading(1_000, 1_000, 10), 1_030));
        assert!(known(reading(1_000, 1_000, 10), 1_500), "another call is asking right now");
        assert!(!known(reading(1_000, 1_000, 10), 1_700), "too old");
        assert!(!known(reading(1_000, 1_070, 10), 1_071), "unreadable");
        assert!(known(reading(1_000, 1_015, 10), 1_020), "unreadable, but not older than the TTL");
        assert!(!known(reading(4_990, 4_990, 10), 5_000), "the last window's");
        assert!(!known(reading(1_000, 1_000, 10), 900), "from a clock that was set back");
        assert!(!known(Reading::default(), 1_000));
        assert_eq!(reading(1_000, 1_000, 10).usable(Resource::Core, 60, 1_001), None);
    }

    #[test]
    fn the_answer_of_rate_limit_is_read() {
        let answer = br#"{"resources":{"core":{"limit":5000,"used":10,"remaining":4990,"reset":77},
            "graphql":{"limit":5000,"remaining":4120,"reset":78,"resource":"graphql"},
            "integration_manifest":{"limit":1}},"rate":{}}"#;
        let reading = Reading::from_rate_limit(answer, 50).unwrap();
        assert_eq!((reading.fetched_at, reading.quotas.search), (Some(50), None));
        let core = Quota { limit: 5_000, remaining: 4_990, used: 10, reset_at: 77 };
        assert_eq!(reading.quotas.core, Some(core));
        assert_eq!(reading.quotas.graphql.map(|q| q.used), Some(880));
        for odd in
            [&b""[..], b"<html>", b"{}", b"{\"resources\":{}}", b"{\"resources\":{\"core\":{\"limit\":-1}}}"]
        {
            assert_eq!(Reading::from_rate_limit(odd, 50), None);
        }
    }
}
