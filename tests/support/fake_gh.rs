//! A `gh` that does what a script says and writes down what it was given.
//!
//! It observes itself before it does anything, and it has no runtime of its own (`no_main`): Rust's
//! start-up would open closed descriptors and ignore SIGPIPE, which are two of the things it reports.
//!
//! The script is the file that `FAKE_GH_SCRIPT` names, else `fake-gh.script` beside this binary. The
//! records go to the folder `SCRIPT.log`: `0001.call` (see `record.rs`) and, once read, `0001.stdin`.
//!
//! ```text
//! on issue create #1        the first call whose words hold `issue`, `create` in this order
//!   err HTTP 502\n          bytes, with the escapes of `u8::escape_ascii`
//!   exit 1
//! on issue create           every other one (the first section that fits is taken)
//!   stdin
//!   out https://github.com/acme/widget/issues/7\n
//! on *                      any call
//!   exit 0
//! ```
//!
//! Steps (file names are relative to the script's folder):
//! - `out BYTES`, `err BYTES`, `out-file FILE`, `out-mb N`, `err-mb N` (MiB of a fixed pattern),
//!   `alternate N` (N pairs of one line on stdout and one on stderr)
//! - `stdin` (read it all and record it), `cat` (stdin to stdout)
//! - `sleep MS`, `touch FILE`, `append FILE BYTES`, `wait FILE`
//! - `count SIG`, `await-count N`, `out-count` (how often the signal came)
//! - `exit N`, `die SIG`, `stop`, `ignore SIG`, `trap SIG CODE`, `go-pipe` (a broken pipe is a death by
//!   SIGPIPE, as in Go), `close FD`, `exec WORDS`
//! - `grandchild FD FILE BYTES`: a child that keeps only FD open, waits for FILE, writes BYTES and touches
//!   `FILE.done`
#![no_main]
#![allow(unsafe_code, clippy::disallowed_methods, reason = "a test program that plays a whole process")]

#[path = "bytes.rs"]
mod bytes;
#[path = "fake_acts.rs"]
mod fake_acts;
#[path = "fake_observe.rs"]
mod fake_observe;

use fake_acts::{die, exec, read_all_of_stdin, signal, trap, write_all};
use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a step waits for a file before it gives the test up.
const WAIT_LIMIT_S: u64 = 60;
/// Exit codes of the fake itself, outside what a script uses.
const NO_SCRIPT: c_int = 99;
const GAVE_UP: c_int = 98;

#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the system's own argument vector, `argc` strings that live as long as the process.
    let words: Vec<Vec<u8>> =
        (0..argc as usize).map(|i| unsafe { CStr::from_ptr(*argv.add(i)) }.to_bytes().to_vec()).collect();
    let seen = fake_observe::everything(&words);
    fake_acts::lift_limits();
    let Some(mut fake) = Fake::new() else {
        let _ = write_all(2, b"fake gh: no script\n");
        return NO_SCRIPT;
    };
    fake.record(&seen);
    fake.play(&words)
}

struct Fake {
    script: PathBuf,
    log: PathBuf,
    call: usize,
    go_pipe: bool,
}

impl Fake {
    fn new() -> Option<Fake> {
        let script = match variable(b"FAKE_GH_SCRIPT=") {
            Some(path) => PathBuf::from(std::ffi::OsString::from_vec(path)),
            None => std::env::current_exe().ok()?.with_file_name("fake-gh.script"),
        };
        if !script.is_file() {
            return None;
        }
        let mut log = script.clone().into_os_string();
        log.push(".log");
        let log = PathBuf::from(log);
        fs::create_dir_all(&log).ok()?;
        let call = claim(&log, "");
        Some(Fake { script, log, call, go_pipe: false })
    }

    /// Writes the record whole, by rename, so that a reader never sees half of one.
    fn record(&self, seen: &str) {
        let name = self.log.join(format!("{:04}.call", self.call));
        put(&name, seen.as_bytes());
    }

    fn play(&mut self, words: &[Vec<u8>]) -> c_int {
        let Ok(text) = fs::read_to_string(&self.script) else { return NO_SCRIPT };
        let Some(steps) = self.section(&text, words.get(1..).unwrap_or_default()) else {
            let _ = write_all(2, b"fake gh: no section for this call\n");
            return NO_SCRIPT;
        };
        for step in steps {
            if let Some(code) = self.step(step) {
                return code;
            }
        }
        0
    }

    /// The steps of the first section that fits: its words are in argv in order, and its `#N` is this call's
    /// number among the calls that fit these words.
    fn section<'t>(&self, text: &'t str, argv: &[Vec<u8>]) -> Option<Vec<&'t str>> {
        let mut counted: Vec<(String, usize)> = Vec::new();
        let mut lines = text.lines().map(str::trim_start).filter(|l| !l.is_empty() && !l.starts_with("//"));
        let mut head = lines.find(|l| l.starts_with("on "))?;
        loop {
            let mut steps = Vec::new();
            let next = lines.find(|l| {
                let is_head = l.starts_with("on ");
                if !is_head {
                    steps.push(*l);
                }
                is_head
            });
            let (words, nth) = pattern(head);
            if fits(&words, argv) {
                let key = words.join(" ");
                let count = match counted.iter().find(|(k, _)| *k == key) {
                    Some((_, n)) => *n,
                    None => {
                        let n = claim(&self.log, &format!("{}.", hash(&key)));
                        counted.push((key, n));
                        n
                    }
                };
                if nth.is_none_or(|n| n == count) {
                    return Some(steps);
                }
            }
            head = next?;
        }
    }

    /// One step; a number ends the process with it.
    fn step(&mut self, line: &str) -> Option<c_int> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "out" => return self.print(1, &bytes::unescape(rest)),
            "err" => return self.print(2, &bytes::unescape(rest)),
            "out-file" => return self.print(1, &fs::read(self.path(rest)).unwrap_or_default()),
            "out-mb" => return self.print_much(1, number(rest)),
            "err-mb" => return self.print_much(2, number(rest)),
            "alternate" => return self.alternate(number(rest)),
            "stdin" => put(&self.log.join(format!("{:04}.stdin", self.call)), &read_all_of_stdin()),
            "cat" => return self.print(1, &read_all_of_stdin()),
            "sleep" => std::thread::sleep(Duration::from_millis(number(rest) as u64)),
            "touch" => put(&self.path(rest), b""),
            "append" => self.append(rest),
            "wait" => return wait_for(&self.path(rest)),
            "exit" => return Some(number(rest) as c_int),
            "die" => die(signal(rest)),
            // SAFETY: a signal to this process itself.
            "stop" => drop(unsafe { libc::raise(libc::SIGSTOP) }),
            // SAFETY: SIG_IGN is a valid disposition for every signal a script names.
            "ignore" => drop(unsafe { libc::signal(signal(rest), libc::SIG_IGN) }),
            "trap" => trap(rest),
            "count" => fake_acts::count(signal(rest)),
            "await-count" => return wait_until(|| fake_acts::counted() >= number(rest)),
            "out-count" => return self.print(1, format!("{}\n", fake_acts::counted()).as_bytes()),
            "go-pipe" => self.go_pipe = true,
            // SAFETY: closing a descriptor that nothing in this process owns.
            "close" => drop(unsafe { libc::close(number(rest) as c_int) }),
            "exec" => exec(rest),
            "grandchild" => self.grandchild(rest),
            _ => {
                let _ = write_all(2, format!("fake gh: unknown step {line}\n").as_bytes());
                return Some(NO_SCRIPT);
            }
        }
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.script.parent().unwrap_or(Path::new("/")).join(name)
    }

    /// Writes like gh: an error on stdout is one line on stderr and exit 1, one on stderr goes unnoticed, and a
    /// broken pipe is what the script says.
    fn print(&self, fd: c_int, bytes: &[u8]) -> Option<c_int> {
        match write_all(fd, bytes) {
            Ok(()) | Err(libc::EBADF) => None,
            Err(libc::EPIPE) if self.go_pipe => {
                // As Go does: not when SIGPIPE was ignored on purpose.
                if !fake_observe::is_ignored(libc::SIGPIPE) {
                    die(libc::SIGPIPE);
                }
                Some(1)
            }
            Err(errno) if fd == 2 && errno != libc::EPIPE => None,
            Err(errno) => {
                let _ = write_all(2, format!("write failed: errno {errno}\n").as_bytes());
                Some(1)
            }
        }
    }

    fn print_much(&self, fd: c_int, mebibytes: usize) -> Option<c_int> {
        let block: Vec<u8> = (0..1 << 20).map(|i: usize| (i * 31 % 251) as u8).collect();
        (0..mebibytes).find_map(|_| self.print(fd, &block))
    }

    fn alternate(&self, pairs: usize) -> Option<c_int> {
        (0..pairs).find_map(|i| {
            self.print(1, format!("out {i}\n").as_bytes())
                .or_else(|| self.print(2, format!("err {i}\n").as_bytes()))
        })
    }

    fn append(&self, rest: &str) {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(self.path(name)) {
            let _ = file.write_all(&bytes::unescape(text));
        }
    }

    fn grandchild(&self, rest: &str) {
        let mut parts = rest.splitn(3, ' ');
        let fd = number(parts.next().unwrap_or("2")) as c_int;
        let gate = self.path(parts.next().unwrap_or("gate"));
        let text = bytes::unescape(parts.next().unwrap_or(""));
        // SAFETY: this process has one thread; the child only writes, waits and ends.
        unsafe {
            if libc::fork() != 0 {
                return;
            }
            for other in (0..3).filter(|other| *other != fd) {
                libc::close(other);
            }
        }
        if wait_for(&gate).is_none() && write_all(fd, &text).is_ok() {
            put(&gate.with_added_extension("done"), b"");
        }
        // SAFETY: ends the forked child without running anything of its parent's.
        unsafe { libc::_exit(0) }
    }
}

/// `on WORDS #N` taken apart; `*` stands for no words.
fn pattern(head: &str) -> (Vec<&str>, Option<usize>) {
    let mut words: Vec<&str> = head.split_whitespace().skip(1).filter(|w| *w != "*").collect();
    let nth = words.last().and_then(|w| w.strip_prefix('#')).and_then(|n| n.parse().ok());
    if nth.is_some() {
        words.pop();
    }
    (words, nth)
}

fn fits(words: &[&str], argv: &[Vec<u8>]) -> bool {
    let mut argv = argv.iter();
    words.iter().all(|word| argv.any(|arg| arg == word.as_bytes()))
}

/// The next free number under `prefix`, taken by creating its file: two calls never share one.
fn claim(log: &Path, prefix: &str) -> usize {
    (1..)
        .find(|n| {
            let name = log.join(format!("{prefix}{n:04}.claim"));
            !matches!(OpenOptions::new().write(true).create_new(true).open(name),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists)
        })
        .unwrap_or(0)
}

fn hash(text: &str) -> String {
    let sum =
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("{sum:016x}")
}

fn number(text: &str) -> usize {
    text.trim().parse().unwrap_or(0)
}

fn wait_for(path: &Path) -> Option<c_int> {
    wait_until(|| path.exists())
}

fn wait_until(done: impl Fn() -> bool) -> Option<c_int> {
    for _ in 0..WAIT_LIMIT_S * 500 {
        if done() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(GAVE_UP)
}

fn put(path: &Path, content: &[u8]) {
    let temporary = path.with_added_extension(format!("{}.tmp", std::process::id()));
    if fs::write(&temporary, content).is_ok() {
        let _ = fs::rename(&temporary, path);
    }
}

fn variable(prefix: &[u8]) -> Option<Vec<u8>> {
    fake_observe::environment().into_iter().find_map(|e| Some(e.strip_prefix(prefix)?.to_vec()))
}
