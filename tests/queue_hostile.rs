//! A queue folder that came with a checkout: nothing of it is ever sent.

use crate::support::queued::{checkout, folder, git, settle};
use crate::support::running::Run;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

const DOWN: &str = "on *\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";

/// A checkout whose queue holds one write of this machine's own.
fn scene() -> Sandbox {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    let call = sandbox.gh(&["issue", "comment", "7", "--body", "text"]);
    let run = settle(&sandbox, call).run();
    assert!(run.err().contains("Spooled as q000001"), "{}", run.err());
    sandbox.script("on *\n exit 0\n");
    let _ = fs::remove_dir_all(sandbox.path("real/fake-gh.script.log"));
    sandbox
}

fn queue(sandbox: &Sandbox, args: &[&str]) -> Run {
    let words: Vec<&str> = ["queue"].iter().chain(args).copied().collect();
    settle(sandbox, sandbox.forge(&words)).run()
}

/// Changes the entry's file as somebody without the key can.
fn change(sandbox: &Sandbox, change: impl FnOnce(&mut Value)) {
    let path = folder(sandbox).join("000001.json");
    let mut entry: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut entry);
    fs::write(&path, entry.to_string()).unwrap();
}

/// Replays by hand and by itself; nothing is sent, and the reason names `why`.
fn nothing_is_sent(sandbox: &Sandbox, why: &str) {
    let dry = queue(sandbox, &["replay"]);
    assert_eq!(dry.exit, Exit::Code(3), "{why}: {}", dry.out());
    assert!(dry.out().contains(why), "{why}: {}", dry.out());
    let live = settle(sandbox, sandbox.gh(&["api", "rate_limit"])).run();
    assert_eq!(live.exit, Exit::Code(0));
    let run = queue(sandbox, &["replay", "--apply"]);
    assert_eq!(run.exit, Exit::Code(3), "{why}: {}", run.out());
    let calls = sandbox.calls();
    let others: Vec<_> = calls.iter().map(|call| call.words()).filter(|words| words[0] != "api").collect();
    assert!(others.is_empty() && calls.len() <= 1, "{why}: {calls:?}");
    let all = queue(sandbox, &["list", "--all"]);
    assert!(all.out().contains("refused"), "{why}: {}", all.out());
}

#[test]
fn entries_that_git_tracks_are_refused() {
    for tracked in ["000001.json", "000001.seq", "000001.d/body.md", "handles.json"] {
        let sandbox = scene();
        fs::write(folder(&sandbox).join("handles.json"), "{}").unwrap();
        git(&sandbox, &["add", "-f", &format!(".claude/forge/queue/{tracked}")]);
        nothing_is_sent(&sandbox, &format!("git tracks {tracked}"));
        let shown = queue(&sandbox, &["show", "1"]);
        assert!(shown.out().contains("status       refused"), "{}", shown.out());
    }
}

#[test]
fn what_git_left_behind_untracked_has_no_seal_and_is_refused() {
    // As after `git reset` or `git apply`: the same files, another machine's key.
    let sandbox = scene();
    fs::remove_file(sandbox.state().join("queue.key")).unwrap();
    nothing_is_sent(&sandbox, "no valid seal");
    sandbox.script("on api\n out []\\n\non *\n exit 0\n");
    let run = queue(&sandbox, &["replay", "--apply", "--accept", "1"]);
    assert_eq!(run.exit, Exit::Code(3), "what is refused stays refused: {}", run.out());
}

#[test]
fn a_person_can_let_an_entry_without_a_seal_through() {
    let sandbox = scene();
    fs::remove_file(sandbox.state().join("queue.key")).unwrap();
    sandbox.script("on api\n out []\\n\non issue comment\n stdin\n out https://github.com/acme/widget/issues/7#issuecomment-1\\n\n");
    let run = queue(&sandbox, &["replay", "--apply", "--accept", "1"]);
    assert_eq!(run.exit, Exit::Code(0), "{}", run.out());
    let sent: Vec<_> = sandbox.calls().into_iter().filter(|call| call.words()[0] == "issue").collect();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].stdin.as_deref(), Some(&b"text"[..]));
    let words = sent[0].words();
    assert_eq!(words, ["issue", "comment", "7", "--repo", "github.com/acme/widget", "--body-file", "-"]);
}

#[test]
fn commands_that_are_not_what_they_record_are_refused() {
    let not_one = "its command is not a queueable issue mutation";
    let body = |entry: &Value| entry["body_file"].clone();
    type Change = Box<dyn Fn(&mut Value)>;
    let argv = |words: &'static [&'static str]| -> Change {
        Box::new(move |entry| {
            let file = body(entry);
            let words = words.iter().map(|word| if *word == "BODY" { file.clone() } else { json!(word) });
            entry["argv"] = words.collect();
        })
    };
    let cases: Vec<(&str, Change)> = vec![
        (not_one, argv(&["api", "-X", "DELETE", "repos/acme/widget"])),
        (not_one, argv(&["issue", "delete", "7", "--yes"])),
        (not_one, argv(&["issue", "comment", "7", "--web", "--body-file", "BODY"])),
        (not_one, argv(&["issue", "comment", "7", "--edit-last", "--body-file", "BODY"])),
        ("not the kind and the target it records", argv(&["issue", "comment", "8", "--body-file", "BODY"])),
        ("not the kind and the target it records", argv(&["issue", "edit", "7", "--body-file", "BODY"])),
        // Another repository in a combined short flag, in a URL, behind a second -R.
        (
            "names another repository",
            argv(&["issue", "comment", "7", "--repo", "evil/other", "--body-file", "BODY"]),
        ),
        ("not written the way", argv(&["issue", "comment", "7", "-Revil/other", "--body-file", "BODY"])),
        ("not written the way", argv(&["issue", "comment", "7", "--body-file", "BODY", "-R=acme/widget"])),
        (
            "not written the way",
            argv(&["issue", "comment", "https://github.com/evil/other/issues/7", "--body-file", "BODY"]),
        ),
        ("not written the way", argv(&["-R", "evil/other", "issue", "comment", "7", "--body-file", "BODY"])),
        ("it is for github.com/evil/other", Box::new(|entry| entry["repo"] = json!("github.com/evil/other"))),
        ("outside its own folder", argv(&["issue", "comment", "7", "--body-file", "/etc/passwd"])),
        ("outside its own folder", Box::new(|entry| entry["body_file"] = json!("../../../../etc/passwd"))),
        ("not written the way", argv(&["issue", "comment", "7", "--body", "hello"])),
        ("names another number (2)", Box::new(|entry| entry["seq"] = json!(2))),
        ("not the one of its file", Box::new(|entry| entry["id"] = json!("q000002"))),
        ("no valid seal", Box::new(|entry| entry["caller"] = json!("somebody"))),
        ("it is no bob-forge-queue/1 entry", Box::new(|entry| entry["schema"] = json!("other/1"))),
    ];
    for (why, make) in cases {
        let sandbox = scene();
        change(&sandbox, make);
        nothing_is_sent(&sandbox, why);
    }
}

#[test]
fn bodies_that_are_not_this_machines_files_are_refused_at_once() {
    type Place = fn(&std::path::Path, &Sandbox);
    let cases: [(&str, Place); 8] = [
        ("is a symlink", |body, sandbox| {
            fs::remove_file(body).unwrap();
            symlink(sandbox.file("tmp/secret", "secret"), body).unwrap();
        }),
        ("hard link", |body, sandbox| {
            fs::hard_link(body, sandbox.path("tmp/second-name")).unwrap();
        }),
        ("not a regular file", |body, _| {
            fs::remove_file(body).unwrap();
            assert!(Command::new("mkfifo").arg(body).status().unwrap().success());
        }),
        ("not a regular file", |body, _| {
            fs::remove_file(body).unwrap();
            fs::create_dir(body).unwrap();
        }),
        ("larger than", |body, _| {
            fs::File::options().write(true).open(body).unwrap().set_len(1 << 40).unwrap()
        }),
        ("open to other users", |body, _| {
            fs::set_permissions(body, fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("not the one it was queued with", |body, _| fs::write(body, "other text").unwrap()),
        ("lies behind a symlink", |body, sandbox| {
            let own = body.parent().unwrap();
            fs::rename(own, sandbox.path("tmp/elsewhere")).unwrap();
            symlink(sandbox.path("tmp/elsewhere"), own).unwrap();
        }),
    ];
    for (why, place) in cases {
        let sandbox = scene();
        place(&folder(&sandbox).join("000001.d/body.md"), &sandbox);
        let started = std::time::Instant::now();
        nothing_is_sent(&sandbox, why);
        assert!(started.elapsed().as_secs() < 20, "{why}");
    }
}

#[test]
fn entry_files_that_are_no_entries_are_refused_and_block_nobody() {
    type Place = fn(&std::path::Path, &Sandbox);
    let cases: [(&str, Place); 5] = [
        ("is a symlink", |entry, sandbox| {
            fs::rename(entry, sandbox.path("tmp/entry")).unwrap();
            symlink(sandbox.path("tmp/entry"), entry).unwrap();
        }),
        ("not a regular file", |entry, _| {
            fs::remove_file(entry).unwrap();
            assert!(Command::new("mkfifo").arg(entry).status().unwrap().success());
        }),
        ("holds no entry", |entry, _| fs::write(entry, "{\"seq\": 1").unwrap()),
        ("larger than", |entry, _| {
            fs::File::options().write(true).open(entry).unwrap().set_len(1 << 40).unwrap()
        }),
        ("open to other users", |entry, _| {
            fs::set_permissions(entry, fs::Permissions::from_mode(0o644)).unwrap();
        }),
    ];
    for (why, place) in cases {
        let sandbox = scene();
        place(&folder(&sandbox).join("000001.json"), &sandbox);
        nothing_is_sent(&sandbox, why);
        sandbox.script(DOWN);
        let next = settle(&sandbox, sandbox.gh(&["issue", "comment", "7", "--body", "mine"])).run();
        assert!(next.err().contains("Spooled as q000002"), "{why}: {}", next.err());
    }
}

#[test]
fn a_queue_behind_a_symlink_is_neither_read_nor_written_and_gh_runs_all_the_same() {
    for link in ["work/.claude", "work/.claude/forge", "work/.claude/forge/queue"] {
        let sandbox = scene();
        let away = sandbox.path("tmp/away");
        fs::rename(sandbox.path(link), &away).unwrap();
        symlink(&away, sandbox.path(link)).unwrap();
        let before = fs::read_dir(&away).unwrap().count();
        let run = queue(&sandbox, &["replay", "--apply"]);
        assert_ne!(run.exit, Exit::Code(0), "{link}: {}", run.out());
        sandbox.script(DOWN);
        let next = settle(&sandbox, sandbox.gh(&["issue", "comment", "7", "--body", "mine"])).run();
        assert_eq!(next.exit, Exit::Code(1), "{link}");
        assert!(
            next.err().contains("HTTP 503") && next.err().contains("NOT queued and NOT delivered"),
            "{}",
            next.err()
        );
        assert_eq!(fs::read_dir(&away).unwrap().count(), before);
    }
}

#[test]
fn a_queue_without_a_mark_is_not_replayed_by_itself() {
    let sandbox = scene();
    fs::remove_file(sandbox.state().join("queue-dirty")).unwrap();
    sandbox.script("on api\n out []\\n\non *\n exit 0\n");
    let live = settle(&sandbox, sandbox.gh(&["issue", "list"])).run();
    assert_eq!((live.exit, sandbox.calls().len()), (Exit::Code(0), 1));
    let status = queue(&sandbox, &["status"]);
    assert!(status.out().contains("note: entries wait and this project is not marked"), "{}", status.out());
    assert_eq!(queue(&sandbox, &["replay", "--apply", "--marked-only"]).exit, Exit::Code(3));
    assert_eq!(sandbox.calls().len(), 1);
    assert_eq!(queue(&sandbox, &["replay", "--apply"]).exit, Exit::Code(0));
}

#[test]
fn git_runs_nothing_that_a_checkout_names() {
    let sandbox = scene();
    let trip = sandbox.path("tmp/tripped");
    let hook = sandbox.shell("tmp/hook", &format!("touch {}", trip.display()));
    git(&sandbox, &["config", "core.fsmonitor", hook.to_str().unwrap()]);
    sandbox.script("on api\n out []\\n\non *\n exit 0\n");
    queue(&sandbox, &["replay", "--apply"]);
    assert!(!trip.exists(), "the checkout's program ran");
    // The queue folder is itself a bare repository that the checkout brought along.
    let sandbox = scene();
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\tbare = true\n")] {
        fs::write(folder(&sandbox).join(name), text).unwrap();
    }
    for name in ["objects", "refs"] {
        fs::create_dir(folder(&sandbox).join(name)).unwrap();
    }
    let run = queue(&sandbox, &["replay", "--apply"]);
    assert!(run.out().contains("Stopped: git cannot tell what came with a commit"), "{}", run.out());
    assert!(sandbox.calls().is_empty());
}

#[test]
fn nothing_that_steers_a_terminal_is_printed() {
    let sandbox = Sandbox::new(DOWN);
    checkout(&sandbox);
    let odd = "a\u{1b}]0;title\u{7}\u{9b}31m\u{202e}b\tc\nd";
    let call = sandbox.gh(&["issue", "create", "--title", odd, "--body", odd]);
    assert!(settle(&sandbox, call).run().err().contains("Spooled as q000001"));
    for args in [
        &["status"][..],
        &["list", "--all"],
        &["show", "1"],
        &["replay"],
        &["drop", "1"],
        &["list", "--all", "--json"],
    ] {
        let run = queue(&sandbox, args);
        for c in (run.out() + &run.err()).chars() {
            let steers = c.is_control() && c != '\n' && !(c == '\t' && args[0] == "show");
            assert!(!steers && c != '\u{202e}', "{args:?}: {c:?}");
        }
    }
}
