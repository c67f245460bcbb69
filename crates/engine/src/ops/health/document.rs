//! The documents that `--json` prints and JS callers get.

use serde::Serialize;
use serde_json::Value;

use super::{Evidence, Status};
use crate::decide::quota;
use crate::decide::verdict::{Observation, Sample, State, Verdict};
use crate::ops::cache::Reads;

#[derive(Serialize)]
struct StatusDocument<'a> {
    schema: &'a str,
    state: State,
    reason: &'a str,
    causes: Vec<&'a str>,
    source: &'a str,
    sample: Sample,
    #[serde(rename = "checkedAt")]
    checked_at: u64,
    #[serde(rename = "ageSeconds")]
    age_s: u64,
    cache: Option<&'a Reads>,
    quota: Option<Value>,
}

impl Status {
    /// This status as `bob-forge-health/1`.
    pub fn to_json(&self) -> String {
        let Verdict { state, reason, sample, .. } = self.verdict;
        text(&StatusDocument {
            schema: "bob-forge-health/1",
            state,
            reason: reason.as_str(),
            causes: cause_names(&self.verdict),
            source: self.source.as_str(),
            sample,
            checked_at: self.checked_at,
            age_s: self.age_s,
            cache: self.cache.as_ref(),
            quota: self.quota.as_ref().map(quota::to_json),
        })
    }
}

impl Verdict {
    /// The part of a status that is the verdict alone: state, reason, causes, sample.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct VerdictDocument<'a> {
            state: State,
            reason: &'a str,
            causes: Vec<&'a str>,
            sample: Sample,
        }
        let (reason, causes) = (self.reason.as_str(), cause_names(self));
        text(&VerdictDocument { state: self.state, reason, causes, sample: self.sample })
    }
}

/// One observation, its fields named as the columns of the log.
#[derive(Serialize)]
pub struct Row<'a> {
    epoch: u64,
    exit: i32,
    ms: u64,
    signal: &'a str,
    subcommand: &'a str,
    quota: &'a str,
    cost: u64,
    caller: &'a str,
    session: &'a str,
}

impl<'a> From<&'a Observation> for Row<'a> {
    fn from(o: &'a Observation) -> Self {
        Row {
            epoch: o.at,
            exit: o.exit,
            ms: o.ms,
            signal: o.signal.as_str(),
            subcommand: &o.subcommand,
            quota: &o.quota,
            cost: o.cost,
            caller: &o.caller,
            session: &o.session,
        }
    }
}

impl Row<'_> {
    /// This observation as an object.
    pub fn to_json(&self) -> String {
        text(self)
    }
}

impl Evidence {
    /// This evidence as `bob-forge-observations/1`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct EvidenceDocument<'a> {
            schema: &'a str,
            window: u64,
            bad_lines: usize,
            observations: Vec<Row<'a>>,
        }
        text(&EvidenceDocument {
            schema: "bob-forge-observations/1",
            window: self.window_s,
            bad_lines: self.bad_lines,
            observations: self.rows.iter().map(Row::from).collect(),
        })
    }
}

fn cause_names(verdict: &Verdict) -> Vec<&'static str> {
    verdict.causes().into_iter().map(|(signal, _)| signal.as_str()).collect()
}

/// Plain structs of names and numbers have nothing in them that could fail.
fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}
