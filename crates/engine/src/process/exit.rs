//! The ends of a shim: becoming gh, or ending as gh ended.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::sys::{self, Block};
use crate::control::Guard;
use crate::decide::signal::Ended;
use crate::settings;

/// Becomes the real gh: same process, nothing of ours left. Returns only with the reason why not.
pub fn become_gh(program: &Path, argv: &[OsString], depth: u32) -> io::Error {
    let failed = become_program(program, argv, &Block::environment_with(settings::DEPTH, &depth.to_string()));
    match failed.raw_os_error() {
        // Arguments that just fit leave no room for a variable of ours.
        Some(libc::E2BIG) => become_program(program, argv, &Block::environment_without(settings::DEPTH)),
        _ => failed,
    }
}

/// Becomes a program, be it a script without a `#!` line.
pub(super) fn become_program(program: &Path, argv: &[OsString], env: &Block) -> io::Error {
    let failed = sys::exec(&sys::c_string(program.into()), &Block::argv(argv), env);
    if failed.raw_os_error() != Some(libc::ENOEXEC) {
        return failed;
    }
    let (shell, argv) = through_shell(program, argv);
    sys::exec(&shell, &argv, env)
}

/// A script without a `#!` line is run by the shell, as every shell would have done.
pub(super) fn through_shell(program: &Path, argv: &[OsString]) -> (std::ffi::CString, Block) {
    let words = ["sh".into(), program.into()].into_iter().chain(argv.iter().skip(1).cloned());
    (c"/bin/sh".into(), Block::argv(&words.collect::<Vec<OsString>>()))
}

/// Ends this process the way its child ended: with its code, or by its signal.
pub fn end_as(ended: Ended) -> ! {
    match ended {
        Ended::Code(code) => sys::exit_now(code),
        Ended::Signal(signal) => sys::die_by(signal),
    }
}

/// Writes a line of ours to standard error, whatever is in the names it holds; a closed or full one is not worth a word.
pub fn say(line: &str) {
    let line: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if Guard::Unheard.is_off() {
        return must_be_heard(&mut io::stderr(), &line);
    }
    pass_on(format!("{line}\n").as_bytes());
}

/// Writes a line of ours to standard output, where gh's own answer would have stood. Whoever has gone
/// away does not hear it; what it says holds all the same.
pub fn answer(line: &str) {
    if Guard::Unheard.is_off() {
        return must_be_heard(&mut io::stdout(), line);
    }
    let _ = super::channel::write_all(1, format!("{line}\n").as_bytes());
}

/// What `println!` does, for the reliability suite's control arm.
fn must_be_heard(stream: &mut impl io::Write, line: &str) {
    if let Err(e) = writeln!(stream, "{line}").and_then(|()| stream.flush()) {
        panic!("{e}");
    }
}

/// Writes to standard error what another process of ours said, as it said it.
pub(super) fn pass_on(mut left: &[u8]) {
    while let Ok(n @ 1..) = sys::write(2, left) {
        left = &left[n..];
    }
}
