//! What follows from a step that failed, or from a look that got no answer: the replay stops, the entry
//! waits, or it is set aside with its reason.

use std::io;

use super::Outcome;
use super::deliver::{Delivery, Stepped};
use super::look::{Look, NoAnswer};
use super::run::Came;
use crate::decide::entry::{Entry, Reach, Status};
use crate::decide::journal::{Event, Line, history};
use crate::decide::queued::{Step, named};
use crate::decide::replay::{self, After};
use crate::decide::signal::Signal;

impl Delivery<'_, '_> {
    pub(super) fn no_answer(&mut self, entry: &Entry, no_answer: &NoAnswer) -> io::Result<Stepped> {
        let NoAnswer { signal, why } = no_answer;
        match signal {
            Signal::NotFound => self.gone(entry, why),
            Signal::Auth if self.run.gh.answers() => {
                let why = format!("the forge does not show {}: {why}", self.target(entry));
                self.use_up(entry, why, false)
            }
            _ => Ok(Stepped::Came(Came::Stop(format!(
                "the forge could not be read ({}): {why}",
                signal.as_str()
            )))),
        }
    }

    /// What an entry is for was not found. Only when the repository itself is there does that say
    /// anything about the entry; a token that may no longer see it finds nothing at all.
    fn gone(&mut self, entry: &Entry, why: &str) -> io::Result<Stepped> {
        let mut look = self.run.look.take().unwrap_or_else(|| Look::new(&self.passed.repo));
        let repo = look.repository(&self.run.gh);
        self.run.look = Some(look);
        if let Err(no_answer) = repo {
            let repo = &self.passed.repo;
            return Ok(Stepped::Came(Came::Stop(format!(
                "the forge does not show {repo}: {}",
                no_answer.why
            ))));
        }
        if entry.target.is_none() {
            return self.use_up(entry, format!("gh {} failed: {why}", entry.kind.as_str()), false);
        }
        let gone = format!("{} does not exist any more: {why}", self.target(entry));
        self.run.set_aside(entry, Status::Skipped, gone).map(Stepped::Came)
    }

    fn target(&self, entry: &Entry) -> String {
        match (self.number(entry), &entry.target) {
            (Some(number), _) => format!("#{number}"),
            (None, Some(target)) => named(target),
            (None, None) => "the repository".into(),
        }
    }

    pub(super) fn failed(
        &mut self,
        entry: &Entry,
        step: Step,
        signal: Signal,
        reach: Reach,
        why: &str,
    ) -> io::Result<Stepped> {
        let attempts_max = self.run.context.settings.queue.attempts_max;
        let mut after = replay::after(step, signal, reach, entry.attempts, attempts_max);
        if after == After::Look {
            // A lost answer has to settle first; the next replay looks.
            if reach == Reach::Unknown {
                return self.use_up(entry, format!("gh {} failed: {why}", entry.kind.as_str()), false);
            }
            let open = history(entry, step, &self.run.log.lines).open;
            match self.look(entry, step, open) {
                Ok(Some(url)) => {
                    let url = self.landed(entry, step, url)?;
                    return Ok(Stepped::Landed(url, false));
                }
                Ok(None) => after = replay::after_looking(step, signal, entry.attempts, attempts_max),
                Err(no_answer) => return self.no_answer(entry, &no_answer),
            }
        }
        if after == After::Ask {
            after = replay::after_auth(self.run.gh.answers(), entry.attempts, attempts_max);
        }
        let told = format!("gh {} failed ({}): {why}", entry.kind.as_str(), signal.as_str());
        let told = match (step, self.number(entry)) {
            (Step::Extras, Some(number)) => {
                format!(
                    "the issue exists ({}), but not all of it could be set: {told}",
                    self.issue_url(number)
                )
            }
            _ => told,
        };
        match after {
            After::Stop | After::Ask | After::Look => Ok(Stepped::Came(Came::Stop(told))),
            After::Again => self.use_up(entry, told, false),
            After::SetAside(Status::Skipped) => self.gone(entry, why),
            After::SetAside(_) => self.use_up(entry, told, true),
        }
    }

    /// An attempt is used up; the last one sets the entry aside.
    fn use_up(&mut self, entry: &Entry, why: String, is_last: bool) -> io::Result<Stepped> {
        let attempts_max = self.run.context.settings.queue.attempts_max;
        let (attempts, now_s) = (entry.attempts + 1, self.run.context.clock.now_s());
        let is_last = is_last || attempts >= attempts_max;
        let why = if is_last { format!("{why} (attempt {attempts} of {attempts_max})") } else { why };
        let line = if is_last {
            crate::ops::queue::ended(self.run.context, entry.seq, Status::Failed, &why)
        } else {
            let event = Event::Failed(Reach::Nothing, why.clone());
            Line { at_ms: self.run.context.clock.now_ms(), seq: entry.seq, step: None, event }
        };
        let (reason, landed) = (why.clone(), self.run.number(entry.seq).map(|number| self.issue_url(number)));
        self.run.write_down(&[line], |entry| {
            entry.result = landed;
            entry.attempts = attempts;
            entry.reason = Some(reason);
            entry.first_attempt_at.get_or_insert(now_s);
            entry.last_attempt_at = Some(now_s);
            if is_last {
                entry.status = Status::Failed;
            }
        })?;
        let came = if is_last { Came::To(Outcome::Failed, why) } else { Came::Later(why) };
        Ok(Stepped::Came(came))
    }
}
