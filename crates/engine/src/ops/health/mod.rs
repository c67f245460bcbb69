//! May an empty result be believed? Verdicts out of the observation log, by a probe where there is no
//! evidence (#1748).

mod document;
mod probe;
mod status;

pub use document::Row;
pub use status::{Options, Source, Status, known, known_state, status};

use super::{Context, record as call, state_folder};
use crate::decide::signal::Signal;
use crate::decide::verdict::{Observation, within};
use crate::error::{Error, Result};
use crate::store::{observations as log, verdict};

/// What `record` is told about a call that went past the shim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// gh's exit code.
    pub rc: i32,
    /// Latency in milliseconds.
    pub ms: u64,
    /// The outcome; without it, exit 0 is `ok` and anything else `other`.
    pub signal: Option<Signal>,
    /// Command and subcommand (`issue list`).
    pub sub: Option<String>,
}

/// The raw evidence inside a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The observations, oldest first, `other` among them.
    pub rows: Vec<Observation>,
    /// Lines of the whole log that do not parse.
    pub bad_lines: usize,
    /// The window in seconds.
    pub window_s: u64,
}

/// Records one call that went past the shim, and returns its observation.
///
/// # Errors
/// `EFORGE_STATE` when the log cannot be written.
pub fn record(context: &Context, report: &Report) -> Result<Observation> {
    let by_exit = if report.rc == 0 { Signal::Ok } else { Signal::Other };
    let subcommand = report.sub.as_deref().map(str::trim).filter(|sub| !sub.is_empty());
    let observation = observed(
        context,
        (report.rc, report.ms),
        report.signal.unwrap_or(by_exit),
        subcommand.unwrap_or("-"),
    );
    append(context, &observation)?;
    Ok(observation)
}

/// The evidence inside the window (by default the setting's).
///
/// # Errors
/// `EFORGE_STATE` when the log exists and cannot be read.
pub fn observations(context: &Context, window_s: Option<u64>) -> Result<Evidence> {
    let state = state_folder(context)?;
    let window_s = window_s.unwrap_or(context.settings.window_s);
    let reading =
        log::read(state).map_err(|e| Error::state("read the observation log", log::ring(state).path(), e))?;
    let rows = within(&reading.rows, context.clock.now_s(), window_s).into_iter().cloned().collect();
    Ok(Evidence { rows, bad_lines: reading.bad_lines, window_s })
}

/// Forgets all evidence, and the verdict that was derived from it.
///
/// # Errors
/// `EFORGE_STATE` when a file cannot be removed.
pub fn reset(context: &Context) -> Result<()> {
    let state = state_folder(context)?;
    let failed = |e| Error::state("reset the forge state in", state, e);
    log::reset(state).map_err(failed)?;
    verdict::reset(state).map_err(failed)
}

/// Asks the forge now, evidence or not, and records the outcome like that of any other call.
///
/// # Errors
/// `EFORGE_NO_GH` when there is no real gh, `EFORGE_STATE` when the outcome cannot be recorded.
pub fn probe(context: &Context) -> Result<Observation> {
    let _turn = status::turn(context);
    let observation = probe::ask(context)?;
    append(context, &observation)?;
    Ok(observation)
}

fn append(context: &Context, observation: &Observation) -> Result<()> {
    let state = state_folder(context)?;
    log::append(state, observation)
        .map_err(|e| Error::state("write the observation log", log::ring(state).path(), e))
}

/// An observation of a call that ended now and spent no quota that anybody told us of.
fn observed(context: &Context, (exit, ms): (i32, u64), signal: Signal, subcommand: &str) -> Observation {
    let (caller, session) = (call::caller(context, context.cwd.as_deref()), call::session(context));
    let (at, subcommand, quota) = (context.clock.now_s(), subcommand.to_string(), "-".to_string());
    Observation { at, exit, ms, signal, subcommand, quota, cost: 0, caller, session }
}

#[cfg(test)]
mod tests;
