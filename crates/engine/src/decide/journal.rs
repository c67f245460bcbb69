//! The replay log: what was attempted, and what came of it. Attempts are written down before they are
//! sent, so that a killed replay leaves the one fact that matters (`RELIABILITY` D8).

use super::entry::{Entry, Reach, Status};
use super::queued::Step;

/// One event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step is about to be sent.
    Attempt,
    /// It was sent and acknowledged; the URL it has on the forge, where there is one.
    Delivered(String),
    /// It was found on the forge: an earlier attempt had got through.
    Found(String),
    /// It failed: how far it can have got, and why.
    Failed(Reach, String),
    /// The whole entry left the queue.
    Ended(Status, String),
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, in milliseconds since the epoch.
    pub at_ms: u64,
    /// Which entry.
    pub seq: u32,
    /// Which step; `None` for the entry as a whole.
    pub step: Option<Step>,
    /// What happened.
    pub event: Event,
}

impl Line {
    /// The line as columns, without its newline and its seal: epoch in ms, event, entry, step, detail,
    /// text.
    pub fn to_text(&self) -> String {
        let (event, detail, text) = match &self.event {
            Event::Attempt => ("attempt", "-", "-"),
            Event::Delivered(result) => ("delivered", "-", result.as_str()),
            Event::Found(result) => ("found", "-", result.as_str()),
            Event::Failed(reach, why) => ("failed", reach.as_str(), why.as_str()),
            Event::Ended(status, why) => ("ended", status.as_str(), why.as_str()),
        };
        let (id, step) = (super::entry::id(self.seq), self.step.map_or("-", Step::as_str));
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
        let text = if text.is_empty() { "-" } else { &text };
        format!("{}\t{event}\t{id}\t{step}\t{detail}\t{text}", self.at_ms)
    }

    /// Reads what [`to_text`](Line::to_text) wrote.
    pub fn parse(text: &str) -> Option<Line> {
        let columns: Vec<&str> = text.split('\t').collect();
        let [at, event, id, step, detail, text] = columns[..] else { return None };
        let text = if text == "-" { String::new() } else { text.to_string() };
        let event = match event {
            "attempt" => Event::Attempt,
            "delivered" => Event::Delivered(text),
            "found" => Event::Found(text),
            "failed" => Event::Failed(Reach::parse(detail)?, text),
            "ended" => Event::Ended(Status::ALL.into_iter().find(|s| s.as_str() == detail)?, text),
            _ => return None,
        };
        let step = if step == "-" { None } else { Some(Step::parse(step)?) };
        Some(Line { at_ms: at.parse().ok()?, seq: super::entry::parse_id(id)?, step, event })
    }
}

/// An attempt that may have got through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// When the first of them started, in milliseconds since the epoch: nothing older is ours.
    pub first_ms: u64,
    /// When the last of them ended, as far as anybody saw.
    pub last_ms: u64,
    /// Whether its answer was lost, so that the forge may still be at it.
    pub is_lost: bool,
}

/// What is known about one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// It landed; the URL it has on the forge.
    pub done: Option<String>,
    /// It may have landed.
    pub open: Option<Open>,
    /// An attempt is written down and its outcome is not: whoever sent it was killed.
    pub is_dangling: bool,
}

/// The history of one step of an entry. The failed live call counts as its first attempt wherever it
/// may have got through.
pub fn history(entry: &Entry, step: Step, lines: &[Line]) -> History {
    let mut history = History::default();
    if let Some(live) = entry.live {
        history.close(live.reach, live.started_ms, live.ended_ms);
    }
    let mut sent_ms = None;
    for line in lines.iter().filter(|line| line.seq == entry.seq && line.step == Some(step)) {
        match &line.event {
            Event::Attempt => sent_ms = Some(line.at_ms),
            Event::Delivered(result) | Event::Found(result) => {
                history.done = Some(result.clone());
                sent_ms = None;
            }
            Event::Failed(reach, _) => {
                history.close(*reach, sent_ms.take().unwrap_or(line.at_ms), line.at_ms);
            }
            Event::Ended(..) => {}
        }
    }
    if let Some(sent_ms) = sent_ms {
        history.is_dangling = true;
        history.close(Reach::Unknown, sent_ms, sent_ms);
    }
    history
}

impl History {
    fn close(&mut self, reach: Reach, started_ms: u64, ended_ms: u64) {
        if reach == Reach::Nothing {
            return;
        }
        let before = self.open.unwrap_or(Open { first_ms: started_ms, last_ms: ended_ms, is_lost: false });
        self.open = Some(Open {
            first_ms: before.first_ms.min(started_ms),
            last_ms: before.last_ms.max(ended_ms),
            is_lost: before.is_lost || reach == Reach::Unknown,
        });
    }
}

/// URLs on the forge that other entries have laid claim to.
pub fn claimed(lines: &[Line], by_others_than: u32) -> Vec<&str> {
    let result = |line: &'_ Line| -> bool { line.seq != by_others_than };
    lines
        .iter()
        .filter(|line| result(line))
        .filter_map(|line| match &line.event {
            Event::Delivered(url) | Event::Found(url) if !url.is_empty() => Some(url.as_str()),
            _ => None,
        })
        .collect()
}

/// The issue number that a create's handle stands for, once it has landed.
pub fn number_of(lines: &[Line], seq: u32) -> Option<u64> {
    url_of(lines, seq).and_then(super::entry::number_in_url)
}

/// The URL of the issue that a create has made, once it has landed.
pub fn url_of(lines: &[Line], seq: u32) -> Option<&str> {
    lines.iter().rev().filter(|line| line.seq == seq && line.step == Some(Step::Create)).find_map(|line| {
        match &line.event {
            Event::Delivered(url) | Event::Found(url) if super::entry::number_in_url(url).is_some() => {
                Some(url.as_str())
            }
            _ => None,
        }
    })
}

/// Whether a create came back clean: then it has set everything.
pub fn is_clean(lines: &[Line], seq: u32) -> bool {
    let of = |line: &&Line| line.seq == seq && line.step == Some(Step::Create);
    lines.iter().filter(of).any(|line| matches!(line.event, Event::Delivered(_)))
}

/// How far an entry has got, by the log: it may know more than the entry's own record, which is written after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing of it can be on the forge.
    Untouched,
    /// An attempt may have got through.
    Doubtful,
    /// Some of its steps have landed.
    Partly,
    /// All of it has.
    Landed,
}

/// See [`Standing`]. `steps` are the entry's.
pub fn standing(entry: &Entry, steps: &[Step], lines: &[Line]) -> Standing {
    let of: Vec<History> = steps.iter().map(|step| history(entry, *step, lines)).collect();
    let has_landed = !of.is_empty() && of.iter().all(|of| of.done.is_some());
    if has_landed || is_clean(lines, entry.seq) {
        Standing::Landed
    } else if of.iter().any(|of| of.done.is_some()) {
        Standing::Partly
    } else if of.iter().any(|of| of.open.is_some()) {
        Standing::Doubtful
    } else {
        Standing::Untouched
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
