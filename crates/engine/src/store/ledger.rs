//! `rate.log`: every gated call of the last window, on the whole machine (#3978).
//!
//! Read, decision and append happen under one kernel lock, so two callers never both take the last slot.
//! The log is kept short by whoever finds it long.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lock::Lock;
use super::{atomic, private};
use crate::checkpoint::step;
use crate::decide::gate::Slot;
use crate::decide::resource::Resource;
use crate::decide::verdict::SKEW_S;

/// How long a caller waits for the lock before it goes without a slot.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How long the lock folder of an older shim is honoured; its owner died when it gets older.
const OLD_LOCK_S: u64 = 30;

/// Lines from which on calls that have left the window are dropped, once they are half of the log.
const LONG: usize = 400;

/// Past this the log is not one of ours; only its end is read.
const READ_MAX: u64 = 256 << 10;

/// The ledger's moment.
#[derive(Clone, Copy)]
pub struct Now<'a> {
    /// The time in epoch seconds.
    pub s: u64,
    /// The window in seconds.
    pub window_s: u64,
    /// Whether a signal has asked this process to end.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// Shows the calls of the window to `decide` and writes down the slots that it takes.
///
/// # Errors
/// The lock is not to be had in time, or the log cannot be read or written; nothing is decided then.
pub fn take<T>(state: &Path, now: Now<'_>, decide: impl FnOnce(&[Slot]) -> (T, Vec<Slot>)) -> io::Result<T> {
    wait_for_older_shim(state, now.interrupted)?;
    let held = match Lock::exclusive(&lock_path(state), LOCK_WAIT) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            private::ensure_folder(state)?;
            Lock::exclusive(&lock_path(state), LOCK_WAIT)?
        }
        held => held?,
    };
    let _held = held.ok_or(io::ErrorKind::WouldBlock)?;
    let log = load(state)?;
    let rows = settled(&log.rows, now);
    let (result, slots) = decide(&rows);
    // A row from before the clock was set back counts as one of now. That has to be written down even when
    // nobody goes: it would be one of every later now too, and hold all callers up until the old time is back.
    let was_ahead = log.rows.iter().any(|slot| is_ahead(slot, now.s));
    if slots.is_empty() && !was_ahead {
        return Ok(result);
    }
    // Most of a long log has left the window: now and then, so that few calls pay for it.
    let is_long = log.rows.len() > LONG && rows.len() <= log.rows.len() / 2;
    if is_long || log.is_odd || rows != log.rows[log.rows.len() - rows.len()..] {
        let text: String = rows.iter().chain(&slots).map(line).collect();
        atomic::replace(&path(state), text.as_bytes())?;
        return Ok(result);
    }
    let text: String = log.tail.iter().copied().map(String::from).chain(slots.iter().map(line)).collect();
    let mut log = private::open(OpenOptions::new().append(true).create(true), &path(state))?;
    step("ledger: append")?;
    log.write_all(text.as_bytes())?;
    Ok(result)
}

/// The calls on file, oldest first.
///
/// # Errors
/// The log exists and cannot be read.
pub fn read(state: &Path) -> io::Result<Vec<Slot>> {
    load(state).map(|log| log.rows)
}

fn path(state: &Path) -> PathBuf {
    state.join("rate.log")
}

fn lock_path(state: &Path) -> PathBuf {
    state.join("rate.log.lock")
}

/// An older shim guards its own update of the log with a folder.
fn wait_for_older_shim(state: &Path, interrupted: &dyn Fn() -> bool) -> io::Result<()> {
    let folder = state.join("rate.lock");
    while let Ok(found) = fs::symlink_metadata(&folder) {
        // A time ahead of now is one of a clock that was set back.
        let age = found.modified()?.elapsed().unwrap_or_else(|ahead| ahead.duration());
        if age.as_secs() >= OLD_LOCK_S {
            break;
        }
        if interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

struct Log {
    rows: Vec<Slot>,
    /// What the next line has to begin with: the log may end in half a line.
    tail: Option<char>,
    /// It holds more than rows.
    is_odd: bool,
}

fn load(state: &Path) -> io::Result<Log> {
    let mut log = Log { rows: Vec::new(), tail: None, is_odd: false };
    let mut file = match private::open(OpenOptions::new().read(true), &path(state)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(log),
        Err(e) => return Err(e),
    };
    let size = file.metadata()?.len();
    if size > READ_MAX {
        io::Seek::seek(&mut file, io::SeekFrom::Start(size - READ_MAX))?;
        log.is_odd = true;
    }
    let mut bytes = Vec::with_capacity(size.min(READ_MAX) as usize);
    file.take(READ_MAX).read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    log.tail = (whole < bytes.len()).then_some('\n');
    for line in bytes[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        match std::str::from_utf8(line).ok().and_then(parse) {
            Some(slot) => log.rows.push(slot),
            None => log.is_odd = true,
        }
    }
    Ok(log)
}

/// The rows of the window. A row ahead of now was written before the clock was set back: it counts as one
/// of now, once, so that nobody is locked out for longer than a window.
fn settled(rows: &[Slot], now: Now<'_>) -> Vec<Slot> {
    let (now_s, window_s) = (now.s, now.window_s);
    let clamp = |slot: &Slot| Slot { at: if is_ahead(slot, now_s) { now_s } else { slot.at }, ..*slot };
    rows.iter().map(clamp).filter(|slot| slot.at.saturating_add(window_s) > now_s).collect()
}

fn is_ahead(slot: &Slot, now_s: u64) -> bool {
    slot.at > now_s.saturating_add(SKEW_S)
}

fn line(slot: &Slot) -> String {
    let kind = if slot.background { "bg" } else { "fg" };
    format!("{}\t{}\t{kind}\n", slot.at, slot.resource.as_str())
}

/// `epoch resource fg|bg`; older shims may separate by spaces, later ones add columns.
fn parse(line: &str) -> Option<Slot> {
    let mut columns = line.split_ascii_whitespace();
    let (at, resource) = (columns.next()?.parse().ok()?, Resource::parse(columns.next()?)?);
    Some(Slot { at, resource, background: columns.next()? == "bg" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const NOW: u64 = 10_000;

    fn never() -> bool {
        false
    }

    fn now(s: u64) -> Now<'static> {
        Now { s, window_s: 60, interrupted: &never }
    }

    fn slot(at: u64) -> Slot {
        Slot { at, resource: Resource::Graphql, background: false }
    }

    /// Takes a slot while fewer than `bound` are in the window.
    fn one(state: &Path, s: u64, bound: usize) -> io::Result<bool> {
        take(state, now(s), |rows| {
            let free = rows.len() < bound;
            (free, if free { vec![slot(s)] } else { vec![] })
        })
    }

    #[test]
    fn a_hundred_callers_never_take_more_than_there_is() {
        let home = tempfile::tempdir().unwrap();
        let callers: Vec<_> = (0..100)
            .map(|_| {
                let state = home.path().to_path_buf();
                std::thread::spawn(move || one(&state, NOW, 29).unwrap())
            })
            .collect();
        let taken = callers.into_iter().map(|caller| caller.join().unwrap()).filter(|taken| *taken).count();
        assert_eq!((taken, read(home.path()).unwrap().len()), (29, 29));
    }

    #[test]
    fn the_log_stays_short() {
        let home = tempfile::tempdir().unwrap();
        for n in 0..1_500 {
            assert!(one(home.path(), NOW + n, 1_000).unwrap());
            assert!(read(home.path()).unwrap().len() <= LONG + 1);
        }
        let seen = take(home.path(), now(NOW + 1_499), |rows| (rows.len(), vec![])).unwrap();
        assert_eq!(seen, 60, "what has left the window is not shown");
    }

    #[test]
    fn torn_lines_and_other_shims_lines_are_told_apart() {
        let home = tempfile::tempdir().unwrap();
        fs::write(path(home.path()), "9999 graphql fg\n9999\tcore\tbg\tmore\nodd\n10000\tgraph").unwrap();
        assert!(one(home.path(), NOW, 10).unwrap());
        let core = Slot { at: 9_999, resource: Resource::Core, background: true };
        assert_eq!(read(home.path()).unwrap(), [slot(9_999), core, slot(NOW)]);
        fs::write(path(home.path()), "9999\tgraphql\tfg\n10000\tgraph").unwrap();
        assert!(one(home.path(), NOW, 10).unwrap());
        assert_eq!(read(home.path()).unwrap(), [slot(9_999), slot(NOW)]);
    }

    #[test]
    fn a_clock_set_back_locks_nobody_out_for_longer_than_a_window() {
        let home = tempfile::tempdir().unwrap();
        fs::write(path(home.path()), "999999\tgraphql\tfg\n".repeat(2)).unwrap();
        assert!(!one(home.path(), NOW, 2).unwrap());
        assert!(one(home.path(), NOW, 3).unwrap());
        assert!(!one(home.path(), NOW + 59, 3).unwrap());
        assert!(one(home.path(), NOW + 60, 1).unwrap());
    }

    #[test]
    fn a_full_window_of_another_time_is_over_after_a_window() {
        let home = tempfile::tempdir().unwrap();
        fs::write(path(home.path()), "999999\tgraphql\tfg\n".repeat(3)).unwrap();
        // Nobody goes, so nobody writes a slot of its own.
        assert!(!one(home.path(), NOW, 3).unwrap());
        assert!(!one(home.path(), NOW + 59, 3).unwrap());
        assert!(one(home.path(), NOW + 60, 3).unwrap());
    }

    #[test]
    fn a_held_lock_and_a_dead_shims_folder_have_their_bounds() {
        let home = tempfile::tempdir().unwrap();
        let held = Lock::exclusive(&lock_path(home.path()), Duration::ZERO).unwrap();
        let since = Instant::now();
        assert_eq!(one(home.path(), NOW, 9).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(since.elapsed() < LOCK_WAIT * 2);
        drop(held);
        let folder = home.path().join("rate.lock");
        fs::create_dir(&folder).unwrap();
        let interrupted = Now { interrupted: &|| true, ..now(NOW) };
        let refused = take(home.path(), interrupted, |_| ((), vec![])).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Interrupted);
        let remover = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            fs::remove_dir(folder).unwrap();
        });
        assert!(one(home.path(), NOW, 9).unwrap());
        assert!(remover.is_finished(), "it waited for the folder to go");
        let old = home.path().join("rate.lock");
        fs::create_dir(&old).unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(31);
        fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        let since = Instant::now();
        assert!(one(home.path(), NOW, 9).unwrap());
        assert!(since.elapsed() < Duration::from_secs(1));
    }
}
