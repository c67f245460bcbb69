//! How a call ends.

use super::{same, same_while};
use crate::support::spawn::Exit;

#[test]
fn every_exit_code_is_the_childs() {
    for code in [0, 1, 2, 4, 8, 75, 126, 127, 128, 130, 255] {
        // gh's own 4 says that it is not logged in, and a write that fails by that is queued.
        same(&format!("on *\n out out\\n\n err message\\n\n exit {code}\n"), |call| {
            if code == 4 { call.env("BOB_FORGE_QUEUE", "0") } else { call }
        });
    }
}

#[test]
fn a_child_killed_by_a_signal_kills_the_shim_by_the_same() {
    for signal in ["TERM", "KILL", "SEGV", "INT", "PIPE", "HUP", "QUIT", "ABRT", "USR1", "14"] {
        same(&format!("on *\n out half an ans\n err mess\n die {signal}\n"), |call| call);
    }
}

#[test]
fn a_child_killed_by_a_signal_that_the_caller_ignores_or_blocks_is_reported_the_same() {
    same("on *\n die TERM\n", |call| call.ignoring(libc::SIGTERM));
    same("on *\n die INT\n", |call| call.ignoring(libc::SIGINT));
    same("on *\n die PIPE\n", |call| call.ignoring(libc::SIGPIPE));
    same("on *\n die TERM\n", |call| call.blocking(libc::SIGTERM));
}

#[test]
fn a_call_ends_with_the_child_although_a_grandchild_keeps_its_streams() {
    for fd in [1, 2] {
        let script = format!("on *\n out out\\n\n err err\\n\n grandchild {fd} gate late\\n\n exit 3\n");
        // A held stdout is the shim's own: what comes after the end belongs to no answer.
        let sorts: &[&[&str]] = if fd == 1 { &super::UNDIVERTED } else { &super::EVERY_SORT };
        same_while(
            sorts,
            &script,
            |call| call,
            |sandbox, running| {
                // The gate opens only after the end: waiting for the grandchild would wait for ever.
                assert_eq!(running.wait(), Exit::Code(3));
                sandbox.release("gate");
                // Made only when its write succeeded, so it was not killed by SIGPIPE either.
                sandbox.await_checkpoint("gate.done");
            },
        );
    }
}

#[test]
fn a_grandchild_that_keeps_the_one_pipe_of_both_streams_does_not_hold_the_call() {
    let script = "on *\n out out\\n\n err err\\n\n grandchild 2 gate late\\n\n exit 0\n";
    same_while(
        &super::UNDIVERTED,
        script,
        |call| call.merged(),
        |sandbox, running| {
            assert_eq!(running.wait(), Exit::Code(0));
            sandbox.release("gate");
            sandbox.await_checkpoint("gate.done");
        },
    );
}

#[test]
fn a_grandchild_that_keeps_writing_before_the_end_loses_nothing() {
    let script = "on *\n grandchild 2 gate early\\n\n touch gate\n wait gate.done\n err last\\n\n exit 1\n";
    same(script, |call| call);
}
