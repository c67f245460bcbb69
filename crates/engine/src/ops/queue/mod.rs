//! The write queue: what may be queued, queueing it, and seeing what waits (#1750).

mod admit;
mod change;
mod document;
mod handles;
mod view;

pub use admit::{Body, Ready, admit, body_source};
pub(super) use change::ended;
pub use change::{Cleared, Dropped, TakenBack, clear, drop, take_back};
pub use document::{
    LastReplay, Overview, Problem, dropped_json, entry_json, exit_code, overview, status_json,
};
pub use handles::{Resolved, any_handle, resolve_call};
pub use view::{View, view};

use std::path::PathBuf;

use super::Context;
use super::record::{caller, session};
use crate::decide::entry::{self, Entry, Live};
use crate::decide::hosts;
use crate::decide::queued::{self, handle_in, named};
use crate::decide::repo::{Repo, origin};
use crate::error::{Error, Result};
use crate::store::queue::{Draft, NotAdded, Queue};
use crate::store::{project, queue, remotes};

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
    let handle_url = entry.handle.as_ref().map(|handle| ready.repo.issue_url(handle));
    Ok(Spooled { entry, depth, handle_url })
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
