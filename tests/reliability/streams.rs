//! Streams that nobody reads, and signals, while a write is queued.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::dice::Dice;
use crate::support::queued::{checkout, folder, settle};
use crate::support::running::Run;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::{Out, Stdin};

const DOWN: &str = "on *\n stdin\n err HTTP 503: Service Unavailable\\n\n exit 1\n";
const RUNS: u64 = 300;

/// Enqueues whose streams are closed, full or cut, and which are sent a signal at any moment: none of them is
/// a defect, and what was acknowledged is there.
pub fn ends(tally: &mut Tally) {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    let scene = Scene::of(sandbox, tally.without);
    let mut dice = Dice::new(tally.seed);
    let took = enqueue(&scene, "whole", [Out::Pipe, Out::Pipe], None, &mut dice).took;
    for n in 0..tally.rounds(RUNS) {
        let text = format!("text {n}");
        let mut out = || {
            let outs = [Out::Pipe, Out::Pipe, Out::Closed, Out::Full, Out::Null, Out::PipeThatCloses(0)];
            dice.one_of(&outs).clone()
        };
        let outs = [out(), out()];
        let signal = *dice.one_of(&[None, Some(libc::SIGINT), Some(libc::SIGTERM), Some(libc::SIGHUP)]);
        let delay = Duration::from_micros(dice.below(took.as_micros() as u64 * 5 / 4));
        let what = format!("{outs:?} signal {signal:?} after {delay:?}");
        let run = enqueue(&scene, &text, outs, signal.map(|signal| (signal, delay)), &mut dice);
        tally.runs += 1;
        tally.faults += u64::from(signal.is_some());
        judge(&scene, &run, &text, signal, &what, tally);
        if tally.is_settled() {
            return;
        }
        // A full folder costs time, and the queue has a bound.
        if n % 50 == 49 {
            let _ = fs::remove_dir_all(folder(&scene.sandbox));
        }
    }
}

/// `gh issue create` or `comment`, whose answer would be a handle or nothing.
fn enqueue(
    scene: &Scene,
    text: &str,
    [stdout, stderr]: [Out; 2],
    signal: Option<(i32, Duration)>,
    dice: &mut Dice,
) -> Run {
    let create: &[&str] = &["issue", "create", "--title", "a title", "--body-file", "-"];
    let words = if dice.once_in(2) { create } else { &["issue", "comment", "5", "--body-file", "-"] };
    let call = settle(&scene.sandbox, scene.gh(words)).stdin(Stdin::Bytes(text.into()));
    let running = call.stdout(stdout).stderr(stderr).start();
    if let Some((signal, delay)) = signal {
        std::thread::sleep(delay);
        running.send(signal);
    }
    running.finish()
}

fn judge(scene: &Scene, run: &Run, text: &str, signal: Option<i32>, what: &str, tally: &mut Tally) {
    let said = run.err();
    let nobody_reads = what.contains("PipeThatCloses");
    let is_an_end = match run.exit {
        Exit::Code(0 | 1) => true,
        // What gh has said goes out as gh would have written it, which ends a writer nobody reads.
        Exit::Signal(libc::SIGPIPE) => nobody_reads,
        Exit::Signal(by) => Some(by) == signal,
        _ => false,
    };
    tally.expect(is_an_end && !said.contains("panicked"), Bad::Wrong, || {
        format!("{:?} {said} {what}", run.exit)
    });
    let is_there = bodies(scene, what, tally).iter().any(|body| body == text);
    // Nothing else than the queue makes this call succeed.
    let acknowledged = run.exit == Exit::Code(0) || said.contains("Spooled as");
    tally.expect(is_there || !acknowledged, Bad::Lost, || format!("{:?} {said} {what}", run.exit));
    let refused = said.contains("NOT queued");
    tally.expect(!is_there || !refused, Bad::Wrong, || format!("refused and there: {said} {what}"));
}

/// The texts of the entries that wait, each of them whole.
fn bodies(scene: &Scene, what: &str, tally: &mut Tally) -> Vec<String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder(&scene.sandbox)).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"))
    {
        let entry = serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap_or_default();
        match entry["body_file"].as_str().map(fs::read_to_string) {
            Some(Ok(body)) => found.push(body),
            _ => tally.bad(Bad::Half, format!("{} is cut: {what}", path.display())),
        }
    }
    found
}
