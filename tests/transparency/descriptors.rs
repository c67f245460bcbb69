//! Which descriptors the child has.

use super::{same, same_of};
use crate::support::sandbox::Sandbox;
use crate::support::streams::{Out, Stdin};

#[test]
fn closed_standard_descriptors_stay_closed_in_every_combination() {
    for closed in 1..8 {
        let is_closed = |fd: i32| closed & (1 << fd) != 0;
        for code in [0, 1] {
            same(&format!("on *\n stdin\n out out\\n\n err err\\n\n exit {code}\n"), |call| {
                let stdin = if is_closed(0) { Stdin::Closed } else { Stdin::Bytes(b"in".to_vec()) };
                let out = |fd| if is_closed(fd) { Out::Closed } else { Out::Pipe };
                call.stdin(stdin).stdout(out(1)).stderr(out(2))
            });
        }
    }
}

#[test]
fn more_descriptors_than_three_are_inherited_and_none_of_the_shims_leaks() {
    same("on *\n exit 0\n", |call| call);
    same("on *\n err x\\n\n exit 1\n", |call| call.extra_fd(5, "tmp/five").extra_fd(63, "tmp/sixty-three"));
    same("on *\n exit 0\n", |call| call.extra_fd(3, "tmp/three").stdin(Stdin::Closed).stderr(Out::Closed));
    same("on *\n exit 0\n", |call| {
        (3..10).fold(call.stdout(Out::Closed), |call, n| call.extra_fd(n, &format!("tmp/n{n}")))
    });
}

#[test]
fn a_body_on_stdin_leaks_no_descriptor() {
    same_of(&[&["issue", "comment", "5", "--body-file", "-"]], "on *\n stdin\n", |call| {
        call.stdin(Stdin::Bytes(b"x".to_vec())).extra_fd(7, "tmp/seven")
    });
}

#[test]
fn stdout_of_a_call_that_is_not_held_is_handed_on_itself() {
    for words in super::UNDIVERTED {
        let sandbox = Sandbox::new("on *\n exit 0\n");
        let run = sandbox.gh(words).run();
        let call = sandbox.only_call();
        let given = |n: i32| run.given.iter().find(|(number, _)| *number == n).map(|(_, i)| i.clone());
        for number in [0, 1] {
            let fd = call.fds.iter().find(|fd| fd.number == number).map(|fd| fd.identity.clone());
            assert_eq!(fd, given(number), "descriptor {number} of gh {words:?}");
        }
    }
}

#[test]
fn without_free_descriptors_the_call_still_runs() {
    // Four: the standard ones and one for the loader of a program, none for a pipe.
    for soft in [4, 5, 6] {
        same("on *\n out out\\n\n err err\\n\n exit 3\n", |call| {
            call.stdin(Stdin::Null).limit(libc::RLIMIT_NOFILE as i32, soft)
        });
    }
}
