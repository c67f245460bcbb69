//! With GitHub's own `gh`, both versions, against the local forge.

use serde_json::json;

use super::{gh, is_marker, seen};
use crate::support::forge::{Forge, REAL_GH, sandbox_with_real_gh};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;

const READS: [&[&str]; 6] = [
    &["issue", "list"],
    &["issue", "ls", "--label", "bug", "--json", "number,title,labels"],
    &["issue", "view", "1", "--comments"],
    &["issue", "view", "https://github.com/acme/widget/issues/1", "--json", "title", "-q", ".title"],
    &["label", "list"],
    &["search", "issues", "doors", "--repo", "acme/widget", "--json", "number"],
];

/// Faults of the forge and the signal of a call that meets one.
const FAULTS: [(&str, &str); 7] = [
    ("502", "server"),
    ("503", "server"),
    ("drop", "net"),
    ("401", "auth"),
    ("403", "auth"),
    ("primary", "ratelimit"),
    ("secondary", "ratelimit"),
];

fn seeded() -> Forge {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let comment = json!({"author": "hubot", "body": "hello \u{1f6aa}"});
    let issue = json!({"number": 1, "title": "Doors do not close", "labels": ["bug"], "comments": [comment]});
    forge.control("POST", "/_forge/seed", &json!({"repo": "acme/widget", "issues": [issue]}).to_string());
    forge
}

fn checkout(version: &str, forge: &Forge) -> Sandbox {
    let sandbox = sandbox_with_real_gh(version, forge);
    sandbox.checkout("acme/widget");
    sandbox
}

fn fail(forge: &Forge, fault: &str) {
    forge.control("DELETE", "/_forge/faults", "");
    forge.control("POST", "/_forge/fault", &json!({"fault": fault}).to_string());
}

#[test]
fn every_availability_signal_is_answered_with_identical_bytes() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = checkout(version, &forge);
        forge.control("DELETE", "/_forge/faults", "");
        let with_git = |words: &[&str]| gh(&sandbox, words).env("PATH", path(&sandbox));
        let live: Vec<_> = READS.iter().map(|words| with_git(words).run()).collect();
        for (words, run) in READS.iter().zip(&live) {
            assert!(
                run.exit == Exit::Code(0) && !run.stdout.is_empty(),
                "{version} {words:?}: {:?}",
                seen(run)
            );
        }
        for (fault, signal) in FAULTS {
            fail(&forge, fault);
            for (words, live) in READS.iter().zip(&live) {
                let run = with_git(words).run();
                assert_eq!(
                    (run.exit, &run.stdout),
                    (Exit::Code(0), &live.stdout),
                    "{version} {words:?} {fault}"
                );
                assert!(is_marker(&run.err(), signal), "{version} {words:?} {fault}: {:?}", run.err());
                let merged = with_git(words).merged().run();
                let both = [&live.stdout[..], run.stderr.as_slice()].concat();
                let ages =
                    |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(|c: char| c.is_ascii_digit(), "");
                assert_eq!(ages(&merged.stdout), ages(&both), "{version} {words:?} {fault} 2>&1");
            }
        }
        let out = with_git(READS[0]).env_remove("GH_TOKEN").run();
        assert_eq!((out.exit, &out.stdout), (Exit::Code(0), &live[0].stdout), "{version}: logged out");
        assert!(is_marker(&out.err(), "auth"), "{:?}", out.err());
    }
}

#[test]
fn what_is_no_outage_never_seen_or_stale_fails_exactly_as_without_us() {
    let forge = seeded();
    for version in REAL_GH {
        let sandbox = checkout(version, &forge);
        let call = |words: &[&str]| gh(&sandbox, words).env("PATH", path(&sandbox));
        let bare = |words: &[&str]| sandbox.bare_gh(words).env("PATH", path(&sandbox));
        forge.control("DELETE", "/_forge/faults", "");
        let live: Vec<_> = READS.iter().map(|words| call(words).run()).collect();
        assert!(live.iter().all(|run| run.exit == Exit::Code(0)));
        for (words, stale) in [
            (&["issue", "view", "999"][..], false),
            (&["issue", "list", "--no-such-flag"], false),
            (&["issue", "list", "-R", "acme/nothing"], false),
        ] {
            assert_eq!(seen(&call(words).run()), seen(&bare(words).run()), "{version} {words:?} {stale}");
        }
        for fault in ["502", "503", "401", "403", "primary", "secondary"] {
            fail(&forge, fault);
            let never = ["issue", "list", "--state", "closed"];
            assert_eq!(seen(&call(&never).run()), seen(&bare(&never).run()), "{version} never seen, {fault}");
            for words in READS {
                let stale = call(words).env("BOB_FORGE_CACHE_MAX_AGE", "0").run();
                assert_eq!(seen(&stale), seen(&bare(words).run()), "{version} {words:?} stale, {fault}");
            }
        }
        // The forge says 404 for what it has answered before: that is the answer, and stays it.
        fail(&forge, "404");
        for words in [READS[0], READS[2], READS[4]] {
            assert_eq!(seen(&call(words).run()), seen(&bare(words).run()), "{version} {words:?} 404");
        }
        fail(&forge, "503");
        assert_eq!(
            seen(&call(READS[0]).run()),
            seen(&bare(READS[0]).run()),
            "{version}: gone, then an outage"
        );
    }
}

/// gh starts git to find its remotes.
fn path(sandbox: &Sandbox) -> String {
    format!("{}:{}:/usr/bin:/bin", sandbox.path("bin").display(), sandbox.path("real").display())
}

#[test]
fn a_write_of_ours_is_named_while_it_waits_and_after_it_was_delivered() {
    let forge = seeded();
    let sandbox = checkout(REAL_GH[1], &forge);
    let call = |words: &[&str]| gh(&sandbox, words).env("PATH", path(&sandbox)).run();
    let view = ["issue", "view", "1", "--json", "title"];
    assert_eq!(call(&view).exit, Exit::Code(0));
    fail(&forge, "503");
    let comment = call(&["issue", "comment", "1", "--body", "from an outage"]);
    assert_eq!(comment.exit, Exit::Code(0), "{}", comment.err());
    assert!(call(&view).err().contains(" 1 queued write(s) not in it."), "{}", call(&view).err());
    forge.control("DELETE", "/_forge/faults", "");
    let replay = sandbox.forge(&["queue", "replay", "--apply"]).env("PATH", path(&sandbox));
    let replay = replay.env("BOB_FORGE_BUDGET", "0").run();
    assert_eq!(replay.exit, Exit::Code(0), "{}{}", replay.out(), replay.err());
    fail(&forge, "503");
    let said = call(&view).err();
    assert!(said.contains("not live. Your own write to #1 is newer."), "{said}");
    forge.control("DELETE", "/_forge/faults", "");
    // The queue's times are whole seconds; one that is the same counts as newer.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    call(&view);
    fail(&forge, "503");
    assert!(call(&view).err().contains("last-known state, not live.\n"));
}

#[test]
fn a_write_that_went_live_is_named_to_the_older_reads_of_its_issue_alone() {
    let forge = seeded();
    forge.control("POST", "/_forge/seed", r#"{"issues": [{"number": 2, "title": "Lights stay on"}]}"#);
    let sandbox = checkout(REAL_GH[1], &forge);
    let call = |words: &[&str]| gh(&sandbox, words).env("PATH", path(&sandbox)).run();
    let [view, other, list] =
        [["issue", "view", "1"], ["issue", "view", "2"], ["issue", "list", "--json=title"]];
    for read in [view, other, list] {
        assert_eq!(call(&read).exit, Exit::Code(0));
    }
    assert_eq!(call(&["issue", "comment", "1", "--body", "live"]).exit, Exit::Code(0));
    let note = " Your own write to #1 is newer.";
    let says = |read: &[&str]| {
        fail(&forge, "503");
        let said = call(read).err();
        forge.control("DELETE", "/_forge/faults", "");
        assert!(said.contains("[forge-cache] served from cache"), "{said}");
        said.contains(note)
    };
    assert_eq!([says(&view), says(&other), says(&list)], [true, false, true]);
    assert_eq!(call(&view).exit, Exit::Code(0));
    assert!(!says(&view), "what was read after the write shows it");
    let created = call(&["issue", "create", "--title", "new", "--body", "live"]).out();
    let number = created.trim().rsplit('/').next().unwrap().to_string();
    fail(&forge, "503");
    let said = call(&list).err();
    assert!(said.contains(&format!(" Your own write to #{number} is newer.")), "{said}");
}
