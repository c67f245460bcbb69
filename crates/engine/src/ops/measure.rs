//! Runs a command with a recorder in front of gh, and reads the token's quotas before and after it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use super::{Context, state_folder};
use crate::decide::measure::{Call, Measured};
use crate::decide::reading::{Each, Quota, Reading};
use crate::decide::resource::READ_QUOTA;
use crate::decide::signal::Ended;
use crate::error::{Error, Result};
use crate::process::capture::{Environment, capture};
use crate::process::recorder::RECORD;
use crate::process::{find, foreground};
use crate::settings::{self, Lookup};
use crate::store::recorder::Folder;

/// What came of a command that was run.
#[derive(Debug)]
pub enum Came {
    /// It was run and measured.
    Measured(Box<Measured>),
    /// It was run and ended like this, but its calls cannot be told.
    Unmeasured(Ended, Error),
}

/// Runs `command` for real, in the foreground, and measures it. With `stdout_is_ours`, what it prints goes
/// to standard error, so that standard output stays free for the document.
///
/// # Errors
/// `EFORGE_USAGE`: there is no command, or it cannot be started. `EFORGE_STATE`: the recorder cannot be set
/// up. `EFORGE_NO_GH`: the compiled shim, which is the recorder, is not beside this program.
pub fn measure(context: &Context, command: &[OsString], stdout_is_ours: bool) -> Result<Came> {
    let program = command.first().ok_or_else(|| Error::usage("measure: there is no command to run"))?;
    let state = state_folder(context)?;
    let shim = find::own_shim(settings::bob_home(context).as_deref())
        .ok_or_else(|| Error::no_gh("the recorder is missing: no compiled shim lies beside this program"))?;
    let failed = |e| Error::state("set up the recorder in", state, e);
    let recorder = Folder::make(state, &shim, RECORD, std::process::id()).map_err(failed)?;
    let before = quotas(context);
    let env = environment(context, recorder.path());
    let ran = foreground::run(command, &env, context.cwd.as_deref(), stdout_is_ours);
    let (ended, wall_ms) =
        ran.map_err(|e| Error::usage(format!("measure: cannot run {}: {e}", program.to_string_lossy())))?;
    // It has done what it does: from here on nothing may look as if it had not been run.
    let record = match recorder.record() {
        Ok(record) => record,
        Err(e) => {
            let doing = "read the calls of a command that has been run, in";
            return Ok(Came::Unmeasured(ended, Error::state(doing, state, e)));
        }
    };
    Ok(Came::Measured(Box::new(Measured {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ended,
        wall_ms,
        calls: Call::read_all(&record),
        before,
        after: quotas(context),
    })))
}

/// The command's environment: the caller's, with the recorder first on PATH.
fn environment(context: &Context, recorder: &Path) -> Vec<(OsString, OsString)> {
    let mut path = recorder.as_os_str().to_os_string();
    if let Some(rest) = context.var(settings::PATH) {
        path.push(":");
        path.push(rest);
    }
    let ours = [settings::PATH, settings::MEASURE].map(OsStr::new);
    let others = context.env.iter().filter(|(name, _)| !ours.contains(&name.as_os_str()));
    let set = [(settings::PATH, path), (settings::MEASURE, recorder.into())];
    others.cloned().chain(set.map(|(name, value)| (name.into(), value))).collect()
}

/// The token's quotas now, asked for past the recorder and the shim; unknown where they cannot be read.
fn quotas(context: &Context) -> Each<Option<Quota>> {
    let read = || {
        let gh = find::real_gh(find::path_of(context).as_deref()).ok()?;
        let env = Environment::Given(context.env.clone());
        let timeout = Duration::from_secs(context.settings.probe_timeout_s);
        let answer = capture(&gh, &READ_QUOTA, &env, None, timeout).ok()?;
        Reading::from_rate_limit(&answer.stdout, context.clock.now_s())
    };
    read().map_or_else(Each::default, |reading| reading.quotas)
}
