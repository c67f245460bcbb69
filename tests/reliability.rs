//! `make reliability`: what the promises "lossless", "transparent" and "true" are worth, as figures.
//!
//! Every test runs twice: against the programs that are shipped, and as its control arm against a build of the
//! same source whose guard is switched off (`engine::control`). The first must find nothing, the second must
//! find something. `target/reliability.json` holds one object a test; the table is made from it. A test that
//! could not run is shown as not run, never as 0.
//!
//! `FORGE_ONLY='ID;…'` runs these tests alone, `FORGE_SEED` repeats the random choices, `FORGE_BREAK_BY=steps`
//! breaks a build for tests at its named steps, as it is done where strace may not trace.
//!
//! | what is done | in |
//! | --- | --- |
//! | killed and failed at every step | `stores`, `queued`, `replay`; by `breaking`, in a `scene` |
//! | every order of the steps of two or three | `orders`, `orders_queue`; by `interleave` |
//! | power cuts | `power` |
//! | many processes, some killed or stopped | `locks`, `leases`, `numberings`; by `workers` |
//! | hostile and swapped files, moved clocks, secrets | `hostile`, `swaps`; by `swapper` |
//! | full disks, ended streams, signals | `disks`, `streams` |
//! | counts, and the table of them | `tally`, `table` |
#![allow(
    unsafe_code,
    missing_docs,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::exit,
    reason = "a program that runs programs and prints a table"
)]
#![allow(dead_code, reason = "of the suite's helpers it needs a part")]

#[path = "reliability/breaking.rs"]
mod breaking;
#[path = "reliability/disks.rs"]
mod disks;
#[path = "reliability/hostile.rs"]
mod hostile;
#[path = "reliability/interleave.rs"]
mod interleave;
#[path = "reliability/leases.rs"]
mod leases;
#[path = "reliability/locks.rs"]
mod locks;
#[path = "reliability/numberings.rs"]
mod numberings;
#[path = "reliability/orders.rs"]
mod orders;
#[path = "reliability/orders_queue.rs"]
mod orders_queue;
#[path = "reliability/power.rs"]
mod power;
#[path = "reliability/queued.rs"]
mod queued;
#[path = "reliability/replay.rs"]
mod replay;
#[path = "reliability/scene.rs"]
mod scene;
#[path = "reliability/stores.rs"]
mod stores;
#[path = "reliability/streams.rs"]
mod streams;
mod support;
#[path = "reliability/swapper.rs"]
mod swapper;
#[path = "reliability/swaps.rs"]
mod swaps;
#[path = "reliability/table.rs"]
mod table;
#[path = "reliability/tally.rs"]
mod tally;
#[path = "reliability/workers.rs"]
mod workers;

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use support::dice;
use table::Row;
use tally::Tally;

/// One test of the plan (`id`), the guard that its control arm lives without, and what it does.
struct Test {
    id: &'static str,
    guard: &'static str,
    run: fn(&mut Tally),
}

impl Test {
    /// Why it cannot run here.
    fn why_not(&self) -> Option<String> {
        self.id.starts_with(TRACED).then(|| scene::strace_works().err()).flatten()
    }

    /// Whether it has to run a build for tests in both arms, because only that one can be broken here.
    fn is_by_steps(&self) -> bool {
        self.id.ends_with(EVERY_CALL) && breaking::means() == breaking::Means::Steps
    }
}

/// How the tests' names begin that trace a program.
const TRACED: &str = "power cuts";
/// How the tests' names end that break a program at every step.
const EVERY_CALL: &str = "every system call";

const TESTS: &[Test] = &[
    Test { id: "verdict, every order of steps", guard: "verdict-identity", run: orders::verdict },
    Test { id: "ring, every order of steps", guard: "lock", run: orders::ring },
    Test { id: "cache, every order of steps", guard: "lock", run: orders::cache },
    Test { id: "lease, every order of steps", guard: "token", run: orders::lease },
    Test { id: "queue, every order of steps", guard: "lock", run: orders_queue::changes },
    Test { id: "replay, every order of steps", guard: "lock", run: orders_queue::replays },
    Test { id: "ring append and trim, every system call", guard: "aside", run: stores::ring },
    Test { id: "verdict write, every system call", guard: "aside", run: stores::verdict },
    Test { id: "cache store, every system call", guard: "aside,cache-seal", run: stores::cache },
    Test { id: "enqueue, every system call", guard: "aside", run: queued::enqueue },
    Test { id: "drop, every system call", guard: "aside", run: queued::drop },
    Test { id: "clear, every system call", guard: "number", run: queued::clear },
    Test { id: "budget refresh, every system call", guard: "aside", run: stores::refresh },
    Test { id: "replay, every system call", guard: "attempt,aside", run: replay::every_call },
    Test { id: "replay, answers lost on the way", guard: "attempt", run: replay::lost_answers },
    Test { id: "power cuts, the first enqueue", guard: "sync", run: power::first_enqueue },
    Test { id: "power cuts, an enqueue behind two", guard: "sync", run: power::enqueue },
    Test { id: "power cuts, a replay of two", guard: "sync", run: power::replay },
    Test { id: "power cuts, a replay whose answer is lost", guard: "sync", run: power::answer_lost },
    Test { id: "power cuts, a replay that fails", guard: "sync", run: power::failing },
    Test { id: "power cuts, the log compacted", guard: "sync", run: power::compaction },
    Test { id: "power cuts, drop", guard: "sync", run: power::drop },
    Test { id: "power cuts, clear", guard: "sync", run: power::clear },
    Test { id: "power cuts, taken back and sent", guard: "sync", run: power::taken_back },
    Test { id: "power cuts, after a killed first enqueue", guard: "sync", run: power::enqueue_killed },
    Test { id: "power cuts, after a killed replay", guard: "sync", run: power::replay_killed },
    Test { id: "ring, six writers killed, trims", guard: "lock", run: locks::ring_writers },
    Test { id: "stale lease, 8 waiters", guard: "token", run: leases::stale_lease_8 },
    Test { id: "stale lease, 16 waiters", guard: "token", run: leases::stale_lease_16 },
    Test { id: "leases, holders killed and stopped", guard: "fence", run: leases::counted },
    Test { id: "leases, numbers used again", guard: "start", run: numberings::owners },
    Test { id: "the last slots, 8 callers", guard: "lock", run: locks::last_slots },
    Test { id: "stopped lock holders delay nobody", guard: "lock-bound", run: locks::stopped_holders },
    Test { id: "a stored verdict masks no failure", guard: "verdict-identity", run: locks::masked },
    Test { id: "clocks moved", guard: "clock", run: hostile::clocks },
    Test { id: "hostile files in the stores", guard: "entry-seal,cache-seal", run: hostile::files },
    Test { id: "entries swapped during replays", guard: "checked", run: swaps::entries },
    Test { id: "answers swapped while served", guard: "cache-seal", run: swaps::answers },
    Test { id: "state files swapped", guard: "plain", run: swaps::state },
    Test { id: "disks full and read-only", guard: "aside", run: disks::all },
    Test { id: "streams that end, signals", guard: "unheard", run: streams::ends },
    Test { id: "a token is written nowhere", guard: "vocabulary", run: hostile::canary },
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("worker") => return workers::work(&words[1..]),
        Some("test") => return println!("{}", run(named(&words[1]), dice::seed()).text()),
        _ => {}
    }
    let only = std::env::var("FORGE_ONLY").unwrap_or_default();
    let is_wanted = |test: &&Test| only.is_empty() || only.split(';').any(|part| test.id.contains(part));
    let wanted: Vec<&Test> = TESTS.iter().filter(is_wanted).collect();
    let (seed, started) = (dice::seed(), Instant::now());
    println!("FORGE_SEED={seed}\n{}", table::head());
    let rows = all(&wanted, seed);
    println!("\n{} · {} s", table::summary(&rows), started.elapsed().as_secs());
    // Part of a table would pass for the whole.
    if only.is_empty() {
        table::write(&rows);
    }
    std::process::exit(i32::from(!rows.iter().all(Row::is_good)));
}

fn named(id: &str) -> &'static Test {
    TESTS.iter().find(|test| test.id == id).unwrap_or_else(|| panic!("there is no test {id:?}"))
}

/// Every test in a process of its own, as many at a time as there are processors.
fn all(tests: &[&Test], seed: u64) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|threads| {
        for _ in 0..jobs {
            threads.spawn(|| {
                while let Some((at, test)) = tests.iter().enumerate().nth(next.fetch_add(1, SeqCst)) {
                    let mut command = Command::new(std::env::current_exe().unwrap());
                    command
                        .args(["test", test.id])
                        .env("FORGE_SEED", seed.to_string())
                        .stderr(Stdio::inherit());
                    if let Some(folder) = folder_in_memory() {
                        command.env("TMPDIR", folder);
                    }
                    let done = command.output().unwrap();
                    let row = Row::parse(test.id, &String::from_utf8_lossy(&done.stdout));
                    println!("{}", row.line());
                    rows.lock().unwrap().push((at, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Thousands of runs wait for the disk more than for anything else. In memory a sync returns at once, and every
/// system call is the same. Not where programs may not be started from there.
fn folder_in_memory() -> Option<&'static str> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let is_fit = mounts.lines().any(|line| line.contains(" /dev/shm tmpfs rw") && !line.contains("noexec"));
    (is_fit && std::env::var_os("TMPDIR").is_none()).then_some("/dev/shm")
}

fn run(test: &Test, seed: u64) -> Row {
    let started = Instant::now();
    let shipped = [std::env::var_os("FORGE_TEST_GH"), std::env::var_os("FORGE_TEST_FORGE")];
    let for_tests = [None, None];
    name_programs(if test.is_by_steps() { &for_tests } else { &shipped });
    let mut tally = Tally::new(seed, "");
    tally.is_by_steps = test.is_by_steps();
    tally.why_not = test.why_not();
    if tally.why_not.is_none() {
        (test.run)(&mut tally);
    }
    // The control arm is this build: only it has the switch.
    name_programs(&for_tests);
    let mut control = Tally::new(seed, test.guard);
    if tally.why_not.is_none() {
        (test.run)(&mut control);
    }
    Row::new(test.id, &tally, &control, started.elapsed())
}

fn name_programs(named: &[Option<std::ffi::OsString>; 2]) {
    for (name, value) in ["FORGE_TEST_GH", "FORGE_TEST_FORGE"].iter().zip(named) {
        // SAFETY: no other thread of this process runs between two tests.
        unsafe {
            match value {
                Some(value) => std::env::set_var(name, value),
                None => std::env::remove_var(name),
            }
        }
    }
}
