//! The real gh, as replay runs it: from the project's root, without `GH_REPO`, each call an observation.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::decide::entry::Reach;
use crate::decide::plan::{GhEnv, plan};
use crate::decide::reach::reach;
use crate::decide::resource::READ_QUOTA;
use crate::decide::signal::{Ended, Signal, classify};
use crate::ops::Context;
use crate::ops::budget::{Around, Calling, Passage, Turn};
use crate::ops::record::{Call, record};
use crate::process::capture::{Captured, Environment, Trouble};
use crate::process::job::Job;
use crate::process::sleep::{Slept, sleep_unwatched};
use crate::settings;

/// How long one call may take: gh itself has no limit, and a server that hangs must not hang us.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A delivery for which its caller has less time than this is not begun.
const DELIVERY_MS: u64 = 1_000;

/// Variables that would change what a delivered write does, or make gh wait for somebody.
const REMOVED: &[&str] = &[
    "GH_REPO",
    "GH_DEBUG",
    "DEBUG",
    "GH_FORCE_TTY",
    "GH_PAGER",
    "PAGER",
    "GH_EDITOR",
    "GIT_EDITOR",
    "VISUAL",
    "EDITOR",
    "GH_BROWSER",
    "BROWSER",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_NAMESPACE",
];

const ADDED: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("NO_COLOR", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// The real gh and what its children get.
#[derive(Debug)]
pub(super) struct Gh<'a> {
    context: &'a Context,
    program: PathBuf,
    env: Environment,
    root: PathBuf,
    /// Nobody waits for this replay: no wait may go past its end.
    is_automatic: bool,
}

/// How a call of a replay waits for the quota.
struct Waits<'a> {
    gh: &'a Gh<'a>,
}

impl Around for Waits<'_> {
    /// What a replay waits for shows in its report.
    fn say(&mut self, _line: &str) {}

    fn sleep(&mut self, ms: u64) -> Slept {
        if self.gh.own_left_ms().is_some_and(|left_ms| ms > left_ms) {
            return Slept::Interrupted(NO_TIME);
        }
        sleep_unwatched(ms, self.gh.context.settings.budget.sleep.as_deref())
    }

    /// What waits here is in the queue already.
    fn before_wait(&mut self, _wait_s: u64) {}
}

/// No signal has this number: the wait was never begun.
const NO_TIME: i32 = 0;

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) signal: Signal,
    pub(super) reach: Reach,
    pub(super) stdout: Vec<u8>,
    /// The first line of what gh said when it failed.
    pub(super) why: String,
    pub(super) started_ms: u64,
    pub(super) ended_ms: u64,
}

impl<'a> Gh<'a> {
    pub(super) fn new(context: &'a Context, program: PathBuf, root: &Path, is_automatic: bool) -> Gh<'a> {
        let env = Environment::Given(scrubbed(&context.env));
        Gh { context, program, env, root: root.to_path_buf(), is_automatic }
    }

    /// How long an automatic replay may still start deliveries by its own setting.
    fn own_left_ms(&self) -> Option<u64> {
        let limit_ms = self.context.settings.queue.replay_s.saturating_mul(1_000);
        self.is_automatic.then(|| limit_ms.saturating_sub(self.context.clock.elapsed_ms()))
    }

    /// How long the caller behind whose call an automatic replay runs still waits, where it says so.
    pub(super) fn callers_left_ms(&self) -> Option<u64> {
        let left_ms = self.context.settings.budget.left_ms(self.context.clock.now_ms());
        left_ms.filter(|_| self.is_automatic)
    }

    /// Why nothing more may be started `ahead_ms` from now, where that is so.
    pub(super) fn out_of_time(&self, ahead_ms: u64) -> Option<String> {
        if self.own_left_ms().is_some_and(|left_ms| ahead_ms >= left_ms) {
            let limit_s = self.context.settings.queue.replay_s;
            return Some(format!("the {limit_s}s that an automatic replay may take are over"));
        }
        let needed_ms = ahead_ms.saturating_add(DELIVERY_MS);
        let is_late = self.callers_left_ms().is_some_and(|left_ms| needed_ms > left_ms);
        is_late.then(|| "its caller waits no longer (BOB_FORGE_DEADLINE)".into())
    }

    /// How long a call may take. A write that has begun still ends; a look can be taken another time.
    fn timeout(&self, is_write: bool) -> Duration {
        let left = self.callers_left_ms().filter(|_| !is_write).map(Duration::from_millis);
        left.map_or(TIMEOUT, |left| left.min(TIMEOUT))
    }

    /// Runs gh; a gh that cannot be started, or whose end nobody saw, is the machine's trouble and counts as
    /// `net`.
    pub(super) fn run(
        &self,
        argv: &[String],
        stdin: Option<&[u8]>,
        several: bool,
        under: Option<&File>,
    ) -> Answer {
        let args: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let plan = plan(&args, &GhEnv::default());
        let calling =
            Calling { plan: &plan, gh: &self.program, terminal: false, captured_stdin: stdin.is_some() };
        let mut turn = Turn::new(calling, &self.context.settings);
        let passage = turn.as_mut().map(|turn| turn.pass(&mut Waits { gh: self }));
        let started_ms = self.context.clock.now_ms();
        if passage.is_some_and(|passage| passage != Passage::Go) {
            return Answer::not_sent(started_ms, Signal::RateLimit, "the quota is spent".into());
        }
        let timeout = self.timeout(under.is_some());
        if timeout.is_zero() {
            return Answer::not_sent(started_ms, Signal::Net, "its caller waits no longer".into());
        }
        let (env, cwd) = (&self.env, Some(self.root.as_path()));
        let job = Job { program: &self.program, args: &args, env, cwd, stdin, timeout, under };
        let captured = match job.run() {
            Ok(captured) => captured,
            Err(trouble) => return Answer::without_an_end(started_ms, self.context.clock.now_ms(), &trouble),
        };
        let outcome = classify(captured.ended, &captured.stderr, &args);
        let ended_ms = self.context.clock.now_ms();
        // What is recorded or not changes nothing for the write.
        let call =
            Call { plan: &plan, ended: captured.ended, ms: captured.ms, outcome, now_s: ended_ms / 1_000 };
        let _ = record(call, self.context, Some(&self.root));
        if let Some(turn) = &mut turn {
            // A rate-limited answer closes its quota for everybody; it is the queue that tries again.
            turn.after(&outcome, false, &mut Waits { gh: self });
        }
        Answer {
            // A child that was ended, by us or by anybody, says that there was no answer.
            signal: if matches!(captured.ended, Ended::Signal(_)) { Signal::Net } else { outcome.signal },
            reach: if captured.ended == Ended::Code(0) {
                Reach::Perhaps
            } else {
                reach(captured.ended, &captured.stderr, several)
            },
            why: why(&captured, timeout),
            stdout: captured.stdout,
            started_ms,
            ended_ms,
        }
    }

    /// Whether the forge answers at all: asked for the quota, which spends none.
    pub(super) fn answers(&self) -> bool {
        self.run(&READ_QUOTA.map(String::from), None, false, None).signal == Signal::Ok
    }
}

impl Answer {
    fn not_sent(at_ms: u64, signal: Signal, why: String) -> Answer {
        let (started_ms, ended_ms) = (at_ms, at_ms);
        Answer { signal, reach: Reach::Nothing, stdout: Vec::new(), why, started_ms, ended_ms }
    }

    /// The machine's trouble with gh. What was started may have written, whatever became of it.
    fn without_an_end(started_ms: u64, ended_ms: u64, trouble: &Trouble) -> Answer {
        let reach = match trouble {
            Trouble::NotStarted(_) => Reach::Nothing,
            Trouble::EndUnknown(_) => Reach::Unknown,
        };
        let (signal, why) = (Signal::Net, format!("gh {trouble}"));
        Answer { signal, reach, stdout: Vec::new(), why, started_ms, ended_ms }
    }

    /// The last line of its output: the URL that gh prints for a create and for a comment.
    pub(super) fn url(&self) -> String {
        let text = String::from_utf8_lossy(&self.stdout);
        text.lines().rev().find(|line| line.starts_with("http")).unwrap_or_default().trim().to_string()
    }
}

fn why(captured: &Captured, timeout: Duration) -> String {
    if captured.timed_out {
        return format!("no answer within {}s", timeout.as_secs());
    }
    let text = String::from_utf8_lossy(&captured.stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match (line.is_empty(), captured.ended) {
        // It may hold what anybody wrote on the forge, and it will be shown.
        (false, _) => line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect(),
        (true, Ended::Code(code)) => format!("gh ended with exit code {code}"),
        (true, Ended::Signal(signal)) => format!("gh was ended by signal {signal}"),
    }
}

fn scrubbed(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_removed = |name: &OsStr| {
        REMOVED.iter().any(|removed| name == *removed)
            || name.to_str().is_some_and(|name| {
                name.starts_with("GIT_CONFIG_KEY_") || name.starts_with("GIT_CONFIG_VALUE_")
            })
            || ADDED.iter().any(|(added, _)| name == *added)
            || name == settings::DEPTH
    };
    let kept = env.iter().filter(|(name, _)| !is_removed(name)).cloned();
    kept.chain(ADDED.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gh_that_never_started_has_surely_written_nothing() {
        let reach = |trouble| Answer::without_an_end(1, 2, &trouble).reach;
        let e = || std::io::ErrorKind::WouldBlock.into();
        assert_eq!(reach(Trouble::NotStarted(e())), Reach::Nothing);
        assert_eq!(reach(Trouble::EndUnknown(e())), Reach::Unknown);
    }
}
