//! Leases: who takes over a stale one, and what becomes of a holder that was stopped for longer than its lease.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

use engine::ops::budget::Machine;
use engine::process::kernel;
use engine::store::lockdir::{self, Kernel, Owner};

use super::tally::{Bad, Tally};
use super::workers::worker;
use crate::support::dice::Dice;
use crate::support::spawn;

/// Takes the lease once and looks whether it is alone; 2 holders make it end with 1.
pub fn lease(folder: &Path) {
    while !folder.join("go").exists() {
        std::hint::spin_loop();
    }
    let Ok(Some(held)) = lockdir::acquire(&folder.join("x.lock"), Duration::from_secs(20), &Machine) else {
        std::process::exit(2)
    };
    let inside = folder.join("inside");
    let mine = inside.join(kernel::pid().to_string());
    fs::write(&mine, "").unwrap();
    let holders = || fs::read_dir(&inside).unwrap().count();
    let before = holders();
    std::thread::sleep(Duration::from_millis(4));
    let most = before.max(holders());
    fs::remove_file(&mine).unwrap();
    drop(held);
    std::process::exit(i32::from(most > 1));
}

pub fn stale_lease_8(tally: &mut Tally) {
    stale_lease(tally, 8, 40);
}

pub fn stale_lease_16(tally: &mut Tally) {
    stale_lease(tally, 16, 20);
}

/// Waiters find a lease whose owner is long gone, all at once.
fn stale_lease(tally: &mut Tally, waiters: usize, rounds: u64) {
    for _ in 0..tally.rounds(rounds) {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("inside")).unwrap();
        let lock = home.path().join("x.lock");
        fs::create_dir(&lock).unwrap();
        let owner = "1\n1\nanother boot\nanother namespace\n1\n";
        fs::write(lock.join("owner.1.1.1"), owner).unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&lock).unwrap().set_modified(long_ago).unwrap();
        let folder = home.path().to_str().unwrap();
        let children: Vec<Child> =
            (0..waiters).map(|_| worker(tally.without, &["lease", folder]).spawn().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(15));
        fs::write(home.path().join("go"), "").unwrap();
        let codes: Vec<Option<i32>> =
            children.into_iter().map(|mut child| child.wait().unwrap().code()).collect();
        tally.runs += 1;
        let two = codes.iter().filter(|code| **code == Some(1)).count();
        tally.expect(two == 0, Bad::TwoHolders, || format!("{two} of {waiters} saw another one inside"));
        let starved = codes.iter().filter(|code| **code == Some(2)).count();
        tally.expect(starved == 0, Bad::Wrong, || format!("{starved} never got it"));
        if tally.is_settled() {
            return;
        }
    }
}

/// This machine at another time: the seconds since its boot, as they are made of the real ones.
pub struct At<F: Fn(u64) -> u64>(pub F);

impl<F: Fn(u64) -> u64> Kernel for At<F> {
    fn me(&self) -> Owner {
        let me = Machine.me();
        Owner { boot_s: (self.0)(me.boot_s), ..me }
    }

    fn start_of(&self, pid: u32) -> Option<String> {
        Machine.start_of(pid)
    }

    fn rename_to_free(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        Machine.rename_to_free(from, to)
    }

    fn unique(&self) -> u64 {
        Machine.unique()
    }
}

/// Time runs three hundred times as fast: a lease is over after a tenth of a second.
fn fast(_: u64) -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    uptime.split(' ').next().unwrap().replace('.', "").parse::<u64>().unwrap() * 3
}

const LEASE_MS: u64 = 100;

/// What a counting worker writes down: commits that were acknowledged, commits that were refused because the
/// lease was lost, and whatever else happened.
#[derive(Default)]
struct Counts {
    acknowledged: u64,
    fenced: u64,
    strange: u64,
}

impl Counts {
    fn of(path: &Path) -> Counts {
        let mut bytes = [0; 24];
        let _ = fs::File::open(path).and_then(|file| file.read_at(&mut bytes, 0));
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        Counts { acknowledged: number(0), fenced: number(8), strange: number(16) }
    }

    fn write(&self, file: &fs::File) {
        let numbers = [self.acknowledged, self.fenced, self.strange];
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        file.write_all_at(&bytes, 0).unwrap();
    }
}

/// Adds one to a number in a file, under the lease, until it is killed.
pub fn count(folder: &Path, id: &str) {
    let (lock, number) = (folder.join("x.lock"), folder.join("number"));
    let file = fs::File::create(folder.join(id)).unwrap();
    let mut counts = Counts::default();
    loop {
        let Ok(Some(held)) = lockdir::acquire(&lock, Duration::from_secs(5), &At(fast)) else { continue };
        let value = fs::read_to_string(&number).unwrap_or_default().trim().parse::<u64>();
        std::thread::sleep(Duration::from_millis(1));
        let Ok(value) = value else {
            counts.strange += 1;
            counts.write(&file);
            continue;
        };
        match held.commit(&number, format!("{}\n", value + 1).as_bytes()) {
            Ok(()) => counts.acknowledged += 1,
            Err(e) if e.kind() == ErrorKind::NotFound => counts.fenced += 1,
            Err(_) => counts.strange += 1,
        }
        counts.write(&file);
    }
}

/// Six workers count together; some are killed, some are stopped for longer than their lease and woken again.
/// No acknowledged step may be missing, and none be there that nobody made.
pub fn counted(tally: &mut Tally) {
    let mut dice = Dice::new(tally.seed);
    let mut fenced = 0;
    for _ in 0..tally.rounds(4) {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("number"), "0\n").unwrap();
        let mut crowd = Crowd::new(home.path(), tally.without);
        crowd.disturb(Duration::from_millis(2_500), &mut dice);
        tally.faults += crowd.stops;
        tally.kills += crowd.end();
        tally.runs += 1;
        fenced += judge_number(home.path(), &crowd, tally);
        if tally.is_settled() {
            return;
        }
    }
    tally.expect(fenced > 0, Bad::Wrong, || "no holder came back after its lease".into());
}

/// Says how many commits were refused.
fn judge_number(home: &Path, crowd: &Crowd, tally: &mut Tally) -> u64 {
    let mut sum = Counts::default();
    for n in 1..=crowd.started {
        let counts = Counts::of(&home.join(format!("w{n}")));
        sum.acknowledged += counts.acknowledged;
        sum.fenced += counts.fenced;
        sum.strange += counts.strange;
    }
    let value: u64 = fs::read_to_string(home.join("number")).unwrap().trim().parse().unwrap_or(0);
    let Counts { acknowledged, fenced, strange } = sum;
    tally.expect(value >= acknowledged, Bad::Lost, || {
        format!("{acknowledged} steps were acknowledged, {value} are there")
    });
    // Whoever is killed between its commit and its word of it.
    tally.expect(value <= acknowledged + crowd.kills, Bad::Doubled, || {
        format!("{value} steps, {acknowledged} acknowledged, {} kills", crowd.kills)
    });
    tally.expect(strange == 0, Bad::Half, || format!("{strange} times the number was none, or no commit"));
    tally.expect(acknowledged > 20, Bad::Wrong, || format!("only {acknowledged} steps were made"));
    fenced
}

/// The workers of one round.
struct Crowd<'a> {
    home: &'a Path,
    without: &'static str,
    alive: Vec<Child>,
    /// Which of them are stopped, and until when.
    stopped: Vec<(u32, Instant)>,
    started: u64,
    kills: u64,
    stops: u64,
}

impl<'a> Crowd<'a> {
    fn new(home: &'a Path, without: &'static str) -> Crowd<'a> {
        let mut crowd =
            Crowd { home, without, alive: vec![], stopped: vec![], started: 0, kills: 0, stops: 0 };
        for _ in 0..6 {
            let child = crowd.start();
            crowd.alive.push(child);
        }
        crowd
    }

    fn start(&mut self) -> Child {
        self.started += 1;
        let id = format!("w{}", self.started);
        worker(self.without, &["count", self.home.to_str().unwrap(), &id]).spawn().unwrap()
    }

    fn disturb(&mut self, time: Duration, dice: &mut Dice) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.wake(Instant::now());
            self.age();
            // The holder is who it matters for.
            let at = match self.holder().filter(|_| dice.below(3) > 0) {
                Some(at) => at,
                None => dice.below(6) as usize,
            };
            let pid = self.alive[at].id();
            let is_stopped = self.stopped.iter().any(|(stopped, _)| *stopped == pid);
            if dice.once_in(4) {
                self.kill(at);
            } else if !is_stopped && self.stopped.len() < 3 {
                spawn::send(pid as i32, libc::SIGSTOP);
                let time = Duration::from_millis(LEASE_MS * 3 / 2 + dice.below(LEASE_MS));
                self.stopped.push((pid, Instant::now() + time));
                self.stops += 1;
            }
            std::thread::sleep(Duration::from_millis(10 + dice.below(30)));
        }
        self.wake(until + time);
        std::thread::sleep(Duration::from_millis(100));
    }

    fn wake(&mut self, now: Instant) {
        self.stopped.retain(|(pid, until)| {
            let is_due = *until <= now;
            if is_due {
                spawn::send(*pid as i32, libc::SIGCONT);
            }
            !is_due
        });
    }

    fn kill(&mut self, at: usize) {
        let next = self.start();
        let mut child = std::mem::replace(&mut self.alive[at], next);
        self.stopped.retain(|(pid, _)| *pid != child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        self.kills += 1;
    }

    /// Which of them holds the lease, by its token's name.
    fn holder(&self) -> Option<usize> {
        let mut entries = fs::read_dir(self.home.join("x.lock")).ok()?.flatten();
        let name = entries.next()?.file_name().to_string_lossy().into_owned();
        let pid: u32 = name.split('.').nth(1)?.parse().ok()?;
        self.alive.iter().position(|child| child.id() == pid)
    }

    /// What is decided by a file's time is over as fast as the rest.
    fn age(&self) {
        let lock = self.home.join("x.lock");
        let tokens = fs::read_dir(&lock).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in tokens.chain([lock.clone()]) {
            let Ok(file) = fs::File::open(&path) else { continue };
            let modified = file.metadata().and_then(|found| found.modified()).unwrap();
            if modified.elapsed().is_ok_and(|age| age.as_millis() as u64 > LEASE_MS) {
                let _ = file.set_modified(SystemTime::now() - Duration::from_secs(60));
            }
        }
    }

    /// Kills all of them; says how many were killed altogether.
    fn end(&mut self) -> u64 {
        for child in &mut self.alive {
            child.kill().unwrap();
            child.wait().unwrap();
            self.kills += 1;
        }
        self.kills
    }
}
