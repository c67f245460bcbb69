//! What every command of gh spends and how it runs: one row a command, and no default. A test holds
//! the rows to the flag table, so a command that a newer gh brings has to be judged before it passes.

use super::argv::Parsed;
use super::resource::Resource;

/// How a command runs.
#[derive(Clone, Copy)]
pub(super) enum Runs {
    /// It makes no request in any version, for this reason.
    Offline(&'static str),
    /// Only holds other commands: alone it prints its help page, and an unknown word under it is an
    /// unknown command.
    Group,
    /// Sends its requests and ends.
    Ends,
    /// Long-running, interactive, or not to be run twice, for this reason.
    Streams(&'static str),
    /// Streams where this holds, for this reason.
    StreamsIf(fn(&Parsed<'_>) -> bool, &'static str),
}

use Runs::{Ends, Group, Offline, Streams, StreamsIf};

/// Path, the quota it spends (the specification's rule: run, workflow, release, secret and variable
/// spend core, search spends search, auth and the offline commands nothing, all else graphql), what
/// else it spends (measured with gh 2.23.0 and 2.103.3), and how it runs.
pub(super) struct Row(
    pub(super) &'static str,
    pub(super) Option<Resource>,
    pub(super) &'static [(Resource, u8)],
    pub(super) Runs,
);

const G: Option<Resource> = Some(Resource::Graphql);
const C: Option<Resource> = Some(Resource::Core);
const S: Option<Resource> = Some(Resource::Search);
const NONE: &[(Resource, u8)] = &[];
const CORE: &[(Resource, u8)] = &[(Resource::Core, 1)];
const GRAPHQL: &[(Resource, u8)] = &[(Resource::Graphql, 1)];

/// The row of a command, by its path as gh names it.
pub(super) fn row(path: &str) -> Option<&'static Row> {
    ROWS.binary_search_by(|row| row.0.cmp(path)).ok().map(|at| &ROWS[at])
}

fn follows(call: &Parsed<'_>) -> bool {
    call.given("follow")
}

fn watches(call: &Parsed<'_>) -> bool {
    call.given("watch")
}

fn body_given(call: &Parsed<'_>) -> bool {
    call.given("body") || call.value("body-file").is_some_and(|file| !file.is_empty())
}

fn lacks_body(call: &Parsed<'_>) -> bool {
    let needs_none = call.given_any(&["delete-last", "delete"]);
    (!body_given(call) && !needs_none) || call.given("editor")
}

fn lacks_title_or_body(call: &Parsed<'_>) -> bool {
    let filled = call.given_any(&["fill", "fill-first", "fill-verbose"]);
    let written = call.given("title") && body_given(call);
    !(filled || written) || call.given_any(&["editor", "recover"])
}

fn names_no_change(call: &Parsed<'_>) -> bool {
    call.names_no_change()
}

fn develops_locally(call: &Parsed<'_>) -> bool {
    call.given_any(&["checkout", "worktree"])
}

fn copies_locally(call: &Parsed<'_>) -> bool {
    call.given_any(&["clone", "push", "source", "remote"]) || call.operands.is_empty()
}

fn has_no_operand(call: &Parsed<'_>) -> bool {
    call.operands.is_empty() && !call.given("view") && !call.given("unset")
}

/// The first operand is the tag; without it gh asks, and what follows it are files.
fn has_assets(call: &Parsed<'_>) -> bool {
    call.operands.len() != 1
}

/// Every command of both versions, sorted by path.
#[rustfmt::skip]
pub(super) static ROWS: &[Row] = &[
    Row("", None, NONE, Offline("no command: help or the version")),
    Row("__complete", None, NONE, Offline("the shell asks on every tab")),
    Row("__completeNoDesc", None, NONE, Offline("the shell asks on every tab")),
    Row("accessibility", None, NONE, Offline("prints a help page")),
    Row("actions", None, NONE, Offline("prints a help page")),
    Row("agent-task", G, NONE, Group),
    Row("agent-task create", G, NONE, StreamsIf(follows, "follows a log")),
    Row("agent-task list", G, NONE, Ends),
    Row("agent-task view", G, NONE, StreamsIf(follows, "follows a log")),
    Row("alias", None, NONE, Offline("named offline by the specification")),
    Row("alias delete", None, NONE, Offline("named offline by the specification")),
    Row("alias import", None, NONE, Offline("named offline by the specification")),
    Row("alias list", None, NONE, Offline("named offline by the specification")),
    Row("alias set", None, NONE, Offline("named offline by the specification")),
    // Its operand decides: see `resource::Endpoint`.
    Row("api", C, NONE, Ends),
    Row("attestation", G, NONE, Group),
    Row("attestation download", G, CORE, Ends),
    Row("attestation inspect", G, NONE, Ends),
    Row("attestation trusted-root", G, NONE, Ends),
    Row("attestation verify", G, CORE, Ends),
    Row("auth", None, NONE, Group),
    Row("auth git-credential", None, NONE, Offline("git asks it for a credential, from files")),
    Row("auth login", None, NONE, Streams("talks with a person, then waits for a browser")),
    Row("auth logout", None, NONE, Offline("reads or writes local files only")),
    Row("auth refresh", None, NONE, Streams("talks with a person, then waits for a browser")),
    Row("auth setup-git", None, NONE, Offline("reads or writes local files only")),
    Row("auth status", None, NONE, Ends),
    Row("auth switch", None, NONE, Offline("reads or writes local files only")),
    Row("auth token", None, NONE, Offline("reads or writes local files only")),
    Row("browse", G, CORE, Streams("starts a browser that may keep its streams")),
    Row("cache", G, NONE, Group),
    Row("cache delete", G, CORE, Ends),
    Row("cache list", G, CORE, Ends),
    Row("codespace", G, NONE, Group),
    Row("codespace code", G, CORE, Streams("moves data or holds a session")),
    Row("codespace cp", G, CORE, Streams("moves data or holds a session")),
    Row("codespace create", G, CORE, Streams("moves data or holds a session")),
    Row("codespace delete", G, CORE, Streams("moves data or holds a session")),
    Row("codespace edit", G, CORE, Streams("moves data or holds a session")),
    Row("codespace jupyter", G, CORE, Streams("moves data or holds a session")),
    Row("codespace list", G, CORE, Streams("moves data or holds a session")),
    Row("codespace logs", G, CORE, Streams("moves data or holds a session")),
    Row("codespace ports", G, CORE, Streams("moves data or holds a session")),
    Row("codespace ports forward", G, CORE, Streams("moves data or holds a session")),
    Row("codespace ports visibility", G, CORE, Streams("moves data or holds a session")),
    Row("codespace rebuild", G, CORE, Streams("moves data or holds a session")),
    Row("codespace select", G, CORE, Streams("moves data or holds a session")),
    Row("codespace ssh", G, CORE, Streams("moves data or holds a session")),
    Row("codespace stop", G, CORE, Streams("moves data or holds a session")),
    Row("codespace view", G, CORE, Streams("moves data or holds a session")),
    Row("completion", None, NONE, Offline("named offline by the specification")),
    Row("config", None, NONE, Offline("named offline by the specification")),
    Row("config clear-cache", None, NONE, Offline("named offline by the specification")),
    Row("config get", None, NONE, Offline("named offline by the specification")),
    Row("config list", None, NONE, Offline("named offline by the specification")),
    Row("config set", None, NONE, Offline("named offline by the specification")),
    Row("copilot", None, NONE, Streams("becomes another program")),
    Row("credits", G, CORE, Streams("animates its page")),
    Row("discussion", G, NONE, Group),
    Row("discussion comment", G, NONE, StreamsIf(lacks_body, "asks, or opens an editor")),
    Row("discussion create", G, NONE, StreamsIf(lacks_title_or_body, "asks, or opens an editor")),
    Row("discussion edit", G, NONE, StreamsIf(names_no_change, "asks what to change")),
    Row("discussion list", G, NONE, Ends),
    Row("discussion view", G, NONE, Ends),
    Row("environment", None, NONE, Offline("prints a help page")),
    Row("exit-codes", None, NONE, Offline("prints a help page")),
    Row("extension", None, NONE, Offline("named offline by the specification")),
    Row("extension browse", None, NONE, Offline("named offline by the specification")),
    Row("extension create", None, NONE, Offline("named offline by the specification")),
    Row("extension exec", None, NONE, Offline("named offline by the specification")),
    Row("extension install", None, NONE, Offline("named offline by the specification")),
    Row("extension list", None, NONE, Offline("named offline by the specification")),
    Row("extension remove", None, NONE, Offline("named offline by the specification")),
    Row("extension search", None, NONE, Offline("named offline by the specification")),
    Row("extension upgrade", None, NONE, Offline("named offline by the specification")),
    Row("formatting", None, NONE, Offline("prints a help page")),
    Row("gist", G, NONE, Group),
    Row("gist clone", G, NONE, Streams("runs git, whose progress is on stderr")),
    Row("gist create", G, CORE, Ends),
    Row("gist delete", G, CORE, Ends),
    Row("gist edit", G, CORE, Streams("opens an editor")),
    Row("gist list", G, NONE, Ends),
    Row("gist rename", G, CORE, Ends),
    Row("gist view", G, CORE, Ends),
    Row("gpg-key", G, NONE, Group),
    Row("gpg-key add", G, CORE, Ends),
    Row("gpg-key delete", G, CORE, Ends),
    Row("gpg-key list", G, CORE, Ends),
    Row("help", None, NONE, Offline("named offline by the specification")),
    Row("issue", G, NONE, Group),
    Row("issue artifact", G, NONE, Group),
    Row("issue artifact create", G, CORE, Ends),
    Row("issue artifact delete", G, CORE, Ends),
    Row("issue artifact download", G, CORE, Streams("moves files of any size")),
    Row("issue artifact edit", G, CORE, Ends),
    Row("issue artifact list", G, CORE, Ends),
    Row("issue artifact view", G, CORE, Ends),
    Row("issue close", G, NONE, Ends),
    Row("issue comment", G, NONE, StreamsIf(lacks_body, "asks, or opens an editor")),
    Row("issue create", G, NONE, StreamsIf(lacks_title_or_body, "asks, or opens an editor")),
    Row("issue delete", G, NONE, Ends),
    Row("issue develop", G, NONE, StreamsIf(develops_locally, "runs git")),
    Row("issue edit", G, NONE, StreamsIf(names_no_change, "asks what to change")),
    Row("issue list", G, NONE, Ends),
    Row("issue lock", G, NONE, Ends),
    Row("issue pin", G, NONE, Ends),
    Row("issue reopen", G, NONE, Ends),
    Row("issue status", G, NONE, Ends),
    Row("issue transfer", G, NONE, Ends),
    Row("issue unlock", G, NONE, Ends),
    Row("issue unpin", G, NONE, Ends),
    Row("issue view", G, NONE, Ends),
    Row("label", G, NONE, Group),
    Row("label clone", G, CORE, Ends),
    Row("label create", G, CORE, Ends),
    Row("label delete", G, CORE, Ends),
    Row("label edit", G, CORE, Ends),
    Row("label list", G, NONE, Ends),
    Row("licenses", None, NONE, Offline("prints texts it carries")),
    Row("mintty", None, NONE, Offline("prints a help page")),
    Row("org", G, NONE, Group),
    Row("org list", G, NONE, Ends),
    Row("pr", G, NONE, Group),
    Row("pr checkout", G, NONE, Streams("runs git, whose progress is on stderr")),
    Row("pr checks", G, NONE, StreamsIf(watches, "watches until the checks end")),
    Row("pr close", G, NONE, Ends),
    Row("pr comment", G, NONE, StreamsIf(lacks_body, "asks, or opens an editor")),
    Row("pr create", G, NONE, StreamsIf(lacks_title_or_body, "asks, or opens an editor")),
    Row("pr diff", G, CORE, Ends),
    Row("pr edit", G, NONE, StreamsIf(names_no_change, "asks what to change")),
    Row("pr list", G, NONE, Ends),
    Row("pr lock", G, NONE, Ends),
    Row("pr merge", G, NONE, Ends),
    Row("pr ready", G, NONE, Ends),
    Row("pr reopen", G, NONE, Ends),
    Row("pr revert", G, NONE, Ends),
    Row("pr review", G, NONE, StreamsIf(names_no_change, "asks what to change")),
    Row("pr status", G, NONE, Ends),
    Row("pr unlock", G, NONE, Ends),
    Row("pr update-branch", G, NONE, Ends),
    Row("pr view", G, NONE, Ends),
    Row("preview", None, NONE, Group),
    Row("preview prompter", None, NONE, Offline("a demonstration of prompts")),
    Row("project", G, NONE, Group),
    Row("project close", G, NONE, Ends),
    Row("project copy", G, NONE, Ends),
    Row("project create", G, NONE, Ends),
    Row("project delete", G, NONE, Ends),
    Row("project edit", G, NONE, Ends),
    Row("project field-create", G, NONE, Ends),
    Row("project field-delete", G, NONE, Ends),
    Row("project field-list", G, NONE, Ends),
    Row("project item-add", G, NONE, Ends),
    Row("project item-archive", G, NONE, Ends),
    Row("project item-create", G, NONE, Ends),
    Row("project item-delete", G, NONE, Ends),
    Row("project item-edit", G, NONE, Ends),
    Row("project item-list", G, NONE, Ends),
    Row("project link", G, NONE, Ends),
    Row("project list", G, NONE, Ends),
    Row("project mark-template", G, NONE, Ends),
    Row("project unlink", G, NONE, Ends),
    Row("project view", G, NONE, Ends),
    Row("reference", None, NONE, Offline("prints a help page")),
    Row("release", C, NONE, Group),
    Row("release create", C, NONE, StreamsIf(has_assets, "asks, or uploads files of any size")),
    Row("release delete", C, GRAPHQL, Ends),
    Row("release delete-asset", C, GRAPHQL, Ends),
    Row("release download", C, GRAPHQL, Streams("moves files of any size")),
    Row("release edit", C, GRAPHQL, Ends),
    Row("release list", C, GRAPHQL, Ends),
    Row("release upload", C, GRAPHQL, Streams("moves files of any size")),
    Row("release verify", C, NONE, Ends),
    Row("release verify-asset", C, NONE, Ends),
    Row("release view", C, GRAPHQL, Ends),
    Row("repo", G, NONE, Group),
    Row("repo archive", G, NONE, Ends),
    Row("repo autolink", G, NONE, Group),
    Row("repo autolink create", G, CORE, Ends),
    Row("repo autolink delete", G, CORE, Ends),
    Row("repo autolink list", G, CORE, Ends),
    Row("repo autolink view", G, CORE, Ends),
    Row("repo clone", G, NONE, Streams("runs git, whose progress is on stderr")),
    Row("repo create", G, NONE, StreamsIf(copies_locally, "asks, or runs git")),
    Row("repo credits", G, CORE, Streams("animates its page")),
    Row("repo delete", G, CORE, Ends),
    Row("repo deploy-key", G, NONE, Group),
    Row("repo deploy-key add", G, CORE, Ends),
    Row("repo deploy-key delete", G, CORE, Ends),
    Row("repo deploy-key list", G, CORE, Ends),
    Row("repo edit", G, CORE, StreamsIf(names_no_change, "asks what to change")),
    Row("repo fork", G, CORE, StreamsIf(copies_locally, "asks, or runs git")),
    Row("repo garden", G, CORE, Streams("runs git, whose progress is on stderr")),
    Row("repo gitignore", G, NONE, Group),
    Row("repo gitignore list", G, CORE, Ends),
    Row("repo gitignore view", G, CORE, Ends),
    Row("repo license", G, NONE, Group),
    Row("repo license list", G, CORE, Ends),
    Row("repo license view", G, CORE, Ends),
    Row("repo list", G, NONE, Ends),
    Row("repo read-dir", G, NONE, Ends),
    Row("repo read-file", G, CORE, Ends),
    Row("repo rename", G, CORE, Ends),
    Row("repo set-default", G, NONE, StreamsIf(has_no_operand, "asks, or runs git")),
    Row("repo sync", G, CORE, StreamsIf(has_no_operand, "asks, or runs git")),
    Row("repo unarchive", G, NONE, Ends),
    Row("repo view", G, CORE, Ends),
    Row("ruleset", G, NONE, Group),
    Row("ruleset check", G, CORE, Ends),
    Row("ruleset list", G, NONE, Ends),
    Row("ruleset view", G, CORE, Ends),
    Row("run", C, NONE, Group),
    Row("run cancel", C, NONE, Ends),
    Row("run delete", C, NONE, Ends),
    Row("run download", C, NONE, Streams("moves files of any size")),
    Row("run list", C, NONE, Ends),
    Row("run rerun", C, NONE, Ends),
    Row("run view", C, GRAPHQL, Ends),
    Row("run watch", C, NONE, Streams("watches until the run ends")),
    Row("search", S, NONE, Group),
    Row("search code", S, NONE, Ends),
    Row("search commits", S, NONE, Ends),
    Row("search issues", S, GRAPHQL, Ends),
    Row("search prs", S, GRAPHQL, Ends),
    Row("search repos", S, NONE, Ends),
    Row("secret", C, NONE, Group),
    Row("secret delete", C, NONE, Ends),
    Row("secret list", C, NONE, Ends),
    Row("secret set", C, NONE, Ends),
    Row("send-telemetry", None, NONE, Offline("gh's own reports about itself, not the forge")),
    Row("skill", G, NONE, Group),
    Row("skill install", G, CORE, Streams("asks, and moves files")),
    Row("skill list", G, NONE, Offline("reads or writes local files only")),
    Row("skill preview", G, CORE, Streams("asks, and moves files")),
    Row("skill publish", G, CORE, Streams("asks, and moves files")),
    Row("skill search", G, CORE, Ends),
    Row("skill update", G, CORE, Streams("asks, and moves files")),
    Row("ssh-key", G, NONE, Group),
    Row("ssh-key add", G, CORE, Ends),
    Row("ssh-key delete", G, CORE, Ends),
    Row("ssh-key list", G, CORE, Ends),
    Row("status", G, &[(Resource::Core, 2)], Ends),
    Row("telemetry", None, NONE, Offline("prints a help page")),
    Row("variable", C, NONE, Group),
    Row("variable delete", C, NONE, Ends),
    Row("variable get", C, NONE, Ends),
    Row("variable list", C, NONE, Ends),
    Row("variable set", C, NONE, Ends),
    Row("version", None, NONE, Offline("named offline by the specification")),
    Row("workflow", C, NONE, Group),
    Row("workflow disable", C, NONE, Ends),
    Row("workflow enable", C, NONE, Ends),
    Row("workflow list", C, NONE, Ends),
    Row("workflow run", C, NONE, Ends),
    Row("workflow view", C, NONE, Ends),
];
