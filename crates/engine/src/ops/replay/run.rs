//! One replay on its way: which entry is next, whether it may go, and what is written down about it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::deliver::Delivery;
use super::gh::Gh;
use super::look::Look;
use super::{Options, Outcome, Report, git};
use crate::decide::check::{self, Facts, Passed};
use crate::decide::entry::{self, Entry, Status};
use crate::decide::journal::{Line, number_of};
use crate::ops::Context;
use crate::ops::queue::{self, Checkout, Place, checkout, summary};
use crate::process::{clock, signals};
use crate::store::lock::Lock;
use crate::store::queue::{Found, Log, Queue, Record, key_of};

/// One replay on its way.
pub(super) struct Run<'a> {
    pub(super) context: &'a Context,
    pub(super) options: &'a Options,
    pub(super) queue: &'a Queue,
    pub(super) lock: Option<&'a Lock>,
    pub(super) gh: Gh<'a>,
    checkout: Checkout,
    tracked: Vec<String>,
    pub(super) log: Log,
    /// Issues and handles whose next write has to wait.
    held: BTreeSet<String>,
    /// Entries that were sent.
    pub(super) sent: u64,
    /// The last entry that was.
    pub(super) last_seq: Option<u32>,
    pub(super) last_sent_ms: Option<u64>,
    /// What was asked of the forge so far.
    pub(super) look: Option<Look>,
}

/// What an entry came to.
pub(super) enum Came {
    /// To an end of its own.
    To(Outcome, String),
    /// It waits, and so does what belongs to it.
    Later(String),
    /// The whole replay stops.
    Stop(String),
}

impl<'a> Run<'a> {
    pub(super) fn new(
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
    pub(super) fn through(&mut self, report: &mut Report) -> std::io::Result<()> {
        if let Some(why) = self.must_end() {
            report.stopped = Some(why);
            return Ok(());
        }
        let left = self.gh.callers_left_ms().map_or(git::PATIENCE, Duration::from_millis);
        match git::tracked(self.context, &self.queue.path(), left.min(git::PATIENCE)) {
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

    pub(super) fn must_end_before_sending(&self) -> Option<String> {
        if signals::received().is_some() {
            return Some("this process was asked to end".into());
        }
        self.gh.out_of_time(self.spacing_left_ms())
    }

    fn entry(&mut self, found: &Found) -> std::io::Result<Came> {
        let record = match &found.record {
            Ok(record) => record,
            Err(why) => return Ok(Came::To(Outcome::Refused, format!("its file {why}"))),
        };
        let body = match self.queue.body(found.seq).map_err(crate::store::folder::Unfit::trouble) {
            Ok(body) => Ok(body),
            // Not the entry's fault: it waits, and so does everything behind it.
            Err(Ok(trouble)) => {
                return Ok(Came::Stop(format!("the body of its first entry cannot be read ({trouble})")));
            }
            Err(Err(unfit)) => Err(unfit),
        };
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
            // A create that has landed in part has a number by now, and what follows goes by that.
            let chains = self.chains(entry, &passed);
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
        if let Some(handle) = &entry.handle {
            chains.extend([handle.clone(), name(entry.seq)]);
        }
        if let Some(target) = &entry.target {
            chains.push(entry::parse_handle(target).map_or_else(|| format!("#{target}"), name));
        }
        chains
    }

    pub(super) fn number(&self, seq: u32) -> Option<u64> {
        number_of(&self.log.lines, seq).or_else(|| {
            let record = self.queue.record(seq).ok().filter(|record| record.is_sealed)?;
            let landed = record.entry.status == Status::Delivered;
            landed.then(|| record.entry.result.as_deref().and_then(entry::number_in_url))?
        })
    }

    /// Takes an entry out of the order, with its reason.
    pub(super) fn set_aside(&mut self, entry: &Entry, status: Status, why: String) -> std::io::Result<Came> {
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
    pub(super) fn write_down(
        &mut self,
        lines: &[Line],
        change: impl FnOnce(&mut Entry),
    ) -> std::io::Result<()> {
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
    pub(super) fn space_out(&self) {
        clock::pause_ms(self.spacing_left_ms());
    }

    fn spacing_left_ms(&self) -> u64 {
        let Some(last_ms) = self.last_sent_ms else { return 0 };
        let gone_ms = self.context.clock.now_ms().saturating_sub(last_ms);
        self.context.settings.queue.spacing_ms.saturating_sub(gone_ms)
    }
}
