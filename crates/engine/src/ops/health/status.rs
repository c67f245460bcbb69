//! Cache, then evidence, then one probe.
//!
//! # One probe for everybody
//!
//! Callers without evidence queue at `health.lock` and look again when it is their turn; the first one
//! asks and the others find its answer. The lock is held across the probe: that is its purpose, it is
//! the second exception from "no lock across a child" (the replay's is the first), and the probe's own
//! time limit bounds it. Nothing but probes takes this lock, so no call of gh ever waits for it.

use std::path::Path;
use std::time::Duration;

use super::{append, probe, state_folder};
use crate::control::Guard;
use crate::decide::quota::Report;
use crate::decide::verdict::{Observation, Reason, State, Stored, Verdict, classify};
use crate::error::{Error, Result};
use crate::ops::{Context, budget, cache};
use crate::store::lock::Lock;
use crate::store::ring::Identity;
use crate::store::{observations as log, private, verdict};

/// Seconds a probe past its time limit may take to end: it is asked to, then killed.
const PROBE_ENDS_S: u64 = 5;

/// How a status is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the forge may be asked when there is no evidence.
    pub probe: bool,
    /// Seconds a verdict is reused; by default the setting's.
    pub ttl_s: Option<u64>,
    /// Seconds back that an observation is evidence; by default the setting's.
    pub window_s: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { probe: true, ttl_s: None, window_s: None }
    }
}

/// Where a verdict comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Calls that were made anyway.
    Observations,
    /// A call made to find out.
    Probe,
    /// The verdict of an earlier status, from the very same log.
    Cache,
}

impl Source {
    /// The name that documents, messages and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Observations => "observations",
            Source::Probe => "probe",
            Source::Cache => "cache",
        }
    }
}

/// A verdict with where it comes from.
#[derive(Debug)]
pub struct Status {
    /// The verdict.
    pub verdict: Verdict,
    /// Where it comes from.
    pub source: Source,
    /// When it was made, in epoch seconds.
    pub checked_at: u64,
    /// Seconds since it was made.
    pub age_s: u64,
    /// Reads that the forge did not answer of late: a condition of its own, whatever the verdict. `None`
    /// where nobody could look.
    pub cache: Option<cache::Reads>,
    /// The quota, a reading beside the verdict that never changes it. `None` when nothing is known.
    pub quota: Option<Report>,
    /// What could not be read, written or started. The rest of the status is then made without it.
    pub trouble: Option<Error>,
}

/// The verdict now: the stored one while it holds, else the evidence inside the window, else a probe.
/// It always answers; what cannot be read or written is named in [`Status::trouble`].
pub fn status(context: &Context, options: &Options) -> Status {
    known(context, options).unwrap_or_else(|| with_reads(context, ask(context, options)))
}

/// The verdict as far as it is known without starting anything; `None` when a probe is needed.
pub fn known(context: &Context, options: &Options) -> Option<Status> {
    let status = look(context, options);
    (is_settled(&status) || !options.probe).then(|| with_reads(context, status))
}

/// The state of [`known`] alone, without what only a report needs.
pub fn known_state(context: &Context, options: &Options) -> Option<State> {
    let status = look(context, options);
    (is_settled(&status) || !options.probe).then_some(status.verdict.state)
}

fn with_reads(context: &Context, status: Status) -> Status {
    let status = Status { quota: budget::known(context).unwrap_or_default(), ..status };
    match cache::reads(context) {
        Ok(cache) => Status { cache, ..status },
        Err(trouble) => Status { trouble: status.trouble.or(Some(trouble)), ..status },
    }
}

/// The turn of this process to ask the forge. `None` when there is nothing to take a turn at (an
/// unwritable state folder), or when the one before has hung for longer than any probe may.
pub(super) fn turn(context: &Context) -> Option<Lock> {
    let state = context.settings.state.as_deref()?;
    private::ensure_folder(state).ok()?;
    let patience = Duration::from_secs(context.settings.probe_timeout_s.saturating_add(PROBE_ENDS_S));
    Lock::exclusive(&state.join("health.lock"), patience).ok().flatten()
}

/// A stored `unknown` is what a probe found out, or did not; nobody else stores one.
fn is_settled(status: &Status) -> bool {
    status.verdict.state != State::Unknown || status.source == Source::Cache
}

fn look(context: &Context, options: &Options) -> Status {
    let (now_s, ttl_s, window_s) = times(context, options);
    let found = state_folder(context).and_then(|state| {
        if let Some(stored) = stored(state, now_s, ttl_s, window_s) {
            return Ok(served(stored, now_s));
        }
        let (verdict, identity) = judge(state, now_s, window_s)?;
        if verdict.state != State::Unknown {
            keep(state, &identity, &verdict, ttl_s, now_s);
        }
        Ok(fresh(verdict, Source::Observations, now_s))
    });
    found.unwrap_or_else(|trouble| Status {
        trouble: Some(trouble),
        ..fresh(classify(&[], now_s, window_s), Source::Observations, now_s)
    })
}

fn ask(context: &Context, options: &Options) -> Status {
    let _turn = turn(context);
    let before = look(context, options);
    if is_settled(&before) {
        return before;
    }
    match probe::ask(context) {
        Ok(observation) => conclude(context, options, observation),
        Err(trouble) => Status {
            verdict: Verdict { reason: Reason::NoGh, ..before.verdict },
            trouble: before.trouble.or(Some(trouble)),
            ..before
        },
    }
}

/// Records what a probe saw and judges again. If it cannot be recorded, it is still what was seen.
fn conclude(context: &Context, options: &Options, observation: Observation) -> Status {
    let (now_s, ttl_s, window_s) = times(context, options);
    let recorded = append(context, &observation).and_then(|()| {
        let state = state_folder(context)?;
        let (verdict, identity) = judge(state, now_s, window_s)?;
        keep(state, &identity, &verdict, ttl_s, now_s);
        Ok(fresh(verdict, Source::Probe, now_s))
    });
    recorded.unwrap_or_else(|trouble| Status {
        trouble: Some(trouble),
        ..fresh(classify(&[observation], now_s, window_s), Source::Probe, now_s)
    })
}

fn times(context: &Context, options: &Options) -> (u64, u64, u64) {
    let ttl_s = options.ttl_s.unwrap_or(context.settings.ttl_s);
    let window_s = options.window_s.unwrap_or(context.settings.window_s);
    (context.clock.now_s(), ttl_s, window_s)
}

fn judge(state: &Path, now_s: u64, window_s: u64) -> Result<(Verdict, Identity)> {
    let reading =
        log::read(state).map_err(|e| Error::state("read the observation log", log::ring(state).path(), e))?;
    Ok((classify(&reading.rows, now_s, window_s), reading.identity))
}

fn stored(state: &Path, now_s: u64, ttl_s: u64, window_s: u64) -> Option<Stored> {
    let stored = verdict::read(state, &log::identity(state).ok()?)?;
    (stored.is_fresh(now_s, ttl_s, window_s) || Guard::Clock.is_off()).then_some(stored)
}

/// A verdict that cannot be stored is made again by the next caller: slower, never wrong.
fn keep(state: &Path, identity: &Identity, verdict: &Verdict, ttl_s: u64, checked_at: u64) {
    if ttl_s > 0 {
        let stored = Stored { verdict: verdict.clone(), ttl_s, checked_at };
        let _ = verdict::write(state, identity, &stored);
    }
}

fn served(stored: Stored, now_s: u64) -> Status {
    let age_s = now_s.saturating_sub(stored.checked_at);
    Status {
        verdict: stored.verdict,
        source: Source::Cache,
        checked_at: stored.checked_at,
        age_s,
        cache: None,
        quota: None,
        trouble: None,
    }
}

fn fresh(verdict: Verdict, source: Source, now_s: u64) -> Status {
    Status { verdict, source, checked_at: now_s, age_s: 0, cache: None, quota: None, trouble: None }
}
