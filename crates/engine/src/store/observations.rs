//! `observations.log`: one line per recorded call, the evidence behind every verdict (#1748, #3190).

use std::io;
use std::path::Path;

use super::ring::{Identity, Ring};
use crate::decide::signal::Signal;
use crate::decide::verdict::Observation;

/// The specification's bound on the log.
pub const MAX_LINES: u64 = 5_000;

/// The log as one reading found it.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The observations, oldest first.
    pub rows: Vec<Observation>,
    /// How many lines do not parse; they are skipped, never fatal.
    pub bad_lines: usize,
    /// What exactly was read.
    pub identity: Identity,
}

/// The ring in this state folder.
pub fn ring(state: &Path) -> Ring {
    Ring::new(state, "observations", MAX_LINES)
}

/// Appends one observation.
pub fn append(state: &Path, observation: &Observation) -> io::Result<()> {
    ring(state).append(line(observation).as_bytes())
}

/// Reads the whole log; a log that does not exist is an empty one.
pub fn read(state: &Path) -> io::Result<Reading> {
    let (bytes, identity) = ring(state).read()?;
    let mut reading = Reading { identity, ..Reading::default() };
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        match std::str::from_utf8(line).ok().and_then(parse) {
            Some(observation) => reading.rows.push(observation),
            None => reading.bad_lines += 1,
        }
    }
    Ok(reading)
}

/// The log's identity by one `stat`.
pub fn identity(state: &Path) -> io::Result<Identity> {
    ring(state).identity()
}

/// Forgets all evidence.
pub fn reset(state: &Path) -> io::Result<()> {
    ring(state).remove()
}

/// `epoch exit ms signal subcommand quota cost caller session`, TAB separated.
fn line(o: &Observation) -> String {
    let (at, exit, ms, signal, cost) = (o.at, o.exit, o.ms, o.signal.as_str(), o.cost);
    let (sub, quota) = (field(&o.subcommand, 64), field(&o.quota, 16));
    let (caller, session) = (field(&o.caller, 200), field(&o.session, 32));
    format!("{at}\t{exit}\t{ms}\t{signal}\t{sub}\t{quota}\t{cost}\t{caller}\t{session}")
}

/// A line an older shim wrote has the first five columns; later versions may add some.
fn parse(line: &str) -> Option<Observation> {
    let mut columns = line.split('\t');
    let mut next = || columns.next();
    let (at, exit, ms) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let (signal, subcommand) = (Signal::parse(next()?)?, next()?.to_string());
    let mut text = || next().filter(|t| !t.is_empty()).unwrap_or("-").to_string();
    let quota = text();
    let cost = text().parse().unwrap_or(0);
    let (caller, session) = (text(), text());
    Some(Observation { at, exit, ms, signal, subcommand, quota, cost, caller, session })
}

/// A value as a column: no control character, no more than `max_bytes`, never empty.
pub(super) fn field(value: &str, max_bytes: usize) -> String {
    let mut clean: String = value.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    while clean.len() > max_bytes {
        clean.pop();
    }
    if clean.is_empty() { "-".into() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn observation() -> Observation {
        Observation {
            at: 1_790_000_000,
            exit: 1,
            ms: 42,
            signal: Signal::Server,
            subcommand: "issue list".into(),
            quota: "graphql".into(),
            cost: 1,
            caller: "bigbrain/groom".into(),
            session: "56b20441".into(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let home = tempfile::tempdir().unwrap();
        append(home.path(), &observation()).unwrap();
        let reading = read(home.path()).unwrap();
        assert_eq!((reading.rows, reading.bad_lines), (vec![observation()], 0));
        assert_eq!(reading.identity, identity(home.path()).unwrap());
        let text = fs::read_to_string(home.path().join("observations.log")).unwrap();
        assert_eq!(text, "1790000000\t1\t42\tserver\tissue list\tgraphql\t1\tbigbrain/groom\t56b20441\n");
    }

    #[test]
    fn older_newer_and_broken_lines_are_told_apart() {
        let home = tempfile::tempdir().unwrap();
        let lines: &[&[u8]] = &[
            b"1\t0\t5\tok\tissue\n",
            b"2\t0\t5\tok\tapi\tcore\t1\twidget\tabc\tsome\tfuture\n",
            b"junk\n\xff\xfe\t\n3\t0\t5\tsplendid\tapi\n4\t0\n\n",
            b"5\t0\t5\tok\tissue\ttorn",
        ];
        fs::write(home.path().join("observations.log"), lines.concat()).unwrap();
        let reading = read(home.path()).unwrap();
        let seen: Vec<_> = reading.rows.iter().map(|o| (o.at, o.caller.as_str(), o.cost)).collect();
        assert_eq!(seen, [(1, "-", 0), (2, "widget", 1)]);
        assert_eq!(reading.bad_lines, 4);
    }

    #[test]
    fn no_value_can_break_out_of_its_column_or_its_line() {
        let home = tempfile::tempdir().unwrap();
        let odd = Observation {
            caller: "a\tb\nc\u{1b}[31m\u{85}".into(),
            subcommand: "x".repeat(2_000),
            session: String::new(),
            ..observation()
        };
        append(home.path(), &odd).unwrap();
        append(home.path(), &observation()).unwrap();
        let reading = read(home.path()).unwrap();
        assert_eq!((reading.rows.len(), reading.bad_lines), (2, 0));
        assert_eq!(reading.rows[0].caller, "a?b?c?[31m?");
        assert_eq!(reading.rows[0].session, "-");
        assert!(fs::read(home.path().join("observations.log")).unwrap().len() < 2 * 512);
    }
}
