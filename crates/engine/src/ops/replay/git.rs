//! Which files of the queue git tracks: they came with a commit (#3635).

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::decide::signal::Ended;
use crate::ops::Context;
use crate::process::capture::{Environment, capture};
use crate::process::find;
use crate::settings::{Lookup, PATH};

/// Options under which git runs nothing that a checkout can name (`RELIABILITY` D12).
const HARDENED: &[&str] = &[
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "ls-files",
    "-z",
];

/// The longest that git may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The names, below `queue`, that git tracks.
///
/// # Errors
/// git could not say: then nothing may be sent.
pub(super) fn tracked(context: &Context, queue: &Path, timeout: Duration) -> Result<Vec<String>, String> {
    let git = find::on_path("git", context.var(PATH).as_deref())
        .ok_or("git is not on PATH, so nobody can tell what came with a commit")?;
    let env = Environment::Given(without_git(&context.env));
    let done = capture(&git, HARDENED, &env, Some(queue), timeout).map_err(|e| format!("git {e}"))?;
    if done.ended != Ended::Code(0) {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!(
            "git cannot tell what came with a commit ({})",
            said.lines().next().unwrap_or_default()
        ));
    }
    Ok(done
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

/// The file of one entry among them, or the one that stands for all.
pub(super) fn of_entry(tracked: &[String], seq: u32) -> Option<&str> {
    let prefix = format!("{seq:06}.");
    let is_its = |name: &&String| **name == "handles.json" || name.starts_with(&prefix);
    tracked.iter().find(is_its).map(String::as_str)
}

fn without_git(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let kept = env.iter().filter(|(name, _)| !name.as_bytes().starts_with(b"GIT_")).cloned();
    // The queue may lie on a mount of its own, with the checkout above it on another.
    kept.chain([("GIT_DISCOVERY_ACROSS_FILESYSTEM".into(), "1".into())]).collect()
}
