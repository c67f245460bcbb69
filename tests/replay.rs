//! Replay against the local forge with both real versions of gh: everything once, in order, whatever is lost
//! on the way.

use crate::support::forge::{Forge, REAL_GH};
use crate::support::queued::Scene;
use crate::support::spawn::Exit;
use serde_json::json;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn forge() -> Forge {
    Forge::start(&["--repo", "acme/widget"])
}

/// A body as the forge gives it back.
fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").trim_end().to_string()
}

const DONE: Exit = Exit::Code(0);
const NOT_ALL: Exit = Exit::Code(3);

#[test]
fn awkward_bodies_of_every_kind_arrive_as_they_were_written() {
    let forge = forge();
    let long = "long line of text\n".repeat(3_400);
    let bodies = [
        "two empty lines at the end\n\n\n",
        "windows\r\nline\r\nends\r\n",
        "ünïcödé ✓ 🎉 \u{202e}turned",
        "--leading dashes\n-b\n",
        "$HOME `id` $(id) \\ \"quotes\" 'single' %s",
        "@file\n#1\nBOB-Q1",
        &long,
    ];
    for version in REAL_GH {
        let scene = Scene::new(&forge, version);
        scene.outage();
        for (n, body) in bodies.iter().enumerate() {
            let title = format!("--title {n}");
            scene.spooled(&["issue", "create", "--title", &title, "--body-file", "-"], body.as_bytes());
            let file = scene.sandbox.file("tmp/body.md", body);
            scene.spooled(&["issue", "comment", "1", "-F", file.to_str().unwrap()], b"");
            scene.spooled(&["issue", "comment", "1", "--body", body], b"");
            scene.spooled(&["issue", "edit", "2", "-F-"], body.as_bytes());
            scene.spooled(&["issue", "close", "2", "-c", body], b"");
            scene.spooled(&["issue", "reopen", "2", &format!("-c{body}")], b"");
        }
        scene.recovery();
        let replayed = scene.replay();
        assert_eq!(replayed.exit, DONE, "{}{}", replayed.out(), replayed.err());
        assert_eq!(scene.issues().len(), 2 + bodies.len());
        for (n, body) in bodies.iter().enumerate() {
            let made = scene.issue(3 + n as u64);
            assert_eq!(made["title"], format!("--title {n}"));
            assert_eq!(normal(made["body"].as_str().unwrap()), normal(body));
        }
        let twice = |body: &&str| [normal(body), normal(body)];
        let wanted: Vec<String> = bodies.iter().flat_map(twice).collect();
        for number in [1, 2] {
            let seen: Vec<String> = scene.comments(number).iter().map(|body| normal(body)).collect();
            assert_eq!(seen, wanted, "comments of #{number} with {version}");
        }
        assert_eq!(normal(scene.issue(2)["body"].as_str().unwrap()), normal(bodies.last().unwrap()));
        assert_eq!(scene.issue(2)["state"], "open");
    }
}

/// One write of each sort, and how often it is on the forge.
struct Sort {
    args: &'static [&'static str],
    count: fn(&Scene) -> usize,
}

const SORTS: &[Sort] = &[
    Sort { args: &["issue", "comment", "1", "--body", "lost?"], count: |s| s.comments(1).len() },
    Sort {
        args: &["issue", "create", "--title", "lost?", "--body", "text"],
        count: |s| s.issues().len() - 2,
    },
    Sort {
        args: &["issue", "create", "-t", "lost?", "-b", "text", "-l", "bug", "-a", "@me"],
        count: |s| {
            let made: Vec<_> = s.issues().into_iter().filter(|issue| issue["title"] == "lost?").collect();
            let whole = made.iter().filter(|i| i["labels"][0] == "bug" && i["assignees"][0] == "monalisa");
            whole.count() + (made.len().max(1) - 1) * 10
        },
    },
    Sort {
        args: &["issue", "edit", "1", "--title", "new", "--body", "text", "--add-label", "bug"],
        count: |s| {
            let issue = s.issue(1);
            usize::from(issue["title"] == "new" && issue["body"] == "text" && issue["labels"][0] == "bug")
        },
    },
    Sort { args: &["issue", "close", "1"], count: |s| usize::from(s.issue(1)["state"] == "closed") },
    Sort {
        args: &["issue", "close", "1", "--comment", "bye", "--reason", "not planned"],
        count: |s| s.comments(1).len() + usize::from(s.issue(1)["state"] == "closed") - 1,
    },
    Sort {
        args: &["issue", "reopen", "2", "--comment", "again"],
        count: |s| s.comments(2).len() + usize::from(s.issue(2)["state"] == "open") - 1,
    },
];

fn fresh<'f>(forge: &'f Forge, version: &str) -> Scene<'f> {
    let scene = Scene::new(forge, version);
    scene.seed(json!({"labels": ["bug"]}));
    let closed = scene.forge.request("PATCH", "/repos/acme/widget/issues/2", r#"{"state":"closed"}"#);
    assert_eq!(closed.0, 200, "{}", closed.1);
    scene
}

/// Runs replays by hand until one has nothing more to do.
fn drain(scene: &Scene, what: &str) {
    for _ in 0..4 {
        let run = scene.replay();
        if run.exit == DONE {
            return;
        }
    }
    let all = scene.queue(&["list", "--all"]);
    panic!("{what}: not drained\n{}\n{}", all.out(), scene.replay().out());
}

#[test]
fn an_answer_that_is_lost_at_any_request_of_the_older_gh_leaves_one_result() {
    lost_answers_of_live_calls(REAL_GH[0]);
}

#[test]
fn an_answer_that_is_lost_at_any_request_of_the_newer_gh_leaves_one_result() {
    lost_answers_of_live_calls(REAL_GH[1]);
}

fn lost_answers_of_live_calls(version: &str) {
    let forge = forge();
    let mut cases = 0;
    let scene = fresh(&forge, version);
    {
        for sort in SORTS {
            for fault in ["applied-then-drop", "applied-then-502", "applied-then-503", "drop"] {
                for skip in 0.. {
                    let what = format!("{version} {:?} {fault} after {skip}", sort.args);
                    again(&scene);
                    scene.fault(json!({"fault": fault, "skip": skip, "times": 1}));
                    let run = scene.gh(sort.args);
                    scene.recovery();
                    if run.exit == DONE && !run.err().contains("[forge-queue]") {
                        assert!(skip > 0, "{what}: no request was made");
                        break;
                    }
                    assert_eq!(run.exit, DONE, "{what}: {}", run.err());
                    drain(&scene, &what);
                    assert_eq!((sort.count)(&scene), 1, "{what}");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 60, "{cases} cases");
    eprintln!("lost answers of live calls of {version} gh: {cases} cases, lost 0, doubled 0");
}

#[test]
fn an_answer_that_is_lost_at_any_request_of_a_delivery_leaves_one_result() {
    let forge = forge();
    let mut cases = 0;
    for version in REAL_GH {
        let scene = fresh(&forge, version);
        for sort in SORTS {
            for fault in ["applied-then-drop", "drop"] {
                for skip in 0.. {
                    let what = format!("{version} {:?} {fault} after {skip}", sort.args);
                    again(&scene);
                    scene.outage();
                    scene.spooled(sort.args, b"");
                    scene.recovery();
                    scene.fault(json!({"fault": fault, "skip": skip, "times": 1}));
                    let run = scene.replay();
                    scene.recovery();
                    if run.exit == DONE {
                        assert_eq!((sort.count)(&scene), 1, "{what}");
                        assert!(skip > 0, "{what}: no request was made");
                        break;
                    }
                    drain(&scene, &what);
                    assert_eq!((sort.count)(&scene), 1, "{what}");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 60, "{cases} cases");
    eprintln!("lost answers of deliveries: {cases} cases, lost 0, doubled 0");
}

/// The same checkout and a forge as new.
fn again(scene: &Scene) {
    scene.forge.control("POST", "/_forge/reset", "");
    scene.seed(json!({"issues": [{"title": "first"}, {"title": "second"}], "labels": ["bug"]}));
    scene.forge.request("PATCH", "/repos/acme/widget/issues/2", r#"{"state":"closed"}"#);
    let _ = fs::remove_dir_all(scene.sandbox.path("work/.claude"));
    let _ = fs::remove_dir_all(scene.sandbox.state());
}

#[test]
fn an_older_equal_write_does_not_swallow_a_new_one() {
    let forge = forge();
    for version in REAL_GH {
        let scene = Scene::new(&forge, version);
        for (fault, on) in [("drop", "mutation"), ("applied-then-drop", "mutation"), ("502", "mutation")] {
            again(&scene);
            let comment = ["issue", "comment", "1", "--body", "/retest"];
            let create = ["issue", "create", "--title", "same", "--body", "same"];
            assert_eq!(scene.gh(&comment).exit, DONE);
            assert_eq!(scene.gh(&create).exit, DONE);
            // The forge tells seconds apart, no less.
            std::thread::sleep(std::time::Duration::from_millis(1_300));
            scene.fault(json!({"fault": fault, "on": on}));
            scene.spooled(&comment, b"");
            scene.spooled(&create, b"");
            scene.recovery();
            drain(&scene, fault);
            assert_eq!(scene.comments(1), ["/retest", "/retest"], "{version} {fault}");
            let same = scene.issues().into_iter().filter(|issue| issue["title"] == "same").count();
            assert_eq!(same, 2, "{version} {fault}");
        }
        // Two that were meant to be two, both answers lost.
        again(&scene);
        scene.fault(json!({"fault": "applied-then-drop", "on": "mutation", "times": 1}));
        scene.spooled(&["issue", "comment", "1", "--body", "twin"], b"");
        scene.recovery();
        scene.outage();
        scene.spooled(&["issue", "comment", "1", "--body", "twin"], b"");
        scene.recovery();
        drain(&scene, "twins");
        assert_eq!(scene.comments(1), ["twin", "twin"]);
    }
}

#[test]
fn a_forge_that_is_still_down_stops_everything_and_costs_no_attempt() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "comment", "1", "--body", "a"], b"");
    scene.spooled(&["issue", "comment", "2", "--body", "b"], b"");
    for fault in ["503", "drop", "primary", "401"] {
        scene.recovery();
        scene.fault(json!({"fault": fault}));
        let run = scene.replay();
        assert_eq!(run.exit, NOT_ALL, "{fault}: {}", run.out());
        assert!(run.out().contains("2 still pending") && run.out().contains("Stopped: "), "{}", run.out());
        for seq in [1, 2] {
            let entry = scene.entry(seq);
            assert_eq!((&entry["status"], &entry["attempts"]), (&json!("pending"), &json!(0)), "{fault}");
        }
    }
    scene.recovery();
    drain(&scene, "afterwards");
    assert_eq!((scene.comments(1), scene.comments(2)), (vec!["a".into()], vec!["b".into()]));
}

#[test]
fn an_entry_that_only_its_own_issue_forbids_does_not_block_the_queue() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "close", "1"], b"");
    scene.spooled(&["issue", "edit", "1", "--title", "behind it"], b"");
    scene.spooled(&["issue", "comment", "2", "--body", "elsewhere"], b"");
    scene.recovery();
    scene.fault(json!({"fault": "403", "on": "mutation", "operation": "IssueClose"}));
    for attempt in 1..=3 {
        let run = scene.replay();
        assert_eq!(run.exit, NOT_ALL, "{}", run.out());
        assert_eq!(scene.comments(2), ["elsewhere"]);
        let entry = scene.entry(1);
        assert_eq!(entry["attempts"], attempt, "{entry}");
        assert_eq!(entry["status"], if attempt < 3 { "pending" } else { "failed" });
        assert!(entry["reason"].as_str().unwrap().contains("403"), "{entry}");
        assert_eq!(scene.issue(1)["title"], if attempt < 3 { "first" } else { "behind it" });
    }
    let status = scene.queue(&["status"]);
    assert_eq!(status.exit, NOT_ALL);
    assert!(status.out().contains("403"), "{}", status.out());
}

#[test]
fn what_is_gone_is_skipped_with_its_reason_and_the_rest_goes_on() {
    let forge = forge();
    for version in REAL_GH {
        let scene = Scene::new(&forge, version);
        scene.outage();
        let url = scene.spooled(&["issue", "create", "--title", "never", "--body", "x"], b"");
        scene.spooled(&["issue", "comment", url.trim(), "--body", "on it"], b"");
        scene.spooled(&["issue", "comment", "999", "--body", "nobody"], b"");
        scene.spooled(&["issue", "close", "999"], b"");
        scene.spooled(&["issue", "comment", "2", "--body", "here"], b"");
        let dropped = scene.queue(&["drop", "1"]);
        assert_eq!(dropped.exit, DONE);
        assert!(dropped.out().contains("waiting for BOB-Q1, and not delivered either"), "{}", dropped.out());
        assert!(dropped.out().ends_with(": q000002\n"), "{}", dropped.out());
        let status = scene.queue(&["status"]).out();
        assert!(!status.contains("last replay"), "a drop is no replay: {status}");
        scene.recovery();
        let dry = scene.queue(&["replay"]);
        assert_eq!(dry.exit, NOT_ALL, "{}", dry.out());
        assert_eq!(scene.comments(2).len(), 0);
        let run = scene.replay();
        assert_eq!(run.exit, NOT_ALL);
        assert!(
            run.out().contains("Replayed: 1 delivered, 3 skipped, 0 failed, 0 refused, 0 still pending."),
            "{}",
            run.out()
        );
        assert!(
            run.out().contains("#2 skipped         the create it depends on, q000001, never landed"),
            "{}",
            run.out()
        );
        assert!(run.out().contains("#999 does not exist any more"), "{}", run.out());
        assert_eq!(scene.comments(2), ["here"]);
        let all = scene.queue(&["list", "--all"]).out();
        assert!(all.contains("q000003  skipped") && all.contains("q000001  dropped"), "{all}");
    }
}

#[test]
fn a_dry_run_says_what_it_would_do_and_changes_nothing() {
    let forge = forge();
    let scene = Scene::new(&forge, "debian");
    assert_eq!(scene.queue(&["replay"]).exit, DONE);
    scene.outage();
    scene.spooled(&["issue", "comment", "1", "--body", "a"], b"");
    scene.recovery();
    let before = fs::read(scene.folder().join("000001.json")).unwrap();
    let run = scene.queue(&["replay"]);
    assert_eq!((run.exit, scene.comments(1).len()), (NOT_ALL, 0));
    assert!(run.out().contains("  #1 pending         would deliver: comment on #1"), "{}", run.out());
    assert_eq!(fs::read(scene.folder().join("000001.json")).unwrap(), before);
    let json: serde_json::Value =
        serde_json::from_slice(&scene.queue(&["replay", "--apply", "--json"]).stdout).unwrap();
    assert_eq!((&json["delivered"], &json["exitCode"]), (&json!(1), &json!(0)));
    assert!(!scene.folder().join("000001.d").exists(), "a delivered body is removed");
    assert_eq!(scene.entry(1)["status"], "delivered");
}

#[test]
fn a_create_whose_later_steps_fail_exists_once_and_its_failure_is_told() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "create", "-t", "typed", "-b", "x", "--type", "Nonsense"], b"");
    scene.spooled(&["issue", "comment", "BOB-Q1", "--body", "on it"], b"");
    scene.recovery();
    for _ in 0..4 {
        scene.replay();
    }
    let made: Vec<_> = scene.issues().into_iter().filter(|issue| issue["title"] == "typed").collect();
    assert_eq!(made.len(), 1);
    assert_eq!(scene.comments(3), ["on it"]);
    let entry = scene.entry(1);
    assert_eq!(entry["status"], "failed", "{entry}");
    assert!(entry["reason"].as_str().unwrap().contains("the issue exists"), "{entry}");
}

#[test]
fn an_automatic_replay_starts_no_delivery_for_which_its_caller_has_no_time_left() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    let bodies: Vec<String> = (0..8).map(|n| format!("write {n}")).collect();
    for body in &bodies {
        scene.spooled(&["issue", "comment", "1", "--body", body], b"");
    }
    scene.recovery();
    let call = |deadline_s: u64| {
        scene.call(&["issue", "view", "2"]).env("BOB_FORGE_DEADLINE", deadline_s.to_string())
    };
    let run = call(1).run();
    assert_eq!((run.exit, run.err()), (DONE, String::new()), "nobody waits for it any more");
    assert!(run.out().contains("second") && scene.comments(1).is_empty(), "{}", run.out());
    // Every delivery takes longer than a second: all of them, ten.
    scene.fault(json!({"fault": "latency", "ms": 1_200, "on": "mutation"}));
    let run = call(now_s() + 5).run();
    let made = scene.comments(1);
    assert!((1..8).contains(&made.len()) && made == bodies[..made.len()], "{made:?}");
    assert!(run.took < Duration::from_secs(9), "{:?}", run.took);
    let pending = format!("delivered {} queued write(s), {} still pending", made.len(), 8 - made.len());
    assert!(run.err().contains(&pending), "{}", run.err());
    scene.recovery();
    drain(&scene, "without a deadline");
    assert_eq!(scene.comments(1), bodies);
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
