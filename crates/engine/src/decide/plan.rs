//! argv → what this call is, before anything is started.

use std::ffi::{OsStr, OsString};

use super::resource::Resource;

/// What the shim does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Works with the network unplugged (`--version`, `help`, `alias`, …): become gh at once,
    /// record nothing (#1748: a success without the forge is no evidence about the forge).
    Offline,
    /// A call of a known command that ends by itself.
    Call,
    /// Long-running or unknown (`run watch`, `repo clone`, extensions, …): its streams are copied as
    /// they come and it is never run twice.
    Streamed,
}

/// The environment variables gh itself reads to pick a host or a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GhEnv {
    /// `GH_HOST`.
    pub host: Option<OsString>,
    /// `GH_REPO`.
    pub repo: Option<OsString>,
}

/// The verdict over one argv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the shim does with it.
    pub kind: Kind,
    /// The command and its subcommand as gh names them (`issue list`, aliases resolved; `api graphql`
    /// or `api`), never an operand; `-` when the words name no command of gh.
    pub command: String,
    /// The quota the call spends on github.com; `None` for a call that spends none.
    pub resource: Option<Resource>,
}

/// Judges argv (without `gh` itself).
pub fn plan(args: &[OsString], _env: &GhEnv) -> Plan {
    let word = args.first().map_or("-", |a| OsStr::to_str(a).unwrap_or("-"));
    Plan { kind: Kind::Call, command: word.to_string(), resource: None }
}
