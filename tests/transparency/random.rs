//! Differential transparency at random: calls that nobody thought of.
//!
//! `FORGE_SEED` repeats a run, `FORGE_RANDOM_CALLS` says how many calls it has. The call that fails prints the
//! seed that makes it the first one of a run.
//!
//! Left out is what the contract makes different on purpose: a spoolable write that the forge was not there
//! for (its queue is off here), the order of a cacheable read's two streams, and an answer that is held until
//! gh has ended when nobody can take it.

use super::{differences, facts};
use crate::support::bytes::escape;
use crate::support::command::Call;
use crate::support::dice::{self, Dice};
use crate::support::sandbox::Sandbox;
use crate::support::streams::{Out, Stdin};

/// How the two streams of a sort of call may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Streamed, or passed through.
    Plain,
    /// A cacheable read, or what one more word makes one: the answer is held.
    Read,
    /// A spoolable write: its URL is held.
    Write,
}

const CALLS: [(Sort, &[&str]); 24] = [
    (Sort::Plain, &["pr", "status"]),
    (Sort::Plain, &["pr", "list", "-R", "acme/widget"]),
    (Sort::Plain, &["run", "watch", "1"]),
    (Sort::Plain, &["pr", "checks", "--watch", "3"]),
    (Sort::Plain, &["api", "repos/acme/widget/issues"]),
    (Sort::Plain, &["api", "graphql", "-f", "query={viewer{login}}"]),
    (Sort::Plain, &["api", "repos/{owner}/{repo}", "--paginate", "--jq", ".[]"]),
    (Sort::Plain, &["auth", "status"]),
    (Sort::Plain, &["nonsense", "--flag"]),
    (Sort::Plain, &["repo", "clone", "acme/widget"]),
    (Sort::Plain, &["--version"]),
    (Sort::Read, &["issue", "list", "--help"]),
    (Sort::Plain, &[]),
    (Sort::Read, &["--", "issue", "list"]),
    (Sort::Read, &["issue", "list"]),
    (Sort::Read, &["issue", "view", "5", "--comments"]),
    (Sort::Read, &["search", "issues", "words", "--json", "number"]),
    (Sort::Read, &["label", "ls", "-R", "acme/widget"]),
    (Sort::Write, &["issue", "comment", "5", "--body", "x"]),
    (Sort::Write, &["issue", "create", "-t", "title", "-F", "-"]),
    (Sort::Write, &["issue", "close", "5", "-c", "done"]),
    (Sort::Write, &["issue", "edit", "5", "--add-label", "bug"]),
    (Sort::Write, &["issue", "reopen", "#5"]),
    (Sort::Write, &["label", "create", "bug"]),
];

/// What gh and the proxies before it say when something fails, and what only looks like it.
const SAID: [&str; 14] = [
    "HTTP 502: Bad Gateway (https://api.github.com/graphql)\n",
    "HTTP 503: Service Unavailable\r\n",
    "HTTP 401: Bad credentials (https://api.github.com/)\n",
    "HTTP 403: API rate limit exceeded for user ID 1.\n",
    "You have exceeded a secondary rate limit\n",
    "GraphQL: Could not resolve to an Issue with the number of 5. (repository.issue)\n",
    "error connecting to api.github.com\ncheck your internet connection\n",
    "dial tcp: lookup api.github.com: no such host\n",
    "To get started with GitHub CLI, please run:  gh auth login\n",
    "unknown flag: --flag\n\nUsage:  gh issue list [flags]\n",
    "acme/http-503 says \"502\"\n",
    "no newline at the end",
    "\u{1b}[31mred\u{1b}[0m\n",
    "",
];

const SIGNALS: [i32; 7] =
    [libc::SIGPIPE, libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT, libc::SIGUSR1, libc::SIGCHLD];

/// One random call: what is typed, what gh does, and how the call is shaped.
#[derive(Clone, Debug)]
struct Case {
    words: Vec<Vec<u8>>,
    script: String,
    stdin: Stdin,
    stdout: Out,
    stderr: Out,
    env: Vec<Vec<u8>>,
    ignored: Vec<i32>,
    blocked: Vec<i32>,
    umask: u32,
    extra: Vec<i32>,
    folder_is_gone: bool,
    argv0: Vec<u8>,
}

impl Case {
    fn of(seed: u64) -> Case {
        let mut dice = Dice::new(seed);
        let (sort, words) = *dice.one_of(&CALLS);
        let mut words: Vec<Vec<u8>> = words.iter().map(|w| w.as_bytes().to_vec()).collect();
        for _ in 0..dice.below(3) {
            let at = dice.below(words.len() as u64 + 1) as usize;
            words.insert(at, word(&mut dice));
        }
        let (stdout, stderr) = streams(&mut dice, sort);
        let (mut ignored, mut blocked) = (signals(&mut dice), signals(&mut dice));
        if [&stdout, &stderr].contains(&&Out::PipeThatCloses(0)) {
            // A gh that survives a broken pipe makes of it what it will, and the fake something else.
            ignored.retain(|signal| *signal != libc::SIGPIPE);
            blocked.retain(|signal| *signal != libc::SIGPIPE);
        }
        Case {
            words,
            script: script(&mut dice, sort, [&stdout, &stderr]),
            stdin: stdin(&mut dice),
            stdout,
            stderr,
            env: (0..dice.below(4)).map(|_| entry(&mut dice)).collect(),
            ignored,
            blocked,
            umask: *dice.one_of(&[0o022, 0o022, 0o077, 0o000, 0o777]),
            extra: if dice.once_in(4) { vec![3, 9 + dice.below(50) as i32] } else { Vec::new() },
            folder_is_gone: dice.once_in(12),
            argv0: if dice.once_in(6) { nul_free(dice.bytes(12)) } else { b"gh".to_vec() },
        }
    }

    fn shape<'s>(&self, mut call: Call<'s>) -> Call<'s> {
        call = call.argv0(self.argv0.clone()).env("BOB_FORGE_QUEUE", "0");
        for word in &self.words {
            call = call.arg(word.clone());
        }
        for entry in &self.env {
            call = call.env_entry(entry.clone());
        }
        for signal in &self.ignored {
            call = call.ignoring(*signal);
        }
        for signal in &self.blocked {
            call = call.blocking(*signal);
        }
        for number in &self.extra {
            call = call.extra_fd(*number, &format!("tmp/extra{number}"));
        }
        if self.folder_is_gone {
            call = call.in_removed_folder();
        }
        call.stdin(self.stdin.clone())
            .stdout(self.stdout.clone())
            .stderr(self.stderr.clone())
            .umask(self.umask)
    }

    /// What differs through the shim; empty where nothing does.
    fn difference(&self, sandbox: &Sandbox) -> String {
        sandbox.script(&self.script);
        let none: [&str; 0] = [];
        let [bare, shimmed] = [false, true].map(|through_shim| {
            sandbox.reset();
            let call = if through_shim { sandbox.gh(&none) } else { sandbox.bare_gh(&none) };
            facts(sandbox, &self.shape(call).run())
        });
        differences(&bare, &shimmed)
    }

    fn show(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|w| escape(&w[..w.len().min(80)])).collect();
        let stdin = format!("{:.60?}", format!("{:?}", self.stdin));
        let shown = Case { words: Vec::new(), script: String::new(), stdin: Stdin::Null, ..self.clone() };
        format!("gh {words:?}\n{}{shown:?}\nstdin {stdin}", self.script)
    }
}

fn nul_free(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.retain(|b| *b != 0);
    bytes
}

fn word(dice: &mut Dice) -> Vec<u8> {
    const ODD: [&str; 14] = [
        "",
        "-",
        "--",
        "--web",
        "-R",
        "--repo=other/one",
        "--body=",
        "-h=",
        "--json",
        "--jq=.",
        "#5",
        "🦀",
        "--paginate",
        "-X",
    ];
    match dice.below(3) {
        0 => nul_free(dice.bytes(20)),
        1 => [b"--".to_vec(), nul_free(dice.bytes(8))].concat(),
        // `--help` makes a call another one, not a wrong one: it is in the list of calls.
        _ => dice.one_of(&ODD).as_bytes().to_vec(),
    }
}

fn entry(dice: &mut Dice) -> Vec<u8> {
    const NAMES: [&str; 9] = [
        "GH_REPO=",
        "GH_HOST=",
        "GH_DEBUG=",
        "GH_FORCE_TTY=",
        "NO_COLOR=",
        "X=",
        "=",
        "BOB_FORGE_CALLER=",
        "GIT_DIR=",
    ];
    [dice.one_of(&NAMES).as_bytes().to_vec(), nul_free(dice.bytes(16))].concat()
}

fn signals(dice: &mut Dice) -> Vec<i32> {
    if dice.once_in(5) { vec![*dice.one_of(&SIGNALS)] } else { Vec::new() }
}

fn stdin(dice: &mut Dice) -> Stdin {
    match dice.below(6) {
        0 => Stdin::Closed,
        1 => Stdin::Bytes(dice.bytes(3000)),
        2 => Stdin::File(dice.bytes(300)),
        3 => Stdin::Socket(dice.bytes(300)),
        4 => Stdin::Bytes(vec![b'x'; 150_000]),
        _ => Stdin::Null,
    }
}

fn streams(dice: &mut Dice, sort: Sort) -> (Out, Out) {
    let nonblocking = dice.once_in(2);
    let socket = Out::Socket { nonblocking };
    let mut stdouts =
        vec![Out::Pipe, Out::Pipe, Out::File, Out::Append, Out::Null, Out::Closed, socket.clone()];
    let mut stderrs = vec![Out::Pipe, Out::Pipe, Out::Merged, Out::Merged, Out::Null, Out::Closed, socket];
    if sort == Sort::Plain {
        stdouts.extend([Out::Full, Out::PipeThatCloses(0)]);
        stderrs.extend([Out::Full, Out::PipeThatCloses(0)]);
    }
    match (dice.one_of(&stdouts).clone(), dice.one_of(&stderrs).clone()) {
        // What gh itself does about a full disk differs from command to command.
        (Out::Full, Out::Merged | Out::Full) => (Out::Pipe, Out::Merged),
        (Out::Full, gone @ Out::PipeThatCloses(_)) => (Out::Pipe, gone),
        streams => streams,
    }
}

fn script(dice: &mut Dice, sort: Sort, streams: [&Out; 2]) -> String {
    let mut steps: Vec<(bool, String)> = (0..dice.below(6)).map(|_| step(dice)).collect();
    if streams.contains(&&Out::PipeThatCloses(0)) {
        // Behind a pipe of ours gh hears a moment later that nobody listens, and does one step more.
        steps.retain(|(_, step)| !step.starts_with("alternate"));
        steps.truncate(1);
    }
    if sort == Sort::Read && *streams[1] == Out::Merged {
        // First all of the answer, then what was said: the order in which a held answer comes.
        steps.retain(|(_, step)| !step.starts_with("alternate"));
        steps.sort_by_key(|(is_said, _)| *is_said);
    }
    let mut script = String::from("on *\n");
    // As every gh: it is a Go program.
    script.push_str(" go-pipe\n");
    for (_, step) in steps {
        script.push_str(&format!(" {step}\n"));
    }
    let end = match dice.below(8) {
        0 => format!("die {}", dice.one_of(&["TERM", "SEGV", "KILL", "INT", "PIPE", "ABRT", "HUP"])),
        1 => format!("exit {}", dice.below(256)),
        2..=4 => format!("exit {}", dice.one_of(&[1, 1, 2, 4, 8])),
        _ => "exit 0".to_string(),
    };
    script + " " + &end + "\n"
}

/// One step, and whether it writes to stderr.
fn step(dice: &mut Dice) -> (bool, String) {
    match dice.below(10) {
        0 => (false, format!("out {}", escape(&dice.bytes(200)))),
        1 => (false, "out https://github.com/acme/widget/issues/7\\n".into()),
        2 => (true, format!("err {}", escape(&dice.bytes(200)))),
        3..=5 => (true, format!("err {}", escape(dice.one_of(&SAID).as_bytes()))),
        6 => (false, format!("alternate {}", dice.below(100))),
        7 => (false, "stdin".into()),
        8 => (false, "cat".into()),
        _ => (false, "out-mb 1".into()),
    }
}

#[test]
fn random_calls_are_the_same_through_the_shim() {
    let (seed, calls) = (dice::seed(), dice::times("FORGE_RANDOM_CALLS", 100));
    eprintln!("FORGE_SEED={seed} FORGE_RANDOM_CALLS={calls}");
    std::thread::scope(|scope| {
        for worker in 0..2 {
            scope.spawn(move || {
                let sandbox = Sandbox::new("");
                sandbox.checkout("acme/widget");
                for call_seed in (seed + worker..seed + calls).step_by(2) {
                    let case = Case::of(call_seed);
                    let differing = case.difference(&sandbox);
                    assert!(
                        differing.is_empty(),
                        "not the same through the shim: FORGE_SEED={call_seed} FORGE_RANDOM_CALLS=1\n{}\n{differing}",
                        case.show()
                    );
                }
            });
        }
    });
}

/// A seed has to mean the same call tomorrow, or no seed can be told to anybody.
#[test]
fn a_seed_repeats_its_call() {
    for seed in 0..50 {
        assert_eq!(format!("{:?}", Case::of(seed)), format!("{:?}", Case::of(seed)));
    }
    assert_ne!(format!("{:?}", Case::of(1)), format!("{:?}", Case::of(2)));
}
