//! One finished call → one observation (#1748, #3190).

use std::io;
use std::path::Path;

use crate::control::Guard;
use crate::decide::plan::Plan;
use crate::decide::quota::Limited;
use crate::decide::signal::{Ended, Limit, Outcome, Signal};
use crate::decide::verdict::Observation;
use crate::settings::{self, Lookup, Settings};
use crate::store::{observations, project, records};

/// How a call went, as far as an observation tells.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the call was.
    pub plan: &'a Plan,
    /// How it ended.
    pub ended: Ended,
    /// Its latency.
    pub ms: u64,
    /// What it says about the forge.
    pub outcome: Outcome,
    /// When it ended, in epoch seconds.
    pub now_s: u64,
}

/// Writes the call down; a rate-limited answer in `ratelimit.log` too.
///
/// # Errors
/// There is no state folder, or it cannot be written. The call itself is not touched by that.
pub fn record(call: Call, env: &impl Lookup, cwd: Option<&Path>) -> io::Result<()> {
    let state = Settings::read(env).state.ok_or(io::ErrorKind::NotFound)?;
    let observation = observation(call, env, cwd);
    observations::append(&state, &observation)?;
    if call.outcome.signal != Signal::RateLimit {
        return Ok(());
    }
    let Observation { at, quota, subcommand, caller, session, .. } = observation;
    let limit = call.outcome.limit.unwrap_or(Limit::Primary);
    records::append_limited(&state, &Limited { at, quota, subcommand, caller, session, limit })
}

fn observation(call: Call, env: &impl Lookup, cwd: Option<&Path>) -> Observation {
    let Call { plan, ended, ms, outcome, now_s } = call;
    Observation {
        at: now_s,
        exit: ended.exit_code(),
        ms,
        signal: outcome.signal,
        subcommand: plan.command.to_string(),
        quota: plan.resource.map_or("-", |r| r.as_str()).into(),
        cost: u64::from(plan.resource.is_some()),
        // Never anything a caller typed, nor anything secret.
        caller: if Guard::Vocabulary.is_off() {
            text(env, settings::GH_TOKEN).unwrap_or_default()
        } else {
            caller(env, cwd)
        },
        session: session(env),
    }
}

/// The name of the project's folder (outside a checkout, of the working directory), plus `/kind` when
/// the caller names itself.
pub fn caller(env: &impl Lookup, cwd: Option<&Path>) -> String {
    let folder = cwd.map(|cwd| project::root(cwd).unwrap_or_else(|| cwd.into()));
    let name = folder.as_deref().and_then(Path::file_name).map_or("-".into(), |n| n.to_string_lossy());
    match text(env, settings::CALLER) {
        Some(kind) => format!("{name}/{kind}"),
        None => name.into_owned(),
    }
}

/// The first eight characters of the session's id, or `-`.
pub fn session(env: &impl Lookup) -> String {
    text(env, settings::SESSION).map_or("-".into(), |id| id.chars().take(8).collect())
}

fn text(env: &impl Lookup, name: &str) -> Option<String> {
    env.nonempty(name).map(|value| value.to_string_lossy().into_owned())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a test sets up its own scene
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn the_caller_is_the_projects_folder_and_its_own_name() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("bigbrain/src");
        std::fs::create_dir_all(&deep).unwrap();
        let nobody = |_: &str| None;
        let groom = |name: &str| (name == settings::CALLER).then(|| OsString::from("groom"));
        assert_eq!(caller(&nobody, Some(&deep)), "src");
        std::fs::create_dir(home.path().join("bigbrain/.git")).unwrap();
        assert_eq!(caller(&nobody, Some(&deep)), "bigbrain");
        assert_eq!(caller(&groom, Some(&deep)), "bigbrain/groom");
        assert_eq!(caller(&groom, None), "-/groom");
    }

    #[test]
    fn a_session_is_named_by_eight_characters() {
        let with = |id: &'static str| move |_: &str| Some(OsString::from(id));
        assert_eq!(session(&with("56b20441-aaaa")), "56b20441");
        assert_eq!(session(&with("")), "-");
    }
}
