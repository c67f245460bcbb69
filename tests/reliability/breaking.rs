//! An operation that is broken at every step: killed before each system call, and refused something by the
//! system at each call on a file of ours.
//!
//! strace does it to the shipped programs. Where it may not trace (or with `FORGE_BREAK_BY=steps`), the named
//! steps of a build for tests stand for the calls (`engine::checkpoint`); the table says so.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::scene::{Point, Scene, strace, strace_works, under_strace};
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::running::Run;
use crate::support::spawn::Exit;

/// What the system says when it cannot.
const ERRORS: [(&str, i32); 5] = [
    ("ENOSPC", libc::ENOSPC),
    ("EIO", libc::EIO),
    ("EDQUOT", libc::EDQUOT),
    ("EROFS", libc::EROFS),
    ("EMFILE", libc::EMFILE),
];

/// What was done to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was killed before this call.
    Killed,
    /// This call failed.
    Failed,
    /// Nothing: it ended before it came to that.
    Nothing,
}

/// By what a run is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    Calls,
    Steps,
}

/// By what this machine allows, or the caller asked for.
pub fn means() -> Means {
    let asked = std::env::var("FORGE_BREAK_BY").is_ok_and(|by| by == "steps");
    if asked || strace_works().is_err() { Means::Steps } else { Means::Calls }
}

/// One place at which a run is broken, and how.
enum Break {
    /// strace's words for it.
    Call(String),
    /// The number of the step, and what `BOB_FORGE_TEST_BREAK` says of it.
    Step(usize, String),
}

/// One operation that is broken at every step.
pub struct Operation<'a> {
    pub scene: &'a Scene,
    pub program: PathBuf,
    pub args: &'a [&'a str],
    pub shape: &'a dyn for<'c> Fn(Call<'c>) -> Call<'c>,
    /// What has to hold after a run that was broken.
    pub judge: &'a dyn Fn(&Run, Done, &str, &mut Tally),
    /// Whether every call fails in every way, or each in the next one of them.
    pub in_every_way: bool,
    /// What is put back before every run, besides the stores.
    pub again: &'a dyn Fn(),
}

impl<'a> Operation<'a> {
    /// The shim in this scene, broken in every way.
    pub fn of(scene: &'a Scene, judge: &'a dyn Fn(&Run, Done, &str, &mut Tally)) -> Operation<'a> {
        let program = scene.sandbox.path("bin/gh");
        Operation { scene, program, args: &[], shape: &|call| call, judge, in_every_way: true, again: &|| () }
    }

    /// Kills it at every call, and fails every call on one of its own files.
    pub fn break_everywhere(&self, tally: &mut Tally) {
        self.scene.restore();
        (self.again)();
        let breaks = match means() {
            Means::Calls => self.at_calls(),
            Means::Steps => self.at_steps(),
        };
        assert!(breaks.len() > 10, "hardly a step is seen");
        for (what, point) in &breaks {
            self.break_at(what, point, tally);
            if tally.is_settled() {
                return;
            }
        }
    }

    /// The errors that the `n`-th place fails with.
    fn errors(&self, n: usize) -> &'static [(&'static str, i32)] {
        let next = n % ERRORS.len();
        if self.in_every_way { &ERRORS } else { &ERRORS[next..=next] }
    }

    fn at_calls(&self) -> Vec<(Break, String)> {
        let points = self.scene.points(self.call(None));
        let break_of = |point: &Point, how: &str| {
            let words = format!("{}:{how}:when={}", point.name, point.nth);
            (Break::Call(words.clone()), format!("{words} at {:.90}", point.line))
        };
        let mut breaks: Vec<_> = points.iter().map(|point| break_of(point, "signal=SIGKILL")).collect();
        for (n, point) in points.iter().filter(|point| is_on_a_file_of_ours(point)).enumerate() {
            breaks.extend(self.errors(n).iter().map(|(name, _)| break_of(point, &format!("error={name}"))));
        }
        breaks
    }

    fn at_steps(&self) -> Vec<(Break, String)> {
        let names = self.steps(None);
        let mut breaks = Vec::new();
        for (at, name) in names.iter().enumerate() {
            breaks.push((Break::Step(at, "kill".into()), format!("SIGKILL at {name} ({})", at + 1)));
        }
        for (n, (at, name)) in names.iter().enumerate().filter(|(_, name)| !name.ends_with('!')).enumerate() {
            let of = |(error, number): &(&str, i32)| {
                (Break::Step(at, number.to_string()), format!("{error} at {name} ({})", at + 1))
            };
            breaks.extend(self.errors(n).iter().map(of));
        }
        breaks
    }

    /// The names of the steps of one run.
    fn steps(&self, broken: Option<String>) -> Vec<String> {
        let file = self.scene.sandbox.path("tmp/steps");
        let _ = fs::remove_file(&file);
        self.run_by_steps(&file, broken);
        fs::read_to_string(file).unwrap_or_default().lines().map(String::from).collect()
    }

    fn run_by_steps(&self, file: &Path, broken: Option<String>) -> Run {
        let call = self.scene.sandbox.program(&self.program, self.args).env("BOB_FORGE_TEST_STEPS", file);
        let call = match broken {
            Some(broken) => call.env("BOB_FORGE_TEST_BREAK", broken),
            None => call,
        };
        (self.shape)(self.scene.guarded(call)).run()
    }

    fn call(&self, inject: Option<&str>) -> Call<'a> {
        (self.shape)(self.scene.guarded(call_of(self.scene, &self.program, self.args, inject)))
    }

    fn break_at(&self, what: &Break, point: &str, tally: &mut Tally) {
        self.scene.restore();
        (self.again)();
        let (run, is_injected) = match what {
            Break::Call(inject) => {
                let run = self.call(Some(inject)).run();
                let trace = fs::read(self.scene.sandbox.path("tmp/trace")).unwrap_or_default();
                (run, trace.windows(10).any(|w| w == b"(INJECTED)"))
            }
            Break::Step(at, how) => {
                let file = self.scene.sandbox.path("tmp/steps");
                let _ = fs::remove_file(&file);
                let run = self.run_by_steps(&file, Some(format!("{}:{how}", at + 1)));
                let passed = fs::read_to_string(file).unwrap_or_default().lines().count();
                (run, passed > *at)
            }
        };
        let done = match run.exit {
            Exit::Signal(libc::SIGKILL) => Done::Killed,
            _ if is_injected => Done::Failed,
            _ => Done::Nothing,
        };
        tally.runs += 1;
        tally.kills += u64::from(done == Done::Killed);
        tally.faults += u64::from(done == Done::Failed);
        (self.judge)(&run, done, point, tally);
    }
}

/// A program under strace.
pub fn call_of<'s>(scene: &'s Scene, program: &Path, args: &[&str], inject: Option<&str>) -> Call<'s> {
    scene.sandbox.program(strace(), &under_strace(&scene.sandbox, program, args, inject))
}

fn is_on_a_file_of_ours(point: &Point) -> bool {
    // A `close` that fails closes all the same; strace's does not, which no system does.
    let is_close = point.name == "close";
    !is_close
        && (point.line.contains("/bob/") || point.line.contains("/work/.claude"))
        && !point.line.contains("/real/")
}

/// Whoever was not killed removes what it put aside.
pub fn leaves_nothing(scene: &Scene, what: &str, tally: &mut Tally) {
    let debris = debris(scene);
    tally.expect(debris.is_empty(), Bad::Wrong, || format!("{debris:?} stays: {what}"));
}

/// Files that a writer puts aside and that nobody removed.
fn debris(scene: &Scene) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![scene.sandbox.path("bob"), scene.sandbox.path("work/.claude")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                folders.push(path);
            } else if name.contains(".tmp") && name != "aside.tmp" {
                found.push(name);
            }
        }
    }
    found
}

/// Whether a file is absent, or JSON to its end.
pub fn is_whole_json(path: &Path) -> bool {
    fs::read(path).map_or(true, |bytes| serde_json::from_slice::<Value>(&bytes).is_ok())
}
