//! Runs the real gh and takes what it says, so that the outcome can be classified.
//!
//! One thread and one `poll` loop: signals (through a pipe that the handlers write to), the child's
//! diverted streams, the child's end. The loop ends with the child, not with its pipes.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use super::channel::{self, Channel};
use super::clock::Stopwatch;
use super::invocation::{Stderr, Streams};
use super::signals::{self, Watch};
use super::sys::{self, Block, Change};
use super::{exit, feed};
use crate::decide::signal::Ended;
use crate::settings;

/// One run of gh.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The real gh.
    pub program: &'a Path,
    /// Every word, `argv[0]` first.
    pub argv: &'a [OsString],
    /// How many shims deep the child is ([`settings::DEPTH`]).
    pub depth: u32,
    /// What the caller's standard descriptors are.
    pub streams: Streams,
    /// What is held back until [`Ran`] is shown or dropped.
    pub hold: Hold,
    /// Bytes for the child's standard input, in place of the caller's.
    pub stdin: Option<&'a [u8]>,
}

/// Which streams are held until the call's outcome is known; never a terminal, never more than
/// [`HELD_MAX`](super::channel::HELD_MAX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Everything is copied as it comes.
    #[default]
    Nothing,
    /// The messages, so that those of an attempt that is made again can be dropped.
    Messages,
    /// The messages and the answer, the one apart from the other even when they go to one place.
    AnswerApart,
    /// The messages and the answer in their order.
    All,
}

/// What one run of gh came to. Nothing after this can fail the call.
#[derive(Debug)]
pub struct Ran {
    /// How the child ended: what is classified and recorded.
    pub ended: Ended,
    /// Latency.
    pub ms: u64,
    answer: Option<Channel>,
    messages: Option<Channel>,
    sigpipe_kills: bool,
}

impl Ran {
    /// The end of what it wrote to stderr (with one pipe for `2>&1`, of both).
    pub fn said(&self) -> Vec<u8> {
        self.messages.as_ref().map(Channel::said).unwrap_or_default()
    }

    /// The whole answer, where it was held apart and fits.
    pub fn answer(&self) -> Option<&[u8]> {
        self.answer.as_ref().and_then(Channel::held)
    }

    /// Whether the caller has seen any byte of it yet; if so, it can no longer be replaced.
    pub fn has_flowed(&self) -> bool {
        self.channels().any(|channel| channel.has_flowed)
    }

    /// Shows the caller what gh said, and returns how the shim has to end: as gh did, unless the
    /// reader has gone away, which kills a `gh` that writes to it directly, or a part of the answer could
    /// not be written: that is no success.
    pub fn show(mut self) -> Ended {
        for channel in self.answer.iter_mut().chain(&mut self.messages) {
            channel.release();
        }
        let reader_gone = self.channels().any(|channel| channel.reader_gone);
        match self.ended {
            _ if reader_gone && self.sigpipe_kills => Ended::Signal(libc::SIGPIPE),
            Ended::Code(0) if self.channels().any(Channel::lost_answer) => Ended::Code(1),
            ended => ended,
        }
    }

    /// Drops what gh said and shows the caller `answer` in its place, and one line on standard error.
    /// Returns how the shim has to end: with 0, unless the answer could not be shown.
    pub fn replace(self, answer: &[u8], line: &str) -> Ended {
        let sigpipe_kills = self.sigpipe_kills;
        self.discard();
        show_instead(answer, line, sigpipe_kills)
    }

    /// Drops what gh said: the caller sees something else in its place.
    pub fn discard(mut self) {
        for channel in self.answer.iter_mut().chain(&mut self.messages) {
            channel.discard();
        }
    }

    fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.answer.iter().chain(&self.messages)
    }
}

/// Shows the caller `answer` and one line on standard error in the place of a gh that is not started, and
/// returns how the shim has to end.
pub fn answer_without(watch: &Watch, answer: &[u8], line: &str) -> Ended {
    show_instead(answer, line, watch.sigpipe_kills)
}

fn show_instead(answer: &[u8], line: &str, sigpipe_kills: bool) -> Ended {
    match channel::write_all(1, answer) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe && sigpipe_kills => Ended::Signal(libc::SIGPIPE),
        shown => {
            exit::say(line);
            Ended::Code(i32::from(shown.is_err()))
        }
    }
}

/// Starts gh, takes its streams and waits for its end.
///
/// # Errors
/// gh could not be started; nothing has happened yet, and the caller can still become gh.
pub fn run(request: &Request, watch: &Watch) -> io::Result<Ran> {
    let stopwatch = Stopwatch::start();
    let (pid, mut plumbing) = begin(request, watch).inspect_err(|_| watch.restore())?;
    watch.adopt(pid);
    let ended = wait(pid, watch, || move_until_woken(watch, &mut plumbing));
    let ms = stopwatch.ms();
    for channel in plumbing.answer.iter_mut().chain(&mut plumbing.messages) {
        channel.drain();
    }
    let Plumbing { answer, messages, .. } = plumbing;
    Ok(Ran { ended, ms, answer, messages, sigpipe_kills: watch.sigpipe_kills })
}

fn begin(request: &Request, watch: &Watch) -> io::Result<(libc::pid_t, Plumbing)> {
    let mut plumbing = Plumbing::lay(request)?;
    let pid = start(request, &plumbing, watch)?;
    // The child has its own copies; ours would keep its streams open.
    plumbing.child_ends.clear();
    Ok((pid, plumbing))
}

/// The pipes between the child and us.
struct Plumbing {
    answer: Option<Channel>,
    messages: Option<Channel>,
    /// What the child gets, and as which of its descriptors.
    child_ends: Vec<(OwnedFd, Vec<RawFd>)>,
}

impl Plumbing {
    fn lay(request: &Request) -> io::Result<Plumbing> {
        let (streams, hold) = (request.streams, request.hold);
        let mut plumbing = Plumbing { answer: None, messages: None, child_ends: Vec::new() };
        let holds_answer = matches!(hold, Hold::AnswerApart | Hold::All)
            && !streams.stdout_is_terminal
            && !streams.stdout_is_closed;
        let one_pipe = streams.stderr == Stderr::SameAsStdout && hold != Hold::AnswerApart;
        let holds_messages = hold != Hold::Nothing;
        // stderr is diverted unless it is a terminal or closed; with `2>&1` one pipe carries both, so
        // that their order stays exact.
        plumbing.messages = match streams.stderr {
            Stderr::Closed | Stderr::Terminal => None,
            Stderr::SameAsStdout if one_pipe => Some(plumbing.channel(1, holds_messages, &[1, 2])?),
            Stderr::SameAsStdout | Stderr::Own => Some(plumbing.channel(2, holds_messages, &[2])?),
        };
        if holds_answer && !one_pipe {
            plumbing.answer = Some(plumbing.channel(1, true, &[1])?);
        }
        if let Some(bytes) = request.stdin {
            plumbing.child_ends.push((feed::ready(bytes)?, vec![0]));
        }
        Ok(plumbing)
    }

    fn channel(&mut self, to: RawFd, holding: bool, as_fds: &[RawFd]) -> io::Result<Channel> {
        let (channel, child_end) = Channel::open(to, holding)?;
        self.child_ends.push((child_end, as_fds.to_vec()));
        Ok(channel)
    }

    fn redirects(&self) -> Vec<(RawFd, RawFd)> {
        let each = |(end, targets): &(OwnedFd, Vec<RawFd>)| {
            let from = end.as_raw_fd();
            targets.iter().map(move |to| (from, *to)).collect::<Vec<_>>()
        };
        self.child_ends.iter().flat_map(each).collect()
    }

    fn step(&mut self, ready: RawFd) {
        for channel in self.answer.iter_mut().chain(&mut self.messages) {
            if channel.poll_fd() == Some(ready) {
                channel.step();
            }
        }
    }
}

fn start(request: &Request, plumbing: &Plumbing, watch: &Watch) -> io::Result<libc::pid_t> {
    let (program, argv) = (request.program, request.argv);
    let env = Block::environment_with(settings::DEPTH, &request.depth.to_string());
    let redirects = plumbing.redirects();
    let spawn = |program: &CStr, argv: &Block| {
        let spawn = if watch.sigchld_was_ignored { sys::spawn_ignoring_sigchld } else { sys::spawn };
        spawn(program, argv, &env, &redirects, &watch.inherited_mask)
    };
    match spawn(&sys::c_string(program.into()), &Block::argv(argv)) {
        Err(e) if e.raw_os_error() == Some(libc::ENOEXEC) => {
            let (shell, argv) = exit::through_shell(program, argv);
            spawn(&shell, &argv)
        }
        started => started,
    }
}

/// Waits for the end of a child; `until_woken` returns after every signal. A child that is stopped stops
/// this process too.
pub(super) fn wait(pid: libc::pid_t, watch: &Watch, mut until_woken: impl FnMut()) -> Ended {
    loop {
        while !sys::has_changed(pid) {
            // Whatever was continued so far is running.
            signals::was_continued();
            until_woken();
        }
        watch.release();
        match sys::collect(pid) {
            Some(Change::Exited(code)) => return Ended::Code(code),
            Some(Change::Killed(signal)) => return Ended::Signal(signal),
            None => watch.adopt(pid),
            Some(Change::Stopped) => {
                watch.adopt(pid);
                if !signals::was_continued() {
                    sys::stop_self();
                }
                sys::kill(pid, libc::SIGCONT);
            }
        }
    }
}

/// How long a child goes unseen at most when the word of its end is lost.
const LOOK_AGAIN_MS: i32 = 1_000;

/// Moves what is ready until a signal came.
fn move_until_woken(watch: &Watch, plumbing: &mut Plumbing) {
    loop {
        let mut fds = vec![(watch.wake_fd(), libc::POLLIN)];
        let channels = plumbing.answer.iter().chain(&plumbing.messages);
        fds.extend(channels.filter_map(Channel::poll_fd).map(|fd| (fd, libc::POLLIN)));
        // A signal interrupts the wait, or came just before it and has written to the wake pipe. Where that
        // write has failed, nothing more would come: so the child is looked at every now and then anyway.
        let ready = match sys::poll(&fds, LOOK_AGAIN_MS) {
            Ok(ready) if !ready.contains(&true) => return,
            Ok(ready) => ready,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return,
            // Without a way to wait for it all: look everywhere, a little later.
            Err(_) => {
                sys::pause_ms(5);
                vec![true; fds.len()]
            }
        };
        for ((fd, _), _) in fds.iter().zip(&ready).skip(1).filter(|(_, ready)| **ready) {
            plumbing.step(*fd);
        }
        if ready[0] {
            watch.settle();
            return;
        }
    }
}
