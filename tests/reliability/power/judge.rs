//! What has to hold on a disk after a power cut.

use std::fs;

use engine::decide::entry::Status;
use engine::decide::journal::history;
use engine::decide::queued::Step as Sending;
use engine::store::dirty;
use engine::store::queue::{Found, Loaded, Log, Queue};

use super::disk::{Node, Tree};
use super::play::lay_out;
use crate::replay::{self, forget, posted};
use crate::scene::Scene;
use crate::support::queued::settle;
use crate::tally::{Bad, Tally};

/// One state.
pub struct Moment {
    pub tree: Tree,
    /// What the caller was told, once the promise was in it.
    pub told: String,
    /// How many deliveries were on their way, at least.
    pub sent: usize,
    /// The call after which the power went.
    pub at: String,
}

/// What the states of one operation are held to.
pub struct Judge<'a> {
    scene: &'a Scene,
    /// The bodies there can be, by number.
    bodies: &'a [&'a str],
    /// Entries that were promised before.
    promised: &'a [u32],
    /// The body of the write that is being promised.
    promising: Option<&'a str>,
    /// Entries that are being taken away.
    taken: &'a [u32],
    /// What the deliveries of the traced runs left on the forge.
    posts: Vec<Vec<u8>>,
}

impl<'a> Judge<'a> {
    pub fn new(scene: &'a Scene, bodies: &'a [&'a str], promised: &'a [u32]) -> Judge<'a> {
        Judge { scene, bodies, promised, promising: None, taken: &[], posts: Vec::new() }
    }

    pub fn promising(self, body: &'a str) -> Judge<'a> {
        Judge { promising: Some(body), ..self }
    }

    pub fn taking_away(self, taken: &'a [u32]) -> Judge<'a> {
        Judge { taken, ..self }
    }

    /// Keeps what the forge holds after the traced run.
    pub fn keep_posts(&mut self) {
        let mut paths: Vec<_> = fs::read_dir(self.scene.sandbox.path("real/forge/posted"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        self.posts = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    }

    /// Makes the forge hold what it held at that moment: the bodies.
    fn forge(&self, moment: &Moment) -> Vec<String> {
        forget(self.scene);
        for (n, post) in self.posts.iter().take(moment.sent).enumerate() {
            fs::write(self.scene.sandbox.path(format!("real/forge/posted/{n:04}")), post).unwrap();
        }
        posted(self.scene)
    }

    /// Judges a state by what the queue's own code reads there.
    pub fn look(&self, moment: &Moment, tally: &mut Tally) {
        lay_out(self.scene, &moment.tree);
        let on_forge = self.forge(moment);
        let Some((queue, loaded, log)) = self.read(moment, tally) else { return };
        let mut bad = |holds: bool, how: Bad, what: String| {
            tally.expect(holds, how, || format!("{what}, after {}", moment.at));
        };
        for found in &loaded.found {
            let id = found.seq;
            if let Err(why) = &found.record {
                bad(false, Bad::Half, format!("entry {id}: its file {why}"));
                continue;
            }
            let Some(entry) = found.entry() else { continue };
            let history = history(entry, Sending::Comment, &log.lines);
            let text = queue.body(id).map(|body| String::from_utf8_lossy(&body).into_owned()).ok();
            let told = self.bodies.get(id as usize - 1).map(ToString::to_string);
            let is_posted = text.clone().or(told).is_some_and(|text| on_forge.contains(&text));
            if found.is_pending() {
                let is_whole = text.as_ref().is_some_and(|text| self.bodies.contains(&text.as_str()));
                bad(is_whole, Bad::Half, format!("entry {id} waits with {text:?}"));
                bad(found.is_ours(), Bad::Lost, format!("entry {id} has no seal of this machine"));
                let is_marked = dirty::is_marked(&self.scene.sandbox.state(), queue.root());
                bad(is_marked, Bad::Lost, format!("entry {id} waits for a person: no mark"));
                let is_known = history.open.is_some() || history.done.is_some();
                bad(!is_posted || is_known, Bad::Doubled, format!("entry {id} was sent, and nobody knows"));
            }
            let is_done = history.done.is_some() || entry.status == Status::Delivered;
            bad(!is_done || is_posted, Bad::Lost, format!("entry {id} counts as delivered, and is not"));
        }
        self.promises(moment, &loaded, &queue, tally);
    }

    fn read(&self, moment: &Moment, tally: &mut Tally) -> Option<(Queue, Loaded, Log)> {
        let must = !self.promised.is_empty() || (self.promising.is_some() && !moment.told.is_empty());
        let queue = match Queue::open(&self.scene.sandbox.path("work"), &self.scene.sandbox.state()) {
            Ok(Some(queue)) => queue,
            Ok(None) => {
                tally.expect(!must, Bad::Lost, || format!("the queue is gone, after {}", moment.at));
                return None;
            }
            Err(e) => {
                tally.bad(Bad::Half, format!("the queue cannot be opened ({e}), after {}", moment.at));
                return None;
            }
        };
        let read = queue.load().and_then(|loaded| Ok((loaded, queue.log()?)));
        match read {
            Ok((loaded, log)) => Some((queue, loaded, log)),
            Err(e) => {
                tally.bad(Bad::Half, format!("the queue cannot be read ({e}), after {}", moment.at));
                None
            }
        }
    }

    /// What somebody was told before the power went.
    fn promises(&self, moment: &Moment, loaded: &Loaded, queue: &Queue, tally: &mut Tally) {
        let is_told = !moment.told.is_empty();
        let mut bad = |holds: bool, how: Bad, what: String| {
            tally.expect(holds, how, || format!("{what}, after {}", moment.at));
        };
        let entry = |seq: u32| loaded.found.iter().find(|found| found.seq == seq);
        let mut promised: Vec<u32> = self.promised.to_vec();
        let new = self.promising.filter(|_| is_told).map(|body| (number_in(&moment.told), body));
        if let Some((seq, body)) = new {
            let is_there = entry(seq).is_some_and(Found::is_ours)
                && queue.body(seq).is_ok_and(|found| found == body.as_bytes());
            bad(is_there, Bad::Lost, format!("entry {seq} was promised and is not there whole"));
            promised.push(seq);
        }
        for seq in &promised {
            let is_there = entry(*seq)
                .and_then(Found::entry)
                .is_some_and(|entry| matches!(entry.status, Status::Pending | Status::Delivered));
            let may_go = self.taken.contains(seq);
            bad(is_there || may_go, Bad::Lost, format!("entry {seq} is gone"));
            let comes_back = is_told && may_go && entry(*seq).is_some_and(Found::is_pending);
            bad(!comes_back, Bad::Wrong, format!("entry {seq} was taken away, and waits"));
            let is_cut_short = is_told && may_go && loaded.orphans.contains(seq);
            bad(!is_cut_short, Bad::Wrong, format!("entry {seq} was taken away, and is called cut short"));
        }
        let highest = promised.iter().max().copied().unwrap_or_default();
        bad(loaded.highest >= highest, Bad::Doubled, format!("number {highest} is given out again"));
        let ignore = moment.tree.get("work/.claude/forge/.gitignore");
        let is_whole = ignore.map_or(new.is_none(), |node| *node == Node::File((*b"*\n").into()));
        bad(is_whole, Bad::Half, format!("git would take the queue: {ignore:?}"));
    }

    /// Judges a state by what the shipped programs make of it.
    pub fn deliver(&self, moment: &Moment, tally: &mut Tally) {
        lay_out(self.scene, &moment.tree);
        let mut wanted = self.forge(moment);
        let queue = Queue::open(&self.scene.sandbox.path("work"), &self.scene.sandbox.state());
        if let Ok(Some(queue)) = queue {
            for found in queue.load().unwrap_or_default().found.iter().filter(|found| found.is_pending()) {
                let body = queue.body(found.seq).unwrap_or_default();
                let body = String::from_utf8_lossy(&body).into_owned();
                if !wanted.contains(&body) {
                    wanted.push(body);
                }
            }
        }
        tally.runs += 1;
        if self.promising.is_some() && !moment.told.is_empty() {
            // Nobody has to do anything: the next call that reaches the forge brings it along.
            self.scene.guarded(settle(&self.scene.sandbox, self.scene.sandbox.gh(&["pr", "status"]))).run();
            let posted = posted(self.scene);
            tally.expect(posted == wanted, Bad::Lost, || {
                format!("{posted:?} was delivered by itself, not {wanted:?}, after {}", moment.at)
            });
        }
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        replay::judge(self.scene, &wanted, &format!("after {}", moment.at), tally);
    }
}

/// The number in `Spooled as q000003`.
fn number_in(told: &str) -> u32 {
    let digits = told.split("Spooled as q").nth(1).and_then(|rest| rest.get(..6));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
