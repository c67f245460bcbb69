//! Changes by hand: an entry set aside, all removed, one taken back to be sent live.

use std::collections::BTreeSet;

use super::{busy_text, failed, open, parse, place};
use crate::checkpoint;
use crate::decide::entry::{self, Entry, Status};
use crate::decide::journal::{Event, Line, Standing, history, number_of, standing, url_of};
use crate::decide::queued::{Step, reread, steps};
use crate::error::{Error, Result};
use crate::ops::Context;
use crate::store::lock::Lock;
use crate::store::queue::{Loaded, Queue};

/// What became of a write that was queued before a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// It is out of the queue again.
    Taken,
    /// A replay has delivered it; its URL.
    Delivered(String),
    /// It stays in the queue: a replay is sending it, or an attempt of one may have got through.
    Waits,
    /// It was dropped or cleared by hand, or a replay has set it aside; why.
    SetAside(String),
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
    checkpoint::here("before-take-back");
    let lines = queue.log().map_err(|unfit| io(unfit.into()))?.lines;
    let Ok(record) = queue.record(seq) else { return Ok(without_record(seq, &lines)) };
    let entry = record.entry;
    match entry.status {
        Status::Pending => {}
        Status::Delivered => return Ok(TakenBack::Delivered(entry.result.unwrap_or_default())),
        _ => return Ok(TakenBack::SetAside(entry.reason.unwrap_or_else(|| entry.status.as_str().into()))),
    }
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
    checkpoint::here("after-take-back-line");
    let spent = queue.spend(&lock, seq);
    // Without its file it is not queued any more, whatever else failed: then it has to go live.
    if queue.record(seq).is_ok() {
        spent.map_err(io)?;
    }
    let _ = queue.unmark_if_drained(&lock);
    checkpoint::here("after-take-back");
    Ok(TakenBack::Taken)
}

/// What became of an entry whose file is gone: delivered and pruned since, or cleared.
fn without_record(seq: u32, lines: &[Line]) -> TakenBack {
    let ended = lines.iter().rev().filter(|line| line.seq == seq).find_map(|line| match &line.event {
        Event::Ended(status, why) => Some((*status, why.clone())),
        _ => None,
    });
    match ended {
        Some((Status::Delivered, url)) => TakenBack::Delivered(url),
        Some((_, why)) => TakenBack::SetAside(why),
        None => TakenBack::SetAside("its file is gone".into()),
    }
}

/// An entry that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The entry.
    pub entry: Entry,
    /// The entries that wait for the issue it would have made, in order: replay sets them aside too.
    pub dependents: Vec<String>,
}

/// Sets one entry aside. Its number, and so its handle, is never given out again.
///
/// # Errors
/// `EFORGE_USAGE` when there is none or it has landed, `EFORGE_BUSY` while it is being sent.
pub fn drop(context: &Context, id: &str) -> Result<Dropped> {
    let seq = parse(id)?;
    let place = place(context)?;
    let none = || Error::usage(format!("there is no entry {}", entry::id(seq)));
    let queue = open(&place)?.ok_or_else(none)?;
    let io = |e| failed("change the queue", &place, e);
    let lock = queue.lock().map_err(io)?;
    let mut entry = match queue.record(seq) {
        Ok(record) => record.entry,
        Err(why) => return drop_what_is_no_entry(&queue, &lock, seq, &why, none).map_err(io)?,
    };
    // A log that cannot be read would say nothing of attempts, and that is not "none".
    let lines = queue.log().map_err(|unfit| io(unfit.into()))?.lines;
    let why = may_be_dropped(&queue, &entry, &lines).map_err(io)??;
    // An issue that exists takes what waits for it.
    let loses_any = number_of(&lines, seq).is_none();
    let dependents = match loses_any {
        true => queue.load().map(|loaded| dependents(&loaded, seq)).map_err(io)?,
        false => Vec::new(),
    };
    queue.append(&lock, &[ended(context, seq, Status::Dropped, &why)]).map_err(io)?;
    (entry.status, entry.reason) = (Status::Dropped, Some(why));
    queue.update(&lock, &mut entry).map_err(io)?;
    queue.unmark_if_drained(&lock).map_err(io)?;
    Ok(Dropped { entry, dependents })
}

/// The entries that wait and need a handle of `seq`'s, or of one that does.
fn dependents(loaded: &Loaded, seq: u32) -> Vec<String> {
    let (mut lost, mut ids) = (BTreeSet::from([seq]), Vec::new());
    // A handle can be named only once its create is queued: one pass in order finds them all.
    for entry in loaded.pending() {
        let needs = reread(&entry.argv).map(|(queued, _)| queued.needs).unwrap_or_default();
        if needs.iter().any(|need| lost.contains(need)) {
            lost.insert(entry.seq);
            ids.push(entry.id.clone());
        }
    }
    ids
}

/// An orphan or a strange file: what lies there is removed, its number stays spent.
fn drop_what_is_no_entry(
    queue: &Queue,
    lock: &Lock,
    seq: u32,
    why: &str,
    none: impl Fn() -> Error,
) -> std::io::Result<Result<Dropped>> {
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

/// What a drop is put down as; refused while a replay is sending the entry, and once it has landed, which the
/// log may know before the entry's own record says so.
fn may_be_dropped(queue: &Queue, entry: &Entry, lines: &[Line]) -> std::io::Result<Result<String>> {
    let standing = standing_of(entry, lines);
    if entry.status == Status::Delivered || standing == Standing::Landed {
        return Ok(Err(Error::usage(format!("{} has been delivered already", entry.id))));
    }
    let is_begun = |step: &Step| history(entry, *step, lines).is_dangling;
    let is_begun = standing == Standing::Partly || Step::ALL.iter().any(is_begun);
    // Only asked where it says something: while a drop held it, a replay would find it taken.
    if is_begun && queue.try_replay_lock()?.is_err() {
        return Ok(Err(Error::busy(format!("{} is being sent right now", entry.id))));
    }
    Ok(Ok(match (standing, url_of(lines, entry.seq)) {
        (Standing::Partly, Some(url)) => format!("dropped by hand; its issue exists ({url})"),
        (Standing::Partly, None) => "dropped by hand; a part of it has landed".into(),
        (Standing::Doubtful, _) => "dropped by hand; an attempt to send it may have got through".into(),
        _ => "dropped by hand".into(),
    }))
}

fn standing_of(entry: &Entry, lines: &[Line]) -> Standing {
    let steps = reread(&entry.argv).map(|(queued, _)| steps(&queued)).unwrap_or_default();
    // What cannot be reread is nothing that a replay could have sent in steps of its own.
    standing(entry, if steps.is_empty() { &Step::ALL } else { &steps }, lines)
}

pub(crate) fn ended(context: &Context, seq: u32, status: Status, why: &str) -> Line {
    Line { at_ms: context.clock.now_ms(), seq, step: None, event: Event::Ended(status, why.to_string()) }
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// How many entries, delivered ones among them.
    pub removed: usize,
    /// The writes among them that were never delivered, and nobody had dropped.
    pub undelivered: Vec<String>,
    /// Those of them of which a part has landed, or of which an attempt may have got through.
    pub uncertain: Vec<String>,
}

/// Removes every entry, and says which. Numbers and handles that landed are kept.
///
/// # Errors
/// `EFORGE_BUSY` while a replay runs.
pub fn clear(context: &Context) -> Result<Cleared> {
    let place = place(context)?;
    let Some(queue) = open(&place)? else { return Ok(Cleared::default()) };
    let io = |e| failed("clear the queue", &place, e);
    let _replaying = queue.try_replay_lock().map_err(io)?.map_err(|pid| Error::busy(busy_text(pid)))?;
    let lock = queue.lock().map_err(io)?;
    let loaded = queue.load().map_err(io)?;
    let log = queue.log().map(|log| log.lines).ok();
    // The log may know more than a record: a replay that was killed between the two.
    let standing = |entry: &Entry| match (entry.status, &log) {
        (Status::Delivered, _) => Standing::Landed,
        (_, Some(lines)) => standing_of(entry, lines),
        (_, None) => Standing::Doubtful,
    };
    let end = |entry: &Entry| match standing(entry) {
        Standing::Landed => {
            let url = log.as_deref().and_then(|lines| url_of(lines, entry.seq)).unwrap_or_default();
            ended(context, entry.seq, Status::Delivered, url)
        }
        _ => ended(context, entry.seq, Status::Dropped, "cleared"),
    };
    let lines: Vec<_> = loaded.pending().map(end).collect();
    let cleared = Cleared::of(&loaded, standing);
    if !lines.is_empty() {
        queue.append(&lock, &lines).map_err(io)?;
    }
    let all: Vec<u32> =
        loaded.found.iter().map(|found| found.seq).chain(loaded.orphans.iter().copied()).collect();
    queue.take_away(&lock, &all, loaded.highest).map_err(io)?;
    queue.unmark_if_drained(&lock).map_err(io)?;
    Ok(cleared)
}

impl Cleared {
    fn of(loaded: &Loaded, standing: impl Fn(&Entry) -> Standing) -> Cleared {
        let mut cleared = Cleared { removed: loaded.found.len(), ..Cleared::default() };
        for found in &loaded.found {
            let entry = found.entry();
            let standing = entry.map_or(Standing::Untouched, &standing);
            let was_given_up = entry.is_some_and(|entry| entry.status == Status::Dropped);
            if standing != Standing::Landed && !was_given_up {
                cleared.undelivered.push(entry::id(found.seq));
                if standing != Standing::Untouched {
                    cleared.uncertain.push(entry::id(found.seq));
                }
            }
        }
        cleared
    }
}
