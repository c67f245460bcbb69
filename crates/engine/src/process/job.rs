//! A child of our own that is fed, and that can work under a lock of ours: a delivery.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use super::capture::{self, Captured, Environment, Manner, Trouble, reader};
use super::sys;

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
    /// [`Trouble`]: it was not started, or it was and nobody knows how it ended.
    pub fn run(&self) -> Result<Captured, Trouble> {
        let mut command = capture::command(self.program, self.args, self.env, self.cwd);
        if let Some(lock) = self.under {
            command.process_group(0);
            sys::live_under(&mut command, lock.as_raw_fd());
        }
        capture::follow(command, self.stdin, self.timeout, Manner { listen: reader, end: Child::kill })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::signal::Ended;

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
