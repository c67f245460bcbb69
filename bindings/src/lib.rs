//! The addon crate: converts, calls an op of the engine, converts back. No logic of its own.
//!
//! Synchronous functions only; documents cross the border as JSON text. Arguments are checked by the
//! facades in `scripts/forge`, which alone call this.

pub mod batch;
pub mod budget;
pub mod cache;
pub mod convert;
pub mod health;
pub mod patient;
pub mod queue;

use std::collections::HashMap;
use std::panic;

use convert::entries;
use napi_derive::napi;

/// A panic becomes an `Error` (see `catch_unwind` on every function); nothing is printed about it.
#[napi(module_exports)]
pub fn init(_exports: napi::bindgen_prelude::Object) -> napi::Result<()> {
    panic::set_hook(Box::new(|_| {}));
    Ok(())
}

/// The variables the engine reads; a facade hands over these and no others.
#[napi(catch_unwind)]
pub fn setting_names() -> Vec<&'static str> {
    engine::settings::NAMES.to_vec()
}

/// What a command line printed and how it ended.
#[napi(object, object_from_js = false)]
pub struct Output {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code.
    pub code: u32,
    /// The signal that ended a measured command.
    pub signal: Option<i32>,
}

/// Runs one command line of `forge` (`argv[0]` included).
#[napi(catch_unwind)]
pub fn cli(argv: Vec<String>, env: HashMap<String, String>, cwd: Option<String>) -> Output {
    let argv = argv.into_iter().map(Into::into).collect();
    let forge::cli::Output { stdout, stderr, code, signal } =
        forge::cli::run(argv, entries(env), cwd.map(Into::into));
    Output { stdout, stderr, code: code.into(), signal }
}

/// Panics.
#[cfg(feature = "defect")]
#[napi(catch_unwind)]
pub fn defect() -> convert::Result<()> {
    panic!("a defect, as the test ordered")
}
