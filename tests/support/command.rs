//! One command of a sandbox: everything it is given, piece by piece.

use super::bytes::escape;
use super::running::{Ends, Run, Running};
use super::sandbox::Sandbox;
use super::spawn::{Group, Spawn};
use super::streams::{Out, Stdin};
use std::ffi::{CString, OsStr};
use std::fmt::Write as _;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// One command to run.
pub struct Call<'s> {
    sandbox: &'s Sandbox,
    program: PathBuf,
    argv: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    cwd: PathBuf,
    cwd_is_removed: bool,
    stdin: Stdin,
    stdout: Out,
    stderr: Out,
    extra: Vec<(i32, PathBuf)>,
    ignored: Vec<i32>,
    blocked: Vec<i32>,
    umask: libc::mode_t,
    limits: Vec<(i32, libc::rlim_t)>,
    own_group: bool,
}

impl<'s> Call<'s> {
    /// `program` with `argv0` and `args`, in the sandbox's environment.
    pub fn new<A: AsRef<OsStr>>(sandbox: &'s Sandbox, program: PathBuf, argv0: &str, args: &[A]) -> Self {
        let mut argv = vec![argv0.as_bytes().to_vec()];
        argv.extend(args.iter().map(|a| a.as_ref().as_bytes().to_vec()));
        let path =
            [sandbox.path("bin"), sandbox.path("real")].map(|p| p.into_os_string().into_string().unwrap());
        let call = Call {
            sandbox,
            program,
            argv,
            env: Vec::new(),
            cwd: sandbox.path("work"),
            cwd_is_removed: false,
            stdin: Stdin::Null,
            stdout: Out::Pipe,
            stderr: Out::Pipe,
            extra: Vec::new(),
            ignored: Vec::new(),
            blocked: Vec::new(),
            umask: 0o022,
            limits: Vec::new(),
            own_group: false,
        };
        call.env("PATH", path.join(":"))
            .env("HOME", sandbox.path("home"))
            .env("BOB_HOME", sandbox.path("bob"))
            .env("TMPDIR", sandbox.path("tmp"))
            .env("GH_CONFIG_DIR", sandbox.path("home/gh"))
            .env("GH_TOKEN", "test-token")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("GH_TELEMETRY", "0")
            .env("BOB_FORGE_BUDGET", "0")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
    }

    /// Sets one variable (replaces an earlier value).
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self = self.env_remove(name);
        let mut entry = format!("{name}=").into_bytes();
        entry.extend_from_slice(value.as_ref().as_bytes());
        self.env.push(entry);
        self
    }

    /// Removes one variable.
    pub fn env_remove(mut self, name: &str) -> Self {
        let prefix = format!("{name}=");
        self.env.retain(|e| !e.starts_with(prefix.as_bytes()));
        self
    }

    /// Appends one entry as it is, be it twice or without `=`.
    pub fn env_entry(mut self, entry: impl Into<Vec<u8>>) -> Self {
        self.env.push(entry.into());
        self
    }

    /// Removes every variable.
    pub fn env_clear(mut self) -> Self {
        self.env.clear();
        self
    }

    /// Sets PATH to these folders.
    pub fn search_path(self, folders: &[&Path]) -> Self {
        let joined = std::env::join_paths(folders).unwrap();
        self.env("PATH", joined)
    }

    /// Replaces argv\[0\].
    pub fn argv0(mut self, word: impl Into<Vec<u8>>) -> Self {
        self.argv[0] = word.into();
        self
    }

    /// Appends one word, in any bytes.
    pub fn arg(mut self, word: impl Into<Vec<u8>>) -> Self {
        self.argv.push(word.into());
        self
    }

    /// Replaces the program that is started (argv\[0\] stays).
    pub fn at(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets the working directory.
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = folder.into();
        self
    }

    /// Starts in a working directory that no longer exists.
    pub fn in_removed_folder(mut self) -> Self {
        self.cwd = self.sandbox.path("removed");
        self.cwd_is_removed = true;
        self
    }

    /// Sets where stdin comes from.
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets where stdout goes.
    pub fn stdout(mut self, out: Out) -> Self {
        self.stdout = out;
        self
    }

    /// Sets where stderr goes.
    pub fn stderr(mut self, out: Out) -> Self {
        self.stderr = out;
        self
    }

    /// `2>&1`.
    pub fn merged(self) -> Self {
        self.stderr(Out::Merged)
    }

    /// Hands on descriptor `number`, open on a file of the sandbox.
    pub fn extra_fd(mut self, number: i32, file: &str) -> Self {
        let path = self.sandbox.file(file, "extra");
        self.extra.push((number, path));
        self
    }

    /// Starts with this signal ignored.
    pub fn ignoring(mut self, signal: i32) -> Self {
        self.ignored.push(signal);
        self
    }

    /// Starts with this signal blocked.
    pub fn blocking(mut self, signal: i32) -> Self {
        self.blocked.push(signal);
        self
    }

    /// Sets the umask.
    pub fn umask(mut self, umask: libc::mode_t) -> Self {
        self.umask = umask;
        self
    }

    /// Sets a soft limit (`RLIMIT_…`).
    pub fn limit(mut self, resource: i32, soft: libc::rlim_t) -> Self {
        self.limits.push((resource, soft));
        self
    }

    /// Gives it a process group of its own.
    pub fn in_own_group(mut self) -> Self {
        self.own_group = true;
        self
    }

    /// Runs it to its end and to the end of its streams.
    pub fn run(self) -> Run {
        let running = self.start();
        running.finish()
    }

    /// Starts it.
    pub fn start(self) -> Running<'s> {
        if self.cwd_is_removed {
            fs::create_dir_all(&self.cwd).unwrap();
        }
        let mut ends = Ends::open(&self.stdin, [&self.stdout, &self.stderr], &self.sandbox.path("tmp"));
        for (number, path) in &self.extra {
            let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
            ends.given.push((*number, file.into()));
        }
        let spawn = self.to_spawn(&ends);
        self.sandbox.note(&self.to_text());
        let started = Instant::now();
        let pid = spawn.start().unwrap();
        Running::new(self.sandbox, pid, ends, started)
    }

    fn to_spawn(&self, ends: &Ends) -> Spawn {
        let strings = |list: &[Vec<u8>]| list.iter().map(|s| CString::new(s.clone()).unwrap()).collect();
        let path = |p: &Path| CString::new(p.as_os_str().as_bytes()).unwrap();
        Spawn {
            program: path(&self.program),
            argv: strings(&self.argv),
            env: strings(&self.env),
            cwd: path(&self.cwd),
            cwd_is_removed: self.cwd_is_removed,
            fds: ends.given.iter().map(|(n, fd)| (*n, fd.as_raw_fd())).collect(),
            ignored: self.ignored.clone(),
            blocked: self.blocked.clone(),
            umask: self.umask,
            limits: self.limits.clone(),
            group: match (ends.terminal_fd, self.own_group) {
                (Some(fd), _) => Group::Session(fd),
                (None, true) => Group::Own,
                (None, false) => Group::Inherited,
            },
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!("--- {}\n", self.program.display());
        for word in &self.argv {
            let shown = escape(&word[..word.len().min(200)]);
            let _ = writeln!(text, "  arg {shown}");
        }
        for entry in &self.env {
            let _ = writeln!(text, "  env {}", escape(&entry[..entry.len().min(200)]));
        }
        let _ = writeln!(text, "  stdout {:?}, stderr {:?}", self.stdout, self.stderr);
        text
    }
}
