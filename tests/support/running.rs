//! A command that runs, the ends of its streams, and what became of it.

use super::bytes::escape;
use super::sandbox::Sandbox;
use super::spawn::{self, Exit};
use super::streams::{self, Collected, Out, Stdin};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The descriptors of a command that is about to start.
#[derive(Default)]
pub struct Ends {
    /// Number in the child, and the end it gets.
    pub given: Vec<(i32, OwnedFd)>,
    /// Which of its descriptors is the terminal.
    pub terminal_fd: Option<i32>,
    outputs: Vec<(i32, Source)>,
    threads: Vec<JoinHandle<()>>,
    terminal: Option<(OwnedFd, OwnedFd)>,
    stdout_appends: bool,
}

/// Where what a command wrote can be read.
enum Source {
    Collected(Collected),
    File(PathBuf),
}

impl Ends {
    /// Opens stdin, and stdout and stderr; files lie in `folder`.
    pub fn open(stdin: &Stdin, outs: [&Out; 2], folder: &Path) -> Ends {
        let mut ends = Ends::default();
        if outs.contains(&&Out::Tty) || *stdin == Stdin::Tty {
            ends.terminal = Some(streams::terminal());
        }
        ends.open_stdin(stdin, folder);
        ends.open_output(1, outs[0], folder);
        ends.stdout_appends = *outs[0] == Out::Append;
        ends.open_output(2, outs[1], folder);
        ends
    }

    fn open_stdin(&mut self, stdin: &Stdin, folder: &Path) {
        let fd = match stdin {
            Stdin::Closed => return,
            Stdin::Null => streams::device("/dev/null"),
            Stdin::Tty => self.slave(0),
            Stdin::File(bytes) => {
                let path = folder.join("stdin");
                fs::write(&path, bytes).unwrap();
                fs::File::open(path).unwrap().into()
            }
            Stdin::Socket(bytes) => {
                let (ours, theirs) = streams::sockets();
                streams::feed(ours, bytes.clone());
                theirs
            }
            Stdin::Bytes(bytes) => {
                let (read, write) = streams::pipe();
                streams::feed(write, bytes.clone());
                read
            }
        };
        self.given.push((0, fd));
    }

    fn open_output(&mut self, number: i32, out: &Out, folder: &Path) {
        let file = folder.join(format!("output{number}"));
        let fd = match out {
            Out::Closed => return,
            Out::Null => streams::device("/dev/null"),
            Out::Full => streams::device("/dev/full"),
            Out::Tty => self.slave(number),
            Out::Pipe => self.collect(number, usize::MAX, Duration::ZERO),
            Out::SlowPipe => self.collect(number, usize::MAX, Duration::from_millis(1)),
            Out::PipeThatCloses(bytes) => self.collect(number, *bytes, Duration::ZERO),
            Out::Socket { nonblocking } => self.collect_from(number, streams::sockets(), *nonblocking),
            Out::NonblockingPipe => self.collect_from(number, streams::pipe(), true),
            Out::Merged => match self.given.iter().find(|(n, _)| *n == 1) {
                Some((_, stdout)) => stdout.try_clone().unwrap(),
                None => return,
            },
            Out::SameFileAgain => streams::output_file(&folder.join("output1"), self.stdout_appends),
            Out::File | Out::Append => {
                self.outputs.push((number, Source::File(file.clone())));
                streams::output_file(&file, *out == Out::Append)
            }
        };
        self.given.push((number, fd));
    }

    fn slave(&mut self, number: i32) -> OwnedFd {
        self.terminal_fd.get_or_insert(number);
        self.terminal.as_ref().unwrap().1.try_clone().unwrap()
    }

    fn collect_from(
        &mut self,
        number: i32,
        (ours, theirs): (OwnedFd, OwnedFd),
        nonblocking: bool,
    ) -> OwnedFd {
        if nonblocking {
            streams::set_nonblocking(&theirs);
        }
        let (collected, thread) = Collected::start(ours, usize::MAX, Duration::from_millis(1));
        self.threads.push(thread);
        self.outputs.push((number, Source::Collected(collected)));
        theirs
    }

    fn collect(&mut self, number: i32, limit: usize, pause: Duration) -> OwnedFd {
        let (read, write) = streams::pipe();
        let (collected, thread) = Collected::start(read, limit, pause);
        if limit == 0 {
            // Closed before the command starts, not some time after.
            thread.join().unwrap();
        } else {
            self.threads.push(thread);
        }
        self.outputs.push((number, Source::Collected(collected)));
        write
    }
}

/// A command that runs.
pub struct Running<'s> {
    sandbox: &'s Sandbox,
    /// Its process id.
    pub pid: i32,
    given: Vec<(i32, String)>,
    outputs: Vec<(i32, Source)>,
    threads: Vec<JoinHandle<()>>,
    terminal: Option<OwnedFd>,
    started: Instant,
    exit: Option<(Exit, Duration)>,
}

impl<'s> Running<'s> {
    /// Takes over a command that was just started with `ends`.
    pub fn new(sandbox: &'s Sandbox, pid: i32, ends: Ends, started: Instant) -> Self {
        let Ends { given, mut outputs, mut threads, terminal, .. } = ends;
        let identities = given.iter().map(|(n, fd)| (*n, streams::identity(fd))).collect();
        drop(given);
        // Dropping this process's copy of the command's side lets the terminal end with the command.
        let terminal = terminal.map(|(typed_on, _)| typed_on);
        if let Some(typed_on) = &terminal {
            let number = if outputs.iter().any(|(n, _)| *n == 1) { 2 } else { 1 };
            let (collected, thread) =
                Collected::start(typed_on.try_clone().unwrap(), usize::MAX, Duration::ZERO);
            threads.push(thread);
            outputs.push((number, Source::Collected(collected)));
        }
        Running { sandbox, pid, given: identities, outputs, threads, terminal, started, exit: None }
    }

    /// Sends it a signal.
    pub fn send(&self, signal: i32) {
        spawn::send(self.pid, signal);
    }

    /// Sends its process group a signal.
    pub fn send_group(&self, signal: i32) {
        spawn::send(-self.pid, signal);
    }

    /// Types on its terminal.
    pub fn type_keys(&self, keys: &[u8]) {
        let terminal = self.terminal.as_ref().expect("a terminal");
        streams::feed(terminal.try_clone().unwrap(), keys.to_vec());
    }

    /// Its stdout (the terminal, where it has one) so far.
    pub fn stdout(&self) -> &Collected {
        self.collected(1)
    }

    /// Its stderr so far.
    pub fn stderr(&self) -> &Collected {
        self.collected(2)
    }

    fn collected(&self, number: i32) -> &Collected {
        match self.outputs.iter().find(|(n, _)| *n == number) {
            Some((_, Source::Collected(collected))) => collected,
            _ => panic!("descriptor {number} is not collected"),
        }
    }

    /// Waits until it ends or stops.
    pub fn wait_for_stop(&mut self) -> Exit {
        let exit = spawn::wait(self.pid, true);
        if !matches!(exit, Exit::Stopped(_)) {
            self.exit = Some((exit, self.started.elapsed()));
        }
        exit
    }

    /// Waits until it ends, not for its streams: something it started may keep them open.
    pub fn wait(&mut self) -> Exit {
        if self.exit.is_none() {
            self.exit = Some((spawn::wait(self.pid, false), self.started.elapsed()));
        }
        self.exit.unwrap().0
    }

    /// Waits for its end and for its streams' ends.
    pub fn finish(mut self) -> Run {
        let exit = self.wait();
        let took = self.exit.unwrap().1;
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        let output = |number: i32| match self.outputs.iter().find(|(n, _)| *n == number) {
            None => Vec::new(),
            Some((_, Source::Collected(collected))) => collected.bytes(),
            Some((_, Source::File(path))) => fs::read(path).unwrap(),
        };
        let run = Run { exit, stdout: output(1), stderr: output(2), pid: self.pid, given: self.given, took };
        self.sandbox.note(&run.to_text());
        run
    }
}

/// What a command did.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it ended.
    pub exit: Exit,
    /// What came on stdout (on the terminal, where stdout is one; both streams when merged).
    pub stdout: Vec<u8>,
    /// What came on stderr (on the terminal, where only stderr is one).
    pub stderr: Vec<u8>,
    /// Its process id.
    pub pid: i32,
    /// The descriptors it was given: number and `device:inode`.
    pub given: Vec<(i32, String)>,
    /// From its start to its end.
    pub took: Duration,
}

impl Run {
    /// stdout as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    fn to_text(&self) -> String {
        let shown = |bytes: &[u8]| escape(&bytes[..bytes.len().min(2000)]).replace("\\n", "\n    ");
        format!(
            "  => {:?} after {:?}, pid {}\n  stdout {} bytes:\n    {}\n  stderr {} bytes:\n    {}\n",
            self.exit,
            self.took,
            self.pid,
            self.stdout.len(),
            shown(&self.stdout),
            self.stderr.len(),
            shown(&self.stderr)
        )
    }
}
