//! What one test counted, and the table of all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::forge::root;

/// The counts of one arm of one test.
pub struct Tally {
    pub seed: u64,
    /// The guards that are switched off; empty for the programs as they are shipped.
    pub without: &'static str,
    pub runs: u64,
    pub kills: u64,
    pub faults: u64,
    /// Orders of steps that were taken.
    pub interleavings: u64,
    /// States after a power cut.
    pub cuts: u64,
    pub lost: u64,
    pub doubled: u64,
    pub half: u64,
    pub two_holders: u64,
    /// Whatever else was not as promised.
    pub wrong: u64,
    /// Whether named steps of a build for tests stood for system calls of the shipped programs.
    pub is_by_steps: bool,
    /// Why the test could not run.
    pub why_not: Option<String>,
    notes: BTreeSet<String>,
}

/// The way in which something was not as promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    Lost,
    Doubled,
    Half,
    TwoHolders,
    Wrong,
}

impl Tally {
    pub fn new(seed: u64, without: &'static str) -> Tally {
        let notes = BTreeSet::new();
        let (runs, kills, faults, interleavings, cuts) = (0, 0, 0, 0, 0);
        let (lost, doubled, half, two_holders, wrong) = (0, 0, 0, 0, 0);
        Tally {
            seed,
            without,
            runs,
            kills,
            faults,
            interleavings,
            cuts,
            lost,
            doubled,
            half,
            two_holders,
            wrong,
            is_by_steps: false,
            why_not: None,
            notes,
        }
    }

    pub fn is_control(&self) -> bool {
        !self.without.is_empty()
    }

    /// Counts one finding.
    pub fn bad(&mut self, how: Bad, what: impl Into<String>) {
        let what = what.into();
        match how {
            Bad::Lost => self.lost += 1,
            Bad::Doubled => self.doubled += 1,
            Bad::Half => self.half += 1,
            Bad::TwoHolders => self.two_holders += 1,
            Bad::Wrong => self.wrong += 1,
        }
        if self.notes.len() < 6 {
            self.notes.insert(format!("{how:?}: {what}"));
        }
    }

    /// Counts a finding unless `holds`.
    pub fn expect(&mut self, holds: bool, how: Bad, what: impl FnOnce() -> String) {
        if !holds {
            self.bad(how, what());
        }
    }

    pub fn found(&self) -> u64 {
        self.lost + self.doubled + self.half + self.two_holders + self.wrong
    }

    /// What another process's tally of a part found, one finding a line.
    pub fn told(&self) -> String {
        let notes = self.notes.iter().map(|note| note.replace('\n', " ") + "\n");
        format!("{}\n{}", self.runs, notes.collect::<String>())
    }

    /// Takes over what another process told.
    pub fn hear(&mut self, told: &str) {
        let mut lines = told.lines();
        self.runs += lines.next().and_then(|runs| runs.parse::<u64>().ok()).unwrap_or(0);
        for line in lines {
            let (how, what) = line.split_once(": ").unwrap_or(("", line));
            let all = [Bad::Lost, Bad::Doubled, Bad::Half, Bad::TwoHolders];
            let how = all.into_iter().find(|bad| format!("{bad:?}") == how).unwrap_or(Bad::Wrong);
            self.bad(how, what);
        }
    }

    /// How often a test by chance is repeated: a control arm until it has shown what it is there for.
    pub fn rounds(&self, of_the_test: u64) -> u64 {
        if self.is_control() { of_the_test * 20 } else { of_the_test }
    }

    /// A control arm has shown what it is there for with its first finding.
    pub fn is_settled(&self) -> bool {
        self.is_control() && self.found() > 0
    }
}

/// One test in the table.
pub struct Row {
    value: Value,
    notes: Vec<String>,
    why_not: Option<String>,
}

impl Row {
    pub fn new(id: &str, tally: &Tally, control: &Tally, took: Duration) -> Row {
        let Tally {
            runs, kills, faults, interleavings, cuts, lost, doubled, half, two_holders, wrong, ..
        } = tally;
        let value = match &tally.why_not {
            Some(why) => json!({"id": id, "not_run": why, "commit": commit()}),
            None => json!({
                "id": id, "runs": runs, "kills": kills, "faults": faults, "interleavings": interleavings, "cuts": cuts,
                "lost": lost, "doubled": doubled,
                "half": half, "two_holders": two_holders, "wrong": wrong, "seconds": took.as_secs(),
                "control": control.without, "control_bad": control.found(), "seed": tally.seed, "commit": commit(),
                "broken_by": if tally.is_by_steps { "named steps of a build for tests" } else { "the system" },
            }),
        };
        Row { value, notes: tally.notes.iter().cloned().collect(), why_not: tally.why_not.clone() }
    }

    fn number(&self, name: &str) -> u64 {
        self.value[name].as_u64().unwrap_or(0)
    }

    /// Nothing found with the guard, something without it.
    pub fn is_good(&self) -> bool {
        let found = ["lost", "doubled", "half", "two_holders", "wrong"].map(|name| self.number(name));
        self.why_not.is_some() || (found.iter().all(|n| *n == 0) && self.number("control_bad") > 0)
    }

    /// One line of the table, with what was found under it.
    pub fn line(&self) -> String {
        let id = self.value["id"].as_str().unwrap_or_default();
        if let Some(why) = &self.why_not {
            return format!("{id:<42} not run: {why}");
        }
        let columns = ["runs", "kills", "faults", "cuts", "lost", "doubled", "half", "two_holders", "wrong"];
        let mut line = format!("{id:<42}");
        for name in columns {
            let _ = write!(line, " {:>7}", self.number(name));
        }
        let control = if self.number("control_bad") > 0 { "red" } else { "GREEN" };
        let _ = write!(line, " {control:>7} {:>5} s", self.number("seconds"));
        for note in &self.notes {
            let _ = write!(line, "\n    {note}");
        }
        line
    }
}

/// The table that the issue asks for.
pub fn table(rows: &[Row]) -> String {
    let ran: Vec<&Row> = rows.iter().filter(|row| row.why_not.is_none()).collect();
    let sum = |name: &str| ran.iter().map(|row| row.number(name)).sum::<u64>();
    let red = ran.iter().filter(|row| row.number("control_bad") > 0).count();
    let mut text = format!(
        "\n{:<42} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
        "test",
        "runs",
        "kills",
        "faults",
        "cuts",
        "lost",
        "doubled",
        "half",
        "two h.",
        "wrong",
        "control",
        "time"
    );
    rows.iter().for_each(|row| text += &format!("{}\n", row.line()));
    let not_run = rows.len() - ran.len();
    text + &format!(
        "\nkills survived {} · faults {} · interleavings {} · power cuts {} · runs {} · lost {} · doubled {} · half {} · two holders {} · otherwise wrong {} · \
         control arms red {red}/{} · not run {not_run} · commit {}",
        sum("kills"),
        sum("faults"),
        sum("interleavings"),
        sum("cuts"),
        sum("runs"),
        sum("lost"),
        sum("doubled"),
        sum("half"),
        sum("two_holders"),
        sum("wrong"),
        ran.len(),
        commit(),
    )
}

/// Writes `target/reliability.json`.
pub fn write(rows: &[Row]) {
    let values: Vec<&Value> = rows.iter().map(|row| &row.value).collect();
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
