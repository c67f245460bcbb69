//! Many at once: numbers, the bound, replays, and changes while one replay runs.

use crate::support::forge::Forge;
use crate::support::queued::{Scene, checkout, folder, settle};
use crate::support::running::Run;
use crate::support::sandbox::{Sandbox, wait_until};
use crate::support::spawn::Exit;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

const DOWN: &str = "on *\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";

/// Runs this many writers at once.
fn writers(sandbox: &Sandbox, count: usize, max: &str) -> Vec<Run> {
    let start = |n: usize| {
        let body = format!("writer {n}");
        let call = sandbox.gh(&["issue", "comment", &(n + 1).to_string(), "--body", &body]);
        settle(sandbox, call).env("BOB_FORGE_QUEUE_MAX", max).start()
    };
    let running: Vec<_> = (0..count).map(start).collect();
    running.into_iter().map(|running| running.finish()).collect()
}

fn spooled(runs: &[Run]) -> Vec<String> {
    let id = |run: &Run| Some(run.err().split_once("Spooled as ")?.1.get(..7)?.to_string());
    runs.iter().filter_map(id).collect()
}

#[test]
fn eighty_writers_at_once_get_eighty_numbers_and_no_text_is_lost() {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    let runs = writers(&sandbox, 80, "500");
    let ids: BTreeSet<String> = spooled(&runs).into_iter().collect();
    assert_eq!(ids.len(), 80);
    let bodies: BTreeSet<String> = (1..=80)
        .map(|n| fs::read_to_string(folder(&sandbox).join(format!("{n:06}.d/body.md"))).unwrap())
        .collect();
    assert_eq!(bodies, (0..80).map(|n| format!("writer {n}")).collect());
}

#[test]
fn sixty_writers_for_twenty_places_fill_exactly_twenty() {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    let runs = writers(&sandbox, 60, "20");
    assert_eq!(spooled(&runs).len(), 20);
    let refused: Vec<&Run> = runs.iter().filter(|run| run.exit == Exit::Code(1)).collect();
    assert_eq!(refused.len(), 40);
    for run in refused {
        let said = run.err();
        assert!(
            said.contains("HTTP 503") && said.contains("NOT queued and NOT delivered — the queue is full"),
            "{said}"
        );
    }
}

#[test]
fn four_replays_at_once_deliver_every_write_once() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    for n in 0..8 {
        scene.spooled(&["issue", "comment", "1", "--body", &format!("write {n}")], b"");
    }
    scene.recovery();
    let running: Vec<_> = (0..4).map(|_| scene.queue_call(&["replay", "--apply"]).start()).collect();
    let runs: Vec<Run> = running.into_iter().map(|running| running.finish()).collect();
    assert_eq!(runs.iter().filter(|run| run.exit == Exit::Code(0)).count(), 1);
    assert!(runs.iter().filter(|run| run.err().contains("another replay is running here")).count() == 3);
    assert_eq!(scene.comments(1), (0..8).map(|n| format!("write {n}")).collect::<Vec<_>>());
}

#[test]
fn writes_and_drops_during_a_replay_keep_their_word() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    for n in 0..12 {
        scene.spooled(&["issue", "comment", "1", "--body", &format!("write {n}")], b"");
    }
    scene.recovery();
    let holder = || fs::read(scene.folder().join("replay.lock")).unwrap_or_default();
    let before = holder();
    let replay = scene.queue_call(&["replay", "--apply"]).start();
    wait_until("the replay's lock", || holder() != before);
    let mut dropped = Vec::new();
    for id in ["12", "11", "6", "10"] {
        let run = scene.queue(&["drop", id]);
        if run.exit == Exit::Code(0) {
            dropped.push(format!("write {}", id.parse::<u32>().unwrap() - 1));
        }
    }
    assert_eq!(scene.queue(&["clear"]).exit, Exit::Code(1), "a running replay is not cleared away");
    let late = scene.gh(&["issue", "comment", "1", "--body", "late"]);
    assert_eq!(late.exit, Exit::Code(0), "{}", late.err());
    replay.finish();
    for _ in 0..3 {
        scene.replay();
    }
    assert!(!dropped.is_empty());
    let mut wanted: Vec<String> =
        (0..12).map(|n| format!("write {n}")).filter(|w| !dropped.contains(w)).collect();
    wanted.push("late".into());
    assert_eq!(scene.comments(1), wanted, "dropped {dropped:?}");
}

#[test]
fn a_number_is_never_given_out_again() {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    let write = || spooled(&writers(&sandbox, 1, "500"));
    assert_eq!((write(), write()), (vec!["q000001".into()], vec!["q000002".into()]));
    let queue = |args: &[&str]| settle(&sandbox, sandbox.forge(args)).run();
    let cleared = queue(&["queue", "clear"]);
    // A 503 does not tell whether the write was taken; the second was never sent.
    let said = "forge queue: 2 entries removed; 1 write was not delivered and will not be; an attempt to send \
                these, or a part of them, may have got through: q000001\n";
    assert_eq!((cleared.exit, cleared.out()), (Exit::Code(0), said.into()));
    let status = queue(&["queue", "status"]);
    assert_eq!(status.exit, Exit::Code(0));
    assert!(!status.out().contains("last replay"), "a clear is no replay: {}", status.out());
    assert_eq!(write(), ["q000003"]);
    assert_eq!(queue(&["queue", "drop", "#3"]).exit, Exit::Code(0));
    assert_eq!(write(), ["q000004"]);
    let cleared: Value = serde_json::from_str(&queue(&["queue", "clear", "--json"]).out()).unwrap();
    let wanted = json!({"schema": "bob-forge-queue-clear/1", "removed": 2, "undelivered": ["q000004"], "uncertain": ["q000004"]});
    assert_eq!(cleared, wanted, "what was dropped before is not lost now");
    fs::write(folder(&sandbox).join("999999.seq"), "").unwrap();
    let run = writers(&sandbox, 1, "500").remove(0);
    assert!(run.err().contains("has given out all of its numbers"), "{}", run.err());
    assert_eq!(run.exit, Exit::Code(1));
}

#[test]
fn a_later_write_to_an_issue_never_overtakes_an_earlier_one() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "edit", "1", "--title", "older"], b"");
    scene.recovery();
    // Nothing may be replayed: the newer one waits behind the older, and one to another issue does not.
    let newer = scene.call(&["issue", "edit", "1", "--title", "newer"]).env("BOB_FORGE_REPLAY", "0").run();
    assert!(newer.err().contains("an earlier write is still queued for #1"), "{}", newer.err());
    assert_eq!(scene.issue(1)["title"], "first");
    let other = scene.call(&["issue", "edit", "2", "--title", "free"]).env("BOB_FORGE_REPLAY", "0").run();
    assert_eq!((other.exit, other.err().as_str()), (Exit::Code(0), ""));
    // With replay, the older ones go first and the newest goes live.
    let newest = scene.gh(&["issue", "edit", "1", "--title", "newest"]);
    assert!(newest.out().contains("issues/1"), "{}{}", newest.out(), newest.err());
    assert_eq!((scene.issue(1)["title"].as_str(), scene.depth()), (Some("newest"), 0));
}
