//! Simulated power cuts. One run of each operation of the shipped programs is traced, every byte it writes
//! included; after each of its calls, every state in which a disk may be left (`power::disk`) is laid out in a
//! scene and judged by the real code: what was promised is there whole and replays by itself, nothing is half,
//! nothing that was sent is sent again, no number comes twice, and what was taken away stays away.
//!
//! Not looked at: lock files, which hold nothing, and the state folder's other files, which are derived.

#[path = "power/cuts.rs"]
mod cuts;
#[path = "power/disk.rs"]
mod disk;
#[path = "power/judge.rs"]
mod judge;
#[path = "power/play.rs"]
mod play;
#[path = "power/trace.rs"]
mod trace;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use judge::Judge;
use play::{play, play_killed};
use trace::{Step, steps, traced};

use super::replay::{COMMENT, POSTING_GH, forget, waiting};
use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::queued::{checkout, settle};
use crate::support::sandbox::{Sandbox, forge_command};
use crate::support::streams::Stdin;

/// One operation of a program.
pub struct Operation {
    program: PathBuf,
    args: &'static [&'static str],
    stdin: &'static str,
    env: &'static [(&'static str, &'static str)],
    /// The answers of the forge, see `POSTING_GH`.
    modes: &'static str,
    /// What it says when it has done what it promises.
    tells: &'static str,
}

const REPLAY: [&str; 3] = ["queue", "replay", "--apply"];
/// On an issue for which nothing waits, so that gh itself is asked first.
const FREE: [&str; 5] = ["issue", "comment", "6", "--body-file", "-"];

impl Operation {
    fn forge(args: &'static [&'static str], modes: &'static str, tells: &'static str) -> Operation {
        Operation { program: forge_command(), args, stdin: "", env: &[], modes, tells }
    }

    fn gh(scene: &Scene, args: &'static [&'static str], stdin: &'static str) -> Operation {
        let program = scene.sandbox.path("bin/gh");
        Operation { program, args, stdin, env: &[], modes: "n", tells: "Spooled as q" }
    }

    /// Runs it under strace: what it did.
    fn trace(&self, scene: &Scene, inject: Option<&str>) -> Vec<Step> {
        fs::write(scene.sandbox.path("real/forge/modes"), self.modes).unwrap();
        let _ = fs::remove_file(scene.sandbox.path("real/forge/attempts"));
        let mut call: Call<'_> = traced(&scene.sandbox, &self.program, self.args, inject);
        call = scene.guarded(settle(&scene.sandbox, call));
        for (name, value) in self.env {
            call = call.env(name, value);
        }
        call.stdin(Stdin::Bytes(self.stdin.into())).run();
        let _ = fs::remove_file(scene.sandbox.path("real/forge/modes"));
        steps(&scene.sandbox)
    }
}

/// A checkout without a queue.
fn empty(without: &'static str) -> Scene {
    let sandbox = Sandbox::new("");
    checkout(&sandbox);
    let scene = Scene::of(sandbox, without);
    fs::remove_file(scene.sandbox.path("real/gh")).unwrap();
    scene.sandbox.shell("real/gh", POSTING_GH);
    scene.keep();
    forget(&scene);
    scene
}

/// The first write that is ever queued on a machine.
pub fn first_enqueue(tally: &mut Tally) {
    let scene = empty(tally.without);
    let judge = Judge::new(&scene, &["one"], &[]).promising("one");
    play(&scene, judge, &Operation::gh(&scene, &COMMENT, "one"), tally);
}

/// One more behind two.
pub fn enqueue(tally: &mut Tally) {
    let scene = waiting(&["one", "two"], tally.without);
    let judge = Judge::new(&scene, &["one", "two", "three"], &[1, 2]).promising("three");
    play(&scene, judge, &Operation::gh(&scene, &FREE, "three"), tally);
}

fn replay_of_two(modes: &'static str, tells: &'static str, tally: &mut Tally) {
    let scene = waiting(&["one", "two"], tally.without);
    let judge = Judge::new(&scene, &["one", "two"], &[1, 2]);
    play(&scene, judge, &Operation::forge(&REPLAY, modes, tells), tally);
}

/// Two deliveries.
pub fn replay(tally: &mut Tally) {
    replay_of_two("", "delivered", tally);
}

/// The first one lands, and nobody is told.
pub fn answer_lost(tally: &mut Tally) {
    replay_of_two("l", "", tally);
}

/// Nothing lands: the forge is down, then it refuses an entry, which uses up an attempt.
pub fn failing(tally: &mut Tally) {
    replay_of_two("dddd", "", tally);
    replay_of_two("rrrr", "", tally);
}

/// Fills the log of attempts past the size at which it is written anew.
fn fill_log(scene: &Scene) {
    let mut log = vec![b'x'; 1 << 20];
    log.push(b'\n');
    let path = scene.sandbox.file("work/.claude/forge/queue/replay.log", log);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    scene.keep();
}

/// A replay whose answer is lost, at whose end the log is written anew.
pub fn compaction(tally: &mut Tally) {
    let scene = waiting(&["one", "two"], tally.without);
    fill_log(&scene);
    let judge = Judge::new(&scene, &["one", "two"], &[1, 2]);
    play(&scene, judge, &Operation::forge(&REPLAY, "l", ""), tally);
    let is_anew = steps(&scene.sandbox).iter().any(|step| step.line.contains("\"replay.log.tmp\""));
    tally.expect(is_anew, Bad::Wrong, || "the log was not written anew".into());
}

/// A person sets one aside.
pub fn drop(tally: &mut Tally) {
    let scene = waiting(&["one", "two"], tally.without);
    let judge = Judge::new(&scene, &["one", "two"], &[1, 2]).taking_away(&[1]);
    play(&scene, judge, &Operation::forge(&["queue", "drop", "q000001"], "", "dropped"), tally);
}

/// A person empties the queue.
pub fn clear(tally: &mut Tally) {
    let scene = waiting(&["one", "two"], tally.without);
    let judge = Judge::new(&scene, &["one", "two"], &[1, 2]).taking_away(&[1, 2]);
    play(&scene, judge, &Operation::forge(&["queue", "clear"], "", "removed"), tally);
}

/// A write that is queued while it waits for the quota, and then sent after all.
pub fn taken_back(tally: &mut Tally) {
    let scene = empty(tally.without);
    let until_ms = (engine::process::clock::now_s() + 300) * 1_000;
    let hold = format!("schema=bob-forge-hold/1\ngraphql_closed_until_ms={until_ms}\n");
    scene.sandbox.file("bob/forge/hold.env", hold);
    scene.keep();
    let mut operation = Operation::gh(&scene, &COMMENT, "one");
    operation.env =
        &[("BOB_FORGE_BUDGET", "1"), ("BOB_FORGE_SLEEP", "/bin/true"), ("BOB_FORGE_JOURNAL_AFTER", "0")];
    (operation.modes, operation.tells) = ("", "");
    play(&scene, Judge::new(&scene, &["one"], &[]), &operation, tally);
}

/// A first enqueue that is killed somewhere, and another one by a caller who finds what the first has left.
pub fn enqueue_killed(tally: &mut Tally) {
    let scene = empty(tally.without);
    let judge = || Judge::new(&scene, &["one", "two"], &[]).promising("two");
    let (first, then) = (Operation::gh(&scene, &COMMENT, "one"), Operation::gh(&scene, &FREE, "two"));
    play_killed(&scene, &judge, &first, &then, tally);
}

/// A replay that is killed somewhere, and the next one.
pub fn replay_killed(tally: &mut Tally) {
    let scene = waiting(&["one"], tally.without);
    fill_log(&scene);
    let judge = || Judge::new(&scene, &["one"], &[1]);
    let first = Operation::forge(&REPLAY, "n", "");
    play_killed(&scene, &judge, &first, &Operation::forge(&REPLAY, "", "delivered"), tally);
}
