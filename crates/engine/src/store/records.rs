//! What the budget did, as logs: `budget.log` (waits and refreshes), `quota.log` (reads of the quota) and
//! `ratelimit.log` (rate-limited answers) (#3190).

use std::io;
use std::path::Path;

use super::observations::field;
use super::ring::Ring;
use crate::decide::quota::{Counter, Entry, Event, Limited, Read, limit_name};
use crate::decide::reading::{Quota, Reading};
use crate::decide::signal::Limit;

/// The specification's bound on each of the three.
pub const MAX_LINES: u64 = 3_000;

/// `budget.log`. Its lock is not `budget.lock`: that one is the lease on `budget.env`.
pub fn budget(state: &Path) -> Ring {
    ring(state, "budget")
}

/// `quota.log`.
pub fn quota(state: &Path) -> Ring {
    ring(state, "quota")
}

/// `ratelimit.log`.
pub fn ratelimit(state: &Path) -> Ring {
    ring(state, "ratelimit")
}

fn ring(state: &Path, name: &str) -> Ring {
    Ring::new(state, name, MAX_LINES).locked_by(&format!("{name}.log.lock"))
}

/// Writes down what the budget did: `epoch event quota remaining seconds subcommand`.
pub fn append_entry(state: &Path, entry: &Entry) -> io::Result<()> {
    let Entry { at, event, seconds, .. } = entry;
    let (event, remaining) = (event.as_str(), dash(entry.remaining));
    let (quota, subcommand) = (field(&entry.quota, 16), field(&entry.subcommand, 64));
    let line = format!("{at}\t{event}\t{quota}\t{remaining}\t{seconds}\t{subcommand}");
    budget(state).append(line.as_bytes())
}

/// Writes down a read of the quota: `epoch`, then used, remaining and reset for graphql and for core.
pub fn append_read(state: &Path, reading: &Reading, now_s: u64) -> io::Result<()> {
    let columns = |quota: Option<Quota>| {
        let column = |value: fn(Quota) -> u64| dash(quota.map(value));
        [column(|q| q.used), column(|q| q.remaining), column(|q| q.reset_at)].join("\t")
    };
    let (graphql, core) = (columns(reading.quotas.graphql), columns(reading.quotas.core));
    quota(state).append(format!("{now_s}\t{graphql}\t{core}").as_bytes())
}

/// Writes down a rate-limited answer: `epoch quota subcommand caller session primary|secondary`.
pub fn append_limited(state: &Path, limited: &Limited) -> io::Result<()> {
    let (at, limit) = (limited.at, limit_name(limited.limit));
    let (quota, subcommand) = (field(&limited.quota, 16), field(&limited.subcommand, 64));
    let (caller, session) = (field(&limited.caller, 200), field(&limited.session, 32));
    let line = format!("{at}\t{quota}\t{subcommand}\t{caller}\t{session}\t{limit}");
    ratelimit(state).append(line.as_bytes())
}

/// Every line of `budget.log` that parses, oldest first.
pub fn entries(state: &Path) -> io::Result<Vec<Entry>> {
    rows(&budget(state), |columns| {
        let [at, event, quota, remaining, seconds, subcommand, ..] = columns else { return None };
        Some(Entry {
            at: at.parse().ok()?,
            event: Event::parse(event)?,
            quota: (*quota).into(),
            remaining: remaining.parse().ok(),
            seconds: seconds.parse().unwrap_or(0),
            subcommand: (*subcommand).into(),
        })
    })
}

/// Every line of `quota.log` that parses, oldest first.
pub fn reads(state: &Path) -> io::Result<Vec<Read>> {
    rows(&quota(state), |columns| {
        let [at, graphql_used, graphql_remaining, graphql_reset, core_used, core_remaining, core_reset, ..] =
            columns
        else {
            return None;
        };
        let counter = |used: &str, remaining: &str, reset: &str| {
            let (used, remaining) = (used.parse().ok()?, remaining.parse().ok()?);
            Some(Counter { used, remaining, reset_at: reset.parse().ok()? })
        };
        Some(Read {
            at: at.parse().ok()?,
            graphql: counter(graphql_used, graphql_remaining, graphql_reset),
            core: counter(core_used, core_remaining, core_reset),
        })
    })
}

/// Every line of `ratelimit.log` that parses, oldest first.
pub fn limited(state: &Path) -> io::Result<Vec<Limited>> {
    rows(&ratelimit(state), |columns| {
        let [at, quota, subcommand, caller, session, limit, ..] = columns else { return None };
        let limit = match *limit {
            "primary" => Limit::Primary,
            "secondary" => Limit::Secondary,
            _ => return None,
        };
        let text = |column: &str| column.to_string();
        let (quota, subcommand) = (text(quota), text(subcommand));
        let (caller, session) = (text(caller), text(session));
        Some(Limited { at: at.parse().ok()?, quota, subcommand, caller, session, limit })
    })
}

fn rows<T>(ring: &Ring, parse: impl Fn(&[&str]) -> Option<T>) -> io::Result<Vec<T>> {
    let (bytes, _) = ring.read()?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| parse(&line.split('\t').collect::<Vec<_>>())).collect())
}

fn dash(value: Option<u64>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::reading::Each;

    fn entry() -> Entry {
        let (quota, subcommand) = ("graphql".to_string(), "issue list".to_string());
        Entry { at: 5, event: Event::Wait, quota, remaining: Some(120), seconds: 412, subcommand }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let home = tempfile::tempdir().unwrap();
        let unknown = Entry { event: Event::RefreshUnreadable, remaining: None, ..entry() };
        append_entry(home.path(), &entry()).unwrap();
        append_entry(home.path(), &unknown).unwrap();
        assert_eq!(entries(home.path()).unwrap(), [entry(), unknown]);
        let quota = Quota { limit: 5_000, remaining: 4_000, used: 1_000, reset_at: 99 };
        let quotas = Each { graphql: Some(quota), ..Each::default() };
        append_read(home.path(), &Reading { quotas, ..Reading::default() }, 7).unwrap();
        let counter = Some(Counter { used: 1_000, remaining: 4_000, reset_at: 99 });
        assert_eq!(reads(home.path()).unwrap(), [Read { at: 7, graphql: counter, core: None }]);
        let met = Limited {
            at: 9,
            quota: "core".into(),
            subcommand: "api".into(),
            caller: "a\tb".into(),
            session: "-".into(),
            limit: Limit::Secondary,
        };
        append_limited(home.path(), &met).unwrap();
        assert_eq!(limited(home.path()).unwrap(), [Limited { caller: "a?b".into(), ..met }]);
    }

    #[test]
    fn the_columns_are_the_specifications() {
        let home = tempfile::tempdir().unwrap();
        append_entry(home.path(), &entry()).unwrap();
        append_read(home.path(), &Reading::default(), 7).unwrap();
        let text = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
        assert_eq!(text("budget.log"), "5\twait\tgraphql\t120\t412\tissue list\n");
        assert_eq!(text("quota.log"), "7\t-\t-\t-\t-\t-\t-\n");
    }

    #[test]
    fn odd_lines_are_skipped_and_the_lease_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("budget.lock")).unwrap();
        std::fs::write(home.path().join("budget.log"), "1\tsplendid\t-\t-\t0\tx\nodd\n\u{1}\n").unwrap();
        append_entry(home.path(), &entry()).unwrap();
        assert_eq!(entries(home.path()).unwrap(), [entry()]);
        assert!(home.path().join("budget.lock").is_dir());
    }
}
