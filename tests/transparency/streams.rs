//! What comes out, where it goes, and in which order.

use super::{IN_ORDER, UNDIVERTED, same, same_of, same_while};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::{Out, Stdin};

#[test]
fn binary_output_and_output_without_a_last_newline_are_unchanged() {
    same("on *\n out \\x00\\x01\\xff\\r\\n\\n\n err \\x00\\xfe\\x1b[31m\n exit 0\n", |call| call);
    same("on *\n out no newline\n err none here either\n exit 1\n", |call| call);
    same("on *\n exit 0\n", |call| call);
}

#[test]
fn megabytes_on_both_streams_are_unchanged() {
    same("on *\n out-mb 3\n err-mb 2\n exit 0\n", |call| call);
    same("on *\n err-mb 3\n exit 1\n", |call| call.stderr(Out::SlowPipe));
    same_of(&[&["issue", "list"]], "on *\n out-mb 9\n exit 0\n", |call| call.stdout(Out::SlowPipe));
    same("on *\n out-mb 1\n err-mb 1\n out-mb 1\n exit 2\n", |call| call.merged().stdout(Out::SlowPipe));
}

#[test]
fn both_streams_on_one_pipe_keep_their_exact_order() {
    for code in [0, 1] {
        same_of(&IN_ORDER, &format!("on *\n alternate 200\n exit {code}\n"), |call| call.merged());
        same_of(&IN_ORDER, &format!("on *\n alternate 1000\n exit {code}\n"), |call| {
            call.merged().stdout(Out::SlowPipe)
        });
    }
}

#[test]
fn both_streams_in_one_file_keep_their_exact_order() {
    same_of(&IN_ORDER, "on *\n alternate 200\n exit 1\n", |call| call.stdout(Out::Append).merged());
    same_of(&IN_ORDER, "on *\n alternate 200\n exit 1\n", |call| call.stdout(Out::File).merged());
}

#[test]
fn one_file_opened_twice_for_appending_keeps_its_exact_order() {
    let script = "on *\n alternate 200\n exit 1\n";
    same_of(&IN_ORDER, script, |call| call.stdout(Out::Append).stderr(Out::SameFileAgain));
}

#[test]
fn sockets_and_nonblocking_descriptors_lose_nothing() {
    for nonblocking in [false, true] {
        let socket = || Out::Socket { nonblocking };
        let script = "on *\n alternate 200\n out-mb 1\n err-mb 1\n exit 1\n";
        same_of(&IN_ORDER, script, |call| call.stdout(socket()).merged());
        same("on *\n alternate 20\n out-mb 1\n err-mb 1\n exit 1\n", |call| {
            call.stdin(Stdin::Socket(b"in".to_vec())).stdout(socket()).stderr(socket())
        });
    }
    same("on *\n cat\n exit 0\n", |call| call.stdin(Stdin::Socket(vec![b'x'; 300_000])));
    same("on *\n out-mb 1\n err-mb 1\n exit 1\n", |call| {
        call.stdout(Out::NonblockingPipe).stderr(Out::NonblockingPipe)
    });
    let script = "on *\n alternate 200\n err-mb 1\n exit 1\n";
    same_of(&IN_ORDER, script, |call| call.stdout(Out::NonblockingPipe).merged());
}

#[test]
fn one_file_opened_twice_is_overwritten_as_before() {
    same_of(&UNDIVERTED, "on *\n alternate 200\n exit 1\n", |call| {
        call.stdout(Out::File).stderr(Out::SameFileAgain)
    });
    same_of(&UNDIVERTED, "on *\n out a long line of output\\n\n err short\\n\n exit 1\n", |call| {
        call.stdout(Out::File).stderr(Out::SameFileAgain)
    });
}

#[test]
fn files_and_devices_work_as_targets() {
    same("on *\n out a\\n\n err b\\n\n exit 0\n", |call| call.stdout(Out::File).stderr(Out::File));
    same("on *\n out a\\n\n err b\\n\n exit 1\n", |call| call.stdout(Out::Append).stderr(Out::Append));
    same("on *\n out a\\n\n err b\\n\n exit 1\n", |call| call.stdout(Out::Null).stderr(Out::Null));
    same("on *\n out a\\n\n err b\\n\n exit 1\n", |call| call.stdout(Out::Null).merged());
    same("on *\n out a\\n\n err b\\n\n exit 1\n", |call| call.stderr(Out::Null));
    same("on *\n out a\\n\n err b\\n\n exit 1\n", |call| call.stdout(Out::Closed).merged());
}

#[test]
fn a_full_device_is_met_as_without_the_shim() {
    // A held stdout is written by the shim itself: there gh cannot have seen the error.
    same_of(&UNDIVERTED, "on *\n out hello\\n\n exit 0\n", |call| call.stdout(Out::Full));
    same("on *\n out hello\\n\n err lost\\n\n exit 3\n", |call| call.stderr(Out::Full));
}

#[test]
fn messages_to_a_full_device_do_not_end_gh() {
    for code in [0, 1] {
        let script = format!("on *\n alternate 50\n sleep 20\n alternate 50\n exit {code}\n");
        same(&script, |call| call.stderr(Out::Full));
    }
}

#[test]
fn a_read_whose_answer_finds_no_room_is_a_failure() {
    let sandbox = Sandbox::new("on *\n out hello\\n\n exit 0\n");
    sandbox.checkout("acme/widget");
    let run = sandbox.gh(&["issue", "list"]).stdout(Out::Full).run();
    assert_eq!(run.exit, Exit::Code(1));
}

#[test]
fn a_reader_that_goes_away_ends_the_call_as_without_the_shim() {
    for first in ["", " go-pipe\n"] {
        let out = format!("on *\n{first} out-mb 2\n exit 0\n");
        same(&out, |call| call.stdout(Out::PipeThatCloses(10)));
        same(&out, |call| call.stdout(Out::PipeThatCloses(10)).merged());
        same(&out, |call| call.stdout(Out::PipeThatCloses(0)));
        let err = format!("on *\n{first} err-mb 2\n exit 1\n");
        same(&err, |call| call.stderr(Out::PipeThatCloses(10)));
        same(&err, |call| call.stderr(Out::PipeThatCloses(0)));
    }
}

#[test]
fn a_short_message_to_a_reader_that_is_gone_ends_the_call_as_without_the_shim() {
    same("on *\n out hello\\n\n exit 0\n", |call| call.stdout(Out::PipeThatCloses(0)));
    same("on *\n err hello\\n\n exit 1\n", |call| call.stderr(Out::PipeThatCloses(0)));
    same("on *\n err hello\\n\n exit 1\n", |call| call.stdout(Out::PipeThatCloses(0)).merged());
}

#[test]
fn a_reader_that_goes_away_is_survived_where_the_caller_ignores_sigpipe() {
    let script = "on *\n go-pipe\n out-mb 2\n exit 0\n";
    same_of(&UNDIVERTED, script, |call| call.stdout(Out::PipeThatCloses(10)).ignoring(libc::SIGPIPE));
}

#[test]
fn messages_arrive_while_the_child_still_runs() {
    let script = "on *\n err progress\\n\n wait seen\n err done\\n\n exit 0\n";
    same_while(
        &[&["run", "watch", "1"]],
        script,
        |call| call,
        |sandbox, running| {
            running.stderr().wait_for(b"progress\n");
            sandbox.release("seen");
        },
    );
    same_while(
        &[&["run", "watch", "1"]],
        script,
        |call| call.merged(),
        |sandbox, running| {
            running.stdout().wait_for(b"progress\n");
            sandbox.release("seen");
        },
    );
}

#[test]
fn output_of_a_call_that_is_not_held_arrives_while_the_child_still_runs() {
    let script = "on *\n out first\\n\n wait seen\n out last\\n\n exit 0\n";
    same_while(
        &UNDIVERTED,
        script,
        |call| call,
        |sandbox, running| {
            running.stdout().wait_for(b"first\n");
            sandbox.release("seen");
        },
    );
}

#[test]
fn the_two_commands_of_a_pipeline_end_as_without_the_shim() {
    let sandbox = Sandbox::new("on *\n go-pipe\n out-mb 2\n exit 0\n");
    for folder in ["real", "bin"] {
        let pipeline = "gh pr status | { read -r line; }; echo done";
        let path = format!("{}:{}", sandbox.path(folder).display(), sandbox.path("real").display());
        let run = sandbox.program("/bin/sh", &["-c", pipeline]).env("PATH", path).run();
        assert_eq!((run.exit, run.out(), run.err()), (Exit::Code(0), "done\n".into(), String::new()));
    }
}

#[test]
fn a_full_device_for_messages_kills_nobody() {
    let script = "on *\n go-pipe\n err one\\n\n err two\\n\n out answer\\n\n err three\\n\n exit 0\n";
    same(script, |call| call.stderr(Out::Full));
    same("on *\n go-pipe\n err-mb 1\n err last\\n\n exit 3\n", |call| call.stderr(Out::Full));
}

#[test]
fn an_answer_that_is_lost_on_a_full_device_is_no_success() {
    for words in super::EVERY_SORT {
        let sandbox = Sandbox::new("on *\n go-pipe\n err one\\n\n out answer\\n\n out more\\n\n exit 0\n");
        let run = sandbox.gh(words).stdout(Out::Full).merged().run();
        assert_eq!(run.exit, Exit::Code(1), "{words:?}");
    }
}
