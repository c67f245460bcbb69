//! Errors, environments and numbers on their way over the border.

use std::collections::HashMap;
use std::ffi::OsString;

use engine::error::Kind;
use engine::ops::Context;
use napi::Status;
use napi_derive::napi;

/// The `code` of an error as JS callers see it.
pub struct Code(&'static str);

/// The result of every function that can fail.
pub type Result<T> = std::result::Result<T, napi::Error<Code>>;

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        self.0
    }
}

/// What napi itself reports about an argument that a facade should have refused.
impl From<Status> for Code {
    fn from(_: Status) -> Code {
        Code(Kind::Usage.code())
    }
}

/// An engine's error as a JS `Error` with its code.
pub fn thrown(e: engine::error::Error) -> napi::Error<Code> {
    napi::Error::new(Code(e.code()), e.explained())
}

/// Where and when a function is called.
#[napi(object)]
pub struct Call {
    /// The environment, or the part of it that the engine reads.
    pub env: HashMap<String, String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The time in epoch seconds, by default the clock's.
    pub now: Option<f64>,
}

impl From<Call> for Context {
    fn from(call: Call) -> Context {
        Context::new(entries(call.env), call.cwd.map(Into::into), whole(call.now))
    }
}

/// An environment as the engine takes it.
pub fn entries(env: HashMap<String, String>) -> Vec<(OsString, OsString)> {
    env.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A JS number that a facade has checked to be a whole, non-negative one.
pub fn whole(number: Option<f64>) -> Option<u64> {
    number.map(|n| n as u64)
}
