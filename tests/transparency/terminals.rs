//! On a terminal.

use super::{EVERY_SORT, UNDIVERTED, same, same_of, same_while};
use crate::support::command::Call;
use crate::support::streams::{Out, Stdin};

fn on_terminal(call: Call<'_>) -> Call<'_> {
    call.stdin(Stdin::Tty).stdout(Out::Tty).stderr(Out::Tty)
}

#[test]
fn what_is_a_terminal_stays_one() {
    let script = "on *\n out out\\n\n err err\\n\n exit 1\n";
    same(script, on_terminal);
    same(script, |call| call.stdout(Out::Tty).stderr(Out::Tty));
    same(script, |call| call.stderr(Out::Tty));
    same(script, |call| call.stdin(Stdin::Tty).stderr(Out::Tty).stdout(Out::File));
}

#[test]
fn stdout_on_a_terminal_and_stderr_in_a_pipe() {
    same("on *\n out out\\n\n err err\\n\n exit 1\n", |call| call.stdout(Out::Tty));
    same("on *\n out out\\n\n err err\\n\n exit 0\n", |call| call.stdin(Stdin::Tty).stdout(Out::Tty));
    same("on *\n out out\\n\n err err\\n\n exit 0\n", |call| call.stdin(Stdin::Tty));
}

#[test]
fn both_streams_on_a_terminal_keep_their_exact_order() {
    same("on *\n alternate 200\n exit 1\n", on_terminal);
}

#[test]
fn a_prompt_without_a_newline_is_seen_and_answered() {
    let script = "on *\n err Title? \n wait typed\n stdin\n exit 0\n";
    same_while(&UNDIVERTED, script, on_terminal, |sandbox, running| {
        running.stdout().wait_for(b"Title? ");
        running.type_keys(b"answer\n\x04");
        running.stdout().wait_for(b"answer");
        sandbox.release("typed");
    });
}

#[test]
fn ctrl_c_ends_the_call_the_way_the_child_ends() {
    let script = "on *\n trap INT 5\n out ready\\n\n touch up\n wait never\n";
    same_while(&EVERY_SORT, script, on_terminal, |sandbox, running| {
        sandbox.await_checkpoint("up");
        running.type_keys(b"\x03");
    });
    let script = "on *\n out ready\\n\n touch up\n wait never\n";
    same_while(&EVERY_SORT, script, on_terminal, |sandbox, running| {
        sandbox.await_checkpoint("up");
        running.type_keys(b"\x03");
    });
    same_while(&EVERY_SORT, script, on_terminal, |sandbox, running| {
        sandbox.await_checkpoint("up");
        running.type_keys(b"\x1c");
    });
}

#[test]
fn ctrl_c_reaches_the_child_once() {
    let script = "on *\n count INT\n touch up\n await-count 1\n touch got\n wait go\n out-count\n exit 0\n";
    same_while(&EVERY_SORT, script, on_terminal, |sandbox, running| {
        sandbox.await_checkpoint("up");
        running.type_keys(b"\x03");
        sandbox.await_checkpoint("got");
        sandbox.release("go");
    });
}

#[test]
fn a_terminal_that_goes_away_hangs_the_call_up() {
    let script = "on *\n touch up\n wait never\n";
    same_while(&UNDIVERTED, script, on_terminal, |sandbox, running| {
        sandbox.await_checkpoint("up");
        running.send(libc::SIGHUP);
    });
    same_of(&UNDIVERTED, "on *\n die HUP\n", on_terminal);
}
