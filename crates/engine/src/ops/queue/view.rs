//! The queue as one reading found it, and what can be asked of that.

use super::{Place, failed, handles, open, place};
use crate::decide::entry::{self, Entry, Status};
use crate::error::Result;
use crate::ops::Context;
use crate::store::dirty;
use crate::store::queue::{Found, Loaded, Log, Queue};

/// The queue as one reading found it.
#[derive(Debug)]
pub struct View {
    /// Where.
    pub place: Place,
    /// The queue itself, where the project has one.
    pub queue: Option<Queue>,
    /// Its entries.
    pub loaded: Loaded,
    /// Its log.
    pub log: Log,
    /// Why the log could not be read, where it could not.
    pub log_trouble: Option<String>,
    /// Whether the project is marked for automatic replay.
    pub is_marked: bool,
}

/// Reads the queue.
///
/// # Errors
/// `EFORGE_USAGE` outside a checkout, `EFORGE_STATE` when it cannot be read.
pub fn view(context: &Context) -> Result<View> {
    let place = place(context)?;
    let Some(queue) = open(&place)? else {
        let (loaded, log) = (Loaded::default(), Log::default());
        return Ok(View { place, queue: None, loaded, log, log_trouble: None, is_marked: false });
    };
    let loaded = queue.load().map_err(|e| failed("read the queue", &place, e))?;
    let (log, log_trouble) = match queue.log() {
        Ok(log) => (log, None),
        Err(unfit) => (Log::default(), Some(unfit.to_string())),
    };
    let is_marked = dirty::is_marked(&place.state, queue.root());
    Ok(View { place, queue: Some(queue), loaded, log, log_trouble, is_marked })
}

impl View {
    /// The number that a handle stands for.
    pub fn number(&self, seq: u32) -> Option<u64> {
        handles::number(&self.loaded, &self.log, seq)
    }

    /// The issue that an entry writes to, where it has a number: of a create, the one it has made; when that
    /// create has landed in part only, it still has something to set on it.
    pub fn issue_of(&self, entry: &Entry) -> Option<u64> {
        match entry.target.as_deref() {
            None => self.number(entry.seq),
            Some(target) => match entry::parse_handle(target) {
                Some(seq) => self.number(seq),
                None => target.parse().ok(),
            },
        }
    }

    /// This machine's own entries that wait for issue `number`.
    pub fn waiting_for(&self, number: u64) -> usize {
        let is_for = |found: &&Found| found.entry().is_some_and(|entry| self.issue_of(entry) == Some(number));
        self.loaded.found.iter().filter(|found| found.is_ours()).filter(is_for).count()
    }

    /// How many of this machine's own entries wait at all.
    pub fn waiting(&self) -> usize {
        self.loaded.found.iter().filter(|found| found.is_ours()).count()
    }

    /// How many entries have this status.
    pub fn count(&self, status: Status) -> usize {
        let has = |found: &&Found| found.entry().is_some_and(|entry| entry.status == status);
        // A file that holds no entry will not arrive by itself either.
        let unreadable = if status == Status::Refused { self.unreadable().count() } else { 0 };
        self.loaded.found.iter().filter(has).count() + unreadable
    }

    /// Files with an entry's name that hold none: number and reason.
    pub fn unreadable(&self) -> impl Iterator<Item = (u32, &str)> {
        self.loaded.found.iter().filter_map(|found| Some((found.seq, found.record.as_ref().err()?.as_str())))
    }

    /// Orphans old enough that nobody can be writing them.
    pub fn orphans(&self, now_s: u64) -> Vec<u32> {
        const AGE_S: u64 = 60;
        let Some(queue) = &self.queue else { return Vec::new() };
        let is_old = |seq: &u32| {
            queue
                .orphan_since(*seq)
                .is_none_or(|since| since.saturating_add(AGE_S) < now_s || since > now_s + AGE_S)
        };
        self.loaded.orphans.iter().copied().filter(is_old).collect()
    }

    /// Handles of creates that have not landed and still can.
    pub fn unresolved(&self) -> Vec<String> {
        self.loaded.pending().filter_map(|entry| entry.handle.clone()).collect()
    }
}
