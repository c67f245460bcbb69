//! Replay: delivering what waits, in order, each write once (#1750, #3635).
//!
//! For every entry: check it, wait for what it depends on, and for each of its steps look (where an
//! earlier attempt may have got through), write the attempt down, send it, write the outcome down.
//! The forge being down stops everything; an entry's own trouble sets aside that entry alone.

mod deliver;
mod failure;
mod gh;
mod git;
mod look;
mod report;
mod run;

pub use report::{Outcome, Report, Row};

use super::Context;
use super::queue::{self, Place, failed};
use crate::error::{Error, Result};
use crate::process::find;
use crate::settings::{Lookup, PATH, Settings};
use crate::store::lock::Lock;
use crate::store::queue::Queue;
use crate::store::{dirty, queue as files};
use run::Run;

/// How a replay is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Deliver; without it, only say what would be done.
    pub apply: bool,
    /// Only where this project is marked.
    pub marked_only: bool,
    /// Most entries that are delivered; 0 for all.
    pub batch: u64,
    /// Entries that may go without a seal, because a person said so.
    pub accept: Vec<u32>,
    /// Nobody waits for it: entries that must settle are passed over, and no delivery starts after the
    /// setting's seconds.
    pub is_automatic: bool,
}

/// Replays the queue of the context's project.
///
/// # Errors
/// `EFORGE_USAGE` outside a checkout, `EFORGE_BUSY` while another replay runs, `EFORGE_NO_GH`, or
/// `EFORGE_STATE` when the queue cannot be read.
pub fn replay(context: &Context, options: &Options) -> Result<Report> {
    let place = queue::place(context)?;
    let mut report = Report::new(options.apply);
    let Some(queue) = queue::open(&place)? else { return Ok(report) };
    if options.marked_only && !dirty::is_marked(&place.state, queue.root()) {
        report.note = Some("this project is not marked, so nothing is replayed by itself".into());
        return report.finish(&queue).map_err(|e| failed("read the queue", &place, e));
    }
    let lock = match options.apply {
        true => Some(only_one(&queue, &place)?),
        false => None,
    };
    if lock.is_some() {
        // A killed replay may have renamed a file, the log among them, and not synced it: what is appended now
        // would be lost with that name.
        queue.sync().map_err(|e| failed("replay the queue", &place, e))?;
    }
    let gh = find::real_gh(context.var(PATH).as_deref()).map_err(Error::no_gh)?;
    let mut run = Run::new(context, options, &place, &queue, lock.as_ref(), gh);
    match run.through(&mut report).map_err(|e| failed("replay the queue", &place, e)) {
        // Something was sent: what became of it is told, and why there was no more.
        Err(e) if run.sent > 0 => {
            report.stopped.get_or_insert(e.to_string());
        }
        done => done?,
    }
    report.finish(&queue).map_err(|e| failed("read the queue", &place, e))
}

fn only_one(queue: &Queue, place: &Place) -> Result<Lock> {
    let tried = queue.try_replay_lock().map_err(|e| failed("lock the replay of", place, e))?;
    tried.map_err(|pid| Error::busy(queue::busy_text(pid)))
}

/// Whether any project of this machine has something to replay by itself: one `stat`.
pub fn may_be_due(settings: &Settings) -> bool {
    let is_on = settings.queue.replay && settings.queue.enabled;
    is_on && settings.state.as_deref().is_some_and(dirty::any)
}

/// Whether the context's project has something to replay by itself.
pub fn is_due(context: &Context) -> bool {
    may_be_due(&context.settings) && is_marked(context)
}

/// Whether the context's project is marked: this machine has queued something there. One `stat` where no
/// project is.
pub fn is_marked(context: &Context) -> bool {
    if !context.settings.state.as_deref().is_some_and(dirty::any) {
        return false;
    }
    let Ok(place) = queue::place(context) else { return false };
    files::exists(&place.root)
        && files::real_root(&place.root).is_some_and(|root| dirty::is_marked(&place.state, &root))
}

/// The options of the shim's own replay.
pub fn automatic(context: &Context) -> Options {
    let batch = context.settings.queue.batch;
    Options { apply: true, marked_only: true, batch, accept: Vec::new(), is_automatic: true }
}
