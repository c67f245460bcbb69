//! Per-minute pacing (#3978): one ledger, foreground and background.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::{answering, calls, events, gh, ledger, lines, naps, now_s, waits};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;

fn rows(sandbox: &Sandbox) -> Vec<String> {
    let line = |line: String| line.split_once('\t').unwrap().1.replace('\t', " ");
    lines(&sandbox.state().join("rate.log")).into_iter().map(line).collect()
}

#[test]
fn every_call_that_reaches_github_is_in_the_ledger() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").run();
    gh(&sandbox, "run list").env("BOB_FORGE_BACKGROUND", "1").run();
    gh(&sandbox, "api search/issues").run();
    gh(&sandbox, "--version").run();
    assert_eq!(rows(&sandbox)[..1], ["graphql fg"]);
    assert!(rows(&sandbox).contains(&"core bg".into()) && rows(&sandbox).contains(&"search fg".into()));
    let columns = lines(&sandbox.state().join("rate.log"))[0].split('\t').count();
    assert_eq!(columns, 3);
}

#[test]
fn a_foreground_call_is_held_until_the_window_has_room() {
    let table = [
        ("issue list", "graphql", 59, 0),
        ("issue list", "graphql", 60, 1),
        ("issue list", "core", 500, 0),
        ("api repos/o/r", "core", 119, 0),
        ("api repos/o/r", "core", 120, 1),
        ("api search/issues", "search", 19, 0),
        ("api search/issues", "search", 20, 1),
    ];
    for (line, quota, count, held) in table {
        let sandbox = answering(4_000, 400);
        ledger(&sandbox, count, quota, "fg", 20);
        let run = gh(&sandbox, line).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
        assert_eq!(naps(&sandbox).len(), held, "{line} with {count}: {:?}", naps(&sandbox));
        if held == 1 {
            let seconds: f64 = naps(&sandbox)[0].parse().unwrap();
            assert!((38.0..=40.0).contains(&seconds), "{seconds}");
            assert!(
                waits(&sandbox)[0].starts_with(&format!("hold {quota} {count} ")),
                "{:?}",
                events(&sandbox)
            );
            let part =
                format!("{quota} rate is {count}/60s, at the ceiling of {count}. This call finishes on");
            assert!(run.err().contains(&part), "{}", run.err());
        }
    }
}

#[test]
fn ceiling_and_window_are_settings_and_zero_turns_a_quota_off() {
    let sandbox = answering(4_000, 400);
    ledger(&sandbox, 5, "graphql", "fg", 20);
    gh(&sandbox, "issue list").env("BOB_FORGE_RATE_GRAPHQL", "5").run();
    assert_eq!(naps(&sandbox).len(), 1);
    gh(&sandbox, "issue list").env("BOB_FORGE_RATE_GRAPHQL", "6").env("BOB_FORGE_RATE_WINDOW", "10").run();
    ledger(&sandbox, 500, "graphql", "fg", 1);
    gh(&sandbox, "issue list").env("BOB_FORGE_RATE_GRAPHQL", "0").run();
    assert_eq!(naps(&sandbox).len(), 1);
}

#[test]
fn a_background_call_is_deferred_with_one_line_while_a_foreground_call_goes_through() {
    let sandbox = answering(4_000, 400);
    ledger(&sandbox, 31, "graphql", "fg", 26);
    let deferred = gh(&sandbox, "issue list").env("BOB_FORGE_BACKGROUND", "1").run();
    let seconds = naps(&sandbox)[0].parse::<f64>().unwrap().ceil() as u64;
    let expected = format!(
        "[forge-budget] background call deferred {seconds}s: graphql rate is 31/60s, above the background share \
         of 30 (ceiling 60). It runs on its own.\n"
    );
    assert_eq!((deferred.out(), deferred.err()), ("answer\n".into(), expected));
    assert!((32..=34).contains(&seconds), "{seconds}");
    assert_eq!(waits(&sandbox), [format!("defer graphql 31 {seconds} issue list")]);
    let through = gh(&sandbox, "issue list").run();
    assert_eq!((through.out(), through.err(), naps(&sandbox).len()), ("answer\n".into(), String::new(), 1));
}

#[test]
fn a_background_call_that_may_not_wait_is_refused_with_75() {
    let sandbox = answering(4_000, 400);
    ledger(&sandbox, 31, "graphql", "fg", 26);
    let background = |share: &str| {
        gh(&sandbox, "issue list")
            .env("BOB_FORGE_BACKGROUND", "1")
            .env("BOB_FORGE_BACKGROUND_DEFER", "0")
            .env("BOB_FORGE_BACKGROUND_SHARE", share)
            .run()
    };
    let refused = background("50");
    assert_eq!((refused.exit, refused.out()), (Exit::Code(75), String::new()));
    assert!(refused.err().starts_with("[forge-budget] background call refused: graphql rate is 31/60s"));
    assert_eq!((calls(&sandbox).1, rows(&sandbox).len()), (0, 31), "nothing was sent, no slot was taken");
    assert_eq!(waits(&sandbox), ["refuse graphql 31 0 issue list"]);
    assert_eq!(background("60").exit, Exit::Code(0));
}

#[test]
fn of_a_hundred_processes_exactly_as_many_run_as_slots_are_free() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").run();
    ledger(&sandbox, 31, "graphql", "fg", 0);
    let racing: Vec<_> = (0..100)
        .map(|_| {
            gh(&sandbox, "issue list")
                .env("BOB_FORGE_BACKGROUND", "1")
                .env("BOB_FORGE_BACKGROUND_SHARE", "100")
                .env("BOB_FORGE_BACKGROUND_DEFER", "0")
                .start()
        })
        .collect();
    let ends: Vec<Exit> = racing.into_iter().map(|call| call.finish().exit).collect();
    let ran = ends.iter().filter(|end| **end == Exit::Code(0)).count();
    let refused = ends.iter().filter(|end| **end == Exit::Code(75)).count();
    assert_eq!((ran, refused, calls(&sandbox).1, rows(&sandbox).len()), (29, 71, 30, 60));
}

#[test]
fn a_held_ledger_delays_a_call_by_no_more_than_its_bound() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").run();
    let held = File::open(sandbox.state().join("rate.log.lock")).unwrap();
    held.lock().unwrap();
    let run = gh(&sandbox, "issue list").run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
    assert!((Duration::from_millis(1_500)..Duration::from_secs(15)).contains(&run.took), "{:?}", run.took);
    assert_eq!(rows(&sandbox).len(), 1, "it went without a slot");
}

#[test]
fn an_older_shims_lock_folder_is_honoured_until_it_is_thirty_seconds_old() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").run();
    let folder = sandbox.state().join("rate.lock");
    fs::create_dir(&folder).unwrap();
    let almost = SystemTime::now() - Duration::from_millis(28_500);
    File::open(&folder).unwrap().set_modified(almost).unwrap();
    let run = gh(&sandbox, "issue list").run();
    assert_eq!((run.exit, rows(&sandbox).len()), (Exit::Code(0), 2));
    assert!((Duration::from_millis(500)..Duration::from_secs(20)).contains(&run.took), "{:?}", run.took);
}

#[test]
fn a_clock_that_was_set_back_locks_nobody_out() {
    let sandbox = answering(4_000, 400);
    let line = format!("{}\tgraphql\tfg\n", now_s() + 1_000_000);
    sandbox.file("bob/forge/rate.log", line.repeat(60));
    gh(&sandbox, "issue list").run();
    let seconds: f64 = naps(&sandbox)[0].parse().unwrap();
    assert!(seconds <= 60.0, "{seconds}");
}
