//! The write queue through the shim: what is spooled, what is not, and what the caller sees.

use crate::support::command::Call;
use crate::support::forge::{Forge, REAL_GH};
use crate::support::queued::{Scene, checkout, folder, git, settle};
use crate::support::running::Run;
use crate::support::sandbox::{Sandbox, wait_until};
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn an_outage_a_create_a_comment_on_its_handle_an_edit_and_everything_is_there_once_in_order() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        let scene = Scene::new(&forge, version);
        scene.outage();
        let url = scene.spooled(&["issue", "create", "--title", "todo", "--body-file", "-"], b"the body\n");
        assert_eq!(url, "https://github.com/acme/widget/issues/BOB-Q1\n");
        let said = scene.gh_with(&["issue", "comment", "BOB-Q1", "--body-file", "-"], b"on it");
        assert_eq!(
            said.err(),
            "[forge-queue] not delivered yet — BOB-Q1 has not been created yet, so the live call was not made. \
             Spooled as q000002; it replays in order when the forge recovers (queue depth 2).\n"
        );
        assert_eq!((said.exit, said.out().as_str()), (Exit::Code(0), ""));
        scene.spooled(&["issue", "edit", "1", "--title", "renamed"], b"");
        let said = scene.gh(&["issue", "close", "2"]);
        assert_eq!(
            said.err(),
            "[forge-queue] not delivered yet — the live call failed (server). Spooled as q000004; it replays in \
             order when the forge recovers (queue depth 4).\n"
        );
        scene.recovery();
        let read = scene.gh(&["api", "rate_limit"]);
        assert_eq!(read.exit, Exit::Code(0));
        assert_eq!(scene.depth(), 0, "{}", read.err());
        assert_eq!(scene.issues().len(), 3);
        let made = scene.issue(3);
        assert_eq!((&made["title"], &made["body"]), (&json!("todo"), &json!("the body\n")));
        assert_eq!(scene.comments(3), ["on it"]);
        assert_eq!(scene.issue(1)["title"], "renamed");
        assert_eq!(scene.issue(2)["state"], "closed");
        assert!(!scene.sandbox.state().join("queue-dirty").exists());
        let live = scene.gh(&["issue", "comment", "BOB-Q1", "--body", "later"]);
        assert_eq!(live.exit, Exit::Code(0), "{}", live.err());
        assert_eq!(scene.comments(3), ["on it", "later"]);
    }
}

const DOWN: &str = "on *\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
const NOT: &str = "[forge-queue] NOT queued and NOT delivered — ";

fn scripted(script: &str) -> Sandbox {
    let sandbox = Sandbox::new(script);
    checkout(&sandbox);
    sandbox
}

fn gh<'s>(sandbox: &'s Sandbox, args: &[&str]) -> Call<'s> {
    settle(sandbox, sandbox.gh(args))
}

fn queue(sandbox: &Sandbox, args: &[&str]) -> Run {
    let words: Vec<&str> = ["queue"].iter().chain(args).copied().collect();
    settle(sandbox, sandbox.forge(&words)).run()
}

fn entries(sandbox: &Sandbox) -> usize {
    let json: Value = serde_json::from_slice(&queue(sandbox, &["list", "--all", "--json"]).stdout).unwrap();
    json.as_array().unwrap().len()
}

#[test]
fn each_availability_failure_spools_and_names_itself() {
    for (said, signal) in [
        ("error connecting to api.github.com\\n", "net"),
        ("HTTP 502: Bad Gateway (https://api.github.com/graphql)\\n", "server"),
        ("GraphQL: API rate limit exceeded for user ID 1.\\n", "ratelimit"),
        ("HTTP 401: Bad credentials (https://api.github.com/graphql)\\n", "auth"),
    ] {
        let sandbox = scripted(&format!("on *\n out half an answer\\n\n err {said}\n exit 1\n"));
        let run = gh(&sandbox, &["issue", "comment", "7", "--body", "x"]).run();
        assert_eq!((run.exit, run.out().as_str()), (Exit::Code(0), ""), "{signal}");
        let wanted = format!(
            "[forge-queue] not delivered yet — the live call failed ({signal}). Spooled as q000001; it replays in \
             order when the forge recovers (queue depth 1).\n"
        );
        assert_eq!(run.err(), wanted);
        assert_eq!(sandbox.observations()[0][3], signal);
    }
}

#[test]
fn what_the_forge_answered_and_what_is_no_write_is_shown_as_it_was() {
    for said in [
        "GraphQL: Could not resolve to an issue or pull request with the number of 7. (repository.issue)",
        "unknown flag: --nonsense",
        "'nosuch' not found",
    ] {
        let sandbox = scripted(&format!("on *\n out o\\n\n err {said}\\n\n exit 1\n"));
        let run = gh(&sandbox, &["issue", "comment", "7", "--body", "x"]).run();
        assert_eq!((run.exit, run.out(), run.err()), (Exit::Code(1), "o\n".into(), format!("{said}\n")));
        assert_eq!(entries(&sandbox), 0);
    }
    let sandbox = scripted(DOWN);
    for args in [
        &["issue", "list"][..],
        &["issue", "view", "7"],
        &["issue", "delete", "7", "--yes"],
        &["issue", "transfer", "7", "acme/other"],
        &["issue", "lock", "7"],
        &["pr", "comment", "7", "--body", "x"],
        &["api", "-X", "POST", "repos/acme/widget/issues"],
    ] {
        let run = gh(&sandbox, args).run();
        assert_eq!(run.exit, Exit::Code(1), "{args:?}");
        assert!(!run.err().contains("[forge-queue]"), "{args:?}: {}", run.err());
    }
    let off = gh(&sandbox, &["issue", "close", "7"]).env("BOB_FORGE_QUEUE", "0").run();
    assert_eq!((off.exit, off.err().contains("[forge-queue]")), (Exit::Code(1), false));
    assert_eq!(entries(&sandbox), 0);
}

#[test]
fn a_write_that_may_not_be_queued_fails_honestly_and_says_why() {
    let sandbox = scripted(DOWN);
    sandbox.file("work/blank.md", " \n\t\n");
    for (args, why) in [
        (
            &["issue", "comment", "7", "--body", "x", "-R", "acme/other"][..],
            "it is for github.com/acme/other",
        ),
        (&["issue", "close", "https://github.com/acme/other/issues/7"], "it is for github.com/acme/other"),
        (&["issue", "comment", "7", "-F", "nowhere.md"], "its body file cannot be read"),
        (&["issue", "edit", "7", "-F", "blank.md"], "its body is empty and would replace the issue's"),
        (&["issue", "edit", "7", "--body", ""], "its body is empty and would replace the issue's"),
        (&["issue", "edit", "7", "8", "--title", "x"], "it names more than one issue"),
        (
            &["issue", "comment", "7", "--edit-last", "--body", "x"],
            "the account's last comment may be another",
        ),
        (&["issue", "create", "--body", "x"], "it has no title"),
    ] {
        let run = gh(&sandbox, args).run();
        assert_eq!(run.exit, Exit::Code(1), "{args:?}");
        let err = run.err();
        assert!(err.starts_with("HTTP 503: Service Unavailable"), "{args:?}: {err}");
        assert!(err.contains(&format!("{NOT}{why}")), "{args:?}: {err}");
    }
    let elsewhere = gh(&sandbox, &["issue", "close", "7"]).env("GH_REPO", "acme/other").run();
    assert!(
        elsewhere.err().contains(&format!("{NOT}it is for github.com/acme/other")),
        "{}",
        elsewhere.err()
    );
    git(&sandbox, &["remote", "add", "upstream", "https://github.com/up/stream.git"]);
    let fork = gh(&sandbox, &["issue", "create", "-t", "x", "-b", "y"]).run();
    assert!(fork.err().contains(&format!("{NOT}it is for github.com/up/stream")), "{}", fork.err());
    git(&sandbox, &["remote", "remove", "upstream"]);
    git(&sandbox, &["remote", "remove", "origin"]);
    let none = gh(&sandbox, &["issue", "close", "7"]).run();
    assert!(none.err().contains(&format!("{NOT}this checkout has no origin remote")), "{}", none.err());
    assert_eq!(entries(&sandbox), 0);
}

#[test]
fn a_body_is_kept_wherever_it_came_from() {
    let sandbox = scripted(DOWN);
    let text = "line\r\n\0bin\u{fffd}\n\n".as_bytes();
    sandbox.file("work/body.md", text);
    let bodies = [
        gh(&sandbox, &["issue", "comment", "1", "-F", "body.md"]).run(),
        gh(&sandbox, &["issue", "comment", "2", "-F-"]).stdin(Stdin::Bytes(text.to_vec())).run(),
        gh(&sandbox, &["issue", "comment", "3", "--body-file=-"]).stdin(Stdin::File(text.to_vec())).run(),
        gh(&sandbox, &["issue", "comment", "4", "-F", "/dev/stdin"]).stdin(Stdin::Bytes(text.to_vec())).run(),
    ];
    for (n, run) in bodies.iter().enumerate() {
        assert_eq!(run.exit, Exit::Code(0), "{}", run.err());
        let path = folder(&sandbox).join(format!("{:06}.d/body.md", n + 1));
        assert_eq!(fs::read(path).unwrap(), text, "{n}");
    }
    // A pipe is read once, so what it held is fed to gh in its place.
    let fed = &sandbox.calls()[3];
    assert_eq!(fed.words(), ["issue", "comment", "4", "--body-file", "-"]);
    for name in ["", "000001.json", "000001.seq", "000001.d", "000001.d/body.md", "queue.lock"] {
        let mode = fs::metadata(folder(&sandbox).join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if name.is_empty() || name.ends_with(".d") { 0o700 } else { 0o600 }, "{name}");
    }
}

#[test]
fn one_pipe_for_both_streams_holds_the_marker_alone() {
    let sandbox = scripted(DOWN);
    let run = gh(&sandbox, &["issue", "create", "-t", "x", "-b", "y"]).merged().run();
    let text = run.out();
    assert!(
        text.starts_with("https://github.com/acme/widget/issues/BOB-Q1\n[forge-queue] not delivered yet"),
        "{text}"
    );
    assert!(!text.contains("HTTP 503"));
}

#[test]
fn a_read_of_a_handle_that_is_still_queued_says_so() {
    let sandbox = scripted(DOWN);
    assert_eq!(gh(&sandbox, &["issue", "create", "-t", "x", "-b", "y"]).run().exit, Exit::Code(0));
    sandbox.script("on *\n err invalid issue format: \"BOB-Q1\"\\n\n exit 1\n");
    for word in ["BOB-Q1", "https://github.com/acme/widget/issues/BOB-Q1"] {
        let run = gh(&sandbox, &["issue", "view", word]).run();
        assert_eq!(run.exit, Exit::Code(1));
        assert!(
            run.err().ends_with("[forge-queue] BOB-Q1 is still queued as q000001; it has no number yet.\n"),
            "{}",
            run.err()
        );
        assert_eq!(sandbox.calls().last().unwrap().words()[2], word);
    }
    // A handle that nobody knows is gh's to refuse, and the write is not kept for ever.
    let lost = gh(&sandbox, &["issue", "comment", "BOB-Q9", "--body", "x"]).run();
    assert_eq!(lost.exit, Exit::Code(1));
    assert!(lost.err().contains(&format!("{NOT}BOB-Q9 stands for no issue")), "{}", lost.err());
    assert_eq!(entries(&sandbox), 1);
}

#[test]
fn outside_a_checkout_there_is_no_queue() {
    let sandbox = Sandbox::new(DOWN);
    let run = settle(&sandbox, sandbox.gh(&["issue", "close", "7", "-R", "acme/widget"])).run();
    assert_eq!(run.exit, Exit::Code(1));
    assert!(run.err().contains(&format!("{NOT}it was made outside a git checkout")), "{}", run.err());
    assert_eq!(queue(&sandbox, &["status"]).exit, Exit::Code(2));
}

#[test]
fn a_linked_worktree_shares_the_queue_of_its_main_one() {
    let sandbox = scripted(DOWN);
    git(&sandbox, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&sandbox, &["worktree", "add", "-q", "../linked"]);
    let run = gh(&sandbox, &["issue", "close", "7"]).cwd(sandbox.path("linked")).run();
    assert!(run.err().contains("Spooled as q000001"), "{}", run.err());
    assert!(folder(&sandbox).join("000001.json").exists());
}

#[test]
fn a_write_that_waits_long_is_queued_first_and_a_shim_that_is_ended_says_so() {
    let sandbox = scripted("on *\n err GraphQL: API rate limit exceeded for user ID 1.\\n\n exit 1\n");
    let sleeper = sandbox.shell("tmp/sleeper", "exec sleep 5");
    let call = gh(&sandbox, &["issue", "comment", "7", "--body", "x"])
        .env("BOB_FORGE_BUDGET", "1")
        .env("BOB_FORGE_JOURNAL_AFTER", "0")
        .env("BOB_FORGE_BACKOFF_START", "30")
        .env("BOB_FORGE_SLEEP", &sleeper);
    let running = call.start();
    wait_until("the write is queued before the wait", || folder(&sandbox).join("000001.json").exists());
    running.send(libc::SIGKILL);
    let run = running.finish();
    assert_eq!(run.exit, Exit::Signal(libc::SIGKILL));
    assert_eq!(entries(&sandbox), 1, "an ordinary entry is left behind");
}
