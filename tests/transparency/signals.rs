//! Signals: inherited dispositions and masks, and those that come while the child runs.

use super::{EVERY_SORT, same, same_of, same_while};
use crate::support::sandbox::{Sandbox, wait_until};
use crate::support::spawn::{self, Exit};
use crate::support::streams::Out;

#[test]
fn ignored_signals_are_inherited() {
    for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGTERM, libc::SIGCHLD] {
        same("on *\n out o\\n\n err e\\n\n exit 3\n", |call| call.ignoring(signal));
    }
    same("on *\n exit 0\n", |call| {
        call.ignoring(libc::SIGTSTP).ignoring(libc::SIGUSR1).ignoring(libc::SIGXFSZ)
    });
}

#[test]
fn blocked_signals_are_inherited() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGPIPE, libc::SIGCHLD, libc::SIGUSR2] {
        same("on *\n out o\\n\n err e\\n\n exit 3\n", |call| call.blocking(signal));
    }
}

#[test]
fn no_signal_is_ignored_or_blocked_that_was_not() {
    for words in EVERY_SORT {
        let sandbox = Sandbox::new("on *\n exit 0\n");
        sandbox.gh(words).run();
        let call = sandbox.only_call();
        assert_eq!((call.ignored, call.blocked), (vec![], vec![]), "gh {words:?}");
    }
}

#[test]
fn a_signal_sent_to_the_shim_reaches_the_child_and_ends_both_the_same_way() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let script = "on *\n err begun\\n\n touch up\n wait never\n";
        same_while(
            &EVERY_SORT,
            script,
            |call| call,
            |sandbox, running| {
                sandbox.await_checkpoint("up");
                running.send(signal);
                assert_eq!(running.wait(), Exit::Signal(signal));
                assert_is_gone(sandbox.only_call().pid);
            },
        );
    }
}

#[test]
fn a_child_that_traps_a_signal_decides_how_the_call_ends() {
    for (name, signal) in
        [("INT", libc::SIGINT), ("TERM", libc::SIGTERM), ("HUP", libc::SIGHUP), ("QUIT", libc::SIGQUIT)]
    {
        let script = format!("on *\n trap {name} 5\n touch up\n wait never\n");
        same_while(
            &EVERY_SORT,
            &script,
            |call| call,
            |sandbox, running| {
                sandbox.await_checkpoint("up");
                running.send(signal);
            },
        );
    }
}

#[test]
fn a_child_that_survives_a_signal_goes_on() {
    for (name, signal) in [("INT", libc::SIGINT), ("TERM", libc::SIGTERM), ("HUP", libc::SIGHUP)] {
        let script = format!(
            "on *\n count {name}\n touch up\n await-count 1\n touch got\n wait go\n out-count\n exit 0\n"
        );
        same_while(
            &EVERY_SORT,
            &script,
            |call| call,
            |sandbox, running| {
                sandbox.await_checkpoint("up");
                running.send(signal);
                sandbox.await_checkpoint("got");
                sandbox.release("go");
            },
        );
    }
}

#[test]
fn a_child_that_survives_a_signal_goes_on_to_a_slow_reader() {
    for _ in 0..4 {
        same_while(
            &EVERY_SORT,
            "on *\n count TERM\n touch up\n err-mb 1\n await-count 1\n err-mb 1\n err end\n\n exit 3\n",
            |call| call.stderr(Out::SlowPipe),
            |sandbox, running| {
                sandbox.await_checkpoint("up");
                std::thread::sleep(std::time::Duration::from_millis(15));
                for _ in 0..20 {
                    running.send(libc::SIGTERM);
                    std::thread::sleep(std::time::Duration::from_micros(500));
                }
            },
        );
    }
}

#[test]
fn a_signal_that_the_caller_ignores_does_nothing() {
    let script = "on *\n touch up\n wait go\n exit 7\n";
    same_while(
        &EVERY_SORT,
        script,
        |call| call.ignoring(libc::SIGINT).ignoring(libc::SIGHUP),
        |sandbox, running| {
            sandbox.await_checkpoint("up");
            running.send(libc::SIGINT);
            running.send(libc::SIGHUP);
            sandbox.release("go");
        },
    );
}

#[test]
fn a_killed_shim_is_reported_as_killed() {
    let sandbox = Sandbox::new("on *\n touch up\n wait go\n");
    let running = sandbox.gh(&["pr", "status"]).start();
    sandbox.await_checkpoint("up");
    running.send(libc::SIGKILL);
    sandbox.release("go");
    assert_eq!(running.finish().exit, Exit::Signal(libc::SIGKILL));
}

#[test]
fn a_stopped_group_goes_on_when_it_is_continued() {
    for _ in 0..10 {
        let script = "on *\n err a\\n\n touch up\n wait go\n err b\\n\n exit 6\n";
        same_while(
            &super::UNDIVERTED,
            script,
            |call| call.in_own_group(),
            |sandbox, running| {
                sandbox.await_checkpoint("up");
                running.send_group(libc::SIGTSTP);
                assert!(matches!(running.wait_for_stop(), Exit::Stopped(_)));
                running.send_group(libc::SIGCONT);
                sandbox.release("go");
            },
        );
    }
}

#[test]
fn a_child_that_stops_itself_is_seen_as_stopped_and_goes_on() {
    let script = "on *\n err a\\n\n stop\n err b\\n\n exit 6\n";
    same_while(
        &super::UNDIVERTED,
        script,
        |call| call.in_own_group(),
        |_, running| {
            assert!(matches!(running.wait_for_stop(), Exit::Stopped(_)));
            running.send_group(libc::SIGCONT);
        },
    );
}

#[test]
fn a_broken_pipe_kills_a_child_that_did_nothing_about_it() {
    same_of(&EVERY_SORT, "on *\n die PIPE\n", |call| call);
}

#[test]
fn a_signal_at_any_moment_ends_the_call_and_leaves_no_child_behind() {
    let sandbox = Sandbox::new("on *\n wait never\n");
    for step in 0..60 {
        sandbox.reset();
        let mut running = sandbox.gh(&["pr", "status"]).start();
        // No synchronisation on purpose: the signal falls before, into and after the child's start.
        std::thread::sleep(std::time::Duration::from_micros(step * 100));
        running.send(libc::SIGTERM);
        assert_eq!(running.wait(), Exit::Signal(libc::SIGTERM), "after {step} steps");
        for call in sandbox.calls() {
            assert_is_gone(call.pid);
        }
    }
}

fn assert_is_gone(pid: i32) {
    // Whoever adopts it may need a moment to collect it.
    wait_until("the child's end", || {
        spawn::send(pid, 0);
        std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) || is_zombie(pid)
    });
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}
