//! Every step at which an enqueue, a drop or a clear can be killed or refused something.

use std::collections::BTreeSet;
use std::fs;

use engine::store::queue::{Found, Queue};

use super::breaking::{Done, Operation};
use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::running::Run;
use crate::support::sandbox::forge_command;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

const REFUSED: &str =
    "on *\n stdin\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
const COMMENT: [&str; 5] = ["issue", "comment", "5", "--body-file", "-"];
/// On an issue for which nothing waits, so that gh itself is asked first.
const FREE: [&str; 5] = ["issue", "comment", "6", "--body-file", "-"];

/// A checkout with two queued comments.
fn queued(without: &'static str) -> Scene {
    let scene = Scene::new(REFUSED, without);
    for body in ["first", "second"] {
        let run = scene.sandbox.gh(&COMMENT).stdin(Stdin::Bytes(body.into())).run();
        assert!(run.err().contains("Spooled as"), "{}", run.err());
    }
    scene.keep();
    scene
}

/// The queue's entries, and the body of each.
fn entries(scene: &Scene) -> Vec<(Found, Option<Vec<u8>>)> {
    let queue = Queue::open(&scene.sandbox.path("work"), &scene.sandbox.state()).unwrap().expect("a queue");
    let with_body = |found: Found| {
        let body = queue.body(found.seq).ok();
        (found, body)
    };
    queue.load().unwrap().found.into_iter().map(with_body).collect()
}

/// The first two are as they were: waiting, sealed, with their bodies.
fn old_entries_are_whole(scene: &Scene, of: &[u32], what: &str, tally: &mut Tally) {
    let entries = entries(scene);
    for seq in of {
        let body: &[u8] = if *seq == 1 { b"first" } else { b"second" };
        let entry = entries.iter().find(|(found, _)| found.seq == *seq);
        let is_whole = entry.is_some_and(|(found, of)| found.is_ours() && of.as_deref() == Some(body));
        tally.expect(is_whole, Bad::Lost, || format!("entry {seq} is not what it was: {what}"));
    }
    for (found, _) in &entries {
        tally
            .expect(found.record.is_ok(), Bad::Half, || format!("entry {} is half a one: {what}", found.seq));
    }
}

/// Whether anything was ever numbered 3.
fn is_taken(scene: &Scene) -> bool {
    let folder = scene.sandbox.path("work/.claude/forge/queue");
    let names: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.iter().any(|name| name.starts_with("000003."))
}

/// A write that the forge does not take is queued.
pub fn enqueue(tally: &mut Tally) {
    const BODY: &[u8] = b"the third body\nwith two lines";
    let scene = queued(tally.without);
    let judge = |run: &Run, done: Done, what: &str, tally: &mut Tally| {
        old_entries_are_whole(&scene, &[1, 2], what, tally);
        let third = entries(&scene).into_iter().find(|(found, _)| found.is_pending() && found.seq == 3);
        let is_whole =
            third.as_ref().is_some_and(|(found, body)| found.is_ours() && body.as_deref() == Some(BODY));
        let promised = run.err().contains("Spooled as q000003");
        tally.expect(!promised || is_whole, Bad::Lost, || format!("promised and not there: {what}"));
        tally.expect(third.is_none() || is_whole, Bad::Half, || format!("half an entry: {what}"));
        if done != Done::Killed && !promised {
            // gh's own failure, or, behind older writes to the same issue, a word that says the same.
            let said = run.err().contains("HTTP 503") || run.err().contains("NOT queued and NOT delivered");
            let own = run.exit == Exit::Code(1) && said;
            tally.expect(own, Bad::Wrong, || format!("{:?} {}: {what}", run.exit, run.err()));
            tally
                .expect(third.is_none(), Bad::Doubled, || format!("said to have failed, and queued: {what}"));
        }
        let expected = if is_taken(&scene) { "q000004" } else { "q000003" };
        let next = scene.gh(&COMMENT).stdin(Stdin::Bytes(b"next".into())).run();
        let is_next = next.err().contains(&format!("Spooled as {expected}"));
        tally
            .expect(is_next, Bad::Wrong, || format!("the next is not {expected} but {}: {what}", next.err()));
        old_entries_are_whole(&scene, &[1, 2], what, tally);
    };
    let operation = Operation {
        args: &FREE,
        shape: &|call| call.stdin(Stdin::Bytes(BODY.into())),
        ..Operation::of(&scene, &judge)
    };
    operation.break_everywhere(tally);
}

/// A person sets one entry aside.
pub fn drop(tally: &mut Tally) {
    let scene = queued(tally.without);
    let args = ["queue", "drop", "q000001"];
    let judge = |run: &Run, _: Done, what: &str, tally: &mut Tally| {
        old_entries_are_whole(&scene, &[2], what, tally);
        let waits =
            |scene: &Scene| entries(scene).iter().any(|(found, _)| found.seq == 1 && found.is_pending());
        tally.expect(run.exit != Exit::Code(0) || !waits(&scene), Bad::Wrong, || {
            format!("dropped and waiting: {what}")
        });
        if waits(&scene) {
            old_entries_are_whole(&scene, &[1], what, tally);
            let again = scene.forge(&args).run();
            tally.expect(again.exit == Exit::Code(0) && !waits(&scene), Bad::Wrong, || {
                format!("cannot be dropped any more ({}): {what}", again.err())
            });
        }
        old_entries_are_whole(&scene, &[2], what, tally);
    };
    Operation { program: forge_command(), args: &args, ..Operation::of(&scene, &judge) }
        .break_everywhere(tally);
}

/// A person empties the queue.
pub fn clear(tally: &mut Tally) {
    let scene = queued(tally.without);
    let args = ["queue", "clear"];
    let judge = |run: &Run, _: Done, what: &str, tally: &mut Tally| {
        let left = |scene: &Scene| entries(scene).iter().filter(|(found, _)| found.is_pending()).count();
        for (found, body) in entries(&scene).iter().filter(|(found, _)| found.is_pending()) {
            let is_whole = found.is_ours() && body.is_some();
            tally.expect(is_whole, Bad::Half, || format!("entry {} without its body: {what}", found.seq));
        }
        for (found, _) in entries(&scene) {
            tally.expect(found.record.is_ok(), Bad::Half, || format!("half of entry {}: {what}", found.seq));
        }
        tally.expect(run.exit != Exit::Code(0) || left(&scene) == 0, Bad::Wrong, || {
            format!("cleared and waiting: {what}")
        });
        let again = scene.forge(&args).run();
        tally.expect(left(&scene) == 0, Bad::Wrong, || {
            format!("cannot be cleared any more ({}): {what}", again.err())
        });
        let next = scene.gh(&COMMENT).stdin(Stdin::Bytes(b"next".into())).run();
        let number =
            next.err().split("Spooled as q").nth(1).and_then(|rest| rest.get(..6)?.parse::<u32>().ok());
        tally.expect(number.is_some_and(|number| number > 2), Bad::Doubled, || {
            format!("{} again: {what}", next.err())
        });
    };
    Operation { program: forge_command(), args: &args, ..Operation::of(&scene, &judge) }
        .break_everywhere(tally);
}
