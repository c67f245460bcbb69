//! Every step at which a program can be killed, and every one at which the system can refuse it something.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use engine::store::queue::{Found, Queue};
use serde_json::Value;

use super::scene::{Point, Scene, strace, strace_works, under_strace};
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::running::Run;
use crate::support::sandbox::forge_command;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

/// What the system says when it cannot.
const ERRORS: [&str; 5] = ["ENOSPC", "EIO", "EDQUOT", "EROFS", "EMFILE"];

/// What was done to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was killed before this call.
    Killed,
    /// This call failed.
    Failed,
    /// Nothing: it ended before it came to that.
    Nothing,
}

/// One operation that is broken at every step.
pub struct Operation<'a> {
    pub scene: &'a Scene,
    pub program: PathBuf,
    pub args: &'a [&'a str],
    pub shape: &'a dyn for<'c> Fn(Call<'c>) -> Call<'c>,
    /// What has to hold after a run that was broken.
    pub judge: &'a dyn Fn(&Run, Done, &str, &mut Tally),
    /// Whether every call fails in every way, or each in the next one of them.
    pub in_every_way: bool,
    /// What is put back before every run, besides the stores.
    pub again: &'a dyn Fn(),
}

impl<'a> Operation<'a> {
    fn call(&self, inject: Option<&str>) -> Call<'a> {
        (self.shape)(self.scene.guarded(call_of(self.scene, &self.program, self.args, inject)))
    }

    /// Kills it at every call, and fails every call on one of its own files in every way.
    pub fn break_everywhere(&self, tally: &mut Tally) {
        if let Err(why) = strace_works() {
            tally.why_not = Some(why);
            return;
        }
        self.scene.restore();
        (self.again)();
        let points = self.scene.points(self.call(None));
        assert!(points.len() > 10, "strace shows hardly anything");
        for point in &points {
            self.break_at(point, "signal=SIGKILL", tally);
            if tally.is_settled() {
                return;
            }
        }
        for (n, point) in points.iter().filter(|point| is_on_a_file_of_ours(point)).enumerate() {
            let next = n % ERRORS.len();
            for error in if self.in_every_way { &ERRORS[..] } else { &ERRORS[next..=next] } {
                self.break_at(point, &format!("error={error}"), tally);
                if tally.is_settled() {
                    return;
                }
            }
        }
    }

    fn break_at(&self, point: &Point, how: &str, tally: &mut Tally) {
        self.scene.restore();
        (self.again)();
        let inject = format!("{}:{how}:when={}", point.name, point.nth);
        let run = self.call(Some(&inject)).run();
        let trace = fs::read(self.scene.sandbox.path("tmp/trace")).unwrap_or_default();
        let done = match run.exit {
            Exit::Signal(libc::SIGKILL) => Done::Killed,
            _ if trace.windows(10).any(|w| w == b"(INJECTED)") => Done::Failed,
            _ => Done::Nothing,
        };
        tally.runs += 1;
        tally.kills += u64::from(done == Done::Killed);
        tally.faults += u64::from(done == Done::Failed);
        (self.judge)(&run, done, &format!("{inject} at {:.90}", point.line), tally);
    }
}

/// A program under strace.
pub fn call_of<'s>(
    scene: &'s Scene,
    program: &std::path::Path,
    args: &[&str],
    inject: Option<&str>,
) -> Call<'s> {
    scene.sandbox.program(strace(), &under_strace(&scene.sandbox, program, args, inject))
}

fn is_on_a_file_of_ours(point: &Point) -> bool {
    // A `close` that fails closes all the same; strace's does not, which no system does.
    let is_close = point.name == "close";
    !is_close
        && (point.line.contains("/bob/") || point.line.contains("/work/.claude"))
        && !point.line.contains("/real/")
}

/// Files that a writer puts aside and that nobody removed.
fn debris(scene: &Scene) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![scene.sandbox.path("bob"), scene.sandbox.path("work/.claude")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                folders.push(path);
            } else if name.contains(".tmp") && name != "aside.tmp" {
                found.push(name);
            }
        }
    }
    found
}

fn is_whole_json(path: &std::path::Path) -> bool {
    fs::read(path).map_or(true, |bytes| serde_json::from_slice::<Value>(&bytes).is_ok())
}

const LINES: usize = 4_999;

/// An append to a full ring, which trims it.
pub fn ring(tally: &mut Tally) {
    let scene = Scene::new("on *\n out answer\\n\n err gh: no\\n\n exit 3\n", tally.without);
    let line = |n: usize| format!("{}\t0\t5\tok\tissue list\tgraphql\t1\told\ts{n:07}\n", 1_790_000_000 + n);
    scene.sandbox.file("bob/forge/observations.log", (0..LINES).map(line).collect::<String>());
    scene.keep();
    let judge = |run: &Run, done: Done, what: &str, tally: &mut Tally| {
        if done != Done::Killed {
            let same =
                (run.exit, run.out().as_str(), run.err().as_str()) == (Exit::Code(3), "answer\n", "gh: no\n");
            tally.expect(same, Bad::Wrong, || format!("the call is another one: {what}"));
            tally.expect(debris(&scene).is_empty(), Bad::Wrong, || {
                format!("{:?} stays: {what}", debris(&scene))
            });
        }
        scene.gh(&["pr", "status"]).env("CLAUDE_CODE_SESSION_ID", "newest").run();
        let lines = scene.sandbox.observations();
        let torn = lines.iter().filter(|line| line.len() != 9).count();
        tally.expect(torn <= 1, Bad::Half, || format!("{torn} lines are torn: {what}"));
        let old: Vec<usize> =
            lines.iter().filter_map(|line| line.get(8)?.strip_prefix('s')?.parse().ok()).collect();
        let is_tail = old.last() == Some(&(LINES - 1)) && old.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        tally.expect(is_tail && old.len() >= 4_490, Bad::Lost, || {
            format!("{} old lines are left: {what}", old.len())
        });
        let is_there =
            lines.last().is_some_and(|line| line.last().is_some_and(|session| session == "newest"));
        tally.expect(is_there, Bad::Lost, || format!("the next line is not there: {what}"));
    };
    let program = scene.sandbox.path("bin/gh");
    Operation {
        scene: &scene,
        program,
        args: &["pr", "status"],
        shape: &|call| call,
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    }
    .break_everywhere(tally);
}

/// `forge health`, which stores a verdict.
pub fn verdict(tally: &mut Tally) {
    let scene = Scene::new("on *\n exit 0\n", tally.without);
    let now = engine::process::clock::now_s();
    let lines: String =
        (0..10).map(|n| format!("{}\t1\t5\tserver\tissue list\tgraphql\t1\tw\t-\n", now - 10 + n)).collect();
    scene.sandbox.file("bob/forge/observations.log", lines);
    scene
        .sandbox
        .file("bob/forge/health.json", "{\"schema\":\"an older one, as long as the new one will be or so\"}");
    scene.keep();
    let args = ["health", "--no-probe", "--window", "100000"];
    let judge = |run: &Run, done: Done, what: &str, tally: &mut Tally| {
        if done != Done::Killed {
            // Not "operational", whatever cannot be read; unknown is honest.
            tally.expect(run.exit != Exit::Code(0), Bad::Wrong, || format!("said to be operational: {what}"));
            tally.expect(debris(&scene).is_empty(), Bad::Wrong, || {
                format!("{:?} stays: {what}", debris(&scene))
            });
        }
        let stored = scene.sandbox.state().join("health.json");
        tally.expect(is_whole_json(&stored), Bad::Half, || format!("half a verdict: {what}"));
        let next = scene.forge(&args).run();
        tally.expect(next.exit == Exit::Code(4), Bad::Wrong, || {
            format!("then {:?}, {}: {what}", next.exit, next.err())
        });
    };
    Operation {
        scene: &scene,
        program: forge_command(),
        args: &args,
        shape: &|call| call,
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    }
    .break_everywhere(tally);
}

/// A read that replaces what is stored.
pub fn cache(tally: &mut Tally) {
    const DOWN: &str =
        "on *\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
    let (old, new) =
        (format!("{}\n", "1\told\tOPEN ".repeat(40)), format!("{}\n", "2\tnew\tOPEN ".repeat(60)));
    let script = |answer: &str| format!("on *\n out {}\n exit 0\n", answer.escape_default());
    let scene = Scene::new(&script(&old), tally.without);
    scene.gh(&["issue", "list"]).run();
    scene.keep();
    let judge = |run: &Run, done: Done, what: &str, tally: &mut Tally| {
        if done != Done::Killed {
            let same =
                (run.exit, run.out().as_str(), run.err().as_str()) == (Exit::Code(0), new.as_str(), "");
            tally.expect(same, Bad::Wrong, || format!("the call is another one: {what}"));
            tally.expect(debris(&scene).is_empty(), Bad::Wrong, || {
                format!("{:?} stays: {what}", debris(&scene))
            });
        }
        scene.sandbox.script(DOWN);
        let served = scene.gh(&["issue", "list"]).run();
        match (served.exit, served.out()) {
            (Exit::Code(0), answer) if answer == old || answer == new => {}
            (Exit::Code(1), nothing) if nothing.is_empty() => {}
            (exit, answer) => tally.bad(Bad::Half, format!("{exit:?} with {:.60?}: {what}", answer)),
        }
        scene.sandbox.script(&script(&new));
        let again = scene.gh(&["issue", "list"]).run();
        tally.expect(again.out() == new, Bad::Wrong, || format!("the next read: {what}"));
        scene.sandbox.script(DOWN);
        let served = scene.gh(&["issue", "list"]).run().out();
        tally.expect(served == new, Bad::Lost, || format!("the next answer is not stored: {what}"));
        scene.sandbox.script(&script(&new));
    };
    scene.sandbox.script(&script(&new));
    let program = scene.sandbox.path("bin/gh");
    Operation {
        scene: &scene,
        program,
        args: &["issue", "list"],
        shape: &|call| call,
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    }
    .break_everywhere(tally);
}

const REFUSED: &str =
    "on *\n stdin\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
const COMMENT: [&str; 5] = ["issue", "comment", "5", "--body-file", "-"];
/// On an issue for which nothing waits, so that gh itself is asked first.
const FREE: [&str; 5] = ["issue", "comment", "6", "--body-file", "-"];

/// A checkout with two queued comments.
fn queued(without: &'static str) -> Scene {
    let scene = Scene::new(REFUSED, without);
    for body in ["first", "second"] {
        let run = scene.sandbox.gh(&COMMENT).stdin(Stdin::Bytes(body.into())).run();
        assert!(run.err().contains("Spooled as"), "{}", run.err());
    }
    scene.keep();
    scene
}

/// The queue's entries, and the body of each.
fn entries(scene: &Scene) -> Vec<(Found, Option<Vec<u8>>)> {
    let queue = Queue::open(&scene.sandbox.path("work"), &scene.sandbox.state()).unwrap().expect("a queue");
    let with_body = |found: Found| {
        let body = queue.body(found.seq).ok();
        (found, body)
    };
    queue.load().unwrap().found.into_iter().map(with_body).collect()
}

/// The first two are as they were: waiting, sealed, with their bodies.
fn old_entries_are_whole(scene: &Scene, of: &[u32], what: &str, tally: &mut Tally) {
    let entries = entries(scene);
    for seq in of {
        let body: &[u8] = if *seq == 1 { b"first" } else { b"second" };
        let entry = entries.iter().find(|(found, _)| found.seq == *seq);
        let is_whole = entry.is_some_and(|(found, of)| found.is_ours() && of.as_deref() == Some(body));
        tally.expect(is_whole, Bad::Lost, || format!("entry {seq} is not what it was: {what}"));
    }
    for (found, _) in &entries {
        tally
            .expect(found.record.is_ok(), Bad::Half, || format!("entry {} is half a one: {what}", found.seq));
    }
}

/// Whether anything was ever numbered 3.
fn is_taken(scene: &Scene) -> bool {
    let folder = scene.sandbox.path("work/.claude/forge/queue");
    let names: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.iter().any(|name| name.starts_with("000003."))
}

/// A write that the forge does not take is queued.
pub fn enqueue(tally: &mut Tally) {
    const BODY: &[u8] = b"the third body\nwith two lines";
    let scene = queued(tally.without);
    let judge = |run: &Run, done: Done, what: &str, tally: &mut Tally| {
        old_entries_are_whole(&scene, &[1, 2], what, tally);
        let third = entries(&scene).into_iter().find(|(found, _)| found.is_pending() && found.seq == 3);
        let is_whole =
            third.as_ref().is_some_and(|(found, body)| found.is_ours() && body.as_deref() == Some(BODY));
        let promised = run.err().contains("Spooled as q000003");
        tally.expect(!promised || is_whole, Bad::Lost, || format!("promised and not there: {what}"));
        tally.expect(third.is_none() || is_whole, Bad::Half, || format!("half an entry: {what}"));
        if done != Done::Killed && !promised {
            // gh's own failure, or, behind older writes to the same issue, a word that says the same.
            let said = run.err().contains("HTTP 503") || run.err().contains("NOT queued and NOT delivered");
            let own = run.exit == Exit::Code(1) && said;
            tally.expect(own, Bad::Wrong, || format!("{:?} {}: {what}", run.exit, run.err()));
            tally
                .expect(third.is_none(), Bad::Doubled, || format!("said to have failed, and queued: {what}"));
        }
        let expected = if is_taken(&scene) { "q000004" } else { "q000003" };
        let next = scene.gh(&COMMENT).stdin(Stdin::Bytes(b"next".into())).run();
        let is_next = next.err().contains(&format!("Spooled as {expected}"));
        tally
            .expect(is_next, Bad::Wrong, || format!("the next is not {expected} but {}: {what}", next.err()));
        old_entries_are_whole(&scene, &[1, 2], what, tally);
    };
    let program = scene.sandbox.path("bin/gh");
    let operation = Operation {
        scene: &scene,
        program,
        args: &FREE,
        shape: &|call| call.stdin(Stdin::Bytes(BODY.into())),
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    };
    operation.break_everywhere(tally);
}

/// A person sets one entry aside.
pub fn drop(tally: &mut Tally) {
    let scene = queued(tally.without);
    let args = ["queue", "drop", "q000001"];
    let judge = |run: &Run, _: Done, what: &str, tally: &mut Tally| {
        old_entries_are_whole(&scene, &[2], what, tally);
        let waits =
            |scene: &Scene| entries(scene).iter().any(|(found, _)| found.seq == 1 && found.is_pending());
        tally.expect(run.exit != Exit::Code(0) || !waits(&scene), Bad::Wrong, || {
            format!("dropped and waiting: {what}")
        });
        if waits(&scene) {
            old_entries_are_whole(&scene, &[1], what, tally);
            let again = scene.forge(&args).run();
            tally.expect(again.exit == Exit::Code(0) && !waits(&scene), Bad::Wrong, || {
                format!("cannot be dropped any more ({}): {what}", again.err())
            });
        }
        old_entries_are_whole(&scene, &[2], what, tally);
    };
    Operation {
        scene: &scene,
        program: forge_command(),
        args: &args,
        shape: &|call| call,
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    }
    .break_everywhere(tally);
}

/// A person empties the queue.
pub fn clear(tally: &mut Tally) {
    let scene = queued(tally.without);
    let args = ["queue", "clear"];
    let judge = |run: &Run, _: Done, what: &str, tally: &mut Tally| {
        let left = |scene: &Scene| entries(scene).iter().filter(|(found, _)| found.is_pending()).count();
        for (found, body) in entries(&scene).iter().filter(|(found, _)| found.is_pending()) {
            let is_whole = found.is_ours() && body.is_some();
            tally.expect(is_whole, Bad::Half, || format!("entry {} without its body: {what}", found.seq));
        }
        for (found, _) in entries(&scene) {
            tally.expect(found.record.is_ok(), Bad::Half, || format!("half of entry {}: {what}", found.seq));
        }
        tally.expect(run.exit != Exit::Code(0) || left(&scene) == 0, Bad::Wrong, || {
            format!("cleared and waiting: {what}")
        });
        let again = scene.forge(&args).run();
        tally.expect(left(&scene) == 0, Bad::Wrong, || {
            format!("cannot be cleared any more ({}): {what}", again.err())
        });
        let next = scene.gh(&COMMENT).stdin(Stdin::Bytes(b"next".into())).run();
        let number =
            next.err().split("Spooled as q").nth(1).and_then(|rest| rest.get(..6)?.parse::<u32>().ok());
        tally.expect(number.is_some_and(|number| number > 2), Bad::Doubled, || {
            format!("{} again: {what}", next.err())
        });
    };
    Operation {
        scene: &scene,
        program: forge_command(),
        args: &args,
        shape: &|call| call,
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    }
    .break_everywhere(tally);
}

fn budgeted(call: Call<'_>) -> Call<'_> {
    call.env("BOB_FORGE_BUDGET", "1").env("BOB_FORGE_SLEEP", "/bin/true")
}

/// A call that asks for the quota first.
pub fn refresh(tally: &mut Tally) {
    let now = engine::process::clock::now_s();
    let quota = |remaining: u32| {
        format!(
            r#"{{"limit":5000,"remaining":{remaining},"used":{},"reset":{}}}"#,
            5_000 - remaining,
            now + 3_000
        )
    };
    let answer = format!(r#"{{"resources":{{"graphql":{0},"core":{0},"search":{0}}}}}"#, quota(4_000));
    let script = format!(
        "on api rate_limit\n out {}\n exit 0\non *\n out answer\\n\n exit 0\n",
        answer.escape_default()
    );
    let scene = Scene::new(&script, tally.without);
    let on_file = format!(
        "schema=bob-forge-budget/1\nfetched_at={}\ngraphql_limit=5000\ngraphql_remaining=4500\ngraphql_used=500\n\
         graphql_reset={}\n{}\n",
        now - 500,
        now + 3_000,
        "note=kept in spite of everything".repeat(9)
    );
    scene.sandbox.file("bob/forge/budget.env", on_file);
    scene.keep();
    let judge = |run: &Run, done: Done, what: &str, tally: &mut Tally| {
        if done != Done::Killed {
            let same = (run.exit, run.out().as_str()) == (Exit::Code(0), "answer\n");
            tally.expect(same, Bad::Wrong, || format!("{:?} {}: {what}", run.exit, run.err()));
        }
        let graphql = engine::store::budget::read(&scene.sandbox.state()).quotas.graphql;
        let is_whole = graphql.is_some_and(|quota| [4_000, 4_500].contains(&quota.remaining));
        tally.expect(is_whole, Bad::Half, || format!("budget.env is torn: {what}"));
        let started = std::time::Instant::now();
        let next = budgeted(scene.gh(&["pr", "list"])).run();
        let in_time = started.elapsed().as_secs() < 5;
        tally.expect(next.out() == "answer\n" && in_time, Bad::Wrong, || format!("the next call: {what}"));
        let is_new = || {
            let graphql = engine::store::budget::read(&scene.sandbox.state()).quotas.graphql;
            graphql.is_some_and(|quota| quota.remaining == 4_000)
        };
        if !is_new() {
            // A holder that was killed while it wrote its commit has no name any more: its lease has to end.
            let lock = scene.sandbox.state().join("budget.lock");
            let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(31);
            for entry in fs::read_dir(lock).into_iter().flatten().flatten() {
                fs::File::open(entry.path()).unwrap().set_modified(long_ago).unwrap();
            }
            budgeted(scene.gh(&["pr", "list"])).run();
        }
        tally.expect(is_new(), Bad::Lost, || format!("nobody reads the quota any more: {what}"));
    };
    let program = scene.sandbox.path("bin/gh");
    let operation = Operation {
        scene: &scene,
        program,
        args: &["pr", "list"],
        shape: &budgeted,
        judge: &judge,
        in_every_way: true,
        again: &|| (),
    };
    operation.break_everywhere(tally);
}
