//! Whether a call may be queued, and what of it is kept.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{checkout, place};
use crate::decide::argv;
use crate::decide::plan::GhEnv;
use crate::decide::queued::{self, Queued};
use crate::decide::repo::{Repo, gh_would_pick};
use crate::decide::write::{self, Action, WhyNot, Write, is_blank, judge_words};
use crate::error::{Error, Result};
use crate::ops::Context;
use crate::settings::{GH_HOST, GH_REPO, Lookup};
use crate::store::queue::BODY_MAX;
use crate::store::text;

/// A write that may be queued, with everything that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The write.
    pub queued: Queued,
    /// Its body, where it has one.
    pub body: Option<Vec<u8>>,
    /// The repository it goes to: this checkout's origin.
    pub repo: Repo,
}

/// Where the body of a call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// It has none, or it stands in argv.
    InArgv,
    /// A file, relative to the working directory.
    File(OsString),
    /// Standard input.
    Stdin,
}

/// Where the body of a queueable write comes from; `None` for any other call.
pub fn body_source(args: &[OsString]) -> Option<Body> {
    let Write::Queueable(action) = judge_words(args) else { return None };
    Some(match action.body() {
        Some(write::Body::File(path, _)) => Body::File(path.clone()),
        Some(write::Body::Stdin(_)) => Body::Stdin,
        Some(write::Body::Inline(..)) | None => Body::InArgv,
    })
}

/// Judges a call (without `gh`), handles among its words already resolved as far as they can be.
/// `given` is the body where it was read from standard input, or by whoever calls from JS.
///
/// # Errors
/// `EFORGE_NOT_QUEUED` with the reason, as a clause about the write.
pub fn admit(context: &Context, args: &[OsString], given: Option<&[u8]>) -> Result<Ready> {
    let action = match judge_words(args) {
        Write::Queueable(action) => action,
        Write::Refused { why, .. } => return Err(Error::not_queued(why.as_str())),
        Write::None => {
            let what = "it is not a queueable issue mutation (issue create, comment, edit, close or reopen)";
            return Err(Error::not_queued(what));
        }
    };
    let repo = repo(context, args, &action)?;
    let body = body(context, &action, given)?;
    if matches!(action, Action::Edit { .. }) && body.as_deref().is_some_and(is_blank) {
        return Err(Error::not_queued(WhyNot::EmptyEdit.as_str()));
    }
    if body.as_ref().is_some_and(|body| body.len() as u64 > BODY_MAX) {
        return Err(Error::not_queued(format!("its body is larger than {} MiB", BODY_MAX >> 20)));
    }
    let queued = queued::queued(args, &action).map_err(Error::not_queued)?;
    Ok(Ready { queued, body, repo })
}

fn body(context: &Context, action: &Action, given: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    let Some(source) = action.body() else { return Ok(None) };
    if let Some(given) = given {
        return Ok(Some(given.to_vec()));
    }
    match source {
        write::Body::Inline(text, _) => Ok(Some(text.as_encoded_bytes().to_vec())),
        write::Body::File(path, _) => {
            let path = context.cwd.as_deref().unwrap_or(Path::new("/")).join(path);
            let cannot = |why: String| Error::not_queued(format!("its body file cannot be read ({why})"));
            text::plain_file(&path, BODY_MAX + 1).map(Some).map_err(|e| cannot(e.to_string()))
        }
        write::Body::Stdin(_) => Err(Error::not_queued("its body was not captured")),
    }
}

/// The repository gh would pick, when that is what origin names.
fn repo(context: &Context, args: &[OsString], action: &Action) -> Result<Repo> {
    let no_checkout = |_| Error::not_queued("it was made outside a git checkout");
    let place = place(context).map_err(no_checkout)?;
    let checkout = checkout(context, context.cwd.as_deref().unwrap_or(&place.root));
    let origin = checkout
        .origin
        .as_ref()
        .ok_or_else(|| Error::not_queued("this checkout has no origin remote that names a repository"))?;
    if git_is_told_otherwise(context, &place.root) {
        return Err(Error::not_queued("git's environment variables may name another repository"));
    }
    let env = GhEnv { host: context.var(GH_HOST), repo: context.var(GH_REPO) };
    let parsed = argv::parse(args);
    let flag = parsed.value("repo").and_then(OsStr::to_str);
    let named = action.on().and_then(|issue| issue.target.repo());
    match gh_would_pick(flag, named, &env, &checkout.remotes, &checkout.known_hosts) {
        Some(picked) if picked == *origin => Ok(origin.clone()),
        Some(picked) => {
            Err(Error::not_queued(format!("it is for {picked}, and this checkout's origin is {origin}")))
        }
        None => {
            Err(Error::not_queued(format!("it is not known to be for this checkout's origin ({origin})")))
        }
    }
}

/// Whether the environment gives git other settings than the files we read.
fn git_is_told_otherwise(context: &Context, root: &Path) -> bool {
    let is_of_this_checkout = |dir: &OsStr| text::same_place(&root.join(dir), &root.join(".git"));
    context.env.iter().any(|(name, value)| match name.to_str() {
        Some("GIT_DIR" | "GIT_COMMON_DIR") => !is_of_this_checkout(value),
        Some("GIT_CONFIG_PARAMETERS") => !value.is_empty(),
        Some(name) if name.starts_with("GIT_CONFIG_KEY_") => {
            value.to_str().is_none_or(|key| ["remote.", "url.", "include"].iter().any(|p| key.starts_with(p)))
        }
        _ => false,
    })
}
