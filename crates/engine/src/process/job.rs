//! A child of our own that is fed, and that can work under a lock of ours: a delivery.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::capture::{Captured, Environment, abandon, collect, reader, wait_at_most};
use super::clock::Stopwatch;
use super::sys;
use crate::decide::signal::Ended;

/// A child to run.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its words, without its own name.
    pub args: &'a [OsString],
    /// Its environment.
    pub env: &'a Environment,
    /// Its working directory, by default ours.
    pub cwd: Option<&'a Path>,
    /// What it reads on its standard input; by default nothing.
    pub stdin: Option<&'a [u8]>,
    /// How long it may take.
    pub timeout: Duration,
    /// A file that it keeps open as long as it lives, and that makes it end with us: the lock under
    /// which it works. It gets a process group of its own, so that a terminal's `^C` does not cut it.
    pub under: Option<&'a File>,
}

impl Job<'_> {
    /// Runs it to its end, or ends it when it takes too long.
    ///
    /// # Errors
    /// It could not be started.
    pub fn run(&self) -> io::Result<Captured> {
        let mut command = Command::new(self.program);
        command.args(self.args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        if let Environment::Given(entries) = self.env {
            command.env_clear().envs(entries.iter().map(|(name, value)| (name, value)));
        }
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        if let Some(lock) = self.under {
            command.process_group(0);
            sys::live_under(&mut command, lock.as_raw_fd());
        }
        let stopwatch = Stopwatch::start();
        let mut child = command.spawn()?;
        if let (Some(pipe), Some(bytes)) = (child.stdin.take(), self.stdin) {
            feed(pipe, bytes.to_vec());
        }
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let readers =
            reader(out).and_then(|out| Ok((out, reader(err)?))).inspect_err(|_| abandon(&mut child))?;
        let timed_out = !wait_at_most(&mut child, self.timeout, &stopwatch)?;
        if timed_out {
            child.kill()?;
        }
        let status = child.wait()?;
        let ended = status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or(0)), Ended::Code);
        let ms = stopwatch.ms();
        Ok(Captured { ended, stdout: collect(readers.0), stderr: collect(readers.1), ms, timed_out })
    }
}

/// Whoever does not read its input ends the feeding; that is its own affair.
fn feed(mut pipe: std::process::ChildStdin, bytes: Vec<u8>) {
    std::thread::spawn(move || {
        let _ = io::Write::write_all(&mut pipe, &bytes);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reads_what_it_is_fed_and_need_not() {
        let env = Environment::Inherited;
        let big = vec![b'x'; 1 << 20];
        let run = |script: &str| {
            let args = ["-c".into(), script.into()];
            let timeout = Duration::from_secs(10);
            let program = Path::new("/bin/sh");
            let job =
                Job { program, args: &args, env: &env, cwd: None, stdin: Some(&big), timeout, under: None };
            job.run().unwrap()
        };
        assert_eq!(run("wc -c").stdout.trim_ascii(), b"1048576");
        assert_eq!(run("exit 4").ended, Ended::Code(4));
    }

    #[test]
    fn a_child_keeps_the_lock_it_works_under() {
        let lock = tempfile::NamedTempFile::new().unwrap();
        let env = Environment::Inherited;
        let script = format!("ls -l /proc/self/fd | grep -c {}", lock.path().display());
        let args = ["-c".into(), script.into()];
        let run = |under| {
            let timeout = Duration::from_secs(10);
            let program = Path::new("/bin/sh");
            Job { program, args: &args, env: &env, cwd: None, stdin: None, timeout, under }.run().unwrap()
        };
        assert_eq!(run(None).stdout, b"0\n");
        #[cfg(target_os = "linux")]
        assert_eq!(run(Some(lock.as_file())).stdout, b"1\n");
    }
}
