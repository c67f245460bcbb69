//! The write queue's side of one call (#1750): before gh, handles are resolved, a body is taken off
//! standard input, and nothing overtakes what already waits; after it, a write that the forge could not
//! take is spooled in its place.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use engine::decide::entry::{Live, Reach, handle, id};
use engine::decide::plan::Plan;
use engine::decide::queued::has_several_steps;
use engine::decide::reach::reach;
use engine::decide::repo::Target;
use engine::decide::signal::{Ended, Outcome, Signal};
use engine::decide::write::{Write, WriteKind, judge_words, with_body_file};
use engine::error::Error;
use engine::ops::Context;
use engine::ops::cache;
use engine::ops::queue::{self, Body, Ready, Resolved, Spooled, TakenBack, any_handle, resolve_call};
use engine::process::ambient::environment;
use engine::process::invocation::{Invocation, read_stdin, variable};
use engine::process::run::{Hold, Ran};
use engine::process::{clock, exit};
use engine::store::text;

use super::drain::in_the_way;
use super::effects::shielded;

const OUT_OF_TIME: &str = "the quota is spent for longer than its caller waits";

/// The queue's side of one call; empty for a call that it has nothing to do with.
pub struct Spool {
    argv: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    write: Option<Writing>,
    /// Handles that the call names and that have no number.
    unresolved: Option<Resolved>,
    /// What was queued before a long wait.
    journalled: RefCell<Option<Spooled>>,
    /// When the first attempt started that may have got through.
    started_ms: Cell<u64>,
    /// How far the attempts so far can have got; `None` before the first.
    reached: Cell<Option<Reach>>,
}

/// A call that is one of the five writes.
struct Writing {
    context: Context,
    ready: Result<Ready, Error>,
    targets: Vec<Target>,
}

impl Spool {
    /// Takes the call over: its words with handles resolved, and its standard input where that is its body.
    pub fn take(invocation: &Invocation, plan: &Plan) -> Spool {
        let mut spool = Spool {
            argv: invocation.argv.clone(),
            stdin: None,
            write: None,
            unresolved: None,
            journalled: RefCell::new(None),
            started_ms: Cell::new(0),
            reached: Cell::new(None),
        };
        let names_a_handle = any_handle(invocation.args());
        if plan.write == Write::None && !names_a_handle {
            return spool;
        }
        let context = Context::new(environment(), invocation.cwd.clone(), None);
        if !context.settings.queue.enabled {
            return spool;
        }
        if names_a_handle {
            shielded(|| spool.resolve(&context, plan));
        }
        if plan.write != Write::None {
            spool.read_body(invocation);
            spool.write = shielded(|| spool.judge(context));
        }
        spool
    }

    /// The words to run gh with.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// What to feed it. An input that was empty is left to it as it was.
    pub fn stdin(&self) -> Option<&[u8]> {
        self.stdin.as_deref().filter(|body| !body.is_empty())
    }

    /// Whether it is one of the five writes.
    pub fn is_write(&self) -> bool {
        self.write.is_some()
    }

    /// What has to be held back, so that the marker can stand in its place.
    pub fn hold(&self, without: Hold) -> Hold {
        if self.write.as_ref().is_some_and(|write| write.ready.is_ok()) { Hold::All } else { without }
    }

    fn resolve(&mut self, context: &Context, plan: &Plan) {
        let Some(resolved) = resolve_call(context, plan, &self.argv) else { return };
        self.argv.clone_from(&resolved.args);
        self.unresolved = Some(resolved).filter(|r| !r.waiting.is_empty() || !r.lost.is_empty());
    }

    /// Takes a body that can be read only once; it is fed to every attempt, and argv stays as typed.
    fn read_body(&mut self, invocation: &Invocation) {
        match queue::body_source(&self.argv[1..]) {
            Some(Body::Stdin) if !invocation.streams.stdin_is_terminal => self.stdin = read_stdin().ok(),
            Some(Body::File(path)) => {
                let path = invocation.cwd.as_deref().unwrap_or(Path::new("/")).join(path);
                if let Some(text) = text::is_a_pipe(&path).then(|| text::read_pipe(&path).ok()).flatten() {
                    let pointed = with_body_file(&self.argv[1..], OsStr::new("-"));
                    self.argv.splice(1.., pointed);
                    self.stdin = Some(text);
                }
            }
            _ => {}
        }
    }

    fn judge(&self, context: Context) -> Writing {
        let ready = queue::admit(&context, &self.argv[1..], self.stdin.as_deref());
        // By the words as they are now: a handle that has landed is an issue with a number.
        let targets = match (judge_words(&self.argv[1..]), &ready) {
            (Write::Refused { targets, .. }, _) => targets,
            (_, Ok(ready)) => ready.queued.target.iter().filter_map(|target| Target::parse(target)).collect(),
            _ => Vec::new(),
        };
        Writing { context, ready, targets }
    }

    /// Before gh: a write whose issue does not exist yet, or whose issue has earlier writes waiting, is
    /// queued behind them without a call, and this process ends.
    pub fn queue_behind(&self) {
        let Some(write) = &self.write else { return };
        let waits_for = self.unresolved.as_ref().and_then(|unresolved| unresolved.waiting.first().copied());
        let why = match waits_for {
            Some(seq) => Some(format!("{} has not been created yet", handle(seq))),
            None => shielded(|| in_the_way(&write.context, &write.targets)).flatten(),
        };
        match (why, &write.ready) {
            (None, _) => {}
            (Some(why), Ok(ready)) => self.queue_instead(write, ready, &why),
            (Some(why), Err(_)) => {
                exit::say(&format!(
                    "[forge-queue] {why}; this one cannot be queued, so it goes out ahead of it."
                ));
            }
        }
    }

    /// The caller gives up before the call could go (`CONTRACT` section 5): a write is queued without one.
    pub fn instead(&self) {
        if let Some((write, ready)) = self.write.as_ref().and_then(|w| Some((w, w.ready.as_ref().ok()?))) {
            if let Some(spooled) = self.journalled.take() {
                exit::end_as(promise(&spooled, OUT_OF_TIME));
            }
            self.queue_instead(write, ready, OUT_OF_TIME);
        }
    }

    fn queue_instead(&self, write: &Writing, ready: &Ready, why: &str) {
        match shielded(|| queue::spool(&write.context, ready, None, self.live())) {
            Some(Ok(spooled)) => {
                exit::end_as(promise(&spooled, &format!("{why}, so the live call was not made")))
            }
            Some(Err(e)) => {
                // It must not overtake what waits, so gh is not asked either.
                exit::say(&format!("[forge-queue] NOT queued and NOT delivered — {e}; {why}."));
                exit::end_as(Ended::Code(1))
            }
            None => {}
        }
    }

    /// Before a long wait, which the caller's own time limit may end: the write is queued first, so that
    /// a shim that is killed leaves an ordinary entry behind.
    pub fn journal(&self) {
        let Some((write, ready)) = self.write.as_ref().and_then(|w| Some((w, w.ready.as_ref().ok()?))) else {
            return;
        };
        if self.journalled.borrow().is_none() {
            let spooled = shielded(|| queue::spool(&write.context, ready, None, self.live()).ok()).flatten();
            *self.journalled.borrow_mut() = spooled;
        }
    }

    /// Whether the write lies in the queue while it waits.
    pub fn is_journalled(&self) -> bool {
        self.journalled.borrow().is_some()
    }

    /// A signal ends the wait: what was queued before it stays queued, and that is said.
    pub fn promise_journalled(&self) {
        if let Some(spooled) = self.journalled.take() {
            promise(&spooled, "the wait for the quota was cut short");
        }
    }

    /// The wait is over: the write is taken back, to be sent live. Where a replay has delivered it
    /// meanwhile, holds it right now, or has set it aside, this process ends with that.
    pub fn take_back(&self) {
        let (Some(write), Some(spooled)) = (&self.write, self.journalled.take()) else { return };
        match shielded(|| queue::take_back(&write.context, spooled.entry.seq)) {
            Some(Ok(TakenBack::Taken)) => {}
            Some(Ok(TakenBack::Delivered(url))) => {
                if !url.is_empty() && matches!(spooled.entry.kind, WriteKind::Create | WriteKind::Comment) {
                    exit::answer(&url);
                }
                exit::end_as(Ended::Code(0))
            }
            // Somebody decided that it is not to be sent; it is not sent past them.
            Some(Ok(TakenBack::SetAside(why))) => {
                let id = &spooled.entry.id;
                exit::say(&format!(
                    "[forge-queue] NOT delivered — while it waited as {id} it was set aside: {why}."
                ));
                exit::end_as(Ended::Code(1))
            }
            Some(Ok(TakenBack::Waits)) => exit::end_as(promise(&spooled, "it is in the hands of a replay")),
            Some(Err(_)) | None => {
                exit::end_as(promise(&spooled, "it could not be taken out of the queue again"))
            }
        }
    }

    /// Before each attempt. What waited before it, and what certainly failed, is not the beginning of
    /// the time in which this write can have been made.
    pub fn start(&self) {
        if self.reached.get().is_none_or(|reach| reach == Reach::Nothing) {
            self.started_ms.set(clock::now_ms());
        }
    }

    /// After each attempt: how far it can have got. It may be the one that counts.
    pub fn attempted(&self, ran: &Ran) {
        let Some(Ok(ready)) = self.write.as_ref().map(|write| &write.ready) else { return };
        let reach = reach(ran.ended, &ran.said(), has_several_steps(&ready.queued));
        self.reached.set(self.reached.get().max(Some(reach)));
    }

    /// A write that went live: a stored read of its issue is older from now on (#1749).
    pub fn landed(&self, invocation: &Invocation, plan: &Plan, ran: &Ran) {
        let Some(write) = &self.write else { return };
        let answer = [ran.answer().unwrap_or_default(), &ran.said()].concat();
        let cwd = invocation.cwd.as_deref();
        shielded(|| cache::landed(plan, &variable, cwd, &write.targets, &answer, clock::now_ms()));
    }

    fn live(&self) -> Option<Live> {
        let ended_ms = clock::now_ms();
        self.reached.get().map(|reach| Live { started_ms: self.started_ms.get(), ended_ms, reach })
    }

    /// After gh: shows what it said, or spools the write in its place. Says how this process ends.
    pub fn reply(&self, ran: Ran, outcome: Option<Outcome>) -> Ended {
        let signal = outcome.map(|outcome| outcome.signal).filter(|signal| signal.is_availability_failure());
        match (&self.write, signal) {
            (Some(write), Some(signal)) => self.spool(write, ran, signal),
            _ => ran.show(),
        }
    }

    fn spool(&self, write: &Writing, ran: Ran, signal: Signal) -> Ended {
        let spooled = match &write.ready {
            Ok(ready) => {
                let spooled = shielded(|| {
                    let spooled = queue::spool(&write.context, ready, Some(signal.as_str()), self.live());
                    spooled.map_err(|e| e.to_string())
                });
                spooled.unwrap_or_else(|| Err("a defect of the queue".into()))
            }
            Err(e) => Err(e.to_string()),
        };
        match spooled {
            Ok(spooled) => {
                // What was already shown cannot be taken back; the marker stands below it then.
                if ran.has_flowed() {
                    let _ = ran.show();
                } else {
                    ran.discard()
                }
                promise(&spooled, &format!("the live call failed ({})", signal.as_str()))
            }
            Err(why) => {
                let ended = ran.show();
                exit::say(&format!("[forge-queue] NOT queued and NOT delivered — {why}."));
                ended
            }
        }
    }

    /// A call that failed on a handle: gh cannot know why.
    pub fn explain_handles(&self, outcome: Option<Outcome>) {
        let has_failed = outcome.is_some_and(|outcome| outcome.signal != Signal::Ok);
        let Some(unresolved) = self.unresolved.as_ref().filter(|_| has_failed) else { return };
        for seq in &unresolved.waiting {
            exit::say(&format!(
                "[forge-queue] {} is still queued as {}; it has no number yet.",
                handle(*seq),
                id(*seq)
            ));
        }
        for (seq, why) in &unresolved.lost {
            let not = if self.write.is_some() { "NOT queued and NOT delivered — " } else { "" };
            exit::say(&format!("[forge-queue] {not}{} stands for no issue: {why}.", handle(*seq)));
        }
    }
}

/// The promise: on the disk already, so that whoever does not hear it loses nothing.
fn promise(spooled: &Spooled, why: &str) -> Ended {
    if let Some(url) = &spooled.handle_url {
        exit::answer(url);
    }
    exit::say(&format!(
        "[forge-queue] not delivered yet — {why}. Spooled as {}; it replays in order when the forge recovers \
         (queue depth {}).",
        spooled.entry.id, spooled.depth
    ));
    Ended::Code(0)
}
