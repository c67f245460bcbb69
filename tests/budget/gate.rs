//! Pacing: pace line, floor, interactive callers, bounds, what is never gated.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{answering, calls, gh, hh_mm, naps, now_s, rate_limit, waits, with};
use crate::support::sandbox::wait_until;
use crate::support::spawn::Exit;
use crate::support::streams::{Out, Stdin};

#[test]
fn the_pacing_table_row_by_row() {
    let table: &[(u64, &str, &[&str], &str)] = &[
        (1_000, "0", &[], ""),
        (999, "0", &["2"], "pace graphql 999 2 issue list"),
        (300, "0", &["2"], "pace graphql 300 2 issue list"),
        (299, "0", &["400"], "wait graphql 299 400 issue list"),
        (1_000, "1", &[], ""),
        (999, "1", &[], ""),
        (299, "1", &[], ""),
    ];
    for (remaining, interactive, slept, event) in table {
        // The window that is waited for ends at the first wait: the second read finds a new one.
        let script = rate_limit(*remaining, now_s() + 400).replace("rate_limit", "rate_limit #1")
            + &rate_limit(5_000, now_s() + 4_000)
            + "on *\n out answer\\n\n";
        let sandbox = with(&script);
        let run = gh(&sandbox, "issue list").env("BOB_FORGE_INTERACTIVE", interactive).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()), "{remaining}");
        let naps = naps(&sandbox);
        // A second may have passed since the reset was written.
        let near = |(nap, expected): (&String, &&str)| {
            nap.parse::<f64>().unwrap() + 2.0 >= expected.parse::<f64>().unwrap()
        };
        assert_eq!(naps.len(), slept.len(), "{remaining} {interactive}: {naps:?}");
        assert!(naps.iter().zip(*slept).all(near), "{remaining} {interactive}: {naps:?}");
        let words = |event: &str| event.split(' ').take(3).collect::<Vec<_>>().join(" ");
        let logged: Vec<String> = waits(&sandbox).iter().map(|event| words(event)).collect();
        let expected: Vec<String> = [words(event)].into_iter().filter(|e| !e.is_empty()).collect();
        assert_eq!(logged, expected, "{remaining} {interactive}");
        let warned = run.err().contains("quota is low: 299 left (floor 300)");
        assert_eq!(warned, *remaining < 300 && *interactive == "1", "{}", run.err());
    }
}

#[test]
fn a_call_under_the_floor_waits_with_one_line_and_reads_the_quota_again() {
    let reset_at = now_s() + 412;
    let script = rate_limit(120, reset_at).replace("rate_limit", "rate_limit #1")
        + &rate_limit(5_000, reset_at + 3_600)
        + "on *\n out answer\\n\n";
    let sandbox = with(&script);
    let run = gh(&sandbox, "issue list").run();
    let waited: u64 = naps(&sandbox)[0].parse::<f64>().unwrap().ceil() as u64;
    let expected = format!(
        "[forge-budget] waiting {waited}s for the GitHub graphql quota to reset at {} (120 left, floor 300). \
         This call finishes on its own: do not retry it and do not stop.\n",
        hh_mm(reset_at)
    );
    assert_eq!((run.exit, run.out(), run.err()), (Exit::Code(0), "answer\n".into(), expected));
    assert!((410..=412).contains(&waited), "{waited}");
    assert_eq!(calls(&sandbox), (2, 1));
    assert_eq!(waits(&sandbox), [format!("wait graphql 120 {waited} issue list")]);
}

#[test]
fn a_quota_that_is_still_low_after_the_reset_is_waited_for_within_the_bound() {
    let sandbox = with("on api rate_limit\n exec rate\non *\n out answer\\n\n");
    // Every read names a window that ends 1,000 seconds later.
    sandbox.shell(
        "real/rate",
        "n=$(cat \"$0.n\" 2>/dev/null || date +%s); n=$((n + 1000)); echo $n > \"$0.n\"\n\
         printf '{\"resources\":{\"graphql\":{\"limit\":5000,\"remaining\":1,\"reset\":%s}}}' $n",
    );
    let path = format!("{}:{}:/usr/bin:/bin", sandbox.path("bin").display(), sandbox.path("real").display());
    let run = gh(&sandbox, "issue list").env("PATH", path).run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
    let slept: f64 = naps(&sandbox).iter().map(|nap| nap.parse::<f64>().unwrap()).sum();
    assert!((2_900.0..=3_900.0).contains(&slept), "{:?}", naps(&sandbox));
    assert!(waits(&sandbox).last().unwrap().starts_with("wait-capped graphql 1 0"), "{:?}", waits(&sandbox));
}

#[test]
fn a_reset_further_away_than_the_bound_is_not_waited_for() {
    let sandbox = answering(10, 3_910);
    let run = gh(&sandbox, "issue list").run();
    assert_eq!((run.out(), run.err(), naps(&sandbox).len()), ("answer\n".into(), String::new(), 0));
    assert_eq!(waits(&sandbox), ["wait-capped graphql 10 0 issue list"]);
    let shorter = answering(10, 100);
    gh(&shorter, "issue list").env("BOB_FORGE_MAX_WAIT", "60").run();
    assert_eq!(naps(&shorter).len(), 0);
}

#[test]
fn callers_leave_a_wait_half_a_second_apart() {
    let reset_at = now_s() + 400;
    let sandbox = with(&(rate_limit(10, reset_at) + "on *\n out answer\\n\n"));
    let mut began = Vec::new();
    for _ in 0..3 {
        began.push(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64());
        gh(&sandbox, "issue list").run();
    }
    let ends = naps(&sandbox).into_iter().zip(began).map(|(nap, began)| nap.parse::<f64>().unwrap() + began);
    let after_reset: Vec<f64> = ends.map(|end| end - reset_at as f64).collect();
    for (place, after) in after_reset.iter().enumerate() {
        // A nap began a little later than its call did; how much later is the machine's affair. And two
        // readings of its clock, which may be set meanwhile, are no exact measure.
        assert!(*after <= place as f64 * 0.5 + 0.1, "{after_reset:?}");
    }
    let hold = fs::read_to_string(sandbox.state().join("hold.env")).unwrap();
    assert!(hold.contains(&format!("\ngraphql_line_ms={}\n", reset_at * 1_000 + 1_500)), "{hold}");
}

#[test]
fn a_person_at_a_terminal_is_warned_and_answered() {
    let sandbox = answering(10, 400);
    let run = gh(&sandbox, "issue list").stdin(Stdin::Tty).stderr(Out::Tty).run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
    assert!(run.err().contains("[forge-budget] the GitHub graphql quota is low: 10 left"), "{}", run.err());
    assert!(naps(&sandbox).is_empty());
    let half = gh(&sandbox, "issue list").stderr(Out::Tty).run();
    assert!(half.err().contains("waiting"), "only both are a person: {}", half.err());
}

#[test]
fn what_spends_no_quota_of_github_is_never_gated() {
    for line in [
        "auth status",
        "api rate_limit",
        "--version",
        "config list",
        "issue list -R ghe.example.com/o/r",
        "api --hostname ghe.example.com user",
    ] {
        let sandbox = answering(0, 400);
        gh(&sandbox, line).run();
        let other = usize::from(line != "api rate_limit");
        assert_eq!(calls(&sandbox), (1 - other, other), "{line}");
        assert!(!sandbox.state().join("rate.log").exists(), "{line}");
        assert!(naps(&sandbox).is_empty(), "{line}");
    }
    let sandbox = answering(0, 400);
    gh(&sandbox, "issue list").env("GH_HOST", "ghe.example.com").run();
    gh(&sandbox, "issue list").env("BOB_FORGE_BUDGET", "0").run();
    assert_eq!((calls(&sandbox), naps(&sandbox).len()), ((0, 2), 0));
}

#[test]
fn each_quota_has_its_own_floor() {
    let quotas = |core: u64, search: u64| {
        let reset = now_s() + 400;
        format!(
            "on api rate_limit\n out {{\"resources\":{{\"core\":{{\"limit\":5000,\"remaining\":{core},\"reset\":\
             {reset}}},\"search\":{{\"limit\":30,\"remaining\":{search},\"reset\":{reset}}}}}}}\non *\n exit 0\n"
        )
    };
    let table = [
        ("run list", 199, 30, "wait core 199"),
        ("run list", 200, 30, "pace core 200"),
        ("run list", 600, 0, ""),
        ("search issues x", 5_000, 2, "wait search 2"),
        ("search issues x", 5_000, 7, "pace search 7"),
        ("search issues x", 0, 8, ""),
        ("issue list", 0, 0, ""),
    ];
    for (line, core, search, event) in table {
        let sandbox = with(&quotas(core, search));
        gh(&sandbox, line).env("BOB_FORGE_MAX_WAIT", "500").run();
        let first = waits(&sandbox).into_iter().next().unwrap_or_default();
        assert!(first.starts_with(event) && first.is_empty() == event.is_empty(), "{line}: {first}");
    }
}

#[test]
fn no_wait_goes_past_the_callers_deadline() {
    let sandbox = answering(10, 400);
    let soon = (now_s() + 100).to_string();
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_DEADLINE", soon).run();
    assert_eq!((run.out(), naps(&sandbox).len()), ("answer\n".into(), 0));
    let later = (now_s() + 500).to_string();
    gh(&sandbox, "issue list").env("BOB_FORGE_DEADLINE", later).run();
    assert_eq!(naps(&sandbox).len(), 1);
}

#[test]
fn a_read_whose_caller_gives_up_gets_what_was_known_last() {
    let sandbox = answering(4_000, 400);
    gh(&sandbox, "issue list").run();
    let low = format!("{}on *\n out new\\n\n", rate_limit(10, now_s() + 400));
    sandbox.script(&low);
    fs::remove_file(sandbox.state().join("budget.env")).unwrap();
    let soon = (now_s() + 100).to_string();
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_DEADLINE", &soon).run();
    assert_eq!((run.exit, run.out(), calls(&sandbox).1), (Exit::Code(0), "answer\n".into(), 1));
    assert!(run.err().starts_with("[forge-cache] served from cache"), "{}", run.err());
    let other = gh(&sandbox, "issue view 5").env("BOB_FORGE_DEADLINE", &soon).run();
    assert_eq!(other.out(), "new\n", "nothing is known: it goes ahead");
}

#[test]
fn a_signal_ends_a_wait_and_gh_is_never_started() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let sandbox = answering(10, 400);
        let running = gh(&sandbox, "issue list").env_remove("BOB_FORGE_SLEEP").in_own_group().start();
        wait_until("the line", || {
            String::from_utf8_lossy(&running.stderr().bytes()).contains("[forge-budget] waiting")
        });
        running.send(signal);
        let run = running.finish();
        assert_eq!((run.exit, run.out()), (Exit::Signal(signal), String::new()));
        assert!(run.took < Duration::from_secs(20), "{:?}", run.took);
        assert_eq!(calls(&sandbox), (1, 0));
    }
}

#[test]
fn a_wait_is_a_wait_of_real_time() {
    let sandbox = answering(10, 2);
    let run = gh(&sandbox, "issue list").env_remove("BOB_FORGE_SLEEP").run();
    assert_eq!(run.out(), "answer\n");
    assert!(run.err().contains("waiting"), "{}", run.err());
    assert!((Duration::from_millis(500)..Duration::from_secs(20)).contains(&run.took), "{:?}", run.took);
}

#[test]
fn whatever_is_broken_the_call_goes() {
    let sandbox = answering(10, 400);
    for state in ["/dev/null/forge", "/proc/forge"] {
        let run = gh(&sandbox, "issue list").env("BOB_FORGE_STATE", state).run();
        assert_eq!((run.exit, run.out(), run.err()), (Exit::Code(0), "answer\n".into(), String::new()));
    }
    sandbox.file("bob/forge/rate.log/in-the-way", "");
    sandbox.file("bob/forge/hold.env/in-the-way", "");
    sandbox.file("bob/forge/budget.env/in-the-way", "");
    let run = gh(&sandbox, "issue list").env("BOB_FORGE_MAX_WAIT", "500").run();
    assert_eq!((run.exit, run.out()), (Exit::Code(0), "answer\n".into()));
}
