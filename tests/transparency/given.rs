//! What the child is given: words, environment, working directory, stdin, umask, limits.

use super::same;
use crate::support::sandbox::{Sandbox, place, shim};
use crate::support::spawn::FORKING;
use crate::support::streams::Stdin;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[test]
fn words_reach_the_child_byte_for_byte() {
    let odd: [&[u8]; 9] = [
        b"",
        b"\xff\xfe not utf-8 \x80",
        b"two\nlines\r\n\ttab",
        b"'quotes\" $HOME `x` \\ *",
        b"-",
        b"--",
        b"--body=\xc3\x28",
        "--title=ünïcødé ✓".as_bytes(),
        b" leading and trailing ",
    ];
    for word in odd {
        same("on *\n exit 1\n", |call| call.arg(word));
    }
}

#[test]
fn empty_words_in_a_row_and_a_word_of_100_kb_reach_the_child() {
    same("on *\n exit 0\n", |call| call.arg("").arg("").arg("x").arg(""));
    same("on *\n exit 0\n", |call| call.arg("--body").arg(vec![b'x'; 100_000]));
}

/// What fits beside the caller's own variables fits through the shim, which adds one. The kernel counts the
/// program's own path too, so the two programs' are of one length here.
#[test]
fn words_that_just_fit_still_fit() {
    let sandbox = Sandbox::new("on *\n exit 5\n");
    fs::create_dir(sandbox.path("shim")).unwrap();
    place(&shim(), &sandbox.path("shim/gh"));
    let run = |program: &str, last: usize| {
        let words = (0..16).map(|_| 130_000).chain([last]).map(|size| "x".repeat(size));
        let mut command = Command::new(sandbox.path(program));
        command.args(["pr", "status"]).args(words).env_clear().env("PATH", sandbox.path("real"));
        command.env("BOB_FORGE_STATE", sandbox.state()).stderr(Stdio::null());
        // SAFETY: a plain call, safe after fork.
        unsafe {
            command.pre_exec(|| {
                let stack = libc::rlimit { rlim_cur: 8 << 20, rlim_max: libc::RLIM_INFINITY };
                libc::setrlimit(libc::RLIMIT_STACK, &stack);
                Ok(())
            })
        };
        let _guard = FORKING.lock();
        command.status().ok().and_then(|status| status.code())
    };
    let (mut fits, mut fits_not) = (0, 130_000);
    assert_eq!((run("real/gh", fits), run("real/gh", fits_not)), (Some(5), None));
    while fits_not - fits > 1 {
        let middle = (fits + fits_not) / 2;
        *(if run("real/gh", middle).is_some() { &mut fits } else { &mut fits_not }) = middle;
    }
    for less in [0, 1, 20, 40, 100] {
        assert_eq!(run("shim/gh", fits - less), Some(5), "{less} bytes below the limit");
    }
}

#[test]
fn argv0_is_the_callers() {
    for argv0 in ["gh", "/usr/local/bin/gh", "./gh", "-gh", "", "something else"] {
        same("on *\n exit 0\n", |call| call.argv0(argv0));
    }
}

#[test]
fn the_environment_reaches_the_child_entry_by_entry() {
    same("on *\n", |call| call.env_entry("TWICE=1").env_entry("TWICE=2").env_entry("EMPTY="));
    same("on *\n", |call| call.env_entry("no equals sign").env_entry("=starts with it").env_entry(""));
    same("on *\n", |call| call.env_entry(b"BYTES=\xff\x01\n".to_vec()).env_entry(b"\xfe=name".to_vec()));
    same("on *\n", |call| call.env_entry(format!("LONG={}", "y".repeat(100_000))));
    same("on *\n", |call| {
        call.env_entry("GH_PATH=/x").env_entry("GH_REPO=a/b").env_entry("RUST_BACKTRACE=1")
    });
}

#[test]
fn an_environment_of_path_alone_is_enough() {
    let path = |sandbox: &Sandbox| sandbox.path("real").into_os_string();
    for words in super::EVERY_SORT {
        let sandbox = Sandbox::new("on *\n out ok\\n\n exit 9\n");
        let run = sandbox.gh(words).env_clear().env("PATH", path(&sandbox)).run();
        assert_eq!((run.exit, run.out()), (crate::support::spawn::Exit::Code(9), "ok\n".into()));
        let names: Vec<String> =
            sandbox.only_call().env.iter().map(|e| String::from_utf8_lossy(e).into_owned()).collect();
        assert_eq!(names, [format!("PATH={}", path(&sandbox).display()), "BOB_FORGE_DEPTH=1".into()]);
    }
}

#[test]
fn the_working_directory_is_the_callers_even_when_it_is_gone() {
    same("on *\n exit 0\n", |call| call.cwd("/"));
    same("on *\n err x\\n\n exit 1\n", |call| call.in_removed_folder());
}

#[test]
fn stdin_reaches_the_child() {
    let bytes = b"line\n\0binary\xff no newline at the end".to_vec();
    let script = "on *\n stdin\n exit 0\n";
    same(script, |call| call.stdin(Stdin::Null));
    same(script, |call| call.stdin(Stdin::Closed));
    same(script, |call| call.stdin(Stdin::Bytes(Vec::new())));
    same(script, |call| call.stdin(Stdin::Bytes(bytes.clone())));
    same(script, |call| call.stdin(Stdin::File(bytes.clone())));
}

#[test]
fn a_megabyte_of_stdin_comes_back_as_it_was() {
    let much: Vec<u8> = (0..1_048_576_u32).map(|i| (i * 7 % 253) as u8).collect();
    same("on *\n cat\n exit 0\n", |call| call.stdin(Stdin::Bytes(much.clone())));
    same("on *\n cat\n exit 0\n", |call| call.stdin(Stdin::File(much.clone())));
}

#[test]
fn stdin_that_the_child_leaves_unread_is_left_unread() {
    same("on *\n err no\\n\n exit 1\n", |call| call.stdin(Stdin::Bytes(vec![b'x'; 300_000])));
}

#[test]
fn a_body_on_stdin_reaches_the_child() {
    let sorts: [&[&str]; 3] = [
        &["issue", "comment", "5", "--body-file", "-"],
        &["issue", "create", "--title", "t", "-F-"],
        &["api", "graphql", "--input", "-"],
    ];
    for body in [b"".to_vec(), b"a body\0\xff".to_vec(), vec![b'b'; 200_000]] {
        super::same_of(&sorts, "on *\n stdin\n out done\\n\n", |call| call.stdin(Stdin::Bytes(body.clone())));
    }
    super::same_of(&sorts, "on *\n stdin\n err no\\n\n exit 1\n", |call| call.stdin(Stdin::Closed));
}

#[test]
fn the_umask_is_the_callers() {
    for umask in [0o000, 0o022, 0o077, 0o777] {
        same("on *\n exit 0\n", |call| call.umask(umask));
    }
}

#[test]
fn the_childs_limits_are_the_callers() {
    same("on *\n exit 0\n", |call| call.limit(libc::RLIMIT_NOFILE as i32, 64));
}
