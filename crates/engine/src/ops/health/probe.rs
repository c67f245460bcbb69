//! The one question that is asked when nobody has called lately: `gh api rate_limit`.

use std::time::Duration;

use super::observed;
use crate::decide::resource::READ_QUOTA;
use crate::decide::signal::{self, Signal};
use crate::decide::verdict::Observation;
use crate::error::{Error, Result};
use crate::ops::Context;
use crate::process::capture::{Environment, Trouble, capture};
use crate::process::find;

/// Asks, and returns what was seen, as an observation that is not recorded yet. A question that is not
/// answered within `BOB_FORGE_PROBE_TIMEOUT` is a network failure.
///
/// # Errors
/// `EFORGE_NO_GH`: there is no real gh to ask with, or it cannot be started.
pub fn ask(context: &Context) -> Result<Observation> {
    let path = find::path_of(context);
    // Never the shim: it would record the call a second time, and might itself wait for a reset.
    let gh = find::real_gh(path.as_deref()).map_err(Error::no_gh)?;
    let env = Environment::Given(context.env.clone());
    let timeout = Duration::from_secs(context.settings.probe_timeout_s);
    let answer = match capture(&gh, &READ_QUOTA, &env, None, timeout) {
        Ok(answer) => answer,
        // The question may have been asked; nobody heard the answer.
        Err(Trouble::EndUnknown(_)) => return Ok(observed(context, (1, 0), Signal::Net, "api")),
        Err(trouble) => return Err(Error::no_gh(format!("{} {trouble}", gh.display()))),
    };
    let signal = match answer.timed_out {
        true => Signal::Net,
        false => signal::classify(answer.ended, &answer.stderr, &READ_QUOTA.map(Into::into)).signal,
    };
    Ok(observed(context, (answer.ended.exit_code(), answer.ms), signal, "api"))
}
