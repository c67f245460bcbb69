//! `writes.log` in the state folder: which issues this machine has written to. A stored read that is older
//! than such a write says so when it is served (#1749).

use std::io;
use std::path::Path;

use super::observations::field;
use super::ring::Ring;

/// The most lines it keeps: the writes of some hours, of all callers.
pub const MAX_LINES: u64 = 1_000;

/// A write that the forge took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// When it had been taken, in milliseconds since the epoch.
    pub at_ms: u64,
    /// `host/owner/name` in lower case.
    pub repo: String,
    /// The issue.
    pub number: u64,
}

fn ring(state: &Path) -> Ring {
    Ring::new(state, "writes", MAX_LINES)
}

/// Appends one write: `epoch-ms repo number`, TAB separated.
pub fn append(state: &Path, written: &Written) -> io::Result<()> {
    let Written { at_ms, repo, number } = written;
    ring(state).append(format!("{at_ms}\t{}\t{number}", field(repo, 300)).as_bytes())
}

/// The writes after `since_ms`, oldest first. Lines that do not parse are passed over.
pub fn since(state: &Path, since_ms: u64) -> io::Result<Vec<Written>> {
    let (bytes, _) = ring(state).read()?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(parse).filter(|written| written.at_ms > since_ms).collect())
}

fn parse(line: &str) -> Option<Written> {
    let mut columns = line.split('\t');
    let (at_ms, repo) = (columns.next()?.parse().ok()?, columns.next()?.to_string());
    Some(Written { at_ms, repo, number: columns.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_come_back_and_noise_does_not() {
        let home = tempfile::tempdir().unwrap();
        let written = |at_ms| Written { at_ms, repo: "github.com/acme/widget".into(), number: 7 };
        assert_eq!(since(home.path(), 0).unwrap(), []);
        append(home.path(), &written(10)).unwrap();
        ring(home.path()).append(b"soon\tgithub.com/acme/widget\t7").unwrap();
        append(home.path(), &written(20)).unwrap();
        assert_eq!(since(home.path(), 9).unwrap(), [written(10), written(20)]);
        assert_eq!(since(home.path(), 10).unwrap(), [written(20)]);
    }
}
