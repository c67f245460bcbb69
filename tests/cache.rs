//! The read cache through a raw `gh` call (`make test-forge-cache-shim`), with a scripted `gh`.

mod crowd;
mod real;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::command::Call;
use crate::support::running::Run;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::Out;

const LIST: [&str; 2] = ["issue", "list"];
const LIVE: &str = "on *\n out 1\\tOPEN\\tFirst\\n\n exit 0\n";
const DOWN: &str = "on *\n out half of it\\n\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
const ANSWER: &str = "1\tOPEN\tFirst\n";
const FAILURE: (Exit, &str, &str) =
    (Exit::Code(1), "half of it\n", "HTTP 503: Service Unavailable (https://api.github.com/graphql)\n");

/// A project whose `gh` has answered the list once.
fn read_once() -> Sandbox {
    let sandbox = Sandbox::new(LIVE);
    sandbox.checkout("acme/widget");
    let run = gh(&sandbox, &LIST).run();
    assert_eq!((run.exit, run.out().as_str(), run.err().as_str()), (Exit::Code(0), ANSWER, ""));
    sandbox
}

/// `gh WORDS` through the shim, without the budget's waits.
fn gh<'s>(sandbox: &'s Sandbox, words: &[&str]) -> Call<'s> {
    sandbox.gh(words).env("BOB_FORGE_BUDGET", "0")
}

fn seen(run: &Run) -> (Exit, String, String) {
    (run.exit, run.out(), run.err())
}

fn failure() -> (Exit, String, String) {
    (FAILURE.0, FAILURE.1.into(), FAILURE.2.into())
}

/// Whether this is the marker line, and nothing else, for an answer of a few seconds' age.
fn is_marker(text: &str, signal: &str) -> bool {
    let Some(rest) = text.strip_prefix("[forge-cache] served from cache (age ") else { return false };
    let Some((age, rest)) = rest.split_once("s)") else { return false };
    let end = format!(" — the live call failed ({signal}). This is last-known state, not live.\n");
    age.parse::<u64>().is_ok_and(|age_s| age_s < 60) && rest == end
}

fn cache_folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("work/.claude/forge/cache")
}

fn entries(sandbox: &Sandbox) -> Vec<PathBuf> {
    let Ok(names) = fs::read_dir(cache_folder(sandbox)) else { return Vec::new() };
    let paths = names.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension() == Some("entry".as_ref())).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn health(sandbox: &Sandbox) -> Value {
    let run = sandbox.forge(&["health", "--json", "--no-probe"]).run();
    serde_json::from_str(&run.out()).unwrap()
}

#[test]
fn a_read_that_fails_gets_the_last_answer_and_never_a_part_of_the_failed_one() {
    let sandbox = read_once();
    sandbox.script(DOWN);
    let run = gh(&sandbox, &LIST).run();
    assert_eq!((run.exit, run.out().as_str()), (Exit::Code(0), ANSWER));
    assert!(is_marker(&run.err(), "server"), "{:?}", run.err());
    // The failure is evidence all the same.
    let signals: Vec<_> = sandbox.observations().iter().map(|row| row[3].clone()).collect();
    assert_eq!(signals, ["ok", "server"]);
    let merged = gh(&sandbox, &LIST).merged().run();
    assert_eq!(merged.exit, Exit::Code(0));
    let marker = merged.out().strip_prefix(ANSWER).map(str::to_string);
    assert!(marker.is_some_and(|marker| is_marker(&marker, "server")), "{:?}", merged.out());
    let file = gh(&sandbox, &LIST).stdout(Out::File).stderr(Out::Null).run();
    assert_eq!((file.exit, file.out().as_str()), (Exit::Code(0), ANSWER));
}

#[test]
fn an_answer_to_another_question_is_not_served() {
    let sandbox = read_once();
    sandbox.script(DOWN);
    for words in [
        &["issue", "list", "--state", "all"][..],
        &["issue", "list", "-R", "acme/other"],
        &["issue", "view", "1"],
    ] {
        assert_eq!(seen(&gh(&sandbox, words).run()), failure(), "{words:?}");
    }
    let other = |name: &str, value: &str| seen(&gh(&sandbox, &LIST).env(name, value).run());
    for (name, value) in
        [("GH_REPO", "acme/other"), ("GH_HOST", "ghe.example"), ("GH_TOKEN", "another"), ("TZ", "CET")]
    {
        assert_eq!(other(name, value), failure(), "{name}");
    }
    assert_eq!(gh(&sandbox, &LIST).env("GH_REPO", "Acme/Widget").run().out(), ANSWER);
    assert_eq!(health(&sandbox)["cache"]["served"], 1);
}

#[test]
fn an_answer_from_the_forge_is_the_answer() {
    let sandbox = read_once();
    let gone = "GraphQL: Could not resolve to a Repository with the name 'acme/widget'. (repository)\n";
    for (said, code) in [("unknown flag: --x\n", 1), (gone, 1)] {
        sandbox.script(&format!(
            "on *\n err {}\n exit {code}\n",
            said.escape_default().to_string().replace("\\'", "'")
        ));
        assert_eq!(seen(&gh(&sandbox, &LIST).run()), (Exit::Code(code), String::new(), said.into()));
    }
    // It was not found: what was known before must not come back in the next outage.
    sandbox.script(DOWN);
    assert_eq!(seen(&gh(&sandbox, &LIST).run()), failure());
    sandbox.script(LIVE);
    assert_eq!(gh(&sandbox, &LIST).run().out(), ANSWER);
    sandbox.script(DOWN);
    assert_eq!(gh(&sandbox, &LIST).run().out(), ANSWER);
    assert_eq!(gh(&sandbox, &["issue", "list", "--no-such-flag"]).run().exit, Exit::Code(1));
}

#[test]
fn past_the_bound_the_failure_is_passed_through_and_reported() {
    let sandbox = read_once();
    sandbox.script(DOWN);
    let stale = gh(&sandbox, &LIST).env("BOB_FORGE_CACHE_MAX_AGE", "0").run();
    assert_eq!(seen(&stale), failure());
    let block = &health(&sandbox)["cache"];
    assert_eq!((&block["served"], &block["stale"]), (&0.into(), &1.into()));
    let text = sandbox.forge(&["health", "--no-probe"]).run().out();
    assert!(text.contains("1 failed although an answer is stored"), "{text}");
    assert_eq!(gh(&sandbox, &LIST).env("BOB_FORGE_CACHE_MAX_AGE", "nonsense").run().out(), ANSWER);
}

#[test]
fn health_says_that_reads_came_from_the_cache_also_when_the_state_is_clean() {
    let sandbox = read_once();
    let none = health(&sandbox);
    assert_eq!((&none["state"], &none["cache"]["served"]), (&"operational".into(), &0.into()));
    sandbox.script(DOWN);
    gh(&sandbox, &LIST).run();
    sandbox.script(LIVE);
    for _ in 0..10 {
        gh(&sandbox, &LIST).run();
    }
    let after = health(&sandbox);
    let block = &after["cache"];
    assert_eq!((&after["state"], &block["served"]), (&"operational".into(), &1.into()));
    assert_eq!((&block["lastSignal"], &block["lastCommand"]), (&"server".into(), &"issue list".into()));
    let text = sandbox.forge(&["health", "--no-probe"]).run().out();
    assert!(text.starts_with("forge: operational (recent-calls-succeeded) — 10/10"), "{text}");
    assert!(text.contains("\ncache: 1 read(s) in the last 3600s were answered from the cache"), "{text}");
}

#[test]
fn answers_that_say_nothing_are_not_kept() {
    let sandbox = read_once();
    let none = "on *\n out []\\n\n exit 0\n";
    for words in [&["label", "list", "--json", "name"][..], &["search", "issues", "x", "--json", "number"]] {
        sandbox.script(none);
        assert_eq!(gh(&sandbox, words).run().out(), "[]\n");
        sandbox.script(DOWN);
        assert_eq!(seen(&gh(&sandbox, words).run()), failure(), "{words:?}");
    }
    let empty = ["issue", "list", "--label", "none"];
    sandbox.script("on *\n exit 0\n");
    gh(&sandbox, &empty).run();
    sandbox.script(DOWN);
    let run = gh(&sandbox, &empty).run();
    assert_eq!((run.exit, run.out().as_str()), (Exit::Code(0), ""), "an empty list is an answer");
    assert!(is_marker(&run.err(), "server"));
    let warned = ["issue", "view", "1"];
    sandbox.script("on *\n out title\\n\n err warning: projects could not be read\\n\n exit 0\n");
    gh(&sandbox, &warned).run();
    sandbox.script(DOWN);
    assert_eq!(seen(&gh(&sandbox, &warned).run()), failure());
}

#[test]
fn no_mutation_and_no_other_read_is_ever_stored_or_served() {
    let sandbox = read_once();
    let before = entries(&sandbox).len();
    let others: [&[&str]; 6] = [
        &["issue", "comment", "1", "--body", "x"],
        &["pr", "list"],
        &["issue", "list", "--web"],
        &["api", "user"],
        &["issue", "status"],
        &["repo", "view"],
    ];
    for words in others {
        sandbox.script(LIVE);
        gh(&sandbox, words).env("BOB_FORGE_QUEUE", "0").run();
        sandbox.script(DOWN);
        let run = gh(&sandbox, words).env("BOB_FORGE_QUEUE", "0").run();
        assert_eq!((run.exit, run.out().as_str()), (Exit::Code(1), FAILURE.1), "{words:?}");
    }
    assert_eq!(entries(&sandbox).len(), before);
}

#[test]
fn turned_off_nothing_is_stored_and_nothing_served() {
    let sandbox = Sandbox::new(LIVE);
    sandbox.checkout("acme/widget");
    gh(&sandbox, &LIST).env("BOB_FORGE_CACHE", "0").run();
    assert!(entries(&sandbox).is_empty() && !sandbox.path("work/.claude").exists());
    gh(&sandbox, &LIST).run();
    sandbox.script(DOWN);
    assert_eq!(seen(&gh(&sandbox, &LIST).env("BOB_FORGE_CACHE", "0").run()), failure());
    assert_eq!(gh(&sandbox, &LIST).run().out(), ANSWER);
}

#[test]
fn with_a_terminal_on_either_stream_there_is_no_cache() {
    for (stdout, stderr) in [(Out::Tty, Out::Pipe), (Out::Pipe, Out::Tty), (Out::Tty, Out::Tty)] {
        let sandbox = Sandbox::new(LIVE);
        sandbox.checkout("acme/widget");
        let call = || gh(&sandbox, &LIST).stdout(stdout.clone()).stderr(stderr.clone());
        assert_eq!(call().run().exit, Exit::Code(0));
        assert!(entries(&sandbox).is_empty());
        gh(&sandbox, &LIST).run();
        sandbox.script(DOWN);
        let run = call().run();
        assert_eq!(run.exit, Exit::Code(1));
        assert!(!run.out().contains("OPEN") && !run.err().contains("forge-cache"));
    }
}

#[test]
fn an_answer_of_8_mib_and_more_is_passed_through_unstored() {
    let sandbox = Sandbox::new("on *\n out-mb 9\n exit 0\n");
    sandbox.checkout("acme/widget");
    let bare = sandbox.bare_gh(&LIST).run();
    let run = gh(&sandbox, &LIST).run();
    assert!(run.stdout.len() == 9 << 20 && run.stdout == bare.stdout);
    assert!(entries(&sandbox).is_empty());
    gh(&sandbox, &["issue", "view", "1"]).run();
    sandbox.script(LIVE);
    gh(&sandbox, &LIST).run();
    sandbox.script("on *\n out-mb 9\n err HTTP 503\\n\n exit 1\n");
    let run = gh(&sandbox, &LIST).run();
    assert!(run.exit == Exit::Code(1) && run.stdout == bare.stdout, "what has flowed cannot be taken back");
    sandbox.script("on *\n out-mb 7\n exit 0\n");
    let most = gh(&sandbox, &LIST).run().stdout;
    sandbox.script(DOWN);
    assert!(gh(&sandbox, &LIST).run().stdout == most && most.len() == 7 << 20);
}

#[test]
fn a_slower_older_call_never_replaces_a_newer_answer() {
    let sandbox = Sandbox::new("on *\n touch started\n wait go\n out older\\n\n exit 0\n");
    sandbox.checkout("acme/widget");
    let slow = gh(&sandbox, &LIST).start();
    sandbox.await_checkpoint("started");
    sandbox.script("on *\n out newer\\n\n exit 0\n");
    assert_eq!(gh(&sandbox, &LIST).run().out(), "newer\n");
    sandbox.release("go");
    assert_eq!(slow.finish().out(), "older\n");
    sandbox.script(DOWN);
    assert_eq!(gh(&sandbox, &LIST).run().out(), "newer\n");
}

#[test]
fn everything_is_private_whatever_the_umask_and_closed_again_on_the_next_write() {
    let sandbox = Sandbox::new(LIVE);
    sandbox.checkout("acme/widget");
    gh(&sandbox, &LIST).umask(0).run();
    let [forge, cache] = ["work/.claude/forge", "work/.claude/forge/cache"].map(|name| sandbox.path(name));
    let is_closed = || {
        let files = fs::read_dir(&cache).unwrap().all(|entry| mode(&entry.unwrap().path()) == 0o600);
        files && mode(&forge) == 0o700 && mode(&cache) == 0o700
    };
    assert!(is_closed());
    for (path, bits) in [(&forge, 0o755), (&cache, 0o755), (&entries(&sandbox)[0], 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    }
    gh(&sandbox, &["issue", "view", "1"]).run();
    assert!(is_closed());
}

#[test]
fn a_symlink_in_the_stores_place_is_left_alone_and_gh_still_runs() {
    for place in ["work/.claude", "work/.claude/forge", "work/.claude/forge/cache"] {
        let sandbox = Sandbox::new(LIVE);
        sandbox.checkout("acme/widget");
        let elsewhere = sandbox.path("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir_all(sandbox.path(place).parent().unwrap()).unwrap();
        symlink(&elsewhere, sandbox.path(place)).unwrap();
        let run = gh(&sandbox, &LIST).run();
        assert_eq!(seen(&run), (Exit::Code(0), ANSWER.into(), String::new()));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{place}");
        sandbox.script(DOWN);
        assert_eq!(seen(&gh(&sandbox, &LIST).run()), failure(), "{place}");
    }
}

#[test]
fn a_damaged_entry_and_one_that_came_with_a_checkout_are_misses() {
    let sandbox = read_once();
    let entry = entries(&sandbox).remove(0);
    let whole = fs::read(&entry).unwrap();
    sandbox.script(DOWN);
    for bytes in [&whole[..whole.len() / 2], b"", b"garbage\n", &[&whole[..], b"more"].concat()] {
        fs::write(&entry, bytes).unwrap();
        assert_eq!(seen(&gh(&sandbox, &LIST).run()), failure());
    }
    fs::write(&entry, &whole).unwrap();
    assert_eq!(gh(&sandbox, &LIST).run().out(), ANSWER);
    let clone = Sandbox::new(DOWN);
    clone.checkout("acme/widget");
    let copy = cache_folder(&clone);
    fs::create_dir_all(&copy).unwrap();
    fs::copy(&entry, copy.join(entry.file_name().unwrap())).unwrap();
    assert_eq!(seen(&gh(&clone, &LIST).run()), failure());
    let status = clone.forge(&["cache", "--json"]).cwd(clone.path("work")).run();
    let status: Value = serde_json::from_str(&status.out()).unwrap();
    assert_eq!((&status["count"], &status["damaged"]), (&0.into(), &1.into()));
}

#[test]
fn without_a_state_folder_or_a_writable_project_gh_still_runs() {
    let sandbox = read_once();
    sandbox.script(DOWN);
    sandbox.file("blocked", "");
    let run = gh(&sandbox, &LIST).env("BOB_FORGE_STATE", sandbox.path("blocked")).run();
    assert_eq!(run.out(), ANSWER, "the event cannot be written down; the answer is there");
    fs::remove_dir_all(sandbox.path("work/.claude")).unwrap();
    sandbox.file("work/.claude", "a file");
    sandbox.script(LIVE);
    assert_eq!(seen(&gh(&sandbox, &LIST).run()), (Exit::Code(0), ANSWER.into(), String::new()));
    sandbox.script(DOWN);
    assert_eq!(seen(&gh(&sandbox, &LIST).run()), failure());
}

#[test]
fn outside_a_checkout_there_is_no_cache() {
    let sandbox = Sandbox::new(LIVE);
    let words = ["issue", "list", "-R", "acme/widget"];
    let call = || gh(&sandbox, &words).cwd("/");
    assert_eq!(call().run().out(), ANSWER);
    sandbox.script(DOWN);
    assert_eq!(seen(&call().run()), failure());
}

#[test]
fn a_linked_worktree_and_a_deeper_folder_share_their_projects_cache() {
    let sandbox = Sandbox::new(LIVE);
    let git = |folder: &str, args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let words: Vec<&str> = identity.into_iter().chain(args.iter().copied()).collect();
        let run = sandbox
            .program("/usr/bin/git", &words)
            .cwd(sandbox.path(folder))
            .env("PATH", "/usr/bin:/bin")
            .run();
        assert_eq!(run.exit, Exit::Code(0), "git {args:?}");
    };
    git("work", &["init", "-q"]);
    git("work", &["remote", "add", "origin", "https://github.com/acme/widget"]);
    git("work", &["commit", "-q", "--allow-empty", "-m", "x"]);
    git("work", &["worktree", "add", "-q", "../linked"]);
    fs::create_dir(sandbox.path("work/deep")).unwrap();
    gh(&sandbox, &LIST).cwd(sandbox.path("linked")).run();
    assert!(!sandbox.path("linked/.claude").exists());
    sandbox.script(DOWN);
    for folder in ["work", "work/deep", "linked"] {
        assert_eq!(gh(&sandbox, &LIST).cwd(sandbox.path(folder)).run().out(), ANSWER, "{folder}");
    }
}

#[test]
fn forge_cache_shows_what_is_stored_and_drops_it() {
    let sandbox = read_once();
    let cache = |words: &[&str]| sandbox.forge(&[&["cache"], words].concat()).run();
    let text = cache(&[]).out();
    assert!(text.starts_with("forge: 1 cached answer(s), 13 bytes, in "), "{text}");
    assert!(text.contains("github.com/acme/widget  issue list\n"), "{text}");
    assert_eq!(text, cache(&["status"]).out());
    let document: Value = serde_json::from_str(&cache(&["status", "--json"]).out()).unwrap();
    assert_eq!(document["schema"], "bob-forge-cache/1");
    assert_eq!((&document["count"], &document["bytes"]), (&1.into(), &13.into()));
    assert_eq!(document["entries"][0]["args"], serde_json::json!(["issue", "list"]));
    assert_eq!(document["entries"][0]["fresh"], true);
    let cleared: Value = serde_json::from_str(&cache(&["clear", "--json"]).out()).unwrap();
    assert_eq!(cleared["entries"], 1);
    assert_eq!(cache(&["clear"]).out(), "forge: dropped 0 cached answer(s), 0 bytes\n");
    fs::create_dir(sandbox.path("elsewhere")).unwrap();
    let outside = sandbox.forge(&["cache", "clear"]).cwd(sandbox.path("elsewhere")).run();
    assert_eq!((outside.exit, outside.out()), (Exit::Code(2), String::new()));
    assert!(outside.err().contains("there is no cache outside a git checkout"), "{}", outside.err());
    sandbox.script(DOWN);
    assert_eq!(seen(&gh(&sandbox, &LIST).run()), failure());
    assert_eq!(cache(&["nonsense"]).exit, Exit::Code(2));
}

#[test]
fn a_call_that_was_killed_is_not_answered_for() {
    let sandbox = read_once();
    sandbox.script("on *\n err HTTP 503\\n\n die 15\n");
    assert_eq!(gh(&sandbox, &LIST).run().exit, Exit::Signal(15));
}

#[test]
fn the_marker_names_this_machines_own_writes_that_are_not_in_the_answer() {
    let sandbox = Sandbox::new("on *\n out title\\n\n exit 0\n");
    sandbox.checkout("acme/widget");
    for words in [&["issue", "view", "5"][..], &["issue", "view", "6"], &["label", "list"], &LIST] {
        gh(&sandbox, words).run();
    }
    sandbox.script(DOWN);
    let queued = gh(&sandbox, &["issue", "comment", "5", "--body", "x"]).run();
    assert_eq!(queued.exit, Exit::Code(0), "{}", queued.err());
    let ends_with = |words: &[&str], end: &str| {
        let said = gh(&sandbox, words).run().err();
        let line =
            said.lines().find(|line| line.starts_with("[forge-cache]")).unwrap_or_default().to_string();
        assert!(line.ends_with(end), "{words:?}: {said}");
    };
    ends_with(&["issue", "view", "5"], "not live. 1 queued write(s) not in it.");
    ends_with(&LIST, "not live. 1 queued write(s) not in it.");
    ends_with(&["issue", "view", "6"], "This is last-known state, not live.");
    ends_with(&["label", "list"], "This is last-known state, not live.");
}
