//! Who holds a lease, where numbers of processes are used again or belong to another numbering.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::store::lockdir::{self, Lease};

use super::leases::At;
use super::tally::{Bad, Tally};
use super::workers::{apart, worker};
use crate::support::spawn;

fn take(folder: &Path, later_s: u64) -> Option<Lease> {
    lockdir::acquire(&folder.join("x.lock"), Duration::ZERO, &At(|boot_s| boot_s + later_s)).unwrap()
}

/// Takes the lease, says so, and keeps it.
pub fn keep(folder: &Path) {
    let _held = take(folder, 0).expect("the lease");
    println!("held");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// A process that keeps the lease; it is killed with this value.
struct Keeper(Child);

impl Keeper {
    fn start(mut command: Command) -> Keeper {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "held\n");
        Keeper(child)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn keeper(folder: &Path) -> Keeper {
    Keeper::start(worker("", &["keep", folder.to_str().unwrap()]))
}

/// A live owner is never taken over within its lease, a dead one at once, whoever has its number now.
pub fn owners(tally: &mut Tally) {
    for _ in 0..20 {
        dead_or_alive(tally);
        used_again(tally);
        if tally.is_settled() {
            return;
        }
    }
    for own_proc in [true, false] {
        if let Err(why) = another_numbering(own_proc, tally) {
            tally.why_not = Some(format!("no numbering of its own: {why}"));
            return;
        }
    }
}

fn dead_or_alive(tally: &mut Tally) {
    let home = tempfile::tempdir().unwrap();
    let keeper = keeper(home.path());
    tally.runs += 1;
    tally.expect(take(home.path(), 0).is_none(), Bad::TwoHolders, || "a live owner was taken over".into());
    spawn::send(keeper.0.id() as i32, libc::SIGSTOP);
    tally.expect(take(home.path(), 20).is_none(), Bad::TwoHolders, || {
        "a stopped owner, within its lease".into()
    });
    drop(keeper);
    tally.kills += 1;
    tally.expect(take(home.path(), 0).is_some(), Bad::Wrong, || "a dead owner's lease goes on".into());
}

/// The owner is dead, and this very process has its number.
fn used_again(tally: &mut Tally) {
    let home = tempfile::tempdir().unwrap();
    std::mem::forget(take(home.path(), 0).unwrap());
    let token = fs::read_dir(home.path().join("x.lock")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&token).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1] = "1";
    fs::write(&token, lines.join("\n") + "\n").unwrap();
    tally.runs += 1;
    let taken = take(home.path(), 0);
    tally.expect(taken.is_some(), Bad::Wrong, || {
        "a number that is used again keeps a dead owner's lease".into()
    });
}

/// Owners in a numbering of their own, seen from there and from here; with a `/proc` of that numbering, or the
/// one of this.
fn another_numbering(own_proc: bool, tally: &mut Tally) -> Result<(), String> {
    let flags: &[&str] = if own_proc { &["--pid", "--fork", "--mount-proc"] } else { &["--pid", "--fork"] };
    let flags = [flags, &["--kill-child"]].concat();
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().to_str().unwrap();
    let keeper = Keeper::start(apart(&flags, "", &["keep", folder])?);
    let what = if own_proc { "with its own /proc" } else { "with another's /proc" };
    tally.runs += 1;
    tally.expect(take(home.path(), 0).is_none(), Bad::TwoHolders, || {
        format!("an owner in another numbering {what} was taken over by its number")
    });
    drop(keeper);
    tally.expect(take(home.path(), 31).is_some(), Bad::Wrong, || {
        format!("the lease of a dead owner in another numbering {what} never ends")
    });
    let home = tempfile::tempdir().unwrap();
    let mut inside = apart(&flags, tally.without, &["numbering", home.path().to_str().unwrap()])?;
    let done = inside.output().map_err(|e| e.to_string())?;
    tally.runs += 1;
    tally.expect(done.status.success(), Bad::Wrong, || String::from_utf8_lossy(&done.stderr).into_owned());
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        tally.bad(Bad::TwoHolders, format!("{what}: {line}"));
    }
    Ok(())
}

/// In a numbering of its own: owner and waiter share it. Says what is not as it should be.
pub fn inside(folder: &Path) {
    // A number that nobody has in another one's `/proc`.
    let free = (30_000..).find(|n| !Path::new(&format!("/proc/{n}")).exists()).unwrap();
    let next_is = |pid: u32| fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string());
    let _ = next_is(free);
    let mut first = keeper(folder);
    if take(folder, 0).is_some() {
        println!("a live owner was taken over");
    }
    let pid = first.0.id();
    // The kernel counts in hundredths of a second.
    std::thread::sleep(Duration::from_millis(30));
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let tells = engine::process::kernel::start_of(std::process::id()).is_some_and(|start| !start.is_empty());
    // The next process gets the dead one's number.
    let reused = next_is(pid).ok().and_then(|()| Command::new("/bin/sleep").arg("60").spawn().ok());
    let is_same = reused.as_ref().is_some_and(|child| child.id() == pid);
    // Where nobody can tell two processes of one number apart, only the lease's end decides.
    let later_s = if is_same && !tells { 31 } else { 0 };
    if take(folder, later_s).is_none() {
        println!("a dead owner's lease goes on, its number used again: {is_same}");
    }
    if let Some(mut child) = reused {
        let _ = child.kill();
        let _ = child.wait();
    }
}
