//! Who swaps files while they are used.

use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::scene::Scene;
use super::tally::Tally;
use crate::support::dice::Dice;

/// What may be shown nowhere.
pub const SECRET: &str = "TOKEN=ghp_canarySWAP\n";

/// One who swaps files, with a folder of its own for what it puts in their places.
pub struct Swapper {
    own: PathBuf,
    secret: PathBuf,
    pub dice: Dice,
}

impl Swapper {
    fn new(scene: &Scene, n: u64, seed: u64) -> Swapper {
        let own = scene.sandbox.path(format!("foreign/{n}"));
        fs::create_dir_all(&own).unwrap();
        let secret = scene.sandbox.file(&format!("foreign/{n}.secret"), SECRET);
        Swapper { own, secret, dice: Dice::new(seed + n) }
    }

    /// A file with these bytes takes the name.
    pub fn put(&self, at: &Path, bytes: &[u8]) {
        let aside = self.own.join("put");
        write_closed(&aside, bytes);
        let _ = fs::rename(&aside, at);
    }

    /// A file with these bytes, and what stood there goes into the folder of our own; and back.
    pub fn exchange(&self, at: &Path, bytes: &[u8]) {
        let aside = self.own.join("exchanged");
        write_closed(&aside, bytes);
        exchange(&aside, at);
        std::thread::yield_now();
        exchange(&aside, at);
    }

    /// The file itself gets other bytes, then its own again.
    pub fn rewrite(&self, at: &Path, bytes: &[u8], original: &[u8]) {
        for bytes in [bytes, original] {
            let options =
                fs::File::options().write(true).truncate(true).custom_flags(libc::O_NONBLOCK).open(at);
            if let Ok(mut file) = options {
                let _ = file.write_all(bytes);
            }
        }
    }

    /// What is no plain file of ours takes the name.
    pub fn disguise(&mut self, at: &Path) {
        let aside = self.own.join("disguise");
        let _ = fs::remove_file(&aside);
        let _ = match self.dice.below(5) {
            0 => symlink(&self.secret, &aside),
            1 => symlink("/dev/zero", &aside),
            2 => fs::hard_link(&self.secret, &aside),
            3 => make_fifo(&aside),
            _ => fs::File::create(&aside).and_then(|file| file.set_len(1 << 40)),
        };
        let _ = fs::rename(&aside, at);
    }

    /// A whole folder with this one file takes the folder's place, by itself or through a symlink; whatever
    /// stood there is given back, or goes.
    pub fn swap_folder(&mut self, at: &Path, name: &str, bytes: &[u8], keeps: bool) {
        let aside = self.own.join("folder");
        let _ = fs::remove_dir_all(&aside);
        let _ = fs::remove_file(&aside);
        let real = self.own.join("real");
        let through_link = !keeps && self.dice.once_in(2);
        let made = if through_link { &real } else { &aside };
        let _ = fs::create_dir_all(made);
        write_closed(&made.join(name), bytes);
        if through_link {
            let _ = symlink(&real, &aside);
        }
        exchange(&aside, at);
        if !keeps {
            std::thread::yield_now();
            exchange(&aside, at);
        }
    }

    pub fn pause(&mut self, most_us: u64) {
        std::thread::sleep(Duration::from_micros(self.dice.below(most_us)));
    }
}

fn write_closed(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    let file = fs::File::options().write(true).create_new(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| file.write_all(bytes));
}

fn make_fifo(path: &Path) -> std::io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a string that outlives the call. What it says is not asked: the name may be taken.
    unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
    Ok(())
}

/// Lets two names change places.
fn exchange(one: &Path, other: &Path) {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let (one, other, here) = (text(one), text(other), libc::AT_FDCWD);
    // SAFETY: two strings that outlive the call.
    unsafe {
        libc::syscall(libc::SYS_renameat2, here, one.as_ptr(), here, other.as_ptr(), libc::RENAME_EXCHANGE);
    }
}

/// Two swappers at work, until `runs` runs are over or the time is.
pub fn while_swapping(
    scene: &Scene,
    tally: &mut Tally,
    (runs, time): (u64, Duration),
    swap: impl Fn(&mut Swapper) + Sync,
    mut run: impl FnMut(&RwLock<()>, &mut Tally),
) {
    let (is_over, gate) = (AtomicBool::new(false), RwLock::new(()));
    std::thread::scope(|threads| {
        for n in 0..2 {
            let mut swapper = Swapper::new(scene, n, tally.seed);
            let (is_over, gate, swap) = (&is_over, &gate, &swap);
            threads.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let turn = gate.read();
                    swap(&mut swapper);
                    drop(turn);
                }
            });
        }
        let until = Instant::now() + time;
        for _ in 0..runs {
            if Instant::now() > until || tally.is_settled() {
                break;
            }
            tally.runs += 1;
            run(&gate, tally);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
