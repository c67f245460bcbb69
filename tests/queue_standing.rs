//! What has landed in part, or is known to have landed by the log alone: nothing overtakes it, and whatever is said
//! of it is true. And whose issue a handle stands for.

use crate::support::command::Call;
use crate::support::forge::Forge;
use crate::support::queued::{Scene, settle};
use crate::support::spawn::Exit;
use serde_json::{Value, json};

const DONE: Exit = Exit::Code(0);

fn forge() -> Forge {
    Forge::start(&["--repo", "acme/widget"])
}

/// With more attempts than a test makes.
fn patient(call: Call<'_>) -> Call<'_> {
    call.env("BOB_FORGE_QUEUE_ATTEMPTS", "9")
}

/// A create that has made its issue #3 and whose type cannot be set.
fn half_a_create(forge: &Forge) -> Scene<'_> {
    let scene = Scene::new(forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "create", "-t", "typed", "-b", "x", "--type", "Nonsense"], b"");
    scene.spooled(&["issue", "comment", "BOB-Q1", "--body", "by its handle"], b"");
    scene.recovery();
    for _ in 0..2 {
        patient(scene.queue_call(&["replay", "--apply"])).run();
    }
    assert_eq!(scene.issues().len(), 3);
    assert_eq!(scene.entry(1)["status"], "pending", "{}", scene.entry(1));
    scene
}

#[test]
fn nothing_overtakes_what_a_create_has_still_to_set() {
    let forge = forge();
    let scene = half_a_create(&forge);
    assert_eq!(scene.comments(3), [""; 0], "it was queued after the create");
    let behind = patient(scene.call(&["issue", "comment", "3", "--body", "by its number"])).run();
    assert!(behind.err().contains("still queued for #3"), "{}", behind.err());
    assert_eq!(scene.comments(3), [""; 0]);
    let behind = patient(scene.call(&["issue", "comment", "BOB-Q1", "--body", "by both"])).run();
    assert_eq!(behind.exit, DONE);
    scene.replay();
    assert_eq!(scene.entry(1)["status"], "failed", "{}", scene.entry(1));
    scene.replay();
    assert_eq!(scene.comments(3), ["by its handle", "by its number", "by both"]);
}

#[test]
fn nothing_overtakes_a_half_landed_create_that_nothing_else_waits_with() {
    let forge = forge();
    let scene = half_a_create(&forge);
    assert_eq!(scene.queue(&["drop", "2"]).exit, DONE);
    let behind = patient(scene.call(&["issue", "comment", "3", "--body", "by its number"])).run();
    assert!(behind.err().contains("still queued for #3"), "{}", behind.err());
    assert_eq!(scene.comments(3), [""; 0]);
}

#[test]
fn a_create_that_is_dropped_after_it_has_made_its_issue_takes_nobody_along() {
    let forge = forge();
    let scene = half_a_create(&forge);
    let dropped = scene.queue(&["drop", "1"]);
    let said = dropped.out();
    assert!(said.contains("its issue exists (https://github.com/acme/widget/issues/3)"), "{said}");
    assert!(!said.contains("not delivered"), "{said}");
    assert_eq!(scene.replay().exit, DONE);
    assert_eq!(scene.comments(3), ["by its handle"]);
}

#[test]
fn a_drop_that_cannot_read_the_log_does_not_say_that_nothing_was_sent() {
    let forge = forge();
    let scene = half_a_create(&forge);
    // Longer than one of ours: it can still be written to, and is not read.
    let mut log = std::fs::OpenOptions::new().append(true).open(scene.folder().join("replay.log")).unwrap();
    std::io::Write::write_all(&mut log, &vec![b'\n'; 17 << 20]).unwrap();
    let run = scene.queue(&["drop", "1"]);
    assert_ne!(run.exit, DONE, "{}", run.out());
    assert_eq!(scene.entry(1)["status"], "pending");
}

#[test]
fn a_create_that_came_back_clean_sets_nothing_a_second_time() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "create", "-t", "made", "-b", "x", "-a", "monalisa"], b"");
    scene.recovery();
    let killed = scene.queue_call(&["replay", "--apply"]).env("BOB_FORGE_TEST_KILL_AT", "after-done").run();
    assert_eq!(killed.exit, Exit::Signal(libc::SIGKILL));
    assert_eq!(scene.issue(3)["assignees"][0], "monalisa");
    // A person has taken her off again since.
    let bare = scene.sandbox.bare_gh(&["issue", "edit", "3", "--remove-assignee", "monalisa"]);
    assert_eq!(settle(&scene.sandbox, bare).run().exit, DONE);
    assert_eq!(scene.replay().exit, DONE);
    assert_eq!(scene.entry(1)["status"], "delivered");
    assert_eq!(scene.issue(3)["assignees"], json!([]));
}

#[test]
fn a_replay_that_fails_after_it_has_sent_something_says_what_it_has_sent() {
    let forge = forge();
    let queued = || {
        let scene = Scene::new(&forge, "wheel");
        scene.outage();
        for body in ["one", "two"] {
            scene.spooled(&["issue", "comment", "1", "--body", body], b"");
        }
        scene.recovery();
        scene
    };
    // Where the attempt of the second one is written down.
    let scene = queued();
    let steps = scene.sandbox.path("tmp/steps");
    scene.queue_call(&["replay", "--apply"]).env("BOB_FORGE_TEST_STEPS", &steps).run();
    let names = std::fs::read_to_string(steps).unwrap();
    let sent = names.lines().position(|name| name == "after-done!").unwrap();
    let attempt = sent + names.lines().skip(sent).position(|name| name == "before-send!").unwrap();
    let at = names
        .lines()
        .take(attempt)
        .collect::<Vec<_>>()
        .iter()
        .rposition(|name| *name == "log: append")
        .unwrap();
    let scene = queued();
    let full = format!("{}:{}", at + 1, libc::ENOSPC);
    let run = scene.queue_call(&["replay", "--apply"]).env("BOB_FORGE_TEST_BREAK", full).run();
    assert_eq!(run.exit, Exit::Code(3), "{} {}", run.out(), run.err());
    let said = run.out() + &run.err();
    assert!(said.contains("delivered: https://github.com/acme/widget/issues/1"), "{said}");
    assert!(said.contains("No space left"), "{said}");
    assert_eq!(scene.comments(1), ["one"]);
    assert_eq!(scene.replay().exit, DONE);
    assert_eq!(scene.comments(1), ["one", "two"]);
}

#[test]
fn a_clear_says_undelivered_only_of_what_has_not_landed() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    for (n, step, undelivered, uncertain) in
        [(1, "after-done", json!([]), json!([])), (2, "after-send", json!(["q000002"]), json!(["q000002"]))]
    {
        scene.outage();
        scene.spooled(&["issue", "comment", "1", "--body", step], b"");
        scene.recovery();
        let killed = scene.queue_call(&["replay", "--apply"]).env("BOB_FORGE_TEST_KILL_AT", step).run();
        assert_eq!(killed.exit, Exit::Signal(libc::SIGKILL), "{step}");
        assert_eq!(scene.comments(1).len(), n, "{step}");
        let run = scene.queue(&["clear", "--json"]);
        let cleared: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!((&cleared["undelivered"], &cleared["uncertain"]), (&undelivered, &uncertain), "{step}");
    }
    drop(scene);
    let scene = half_a_create(&forge);
    let said = scene.queue(&["clear"]).out();
    assert!(said.contains("2 entries removed") && said.contains("may have got through: q000001"), "{said}");
}

#[test]
fn a_stored_answer_is_marked_with_what_was_delivered_and_cleared_since() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    let view = |word: &str| scene.call(&["issue", "view", word]).env("BOB_FORGE_CACHE", "1").run();
    assert_eq!(view("1").exit, DONE);
    scene.outage();
    scene.spooled(&["issue", "comment", "1", "--body", "since"], b"");
    scene.spooled(&["issue", "create", "-t", "made", "-b", "x"], b"");
    scene.recovery();
    assert_eq!(scene.replay().exit, DONE);
    assert_eq!(scene.queue(&["clear"]).exit, DONE);
    scene.outage();
    let served = view("1");
    assert!(served.err().contains("Your own write to #1 is newer."), "{}", served.err());
    // What is read by its handle is the same issue.
    scene.recovery();
    let live = view("BOB-Q2");
    assert!(live.exit == DONE && live.out().contains("made"), "{}", live.err());
    scene.outage();
    scene.spooled(&["issue", "comment", "3", "--body", "later"], b"");
    for word in ["3", "BOB-Q2"] {
        let served = view(word);
        assert!(served.err().contains("1 queued write(s) not in it"), "{word}: {}", served.err());
    }
}

#[test]
fn a_handle_is_never_the_number_of_another_repositorys_issue() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    scene.outage();
    scene.spooled(&["issue", "create", "-t", "made", "-b", "x"], b"");
    let url = "https://github.com/acme/widget/issues/BOB-Q1";
    for is_there in [false, true] {
        if is_there {
            scene.recovery();
            assert_eq!(scene.replay().exit, DONE);
        }
        for word in ["BOB-Q1", "https://github.com/acme/other/issues/BOB-Q1"] {
            let run = scene.gh(&["issue", "comment", word, "-R", "acme/other", "--body", "x"]);
            assert_eq!(run.exit, Exit::Code(1), "{word}: {}", run.err());
            let why = "q000001 is for github.com/acme/widget, and this call is not";
            assert!(run.err().contains(why), "{word}: {}", run.err());
        }
    }
    // A URL says itself where it belongs, whatever the call is for.
    let run = scene.gh(&["issue", "comment", url, "-R", "acme/other", "--body", "here"]);
    assert_eq!(run.exit, DONE, "{}", run.err());
    let run = scene.gh(&["issue", "comment", "BOB-Q1", "-R", "acme/widget", "--body", "and here"]);
    assert_eq!(run.exit, DONE, "{}", run.err());
    assert_eq!(scene.comments(3), ["here", "and here"]);
}

#[test]
fn a_stored_answer_beside_a_queue_that_cannot_be_read_says_so() {
    let forge = forge();
    let scene = Scene::new(&forge, "wheel");
    let view = || scene.call(&["issue", "view", "1"]).env("BOB_FORGE_CACHE", "1").run();
    assert_eq!(view().exit, DONE);
    scene.outage();
    scene.spooled(&["issue", "comment", "1", "--body", "since"], b"");
    assert!(!view().err().contains("could not be looked up"));
    let log = scene.folder().join("replay.log");
    std::fs::create_dir(&log).unwrap();
    let served = view();
    assert!(served.err().contains("could not be looked up"), "without the log: {}", served.err());
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(scene.folder(), scene.sandbox.path("tmp/queue")).unwrap();
    std::fs::write(scene.folder(), "").unwrap();
    let served = view();
    assert_eq!(served.exit, DONE, "{}", served.err());
    assert!(
        served.err().contains("not live. Which writes of this machine are not in it could not be looked up.")
    );
}
