//! Locks between many processes, some of them killed, some of them stopped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use engine::decide::gate::Slot;
use engine::decide::resource::Resource;
use engine::process::clock;
use engine::store::ledger::{self, Now};
use engine::store::ring::Ring;

use super::scene::Scene;
use super::tally::{Bad, Tally};
use super::workers::worker;
use crate::support::command::Call;
use crate::support::dice::Dice;
use crate::support::spawn::{self, Exit};
use crate::support::streams::Stdin;

const RING_LINES: u64 = 600;
const WRITERS: usize = 6;

/// Appends numbered lines until it is killed, and writes down the last number that was acknowledged.
pub fn append(folder: &Path, id: &str) {
    let ring = Ring::new(&folder.join("state"), "observations", RING_LINES);
    let acknowledged = fs::File::create(folder.join(id)).unwrap();
    for n in 1_u64.. {
        ring.append(format!("{id}\t{n}\t{}", "x".repeat(60)).as_bytes()).unwrap();
        acknowledged.write_all_at(&n.to_le_bytes(), 0).unwrap();
    }
}

/// Writers that are killed at any moment, while the ring trims itself.
pub fn ring_writers(tally: &mut Tally) {
    let mut dice = Dice::new(tally.seed);
    for _ in 0..tally.rounds(25) {
        let home = tempfile::tempdir().unwrap();
        let mut next = 0;
        let mut start = || {
            next += 1;
            let (folder, id) = (home.path().to_str().unwrap(), format!("w{next}"));
            (id.clone(), worker(tally.without, &["append", folder, &id]).spawn().unwrap())
        };
        let mut alive: Vec<(String, Child)> = (0..WRITERS).map(|_| start()).collect();
        let mut killed = Vec::new();
        for _ in 0..25 {
            std::thread::sleep(Duration::from_millis(dice.below(12)));
            let at = dice.below(WRITERS as u64) as usize;
            let (id, mut child) = std::mem::replace(&mut alive[at], start());
            child.kill().unwrap();
            child.wait().unwrap();
            killed.push(id);
            tally.kills += 1;
        }
        for (id, mut child) in alive {
            child.kill().unwrap();
            child.wait().unwrap();
            killed.push(id);
            tally.kills += 1;
        }
        tally.runs += 1;
        judge_ring(home.path(), &killed, tally);
        if tally.is_settled() {
            return;
        }
    }
}

/// What is left has to be a tail of all that was written: of no writer may a line be missing between two that
/// are there, nor its last one when another's older line is.
fn judge_ring(home: &Path, writers: &[String], tally: &mut Tally) {
    let ring = Ring::new(&home.join("state"), "observations", RING_LINES);
    // Whoever comes next ends a torn line, and keeps the bound where a killed writer could not.
    ring.append(format!("next\t1\t{}", "x".repeat(60)).as_bytes()).unwrap();
    let (bytes, _) = ring.read().unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut numbers: Vec<(&str, u64)> = Vec::new();
    let mut torn = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut columns = line.split('\t');
        let (id, number, rest) =
            (columns.next(), columns.next().and_then(|n| n.parse().ok()), columns.next());
        match (id, number, rest) {
            (Some(id), Some(number), Some(rest)) if rest.len() == 60 && columns.next().is_none() => {
                numbers.push((id, number))
            }
            _ => torn += 1,
        }
    }
    // A writer that was killed in its one write leaves a stump, alone on its line.
    tally.expect(torn <= writers.len(), Bad::Half, || format!("{torn} torn lines"));
    tally
        .expect(text.lines().count() as u64 <= RING_LINES, Bad::Wrong, || "the ring passes its bound".into());
    for id in writers {
        let of: Vec<u64> = numbers.iter().filter(|(writer, _)| writer == id).map(|(_, n)| *n).collect();
        let Some(first) = of.first() else { continue };
        let mut bytes = [0; 8];
        let _ = fs::File::open(home.join(id)).unwrap().read_at(&mut bytes, 0);
        let acknowledged = u64::from_le_bytes(bytes);
        let missing = (*first..=acknowledged).filter(|n| !of.contains(n)).count();
        (0..missing).for_each(|_| tally.bad(Bad::Lost, format!("of {id}, {missing} acknowledged lines")));
    }
}

/// Takes a slot of the ledger where fewer than `most` are taken; ends with 1 where not.
pub fn slot(folder: &Path, most: usize) {
    while !folder.join("go").exists() {
        std::hint::spin_loop();
    }
    let now = Now { s: clock::now_s(), window_s: 600, interrupted: &|| false };
    let took = ledger::take(&folder.join("state"), now, |rows| {
        let fits = rows.len() < most;
        let slot = Slot { at: now.s, resource: Resource::Graphql, background: false };
        (fits, if fits { vec![slot] } else { Vec::new() })
    });
    std::process::exit(i32::from(!took.unwrap()));
}

/// Eight callers and three slots, over and over.
pub fn last_slots(tally: &mut Tally) {
    for _ in 0..tally.rounds(40) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().to_str().unwrap();
        fs::create_dir(home.path().join("state")).unwrap();
        let children: Vec<Child> =
            (0..8).map(|_| worker(tally.without, &["slot", folder, "3"]).spawn().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(10));
        fs::write(home.path().join("go"), "").unwrap();
        let taken = children
            .into_iter()
            .filter_map(|mut child| child.wait().unwrap().code())
            .filter(|code| *code == 0);
        let taken = taken.count();
        tally.runs += 1;
        tally.expect(taken <= 3, Bad::TwoHolders, || format!("{taken} callers took three slots"));
        tally.expect(taken >= 3, Bad::Lost, || format!("only {taken} callers took three slots"));
        if tally.is_settled() {
            return;
        }
    }
}

/// Holds a kernel lock for ever.
pub fn hold(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs::File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.lock().unwrap();
    println!("held");
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// A holder that was stopped: it lets go of nothing and does nothing.
struct Stopped(Child);

impl Stopped {
    fn holding(path: &Path) -> Stopped {
        let mut child = worker("", &["hold", path.to_str().unwrap()]).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "held\n");
        spawn::send(child.id() as i32, libc::SIGSTOP);
        Stopped(child)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PATIENCE_S: u64 = 25;

/// Each lock in turn is held by a process that was stopped: a call ends within the lock's bound, and as it
/// should.
pub fn stopped_holders(tally: &mut Tally) {
    const DOWN: &str = "on issue comment\n stdin\n err HTTP 503: Service Unavailable\\n\n exit 1\non *\n out answer\\n\n exit 0\n";
    // The lock, the call, how long it may take (its bound, and what a busy machine adds), what it says, how it
    // ends.
    let table: [(&str, &[&str], u64, &str, i32); 7] = [
        ("bob/forge/observations.lock", &["pr", "status"], 3, "answer\n", 0),
        ("work/.claude/forge/cache/lock", &["issue", "list"], 3, "answer\n", 0),
        ("bob/forge/rate.log.lock", &["pr", "list"], 6, "answer\n", 0),
        ("bob/forge/hold.lock", &["pr", "list"], 6, "answer\n", 0),
        ("work/.claude/forge/queue/replay.lock", &["pr", "status"], 6, "answer\n", 0),
        ("work/.claude/forge/queue/queue.lock", &["issue", "comment", "5", "-F", "-"], 15, "", 1),
        ("bob/forge/queue-dirty.lock", &["issue", "comment", "6", "-F", "-"], 15, "", 1),
    ];
    for (lock, words, bound_s, says, code) in table {
        let scene = Scene::new(DOWN, tally.without);
        let queued =
            scene.sandbox.gh(&["issue", "comment", "5", "-F", "-"]).stdin(Stdin::Bytes(b"x".into())).run();
        assert!(queued.err().contains("Spooled"), "{}", queued.err());
        if lock.ends_with("queue-dirty.lock") {
            // With its project marked already nobody would ask for it.
            fs::remove_file(scene.sandbox.state().join("queue-dirty")).unwrap();
        }
        let _holder = Stopped::holding(&scene.sandbox.path(lock));
        let started = Instant::now();
        let run = patiently(&scene, words).run();
        tally.runs += 1;
        let took = started.elapsed();
        tally.expect(took.as_secs() < bound_s, Bad::Wrong, || {
            format!("{lock} delayed gh {words:?} by {took:?}")
        });
        let same = run.out() == says && run.exit == Exit::Code(code);
        tally.expect(same, Bad::Wrong, || {
            format!("{lock} changed gh {words:?}: {:?} {}", run.exit, run.err())
        });
        if tally.is_settled() {
            return;
        }
    }
}

/// The call, killed when it takes for ever.
fn patiently<'s>(scene: &'s Scene, words: &[&str]) -> Call<'s> {
    let gh = scene.sandbox.path("bin/gh");
    let limit = PATIENCE_S.to_string();
    let mut all = vec!["-s", "KILL", &limit, gh.to_str().unwrap()];
    all.extend(words);
    let timeout = PathBuf::from("/usr/bin/timeout");
    let call = scene.guarded(scene.sandbox.program(timeout, &all)).stdin(Stdin::Bytes(b"a body".into()));
    call.env("BOB_FORGE_BUDGET", "1")
        .env("BOB_FORGE_SLEEP", "/bin/true")
        .env("BOB_FORGE_REPLAY_SPACING_MS", "0")
}

/// Derives verdicts until it is killed.
pub fn verdict(folder: &str) {
    let env = vec![("BOB_FORGE_STATE".into(), folder.into())];
    loop {
        let context = engine::ops::Context::new(env.clone(), None, None);
        let options = engine::ops::health::Options { probe: false, ..Default::default() };
        engine::ops::health::status(&context, &options);
    }
}

/// Ten calls fail after ten that succeeded, while three others keep deriving verdicts: nobody is told that the
/// forge answers.
pub fn masked(tally: &mut Tally) {
    let scene = Scene::new("on *\n exit 0\n", tally.without);
    let state = scene.sandbox.state();
    fs::create_dir_all(&state).unwrap();
    let mut others: Vec<Child> = (0..3)
        .map(|_| worker(tally.without, &["verdict", state.to_str().unwrap()]).spawn().unwrap())
        .collect();
    for round in 0..tally.rounds(60) {
        for signal in ["ok", "server"] {
            let ring = engine::store::observations::ring(&state);
            for n in 0..10 {
                let (now, exit) = (clock::now_s(), i32::from(signal != "ok"));
                ring.append(
                    format!("{now}\t{exit}\t5\t{signal}\tissue list\tgraphql\t1\tw\tr{round}n{n}").as_bytes(),
                )
                .unwrap();
            }
            let run = scene.forge(&["health", "--no-probe"]).run();
            tally.runs += 1;
            let expected = if signal == "ok" { 0 } else { 4 };
            let how = if signal == "ok" { Bad::Wrong } else { Bad::Lost };
            tally.expect(run.exit == Exit::Code(expected), how, || {
                format!("after ten {signal}: {}", run.out())
            });
        }
        if tally.is_settled() {
            break;
        }
    }
    for child in &mut others {
        let _ = child.kill();
        let _ = child.wait();
    }
}
