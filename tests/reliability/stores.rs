//! Every step at which a recorded call, a stored read, a verdict or a quota read can be killed or refused something.

use std::fs;

use super::breaking::{Done, Operation, is_whole_json, leaves_nothing};
use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::running::Run;
use crate::support::sandbox::forge_command;
use crate::support::spawn::Exit;

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
            leaves_nothing(&scene, what, tally);
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
    Operation { args: &["pr", "status"], ..Operation::of(&scene, &judge) }.break_everywhere(tally);
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
            leaves_nothing(&scene, what, tally);
        }
        let stored = scene.sandbox.state().join("health.json");
        tally.expect(is_whole_json(&stored), Bad::Half, || format!("half a verdict: {what}"));
        let next = scene.forge(&args).run();
        tally.expect(next.exit == Exit::Code(4), Bad::Wrong, || {
            format!("then {:?}, {}: {what}", next.exit, next.err())
        });
    };
    Operation { program: forge_command(), args: &args, ..Operation::of(&scene, &judge) }
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
            leaves_nothing(&scene, what, tally);
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
    Operation { args: &["issue", "list"], ..Operation::of(&scene, &judge) }.break_everywhere(tally);
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
    let operation = Operation { args: &["pr", "list"], shape: &budgeted, ..Operation::of(&scene, &judge) };
    operation.break_everywhere(tally);
}
