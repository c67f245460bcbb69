//! What the pipeline does when something of ours fails: the fail-open policy, in one place.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::path::{Path, PathBuf};

use engine::decide::signal::Ended;
use engine::process::invocation::{Invocation, variable};
use engine::process::{exit, find};
use engine::settings;

/// A shell's code for "command not found".
const NOT_FOUND: i32 = 127;
/// A shell's code for "found, but cannot be run".
const CANNOT_RUN: i32 = 126;

/// Runs a part of ours that must not be able to break a call: a defect in it is swallowed, and the
/// caller goes on without its result.
pub fn shielded<T>(part: impl FnOnce() -> T) -> Option<T> {
    set_hook(Box::new(|_| {}));
    catch_unwind(AssertUnwindSafe(part)).ok()
}

/// How deep the child of this call will be. More than the bound is a loop of wrappers that each
/// find the next on PATH: it is cut here.
pub fn depth() -> u32 {
    let above = variable(settings::DEPTH).and_then(|d| d.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    if above > settings::MAX_DEPTH {
        refuse(&format!(
            "gh on PATH calls itself ({} is {above}): remove the wrapper that leads back to the shim",
            settings::DEPTH
        ));
    }
    above + 1
}

/// The real gh, or the end of this process with one clear line.
pub fn real_gh() -> PathBuf {
    find::real_gh(find::path_of(&variable).as_deref()).unwrap_or_else(|complaint| refuse(&complaint))
}

/// Becomes gh, as if the shim had never been there.
pub fn become_gh(invocation: &Invocation, gh: &Path, depth: u32) -> ! {
    let failed = exit::become_gh(gh, &invocation.argv, depth);
    exit::say(&format!("gh: cannot run {}: {failed}", gh.display()));
    exit::end_as(Ended::Code(CANNOT_RUN))
}

/// Ends this process: gh cannot be started, and becoming it would lose what was read for it.
pub fn cannot_run(gh: &Path) -> ! {
    exit::say(&format!("gh: cannot run {}", gh.display()));
    exit::end_as(Ended::Code(CANNOT_RUN))
}

/// Ends this process as a shell does that finds no gh, with one line.
pub fn refuse(complaint: &str) -> ! {
    exit::say(&format!("gh: {complaint}"));
    exit::end_as(Ended::Code(NOT_FOUND))
}
