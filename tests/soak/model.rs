//! What every caller was told, and whether the forge holds exactly that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::running::Run;
use crate::support::spawn::Exit;

/// What a write was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Create { key: String },
    Comment { on: String, key: String },
    Label { on: String, label: String },
    Title { on: String, title: String },
    Close { on: String },
}

/// What its caller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Exit 0 as gh gave it.
    Done,
    /// The queue's marker: it will be delivered.
    Queued,
    /// It failed. Nobody may count on it, and nothing of it may come later a second time.
    Failed,
    /// The caller killed it and knows nothing.
    Killed,
}

impl Answer {
    fn is_promise(self) -> bool {
        matches!(self, Answer::Done | Answer::Queued)
    }
}

/// One write and its answer.
#[derive(Clone, Debug)]
pub struct Told {
    pub what: What,
    pub answer: Answer,
    pub started: Duration,
    pub ended: Duration,
    pub said: String,
}

#[derive(Default)]
pub struct Model {
    pub told: Vec<Told>,
    pub outages: u64,
    pub replays: u64,
    reads: [u64; 3],
    seen: BTreeMap<String, BTreeSet<String>>,
    served: Vec<(String, String)>,
    /// Of each answer about one issue that was given as live: which issue, when it was asked for, its state.
    live: Vec<(String, Duration, String)>,
    verdicts: u64,
    bad: BTreeMap<&'static str, Vec<String>>,
}

impl Model {
    /// A read is live, marked, or failed. `about` is the issue it shows, and when it was asked for.
    pub fn read(&mut self, words: &str, about: Option<(&str, Duration)>, run: &Run, is_merged: bool) {
        let text = run.out();
        let (answer, is_marked) = match text.find("[forge-cache]") {
            Some(at) if is_merged => (text[..at].to_string(), true),
            _ => (text.clone(), run.err().contains("[forge-cache]")),
        };
        // With `2>&1`, what the shim says of a wait stands before the answer.
        let answer: String = answer.lines().filter(|line| !line.starts_with("[forge-")).collect();
        match run.exit {
            Exit::Code(0) if is_marked => {
                self.reads[1] += 1;
                self.served.push((words.into(), answer));
            }
            Exit::Code(0) => {
                self.reads[0] += 1;
                match (serde_json::from_str::<Value>(&answer), about) {
                    (Err(_), _) => {
                        self.note("untrue reads", format!("gh {words} succeeded with {answer:.200}"));
                    }
                    (Ok(shown), Some((on, started))) => {
                        let state = shown["state"].as_str().unwrap_or_default().to_string();
                        self.live.push((on.into(), started, state));
                    }
                    _ => {}
                }
                self.seen.entry(words.into()).or_default().insert(answer);
            }
            _ => self.reads[2] += 1,
        }
    }

    /// A verdict against the ten newest signals it was derived from.
    pub fn verdict(&mut self, newest: &[&str], state: &str) {
        self.verdicts += 1;
        let answered = newest.iter().filter(|signal| matches!(**signal, "ok" | "notfound")).count();
        let is_true = match answered {
            10 => state == "operational",
            0 => matches!(state, "unreachable" | "degraded"),
            _ => state != "unknown",
        };
        if !is_true {
            self.note("untrue verdicts", format!("{state} after {newest:?}"));
        }
    }

    /// Something else that must not be.
    pub fn wrong(&mut self, what: String) {
        self.note("otherwise wrong", what);
    }

    fn note(&mut self, kind: &'static str, what: String) {
        self.bad.entry(kind).or_default().push(what);
    }

    pub fn is_good(&self) -> bool {
        self.bad.is_empty()
    }

    /// Holds the forge's issues to what was told.
    pub fn compare(&mut self, issues: &Value, seed: u64) -> Value {
        let issues: Vec<&Value> = issues.as_array().into_iter().flatten().collect();
        for told in std::mem::take(&mut self.told).iter().inspect(|_| ()) {
            self.compare_one(told, &issues);
            self.told.push(told.clone());
        }
        self.unpromised(&issues);
        self.in_order(&issues);
        self.titles(&issues);
        self.live_is_live();
        for (words, answer) in std::mem::take(&mut self.served) {
            if !self.seen.get(&words).is_some_and(|seen| seen.contains(&answer)) {
                self.note(
                    "untrue reads",
                    format!("gh {words} was served what nobody was answered: {answer:.200}"),
                );
            }
        }
        self.figures(seed)
    }

    fn compare_one(&mut self, told: &Told, issues: &[&Value]) {
        let of = |key: &str| issues.iter().filter(|issue| issue["body"] == key).collect::<Vec<_>>();
        let on = |key: &str| of(key).first().map(|issue| (**issue).clone()).unwrap_or_default();
        let promised = told.answer.is_promise();
        match &told.what {
            What::Create { key } => self.count(told, of(key).len()),
            What::Comment { on: issue, key } => {
                self.count(told, comments(&on(issue)).iter().filter(|body| *body == key).count());
            }
            What::Label { on: issue, label } => {
                let has = on(issue)["labels"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|l| l["name"] == *label || l == label);
                if promised && !has {
                    self.note("lost", format!("{told:?}"));
                }
            }
            // The last one counts, see `titles`.
            What::Title { .. } => {}
            What::Close { on: issue } => {
                if promised
                    && on(issue)["state"].as_str().is_none_or(|state| !state.eq_ignore_ascii_case("closed"))
                {
                    self.note("lost", format!("{told:?}"));
                }
            }
        }
    }

    fn count(&mut self, told: &Told, there: usize) {
        match (there, told.answer.is_promise()) {
            (0, true) => self.note("lost", format!("{told:?}")),
            (2.., _) => self.note("doubled", format!("{there} times {told:?}")),
            _ => {}
        }
    }

    /// Nothing is on the forge that nobody typed, nor in another place than was typed.
    fn unpromised(&mut self, issues: &[&Value]) {
        let mut typed: BTreeSet<(String, String)> = BTreeSet::new();
        for told in &self.told {
            match &told.what {
                What::Create { key } => drop(typed.insert((String::new(), key.clone()))),
                What::Comment { on, key } => drop(typed.insert((on.clone(), key.clone()))),
                _ => {}
            }
        }
        let mut strange = Vec::new();
        for issue in issues {
            let body = issue["body"].as_str().unwrap_or_default().to_string();
            if !body.starts_with("common") && !typed.contains(&(String::new(), body.clone())) {
                strange.push(format!("an issue with {body:?}"));
            }
            let foreign =
                comments(issue).into_iter().filter(|text| !typed.contains(&(body.clone(), text.clone())));
            strange.extend(foreign.map(|text| format!("{text:?} on {body:?}")));
        }
        strange.into_iter().for_each(|what| self.note("unpromised", what));
    }

    /// On one issue, what was promised before another call began stands before it.
    fn in_order(&mut self, issues: &[&Value]) {
        let mut of_issue: BTreeMap<&str, Vec<&Told>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.answer.is_promise()) {
            if let What::Comment { on, .. } = &told.what {
                of_issue.entry(on).or_default().push(told);
            }
        }
        let mut wrong = Vec::new();
        for issue in issues {
            let order = comments(issue);
            let place = |told: &Told| match &told.what {
                What::Comment { key, .. } => order.iter().position(|body| body == key),
                _ => None,
            };
            let told = issue["body"].as_str().and_then(|body| of_issue.get(body));
            for (first, second) in told
                .into_iter()
                .flatten()
                .flat_map(|first| told.into_iter().flatten().map(move |second| (first, second)))
            {
                if first.ended < second.started && place(first) > place(second) && place(second).is_some() {
                    wrong.push(format!("{second:?}\n      stands before {first:?}"));
                }
            }
        }
        wrong.into_iter().for_each(|what| self.note("out of order", what));
    }

    /// An issue has the title that its owner was promised last, or one of those that nobody was told the end
    /// of: a caller's killed one may land whenever it does, a failed one before the next.
    fn titles(&mut self, issues: &[&Value]) {
        let mut wrong = Vec::new();
        for issue in issues {
            let (title, body) = (issue["title"].as_str(), issue["body"].as_str().unwrap_or_default());
            let mut may = BTreeSet::from([format!("title of {body}")]);
            let mut killed = BTreeSet::new();
            for told in &self.told {
                match &told.what {
                    What::Title { on, title } if on == body => {
                        if told.answer.is_promise() {
                            may.clear();
                        }
                        may.insert(title.clone());
                        if told.answer == Answer::Killed {
                            killed.insert(title.clone());
                        }
                    }
                    _ => {}
                }
            }
            let is_fit = title.is_some_and(|title| may.contains(title) || killed.contains(title));
            if !is_fit && !body.starts_with("common") {
                wrong.push(format!("{body} is called {title:?}, not one of {may:?}"));
            }
        }
        wrong.into_iter().for_each(|what| self.note("lost", what));
    }

    /// What was given as live is not older than what the forge had said to be done before it was asked.
    fn live_is_live(&mut self) {
        let is_closed_before = |issue: &str, at: Duration| {
            self.told.iter().any(|told| {
                let is_its = matches!(&told.what, What::Close { on } if on == issue);
                is_its && told.answer == Answer::Done && told.ended < at
            })
        };
        let old = self.live.iter().filter(|(on, at, state)| state == "OPEN" && is_closed_before(on, *at));
        let old: Vec<String> = old.map(|(on, at, _)| format!("{on} is shown open at {at:?}, live")).collect();
        old.into_iter().for_each(|what| self.note("untrue reads", what));
    }

    fn figures(&self, seed: u64) -> Value {
        // Told that it is not queued, for want of room or because an earlier write is in the way.
        let refused = self.told.iter().filter(|told| told.said.contains("NOT queued")).count();
        let answers = |answer: Answer| self.told.iter().filter(|told| told.answer == answer).count();
        let bad = |kind: &str| self.bad.get(kind).map_or(0, Vec::len);
        json!({
            "seed": seed, "writes": self.told.len(), "done": answers(Answer::Done), "queued": answers(Answer::Queued),
            "failed": answers(Answer::Failed), "refused": refused, "killed": answers(Answer::Killed), "outages": self.outages,
            "replays_by_hand": self.replays, "reads_live": self.reads[0], "reads_marked": self.reads[1],
            "reads_failed": self.reads[2], "verdicts": self.verdicts, "lost": bad("lost"), "doubled": bad("doubled"),
            "unpromised": bad("unpromised"), "out_of_order": bad("out of order"), "untrue_reads": bad("untrue reads"),
            "untrue_verdicts": bad("untrue verdicts"), "otherwise_wrong": bad("otherwise wrong"),
        })
    }

    /// The figures and what is behind the bad ones.
    pub fn text(&self, figures: &Value) -> String {
        let mut text = String::new();
        for (name, value) in figures.as_object().into_iter().flatten() {
            text += &format!("{:<18} {value}\n", name.replace('_', " "));
        }
        for (kind, notes) in &self.bad {
            notes.iter().take(5).for_each(|note| text += &format!("  {kind}: {note}\n"));
        }
        text + if self.is_good() { "soak: green" } else { "soak: RED" }
    }
}

fn comments(issue: &Value) -> Vec<String> {
    let comments = issue["comments"].as_array().into_iter().flatten();
    comments.map(|comment| comment["body"].as_str().unwrap_or_default().to_string()).collect()
}
