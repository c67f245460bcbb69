//! The documents that `--json` prints, JS callers get, and the warp status line and fleet snapshot show.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Dropped, View, summary};
use crate::decide::entry::{self, Entry, Status};
use crate::decide::write::WriteKind;

/// What waits, and what will not arrive by itself. The two are counted apart everywhere: the first need
/// nobody, the second need a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// How many entries wait.
    pub depth: usize,
    /// Seconds that the oldest of them has waited.
    #[serde(rename = "oldestAgeSeconds")]
    pub oldest_age_s: Option<u64>,
    /// How many wait, by kind.
    pub pending: BTreeMap<&'static str, usize>,
    /// How many were set aside, by status.
    #[serde(rename = "setAside")]
    pub set_aside: BTreeMap<&'static str, usize>,
    /// Each entry that needs a person: its id, what it is, its status and the reason.
    pub problems: Vec<Problem>,
    /// Handles whose create has not landed.
    pub unresolved: Vec<String>,
    /// Numbers of writes that were cut short while they were queued; nobody was told they were.
    pub incomplete: Vec<u32>,
    /// The last outcome that replay wrote down.
    #[serde(rename = "lastReplay")]
    pub last_replay: Option<LastReplay>,
    /// Whether automatic replay may deliver here.
    pub marked: bool,
    /// What a person should know besides.
    pub notes: Vec<String>,
    /// One line for a status line; `null` when there is nothing to say.
    pub line: Option<String>,
    /// `yellow` while entries merely wait, `red` when one needs a person.
    pub colour: Option<&'static str>,
}

/// An entry that will not arrive by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `q000003`.
    pub id: String,
    /// What it would have done.
    pub what: String,
    /// `skipped`, `failed` or `refused`.
    pub status: &'static str,
    /// Why.
    pub reason: String,
}

/// The last outcome in the replay log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastReplay {
    /// When, in epoch seconds.
    pub at: u64,
    /// Which entry.
    pub id: String,
    /// What came of it.
    pub outcome: &'static str,
    /// Why, where it failed.
    pub reason: String,
}

/// The compact form of a queue, for surfaces that show many.
pub fn overview(view: &View, now_s: u64) -> Overview {
    let mut pending = BTreeMap::new();
    for kind in WriteKind::ALL {
        let count = view.loaded.pending().filter(|entry| entry.kind == kind).count();
        if count > 0 {
            pending.insert(kind.as_str(), count);
        }
    }
    let depth = view.loaded.pending().count();
    let oldest = view.loaded.pending().map(|entry| entry.enqueued_at).min();
    let set_aside: BTreeMap<_, _> = Status::ALL
        .into_iter()
        .filter(|status| status.needs_a_person() || *status == Status::Dropped)
        .map(|status| (status.as_str(), view.count(status)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let problems = problems(view);
    let (line, colour) = line(depth, &problems);
    Overview {
        depth,
        oldest_age_s: oldest.map(|at| now_s.saturating_sub(at)),
        pending,
        set_aside,
        problems,
        unresolved: view.unresolved(),
        incomplete: view.orphans(now_s),
        last_replay: last_replay(view),
        marked: view.is_marked,
        notes: notes(view, depth),
        line,
        colour,
    }
}

fn problems(view: &View) -> Vec<Problem> {
    let of_entry = |entry: &Entry| Problem {
        id: entry.id.clone(),
        what: summary(entry),
        status: entry.status.as_str(),
        reason: entry.reason.clone().unwrap_or_default(),
    };
    let of_file = |seq: u32, why: &str| Problem {
        id: entry::id(seq),
        what: "a file that holds no entry".into(),
        status: Status::Refused.as_str(),
        reason: format!("its file {why}"),
    };
    let problem = |found: &crate::store::queue::Found| match &found.record {
        Ok(record) if record.entry.status.needs_a_person() => Some(of_entry(&record.entry)),
        Ok(_) => None,
        Err(why) => Some(of_file(found.seq, why)),
    };
    view.loaded.found.iter().filter_map(problem).collect()
}

fn line(depth: usize, problems: &[Problem]) -> (Option<String>, Option<&'static str>) {
    let waiting = (depth > 0).then(|| format!("{depth} pending"));
    let stuck = problems.first().map(|first| {
        let more =
            if problems.len() > 1 { format!(", and {} more", problems.len() - 1) } else { String::new() };
        format!("{} set aside ({} {}: {}{more})", problems.len(), first.id, first.status, first.reason)
    });
    let colour = if stuck.is_some() { Some("red") } else { waiting.as_ref().map(|_| "yellow") };
    let parts: Vec<String> = waiting.into_iter().chain(stuck).collect();
    (colour.map(|_| format!("Forge queue: {}", parts.join(", "))), colour)
}

fn notes(view: &View, depth: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if depth > 0 && !view.is_marked {
        notes.push(
            "entries wait and this project is not marked, so nothing replays them by itself: if they are \
             yours, run `bob forge queue replay --apply`"
                .to_string(),
        );
    }
    if let Some(trouble) = &view.log_trouble {
        notes.push(format!("replay.log {trouble}"));
    }
    if view.log.bad_lines > 0 {
        notes
            .push(format!("{} line(s) of replay.log are not this machine's, or damaged", view.log.bad_lines));
    }
    notes
}

fn last_replay(view: &View) -> Option<LastReplay> {
    use crate::decide::journal::Event;
    view.log.lines.iter().rev().find_map(|line| {
        let (outcome, reason) = match &line.event {
            Event::Delivered(_) | Event::Found(_) | Event::Ended(Status::Delivered, _) => ("delivered", ""),
            Event::Failed(_, why) => ("failed", why.as_str()),
            // A drop and a clear are nobody's replay.
            Event::Attempt | Event::Ended(Status::Dropped, _) => return None,
            Event::Ended(status, why) => (status.as_str(), why.as_str()),
        };
        let id = entry::id(line.seq);
        Some(LastReplay { at: line.at_ms / 1_000, id, outcome, reason: reason.to_string() })
    })
}

/// The whole status as `bob-forge-queue-status/1`.
pub fn status_json(view: &View, now_s: u64) -> Value {
    let mut document = serde_json::to_value(overview(view, now_s)).unwrap_or_default();
    document["schema"] = json!("bob-forge-queue-status/1");
    document["path"] = json!(crate::store::queue::path(&view.place.root).to_string_lossy());
    document["delivered"] = json!(view.count(Status::Delivered));
    document["exitCode"] = json!(exit_code(view));
    document
}

/// 0 when nothing is undelivered, else 3.
pub fn exit_code(view: &View) -> u8 {
    let waits = view.loaded.pending().next().is_some();
    let stuck = Status::ALL.into_iter().any(|status| status.needs_a_person() && view.count(status) > 0);
    if waits || stuck { 3 } else { 0 }
}

/// An entry that was set aside, and what waits for it.
pub fn dropped_json(dropped: &Dropped) -> Value {
    let mut document = entry_json(&dropped.entry);
    document["dependents"] = json!(dropped.dependents);
    document
}

/// An entry as JS callers see it: its file, and what it does in words.
pub fn entry_json(entry: &Entry) -> Value {
    let mut document = serde_json::to_value(entry).unwrap_or_default();
    document["summary"] = json!(summary(entry));
    document
}
