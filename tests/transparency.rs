//! Differential transparency: every case runs once with the fake `gh` alone and once through the shim, and
//! everything that a caller or the child can observe has to be equal.

mod bystanders;
mod descriptors;
mod ends;
mod given;
mod random;
mod real;
mod signals;
mod streams;
mod terminals;

use crate::support::bytes::escape;
use crate::support::command::Call;
use crate::support::record::Record;
use crate::support::running::{Run, Running};
use crate::support::sandbox::Sandbox;

/// One call of every sort the shim tells apart: plain, a cacheable read, a spoolable write, a streamed one.
const EVERY_SORT: [&[&str]; 4] = [
    &["pr", "status"],
    &["issue", "list"],
    &["issue", "comment", "5", "--body", "x"],
    &["run", "watch", "1"],
];
/// Calls whose two streams keep their order when they go to one place. The answer of a cacheable read is
/// what is stored, so it stays apart: first all of it, then the messages.
const IN_ORDER: [&[&str]; 3] =
    [&["pr", "status"], &["issue", "comment", "5", "--body", "x"], &["run", "watch", "1"]];
/// Calls whose stdout is never diverted.
const UNDIVERTED: [&[&str]; 2] = [&["pr", "status"], &["run", "watch", "1"]];

/// What was seen of one call: a name and a value for everything.
type Facts = Vec<(String, String)>;

/// Runs `script` under every sort of call, shaped by `shape`, and compares.
fn same(script: &str, shape: impl Fn(Call) -> Call) {
    same_of(&EVERY_SORT, script, shape);
}

/// As [`same`], for these sorts of call.
fn same_of(sorts: &[&[&str]], script: &str, shape: impl Fn(Call) -> Call) {
    same_while(sorts, script, shape, |_, _| {});
}

/// As [`same_of`]; `meanwhile` acts while the call runs.
fn same_while(
    sorts: &[&[&str]],
    script: &str,
    shape: impl Fn(Call) -> Call,
    meanwhile: impl Fn(&Sandbox, &mut Running),
) {
    for words in sorts {
        let sandbox = Sandbox::new(script);
        sandbox.checkout("acme/widget");
        let mut seen = [false, true].map(|through_shim| {
            sandbox.reset();
            let call = if through_shim { sandbox.gh(words) } else { sandbox.bare_gh(words) };
            let mut running = shape(call).start();
            meanwhile(&sandbox, &mut running);
            let run = running.finish();
            facts(&sandbox, &run)
        });
        let [bare, shimmed] = &mut seen;
        let differing = differences(bare, shimmed);
        assert!(differing.is_empty(), "gh {words:?} is not the same through the shim:\n{differing}");
    }
}

fn differences(bare: &Facts, shimmed: &Facts) -> String {
    let value = |facts: &Facts, name: &str| facts.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let mut names: Vec<&String> = bare.iter().chain(shimmed).map(|(n, _)| n).collect();
    names.sort();
    names.dedup();
    let mut text = String::new();
    for name in names {
        let (alone, through) = (value(bare, name), value(shimmed, name));
        if alone != through {
            let cut =
                |v: Option<String>| v.map_or("nothing".into(), |v| v.chars().take(600).collect::<String>());
            text.push_str(&format!("{name}\n  alone:   {}\n  through: {}\n", cut(alone), cut(through)));
        }
    }
    text
}

fn facts(sandbox: &Sandbox, run: &Run) -> Facts {
    let calls = sandbox.calls();
    let mut facts = vec![
        ("end".to_string(), format!("{:?}", run.exit)),
        ("stdout".to_string(), summary(&run.stdout)),
        ("stderr".to_string(), summary(&run.stderr)),
        ("calls of gh".to_string(), calls.len().to_string()),
    ];
    for call in &calls {
        facts.extend(facts_of_child(call, run));
    }
    facts
}

fn facts_of_child(call: &Record, run: &Run) -> Facts {
    // SAFETY: a plain query.
    let runners_group = unsafe { libc::getpgrp() };
    let relation = |id: i32| match id {
        id if id == run.pid => "the called process".to_string(),
        id if id == runners_group => "the caller's".to_string(),
        id => id.to_string(),
    };
    let list = |words: &[Vec<u8>]| words.iter().map(|w| format!("{} ", summary(w))).collect::<String>();
    let env: Vec<Vec<u8>> =
        call.env.iter().filter(|e| !e.starts_with(b"BOB_FORGE_DEPTH=")).cloned().collect();
    let mut facts: Facts = [
        ("argv[0]", escape(&call.argv0)),
        ("argv", list(&call.args)),
        ("environment", list(&env)),
        ("working directory", call.cwd.clone()),
        ("ignored signals", format!("{:?}", call.ignored)),
        ("blocked signals", format!("{:?}", call.blocked)),
        ("process group", relation(call.pgid)),
        ("session", if call.sid == run.pid { "the called process".into() } else { call.sid.to_string() }),
        ("foreground group", relation(call.foreground)),
        ("umask", call.umask.clone()),
        ("limits", call.limits.clone()),
        ("nice", call.nice.clone()),
        ("stdin as read", call.stdin.as_deref().map_or("not read".into(), summary)),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into();
    // A queueable write's body is read before gh and fed to it through a pipe of the shim's own.
    let is_fed = call.args.first().is_some_and(|word| word == b"issue")
        && call.args.iter().any(|word| word == b"-" || word == b"-F-");
    facts.extend(call.fds.iter().map(|fd| {
        let is_given = run.given.iter().any(|(n, identity)| *n == fd.number && *identity == fd.identity);
        // The shim may put a pipe of its own on stdout and stderr, but never in place of a terminal.
        let value = match fd.number {
            1 | 2 if !fd.is_tty => "open".to_string(),
            0 if is_fed && !fd.is_tty => "open".to_string(),
            _ => format!("{} flags {} terminal {} as given {is_given}", fd.kind, fd.flags, fd.is_tty),
        };
        (format!("descriptor {}", fd.number), value)
    }));
    facts
}

/// Bytes as text; long ones by their length, their start, their end and a sum over all of them.
fn summary(bytes: &[u8]) -> String {
    if bytes.len() <= 400 {
        return format!("\"{}\"", escape(bytes));
    }
    let sum = bytes.iter().fold(0_u64, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(*b)));
    let (start, end) = (escape(&bytes[..100]), escape(&bytes[bytes.len() - 100..]));
    format!("{} bytes, sum {sum:x}: {start} … {end}", bytes.len())
}

/// The comparison itself: a "shim" that changes something has to be caught.
#[test]
fn the_comparison_sees_a_difference() {
    let sandbox = Sandbox::new("on *\n stdin\n out hello\\n\n exit 3\n");
    let plain = sandbox.bare_gh(&["pr", "status"]).run();
    let before = facts(&sandbox, &plain);
    assert!(differences(&before, &facts(&sandbox, &plain)).is_empty());
    for (changed, wrapper) in [
        ("end", "gh \"$@\"; exit 0"),
        ("stdout", "gh \"$@\"; s=$?; echo; exit $s"),
        ("argv", "exec gh \"$@\" more"),
        ("umask", "umask 0; exec gh \"$@\""),
        ("environment", "MORE=1 exec gh \"$@\""),
        ("ignored signals", "trap '' PIPE; exec gh \"$@\""),
        ("descriptor 9", "exec 9</dev/null; exec gh \"$@\""),
        ("descriptor 0", "gh \"$@\" 0<&-"),
        ("stdin as read", "echo x | gh \"$@\""),
        ("working directory", "cd /; exec gh \"$@\""),
    ] {
        sandbox.reset();
        let wrapper = sandbox.shell("tmp/wrapper", wrapper);
        let call = sandbox.bare_gh(&["pr", "status"]).search_path(&[&sandbox.path("real")]);
        let run = call.at(wrapper).run();
        let differing = differences(&before, &facts(&sandbox, &run));
        assert!(differing.contains(&format!("{changed}\n")), "{changed} is not seen, only: {differing}");
    }
}
