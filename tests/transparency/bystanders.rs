//! What must not touch the call: the state folder, whatever became of it.

use super::{same, same_of};
use crate::support::command::Call;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

const SCRIPT: &str = "on *\n out out\\n\n err err\\n\n exit 3\n";

#[test]
fn without_a_place_for_the_state_the_call_is_the_same() {
    for state in ["/dev/null/forge", "/proc/forge", "/dev/full", "relative/forge", "", "/"] {
        same(SCRIPT, |call| call.env("BOB_FORGE_STATE", state));
    }
    same(SCRIPT, |call| call.env_remove("HOME").env_remove("BOB_HOME"));
    same(SCRIPT, |call| call.env("BOB_HOME", "/dev/null").env("HOME", "/dev/null"));
    same(SCRIPT, |call| call.env("BOB_FORGE_STATE", "x".repeat(5000)));
}

/// Prepares a state folder before the call through the shim, and expects the call to be the same.
fn with_state(prepare: impl Fn(&Path)) {
    for words in super::EVERY_SORT {
        let sandbox = Sandbox::new(SCRIPT);
        sandbox.checkout("acme/widget");
        prepare(&sandbox.state());
        let run = sandbox.gh(words).run();
        assert_eq!(
            (run.exit, run.out(), run.err()),
            (Exit::Code(3), "out\n".into(), "err\n".into()),
            "gh {words:?}"
        );
        assert_eq!(sandbox.calls().len(), 1);
    }
}

#[test]
fn a_file_in_place_of_the_state_folder_is_survived() {
    with_state(|state| fs::write(state, "not a folder").unwrap());
    with_state(|state| symlink(state, state).unwrap());
    with_state(|state| symlink("/nowhere/at/all", state).unwrap());
}

#[test]
fn a_log_that_cannot_be_written_is_survived() {
    with_state(|state| fs::create_dir_all(state.join("observations.log")).unwrap());
    with_state(|state| {
        fs::create_dir_all(state).unwrap();
        symlink("/dev/full", state.join("observations.log")).unwrap();
    });
    with_state(|state| fs::create_dir_all(state.join("observations.log.lock")).unwrap());
    with_state(|state| fs::create_dir_all(state.join("observations.lock")).unwrap());
}

#[test]
fn a_damaged_log_is_survived_and_appended_to() {
    let sandbox = Sandbox::new(SCRIPT);
    sandbox.file("bob/forge/observations.log", b"junk\n\xff\xfe\0\n1\t0\t5\tok\ttorn".as_slice());
    assert_eq!(sandbox.gh(&["pr", "status"]).run().exit, Exit::Code(3));
    let bytes = fs::read(sandbox.state().join("observations.log")).unwrap();
    assert!(bytes.ends_with(b"\n"));
    let last =
        String::from_utf8_lossy(bytes.trim_ascii_end().rsplit(|b| *b == b'\n').next().unwrap()).into_owned();
    assert_eq!(last.split('\t').count(), 9, "{last}");
}

#[test]
fn a_limit_on_file_sizes_does_not_kill_the_call() {
    for bytes in [0, 10] {
        same(SCRIPT, |call| call.limit(libc::RLIMIT_FSIZE as i32, bytes));
    }
}

#[test]
fn state_is_private_whatever_the_umask() {
    for umask in [0o000, 0o022, 0o077, 0o277, 0o777] {
        let sandbox = Sandbox::new(SCRIPT);
        assert_eq!(sandbox.gh(&["pr", "status"]).umask(umask).run().exit, Exit::Code(3));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&sandbox.state()), 0o700, "umask {umask:o}");
        let mut files = 0;
        for entry in fs::read_dir(sandbox.state()).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "umask {umask:o}: {}", path.display());
            files += 1;
        }
        assert!(files >= 1);
        assert_eq!(sandbox.observations().len(), 1);
    }
}

#[test]
fn state_that_was_left_open_is_closed_by_the_next_call() {
    let sandbox = Sandbox::new(SCRIPT);
    let log = sandbox.file("bob/forge/observations.log", "");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(sandbox.state(), fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.gh(&["pr", "status"]).run();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&sandbox.state()), mode(&log)), (0o700, 0o600));
}

#[test]
fn an_offline_call_becomes_gh_and_leaves_nothing_behind() {
    let offline: [&[&str]; 9] = [
        &["--version"],
        &["version"],
        &["help"],
        &["help", "issue"],
        &["issue", "list", "--help"],
        &["issue", "-h"],
        &["completion", "-s", "bash"],
        &["alias", "list"],
        &["config", "get", "editor"],
    ];
    same_of(&offline, SCRIPT, |call: Call<'_>| call);
    same_of(&[&[], &["extension", "list"]], SCRIPT, |call: Call<'_>| call);
    for words in offline {
        let sandbox = Sandbox::new(SCRIPT);
        let run = sandbox.gh(words).run();
        assert_eq!(sandbox.only_call().pid, run.pid, "gh {words:?} is not the same process");
        assert!(!sandbox.state().exists(), "gh {words:?} left something behind");
    }
}

#[test]
fn whatever_stands_in_place_of_dot_git_does_not_hold_up_the_call() {
    let sandbox = Sandbox::new(SCRIPT);
    for (kind, make) in
        [("fifo", ["/usr/bin/mkfifo", ".git"].as_slice()), ("zero", &["/bin/ln", "-s", "/dev/zero", ".git"])]
    {
        sandbox.reset();
        let folder = sandbox.path(format!("work/{kind}"));
        fs::create_dir(&folder).unwrap();
        assert_eq!(sandbox.program(make[0], &make[1..]).cwd(&folder).run().exit, Exit::Code(0));
        for words in super::EVERY_SORT {
            let run = sandbox.gh(words).cwd(&folder).run();
            assert_eq!((run.exit, run.out()), (Exit::Code(3), "out\n".into()), "{kind} {words:?}");
        }
        let callers: Vec<_> = sandbox.observations().iter().map(|row| row[7].clone()).collect();
        assert_eq!(callers, [kind, kind, kind, kind]);
    }
}
