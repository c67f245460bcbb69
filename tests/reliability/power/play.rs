//! The runs of one test on one disk, and a cut after every call.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Operation;
use super::disk::{Disk, Node, Tree};
use super::judge::{Judge, Moment};
use super::trace::Step;
use crate::replay::{forget, posted};
use crate::scene::Scene;
use crate::support::dice::Dice;
use crate::tally::{Bad, Tally};

/// The files that are looked at.
fn counts(path: &str) -> bool {
    if path.ends_with(".lock") {
        return false;
    }
    matches!(path, "work" | "bob" | "bob/forge" | "work/.claude" | "work/.claude/forge")
        || path.starts_with("work/.claude/forge/queue")
        || path.starts_with("work/.claude/forge/.gitignore")
        || path.starts_with("bob/forge/queue")
}

/// What lies in a scene.
fn read(scene: &Scene) -> Tree {
    fn walk(root: &Path, path: &str, tree: &mut Tree) {
        for entry in fs::read_dir(root.join(path)).into_iter().flatten().flatten() {
            let below = format!("{path}/{}", entry.file_name().to_string_lossy());
            if !counts(&below) {
                continue;
            }
            if entry.path().is_dir() {
                tree.insert(below.clone(), Node::Folder);
                walk(root, &below, tree);
            } else {
                tree.insert(below, Node::File(fs::read(entry.path()).unwrap().into()));
            }
        }
    }
    let mut tree = Tree::new();
    for top in ["bob", "work"] {
        tree.insert(top.into(), Node::Folder);
        walk(&scene.sandbox.path(""), top, &mut tree);
    }
    tree
}

/// Lays a state out.
pub fn lay_out(scene: &Scene, tree: &Tree) {
    for store in ["bob/forge", "work/.claude"] {
        let _ = fs::remove_dir_all(scene.sandbox.path(store));
    }
    for (path, node) in tree {
        let at = scene.sandbox.path(path);
        match node {
            Node::Folder if at.exists() => {}
            Node::Folder => {
                fs::create_dir(&at).unwrap();
                fs::set_permissions(&at, fs::Permissions::from_mode(0o700)).unwrap();
            }
            Node::File(bytes) => {
                fs::write(&at, bytes).unwrap();
                fs::set_permissions(&at, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
    }
}

/// The runs of one test, one after another on the same disk, and the cuts in the last of them.
struct Play<'a> {
    scene: &'a Scene,
    disk: Disk,
    judge: Judge<'a>,
    dice: Dice,
    seen: HashSet<u64>,
    hasher: RandomState,
    /// What was said in the last run.
    told: String,
    /// Whether an attempt is written down that is not on its way yet.
    is_due: bool,
    sent: usize,
    changes: usize,
    /// How many states after the last promise the programs judge, at most.
    most: usize,
}

impl<'a> Play<'a> {
    fn new(scene: &'a Scene, judge: Judge<'a>, tally: &Tally) -> Play<'a> {
        let root = fs::canonicalize(scene.sandbox.path("")).unwrap().to_string_lossy().into_owned();
        Play {
            disk: Disk::new(root, &read(scene), counts),
            scene,
            judge,
            dice: Dice::new(tally.seed),
            seen: HashSet::new(),
            hasher: RandomState::new(),
            told: String::new(),
            is_due: false,
            sent: 0,
            changes: 0,
            most: 40,
        }
    }

    /// One call. Says whether anything changed that a cut may show.
    fn step(&mut self, step: &Step, tally: &mut Tally) -> bool {
        let changed = self.disk.run(step).unwrap_or_else(|why| {
            tally.bad(Bad::Wrong, why);
            false
        });
        self.changes += usize::from(changed);
        let is_said = step.fd(0).is_some_and(|(fd, _)| fd == 1 || fd == 2);
        match step.name.as_str() {
            "write" => {
                let text = String::from_utf8_lossy(step.text(1).unwrap_or_default()).into_owned();
                if step.fd(0).is_some_and(|(_, path)| path.ends_with("/replay.log")) {
                    self.is_due |= text.contains("\tattempt\t") || text.contains("taken back");
                }
                if is_said {
                    self.told += &text;
                }
                changed || is_said
            }
            "vfork" | "fork" | "clone" | "clone3" if self.is_due => {
                (self.is_due, self.sent) = (false, self.sent + 1);
                true
            }
            _ => changed,
        }
    }

    /// A whole run whose own cuts are not looked at.
    fn pass(&mut self, steps: &[Step], tally: &mut Tally) {
        for step in steps {
            self.step(step, tally);
        }
        self.disk.starts_anew();
        // It was killed before it sent what it wrote down.
        self.is_due = false;
    }

    /// A run with a cut after every call.
    fn cut(&mut self, operation: &Operation, steps: &[Step], tally: &mut Tally) {
        self.told.clear();
        self.judge.keep_posts();
        let mut last = Vec::new();
        for step in steps {
            let sent = self.sent;
            if !self.step(step, tally) {
                continue;
            }
            last.clear();
            // It may be on the forge as soon as it is on its way, or not yet.
            for sent in sent..=self.sent {
                for tree in self.disk.cuts(&mut self.dice) {
                    let is_told = self.told.contains(operation.tells);
                    if self.seen.insert(self.hasher.hash_one((&tree, is_told, sent))) {
                        tally.cuts += 1;
                        let told = if is_told { self.told.clone() } else { String::new() };
                        let moment = Moment { tree, told, sent, at: step.line.clone() };
                        self.judge.look(&moment, tally);
                        last.push(moment);
                    }
                    if tally.is_settled() {
                        return;
                    }
                }
            }
            let is_over = !operation.tells.is_empty() && self.told.contains(operation.tells);
            let most = if is_over { self.most } else { 1 };
            self.deliver(&last, most, tally);
        }
        // After the last call, for good.
        self.deliver(&last, self.most, tally);
        let what = || format!("{:?} was not said, only {:?}", operation.tells, self.told);
        tally.expect(self.told.contains(operation.tells), Bad::Wrong, what);
        tally.expect(self.changes > 0, Bad::Wrong, || "nothing was changed".into());
    }

    /// Some of these states, by the shipped programs.
    fn deliver(&mut self, moments: &[Moment], most: usize, tally: &mut Tally) {
        for n in 0..moments.len().min(most) {
            let moment = if moments.len() <= most { &moments[n] } else { self.dice.one_of(moments) };
            self.judge.deliver(moment, tally);
            if tally.is_settled() {
                return;
            }
        }
    }
}

/// One operation, from the scene as it was kept.
pub fn play(scene: &Scene, judge: Judge<'_>, operation: &Operation, tally: &mut Tally) {
    scene.restore();
    forget(scene);
    let mut play = Play::new(scene, judge, tally);
    let steps = operation.trace(scene, None);
    tally.runs += 1;
    play.cut(operation, &steps, tally);
}

/// One operation killed before each of its syncs, then another one with its cuts.
pub fn play_killed<'a>(
    scene: &'a Scene,
    judge: &dyn Fn() -> Judge<'a>,
    first: &Operation,
    then: &Operation,
    tally: &mut Tally,
) {
    scene.restore();
    forget(scene);
    let mut play = Play::new(scene, judge(), tally);
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    let (mut changes, mut syncs) = (Vec::new(), Vec::new());
    for step in first.trace(scene, None) {
        let nth = counted.entry(step.name.clone()).or_default();
        *nth += 1;
        let nth = *nth;
        match play.disk.run(&step) {
            Ok(true) if step.name.ends_with("sync") => syncs.push((step.name, nth)),
            Ok(true) => changes.push((step.name, nth)),
            _ => {}
        }
    }
    // Before a sync most is at risk. A control arm has none.
    for (name, nth) in if syncs.is_empty() { changes } else { syncs } {
        scene.restore();
        forget(scene);
        let mut play = Play::new(scene, judge(), tally);
        let steps = first.trace(scene, Some(&format!("{name}:signal=SIGKILL:when={nth}")));
        tally.kills += 1;
        play.pass(&steps, tally);
        // What it sent and what never got there.
        (play.sent, play.most) = (posted(scene).len(), 8);
        let steps = then.trace(scene, None);
        tally.runs += 2;
        play.cut(then, &steps, tally);
        if tally.is_settled() {
            return;
        }
    }
}
