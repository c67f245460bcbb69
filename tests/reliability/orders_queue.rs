//! Enqueue, drop, clear and replay beside each other, in every order of their steps.

use std::ffi::OsString;
use std::fs;
use std::sync::{Arc, Mutex};

use engine::decide::entry::Status;
use engine::ops::{Context, queue, replay};
use engine::store::queue::Queue;

use super::interleave::{Actor, Judge, actor, explore, without_guards};
use super::replay::waiting;
use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::sandbox::fake;

/// What an actor was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    /// The number of what was queued.
    Queued(u32),
    Dropped,
    Cleared,
    Replayed,
    Refused(String),
}

/// What an actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Queues this comment.
    Add(&'static str),
    /// Drops the first entry.
    Drop,
    Clear,
    Replay,
}

/// A forge that takes every comment and knows of none; what it took is what it was given.
const TAKES_ALL: &str = "on issue comment
 stdin
 out https://github.com/acme/widget/issues/5#issuecomment-1\\n
 exit 0
on user
 out HTTP/2.0 200 OK\\n\\n{\"login\":\"me\"}
 exit 0
on *
 out HTTP/2.0 200 OK\\n\\n{\"state\":\"open\"}
 exit 0
";

/// A queue that holds the comments `one` and `two`, before such a forge.
fn scene(without: &'static str) -> Scene {
    let scene = waiting(&["one", "two"], without);
    let gh = scene.sandbox.path("real/gh");
    fs::remove_file(&gh).unwrap();
    fs::copy(fake(), gh).unwrap();
    scene.sandbox.script(TAKES_ALL);
    scene
}

/// The bodies that the forge was given, first first.
fn posted(scene: &Scene) -> Vec<String> {
    let is_comment = |args: &[Vec<u8>]| args.iter().any(|word| word == b"comment");
    let calls = scene.sandbox.calls().into_iter().filter(|call| is_comment(&call.args));
    calls.map(|call| String::from_utf8(call.stdin.unwrap_or_default()).unwrap()).collect()
}

/// What has to hold after what everybody was told.
type Holds<'a> = dyn Fn(&[(Act, Told)], &str, &mut Tally) + 'a;
type AllTold = Arc<Mutex<Vec<(Act, Told)>>>;

fn act(context: &Context, what: Act, told: &AllTold) {
    let refused = |e: engine::error::Error| Told::Refused(e.to_string());
    let came = match what {
        Act::Add(body) => add(context, body).map_or_else(refused, Told::Queued),
        Act::Drop => queue::drop(context, "1").map_or_else(refused, |_| Told::Dropped),
        Act::Clear => queue::clear(context).map_or_else(refused, |_| Told::Cleared),
        Act::Replay => {
            let options = replay::Options { apply: true, ..replay::Options::default() };
            replay::replay(context, &options).map_or_else(refused, |_| Told::Replayed)
        }
    };
    told.lock().unwrap().push((what, came));
}

fn add(context: &Context, body: &str) -> engine::error::Result<u32> {
    let args = ["issue", "comment", "6", "--body", body].map(OsString::from);
    let ready = queue::admit(context, &args, None)?;
    Ok(queue::spool(context, &ready, None, None)?.entry.seq)
}

fn context(scene: &Scene, max: &str) -> Context {
    let of = |name: &str| scene.sandbox.path(name).into_os_string();
    let path = std::env::join_paths([of("real"), of("tools"), "/usr/bin".into(), "/bin".into()]).unwrap();
    let vars: [(&str, OsString); 9] = [
        ("PATH", path),
        ("HOME", of("home")),
        ("BOB_HOME", of("bob")),
        ("GH_CONFIG_DIR", of("home/gh")),
        ("GH_TOKEN", "test-token".into()),
        ("BOB_FORGE_QUEUE_SETTLE", "0".into()),
        ("BOB_FORGE_QUEUE_MAX", max.into()),
        ("BOB_FORGE_REPLAY_SPACING_MS", "0".into()),
        ("BOB_FORGE_BUDGET", "0".into()),
    ];
    let env = vars.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Context::new(env, Some(scene.sandbox.path("work")), None)
}

/// The acts in every order of their steps, on a queue that holds `one` and `two`.
fn together(
    scene: &Scene,
    acts: &[Act],
    (max, preemptions): (&str, usize),
    tally: &mut Tally,
    judge: &Holds<'_>,
) {
    let context = context(scene, max);
    explore(tally, preemptions, || {
        scene.restore();
        let _ = fs::remove_dir_all(scene.sandbox.path("real/fake-gh.script.log"));
        let told = AllTold::default();
        let actors = acts.iter().map(|what| {
            let (context, told, what) = (context.clone(), told.clone(), *what);
            actor(move || act(&context, what, &told))
        });
        let actors: Vec<Actor> = actors.collect();
        let judge: Judge<'_> =
            Box::new(move |order, tally| judge(&told.lock().unwrap(), &format!("{acts:?} {order}"), tally));
        (actors, judge)
    });
}

/// Queueing, dropping and clearing beside each other.
pub fn changes(tally: &mut Tally) {
    let scene = scene(tally.without);
    let pairs: [&[Act]; 4] = [
        &[Act::Add("three"), Act::Add("four")],
        &[Act::Add("three"), Act::Drop],
        &[Act::Add("three"), Act::Clear],
        &[Act::Drop, Act::Clear],
    ];
    without_guards(tally, |tally| {
        for acts in pairs {
            together(&scene, acts, ("500", 1), tally, &|told, what, tally| {
                changes_hold(&scene, told, what, tally);
            });
        }
        // One place is left for two.
        together(&scene, pairs[0], ("3", 1), tally, &|told, what, tally| {
            let taken = told.iter().filter(|(_, told)| matches!(told, Told::Queued(_))).count();
            tally.expect(taken == 1, Bad::Wrong, || format!("{taken} took the last place: {told:?} {what}"));
        });
    });
}

fn changes_hold(scene: &Scene, told: &[(Act, Told)], what: &str, tally: &mut Tally) {
    let queue = Queue::open(&scene.sandbox.path("work"), &scene.sandbox.state()).unwrap().unwrap();
    let found = queue.load().unwrap().found;
    let is_half = found.iter().any(|found| found.record.is_err());
    tally.expect(!is_half, Bad::Half, || format!("half an entry, {told:?} {what}"));
    let is_cleared = told.contains(&(Act::Clear, Told::Cleared));
    let waits =
        |seq: u32| found.iter().any(|found| found.seq == seq && found.is_pending() && found.is_ours());
    let mut numbers = vec![1, 2];
    for (act, came) in told {
        match (act, came) {
            (Act::Add(body), Told::Queued(seq)) => {
                let is_new = !numbers.contains(seq);
                tally.expect(is_new, Bad::Doubled, || format!("{seq} was given out twice, {what}"));
                numbers.push(*seq);
                let is_there = waits(*seq) && queue.body(*seq).is_ok_and(|found| found == body.as_bytes());
                tally.expect(is_there || is_cleared, Bad::Lost, || format!("{seq} is gone, {what}"));
            }
            (Act::Drop, Told::Dropped) | (Act::Clear, Told::Cleared) => {
                tally.expect(!waits(1), Bad::Wrong, || format!("dropped and waiting, {what}"));
            }
            // Behind a clear there is nothing to drop.
            (Act::Drop, Told::Refused(_)) if is_cleared => {}
            _ => tally.bad(Bad::Wrong, format!("{act:?} was told {came:?}, {what}")),
        }
    }
    let is_kept = waits(2) || is_cleared;
    tally.expect(is_kept, Bad::Lost, || format!("the second entry is gone, {what}"));
}

/// A replay beside everything else, a second replay among it.
pub fn replays(tally: &mut Tally) {
    let scene = scene(tally.without);
    without_guards(tally, |tally| {
        for other in [Act::Replay, Act::Drop, Act::Clear, Act::Add("three")] {
            together(&scene, &[Act::Replay, other], ("500", 1), tally, &|told, what, tally| {
                replay_holds(&scene, told, what, tally);
            });
        }
    });
}

fn replay_holds(scene: &Scene, told: &[(Act, Told)], what: &str, tally: &mut Tally) {
    let has = |act: Act, came: Told| told.contains(&(act, came));
    let before = posted(scene);
    let queue = Queue::open(&scene.sandbox.path("work"), &scene.sandbox.state()).unwrap().unwrap();
    let set_aside = |seq: u32| {
        let found = queue.load().unwrap().found.into_iter().find(|found| found.seq == seq);
        found.is_none_or(|found| found.entry().is_none_or(|entry| entry.status == Status::Dropped))
    };
    let dropped_and_sent = has(Act::Drop, Told::Dropped) && before.contains(&"one".to_string());
    tally.expect(!dropped_and_sent, Bad::Wrong, || format!("dropped and sent, {told:?} {what}"));
    let is_set_aside = [set_aside(1), set_aside(2)];
    act(&context(scene, "500"), Act::Replay, &AllTold::default());
    let after = posted(scene);
    let is_added = told.iter().any(|(_, came)| matches!(came, Told::Queued(_)));
    for (body, is_due) in [("one", !is_set_aside[0]), ("two", !is_set_aside[1]), ("three", is_added)] {
        let times = after.iter().filter(|posted| *posted == body).count();
        tally.expect(times < 2, Bad::Doubled, || format!("{body} is there {times} times, {told:?} {what}"));
        let is_there = times > 0 || !is_due;
        tally.expect(is_there, Bad::Lost, || format!("{body} is not there, {told:?} {what}"));
    }
    let is_in_order =
        after.iter().position(|body| body == "two") > after.iter().position(|body| body == "one");
    tally.expect(is_in_order || is_set_aside != [false; 2], Bad::Wrong, || format!("{after:?}, {what}"));
}
