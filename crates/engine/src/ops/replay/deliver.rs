//! One entry's steps: look, write the attempt down, send, write the outcome down.

use std::io;

use super::Outcome;
use super::look::Look;
use super::look::{IssueState, NoAnswer};
use super::run::{Came, Run};
use crate::checkpoint;
use crate::control::Guard;
use crate::decide::check::Passed;
use crate::decide::entry::{self, Entry, Reach, Status};
use crate::decide::journal::{Event, Line, Open, claimed, history, is_clean};
use crate::decide::queued::{self, Command, Step};
use crate::decide::replay::{self, Next, Wanted, find, window_s};
use crate::decide::signal::Signal;
use crate::decide::write::WriteKind;
use crate::process::{clock, signals};

/// An entry that passed its checks, on its way out.
pub(super) struct Delivery<'r, 'a> {
    pub(super) run: &'r mut Run<'a>,
    pub(super) passed: &'r Passed,
    pub(super) body: &'r [u8],
}

/// How one step ended.
pub(super) enum Stepped {
    /// It has landed; its URL, and whether this replay sent it.
    Landed(String, bool),
    /// As the entry.
    Came(Came),
}

impl Delivery<'_, '_> {
    /// Carries an entry through its steps.
    pub(super) fn deliver(mut self, entry: &Entry) -> io::Result<Came> {
        let (mut result, mut sent_any, mut create_was_clean) = (String::new(), false, true);
        for step in queued::steps(&self.passed.queued) {
            // A create that came back clean has set everything.
            if step == Step::Extras && create_was_clean {
                continue;
            }
            match self.step(entry, step)? {
                Stepped::Landed(url, sent) => {
                    sent_any |= sent;
                    create_was_clean =
                        step != Step::Create || sent || is_clean(&self.run.log.lines, entry.seq);
                    if result.is_empty() || step == Step::Create {
                        result = url;
                    }
                }
                Stepped::Came(came) => return Ok(came),
            }
        }
        self.finish(entry, &result, sent_any)
    }

    fn finish(&mut self, entry: &Entry, result: &str, sent_any: bool) -> io::Result<Came> {
        let now_s = self.run.context.clock.now_s();
        let line = crate::ops::queue::ended(self.run.context, entry.seq, Status::Delivered, result);
        let (url, attempts) = (result.to_string(), u32::from(sent_any));
        self.run.write_down(&[line], |entry| {
            entry.status = Status::Delivered;
            entry.reason = None;
            entry.result = Some(url).filter(|url| !url.is_empty());
            entry.attempts += attempts;
            entry.last_attempt_at = Some(now_s);
        })?;
        let verb = entry.kind.as_str();
        let text = match (sent_any, result.is_empty()) {
            (true, true) => format!("gh {verb} delivered"),
            (true, false) => format!("gh {verb} delivered: {result}"),
            (false, true) => format!("gh {verb} was applied already"),
            (false, false) => format!("gh {verb} was applied already: {result}"),
        };
        Ok(Came::To(Outcome::Delivered, text))
    }

    fn step(&mut self, entry: &Entry, step: Step) -> io::Result<Stepped> {
        self.close_dangling(entry, step)?;
        loop {
            let history = history(entry, step, &self.run.log.lines);
            let settle_ms = self.run.context.settings.queue.settle_s * 1_000;
            match replay::next(step, &history, settle_ms, self.run.context.clock.now_ms()) {
                Next::Done(url) => return Ok(Stepped::Landed(url, false)),
                Next::Wait(ms) if self.run.options.is_automatic => {
                    let s = ms.div_ceil(1_000);
                    let why = format!("its last attempt may still land: it is looked at in {s}s");
                    return Ok(Stepped::Came(Came::Later(why)));
                }
                Next::Wait(ms) => {
                    clock::pause_ms(ms);
                    if signals::received().is_some() {
                        return Ok(Stepped::Came(Came::Stop("this process was asked to end".into())));
                    }
                }
                Next::Look => {
                    return match self.look(entry, step, history.open) {
                        Ok(Some(url)) => self.landed(entry, step, url).map(|url| Stepped::Landed(url, false)),
                        Ok(None) => self.send(entry, step),
                        Err(no_answer) => self.no_answer(entry, &no_answer),
                    };
                }
                Next::Send => return self.send(entry, step),
            }
        }
    }

    /// An attempt without an outcome is a killed replay's. Its request may still be on its way, and
    /// only now is it certain that nobody waits for it any more.
    fn close_dangling(&mut self, entry: &Entry, step: Step) -> io::Result<()> {
        if !history(entry, step, &self.run.log.lines).is_dangling {
            return Ok(());
        }
        let why = "the replay that sent it was cut short".to_string();
        self.note(entry, step, Event::Failed(Reach::Unknown, why))
    }

    fn note(&mut self, entry: &Entry, step: Step, event: Event) -> io::Result<()> {
        let at_ms = self.run.context.clock.now_ms();
        let line = Line { at_ms, seq: entry.seq, step: Some(step), event };
        let lock = self.run.queue.lock()?;
        if !Guard::Attempt.is_off() {
            self.run.queue.append(&lock, std::slice::from_ref(&line))?;
            self.run.log.lines.push(line);
        }
        Ok(())
    }

    pub(super) fn number(&self, entry: &Entry) -> Option<u64> {
        match &entry.target {
            None => self.run.number(entry.seq),
            Some(target) => match entry::parse_handle(target) {
                Some(seq) => self.run.number(seq),
                None => target.parse().ok(),
            },
        }
    }

    /// Looks for a step on the forge: its URL when it is there.
    pub(super) fn look(
        &mut self,
        entry: &Entry,
        step: Step,
        open: Option<Open>,
    ) -> Result<Option<String>, NoAnswer> {
        let mut look = self.run.look.take().unwrap_or_else(|| Look::new(&self.passed.repo));
        let found = self.look_with(&mut look, entry, step, open);
        self.run.look = Some(look);
        found
    }

    fn look_with(
        &self,
        look: &mut Look,
        entry: &Entry,
        step: Step,
        open: Option<Open>,
    ) -> Result<Option<String>, NoAnswer> {
        let gh = &self.run.gh;
        if step == Step::State {
            let Some(number) = self.number(entry) else { return Ok(None) };
            let IssueState { is_open } = look.state(gh, number)?;
            let wanted_open = self.passed.queued.kind == WriteKind::Reopen;
            return Ok((is_open == wanted_open).then(|| self.issue_url(number)));
        }
        let Some(open) = open else { return Ok(None) };
        let login = look.login(gh)?;
        // The answers so far have told how the clocks differ.
        let margin_s = 120;
        let since_s = window_s(open, look.skew).0.saturating_sub(margin_s);
        let shown = match step {
            Step::Create => look.issues(gh, since_s)?,
            _ => match self.number(entry) {
                Some(number) => look.comments(gh, number, since_s)?,
                None => return Ok(None),
            },
        };
        let text = queued::comment(&self.passed.queued).map(str::to_string);
        let body = text.unwrap_or_else(|| String::from_utf8_lossy(self.body).into_owned());
        let title = if step == Step::Create { queued::title(&self.passed.queued) } else { None };
        let wanted = Wanted {
            by: login.as_deref(),
            title: title.unwrap_or_default(),
            body: &body,
            between_s: window_s(open, look.skew),
            claimed: &claimed(&self.run.log.lines, entry.seq),
        };
        Ok(find(&wanted, &shown).map(|one| one.url.clone()))
    }

    pub(super) fn issue_url(&self, number: u64) -> String {
        self.passed.repo.issue_url(number)
    }

    pub(super) fn landed(&mut self, entry: &Entry, step: Step, url: String) -> io::Result<String> {
        self.note(entry, step, Event::Found(url.clone()))?;
        Ok(url)
    }

    /// Writes the attempt down, sends it, and writes the outcome down.
    fn send(&mut self, entry: &Entry, step: Step) -> io::Result<Stepped> {
        let resolve = |seq: u32| self.run.number(seq);
        let repo = &self.passed.repo;
        let Some(command) = queued::command(&self.passed.queued, step, self.number(entry), repo, &resolve)
        else {
            let why = "it names an issue that nobody knows the number of".to_string();
            return self.run.set_aside(entry, Status::Skipped, why).map(Stepped::Came);
        };
        // Before the pause and after it: nobody waits in vain.
        if let Some(why) = self.run.must_end_before_sending() {
            return Ok(Stepped::Came(Came::Stop(why)));
        }
        self.run.space_out();
        if let Some(why) = self.run.must_end_before_sending() {
            return Ok(Stepped::Came(Came::Stop(why)));
        }
        if !self.begin(entry, step)? {
            return Ok(Stepped::Came(Came::Later("it was set aside meanwhile".into())));
        }
        checkpoint::here("before-send");
        let Command { argv, text, feeds } = &command;
        let unchecked = Guard::Checked.is_off().then(|| self.run.queue.body_by_its_path(entry.seq));
        let body = unchecked.as_deref().unwrap_or(self.body);
        let stdin = feeds.then(|| text.as_ref().map_or(body, |text| text.as_bytes()));
        let several = queued::has_several_steps(&self.passed.queued);
        let under = self.run.lock.map(crate::store::lock::Lock::file);
        let answer = self.run.gh.run(argv, stdin, several, under);
        self.run.last_sent_ms = Some(self.run.context.clock.now_ms());
        checkpoint::here("after-send");
        if answer.signal == Signal::Ok {
            let url = match step {
                Step::Create | Step::Comment => answer.url(),
                _ => self.number(entry).map(|number| self.issue_url(number)).unwrap_or_default(),
            };
            // A create without a URL is one whose number nobody knows: only the forge can tell.
            if step != Step::Create || entry::number_in_url(&url).is_some() {
                self.note(entry, step, Event::Delivered(url.clone()))?;
                checkpoint::here("after-done");
                return Ok(Stepped::Landed(url, true));
            }
        }
        self.note(entry, step, Event::Failed(answer.reach, answer.why.clone()))?;
        self.failed(entry, step, answer.signal, answer.reach, &answer.why)
    }

    /// Claims the entry: it still waits, and the attempt is on the disk before anything is sent.
    fn begin(&mut self, entry: &Entry, step: Step) -> io::Result<bool> {
        let now_ms = self.run.context.clock.now_ms();
        let line = Line { at_ms: now_ms, seq: entry.seq, step: Some(step), event: Event::Attempt };
        let lock = self.run.queue.lock()?;
        match self.run.queue.record(entry.seq) {
            Ok(record) if record.entry.status == Status::Pending => {}
            _ => return Ok(false),
        }
        self.run.queue.append(&lock, std::slice::from_ref(&line))?;
        self.run.log.lines.push(line);
        if self.run.last_seq != Some(entry.seq) {
            self.run.sent += 1;
            self.run.last_seq = Some(entry.seq);
        }
        Ok(true)
    }
}
