//! The write queue: what may be queued, queueing it, and seeing what waits (#1750).

mod admit;
mod document;
mod handles;

pub use admit::{Body, Ready, admit, body_source};
pub use document::{LastReplay, Overview, Problem, entry_json, exit_code, overview, status_json};
pub use handles::{Resolved, any_handle, resolve_words};

use std::path::PathBuf;

use super::Context;
use super::record::{caller, session};
use crate::decide::entry::{self, Entry, Live, Status};
use crate::decide::hosts;
use crate::decide::journal::{Event, Line, history};
use crate::decide::queued::{self, Step, handle_in, named};
use crate::decide::repo::{Repo, origin};
use crate::error::{Error, Result};
use crate::store::queue::{Draft, Found, Loaded, Log, NotAdded, Queue};
use crate::store::{dirty, project, queue, remotes};

/// Where a call's queue lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The project's root.
    pub root: PathBuf,
    /// The machine's state folder.
    pub state: PathBuf,
}

/// The queue's place for a working directory.
///
/// # Errors
/// `EFORGE_USAGE` outside a checkout, or without a state folder.
pub fn place(context: &Context) -> Result<Place> {
    let root = context.cwd.as_deref().and_then(project::root);
    let root = root.ok_or_else(|| Error::usage("there is no queue outside a git checkout"))?;
    let state = context.settings.state.clone().ok_or_else(|| {
        Error::usage("there is no state folder: none of BOB_FORGE_STATE, BOB_HOME and HOME is set")
    })?;
    Ok(Place { root, state })
}

/// Opens the queue; `None` where the project has none yet.
///
/// # Errors
/// `EFORGE_STATE` when what stands in its place is not a queue.
pub fn open(place: &Place) -> Result<Option<Queue>> {
    Queue::open(&place.root, &place.state).map_err(|e| failed("open the queue", place, e))
}

pub(super) fn failed(doing: &str, place: &Place, e: std::io::Error) -> Error {
    Error::state(doing, &queue::path(&place.root), e)
}

/// What this checkout's git settings say about repositories.
#[derive(Clone, Debug)]
pub struct Checkout {
    /// Its remotes.
    pub remotes: Vec<crate::decide::repo::Remote>,
    /// The repository its origin names.
    pub origin: Option<Repo>,
    /// The hosts gh knows accounts for.
    pub known_hosts: Vec<String>,
}

/// Reads the checkout around `folder`.
pub fn checkout(context: &Context, folder: &std::path::Path) -> Checkout {
    let remotes = remotes::read(folder, context);
    let hosts = hosts::parse(&remotes::hosts(context));
    Checkout {
        origin: origin(&remotes),
        remotes,
        known_hosts: hosts.into_iter().map(|host| host.name).collect(),
    }
}

/// A write that now waits in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spooled {
    /// The entry.
    pub entry: Entry,
    /// How many wait, this one among them.
    pub depth: u64,
    /// The URL that stands for the new issue until it exists, for a create.
    pub handle_url: Option<String>,
}

/// Queues a write.
///
/// # Errors
/// `EFORGE_QUEUE_FULL` at the bound, `EFORGE_NOT_QUEUED` where the files cannot be written; the text is the
/// reason, as a clause about the write.
pub fn spool(context: &Context, ready: &Ready, signal: Option<&str>, live: Option<Live>) -> Result<Spooled> {
    let place = place(context)?;
    let cannot = |e: std::io::Error| Error::not_queued(format!("the queue cannot be written ({e})"));
    let queue = Queue::create(&place.root, &place.state).map_err(cannot)?;
    let (caller, session) = (caller(context, context.cwd.as_deref()), session(context));
    let draft = Draft {
        queued: &ready.queued,
        body: ready.body.as_deref(),
        repo: &ready.repo,
        signal,
        live,
        caller: &caller,
        session: &session,
        now_s: context.clock.now_s(),
    };
    let (entry, depth) =
        queue.add(&draft, context.settings.queue.max).map_err(|not_added| match not_added {
            NotAdded::Full { max } => Error::queue_full(max),
            NotAdded::NumbersUsedUp => Error::not_queued("the queue has given out all of its numbers"),
            NotAdded::Io(e) => cannot(e),
        })?;
    let Repo { host, owner, name } = &ready.repo;
    let url = |handle: &String| format!("https://{host}/{owner}/{name}/issues/{handle}");
    let handle_url = entry.handle.as_ref().map(url);
    Ok(Spooled { entry, depth, handle_url })
}

/// What became of a write that was queued before a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// It is out of the queue again.
    Taken,
    /// A replay has delivered it; its URL.
    Delivered(String),
    /// It stays in the queue: a replay is sending it, or an attempt of one may have got through.
    Waits,
}

/// Takes a write out of the queue again, to be sent live.
///
/// # Errors
/// The files cannot be read or written; then it stays queued.
pub fn take_back(context: &Context, seq: u32) -> Result<TakenBack> {
    let place = place(context)?;
    let io = |e| failed("change the queue", &place, e);
    let Some(queue) = open(&place)? else { return Ok(TakenBack::Taken) };
    let lock = queue.lock().map_err(io)?;
    let Ok(record) = queue.record(seq) else { return Ok(TakenBack::Waits) };
    let entry = record.entry;
    match entry.status {
        Status::Delivered => return Ok(TakenBack::Delivered(entry.result.unwrap_or_default())),
        Status::Pending => {}
        _ => return Ok(TakenBack::Waits),
    }
    let lines = queue.log().map_err(|unfit| io(unfit.into()))?.lines;
    let is_touched = |step: &Step| {
        let history = history(&entry, *step, &lines);
        history.open.is_some() || history.done.is_some()
    };
    if Step::ALL.iter().any(is_touched) {
        return Ok(TakenBack::Waits);
    }
    queue
        .append(&lock, &[ended(context, seq, Status::Dropped, "taken back, to be sent live")])
        .map_err(io)?;
    queue.spend(&lock, seq).map_err(io)?;
    queue.unmark_if_drained(&lock).map_err(io)?;
    Ok(TakenBack::Taken)
}

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

    /// This machine's own entries that wait for issue `number`.
    pub fn waiting_for(&self, number: u64) -> usize {
        let is_for = |found: &&Found| {
            let target = found.entry().and_then(|entry| entry.target.as_deref());
            target.is_some_and(|target| match entry::parse_handle(target) {
                Some(seq) => self.number(seq) == Some(number),
                None => target.parse() == Ok(number),
            })
        };
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

/// One entry and its body.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The entry.
    pub entry: Entry,
    /// Its body, or why there is none.
    pub body: std::result::Result<Vec<u8>, String>,
    /// Whether this machine's seal is under it.
    pub is_sealed: bool,
}

/// One entry, body included.
///
/// # Errors
/// `EFORGE_USAGE` when there is no such entry.
pub fn show(context: &Context, id: &str) -> Result<Shown> {
    let seq = parse(id)?;
    let view = view(context)?;
    let none = || Error::usage(format!("there is no entry {}", entry::id(seq)));
    let queue = view.queue.as_ref().ok_or_else(none)?;
    let found = view.loaded.found.iter().find(|found| found.seq == seq).ok_or_else(none)?;
    let record =
        found.record.clone().map_err(|why| Error::usage(format!("{}: its file {why}", entry::id(seq))))?;
    let body = queue.body(seq).map_err(|unfit| unfit.to_string());
    Ok(Shown { entry: record.entry, body, is_sealed: record.is_sealed })
}

fn parse(id: &str) -> Result<u32> {
    entry::parse_id(id.trim())
        .ok_or_else(|| Error::usage(format!("{id:?} names no entry: it is 3, #3 or q000003")))
}

/// Sets one entry aside. Its number, and so its handle, is never given out again.
///
/// # Errors
/// `EFORGE_USAGE` when there is none or it has landed, `EFORGE_BUSY` while it is being sent.
pub fn drop(context: &Context, id: &str) -> Result<Entry> {
    let seq = parse(id)?;
    let place = place(context)?;
    let none = || Error::usage(format!("there is no entry {}", entry::id(seq)));
    let queue = open(&place)?.ok_or_else(none)?;
    let io = |e| failed("change the queue", &place, e);
    let replaying = queue.try_replay_lock().map_err(io)?;
    let lock = queue.lock().map_err(io)?;
    let mut entry = match queue.record(seq) {
        Ok(record) => record.entry,
        Err(why) => return drop_what_is_no_entry(&queue, &lock, seq, &why, none).map_err(io)?,
    };
    if replaying.is_err() && is_being_sent(&queue, &entry) {
        return Err(Error::busy(format!("{} is being sent right now", entry.id)));
    }
    if entry.status == Status::Delivered {
        return Err(Error::usage(format!("{} has been delivered already", entry.id)));
    }
    let line = ended(context, seq, Status::Dropped, "dropped by hand");
    queue.append(&lock, &[line]).map_err(io)?;
    (entry.status, entry.reason) = (Status::Dropped, Some("dropped by hand".into()));
    queue.update(&lock, &mut entry).map_err(io)?;
    queue.unmark_if_drained(&lock).map_err(io)?;
    Ok(entry)
}

/// An orphan or a strange file: what lies there is removed, its number stays spent.
fn drop_what_is_no_entry(
    queue: &Queue,
    lock: &crate::store::lock::Lock,
    seq: u32,
    why: &str,
    none: impl Fn() -> Error,
) -> std::io::Result<Result<Entry>> {
    let loaded = queue.load()?;
    if !loaded.orphans.contains(&seq) && !loaded.found.iter().any(|found| found.seq == seq) {
        return Ok(Err(none()));
    }
    queue.spend(lock, seq)?;
    Ok(Err(Error::usage(format!(
        "{} was no whole entry (its file {why}); its remains are gone",
        entry::id(seq)
    ))))
}

/// Whether an attempt is on its way: written down, and no outcome yet.
fn is_being_sent(queue: &Queue, entry: &Entry) -> bool {
    let lines = queue.log().map(|log| log.lines).unwrap_or_default();
    Step::ALL.iter().any(|step| history(entry, *step, &lines).is_dangling)
}

pub(super) fn ended(context: &Context, seq: u32, status: Status, why: &str) -> Line {
    Line { at_ms: context.clock.now_ms(), seq, step: None, event: Event::Ended(status, why.to_string()) }
}

/// Removes every entry, and says how many. Numbers and handles that landed are kept.
///
/// # Errors
/// `EFORGE_BUSY` while a replay runs.
pub fn clear(context: &Context) -> Result<usize> {
    let place = place(context)?;
    let Some(queue) = open(&place)? else { return Ok(0) };
    let io = |e| failed("clear the queue", &place, e);
    let _replaying = queue.try_replay_lock().map_err(io)?.map_err(|pid| Error::busy(busy_text(pid)))?;
    let lock = queue.lock().map_err(io)?;
    let loaded = queue.load().map_err(io)?;
    let lines: Vec<_> = loaded.pending().map(|e| ended(context, e.seq, Status::Dropped, "cleared")).collect();
    if !lines.is_empty() {
        queue.append(&lock, &lines).map_err(io)?;
    }
    for seq in loaded.found.iter().map(|found| found.seq).chain(loaded.orphans.iter().copied()) {
        queue.take_away(&lock, seq, loaded.highest).map_err(io)?;
    }
    queue.unmark_if_drained(&lock).map_err(io)?;
    Ok(loaded.found.len())
}

/// Who replays, in words.
pub fn busy_text(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("another replay is running here (process {pid})"),
        None => "another replay is running here".into(),
    }
}

/// The number that a handle stands for; `None` while its create has not landed.
///
/// # Errors
/// `EFORGE_USAGE` for what is no handle, or outside a checkout.
pub fn resolve(context: &Context, word: &str) -> Result<Option<u64>> {
    let seq = handle_in(word).ok_or_else(|| {
        Error::usage(format!("{word:?} is no handle: it is BOB-Q3 or the URL that ends in it"))
    })?;
    Ok(view(context)?.number(seq))
}

/// `comment on #12`.
pub fn summary(entry: &Entry) -> String {
    let reread = queued::reread(&entry.argv).map(|(queued, _)| queued);
    queued::summary(entry.kind, entry.target.as_deref(), reread.as_ref().and_then(queued::title))
}

/// `#12`, or the handle.
pub fn target_name(entry: &Entry) -> String {
    entry.target.as_deref().map_or_else(|| entry.handle.clone().unwrap_or_default(), named)
}
