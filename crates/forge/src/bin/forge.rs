//! The `forge` command.

use std::io::{self, Write};
use std::process::ExitCode;

use engine::decide::signal::Ended;
use engine::process::{ambient, exit};
use forge::cli;

fn main() -> ExitCode {
    ambient::wait_for_children();
    let output = cli::run(ambient::argv(), ambient::environment(), ambient::folder());
    // A reader that went away (`… | head`) has what it wanted; the answer is the exit code.
    let _ = io::stderr().write_all(output.stderr.as_bytes());
    let mut stdout = io::stdout();
    let _ = stdout.write_all(output.stdout.as_bytes()).and_then(|()| stdout.flush());
    if let Some(signal) = output.signal {
        exit::end_as(Ended::Signal(signal));
    }
    ExitCode::from(output.code)
}
