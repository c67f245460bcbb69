//! GitHub's documented limits, as far as a caller can meet them: the hourly quotas, points and content
//! creations a minute and an hour, requests at once.

use std::collections::VecDeque;

use engine::decide::reading::{Each, Quota, Reading};
use engine::decide::resource::Resource;
use engine::decide::signal::Limit;

const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;

/// Secondary points a minute.
const POINTS: Each<u64> = Each { graphql: 2_000, core: 900, search: 900 };
const CREATIONS_A_MINUTE: usize = 80;
const CREATIONS_AN_HOUR: usize = 500;
const AT_ONCE: usize = 100;
/// How long a token is shut out after it has met a secondary limit.
const SHUT_MS: u64 = MINUTE_MS;

/// One request of a call.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub resource: Resource,
    /// Secondary points: 1 for a read, 5 for a write.
    pub points: u64,
    pub creates: bool,
}

pub struct Forge {
    quotas: Each<Quota>,
    points: Each<VecDeque<(u64, u64)>>,
    creations: VecDeque<u64>,
    /// When each request that is being answered ends.
    open: Vec<u64>,
    shut_until_ms: u64,
    /// GraphQL points left at each reset, and when it was.
    pub resets: Vec<(u64, u64)>,
}

impl Forge {
    /// A token in the middle of its windows.
    pub fn new(now_ms: u64) -> Forge {
        let quota = |limit, used, in_s| Quota {
            limit,
            used,
            remaining: limit - used,
            reset_at: now_ms / 1_000 + in_s,
        };
        Forge {
            quotas: Each {
                graphql: quota(5_000, 1_500, 2_400),
                core: quota(5_000, 200, 1_000),
                search: quota(30, 0, 60),
            },
            points: Each::default(),
            creations: VecDeque::new(),
            open: Vec::new(),
            shut_until_ms: 0,
            resets: Vec::new(),
        }
    }

    /// What `gh api rate_limit` shows; it costs nothing.
    pub fn reading(&mut self, now_ms: u64) -> Reading {
        self.roll(now_ms);
        let Each { graphql, core, search } = self.quotas;
        let quotas = Each { graphql: Some(graphql), core: Some(core), search: Some(search) };
        Reading { fetched_at: Some(now_ms / 1_000), tried_at: Some(now_ms / 1_000), quotas }
    }

    /// One request arrives and is answered at `ends_ms`.
    pub fn answer(&mut self, request: &Request, now_ms: u64, ends_ms: u64) -> Result<(), Limit> {
        self.roll(now_ms);
        if now_ms < self.shut_until_ms {
            return Err(Limit::Secondary);
        }
        let quota = &mut self.quotas[request.resource];
        if quota.remaining == 0 {
            return Err(Limit::Primary);
        }
        quota.remaining -= 1;
        quota.used += 1;
        self.open.retain(|ends| *ends > now_ms);
        self.open.push(ends_ms);
        self.points[request.resource].push_back((now_ms, request.points));
        if request.creates {
            self.creations.push_back(now_ms);
        }
        if self.is_too_fast(request.resource, now_ms) {
            self.shut(now_ms);
            return Err(Limit::Secondary);
        }
        Ok(())
    }

    /// Somebody else with this token has met a secondary limit.
    pub fn shut(&mut self, now_ms: u64) {
        self.shut_until_ms = now_ms + SHUT_MS;
    }

    fn is_too_fast(&mut self, resource: Resource, now_ms: u64) -> bool {
        let points = &mut self.points[resource];
        while points.front().is_some_and(|(at, _)| at + MINUTE_MS <= now_ms) {
            points.pop_front();
        }
        while self.creations.front().is_some_and(|at| at + HOUR_MS <= now_ms) {
            self.creations.pop_front();
        }
        let a_minute = self.creations.iter().filter(|at| **at + MINUTE_MS > now_ms).count();
        points.iter().map(|(_, points)| points).sum::<u64>() > POINTS[resource]
            || a_minute > CREATIONS_A_MINUTE
            || self.creations.len() > CREATIONS_AN_HOUR
            || self.open.len() > AT_ONCE
    }

    fn roll(&mut self, now_ms: u64) {
        for resource in Resource::ALL {
            let window_s = if resource == Resource::Search { 60 } else { 3_600 };
            let quota = &mut self.quotas[resource];
            while quota.reset_at * 1_000 <= now_ms {
                if resource == Resource::Graphql {
                    self.resets.push((quota.reset_at * 1_000, quota.remaining));
                }
                *quota =
                    Quota { used: 0, remaining: quota.limit, reset_at: quota.reset_at + window_s, ..*quota };
            }
        }
    }
}
