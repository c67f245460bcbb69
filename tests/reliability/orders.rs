//! Verdict, log, cache and lease: their use cases in every order of their steps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use engine::decide::cache_key::{Account, Key};
use engine::ops::Context;
use engine::ops::health::{Options, status};
use engine::store::cache as stored;
use engine::store::lockdir::{self, Kernel, Owner};
use engine::store::observations;
use engine::store::ring::Ring;

use super::interleave::{Judge, actor, explore, without_guards};
use super::tally::{Bad, Tally};

fn line(signal: &str, session: &str) -> String {
    let (now, exit) = (engine::process::clock::now_s(), i32::from(signal != "ok"));
    format!("{now}\t{exit}\t5\t{signal}\tissue list\tgraphql\t1\tw\t{session}")
}

fn judged(state: &Path) -> engine::decide::verdict::Reason {
    let context = Context::new(vec![("BOB_FORGE_STATE".into(), state.into())], None, None);
    status(&context, &Options { probe: false, ..Options::default() }).verdict.reason
}

/// A call fails while two others derive and store verdicts: afterwards nobody is told what was true before.
pub fn verdict(tally: &mut Tally) {
    without_guards(tally, |tally| {
        let after = {
            let home = tempfile::tempdir().unwrap();
            for signal in ["ok", "server"] {
                observations::ring(home.path()).append(line(signal, "s").as_bytes()).unwrap();
            }
            judged(home.path())
        };
        explore(tally, 2, || {
            let home = tempfile::tempdir().unwrap();
            let state = home.path().to_path_buf();
            observations::ring(&state).append(line("ok", "s").as_bytes()).unwrap();
            let before = judged(&state);
            assert_ne!(before, after, "the failing call changes nothing");
            // Stored for the log as it was, it is derived anew by both.
            engine::store::verdict::reset(&state).unwrap();
            let reader = |state: PathBuf| {
                actor(move || {
                    judged(&state);
                })
            };
            let failing = state.clone();
            let writer =
                actor(move || observations::ring(&failing).append(line("server", "s").as_bytes()).unwrap());
            let judge: Judge<'_> = Box::new(move |order, tally| {
                let told = judged(home.path());
                tally.expect(told == after, Bad::Lost, || format!("{told:?} after a failure, {order}"));
            });
            (vec![reader(state.clone()), writer, reader(state)], judge)
        });
    });
}

/// Two writers at the log's bound, where each append trims, and a writer beside a trim by hand.
pub fn ring(tally: &mut Tally) {
    const BOUND: u64 = 10;
    without_guards(tally, |tally| {
        for is_by_hand in [false, true] {
            explore(tally, 2, || {
                let home = tempfile::tempdir().unwrap();
                let ring = Ring::new(home.path(), "observations", BOUND);
                (0..BOUND - 1).for_each(|n| ring.append(format!("old {n}").as_bytes()).unwrap());
                let (one, other) = (ring.clone(), ring.clone());
                let first = actor(move || one.append(b"one").unwrap());
                let second = actor(move || match is_by_hand {
                    true => other.trim(BOUND - 3).unwrap(),
                    false => other.append(b"two").unwrap(),
                });
                let judge: Judge<'_> = Box::new(move |order, tally| {
                    let text = String::from_utf8(ring.read().unwrap().0).unwrap();
                    let names = ["one", "old 8", "two"];
                    for name in &names[..if is_by_hand { 2 } else { 3 }] {
                        let here = text.lines().filter(|line| line == name).count();
                        tally.expect(here > 0, Bad::Lost, || format!("{name} is gone, {order}"));
                        tally.expect(here < 2, Bad::Doubled, || format!("{here} times {name}, {order}"));
                    }
                    let is_whole = |line: &str| {
                        line.is_empty()
                            || names.contains(&line)
                            || (line.len() == 5 && line.starts_with("old "))
                    };
                    tally.expect(text.lines().all(is_whole), Bad::Half, || format!("{text:?}, {order}"));
                    drop(home);
                });
                (vec![first, second], judge)
            });
        }
    });
}

/// Two answers to one question, the one asked later first or last, and a reader.
pub fn cache(tally: &mut Tally) {
    let answer = |n: u64| stored::Entry {
        started_ns: n,
        account: Account::UNKNOWN,
        answer: Some(format!("answer {n} ").repeat(20 * n as usize).into_bytes()),
    };
    let key = Key::new(&["issue".into(), "list".into()], Some("github.com/acme/widget"), "github.com", &[]);
    without_guards(tally, |tally| {
        explore(tally, 2, || {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().to_path_buf();
            let keep = |root: &Path, n: u64| drop(stored::store(root, &key, &answer(n), 9, stored::BOUNDS));
            keep(&root, 1);
            keep(&root, 2);
            let seen = Arc::new(AtomicU64::new(0));
            let writer = |root: PathBuf, n: u64| {
                let key = key.clone();
                actor(move || drop(stored::store(&root, &key, &answer(n), 9, stored::BOUNDS)))
            };
            let reader = {
                let (root, key, seen) = (root.clone(), key.clone(), seen.clone());
                actor(move || {
                    // 0 for none, 99 for one that nobody stored.
                    let known = stored::lookup(&root, &key);
                    let of = |n: &u64| known.as_ref().is_some_and(|entry| *entry == answer(*n));
                    let which = (2..=4).find(of).unwrap_or(if known.is_none() { 0 } else { 99 });
                    seen.store(which, SeqCst);
                })
            };
            let key = key.clone();
            let judge: Judge<'_> = Box::new(move |order, tally| {
                let read = seen.load(SeqCst);
                tally.expect(read != 99, Bad::Half, || format!("half an answer is served, {order}"));
                tally.expect(read != 0, Bad::Lost, || format!("no answer is found, {order}"));
                let last = stored::lookup(home.path(), &key);
                let is_newest = last.is_some_and(|entry| entry == answer(4));
                tally.expect(is_newest, Bad::Wrong, || {
                    format!("an older answer replaced a newer one, {order}")
                });
            });
            (vec![writer(root.clone(), 3), writer(root, 4), reader], judge)
        });
    });
}

/// A machine whose processes and clock are the test's.
#[derive(Clone)]
struct Machine {
    pid: u32,
    boot_s: u64,
    next: Arc<AtomicU64>,
}

impl Kernel for Machine {
    fn me(&self) -> Owner {
        let start = format!("start of {}", self.pid);
        Owner { pid: self.pid, start, boot: "boot".into(), namespace: "all".into(), boot_s: self.boot_s }
    }

    fn start_of(&self, pid: u32) -> Option<String> {
        (pid < 10).then(|| format!("start of {pid}"))
    }

    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        engine::process::kernel::rename_to_free(from, to)
    }

    fn unique(&self) -> u64 {
        self.next.fetch_add(1, SeqCst)
    }
}

/// What the holders of a lease did.
#[derive(Default)]
struct Holders {
    inside: AtomicU64,
    two: AtomicU64,
    committed: AtomicU64,
}

/// Adds one to a number under the lease.
fn count(folder: &Path, machine: &Machine, holders: &Holders) {
    let (lock, file) = (folder.join("x.lock"), folder.join("x"));
    let Ok(Some(lease)) = lockdir::acquire(&lock, Duration::from_secs(1), machine) else { return };
    holders.two.fetch_add(u64::from(holders.inside.fetch_add(1, SeqCst) > 0), SeqCst);
    let number: u64 = fs::read_to_string(&file).unwrap().trim().parse().unwrap_or(0);
    let is_committed = lease.commit(&file, format!("{}\n", number + 1).as_bytes()).is_ok();
    holders.committed.fetch_add(u64::from(is_committed), SeqCst);
    holders.inside.fetch_sub(1, SeqCst);
}

/// Two holders: of a lease that a dead owner left, of a free one, and of one whose first holder is far behind in
/// time, as one that was stopped. What was committed is there, and nothing else is; two are inside only where
/// the first one's time was over.
pub fn lease(tally: &mut Tally) {
    without_guards(tally, |tally| {
        for (is_left_by_a_dead, times) in [(true, [100, 100]), (false, [100, 100]), (false, [100, 200])] {
            explore(tally, 3, || {
                let home = tempfile::tempdir().unwrap();
                fs::write(home.path().join("x"), "0\n").unwrap();
                if is_left_by_a_dead {
                    leave_a_lease(&home.path().join("x.lock"));
                }
                let (next, holders) = (Arc::new(AtomicU64::new(1)), Arc::new(Holders::default()));
                let actors = times.iter().zip(1..).map(|(boot_s, pid)| {
                    let machine = Machine { pid, boot_s: *boot_s, next: next.clone() };
                    let (folder, holders) = (home.path().to_path_buf(), holders.clone());
                    actor(move || count(&folder, &machine, &holders))
                });
                let actors = actors.collect();
                let judge: Judge<'_> = Box::new(move |order, tally| {
                    let number = fs::read_to_string(home.path().join("x")).unwrap();
                    let committed = holders.committed.load(SeqCst);
                    tally.expect(number == format!("{committed}\n"), Bad::Lost, || {
                        format!("{committed} were committed and the number is {number:?}, {order}")
                    });
                    tally.expect(committed > 0, Bad::Lost, || format!("nobody got it, {order}"));
                    let is_one = times[0] != times[1] || holders.two.load(SeqCst) == 0;
                    tally.expect(is_one, Bad::TwoHolders, || format!("two are inside, {order}"));
                });
                (actors, judge)
            });
        }
    });
}

/// A lease whose owner died long ago.
fn leave_a_lease(lock: &Path) {
    fs::create_dir(lock).unwrap();
    fs::write(lock.join("owner.77.1.1"), "77\nstart of 77\nboot\nall\n1\n").unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    fs::File::open(lock).unwrap().set_modified(long_ago).unwrap();
}
