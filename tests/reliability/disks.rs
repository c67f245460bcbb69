//! Disks that are really full, and mounts that are really read-only, in a mount namespace of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::replay::{posted, take_posts};
use super::scene::Scene;
use super::tally::{Bad, Tally};
use super::workers::apart;
use crate::support::queued::{checkout, folder, settle};
use crate::support::running::Run;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

const CASES: [&str; 5] = ["full cache", "full queue", "full state", "read-only queue", "read-only state"];
/// What of the calls is a write fails, and so does a read of a missing thing; the rest answers.
const SCRIPT: &str = "on issue comment\n stdin\n err HTTP 503: Service Unavailable\\n\n exit 1\n\
                      on issue list\n out a list\\n\n exit 0\n\
                      on pr view\n out half\\n\n err no such thing\\n\n exit 4\n\
                      on *\n exit 0\n";
const QUEUE: &str = "work/.claude/forge/queue";
const STATE: &str = "bob/forge";
const CACHE: &str = "work/.claude/forge/cache";
const BODY: &[u8] = &[b'x'; 6_000];
const DISK: u64 = 64 << 10;
const PAGE: u64 = 4 << 10;

/// Every case, each in a process that has mounts of its own.
pub fn all(tally: &mut Tally) {
    for case in CASES {
        let mut worker = match apart(&["--mount"], tally.without, &["disks", case]) {
            Ok(worker) => worker,
            Err(why) => {
                tally.why_not = Some(format!("no mounts of its own: {why}"));
                return;
            }
        };
        let done = worker.output().unwrap();
        tally.hear(&String::from_utf8_lossy(&done.stdout));
        tally.expect(done.status.success(), Bad::Wrong, || {
            format!("{case}: {}", String::from_utf8_lossy(&done.stderr))
        });
        if tally.is_settled() {
            return;
        }
    }
}

/// One case; prints what it found.
pub fn inside(case: &str) {
    let without = std::env::var("FORGE_CONTROL").unwrap_or_default();
    let mut tally = Tally::new(0, Box::leak(without.into_boxed_str()));
    match case {
        "full cache" => answers(&mut tally),
        "full queue" => full(QUEUE, &mut tally),
        "full state" => full(STATE, &mut tally),
        "read-only queue" => read_only(QUEUE, &mut tally),
        "read-only state" => read_only(STATE, &mut tally),
        _ => panic!("no case {case}"),
    }
    print!("{}", tally.told());
}

fn mount(words: &[&str], at: &Path) {
    let done = Command::new("/bin/mount").args(words).arg(at).status().unwrap();
    assert!(done.success(), "mount {words:?}");
}

fn unmount(at: &Path) {
    assert!(Command::new("/bin/umount").arg(at).status().unwrap().success());
}

/// A checkout whose queue holds one comment; `place` is a disk of its own from the start where one is given.
fn scene(disk: Option<&str>, tally: &Tally) -> Scene {
    let sandbox = Sandbox::new(SCRIPT);
    checkout(&sandbox);
    let scene = Scene::of(sandbox, tally.without);
    if let Some(place) = disk {
        mount_disk(&scene, place);
    }
    let run = comment(&scene, "5", b"the first");
    assert!(run.err().contains("Spooled as q000001"), "{}", run.err());
    scene
}

fn mount_disk(scene: &Scene, place: &str) -> PathBuf {
    let at = scene.sandbox.path(place);
    fs::create_dir_all(&at).unwrap();
    let size = format!("size={DISK},mode=700");
    mount(&["-t", "tmpfs", "-o", &size, "none"], &at);
    at
}

fn comment(scene: &Scene, issue: &str, body: &[u8]) -> Run {
    let call = settle(&scene.sandbox, scene.gh(&["issue", "comment", issue, "--body-file", "-"]));
    call.stdin(Stdin::Bytes(body.to_vec())).run()
}

/// All but this many bytes of the disk are used up.
struct Filler(PathBuf);

impl Filler {
    fn leaving(at: &Path, bytes: u64) -> Filler {
        let path = at.join("filler");
        let block = vec![0; PAGE as usize];
        let mut file = fs::File::create(&path).unwrap();
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(bytes)).unwrap();
        Filler(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The disk under `place` has room for this much more, from nothing to all that an enqueue needs.
fn full(place: &str, tally: &mut Tally) {
    for pages in 0..=6 {
        let scene = scene(Some(place), tally);
        let at = scene.sandbox.path(place);
        let what = format!("{place} with {pages} pages left");
        let filler = Filler::leaving(&at, pages * PAGE);
        observers(&scene, &what, tally);
        enqueue(&scene, &what, tally);
        changes(&scene, &what, tally);
        drop(filler);
        afterwards(&scene, &what, tally);
        unmount(&at);
        if tally.is_settled() {
            return;
        }
    }
}

/// An answer that the disk has no room for: the caller gets it all the same, and the one before stays.
fn answers(tally: &mut Tally) {
    let (old, new) = ("a list\n", "a longer list ".repeat(2_000));
    let up = |answer: &str| format!("on *\n out {}\n exit 0\n", answer.escape_default());
    for pages in 0..=9 {
        let scene = Scene::new(&up(old), tally.without);
        let at = mount_disk(&scene, CACHE);
        let what = format!("{CACHE} with {pages} pages left");
        let ask = |script: &str| {
            scene.sandbox.script(script);
            scene.gh(&["issue", "list"]).run()
        };
        let down = || ask("on *\n err HTTP 503: Service Unavailable\\n\n exit 1\n").out();
        ask(&up(old));
        let filler = Filler::leaving(&at, pages * PAGE);
        let run = ask(&up(&new));
        let same = (run.exit, run.out() == new, run.err().as_str()) == (Exit::Code(0), true, "");
        tally.expect(same, Bad::Wrong, || format!("{:?} {}: {what}", run.exit, run.err()));
        let served = down();
        tally
            .expect(served == old || served == new, Bad::Lost, || format!("{served:.60?} is served: {what}"));
        drop(filler);
        ask(&up(&new));
        tally.expect(down() == new, Bad::Lost, || format!("then nothing is stored: {what}"));
        tally.runs += 4;
        unmount(&at);
        if tally.is_settled() {
            return;
        }
    }
}

/// The folder at `place` cannot be written.
fn read_only(place: &str, tally: &mut Tally) {
    let scene = scene(None, tally);
    let at = scene.sandbox.path(place);
    let what = format!("{place} read-only");
    mount(&["--bind", at.to_str().unwrap()], &at);
    mount(&["-o", "remount,bind,ro"], &at);
    observers(&scene, &what, tally);
    let promised = enqueue(&scene, &what, tally);
    // A project that is marked already needs nothing of the state folder.
    tally.expect(!promised || place == STATE, Bad::Wrong, || format!("a write was promised: {what}"));
    changes(&scene, &what, tally);
    unmount(&at);
    afterwards(&scene, &what, tally);
}

/// What only looks on changes nothing.
fn observers(scene: &Scene, what: &str, tally: &mut Tally) {
    for (words, out, err, code) in
        [(["issue", "list"], "a list\n", "", 0), (["pr", "view"], "half\n", "no such thing\n", 4)]
    {
        let run = scene.gh(&words).env("BOB_FORGE_BUDGET", "1").env("BOB_FORGE_SLEEP", "/bin/true").run();
        tally.runs += 1;
        let same = (run.exit, run.out().as_str(), run.err().as_str()) == (Exit::Code(code), out, err);
        tally.expect(same, Bad::Wrong, || format!("gh {words:?}: {:?} {} {what}", run.exit, run.err()));
    }
    let health = scene.forge(&["health", "--no-probe"]).run();
    tally.expect(matches!(health.exit, Exit::Code(0 | 3 | 4 | 5)), Bad::Wrong, || {
        format!("forge health: {:?} {} {what}", health.exit, health.err())
    });
}

/// A write is queued whole, or gh's own failure is shown and it is said that it was not queued. Says which.
fn enqueue(scene: &Scene, what: &str, tally: &mut Tally) -> bool {
    let run = comment(scene, "7", BODY);
    tally.runs += 1;
    let (said, waiting) = (run.err(), whole(scene, what, tally));
    let promised = said.contains("Spooled as");
    if promised {
        tally.expect(run.exit == Exit::Code(0) && waiting == 2, Bad::Lost, || {
            format!("promised, {waiting} wait: {:?} {what}", run.exit)
        });
        return true;
    }
    tally.expect(waiting == 1, Bad::Wrong, || format!("refused, {waiting} wait: {what}"));
    let honest = run.exit == Exit::Code(1)
        && said.starts_with("HTTP 503: Service Unavailable\n")
        && said.contains("NOT queued and NOT delivered — ");
    tally.expect(honest, Bad::Wrong, || format!("{:?} {said} {what}", run.exit));
    false
}

/// Counts the entries that wait; each has to be whole, with its text.
fn whole(scene: &Scene, what: &str, tally: &mut Tally) -> usize {
    let queue = folder(&scene.sandbox);
    let mut waiting = 0;
    for seq in 1..=4 {
        let Ok(bytes) = fs::read(queue.join(format!("{seq:06}.json"))) else { continue };
        let Ok(entry) = serde_json::from_slice::<Value>(&bytes) else {
            tally.bad(Bad::Half, format!("entry {seq} is cut: {what}"));
            continue;
        };
        if entry["status"] == "pending" {
            let body = fs::read(queue.join(format!("{seq:06}.d/body.md"))).unwrap_or_default();
            let text: &[u8] = if seq == 1 { b"the first" } else { BODY };
            tally.expect(body == text, Bad::Half, || format!("the text of entry {seq}: {what}"));
            waiting += 1;
        }
    }
    waiting
}

/// An entry is set aside, or stands as it did.
fn changes(scene: &Scene, what: &str, tally: &mut Tally) {
    let entry = folder(&scene.sandbox).join("000001.json");
    let before = fs::read(&entry).unwrap();
    let run = settle(&scene.sandbox, scene.forge(&["queue", "drop", "1"])).run();
    tally.runs += 1;
    let after = fs::read(&entry).unwrap_or_default();
    let status = serde_json::from_slice::<Value>(&after).map(|entry| entry["status"].clone());
    let is_dropped = run.exit == Exit::Code(0);
    let kept = if is_dropped { status.is_ok_and(|status| status == "dropped") } else { after == before };
    tally.expect(kept, Bad::Lost, || {
        format!("after a drop ({:?} {}) the entry is {} bytes: {what}", run.exit, run.err(), after.len())
    });
}

/// With room again everything works: what waits is delivered, what comes is queued.
fn afterwards(scene: &Scene, what: &str, tally: &mut Tally) {
    let before = whole(scene, what, tally);
    let run = comment(scene, "7", BODY);
    tally.runs += 1;
    tally.expect(run.err().contains("Spooled as"), Bad::Wrong, || format!("then {} {what}", run.err()));
    let waiting = whole(scene, what, tally);
    tally.expect(waiting == before + 1, Bad::Lost, || {
        format!("then {waiting} wait, not {before} + 1: {what}")
    });
    take_posts(scene);
    let run = settle(&scene.sandbox, scene.forge(&["queue", "replay", "--apply"])).run();
    let sent = posted(scene).len();
    tally.expect(sent == waiting, Bad::Lost, || {
        format!(
            "then {sent} of {waiting} were delivered ({:?} {} {}): {what}",
            run.exit,
            run.out(),
            run.err()
        )
    });
    let lines = scene.sandbox.observations().len();
    tally.expect(lines > 0, Bad::Lost, || format!("then nothing is observed: {what}"));
}
