//! The use cases: load, decide, commit. Called by the shim, the command and the addon alike.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::process::clock::{self, Stopwatch};
use crate::settings::{Lookup, Settings};

pub mod batch;
pub mod budget;
pub mod cache;
pub mod health;
pub mod measure;
pub mod patient;
pub mod place;
pub mod queue;
pub mod record;
pub mod replay;

/// What a use case knows of the process it runs in, handed over by its front end.
#[derive(Clone, Debug)]
pub struct Context {
    /// The settings read out of `env`.
    pub settings: Settings,
    /// The environment: the one of the process, or one a JS caller handed over. A child gets it whole.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, where there is one.
    pub cwd: Option<PathBuf>,
    /// The time.
    pub clock: Clock,
}

impl Context {
    /// Reads the settings out of `env`. `now_s` is the time in epoch seconds, by default the clock's.
    pub fn new(env: Vec<(OsString, OsString)>, cwd: Option<PathBuf>, now_s: Option<u64>) -> Context {
        let settings = Settings::read(&|name: &str| find(&env, name));
        Context { settings, env, cwd, clock: now_s.map_or_else(Clock::now, Clock::starting_at) }
    }
}

impl Lookup for Context {
    fn var(&self, name: &str) -> Option<OsString> {
        find(&self.env, name)
    }
}

fn find(env: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    env.iter().find(|(n, _)| n == OsStr::new(name)).map(|(_, value)| value.clone())
}

/// A clock that is read once and then moves with the monotonic one: while an operation waits, its time
/// goes on, and it goes on evenly when somebody sets the machine's clock meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ms: u64,
    since: Stopwatch,
}

impl Clock {
    /// A clock that shows `now_s` now.
    pub fn starting_at(now_s: u64) -> Clock {
        Clock { start_ms: now_s.saturating_mul(1_000), since: Stopwatch::start() }
    }

    /// A clock that shows the time.
    pub fn now() -> Clock {
        Clock { start_ms: clock::now_ms(), since: Stopwatch::start() }
    }

    /// The time in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.since.ms())
    }

    /// Milliseconds since it was read.
    pub fn elapsed_ms(&self) -> u64 {
        self.since.ms()
    }

    /// The time in epoch seconds.
    pub fn now_s(&self) -> u64 {
        self.now_ms() / 1_000
    }
}

/// The state folder of a use case that cannot do without one.
fn state_folder(context: &Context) -> Result<&Path> {
    context.settings.state.as_deref().ok_or_else(|| {
        Error::usage("there is no state folder: none of BOB_FORGE_STATE, BOB_HOME and HOME is set")
    })
}
