//! The `forge` command, as a function: words, environment and folder in, text and an exit code out.
//! The program `forge` and the addon's command lines both are this function.
//!
//! One noun a module of the engine, one arm a noun. Errors end here: this is the one place that turns
//! one into text.

mod args;
mod budget;
mod cache;
mod health;
mod measure;
mod printable;
mod queue;
mod render;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use engine::error::{Error, Kind};
use engine::ops::Context;

/// What a command line printed and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
    /// The signal that ended a measured command: this process ends by it too, once it has printed.
    pub signal: Option<i32>,
}

/// The exit code of a command line that does not fit.
const USAGE: u8 = 2;

/// The exit code of an operation that failed. It is none of the verdicts' codes.
const FAILED: u8 = 1;

/// Runs one command line; `argv[0]` may be `forge` or an alias as `forge-health`.
pub fn run(argv: Vec<OsString>, env: Vec<(OsString, OsString)>, cwd: Option<PathBuf>) -> Output {
    let mut output = Output::default();
    let parsed = match args::Forge::try_parse_from(args::unalias(argv)) {
        Ok(parsed) => parsed,
        Err(e) => return explain(&e),
    };
    let context = Context::new(env, cwd, None);
    let ended = match parsed.noun {
        args::Noun::Health(noun) => health::run(&context, noun, &mut output),
        args::Noun::Budget(noun) => budget::run(&context, noun, &mut output),
        args::Noun::Cache(noun) => cache::run(&context, noun, &mut output),
        args::Noun::Queue(noun) => queue::run(&context, noun, &mut output),
    };
    output.code = ended.unwrap_or_else(|e| {
        output.stderr.push_str(&render::error(&e));
        if e.kind() == Kind::Usage { USAGE } else { FAILED }
    });
    output
}

/// Help and version are answers and go to standard output, everything else is a usage error.
fn explain(e: &clap::Error) -> Output {
    if e.use_stderr() {
        Output { stderr: render::usage(e), code: USAGE, ..Output::default() }
    } else {
        Output { stdout: e.render().to_string(), ..Output::default() }
    }
}

/// One noun's command: the exit code, with what it prints in `Output`.
type Ended = Result<u8, Error>;
