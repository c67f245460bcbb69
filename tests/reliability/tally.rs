//! What one arm of one test counted.

use std::collections::BTreeSet;

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
    pub notes: BTreeSet<String>,
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
