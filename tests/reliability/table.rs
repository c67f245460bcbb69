//! The table of all tests, and `target/reliability.json`.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::tally::Tally;
use crate::support::forge::root;

/// What the table shows of a test: the name in the file, the head of the column, the words of the summary.
const COLUMNS: [(&str, &str, &str); 10] = [
    ("runs", "runs", "runs"),
    ("kills", "kills", "kills survived"),
    ("faults", "faults", "faults"),
    ("interleavings", "orders", "interleavings"),
    ("cuts", "cuts", "power cuts"),
    ("lost", "lost", "lost"),
    ("doubled", "doubled", "doubled"),
    ("half", "torn", "torn"),
    ("two_holders", "two h.", "two holders"),
    ("wrong", "wrong", "otherwise wrong"),
];

/// Which of them have to be 0.
const FINDINGS: [&str; 5] = ["lost", "doubled", "half", "two_holders", "wrong"];

/// One test in the table: its object in the file.
pub struct Row(Value);

impl Row {
    pub fn new(id: &str, tally: &Tally, control: &Tally, took: Duration) -> Row {
        if let Some(why) = &tally.why_not {
            return Row(json!({"id": id, "not_run": why, "commit": commit()}));
        }
        let mut row = json!({
            "id": id, "seconds": took.as_secs(), "control": control.without, "control_bad": control.found(),
            "seed": tally.seed, "commit": commit(), "notes": tally.notes,
            "broken_by": if tally.is_by_steps { "named steps of a build for tests" } else { "the system" },
        });
        let counts = [
            tally.runs,
            tally.kills,
            tally.faults,
            tally.interleavings,
            tally.cuts,
            tally.lost,
            tally.doubled,
            tally.half,
            tally.two_holders,
            tally.wrong,
        ];
        for ((name, ..), count) in COLUMNS.iter().zip(counts) {
            row[*name] = count.into();
        }
        Row(row)
    }

    /// What another process printed of a test, on its last line; a process that died is a finding.
    pub fn parse(id: &str, printed: &str) -> Row {
        let value = printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
        Row(value.unwrap_or_else(|| json!({"id": id, "wrong": 1, "notes": ["it ended without a word"]})))
    }

    /// For [`Row::parse`].
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or(0)
    }

    fn why_not(&self) -> Option<&str> {
        self.0["not_run"].as_str()
    }

    fn is_red(&self) -> bool {
        self.number("control_bad") > 0
    }

    /// Nothing found with the guard, something without it.
    pub fn is_good(&self) -> bool {
        self.why_not().is_some() || (FINDINGS.iter().all(|name| self.number(name) == 0) && self.is_red())
    }

    /// One line of the table, with what was found under it.
    pub fn line(&self) -> String {
        let id = self.0["id"].as_str().unwrap_or_default();
        if let Some(why) = self.why_not() {
            return format!("{id:<42} not run: {why}");
        }
        let mut line = format!("{id:<42}");
        for (name, ..) in COLUMNS {
            let _ = write!(line, " {:>7}", self.number(name));
        }
        let control = if self.is_red() { "red" } else { "GREEN" };
        let _ = write!(line, " {control:>7} {:>5} s", self.number("seconds"));
        for note in self.0["notes"].as_array().into_iter().flatten() {
            let _ = write!(line, "\n    {}", note.as_str().unwrap_or_default());
        }
        line
    }
}

/// The heads of the columns.
pub fn head() -> String {
    let heads =
        COLUMNS.iter().fold(format!("{:<42}", "test"), |line, (_, head, _)| line + &format!(" {head:>7}"));
    heads + "  control    time"
}

/// The sums of all tests.
pub fn summary(rows: &[Row]) -> String {
    let ran: Vec<&Row> = rows.iter().filter(|row| row.why_not().is_none()).collect();
    let sum = |(name, _, words): &(&str, &str, &str)| {
        format!("{words} {}", ran.iter().map(|row| row.number(name)).sum::<u64>())
    };
    let sums: Vec<String> = COLUMNS.iter().map(sum).collect();
    let red = ran.iter().filter(|row| row.is_red()).count();
    format!(
        "{} · control arms red {red}/{} · not run {} · commit {}",
        sums.join(" · "),
        ran.len(),
        rows.len() - ran.len(),
        commit(),
    )
}

/// Writes `target/reliability.json`.
pub fn write(rows: &[Row]) {
    let values: Vec<&Value> = rows.iter().map(|row| &row.0).collect();
    let text = serde_json::to_string_pretty(&values).unwrap() + "\n";
    std::fs::write(root().join("target/reliability.json"), text).unwrap();
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").args(args).current_dir(root()).output().ok()?;
        Some(String::from_utf8_lossy(&done.stdout).trim().to_string()).filter(|text| !text.is_empty())
    };
    let changed = if git(&["status", "--porcelain"]).is_some() { "+changes" } else { "" };
    git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".into()) + changed
}
