//! Many shims at once.

use crate::support::running::Running;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use engine::store::ring::Ring;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

const SHIMS: usize = 200;
/// The bound of the trimmer beside them: room for every new line (and the empty one that an append without the
/// lock puts before it), so that a lost one was not trimmed away.
const BOUND: u64 = 2 * SHIMS as u64 + 50;

#[test]
fn two_hundred_shims_and_a_trimmer_lose_no_line_and_tear_none() {
    let sandbox = with_a_quick_gh();
    let old: String =
        (0..BOUND * 4).map(|n| format!("{n}\t0\t5\tok\tissue list\tgraphql\t1\told\t-\n")).collect();
    sandbox.file("bob/forge/observations.log", old);
    let is_done = AtomicBool::new(false);
    let trims = std::thread::scope(|scope| {
        let trimmer = scope.spawn(|| {
            let ring = Ring::new(&sandbox.state(), "observations", BOUND);
            let mut trims = 0;
            while !is_done.load(Ordering::Relaxed) || trims == 0 {
                ring.trim(BOUND).unwrap();
                trims += 1;
                // A busy lock would starve the appends, which is not what is tested.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            trims
        });
        let running: Vec<Running> = (0..SHIMS).map(|n| quick_call(&sandbox, n)).collect();
        for shim in running {
            assert_eq!(shim.finish().exit, Exit::Code(0));
        }
        is_done.store(true, Ordering::Relaxed);
        trimmer.join().unwrap()
    });
    let lines = sandbox.observations();
    let torn: Vec<_> = lines.iter().filter(|line| line.len() != 9).collect();
    assert!(torn.is_empty(), "torn lines after {trims} trims: {torn:?}");
    let mut sessions: Vec<&str> = lines.iter().map(|l| l[8].as_str()).filter(|s| *s != "-").collect();
    sessions.sort_unstable();
    let expected: Vec<String> = (0..SHIMS).map(session).collect();
    assert_eq!(sessions, expected, "after {trims} trims");
    assert!(fs::read(sandbox.state().join("observations.log")).unwrap().ends_with(b"\n"));
}

#[test]
fn killed_shims_leave_only_whole_lines() {
    let sandbox = with_a_quick_gh();
    let running: Vec<Running> = (0..60).map(|n| quick_call(&sandbox, n)).collect();
    for (n, shim) in running.into_iter().enumerate() {
        if n % 2 == 0 {
            shim.send(libc::SIGKILL);
        }
        shim.finish();
    }
    sandbox.gh(&["pr", "status"]).search_path(&[&sandbox.path("quick")]).run();
    let lines = sandbox.observations();
    assert!(lines.iter().all(|line| line.len() == 9), "{lines:?}");
    assert!(lines.len() > 30);
}

fn session(n: usize) -> String {
    format!("s{n:07}")
}

fn quick_call(sandbox: &Sandbox, n: usize) -> Running<'_> {
    let call = sandbox.gh(&["pr", "status"]).search_path(&[&sandbox.path("quick")]);
    call.env("CLAUDE_CODE_SESSION_ID", session(n)).start()
}

/// A sandbox whose real gh does nothing at all.
fn with_a_quick_gh() -> Sandbox {
    let sandbox = Sandbox::new("");
    fs::create_dir(sandbox.path("quick")).unwrap();
    sandbox.shell("quick/gh", "exit 0");
    sandbox
}
