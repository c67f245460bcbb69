//! Many at once, with kills in between.

use std::time::Duration;

use super::{gh, seen};
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;

/// Lines of one answer. Each call's answer is one word, its own, on every line.
const LINES: usize = 4_000;

/// A `gh` whose every answer is of one piece, and that fails when `DOWN` is set.
fn crowded() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.checkout("acme/widget");
    std::fs::remove_file(sandbox.path("real/gh")).unwrap();
    let script = format!(
        "[ -z \"$DOWN\" ] || {{ echo torn; echo 'HTTP 503' >&2; exit 1; }}\nyes \"answer of $$\" | head -n {LINES}"
    );
    sandbox.shell("real/gh", &script);
    sandbox
}

fn is_whole(answer: &str) -> bool {
    let mut lines = answer.lines();
    let first = lines.next().unwrap_or_default();
    first.starts_with("answer of ") && answer.lines().count() == LINES && lines.all(|line| line == first)
}

#[test]
fn a_hundred_readers_and_writers_of_one_question_never_see_a_torn_or_mixed_answer() {
    let sandbox = crowded();
    let path = std::env::var("PATH").unwrap();
    let tools = format!("{}:{}:{path}", sandbox.path("bin").display(), sandbox.path("real").display());
    let write = || gh(&sandbox, &["issue", "list"]).env("PATH", &tools);
    let read = || write().env("DOWN", "1");
    assert!(is_whole(&write().run().out()));
    let mut running = Vec::new();
    for n in 0..100 {
        let call = if n % 2 == 0 { write() } else { read() };
        running.push((n, call.in_own_group().start()));
        if n % 10 == 9 {
            std::thread::sleep(Duration::from_millis(n as u64 % 7));
        }
    }
    let mut random = 12_345u64;
    let mut killed = 0;
    for (n, call) in &running {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if n % 4 == 0 {
            std::thread::sleep(Duration::from_millis((random >> 33) % 20));
            // A whole group, gh too, at any moment of its work.
            call.send_group(libc::SIGKILL);
            killed += 1;
        }
    }
    assert_eq!(killed, 25);
    for (n, call) in running {
        let run = call.finish();
        if run.exit == Exit::Signal(libc::SIGKILL) {
            continue;
        }
        assert_eq!(run.exit, Exit::Code(0), "call {n}: {:?}", run.err());
        assert!(is_whole(&run.out()), "call {n}: {} lines", run.out().lines().count());
        assert_eq!(run.err().starts_with("[forge-cache] "), n % 2 == 1, "call {n}: {:?}", run.err());
    }
    let last = read().run();
    assert!(last.exit == Exit::Code(0) && is_whole(&last.out()), "{:?}", seen(&last).2);
}
