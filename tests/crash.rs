//! Kills and failing system calls: every promise that was printed is kept, every entry is whole, nothing is
//! delivered twice.

use crate::support::command::Call;
use crate::support::forge::Forge;
use crate::support::queued::{Scene, checkout, folder, settle};
use crate::support::running::Run;
use crate::support::sandbox::{Sandbox, wait_until};
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DOWN: &str =
    "on *\n stdin\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
const BODY: &[u8] = b"a body of some length, to be torn if anything can be torn\n";

fn scene() -> Sandbox {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    sandbox
}

fn write(sandbox: &Sandbox) -> Call<'_> {
    let call = sandbox.gh(&["issue", "comment", "7", "--body-file", "-"]);
    settle(sandbox, call).stdin(Stdin::Bytes(BODY.to_vec()))
}

/// A pseudo-random sequence, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// The number that a run promised.
fn promised(run: &Run) -> Option<u32> {
    let said = run.err();
    let (_, rest) = said.split_once("Spooled as q")?;
    rest.get(..6)?.parse().ok()
}

/// Every entry on file is whole: its numbers of pending ones.
fn pending(sandbox: &Sandbox) -> Vec<u32> {
    let mut found = Vec::new();
    let names = fs::read_dir(folder(sandbox)).map(|dir| dir.map(|e| e.unwrap().path()).collect());
    let mut names: Vec<PathBuf> = names.unwrap_or_default();
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
        if path.file_name().unwrap() == "handles.json" {
            continue;
        }
        let entry: Value = serde_json::from_slice(&fs::read(path).unwrap()).expect("a whole entry");
        let body = fs::read(entry["body_file"].as_str().unwrap()).expect("its body");
        assert_eq!(body, BODY);
        assert_eq!(entry["seal"].as_str().unwrap().len(), 64);
        if entry["status"] == "pending" {
            found.push(entry["seq"].as_u64().unwrap() as u32);
        }
    }
    found
}

/// What has to hold after a run that was disturbed, and that the next one works.
fn check(sandbox: &Sandbox, what: &str, run: &Run) {
    let waiting = pending(sandbox);
    assert!(!run.err().contains("panicked"), "{what}: {}", run.err());
    if let Some(seq) = promised(run) {
        assert!(matches!(run.exit, Exit::Code(0) | Exit::Signal(libc::SIGKILL)), "{what}: {:?}", run.exit);
        assert!(waiting.contains(&seq), "{what}: q{seq} was promised, there is {waiting:?}");
    }
    if run.err().contains("NOT queued") {
        assert!(run.err().contains("HTTP 503"), "{what}: gh's own failure is shown: {}", run.err());
        assert_eq!(run.exit, Exit::Code(1), "{what}");
        assert!(waiting.is_empty(), "{what}: said NOT queued, there is {waiting:?}");
    }
    let after = write(sandbox).run();
    let seq = promised(&after).unwrap_or_else(|| panic!("{what}: the next write fails: {}", after.err()));
    assert!(waiting.iter().all(|before| *before < seq), "{what}: {seq} after {waiting:?}");
    assert!(pending(sandbox).contains(&seq), "{what}");
}

fn forget(sandbox: &Sandbox) {
    let _ = fs::remove_dir_all(sandbox.path("work/.claude"));
    let _ = fs::remove_dir_all(sandbox.state());
}

#[test]
fn a_kill_at_every_named_step_of_an_enqueue_leaves_a_whole_entry_or_none() {
    let sandbox = scene();
    let steps = ["after-mark", "after-seq", "after-body-folder", "after-body", "after-aside", "after-rename"];
    for step in steps {
        forget(&sandbox);
        let run = write(&sandbox).env("BOB_FORGE_TEST_KILL_AT", step).run();
        assert_eq!(run.exit, Exit::Signal(libc::SIGKILL), "{step}");
        check(&sandbox, step, &run);
    }
}

#[test]
fn kills_at_random_moments_of_an_enqueue_keep_every_promise() {
    const KILLS: u32 = 300;
    let sandbox = scene();
    let mut dice = Dice(20_260_829);
    let took = write(&sandbox).run().took;
    let (mut kept, mut killed, mut promises) = (Vec::new(), 0, 0);
    while killed < KILLS {
        let running = write(&sandbox).start();
        // The spool comes last: half of the kills fall around it.
        let (all, from) = (took.as_micros() as u64, if dice.roll(2) == 0 { 0 } else { 70 });
        std::thread::sleep(Duration::from_micros(all * from / 100 + dice.roll(all * (140 - from) / 100)));
        running.send(libc::SIGKILL);
        let run = running.finish();
        killed += u32::from(run.exit == Exit::Signal(libc::SIGKILL));
        if let Some(seq) = promised(&run) {
            promises += 1;
            kept.push(seq);
        }
        if kept.len() > 60 {
            let waiting = pending(&sandbox);
            assert!(kept.iter().all(|seq| waiting.contains(seq)), "{kept:?} in {waiting:?}");
            kept.clear();
            forget(&sandbox);
        }
    }
    let waiting = pending(&sandbox);
    assert!(kept.iter().all(|seq| waiting.contains(seq)), "{kept:?} in {waiting:?}");
    eprintln!("enqueue: {killed} kills survived, {promises} promises, lost 0, torn 0");
}

/// Names and numbers of the system calls that a spool makes, from a trace of one.
fn calls_of_a_spool(sandbox: &Sandbox) -> Vec<(String, usize)> {
    const WANTED: [&str; 13] = [
        "openat",
        "mkdirat",
        "write",
        "pwrite64",
        "fsync",
        "fdatasync",
        "renameat",
        "renameat2",
        "unlinkat",
        "fchmod",
        "flock",
        "linkat",
        "getdents64",
    ];
    forget(sandbox);
    let log = sandbox.path("tmp/trace");
    let run = traced(sandbox, &["-y", "-o", log.to_str().unwrap()]);
    assert!(promised(&run).is_some(), "{}", run.err());
    let (mut counts, mut points, mut inside) = (std::collections::BTreeMap::new(), Vec::new(), false);
    for line in fs::read_to_string(&log).unwrap().lines() {
        let name = line.split('(').next().unwrap_or_default();
        inside |= line.contains("\".claude\"");
        let Some(name) = WANTED.iter().find(|wanted| **wanted == name) else { continue };
        let count = counts.entry(*name).or_insert(0);
        *count += 1;
        // A pipe cannot be full of anything: only what goes to a file of ours.
        let is_ours =
            !name.contains("write") || ["/work/.claude", "/bob/forge"].iter().any(|p| line.contains(p));
        if inside && is_ours {
            points.push((name.to_string(), *count));
        }
    }
    assert!(points.len() > 30, "{points:?}");
    points
}

fn traced(sandbox: &Sandbox, options: &[&str]) -> Run {
    let words = ["issue", "comment", "7", "--body-file", "-"];
    let mut args = options.to_vec();
    let shim = sandbox.path("bin/gh");
    args.push(shim.to_str().unwrap());
    args.extend(words);
    let call = sandbox.program(strace(), &args).stdin(Stdin::Bytes(BODY.to_vec()));
    settle(sandbox, call).run()
}

fn strace() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|dir| dir.join("strace")).find(|path| path.is_file());
    found.unwrap_or_else(|| Path::new("/usr/bin/strace").into())
}

#[test]
#[cfg(target_os = "linux")]
fn a_kill_at_every_system_call_of_a_spool_leaves_a_whole_entry_or_none() {
    let sandbox = scene();
    let points = calls_of_a_spool(&sandbox);
    for (name, nth) in &points {
        forget(&sandbox);
        let what = format!("killed at {name} {nth}");
        let inject = format!("inject={name}:signal=SIGKILL:when={nth}");
        let run = traced(&sandbox, &["-qq", "-o", "/dev/null", "-e", &inject]);
        check(&sandbox, &what, &run);
    }
    eprintln!("enqueue: killed at {n}/{n} system calls, lost 0, torn 0", n = points.len());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_a_broken_and_a_read_only_disk_at_every_system_call_of_a_spool_are_told_honestly() {
    let sandbox = scene();
    let points = calls_of_a_spool(&sandbox);
    let mut faults = 0;
    for errno in ["ENOSPC", "EIO", "EROFS"] {
        for (name, nth) in &points {
            // From this call on, as a disk that stays full, and once.
            for when in [format!("{nth}"), format!("{nth}+")] {
                // A disk that stays full would also break the pipes to gh.
                if when.ends_with('+') && name == "write" {
                    continue;
                }
                forget(&sandbox);
                let what = format!("{errno} at {name} {when}");
                let inject = format!("inject={name}:error={errno}:when={when}");
                let run = traced(&sandbox, &["-qq", "-o", "/dev/null", "-e", &inject]);
                assert!(matches!(run.exit, Exit::Code(0 | 1)), "{what}: {:?}", run.exit);
                check(&sandbox, &what, &run);
                faults += 1;
            }
        }
    }
    eprintln!("enqueue: {faults} failing system calls, every one spooled or told");
}

/// Kills replays, by step or after a time, until everything is delivered.
fn kill_replays(scene: &Scene, mut kill: impl FnMut(u32) -> Option<Kill>) -> u32 {
    let mut killed = 0;
    for round in 0.. {
        assert!(round < 400, "not drained");
        let how = kill(round);
        let call = scene.queue_call(&["replay", "--apply"]).env("BOB_FORGE_QUEUE_SETTLE", "1");
        let run = match &how {
            Some(Kill::Step(step)) => call.env("BOB_FORGE_TEST_KILL_AT", step).run(),
            Some(Kill::After(time)) => {
                let running = call.start();
                std::thread::sleep(*time);
                running.send(libc::SIGKILL);
                running.finish()
            }
            None => call.run(),
        };
        killed += u32::from(run.exit == Exit::Signal(libc::SIGKILL));
        if run.exit == Exit::Code(0) {
            return killed;
        }
    }
    killed
}

enum Kill {
    Step(String),
    After(Duration),
}

#[test]
fn killed_replays_deliver_every_write_once_and_in_order() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = Scene::new(&forge, "wheel");
    let mut dice = Dice(4);
    let mut killed = 0;
    let steps = ["before-send", "after-send", "after-done", "before-update", "after-update"];
    for by_step in [true, false] {
        let writes = if by_step { steps.len() } else { 30 };
        let start = scene.comments(1).len();
        scene.outage();
        for n in 0..writes {
            let body = format!("write {n} of {by_step}");
            scene.spooled(&["issue", "comment", "1", "--body", &body], b"");
        }
        scene.recovery();
        killed += kill_replays(&scene, |round| match (by_step, steps.get(round as usize)) {
            (true, Some(step)) => Some(Kill::Step(step.to_string())),
            (true, None) => None,
            (false, _) => (round < 90).then(|| Kill::After(Duration::from_millis(dice.roll(400)))),
        });
        let wanted: Vec<String> = (0..writes).map(|n| format!("write {n} of {by_step}")).collect();
        assert_eq!(scene.comments(1)[start..], wanted);
    }
    assert!(killed > 20, "{killed}");
    eprintln!("replay: {killed} kills survived, lost 0, doubled 0");
}

#[test]
fn a_killed_shim_leaves_gh_the_whole_text() {
    let sandbox = scene();
    for length in [6, 200_000] {
        forget(&sandbox);
        sandbox.script("on *\n touch started\n wait go\n stdin\n touch read\n exit 0\n");
        ["started", "go", "read"].iter().for_each(|name| drop(fs::remove_file(sandbox.checkpoint(name))));
        let text = "x".repeat(length);
        let call = sandbox.gh(&["issue", "create", "--title", "t", "--body-file", "-"]);
        let running = call.stdin(Stdin::Bytes(text.clone().into())).start();
        sandbox.await_checkpoint("started");
        running.send(libc::SIGKILL);
        assert_eq!(running.finish().exit, Exit::Signal(libc::SIGKILL));
        sandbox.release("go");
        sandbox.await_checkpoint("read");
        let read = sandbox.calls().pop().and_then(|call| call.stdin).unwrap_or_default();
        assert!(read == text.as_bytes(), "{} of {length} bytes", read.len());
    }
}

#[test]
fn what_a_killed_replay_has_delivered_is_not_said_to_be_dropped() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let scene = Scene::new(&forge, "wheel");
    for (n, step, code, said, then) in [
        (1, "after-done", 2, "delivered already", 1),
        (2, "after-send", 0, "may have got through", 1),
        (3, "before-send", 0, "may have got through", 0),
    ] {
        scene.outage();
        let start = scene.comments(1).len();
        let id = n.to_string();
        scene.spooled(&["issue", "comment", "1", "--body", step], b"");
        scene.recovery();
        let killed = scene.queue_call(&["replay", "--apply"]).env("BOB_FORGE_TEST_KILL_AT", step).run();
        assert_eq!(killed.exit, Exit::Signal(libc::SIGKILL), "{step}");
        let run = scene.queue(&["drop", &id]);
        assert_eq!(run.exit, Exit::Code(code), "{step}: {} {}", run.out(), run.err());
        let shown = scene.queue(&["show", &id]);
        assert!(
            [run.err(), shown.out()].iter().any(|text| text.contains(said)),
            "{step}: {} {}",
            run.err(),
            shown.out()
        );
        assert!(!run.out().contains("it is not delivered"), "{step}: {}", run.out());
        scene.queue(&["replay", "--apply"]);
        assert_eq!(scene.comments(1).len() - start, then, "{step}");
    }
}

#[test]
fn a_killed_replays_request_is_ended_or_keeps_the_next_replay_waiting() {
    let sandbox = scene();
    assert!(promised(&write(&sandbox).run()).is_some());
    fs::remove_file(sandbox.path("real/gh")).unwrap();
    // gh itself is ended with its parent; what it has started goes on.
    let gh = r#"
        PATH=/usr/bin:/bin
        d=${0%/*}
        case "$*" in
        *"issue comment"*)
            (touch "$d/sending"; until [ -e "$d/go" ]; do sleep 0.02; done; touch "$d/landed")
            touch "$d/survived"
            echo https://github.com/acme/widget/issues/7#issuecomment-1 ;;
        *) printf '[]' ;;
        esac"#;
    sandbox.shell("real/gh", gh);
    let replay = || settle(&sandbox, sandbox.forge(&["queue", "replay", "--apply"]));
    let running = replay().start();
    sandbox.await_checkpoint("sending");
    running.send(libc::SIGKILL);
    assert_eq!(running.finish().exit, Exit::Signal(libc::SIGKILL));
    let second = replay().run();
    assert!(!sandbox.checkpoint("survived").exists(), "gh outlived its parent");
    assert_eq!(second.exit, Exit::Code(3), "{}", second.out());
    assert!(second.err().contains("another replay is running here"), "{}", second.err());
    sandbox.release("go");
    sandbox.await_checkpoint("landed");
    wait_until("the next replay", || replay().run().exit == Exit::Code(0));
}

#[test]
fn no_second_replay_starts_while_a_request_is_on_its_way() {
    let sandbox = scene();
    assert!(promised(&write(&sandbox).run()).is_some());
    sandbox.script("on api\n out []\\n\non issue comment\n touch sending\n ignore TERM\n wait go\n exit 0\non *\n exit 0\n");
    let call = settle(&sandbox, sandbox.forge(&["queue", "replay", "--apply"]));
    let running = call.start();
    sandbox.await_checkpoint("sending");
    let second = settle(&sandbox, sandbox.forge(&["queue", "replay", "--apply"])).run();
    assert_eq!(second.exit, Exit::Code(3));
    assert!(second.err().contains(&format!("process {}", running.pid)), "{}", second.err());
    let dropped = settle(&sandbox, sandbox.forge(&["queue", "drop", "1"])).run();
    assert!(dropped.err().contains("is being sent right now"), "{}", dropped.err());
    sandbox.release("go");
    assert_eq!(running.finish().exit, Exit::Code(0));
}
