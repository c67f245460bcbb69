//! How the shim finds the real `gh`, and what happens when there is none.

use crate::support::sandbox::{Sandbox, copy, place, shim};
use crate::support::spawn::Exit;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const SCRIPT: &str = "on *\n out real\\n\n exit 7\n";
const REAL: (Exit, &str, &str) = (Exit::Code(7), "real\n", "");

/// A folder of its own for one more `gh`.
fn folder(sandbox: &Sandbox, name: &str) -> PathBuf {
    fs::create_dir(sandbox.path(name)).unwrap();
    sandbox.path(name)
}

/// Runs the shim with this PATH in front of the folder of the real gh.
fn reaches_the_real_gh(sandbox: &Sandbox, program: &Path, before: &[&Path]) {
    let mut path = before.to_vec();
    let real = sandbox.path("real");
    path.push(&real);
    for words in [["pr", "status"].as_slice(), &["--version"]] {
        let run = sandbox.gh(words).at(program).search_path(&path).run();
        assert_eq!((run.exit, run.out().as_str(), run.err().as_str()), REAL, "gh {words:?} on {path:?}");
    }
    assert_eq!(sandbox.calls().len(), 2);
}

/// Runs the shim and expects it to give up with one line, which it returns.
fn gives_up(sandbox: &Sandbox, path: Option<&str>, code: i32) -> String {
    let call = sandbox.gh(&["pr", "status"]);
    let run = match path {
        Some(path) => call.env("PATH", path),
        None => call.env_remove("PATH"),
    }
    .run();
    assert_eq!((run.exit, run.out()), (Exit::Code(code), String::new()));
    assert_eq!(run.err().matches('\n').count(), 1, "{}", run.err());
    assert!(run.err().ends_with('\n'));
    assert!(sandbox.calls().is_empty());
    run.err()
}

#[test]
fn the_marker_lies_in_the_shims_first_bytes() {
    let head = fs::read(shim()).unwrap()[..4096].to_vec();
    assert!(head.windows(17).any(|w| w == b"bob-forge-gh-shim"));
}

#[test]
fn copies_and_links_of_the_shim_are_passed_over() {
    let sandbox = Sandbox::new(SCRIPT);
    let bin = sandbox.path("bin");
    let (twin, hard, soft) = (folder(&sandbox, "twin"), folder(&sandbox, "hard"), folder(&sandbox, "soft"));
    copy(&shim(), &twin.join("gh"));
    place(&shim(), &hard.join("gh"));
    symlink(bin.join("gh"), soft.join("gh")).unwrap();
    let folders = [bin.as_path(), &twin, &hard, &soft, &bin];
    for from in [&bin, &twin, &hard, &soft] {
        sandbox.reset();
        reaches_the_real_gh(&sandbox, &from.join("gh"), &folders);
    }
}

#[test]
fn an_older_shell_shim_is_passed_over() {
    let sandbox = Sandbox::new(SCRIPT);
    let old = folder(&sandbox, "old");
    sandbox.shell("old/gh", "# bob-forge-gh-shim\nexit 55");
    reaches_the_real_gh(&sandbox, &sandbox.path("bin/gh"), &[&old]);
}

#[test]
fn a_marker_deep_inside_a_file_is_not_one() {
    let sandbox = Sandbox::new(SCRIPT);
    folder(&sandbox, "deep");
    sandbox.shell("deep/gh", &format!("exit 21\n# {}\n# bob-forge-gh-shim", "x".repeat(5000)));
    let path = [&*sandbox.path("bin"), &*sandbox.path("deep"), &*sandbox.path("real")];
    assert_eq!(sandbox.gh(&["pr", "status"]).search_path(&path).run().exit, Exit::Code(21));
}

#[test]
fn what_cannot_be_run_is_passed_over() {
    let sandbox = Sandbox::new(SCRIPT);
    let (plain, directory) = (folder(&sandbox, "plain"), folder(&sandbox, "directory"));
    let (dangling, looping) = (folder(&sandbox, "dangling"), folder(&sandbox, "looping"));
    sandbox.file("plain/gh", "#!/bin/sh\nexit 55\n");
    fs::create_dir(directory.join("gh")).unwrap();
    symlink("/nowhere", dangling.join("gh")).unwrap();
    symlink("gh", looping.join("gh")).unwrap();
    let before = [Path::new("/nowhere"), &plain, &directory, &dangling, &looping, &plain.join("gh")];
    reaches_the_real_gh(&sandbox, &sandbox.path("bin/gh"), &before);
}

#[test]
fn empty_and_relative_entries_are_not_searched() {
    let sandbox = Sandbox::new(SCRIPT);
    for name in ["work/gh", "work/sub/gh", "gh"] {
        fs::create_dir_all(sandbox.path(name).parent().unwrap()).unwrap();
        sandbox.shell(name, "exit 55");
    }
    for path in [":", ".", "..", "sub", "./sub", "", ":sub:"] {
        gives_up(&sandbox, Some(path), 127);
        sandbox.reset();
        let mixed = format!("{path}:{}::", sandbox.path("real").display());
        let run = sandbox.gh(&["pr", "status"]).env("PATH", mixed).run();
        assert_eq!(run.exit, Exit::Code(7), "{path}");
        sandbox.reset();
    }
}

#[test]
fn without_a_real_gh_one_line_names_what_was_searched() {
    let sandbox = Sandbox::new(SCRIPT);
    let (bin, empty) = (sandbox.path("bin"), folder(&sandbox, "empty"));
    let path = format!("{}:{}", bin.display(), empty.display());
    let line = gives_up(&sandbox, Some(&path), 127);
    for searched in [&bin, &empty] {
        assert!(line.contains(searched.to_str().unwrap()), "{line}");
    }
    assert!(gives_up(&sandbox, None, 127).contains("PATH"));
    assert!(!sandbox.state().exists() || sandbox.observations().is_empty());
}

#[test]
fn an_odd_path_cannot_break_the_line() {
    let sandbox = Sandbox::new(SCRIPT);
    for odd in ["/a\nb\u{1b}[2J".to_string(), format!("/{}", "x/".repeat(32 << 10))] {
        let run = sandbox.gh(&["pr", "status"]).env("PATH", &odd).run();
        assert_eq!((run.exit, run.err().lines().count()), (Exit::Code(127), 1));
        assert!(!run.err().contains('\u{1b}'));
    }
}

#[test]
fn a_gh_that_cannot_be_started_ends_with_126_and_one_line() {
    let sandbox = Sandbox::new(SCRIPT);
    folder(&sandbox, "broken");
    let script = sandbox.file("broken/gh", "#!/nowhere/interpreter\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let line = gives_up(&sandbox, sandbox.path("broken").to_str(), 126);
    assert!(line.contains(sandbox.path("broken/gh").to_str().unwrap()), "{line}");
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let sandbox = Sandbox::new(SCRIPT);
    folder(&sandbox, "bare");
    let text = sandbox.file("tmp/text", "printf '%s|' \"$@\"; exit 9\n");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(text, sandbox.path("bare/gh")).unwrap();
    for words in [["pr", "status", "a b"], ["--version", "", "c"]] {
        let path = [&*sandbox.path("bin"), &*sandbox.path("bare")];
        let run = sandbox.gh(&words).search_path(&path).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(9), format!("{}|", words.join("|"))));
    }
}

#[test]
fn where_the_caller_ignores_sigchld_a_gh_that_cannot_be_started_is_told_the_same() {
    let sandbox = Sandbox::new(SCRIPT);
    folder(&sandbox, "bare");
    let text = sandbox.file("tmp/text", "echo hi; exit 9\n");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(text, sandbox.path("bare/gh")).unwrap();
    let path = [&*sandbox.path("bin"), &*sandbox.path("bare")];
    let run = sandbox.gh(&["pr", "status"]).search_path(&path).ignoring(libc::SIGCHLD).run();
    assert_eq!((run.exit, run.out()), (Exit::Code(9), "hi\n".into()));
    let text = sandbox.file("tmp/text", "#!/nowhere/interpreter\n");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(text, sandbox.path("bare/gh")).unwrap();
    let run = sandbox.gh(&["pr", "status"]).search_path(&path).ignoring(libc::SIGCHLD).run();
    assert_eq!((run.exit, run.err().lines().count()), (Exit::Code(126), 1), "{}", run.err());
}

/// As a user who may not do everything: root is one without the right to ignore a file's mode.
#[test]
#[cfg(target_os = "linux")]
fn a_gh_that_is_for_others_to_run_is_passed_over_as_by_a_shell() {
    let sandbox = Sandbox::new(SCRIPT);
    folder(&sandbox, "others");
    let script = sandbox.file("others/gh", "#!/bin/sh\nexit 55\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o655)).unwrap();
    let call = |program: PathBuf| {
        // SAFETY: asks only.
        let (program, words) = match unsafe { libc::geteuid() } {
            0 => (
                PathBuf::from("/usr/bin/setpriv"),
                vec![
                    "--bounding-set=-dac_override".into(),
                    "--".into(),
                    program,
                    "pr".into(),
                    "status".into(),
                ],
            ),
            _ => (program, vec!["pr".into(), "status".into()]),
        };
        let path = [&*sandbox.path("bin"), &*sandbox.path("others"), &*sandbox.path("real")];
        sandbox.program(program, &words).search_path(&path).run()
    };
    assert_eq!(call(sandbox.path("bin/gh")).exit, Exit::Code(7));
    assert_eq!(sandbox.calls().len(), 1);
}

#[test]
fn a_loop_through_an_unknown_wrapper_is_cut() {
    let sandbox = Sandbox::new(SCRIPT);
    let wrapper = folder(&sandbox, "wrapper");
    sandbox.shell("wrapper/gh", "exec gh \"$@\"");
    for words in [["pr", "status"].as_slice(), &["--version"]] {
        let path = [&*sandbox.path("bin"), &wrapper, &*sandbox.path("real")];
        let run = sandbox.gh(words).search_path(&path).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(127), String::new()));
        assert_eq!(run.err().matches('\n').count(), 1, "{}", run.err());
        assert!(run.err().contains("BOB_FORGE_DEPTH"), "{}", run.err());
        assert!(sandbox.calls().is_empty());
    }
}

#[test]
fn a_gh_that_calls_gh_goes_through_the_shim_again() {
    let script = "on extension-call\n exec gh issue status\non *\n out inner\\n\n exit 6\n";
    let sandbox = Sandbox::new(script);
    let run = sandbox.gh(&["pr", "extension-call"]).run();
    assert_eq!((run.exit, run.out()), (Exit::Code(6), "inner\n".into()));
    let depths: Vec<_> = sandbox.calls().iter().map(|c| c.var("BOB_FORGE_DEPTH")).collect();
    assert_eq!(depths, [Some("1".into()), Some("2".into())]);
}

#[test]
fn the_depth_is_counted_to_eight_and_nonsense_is_none() {
    for (above, exit) in [("8", 7), ("9", 127), ("400", 127), ("", 7), ("x", 7), ("-1", 7)] {
        let sandbox = Sandbox::new(SCRIPT);
        let run = sandbox.gh(&["pr", "status"]).env("BOB_FORGE_DEPTH", above).run();
        assert_eq!(run.exit, Exit::Code(exit), "depth {above}");
        assert_eq!(sandbox.calls().len(), usize::from(exit == 7));
    }
}
