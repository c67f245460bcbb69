//! What the cache holds, and what was read from it: the documents.

use std::path::PathBuf;

use serde::Serialize;

use super::super::Context;
use crate::decide::cache_key::Shown;
use crate::error::{Error, Result};
use crate::store::{cache, cache_log, project};

/// How far back reads from the cache are reported, in seconds. Longer than the window of evidence: the
/// forge can be operational again while what a run acts on came from the cache minutes ago.
pub const READS_WINDOW_S: u64 = 3_600;

/// The `cache` block of a health report: reads that the forge could not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// How many were answered from a cache.
    pub served: u64,
    /// How many failed though an answer was stored: it was past the staleness bound.
    pub stale: u64,
    /// When the last one was answered from a cache, in epoch seconds.
    #[serde(rename = "lastServedAt")]
    pub last_served_at: Option<u64>,
    /// How old that answer was, in seconds.
    #[serde(rename = "lastAnswerAgeSeconds")]
    pub last_answer_age_s: Option<u64>,
    /// Why the live call failed.
    #[serde(rename = "lastSignal")]
    pub last_signal: Option<&'static str>,
    /// Its command and subcommand.
    #[serde(rename = "lastCommand")]
    pub last_command: Option<String>,
    /// How far back was looked, in seconds.
    pub window: u64,
}

/// Reads from the cache in the last hour, on this machine; `None` without a state folder to look in.
///
/// # Errors
/// `EFORGE_STATE` when the log exists and cannot be read.
pub fn reads(context: &Context) -> Result<Option<Reads>> {
    let Some(state) = context.settings.state.as_deref() else { return Ok(None) };
    let since_s = context.clock.now_s().saturating_sub(READS_WINDOW_S);
    let events = cache_log::since(state, since_s)
        .map_err(|e| Error::state("read the log of cached reads", cache_log::ring(state).path(), e))?;
    let served = |event: &&cache_log::Event| event.served;
    let last = events.iter().rev().find(served);
    Ok(Some(Reads {
        served: events.iter().filter(served).count() as u64,
        stale: events.iter().filter(|event| !event.served).count() as u64,
        last_served_at: last.map(|event| event.at),
        last_answer_age_s: last.map(|event| event.age_s),
        last_signal: last.map(|event| event.signal.as_str()),
        last_command: last.map(|event| event.subcommand.clone()),
        window: READS_WINDOW_S,
    }))
}

/// What a project's cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The project; `None` outside a checkout.
    pub project: Option<PathBuf>,
    /// Whether anything is stored and served at all.
    pub enabled: bool,
    /// The staleness bound in seconds.
    pub max_age_s: u64,
    /// The answers, newest first, each with its age in seconds (`None` for one from the future).
    pub rows: Vec<(cache::Row, Option<u64>)>,
    /// Files that are no answer that can be trusted.
    pub damaged: u64,
}

/// What the cache of this project holds.
///
/// # Errors
/// `EFORGE_STATE` when its folder cannot be read.
pub fn status(context: &Context) -> Result<Status> {
    let project = context.cwd.as_deref().and_then(project::root);
    let listing = match &project {
        Some(root) => cache::list(root).map_err(|e| Error::state("read the read cache in", root, e))?,
        None => cache::Listing::default(),
    };
    let now_s = context.clock.now_s();
    let aged = |row: cache::Row| {
        let age_s = now_s.checked_sub(row.started_ns / 1_000_000_000);
        (row, age_s)
    };
    Ok(Status {
        project,
        enabled: context.settings.cache_enabled,
        max_age_s: context.settings.cache_max_age_s,
        rows: listing.rows.into_iter().map(aged).collect(),
        damaged: listing.damaged,
    })
}

impl Status {
    /// Bytes of all answers.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|(row, _)| row.bytes).sum()
    }

    /// Whether an answer of this age would be served.
    pub fn is_fresh(&self, age_s: Option<u64>) -> bool {
        age_s.is_some_and(|age_s| age_s < self.max_age_s)
    }

    /// How many answers would not be served any more.
    pub fn stale(&self) -> usize {
        self.rows.iter().filter(|(_, age_s)| !self.is_fresh(*age_s)).count()
    }

    /// This status as `bob-forge-cache/1`.
    pub fn to_json(&self) -> String {
        let entries = self.rows.iter().map(|(row, age_s)| {
            let Shown { host, repo, args, shape } = &row.question;
            EntryDocument {
                args,
                repo: Some(repo.as_str()).filter(|repo| !repo.is_empty()),
                host,
                shape,
                bytes: row.bytes,
                stored_at: row.started_ns / 1_000_000_000,
                age_s: *age_s,
                fresh: self.is_fresh(*age_s),
            }
        });
        let entries: Vec<_> = entries.collect();
        let ages = || self.rows.iter().filter_map(|(_, age_s)| *age_s);
        let document = StatusDocument {
            schema: "bob-forge-cache/1",
            project: self.project.as_ref().map(|project| project.to_string_lossy().into_owned()),
            enabled: self.enabled,
            max_age_s: self.max_age_s,
            count: entries.len(),
            stale: self.stale(),
            damaged: self.damaged,
            bytes: self.bytes(),
            newest_age_s: ages().min(),
            oldest_age_s: ages().max(),
            entries,
        };
        // Names and numbers have nothing in them that could fail.
        serde_json::to_string(&document).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct StatusDocument<'a> {
    schema: &'a str,
    project: Option<String>,
    enabled: bool,
    #[serde(rename = "maxAgeSeconds")]
    max_age_s: u64,
    count: usize,
    stale: usize,
    damaged: u64,
    bytes: u64,
    #[serde(rename = "newestAgeSeconds")]
    newest_age_s: Option<u64>,
    #[serde(rename = "oldestAgeSeconds")]
    oldest_age_s: Option<u64>,
    entries: Vec<EntryDocument<'a>>,
}

#[derive(Serialize)]
struct EntryDocument<'a> {
    args: &'a [String],
    repo: Option<&'a str>,
    host: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    shape: &'a [String],
    bytes: u64,
    #[serde(rename = "storedAt")]
    stored_at: u64,
    #[serde(rename = "ageSeconds")]
    age_s: Option<u64>,
    fresh: bool,
}
