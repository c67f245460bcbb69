//! `cache.log` in the state folder: which reads were answered from a cache, and which were not because
//! what was stored is past the staleness bound (#1749). The condition that `forge health` reports.

use std::io;
use std::path::Path;

use super::observations::field;
use super::ring::Ring;
use crate::decide::signal::Signal;

/// The most lines it keeps.
pub const MAX_LINES: u64 = 1_000;

/// One read that the forge could not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in epoch seconds.
    pub at: u64,
    /// Whether the stored answer was served; if not, it was past the bound.
    pub served: bool,
    /// Why the live call failed.
    pub signal: Signal,
    /// The age of the stored answer in seconds.
    pub age_s: u64,
    /// Command and subcommand.
    pub subcommand: String,
    /// Who read, as in an observation.
    pub caller: String,
    /// The session, as in an observation.
    pub session: String,
}

/// The ring in this state folder.
pub fn ring(state: &Path) -> Ring {
    Ring::new(state, "cache", MAX_LINES)
}

/// Appends one event: `epoch what signal age subcommand caller session`, TAB separated.
pub fn append(state: &Path, event: &Event) -> io::Result<()> {
    let Event { at, served, signal, age_s, .. } = event;
    let what = if *served { "served" } else { "stale" };
    let [subcommand, caller, session] =
        [&event.subcommand, &event.caller, &event.session].map(|text| field(text, 100));
    let line = format!("{at}\t{what}\t{}\t{age_s}\t{subcommand}\t{caller}\t{session}", signal.as_str());
    ring(state).append(line.as_bytes())
}

/// The events at or after `since_s`, oldest first. Lines that do not parse are passed over.
pub fn since(state: &Path, since_s: u64) -> io::Result<Vec<Event>> {
    let (bytes, _) = ring(state).read()?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(parse).filter(|event| event.at >= since_s).collect())
}

fn parse(line: &str) -> Option<Event> {
    let mut columns = line.split('\t');
    let at = columns.next()?.parse().ok()?;
    let served = match columns.next()? {
        "served" => true,
        "stale" => false,
        _ => return None,
    };
    let (signal, age_s) = (Signal::parse(columns.next()?)?, columns.next()?.parse().ok()?);
    let mut text = || columns.next().unwrap_or("-").to_string();
    Some(Event { at, served, signal, age_s, subcommand: text(), caller: text(), session: text() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_and_noise_does_not() {
        let home = tempfile::tempdir().unwrap();
        let event = |at, served| Event {
            at,
            served,
            signal: Signal::Server,
            age_s: 45,
            subcommand: "issue list".into(),
            caller: "wid\tget".into(),
            session: String::new(),
        };
        assert_eq!(since(home.path(), 0).unwrap(), []);
        append(home.path(), &event(10, true)).unwrap();
        ring(home.path()).append(b"10\tsplendid\tserver\t1\t-\t-\t-").unwrap();
        append(home.path(), &event(20, false)).unwrap();
        let read = since(home.path(), 10).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].caller.as_str(), read[0].session.as_str()), ("wid?get", "-"));
        assert_eq!(
            since(home.path(), 11).unwrap(),
            [Event { caller: "wid?get".into(), session: "-".into(), ..event(20, false) }]
        );
    }
}
