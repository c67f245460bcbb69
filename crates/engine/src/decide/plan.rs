//! argv → what this call is, before anything is started.

use std::ffi::{OsStr, OsString};

use super::argv::{self, Named, Parsed};
use super::commands::{self, Runs};
use super::repo::{self, Repo};
use super::resource::{self, Resource, Spends};
use super::write::{self, Write};
use crate::settings::{self, Lookup};

/// What the shim does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Works with the network unplugged (`--version`, `help`, `alias`, …): become gh at once,
    /// record nothing (#1748: a success without the forge is no evidence about the forge).
    Offline,
    /// A call of a known command that ends by itself.
    Call,
    /// Long-running, interactive or unknown (`run watch`, `repo clone`, extensions, …): its streams
    /// are copied as they come and it is never run twice.
    Streamed,
}

impl Kind {
    /// The name that tables and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Offline => "offline",
            Kind::Call => "call",
            Kind::Streamed => "streamed",
        }
    }
}

/// The environment variables gh itself reads to pick a host or a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GhEnv {
    /// `GH_HOST`.
    pub host: Option<OsString>,
    /// `GH_REPO`.
    pub repo: Option<OsString>,
}

impl GhEnv {
    /// Both out of an environment.
    pub fn of(env: &impl Lookup) -> GhEnv {
        GhEnv { host: env.var(settings::GH_HOST), repo: env.var(settings::GH_REPO) }
    }

    /// `GH_HOST`, where it says something.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref().and_then(text)
    }

    /// `GH_REPO`, where it says something.
    pub fn repo(&self) -> Option<&str> {
        self.repo.as_deref().and_then(text)
    }
}

/// The verdict over one argv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the shim does with it.
    pub kind: Kind,
    /// Why it is no ordinary call; empty for [`Kind::Call`].
    pub why: &'static str,
    /// The command and its subcommand as gh names them (`issue list`, aliases resolved; `api graphql`
    /// or `api`), never an operand; a group's name alone where gh does not know the word behind it;
    /// `-` when the words name no command of gh.
    pub command: &'static str,
    /// The quota the call spends on github.com; `None` for a call that spends none there.
    pub resource: Option<Resource>,
    /// What else the call spends there in some version of gh, besides `resource`.
    pub extra: &'static [(Resource, u8)],
    /// The host that argv or the environment names; `None` where the checkout's remotes or gh's own
    /// settings decide.
    pub host: Option<String>,
    /// The last `-R/--repo`, where the command reads it as the repository to act on.
    pub repo_flag: Option<OsString>,
    /// The repository that an issue's or pull request's URL among the operands names.
    pub url_repo: Option<Repo>,
    /// Whether gh reads its stdin for this call. An unknown command may, too.
    pub reads_stdin: bool,
    /// Whether it pages through answers as it prints them (`gh api --paginate`).
    pub paginates: bool,
    /// Whether it opens a browser in place of answering.
    pub web: bool,
    /// Whether its answer may be stored, and served when the forge cannot be read: an allowlist.
    pub is_cacheable_read: bool,
    /// Whether it is a write that the queue may carry.
    pub write: Write,
}

impl Plan {
    /// Whether the call goes to github.com as far as argv and the environment tell. The checkout's
    /// remotes may still name another host, and gh's own settings another default.
    pub fn host_is_github(&self) -> bool {
        self.host.as_deref().is_none_or(repo::is_github)
    }
}

/// The reads whose last known answer is worth having in an outage (#1749, #3195).
const CACHEABLE: [&str; 4] = ["issue list", "issue view", "label list", "search issues"];

/// Judges argv (without `gh` itself).
pub fn plan(args: &[OsString], env: &GhEnv) -> Plan {
    let call = argv::parse(args);
    let (kind, why) = kind(&call);
    let host = host(&call, env);
    let here = kind != Kind::Offline && host.as_deref().is_none_or(repo::is_github);
    let spends = if here { resource::spends(&call) } else { Spends::NOTHING };
    let offline = kind == Kind::Offline;
    Plan {
        kind,
        why,
        command: command(&call),
        resource: spends.main,
        extra: spends.extra,
        host,
        repo_flag: repo_flag(&call).map(OsStr::to_os_string),
        url_repo: url_repo(&call),
        reads_stdin: !offline && reads_stdin(&call),
        paginates: call.named == Named::Command("api") && call.switch("paginate"),
        web: call.switch("web"),
        is_cacheable_read: !offline && is_cacheable_read(&call),
        write: if offline { Write::None } else { write::judge(&call) },
    }
}

fn command(call: &Parsed<'_>) -> &'static str {
    match call.named {
        Named::Command("api") if resource::endpoint(call).is_some_and(|e| e.is_graphql()) => "api graphql",
        named => Some(named.path()).filter(|path| !path.is_empty()).unwrap_or("-"),
    }
}

fn kind(call: &Parsed<'_>) -> (Kind, &'static str) {
    if call.help {
        return (Kind::Offline, "prints a help page");
    }
    if makes_no_request(call) {
        return (Kind::Offline, "reads local files, or opens a URL it builds itself");
    }
    let row = match call.named {
        // gh alone prints its help page, `gh --version` its version; any other flag is refused.
        Named::Nothing => return (Kind::Offline, "no command: help or the version"),
        Named::Unknown { .. } => return (Kind::Streamed, "no command of gh: an extension or an alias"),
        Named::Command(path) | Named::Group(path) | Named::UnknownIn { group: path, .. } => {
            commands::row(path)
        }
    };
    match row.map(|row| row.3) {
        Some(Runs::Offline(why)) => (Kind::Offline, why),
        Some(Runs::Group) if matches!(call.named, Named::Group(_)) => (Kind::Offline, "prints a help page"),
        Some(Runs::Streams(why)) => (Kind::Streamed, why),
        Some(Runs::StreamsIf(when, why)) if when(call) => (Kind::Streamed, why),
        Some(Runs::Ends | Runs::StreamsIf(..)) if call.switch("web") => {
            (Kind::Streamed, "starts a browser that may keep its streams")
        }
        Some(Runs::Ends | Runs::StreamsIf(..)) => (Kind::Call, ""),
        Some(Runs::Group) | None => (Kind::Streamed, "no subcommand that this version knows"),
    }
}

/// Flags that keep an ordinary command off the network, in both versions.
fn makes_no_request(call: &Parsed<'_>) -> bool {
    match call.named {
        Named::Command("repo set-default") => call.switch("view") || call.switch("unset"),
        Named::Command("label list") => call.switch("web"),
        Named::Command(path) => path.starts_with("search ") && call.switch("web"),
        _ => false,
    }
}

fn is_cacheable_read(call: &Parsed<'_>) -> bool {
    let Named::Command(path) = call.named else { return false };
    CACHEABLE.contains(&path) && call.faults.is_empty() && !call.given("web")
}

fn repo_flag<'a>(call: &Parsed<'a>) -> Option<&'a OsStr> {
    call.value("repo").filter(|value| !value.is_empty() && acts_on_a_repo(call))
}

/// A URL operand beats everything else that names a repository.
fn url_repo(call: &Parsed<'_>) -> Option<Repo> {
    let path = call.named.path();
    if !["issue ", "pr ", "discussion "].iter().any(|group| path.starts_with(group)) {
        return None;
    }
    let text = call.operands.first()?.text.to_str()?;
    repo::Target::parse(text)?.repo().cloned()
}

/// The host that argv or the environment names: a URL first, then the flags, then the environment.
fn host(call: &Parsed<'_>, env: &GhEnv) -> Option<String> {
    let env_host = || env.host().map(str::to_ascii_lowercase);
    let hostname = || call.value("hostname").and_then(text).map(str::to_ascii_lowercase);
    if call.named == Named::Command("api") {
        let in_url = resource::endpoint(call).and_then(|endpoint| endpoint.host);
        return in_url.map(str::to_ascii_lowercase).or_else(hostname).or_else(env_host);
    }
    let named = hostname().or_else(|| operand_host(call));
    // A `-R` without a host is on the default one, whatever `GH_REPO` says.
    named
        .or_else(|| match repo_flag(call) {
            Some(flag) => text(flag).and_then(host_in),
            None if acts_on_a_repo(call) => env.repo().and_then(host_in),
            None => None,
        })
        .or_else(env_host)
}

fn text(value: &OsStr) -> Option<&str> {
    value.to_str().filter(|text| !text.is_empty())
}

/// The host in a value of `-R` or `GH_REPO`.
fn host_in(value: &str) -> Option<String> {
    Repo::parse(value, "").map(|repo| repo.host).filter(|host| !host.is_empty())
}

/// Whether the command reads `-R` and `GH_REPO` as the repository to act on: `search` reads `-R` as
/// part of the query, `project` as what to link.
fn acts_on_a_repo(call: &Parsed<'_>) -> bool {
    let path = call.named.path();
    argv::has_flag(path, "repo") && !path.starts_with("search ") && !path.starts_with("project ")
}

/// The host in an operand: any URL, and `HOST/OWNER/REPO` for the commands that take a repository.
fn operand_host(call: &Parsed<'_>) -> Option<String> {
    let path = call.named.path();
    let takes_text = ["search ", "alias ", "agent-task ", "extension "].iter().any(|g| path.starts_with(g));
    if takes_text || path.is_empty() {
        return None;
    }
    let text = call.operands.first()?.text.to_str()?;
    if let Some(rest) = repo::without_scheme(text) {
        let host = repo::host_of(rest.split(['/', '?', '#']).next()?)?.to_ascii_lowercase();
        let host = host.strip_prefix("gist.").map(str::to_string).unwrap_or(host);
        return Some(host);
    }
    if !path.starts_with("repo ") {
        return None;
    }
    host_in(text)
}

/// Whether gh reads stdin, by the command's own grammar. Streams of unknown commands are theirs.
fn reads_stdin(call: &Parsed<'_>) -> bool {
    let dash = |name: &str| call.value(name).is_some_and(|value| value == "-");
    let operand_dash = |at: usize| call.operands.get(at).is_some_and(|operand| operand.text == "-");
    match call.named.path() {
        "api" => dash("input") || call.values("field").any(is_field_from_stdin),
        "workflow run" => call.switch("json") || call.values("field").any(is_field_from_stdin),
        "auth login" => call.switch("with-token"),
        "secret set" | "variable set" => dash("env-file") || !(call.given("body") || call.given("env-file")),
        "gist create" => call.operands.is_empty() || call.operands.iter().any(|o| o.text == "-"),
        "gist edit" => operand_dash(1) || dash("add"),
        "ssh-key add" | "gpg-key add" | "repo deploy-key add" => operand_dash(0) || call.operands.is_empty(),
        "agent-task create" => dash("from-file"),
        _ => dash("body-file") || dash("notes-file"),
    }
}

/// `-F key=@-`.
fn is_field_from_stdin(field: &OsStr) -> bool {
    let field = field.as_encoded_bytes();
    field.iter().position(|byte| *byte == b'=').is_some_and(|at| &field[at + 1..] == b"@-")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
