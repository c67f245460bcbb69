//! A write that waits for the quota lies in the queue meanwhile: kills, deadlines and other hands, with both
//! real versions of gh against the local forge.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::now_s;
use crate::support::command::Call;
use crate::support::dice::Dice;
use crate::support::forge::{Forge, REAL_GH};
use crate::support::queued::Scene;
use crate::support::running::{Run, Running};
use crate::support::sandbox::wait_until;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

const COMMENT: &[&str] = &["issue", "comment", "1", "--body-file", "-"];
const CREATE: &[&str] = &["issue", "create", "--title", "todo", "--body-file", "-"];

/// A scene with this much of GraphQL's quota left, and two programs that stand in for sleeping: `nap` takes
/// no time, `long-nap` says that it has begun and goes on until it is told.
fn scene<'f>(forge: &'f Forge, version: &str, remaining: u64) -> Scene<'f> {
    let scene = Scene::new(forge, version);
    quota(&scene, remaining);
    scene.sandbox.shell("nap", "echo \"$1\" >> \"$0.log\"");
    scene.sandbox.shell(
        "long-nap",
        "PATH=/usr/bin:/bin; : > \"$0.began\"; n=0\n\
         while [ ! -e \"$0.over\" ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done",
    );
    scene
}

fn quota(scene: &Scene, remaining: u64) {
    let graphql = json!({"limit": 5_000, "remaining": remaining, "reset_in_s": 400});
    scene.forge.control("POST", "/_forge/quota", &json!({"graphql": graphql}).to_string());
}

/// A write through the shim, with the budget on.
fn write<'s>(scene: &'s Scene, args: &[&str], body: &str, nap: &str) -> Call<'s> {
    scene
        .call(args)
        .stdin(Stdin::Bytes(body.as_bytes().to_vec()))
        .env("BOB_FORGE_BUDGET", "1")
        .env("BOB_FORGE_SLEEP", scene.sandbox.path(nap))
}

/// Waits until a started write sleeps.
fn asleep(scene: &Scene) {
    let began = scene.sandbox.path("long-nap.began");
    wait_until("the wait", || began.exists());
    fs::remove_file(began).unwrap();
}

fn wake(scene: &Scene) {
    fs::write(scene.sandbox.path("long-nap.over"), "").unwrap();
}

/// The quota is full again, and everything that waits is delivered.
fn recover(scene: &Scene) {
    quota(scene, 5_000);
    let _ = fs::remove_file(scene.sandbox.state().join("budget.env"));
    let replayed = scene
        .queue_call(&["replay", "--apply"])
        .env("BOB_FORGE_BUDGET", "1")
        .env("BOB_FORGE_SLEEP", scene.sandbox.path("nap"))
        .run();
    assert_eq!(replayed.exit, Exit::Code(0), "{}{}", replayed.out(), replayed.err());
    assert_eq!(scene.depth(), 0);
}

/// Closes GraphQL's quota for this many seconds, as a rate-limited answer does.
fn close(scene: &Scene, for_s: u64) {
    let until_ms = now_ms() + for_s * 1_000;
    scene
        .sandbox
        .file("bob/forge/hold.env", format!("schema=bob-forge-hold/1\ngraphql_closed_until_ms={until_ms}\n"));
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn is_promised(run: &Run) -> bool {
    run.err().contains("[forge-queue] not delivered yet — ")
}

/// How often the forge has a comment with this body.
fn count(scene: &Scene, body: &str) -> usize {
    scene.comments(1).iter().filter(|comment| comment.trim_end() == body.trim_end()).count()
}

/// Ids of what waits; every entry on file is whole.
fn waiting(scene: &Scene) -> Vec<String> {
    let run = scene.queue(&["list", "--json"]);
    let entries: Value = serde_json::from_slice(&run.stdout).unwrap();
    let whole = |entry: &Value| {
        let id = entry["id"].as_str().unwrap();
        let shown: Value = serde_json::from_slice(&scene.queue(&["show", id, "--json"]).stdout).unwrap();
        assert_eq!(shown["sealed"], true, "{shown}");
        assert!(shown["body"].as_str().unwrap().starts_with("write "), "{shown}");
        id.to_string()
    };
    entries.as_array().unwrap().iter().map(whole).collect()
}

#[test]
fn a_write_that_is_ended_in_its_wait_says_so_and_is_delivered_once_later() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
            let scene = scene(&forge, version, 10);
            // A real sleep: the wait itself is what the signal ends.
            let running = write(&scene, COMMENT, "write 1", "nap").env_remove("BOB_FORGE_SLEEP").start();
            let said = |running: &Running, what: &str| {
                String::from_utf8_lossy(&running.stderr().bytes()).contains(what)
            };
            wait_until("the wait", || said(&running, "[forge-budget] waiting"));
            wait_until("the entry", || scene.folder().join("000001.json").exists());
            running.send(signal);
            let run = running.finish();
            assert_eq!((run.exit, run.out()), (Exit::Signal(signal), String::new()), "{version}");
            assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
            let marker = "[forge-queue] not delivered yet — the wait for the quota was cut short. Spooled as \
                          q000001; it replays in order when the forge recovers (queue depth 1).\n";
            assert!(run.err().ends_with(marker), "{version} {signal}: {}", run.err());
            assert_eq!((waiting(&scene), count(&scene, "write 1")), (vec!["q000001".into()], 0));
            recover(&scene);
            recover(&scene);
            assert_eq!(count(&scene, "write 1"), 1, "{version} {signal}");
        }
    }
}

#[test]
fn a_create_that_is_ended_in_its_wait_leaves_its_handle_and_is_made_once_later() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        let scene = scene(&forge, version, 10);
        let running = write(&scene, CREATE, "write 1\n", "long-nap").start();
        asleep(&scene);
        running.send(libc::SIGTERM);
        wake(&scene);
        let run = running.finish();
        assert_eq!(run.exit, Exit::Signal(libc::SIGTERM), "{version}");
        assert_eq!(run.out(), "https://github.com/acme/widget/issues/BOB-Q1\n");
        assert!(is_promised(&run), "{}", run.err());
        recover(&scene);
        assert_eq!((scene.issues().len(), &scene.issue(3)["body"]), (3, &json!("write 1\n")), "{version}");
    }
}

#[test]
fn a_signal_that_comes_while_the_quota_is_read_again_keeps_the_promise_too() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = scene(&forge, "wheel", 10);
    // The end of the wait: the quota is asked for, and the answer takes its time.
    let running = write(&scene, COMMENT, "write 1", "long-nap").start();
    asleep(&scene);
    scene.fault(json!({"fault": "hang", "on": "any", "path": "/rate_limit"}));
    let asked = || forge.control("GET", "/_forge/log", "").to_string().matches("/rate_limit").count();
    let before = asked();
    wake(&scene);
    wait_until("the question", || asked() > before);
    running.send(libc::SIGTERM);
    let run = running.finish();
    assert_eq!(run.exit, Exit::Signal(libc::SIGTERM));
    assert!(is_promised(&run), "{}", run.err());
    scene.recovery();
    recover(&scene);
    assert_eq!(count(&scene, "write 1"), 1);
}

#[test]
fn a_wait_that_ends_sends_the_write_live_once_and_leaves_nothing() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        for (args, is_closed) in [(COMMENT, false), (COMMENT, true), (CREATE, false)] {
            let scene = scene(&forge, version, if is_closed { 5_000 } else { 10 });
            if is_closed {
                close(&scene, 60);
            }
            let running = write(&scene, args, "write 1", "long-nap").start();
            asleep(&scene);
            assert_eq!(waiting(&scene), ["q000001"], "it is in the queue while it waits");
            quota(&scene, 5_000);
            wake(&scene);
            let run = running.finish();
            assert_eq!(run.exit, Exit::Code(0), "{version}: {}", run.err());
            assert!(!run.err().contains("[forge-queue]"), "{version}: {}", run.err());
            let url = "https://github.com/acme/widget/issues/";
            assert!(run.out().starts_with(url) && !run.out().contains("BOB-Q"), "{}", run.out());
            assert_eq!(scene.queue(&["list", "--all", "--json"]).out(), "[]\n");
            assert!(!scene.folder().join("000001.d").exists());
            assert!(!scene.sandbox.state().join("queue-dirty").exists());
            recover(&scene);
            let made = if args == COMMENT { count(&scene, "write 1") } else { scene.issues().len() - 2 };
            assert_eq!(made, 1, "{version}");
        }
    }
}

/// Runs one write that is killed somewhere, recovers, and says whether it arrived.
fn survive(scene: &Scene, body: &str, what: &str, start: impl FnOnce() -> Run) -> bool {
    let run = start();
    let entries = waiting(scene);
    assert!(!run.err().contains("panicked"), "{what}: {}", run.err());
    assert!(entries.len() <= 1, "{what}: {entries:?}");
    assert!(!is_promised(&run) || entries.len() == 1, "{what}: promised, there is {entries:?}");
    let before = count(scene, body);
    recover(scene);
    let after = count(scene, body);
    // What is not in the queue any more may be on its way: its gh outlives the shim.
    let is_once = if entries.is_empty() { after <= 1 } else { (before, after) == (0, 1) };
    assert!(is_once, "{what}: it was there {before} times and then {after}: {}", run.err());
    after == 1
}

#[test]
fn a_kill_at_every_step_of_a_wait_leaves_a_whole_entry_or_none() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = scene(&forge, "wheel", 5_000);
    let steps = [
        ("after-mark", false),
        ("after-seq", false),
        ("after-body-folder", false),
        ("after-body", false),
        ("after-aside", false),
        ("after-rename", true),
        ("before-take-back", true),
        ("after-take-back-line", true),
        ("after-spent-marker", true),
        ("after-entry-removed", false),
        ("after-take-back", false),
    ];
    for (step, arrives) in steps {
        let body = format!("write killed at {step}");
        close(&scene, 60);
        let call = write(&scene, COMMENT, &body, "nap").env("BOB_FORGE_TEST_KILL_AT", step);
        let arrived = survive(&scene, &body, step, || {
            let run = call.run();
            assert_eq!(run.exit, Exit::Signal(libc::SIGKILL), "{step}: {}", run.err());
            assert!(!is_promised(&run), "{step}: {}", run.err());
            run
        });
        assert_eq!(arrived, arrives, "{step}");
    }
    let running = write(&scene, COMMENT, "write in the wait", "long-nap");
    close(&scene, 60);
    let arrived = survive(&scene, "write in the wait", "the wait", || {
        let running = running.start();
        asleep(&scene);
        running.send(libc::SIGKILL);
        wake(&scene);
        running.finish()
    });
    assert!(arrived);
}

#[test]
fn kills_at_random_moments_of_a_wait_double_nothing_and_tear_nothing() {
    const KILLS: u64 = 20;
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = scene(&forge, "wheel", 5_000);
    close(&scene, 60);
    let took = write(&scene, COMMENT, "write 0", "nap").run().took.as_micros() as u64;
    let mut dice = Dice::new(20_260_930);
    let (mut killed, mut arrived) = (0, 0);
    for n in 1..=KILLS {
        let body = format!("write {n} of {KILLS}");
        close(&scene, 60);
        let came = survive(&scene, &body, &body, || {
            let running = write(&scene, COMMENT, &body, "nap").start();
            std::thread::sleep(Duration::from_micros(dice.below(took * 5 / 4)));
            running.send(libc::SIGKILL);
            let run = running.finish();
            killed += u64::from(run.exit == Exit::Signal(libc::SIGKILL));
            run
        });
        arrived += u64::from(came);
    }
    for n in 0..=KILLS {
        assert!(count(&scene, &format!("write {n} of {KILLS}")) <= 1, "{n}");
    }
    eprintln!("wait: {killed} kills, {arrived} of {KILLS} writes delivered once, doubled 0, torn 0");
}

#[test]
fn a_write_that_was_set_aside_by_hand_during_its_wait_is_not_sent_and_not_promised() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for (hand, why) in [(&["drop", "1"][..], "dropped by hand"), (&["clear"], "cleared")] {
        let scene = scene(&forge, "wheel", 5_000);
        close(&scene, 60);
        let running = write(&scene, COMMENT, "write 1", "long-nap").start();
        asleep(&scene);
        assert_eq!(scene.queue(hand).exit, Exit::Code(0));
        wake(&scene);
        let run = running.finish();
        let said =
            format!("[forge-queue] NOT delivered — while it waited as q000001 it was set aside: {why}.\n");
        assert!(run.err().ends_with(&said), "{hand:?}: {}", run.err());
        assert_eq!((run.exit, count(&scene, "write 1")), (Exit::Code(1), 0), "{hand:?}");
    }
}

#[test]
fn a_write_that_a_replay_delivered_during_its_wait_ends_with_that_delivery() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        let scene = scene(&forge, version, 5_000);
        close(&scene, 60);
        let running = write(&scene, COMMENT, "write 1", "long-nap").start();
        asleep(&scene);
        // The queue's own calls go with the budget off here: they do not wait for the hold.
        assert_eq!(scene.replay().exit, Exit::Code(0));
        wake(&scene);
        let run = running.finish();
        assert_eq!(run.exit, Exit::Code(0), "{}", run.err());
        assert!(run.out().contains("/issues/1#issuecomment-"), "{}", run.out());
        assert!(!run.err().contains("[forge-queue]"), "{}", run.err());
        assert_eq!(count(&scene, "write 1"), 1, "{version}");
    }
}

#[test]
fn a_background_write_that_is_refused_after_a_wait_is_not_left_in_the_queue() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = scene(&forge, "wheel", 5_000);
    close(&scene, 60);
    let running = write(&scene, COMMENT, "write 1", "long-nap")
        .env("BOB_FORGE_BACKGROUND", "1")
        .env("BOB_FORGE_BACKGROUND_DEFER", "0")
        .start();
    asleep(&scene);
    // Stamped ahead, as the time that counts is after a stand-in sleep: the window is full then.
    super::ledger(&scene.sandbox, 31, "graphql", "fg", 0);
    let ahead = fs::read_to_string(scene.sandbox.state().join("rate.log")).unwrap();
    let ahead = ahead.replace(&ahead[..10], &(now_s() + 60).to_string());
    fs::write(scene.sandbox.state().join("rate.log"), ahead).unwrap();
    wake(&scene);
    let run = running.finish();
    assert_eq!(run.exit, Exit::Code(75), "{}", run.err());
    assert!(!is_promised(&run), "{}", run.err());
    recover(&scene);
    assert_eq!(count(&scene, "write 1"), 0);
}

#[test]
fn a_write_whose_caller_gives_up_is_queued_before_that_without_a_call() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        let scene = scene(&forge, version, 10);
        let soon = (now_s() + 100).to_string();
        let run = write(&scene, COMMENT, "write 1", "nap").env("BOB_FORGE_DEADLINE", &soon).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(0), String::new()), "{}", run.err());
        assert_eq!(
            run.err(),
            "[forge-queue] not delivered yet — the quota is spent for longer than its caller waits, so the live \
             call was not made. Spooled as q000001; it replays in order when the forge recovers (queue depth 1).\n"
        );
        assert!(!scene.sandbox.path("nap.log").exists(), "nothing was waited for");
        assert_eq!((waiting(&scene).len(), count(&scene, "write 1")), (1, 0));
        recover(&scene);
        assert_eq!(count(&scene, "write 1"), 1, "{version}");
        // A deadline behind the wait changes nothing.
        let later = (now_s() + 100).to_string();
        close(&scene, 60);
        let run = write(&scene, COMMENT, "write 2", "nap").env("BOB_FORGE_DEADLINE", &later).run();
        assert_eq!((run.exit, count(&scene, "write 2")), (Exit::Code(0), 1), "{}", run.err());
        assert_eq!(waiting(&scene).len(), 0);
    }
}
