//! Replay: delivering what waits, in order, each write once (#1750, #3635).
//!
//! For every entry: check it, wait for what it depends on, and for each of its steps look (where an
//! earlier attempt may have got through), write the attempt down, send it, write the outcome down.
//! The forge being down stops everything; an entry's own trouble sets aside that entry alone.

mod deliver;
mod gh;
mod git;
mod look;
mod report;

pub use report::{Outcome, Report, Row};

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Context;
use super::queue::{self, Checkout, Place, checkout, failed, summary};
use crate::decide::check::{self, Facts, Passed};
use crate::decide::entry::{self, Entry, Status};
use crate::decide::journal::{Line, number_of};
use crate::error::{Error, Result};
use crate::process::{clock, find, signals};
use crate::settings::{Lookup, PATH, Settings};
use crate::store::lock::Lock;
use crate::store::queue::{Found, Log, Queue, Record, key_of};
use crate::store::{dirty, queue as files};
use deliver::Delivery;
use gh::Gh;
use look::Look;

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
    let gh = find::real_gh(context.var(PATH).as_deref()).map_err(Error::no_gh)?;
    let mut run = Run::new(context, options, &place, &queue, lock.as_ref(), gh);
    let done = run.through(&mut report);
    done.map_err(|e| failed("replay the queue", &place, e))?;
    report.finish(&queue).map_err(|e| failed("read the queue", &place, e))
}

fn only_one(queue: &Queue, place: &Place) -> Result<Lock> {
    let tried = queue.try_replay_lock().map_err(|e| failed("lock the replay of", place, e))?;
    tried.map_err(|pid| Error::busy(queue::busy_text(pid)))
}

/// One replay on its way.
struct Run<'a> {
    context: &'a Context,
    options: &'a Options,
    queue: &'a Queue,
    lock: Option<&'a Lock>,
    gh: Gh<'a>,
    checkout: Checkout,
    tracked: Vec<String>,
    log: Log,
    /// Issues and handles whose next write has to wait.
    held: BTreeSet<String>,
    /// Entries that were sent.
    sent: u64,
    /// The last entry that was.
    last_seq: Option<u32>,
    last_sent_ms: Option<u64>,
    /// What was asked of the forge so far.
    look: Option<Look>,
}

/// What an entry came to.
enum Came {
    /// To an end of its own.
    To(Outcome, String),
    /// It waits, and so does what belongs to it.
    Later(String),
    /// The whole replay stops.
    Stop(String),
}

impl<'a> Run<'a> {
    fn new(
        context: &'a Context,
        options: &'a Options,
        place: &Place,
        queue: &'a Queue,
        lock: Option<&'a Lock>,
        program: PathBuf,
    ) -> Run<'a> {
        let root = queue.root().to_path_buf();
        Run {
            context,
            options,
            queue,
            lock,
            gh: Gh::new(context, program, &root, options.is_automatic),
            checkout: checkout(context, &place.root),
            tracked: Vec::new(),
            log: Log::default(),
            held: BTreeSet::new(),
            sent: 0,
            last_seq: None,
            last_sent_ms: None,
            look: None,
        }
    }

    /// Every entry that waits, in order, those that come in meanwhile among them.
    fn through(&mut self, report: &mut Report) -> std::io::Result<()> {
        match git::tracked(self.context, &self.queue.path()) {
            Ok(tracked) => self.tracked = tracked,
            Err(why) => {
                report.stopped = Some(why);
                return Ok(());
            }
        }
        let mut seen = 0;
        loop {
            let loaded = self.queue.load()?;
            self.log = self.queue.log()?;
            let todo: Vec<&Found> = loaded.found.iter().filter(|found| found.seq > seen).collect();
            if todo.is_empty() {
                break;
            }
            for found in todo {
                seen = found.seq;
                if found.record.is_ok() && !found.is_pending() {
                    continue;
                }
                if let Some(why) = self.must_end() {
                    report.stopped.get_or_insert(why);
                    return self.tidy(report);
                }
                match self.entry(found)? {
                    Came::Stop(why) => {
                        report.stopped = Some(why);
                        return self.tidy(report);
                    }
                    Came::Later(why) => report.row(found.seq, Outcome::Waiting, why),
                    Came::To(outcome, text) => report.row(found.seq, outcome, text),
                }
            }
        }
        self.tidy(report)
    }

    /// After a replay: records of long ago, the project's mark, the handles' file.
    fn tidy(&mut self, _report: &mut Report) -> std::io::Result<()> {
        if self.lock.is_none() {
            return Ok(());
        }
        let lock = self.queue.lock()?;
        let loaded = self.queue.load()?;
        self.queue.prune(&lock, &loaded)?;
        let live: Vec<u32> = loaded.pending().map(|entry| entry.seq).collect();
        self.queue.compact(&lock, &live, self.context.clock.now_ms())?;
        self.queue.unmark_if_drained(&lock)
    }

    fn must_end(&self) -> Option<String> {
        if !self.options.apply {
            return None;
        }
        if self.options.batch > 0 && self.sent >= self.options.batch {
            return Some(format!("{} entries were sent, as many as one replay may", self.sent));
        }
        self.must_end_before_sending()
    }

    fn must_end_before_sending(&self) -> Option<String> {
        if signals::received().is_some() {
            return Some("this process was asked to end".into());
        }
        let limit_ms = self.context.settings.queue.replay_s * 1_000;
        let late = self.options.is_automatic && self.context.clock.elapsed_ms() >= limit_ms;
        late.then(|| format!("the {}s that an automatic replay may take are over", limit_ms / 1_000))
    }

    fn entry(&mut self, found: &Found) -> std::io::Result<Came> {
        let record = match &found.record {
            Ok(record) => record,
            Err(why) => return Ok(Came::To(Outcome::Refused, format!("its file {why}"))),
        };
        let body = self.queue.body(found.seq);
        let passed = match self.check(found.seq, record, &body) {
            Ok(passed) => passed,
            Err(why) => return self.set_aside(&record.entry, Status::Refused, why),
        };
        let entry = &record.entry;
        let body = body.unwrap_or_default();
        if check::wipes_a_body(&passed.action, &body) {
            let why = "its body is empty and would replace the issue's".to_string();
            return self.set_aside(entry, Status::Skipped, why);
        }
        if let Some(came) = self.dependencies(entry, &passed)? {
            return Ok(came);
        }
        let chains = self.chains(entry, &passed);
        if let Some(held) = chains.iter().find(|chain| self.held.contains(*chain)) {
            let why = format!("waits for an earlier write to {held}");
            self.held.extend(chains);
            return Ok(Came::Later(why));
        }
        if !self.options.apply {
            return Ok(Came::To(Outcome::Would, format!("would deliver: {}", summary(entry))));
        }
        let came = Delivery { run: self, passed: &passed, body: &body }.deliver(entry)?;
        if matches!(came, Came::Later(_)) {
            self.held.extend(chains);
        }
        Ok(came)
    }

    fn check(
        &self,
        seq: u32,
        record: &Record,
        body: &std::result::Result<Vec<u8>, crate::store::folder::Unfit>,
    ) -> std::result::Result<Passed, String> {
        let own = self.queue.path().join(format!("{seq:06}.d/body.md")).to_string_lossy().into_owned();
        let unfit = body.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let reread = crate::decide::queued::reread(&record.entry.argv).map(|(queued, _)| queued);
        let origin = self.checkout.origin.as_ref();
        let with_body = record.entry.body_file.as_ref().and(body.as_ref().ok()).map(Vec::as_slice);
        let key = match (&reread, origin) {
            (Some(queued), Some(origin)) => key_of(queued, origin, with_body),
            _ => String::new(),
        };
        check::check(
            &record.entry,
            &Facts {
                seq,
                is_sealed: record.is_sealed,
                is_accepted: self.options.accept.contains(&seq),
                tracked: git::of_entry(&self.tracked, seq),
                origin,
                own_body_file: &own,
                body: body.as_deref().map_err(|_| unfit.as_str()),
                key: &key,
            },
        )
    }

    /// What an entry needs before it can be sent: every handle it names.
    fn dependencies(&mut self, entry: &Entry, passed: &Passed) -> std::io::Result<Option<Came>> {
        for seq in &passed.queued.needs {
            if self.number(*seq).is_some() {
                continue;
            }
            let create = self.queue.record(*seq).ok().map(|record| record.entry);
            let handle = entry::handle(*seq);
            return Ok(Some(match create {
                // A dry run shows what would happen after the create.
                Some(create)
                    if create.status == Status::Pending
                        && !self.options.apply
                        && !self.held.contains(&handle) =>
                {
                    Came::To(Outcome::Would, format!("would deliver: {}", summary(entry)))
                }
                Some(create) if create.status == Status::Pending => {
                    self.held.extend(self.chains(entry, passed));
                    Came::Later(format!("waits for {handle}"))
                }
                Some(create) => {
                    let (id, status) = (&create.id, create.status.as_str());
                    let reason = create.reason.as_deref().unwrap_or("no reason is on file");
                    let why = format!("the create it depends on, {id}, never landed ({status}: {reason})");
                    self.set_aside(entry, Status::Skipped, why)?
                }
                None => {
                    let id = entry::id(*seq);
                    let why = format!("the create it depends on, {id}, is not in the queue any more");
                    self.set_aside(entry, Status::Skipped, why)?
                }
            }));
        }
        Ok(None)
    }

    /// The issues and handles whose writes have to keep their order with this one.
    fn chains(&self, entry: &Entry, passed: &Passed) -> Vec<String> {
        let name = |seq: u32| match self.number(seq) {
            Some(number) => format!("#{number}"),
            None => entry::handle(seq),
        };
        let mut chains: Vec<String> = passed.queued.needs.iter().map(|seq| name(*seq)).collect();
        chains.extend(entry.handle.clone());
        if let Some(target) = &entry.target {
            chains.push(entry::parse_handle(target).map_or_else(|| format!("#{target}"), name));
        }
        chains
    }

    fn number(&self, seq: u32) -> Option<u64> {
        number_of(&self.log.lines, seq).or_else(|| {
            let record = self.queue.record(seq).ok().filter(|record| record.is_sealed)?;
            let landed = record.entry.status == Status::Delivered;
            landed.then(|| record.entry.result.as_deref().and_then(entry::number_in_url))?
        })
    }

    /// Takes an entry out of the order, with its reason.
    fn set_aside(&mut self, entry: &Entry, status: Status, why: String) -> std::io::Result<Came> {
        let outcome = match status {
            Status::Skipped => Outcome::Skipped,
            Status::Refused => Outcome::Refused,
            _ => Outcome::Failed,
        };
        if self.options.apply {
            self.write_down(&[queue::ended(self.context, entry.seq, status, &why)], |entry| {
                entry.status = status;
                entry.reason = Some(why.clone());
            })?;
        }
        Ok(Came::To(outcome, why))
    }

    /// Appends to the log and changes the entry, both under the queue's lock. `lines` name one entry.
    fn write_down(&mut self, lines: &[Line], change: impl FnOnce(&mut Entry)) -> std::io::Result<()> {
        let lock = self.queue.lock()?;
        self.queue.append(&lock, lines)?;
        self.log.lines.extend_from_slice(lines);
        let Some(seq) = lines.first().map(|line| line.seq) else { return Ok(()) };
        let Ok(record) = self.queue.record(seq) else { return Ok(()) };
        let mut entry = record.entry;
        // Somebody set it aside meanwhile: what they said stays.
        if entry.status != Status::Pending {
            return Ok(());
        }
        let (accepted, before) = (record.is_sealed || self.options.accept.contains(&seq), entry.clone());
        change(&mut entry);
        // A seal is not put under what had none, unless it is on its way out.
        if entry != before && (accepted || entry.status != Status::Pending) {
            self.queue.update(&lock, &mut entry)?;
        }
        if entry.status == Status::Delivered {
            self.queue.remove_body(&lock, seq)?;
            self.queue.write_handles(&lock, &self.log)?;
        }
        Ok(())
    }

    /// The second that the forge asks for between two writes.
    fn space_out(&self) {
        if let Some(last_ms) = self.last_sent_ms {
            let gone_ms = self.context.clock.now_ms().saturating_sub(last_ms);
            clock::pause_ms(self.context.settings.queue.spacing_ms.saturating_sub(gone_ms));
        }
    }
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

fn is_marked(context: &Context) -> bool {
    let Ok(place) = queue::place(context) else { return false };
    files::exists(&place.root)
        && files::real_root(&place.root).is_some_and(|root| dirty::is_marked(&place.state, &root))
}

/// The options of the shim's own replay.
pub fn automatic(context: &Context) -> Options {
    let batch = context.settings.queue.batch;
    Options { apply: true, marked_only: true, batch, accept: Vec::new(), is_automatic: true }
}
