//! How long a caller's call may take now, and whether it is run once more.

use std::ffi::OsString;

use serde_json::{Map, Value};

use super::{Context, budget};
use crate::decide::patient::{self, Outcome, Room};
use crate::decide::plan::GhEnv;
use crate::settings::budget::DEADLINE;
use crate::settings::{self, CALLER, Lookup};

/// One attempt as it is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its room.
    pub room: Room,
    /// What the gate would make it wait now, in seconds.
    pub wait_s: u64,
    /// The caller's name for its calls.
    pub caller: Option<String>,
}

impl Attempt {
    /// As a JS runner takes it: `{timeout, wait, env}`, where `env` are variables to add.
    pub fn to_json(&self) -> String {
        let mut env = Map::new();
        if let Some(caller) = &self.caller {
            env.insert(CALLER.into(), caller.as_str().into());
        }
        if let Some(deadline) = self.room.deadline {
            env.insert(DEADLINE.into(), deadline.to_string().into());
        }
        let timeout = self.room.timeout_ms.map_or(Value::Null, Value::from);
        serde_json::json!({"timeout": timeout, "wait": self.wait_s, "env": env}).to_string()
    }
}

/// Makes room for the first attempt, or for the second. Where the gate's files cannot be read, there is no
/// wait to make room for.
pub fn attempt(
    context: &Context,
    args: &[OsString],
    timeout_ms: Option<u64>,
    caller: Option<String>,
    is_again: bool,
) -> Attempt {
    let plan = budget::plan(context, args).ok();
    let wait_s = plan.and_then(|plan| plan.get("seconds")?.as_u64()).unwrap_or(0);
    let room = patient::room(timeout_ms, wait_s, is_again, &context.settings.budget, context.clock.now_s());
    Attempt { room, wait_s, caller }
}

/// Whether the call is run once more.
pub fn again(context: &Context, args: &[OsString], outcome: &Outcome) -> bool {
    let env = GhEnv { host: context.var(settings::GH_HOST), repo: context.var(settings::GH_REPO) };
    patient::again(args, &env, outcome)
}
