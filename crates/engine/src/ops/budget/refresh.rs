//! `budget.env` is filled from `gh api rate_limit`, which costs no quota: once for the whole machine.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::decide::reading::Reading;
use crate::decide::repo::is_github;
use crate::decide::resource::READ_QUOTA;
use crate::decide::signal::Ended;
use crate::process::capture::{Environment, capture};
use crate::process::kernel;
use crate::settings;
use crate::store::lockdir::{self, Kernel, Lease, Owner};
use crate::store::{budget, private, records};

/// What a refresh needs.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The state folder.
    pub state: &'a Path,
    /// The real gh.
    pub gh: &'a Path,
    /// The caller's environment.
    pub env: &'a [(OsString, OsString)],
    /// How long gh may take.
    pub timeout: Duration,
    /// The caller has less time than a read of the quota may take: that it gave up tells the others nothing.
    pub is_hurried: bool,
    /// The time in epoch seconds.
    pub now_s: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The quota was read.
    Read(Reading),
    /// Somebody else has read it meanwhile: this is on file now.
    Known(Reading),
    /// Somebody else is reading it right now.
    Busy,
    /// The forge did not answer.
    Unreadable,
    /// A hurried caller gave up.
    GivenUp,
}

/// What the forge said.
enum Heard {
    Quota(Reading),
    Nothing,
    /// Nothing yet.
    TooLate,
}

/// Reads the quota, unless another process is at it or, by `is_due`, was at it just now.
///
/// # Errors
/// The state folder cannot be written, or gh cannot be started.
pub fn refresh(asking: &Asking, is_due: impl Fn(&Reading) -> bool) -> io::Result<Refreshed> {
    let Asking { state, now_s, .. } = *asking;
    private::ensure_folder(state)?;
    let Some(lease) = lockdir::acquire(&state.join("budget.lock"), Duration::ZERO, &Machine)? else {
        return Ok(Refreshed::Busy);
    };
    let on_file = budget::read(state);
    if !is_due(&on_file) {
        return Ok(Refreshed::Known(on_file));
    }
    match ask(asking)? {
        Heard::Quota(reading) => {
            commit(lease, state, &reading);
            // A line that is not written is a reading that is not measured, and nothing else.
            let _ = records::append_read(state, &reading, now_s);
            Ok(Refreshed::Read(reading))
        }
        Heard::TooLate if asking.is_hurried => Ok(Refreshed::GivenUp),
        Heard::TooLate | Heard::Nothing => {
            commit(lease, state, &Reading { tried_at: Some(now_s), ..on_file });
            Ok(Refreshed::Unreadable)
        }
    }
}

/// A commit that fails leaves the older number on file: taken over, or a full disk.
fn commit(lease: Lease, state: &Path, reading: &Reading) {
    let _ = lease.commit(&budget::path(state), budget::content(state, reading).as_bytes());
}

fn ask(asking: &Asking) -> io::Result<Heard> {
    let host = asking.env.iter().find(|(name, _)| name == settings::GH_HOST).map(|(_, host)| host);
    let elsewhere = host.and_then(|host| host.to_str()).is_some_and(|h| !h.is_empty() && !is_github(h));
    let hostname: &[&str] = if elsewhere { &["--hostname", "github.com"] } else { &[] };
    let args = [&READ_QUOTA[..], hostname].concat();
    // What makes gh write for a person would put colours into the answer.
    let colours = [OsStr::new("GH_FORCE_TTY"), OsStr::new("CLICOLOR_FORCE")];
    let plain = |(name, _): &&(OsString, OsString)| !colours.contains(&name.as_os_str());
    let env = Environment::Given(asking.env.iter().filter(plain).cloned().collect());
    let answer = capture(asking.gh, &args, &env, None, asking.timeout)?;
    if answer.timed_out {
        return Ok(Heard::TooLate);
    }
    let answered = (answer.ended == Ended::Code(0)).then_some(answer.stdout);
    let reading = answered.and_then(|stdout| Reading::from_rate_limit(&stdout, asking.now_s));
    Ok(reading.map_or(Heard::Nothing, Heard::Quota))
}

/// The lease's view of this machine.
#[derive(Debug)]
pub struct Machine;

impl Kernel for Machine {
    fn me(&self) -> Owner {
        let pid = kernel::pid();
        Owner {
            pid,
            start: kernel::start_of(pid).unwrap_or_default(),
            boot: kernel::boot_id(),
            namespace: kernel::pid_namespace(),
            boot_s: kernel::boot_s(),
        }
    }

    fn start_of(&self, pid: u32) -> Option<String> {
        kernel::start_of(pid)
    }

    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        kernel::rename_to_free(from, to)
    }

    fn unique(&self) -> u64 {
        kernel::unique()
    }
}
