//! The tools the other tests trust: the scripted fake sees and does what it says.

use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::{Out, Stdin};

#[test]
fn the_fake_follows_the_first_section_that_fits_and_counts_calls() {
    let sandbox = Sandbox::new(
        "on issue create #1\n err once\\n\n exit 1\non issue create\n out later\\n\non *\n exit 3\n",
    );
    let first = sandbox.bare_gh(&["-R", "a/b", "issue", "create"]).run();
    let second = sandbox.bare_gh(&["issue", "create"]).run();
    let other = sandbox.bare_gh(&["api", "rate_limit"]).run();
    assert_eq!((first.exit, first.err()), (Exit::Code(1), "once\n".into()));
    assert_eq!((second.exit, second.out()), (Exit::Code(0), "later\n".into()));
    assert_eq!(other.exit, Exit::Code(3));
    assert_eq!(sandbox.calls().len(), 3);
}

#[test]
fn the_fake_reports_what_it_was_given() {
    let sandbox = Sandbox::new("on *\n stdin\n exit 4\n");
    let run = sandbox
        .bare_gh(&["issue"])
        .arg(b"\xff\n".to_vec())
        .env_entry("TWICE=1")
        .env_entry("TWICE=2")
        .env_entry("lonely")
        .stdin(Stdin::Bytes(b"a\0b".to_vec()))
        .stderr(Out::Closed)
        .extra_fd(63, "tmp/extra")
        .ignoring(libc::SIGPIPE)
        .blocking(libc::SIGUSR1)
        .umask(0o077)
        .run();
    let call = sandbox.only_call();
    assert_eq!(run.exit, Exit::Code(4));
    assert_eq!(call.args, [b"issue".to_vec(), b"\xff\n".to_vec()]);
    assert_eq!(
        call.env[call.env.len() - 3..],
        [b"TWICE=1".to_vec(), b"TWICE=2".to_vec(), b"lonely".to_vec()]
    );
    assert_eq!(call.stdin.as_deref(), Some(&b"a\0b"[..]));
    assert_eq!(call.fds.iter().map(|f| f.number).collect::<Vec<_>>(), [0, 1, 63]);
    let given: Vec<_> = call.fds.iter().map(|f| (f.number, f.identity.clone())).collect();
    assert_eq!(given, run.given);
    assert_eq!((call.ignored, call.blocked), (vec![libc::SIGPIPE], vec![libc::SIGUSR1]));
    assert_eq!((call.umask.as_str(), call.pid), ("077", run.pid));
}

#[test]
fn the_fake_dies_and_stops_by_signals() {
    for (name, signal) in [("TERM", libc::SIGTERM), ("SEGV", libc::SIGSEGV), ("PIPE", libc::SIGPIPE)] {
        let sandbox = Sandbox::new(&format!("on *\n die {name}\n"));
        assert_eq!(sandbox.bare_gh(&["x"]).run().exit, Exit::Signal(signal));
    }
    let sandbox = Sandbox::new("on *\n stop\n exit 6\n");
    let mut running = sandbox.bare_gh(&["x"]).in_own_group().start();
    assert_eq!(running.wait_for_stop(), Exit::Stopped(libc::SIGSTOP));
    running.send_group(libc::SIGCONT);
    assert_eq!(running.finish().exit, Exit::Code(6));
}

#[test]
fn a_grandchild_writes_after_the_fakes_end() {
    let sandbox = Sandbox::new("on *\n grandchild 2 gate late\\n\n exit 2\n");
    let mut running = sandbox.bare_gh(&["x"]).start();
    assert_eq!(running.wait(), Exit::Code(2));
    sandbox.release("gate");
    assert_eq!(running.finish().err(), "late\n");
    sandbox.await_checkpoint("gate.done");
}

#[test]
fn a_terminal_is_one_and_keys_reach_it() {
    let sandbox = Sandbox::new("on *\n trap INT 5\n out ready\\n\n wait never\n");
    let running = sandbox.bare_gh(&["x"]).stdin(Stdin::Tty).stdout(Out::Tty).stderr(Out::Tty).start();
    running.stdout().wait_for(b"ready");
    running.type_keys(b"\x03");
    assert_eq!(running.finish().exit, Exit::Code(5));
    let call = sandbox.only_call();
    assert!(call.fds.iter().all(|fd| fd.is_tty));
    assert_eq!((call.sid, call.foreground), (call.pid, call.pid));
}

#[test]
fn a_closed_reader_ends_the_fake_by_sigpipe() {
    let sandbox = Sandbox::new("on *\n out-mb 2\n");
    let run = sandbox.bare_gh(&["x"]).stdout(Out::PipeThatCloses(10)).run();
    assert_eq!((run.exit, run.stdout.len()), (Exit::Signal(libc::SIGPIPE), 10));
}
