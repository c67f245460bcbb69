//! What a replay came to.

use serde::Serialize;
use serde_json::{Value, json};

use crate::decide::entry;
use crate::store::queue::Queue;

/// What an entry came to in one replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It landed, now or by an earlier attempt.
    Delivered,
    /// It was left out on purpose.
    Skipped,
    /// The forge refused it as often as it may.
    Failed,
    /// It did not pass the checks, and was not sent.
    Refused,
    /// It still waits.
    Waiting,
    /// A dry run would have sent it.
    Would,
}

impl Outcome {
    /// The word that rows show.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Delivered => "delivered",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "failed",
            Outcome::Refused => "refused",
            Outcome::Waiting => "waiting",
            Outcome::Would => "pending",
        }
    }
}

/// One entry's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its number.
    pub seq: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// In words.
    pub text: String,
}

/// What a replay came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether it delivered, or only said what it would.
    pub applied: bool,
    /// Its rows, in order.
    pub rows: Vec<Row>,
    /// Why it stopped before its end, where it did.
    pub stopped: Option<String>,
    /// What else there is to say.
    pub note: Option<String>,
    /// How many entries still wait.
    pub pending: usize,
    /// How many entries on file were set aside, by this replay or before it.
    pub set_aside: usize,
}

impl Report {
    pub(super) fn new(applied: bool) -> Report {
        Report { applied, rows: Vec::new(), stopped: None, note: None, pending: 0, set_aside: 0 }
    }

    pub(super) fn row(&mut self, seq: u32, outcome: Outcome, text: String) {
        self.rows.push(Row { seq, outcome, text });
    }

    pub(super) fn finish(mut self, queue: &Queue) -> std::io::Result<Report> {
        let loaded = queue.load()?;
        self.pending = loaded.pending().count();
        let stuck =
            |found: &&crate::store::queue::Found| found.entry().is_none_or(|e| e.status.needs_a_person());
        self.set_aside = loaded.found.iter().filter(stuck).count();
        Ok(self)
    }

    /// How many rows came to this.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.rows.iter().filter(|row| row.outcome == outcome).count()
    }

    /// 0 only when nothing is left undelivered and nothing was set aside; else 3.
    pub fn exit_code(&self) -> u8 {
        let set_aside = [Outcome::Skipped, Outcome::Failed, Outcome::Refused];
        let clean = self.stopped.is_none() && set_aside.iter().all(|outcome| self.count(*outcome) == 0);
        if clean && self.pending == 0 && self.set_aside == 0 { 0 } else { 3 }
    }

    /// What an automatic replay has to say: what it delivered and what it set aside, with its reason.
    pub fn line(&self) -> Option<String> {
        let set_aside =
            |row: &&Row| matches!(row.outcome, Outcome::Skipped | Outcome::Failed | Outcome::Refused);
        let delivered = self.count(Outcome::Delivered);
        let stuck: Vec<String> = self
            .rows
            .iter()
            .filter(set_aside)
            .map(|row| format!("{} {}: {}", entry::id(row.seq), row.outcome.as_str(), row.text))
            .collect();
        if delivered == 0 && stuck.is_empty() {
            return None;
        }
        let stuck =
            if stuck.is_empty() { String::new() } else { format!(" Set aside: {}.", stuck.join("; ")) };
        Some(format!("delivered {delivered} queued write(s), {} still pending.{stuck}", self.pending))
    }

    /// This report as `bob-forge-replay/1`.
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| json!({"seq": row.seq, "id": entry::id(row.seq), "outcome": row.outcome.as_str(), "text": row.text}))
            .collect();
        json!({
            "schema": "bob-forge-replay/1",
            "applied": self.applied,
            "rows": rows,
            "delivered": self.count(Outcome::Delivered),
            "skipped": self.count(Outcome::Skipped),
            "failed": self.count(Outcome::Failed),
            "refused": self.count(Outcome::Refused),
            "pending": self.pending,
            "setAside": self.set_aside,
            "stopped": self.stopped,
            "note": self.note,
            "exitCode": self.exit_code(),
        })
    }
}
