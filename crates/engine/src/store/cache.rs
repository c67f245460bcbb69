//! `<project>/.claude/forge/cache`: the last answer to every cacheable question (#1749).
//!
//! One file a question, `NAME.entry`: one line of header, the key's bytes, the answer's bytes exactly as
//! gh printed them, and a seal over all of it. A file is written aside and then takes the name, so that
//! a reader finds a whole one, be its writer killed at any moment; one that is damaged, cut, or was not
//! written by this machine for this project is a miss, never an error.
//!
//! `lock` is the writers' kernel lock and holds `entries bytes`: the bounds are kept without listing the
//! folder. It is written before what it counts, so that a killed writer leaves it too high, never too
//! low; when it says that a bound is passed, the folder is listed and the truth written down.

use std::fs;
use std::hash::Hasher;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::folder::Folder;
use super::lock::Lock;
use crate::control::Guard;
use crate::decide::cache_key::{Account, Key, Shown, sip};
use crate::decide::fallback::Known;

/// Answers this long and longer are not stored (`CONTRACT` section 3).
pub const ANSWER_MAX: u64 = 8 << 20;
/// The most a project keeps.
pub const BOUNDS: Bounds = Bounds { entries: 2_000, bytes: 256 << 20 };

const STORE: &str = "cache";
const SCHEMA: &str = "bob-forge-cache/1";
const SUFFIX: &str = ".entry";
const LOCK: &str = "lock";
/// A writer waits this long for another; then its answer is not stored, which costs nothing but itself.
const LOCK_WAIT: Duration = Duration::from_millis(50);
const HEADER_MAX: u64 = 256;
const KEY_MAX: u64 = 256 << 10;
const SEAL_BYTES: usize = 16;
const MEMO_BYTES: usize = 42;
const FILE_MAX: u64 = HEADER_MAX + KEY_MAX + ANSWER_MAX + SEAL_BYTES as u64;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Files.
    pub entries: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// An answer, and the call that got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When the call started, in nanoseconds since the epoch.
    pub started_ns: u64,
    /// As whom it was asked.
    pub account: Account,
    /// The exact bytes. `None` marks a question that the forge has answered with "not found" since: what
    /// was known before must not come back.
    pub answer: Option<Vec<u8>>,
}

impl Entry {
    /// What a fallback is decided by.
    pub fn known(&self) -> Known {
        Known { started_ns: self.started_ns, account: self.account }
    }
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is the entry now.
    Kept,
    /// A call that started later has answered already.
    Superseded,
    /// Another writer was at it for too long.
    Busy,
}

/// The last answer to a question in this project; `None` where there is none that can be trusted.
pub fn lookup(root: &Path, key: &Key) -> Option<Entry> {
    let folder = Folder::existing(root, STORE).ok()?;
    let (name, seal_key) = (file_name(key), seal_key(root));
    let read = || {
        let bytes = folder.read(&name, FILE_MAX).ok()?;
        let (entry, of) = parse(&bytes, seal_key)?;
        (of == key.bytes()).then_some(entry)
    };
    // A file that is no entry may be one that a writer is done with and writes over: there is a newer
    // one by now, and under the lock nobody writes.
    let entry = read().or_else(|| {
        folder.stat(&name)?;
        let _lock = folder.open_lock(LOCK).and_then(|file| Lock::on(file, LOCK_WAIT)).ok();
        read()
    });
    entry.filter(|entry| entry.answer.is_some())
}

/// Stores an answer, unless a call that started later has answered already.
///
/// # Errors
/// The folder cannot be made, is not ours, or cannot be written.
pub fn store(root: &Path, key: &Key, entry: &Entry, now_ns: u64, bounds: Bounds) -> io::Result<Stored> {
    let length = entry.answer.as_ref().map_or(0, Vec::len) as u64;
    if length >= ANSWER_MAX || key.bytes().len() as u64 > KEY_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    let folder = Folder::prepare(root, STORE)?;
    let Some(lock) = Lock::on(folder.open_lock(LOCK)?, LOCK_WAIT)? else { return Ok(Stored::Busy) };
    let name = file_name(key);
    let before = folder.stat(&name);
    if before.is_some() && is_newer(&folder, &name, entry.started_ns, now_ns) {
        return Ok(Stored::Superseded);
    }
    let (head, seal) = frame(key, entry, seal_key(root));
    let answer = entry.answer.as_deref().unwrap_or_default();
    let size = (head.len() + key.bytes().len() + answer.len() + seal.len()) as u64;
    make_room(&folder, &lock, (&name, before.map(|(size, _)| size)), size, bounds)?;
    folder.replace_unsynced(&name, &[&head, key.bytes(), answer, &seal])?;
    Ok(Stored::Kept)
}

/// Marks a question as answered with "not found" by a call that started at `started_ns`, where anything
/// is known of it.
///
/// # Errors
/// As [`store`].
pub fn forget(root: &Path, key: &Key, started_ns: u64, now_ns: u64) -> io::Result<()> {
    let is_known = Folder::existing(root, STORE).is_ok_and(|folder| folder.stat(&file_name(key)).is_some());
    if is_known {
        let gone = Entry { started_ns, account: Account::UNKNOWN, answer: None };
        store(root, key, &gone, now_ns, BOUNDS)?;
    }
    Ok(())
}

/// One entry as `status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The question.
    pub question: Shown,
    /// When it was asked, in nanoseconds since the epoch.
    pub started_ns: u64,
    /// The answer's length.
    pub bytes: u64,
}

/// What lies in a project's cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The answers, newest first.
    pub rows: Vec<Row>,
    /// Files that are no entry that can be trusted; they are never served.
    pub damaged: u64,
}

/// Lists a project's cache; a missing one is empty.
///
/// # Errors
/// The folder is not ours or cannot be read.
pub fn list(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let folder = match Folder::existing(root, STORE) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(listing),
        folder => folder?,
    };
    let seal_key = seal_key(root);
    for name in folder.names()?.iter().filter(|name| name.ends_with(SUFFIX)) {
        let row = || {
            let bytes = folder.read(name, FILE_MAX).ok()?;
            let (entry, key) = parse(&bytes, seal_key)?;
            Some((Key::show(key)?, entry.started_ns, entry.answer.map(|answer| answer.len() as u64)))
        };
        // Twice, as in `lookup`; what was dropped meanwhile is nothing to report.
        let row = row().or_else(row);
        if row.is_none() && folder.stat(name).is_none() {
            continue;
        }
        match row {
            Some((question, started_ns, Some(bytes))) => {
                listing.rows.push(Row { question, started_ns, bytes })
            }
            Some((.., None)) => {}
            None => listing.damaged += 1,
        }
    }
    listing.rows.sort_by_key(|row| std::cmp::Reverse(row.started_ns));
    Ok(listing)
}

/// Drops everything; says how many answers and bytes that were.
///
/// # Errors
/// The folder is not ours or cannot be written.
pub fn clear(root: &Path) -> io::Result<(u64, u64)> {
    match Folder::existing(root, STORE) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
        folder => folder?,
    };
    let folder = Folder::prepare(root, STORE)?;
    let Some(lock) = Lock::on(folder.open_lock(LOCK)?, Duration::from_secs(2))? else {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process is writing to it"));
    };
    let files = files(&folder)?;
    for (name, ..) in &files {
        folder.remove(name)?;
    }
    remember(&lock, 0, 0)?;
    Ok((files.len() as u64, files.iter().map(|(_, size, _)| size).sum()))
}

fn file_name(key: &Key) -> String {
    key.name() + SUFFIX
}

/// Whether the entry on file was asked later than `started_ns`. One from the future (a clock that was
/// set back, a header that is damaged) must not stay for ever.
fn is_newer(folder: &Folder, name: &str, started_ns: u64, now_ns: u64) -> bool {
    let Ok((file, _)) = folder.open_ours(name) else { return false };
    let mut head = Vec::with_capacity(HEADER_MAX as usize);
    if file.take(HEADER_MAX).read_to_end(&mut head).is_err() {
        return false;
    }
    let known = parse_header(&head).map(|(header, _)| header.started_ns);
    known.is_some_and(|known| known > started_ns && known <= now_ns)
}

/// Counts the file that is about to be written, and drops the oldest ones where it would pass a bound.
fn make_room(
    folder: &Folder,
    lock: &Lock,
    (name, size_before): (&str, Option<u64>),
    size: u64,
    bounds: Bounds,
) -> io::Result<()> {
    let after = |(entries, bytes): (u64, u64)| {
        (entries + u64::from(size_before.is_none()), (bytes + size).saturating_sub(size_before.unwrap_or(0)))
    };
    let fits = |(entries, bytes): (u64, u64)| entries <= bounds.entries && bytes <= bounds.bytes;
    let counted = memo(lock);
    if let Some((entries, bytes)) = counted.map(after).filter(|count| fits(*count)) {
        // An answer that is as long as the one before changes nothing.
        return if counted == Some((entries, bytes)) { Ok(()) } else { remember(lock, entries, bytes) };
    }
    let mut others = files(folder)?;
    others.retain(|(other, ..)| other != name);
    let mut count = (others.len() as u64 + 1, others.iter().map(|(_, size, _)| size).sum::<u64>() + size);
    if !fits(count) {
        // A twentieth of slack, so that not every store has to list the folder.
        let goal =
            Bounds { entries: bounds.entries - bounds.entries / 20, bytes: bounds.bytes - bounds.bytes / 20 };
        others.sort_by(|a, b| (a.2, &a.0).cmp(&(b.2, &b.0)));
        let is_too_much = |(entries, bytes)| entries > goal.entries || bytes > goal.bytes;
        for (oldest, size, _) in &others {
            if !is_too_much(count) {
                break;
            }
            folder.remove(oldest)?;
            count = (count.0 - 1, count.1 - size);
        }
    }
    remember(lock, count.0, count.1)
}

/// The entries' files: name, size, time of their last change. Under the writers' lock, a file aside was
/// left by somebody who was killed, and goes.
fn files(folder: &Folder) -> io::Result<Vec<(String, u64, i128)>> {
    let mut files = Vec::new();
    for name in folder.names()? {
        match folder.stat(&name) {
            Some((size, mtime_ns)) if name.ends_with(SUFFIX) => files.push((name, size, mtime_ns)),
            Some(_) if name.ends_with(".tmp") => folder.remove(&name)?,
            _ => {}
        }
    }
    Ok(files)
}

/// Two numbers of twenty digits: written in place, they always have the same length.
fn memo(lock: &Lock) -> Option<(u64, u64)> {
    let mut text = [0; MEMO_BYTES];
    lock.file().read_exact_at(&mut text, 0).ok()?;
    let (entries, bytes) = std::str::from_utf8(&text).ok()?.strip_suffix('\n')?.split_once(' ')?;
    Some((entries.parse().ok()?, bytes.parse().ok()?))
}

fn remember(lock: &Lock, entries: u64, bytes: u64) -> io::Result<()> {
    lock.file().write_all_at(format!("{entries:020} {bytes:020}\n").as_bytes(), 0)
}

struct Header {
    started_ns: u64,
    account: Account,
    is_gone: bool,
    key_length: usize,
    length: usize,
}

/// The header line and the seal around a key and an answer.
fn frame(key: &Key, entry: &Entry, seal_key: (u64, u64)) -> (Vec<u8>, Vec<u8>) {
    let answer = entry.answer.as_deref().unwrap_or_default();
    let (state, account) = (if entry.answer.is_some() { "answer" } else { "gone" }, entry.account.0);
    let (key_length, length) = (key.bytes().len(), answer.len());
    let head =
        format!("{SCHEMA} {state} {} {account} {key_length} {length}\n", entry.started_ns).into_bytes();
    let seal = seal(&[&head, key.bytes(), answer], seal_key);
    (head, seal.into_bytes())
}

fn seal(parts: &[&[u8]], (k0, k1): (u64, u64)) -> String {
    let mut hasher = sip(k0, k1);
    parts.iter().for_each(|part| hasher.write(part));
    format!("{:0SEAL_BYTES$x}", hasher.finish())
}

/// An entry and its key out of a file's bytes; `None` when a single one of them is not as it was written.
fn parse(bytes: &[u8], seal_key: (u64, u64)) -> Option<(Entry, &[u8])> {
    let (sealed, found) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_BYTES)?)?;
    if seal(&[sealed], seal_key).as_bytes() != found && !Guard::CacheSeal.is_off() {
        return None;
    }
    let (header, rest) = parse_header(sealed)?;
    let (key, answer) = rest.split_at_checked(header.key_length)?;
    let is_whole = answer.len() == header.length;
    let answer = (!header.is_gone).then(|| answer.to_vec());
    let entry = Entry { started_ns: header.started_ns, account: header.account, answer };
    (is_whole || Guard::CacheSeal.is_off()).then_some((entry, key))
}

fn parse_header(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let end = bytes.iter().take(HEADER_MAX as usize).position(|b| *b == b'\n')?;
    let mut words = std::str::from_utf8(&bytes[..end]).ok()?.split(' ');
    if words.next()? != SCHEMA {
        return None;
    }
    let is_gone = match words.next()? {
        "answer" => false,
        "gone" => true,
        _ => return None,
    };
    let header = Header {
        is_gone,
        started_ns: words.next()?.parse().ok()?,
        account: Account(words.next()?.parse().ok()?),
        key_length: words.next()?.parse().ok()?,
        length: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some((header, &bytes[end + 1..]))
}

/// What the seal is made with: this machine and this very folder. A file that came with a checkout
/// (git stores what a repository's author put there, an archive whole trees) was sealed by nobody who
/// could know the folder's number and the moment it was made here.
fn seal_key(root: &Path) -> (u64, u64) {
    let machine = fs::read("/etc/machine-id").unwrap_or_default();
    let found = fs::metadata(root);
    let half = |seed: u64| {
        let mut hasher = sip(seed, 0);
        hasher.write(&machine);
        if let Ok(found) = &found {
            let made = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            hasher.write_u64(found.ino());
            hasher.write_u128(made.map_or(0, |at| at.as_nanos()));
        }
        hasher.finish()
    };
    (half(5), half(6))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
