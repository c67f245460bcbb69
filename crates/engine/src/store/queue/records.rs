//! Entries: reading them all, changing one, taking them away.

use std::io;

use super::Queue;
use crate::checkpoint;
use crate::control::Guard;
use crate::decide::entry::{Entry, SEQ_MAX, Status};
use crate::store::dirty;
use crate::store::folder::Unfit;
use crate::store::lock::Lock;

pub(super) const BODY: &str = "body.md";
/// An entry holds an argv and a few fields; its body lies beside it.
const ENTRY_MAX: u64 = 4 << 20;
/// How many delivered entries keep their record.
const DELIVERED_KEPT: usize = 200;

pub(super) fn body_folder(seq: u32) -> String {
    format!("{seq:06}.d")
}

pub(super) fn entry_file(seq: u32) -> String {
    format!("{seq:06}.json")
}

pub(super) fn marker_file(seq: u32) -> String {
    format!("{seq:06}.seq")
}

/// One entry as it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it says.
    pub entry: Entry,
    /// Whether this machine's seal is under it.
    pub is_sealed: bool,
}

/// An entry's number and what was found under it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The number in the file's name.
    pub seq: u32,
    /// The entry, or why its file is none.
    pub record: Result<Record, String>,
}

impl Found {
    /// The entry, where its file holds one.
    pub fn entry(&self) -> Option<&Entry> {
        self.record.as_ref().ok().map(|record| &record.entry)
    }

    /// Whether it waits to be delivered.
    pub fn is_pending(&self) -> bool {
        self.entry().is_some_and(|entry| entry.status == Status::Pending)
    }

    /// Whether it waits to be delivered and is this machine's own.
    pub fn is_ours(&self) -> bool {
        self.is_pending() && self.record.as_ref().is_ok_and(|record| record.is_sealed)
    }
}

/// The whole queue folder as one reading found it.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Every entry, in order.
    pub found: Vec<Found>,
    /// Numbers that were taken and have no entry: a killed enqueue's.
    pub orphans: Vec<u32>,
    /// The highest number that was ever taken.
    pub highest: u32,
}

impl Loaded {
    /// Entries that wait.
    pub fn pending(&self) -> impl Iterator<Item = &Entry> {
        self.found.iter().filter(|found| found.is_pending()).filter_map(Found::entry)
    }
}

impl Queue {
    /// Reads every entry.
    ///
    /// # Errors
    /// The folder, or an entry in it, cannot be read now: passing over it would let later writes overtake it.
    pub fn load(&self) -> io::Result<Loaded> {
        let (mut loaded, mut taken) = (Loaded::default(), Vec::new());
        for name in self.folder.names()? {
            let Some((seq, kind)) = numbered(&name) else { continue };
            loaded.highest = loaded.highest.max(seq);
            match kind {
                "json" => loaded.found.push(Found { seq, record: self.try_record(seq)? }),
                "seq" | "d" | "json.tmp" => taken.push(seq),
                _ => {}
            }
        }
        loaded.found.sort_by_key(|found| found.seq);
        taken.sort_unstable();
        taken.dedup();
        let has_entry = |seq: &u32| loaded.found.binary_search_by_key(seq, |found| found.seq).is_ok();
        // The highest number stays when its entry is gone, so that it is never given out again.
        taken.retain(|seq| !has_entry(seq) && !self.is_spent(*seq));
        loaded.orphans = taken;
        Ok(loaded)
    }

    /// Reads one entry.
    ///
    /// # Errors
    /// Why its file is none, in words that follow "its file …".
    pub fn record(&self, seq: u32) -> Result<Record, String> {
        self.try_record(seq).unwrap_or_else(|e| Err(format!("cannot be read ({e})")))
    }

    fn try_record(&self, seq: u32) -> io::Result<Result<Record, String>> {
        match self.folder.read(&entry_file(seq), ENTRY_MAX).map_err(Unfit::trouble) {
            Ok(bytes) => Ok(self.parse(seq, &bytes)),
            Err(Ok(trouble)) => Err(trouble),
            Err(Err(unfit)) => Ok(Err(unfit.to_string())),
        }
    }

    fn parse(&self, seq: u32, bytes: &[u8]) -> Result<Record, String> {
        let entry: Entry =
            serde_json::from_slice(bytes).map_err(|e| format!("holds no entry of the queue ({e})"))?;
        if entry.seq != seq {
            return Err(format!("names another number ({})", entry.seq));
        }
        let is_sealed =
            (self.has_key() && entry.seal == self.entry_seal(&entry)) || Guard::EntrySeal.is_off();
        Ok(Record { entry, is_sealed })
    }

    /// Whether the marker says that its entry was cleared or pruned, not lost.
    fn is_spent(&self, seq: u32) -> bool {
        self.folder.read(&marker_file(seq), 64).is_ok_and(|text| text == SPENT)
    }

    /// When the marker of an orphan was made, in epoch seconds.
    pub fn orphan_since(&self, seq: u32) -> Option<u64> {
        let (_, changed_ns) = self.folder.stat(&marker_file(seq))?;
        u64::try_from(changed_ns / 1_000_000_000).ok()
    }

    /// Changes an entry: readers see the old or the new one.
    pub fn update(&self, _lock: &Lock, entry: &mut Entry) -> io::Result<()> {
        entry.seal = self.entry_seal(entry);
        let text = serde_json::to_vec_pretty(entry).map_err(io::Error::from)?;
        checkpoint::here("before-update");
        self.folder.replace(&entry_file(entry.seq), &text)?;
        checkpoint::here("after-update");
        Ok(())
    }

    /// Removes a delivered entry's body.
    pub fn remove_body(&self, _lock: &Lock, seq: u32) -> io::Result<()> {
        self.folder.remove_folder(&body_folder(seq))
    }

    /// Removes every trace of an orphan but the number itself, which stays spent.
    pub fn forget(&self, _lock: &Lock, seq: u32) -> io::Result<()> {
        self.remove_entry(seq)?;
        // For good, or a power cut brings it back: whole, to be delivered after all, or without its body.
        self.folder.sync()?;
        self.folder.remove_folder(&body_folder(seq))
    }

    fn remove_entry(&self, seq: u32) -> io::Result<()> {
        self.folder.remove(&format!("{}.tmp", entry_file(seq)))?;
        self.folder.remove(&entry_file(seq))?;
        checkpoint::here("after-entry-removed");
        Ok(())
    }

    /// Removes every trace of a number but its marker, which says that nothing is missing.
    pub fn spend(&self, lock: &Lock, seq: u32) -> io::Result<()> {
        self.folder.replace(&marker_file(seq), SPENT)?;
        checkpoint::here("after-spent-marker");
        self.forget(lock, seq)
    }

    /// Removes delivered records beyond the last 200.
    pub fn prune(&self, lock: &Lock, loaded: &Loaded) -> io::Result<()> {
        let delivered: Vec<u32> = loaded
            .found
            .iter()
            .filter(|found| found.entry().is_some_and(|entry| entry.status == Status::Delivered))
            .map(|found| found.seq)
            .collect();
        self.take_away(lock, &delivered[..delivered.len().saturating_sub(DELIVERED_KEPT)], loaded.highest)
    }

    /// Removes entries with everything of them, for good; of the highest, the marker stays.
    pub fn take_away(&self, _lock: &Lock, seqs: &[u32], highest: u32) -> io::Result<()> {
        if seqs.is_empty() {
            return Ok(());
        }
        let stays = |seq: u32| seq == highest && !Guard::Number.is_off();
        if seqs.iter().any(|seq| stays(*seq)) {
            self.folder.replace(&marker_file(highest), SPENT)?;
        }
        for seq in seqs {
            self.remove_entry(*seq)?;
        }
        // Before the bodies: a power cut brings back none of them, and none without its body.
        self.folder.sync()?;
        for seq in seqs {
            self.folder.remove_folder(&body_folder(*seq))?;
            if !stays(*seq) {
                self.folder.remove(&marker_file(*seq))?;
            }
        }
        self.folder.sync()
    }

    /// Takes the project's mark away when nothing of its queue waits any more.
    pub fn unmark_if_drained(&self, _lock: &Lock) -> io::Result<()> {
        if self.load()?.pending().next().is_none() {
            dirty::unmark(self.state(), self.root())?;
        }
        Ok(())
    }

    pub(super) fn entry_seal(&self, entry: &Entry) -> String {
        let unsealed = Entry { seal: String::new(), ..entry.clone() };
        self.seal(&[b"entry", &serde_json::to_vec(&unsealed).unwrap_or_default()])
    }
}

/// What a marker holds whose entry was taken away on purpose.
const SPENT: &[u8] = b"spent\n";

/// `000003.json` → 3, `json`.
fn numbered(name: &str) -> Option<(u32, &str)> {
    let (digits, kind) = name.split_once('.')?;
    if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|seq| (1..=SEQ_MAX).contains(seq)).map(|seq| (seq, kind))
}

impl From<Unfit> for io::Error {
    fn from(unfit: Unfit) -> io::Error {
        match unfit {
            Unfit::Missing => io::Error::from(io::ErrorKind::NotFound),
            Unfit::Strange(how) => io::Error::new(io::ErrorKind::InvalidData, how),
            Unfit::Unreadable(e) => e,
        }
    }
}
