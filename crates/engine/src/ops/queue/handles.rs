//! Handles in a command line: `BOB-Q3` stands for the issue that queued create 3 makes.

use std::ffi::OsString;

use super::View;
use crate::decide::entry::{self, Status, number_in_url};
use crate::decide::journal::{number_of, url_of};
use crate::decide::plan::Plan;
use crate::decide::queued::handle_in;
use crate::decide::repo::{GITHUB, Repo, Target};
use crate::ops::{Context, place};
use crate::store::queue::{Loaded, Log};

/// A command line with its handles resolved, and those that could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The words; a handle that has landed is its number.
    pub args: Vec<OsString>,
    /// Whether any word was changed.
    pub is_changed: bool,
    /// Handles whose create still waits.
    pub waiting: Vec<u32>,
    /// Handles whose create will not land, and why.
    pub lost: Vec<(u32, String)>,
}

/// Whether any word is a handle: asked of every call, so it looks at nothing else.
pub fn any_handle(args: &[OsString]) -> bool {
    args.iter()
        .any(|word| word.to_str().is_some_and(|word| word.contains("BOB-Q") && handle_in(word).is_some()))
}

/// Resolves the words of gh's argv that are exactly a handle (#1750), as `plan` says what the call is for. `None`
/// where the queue cannot be read.
pub fn resolve_call(context: &Context, plan: &Plan, args: &[OsString]) -> Option<Resolved> {
    let view = super::view(context).ok()?;
    let by_words = Plan { url_repo: None, ..plan.clone() };
    let repo = place::repo(&by_words, context, context.cwd.as_deref(), &place::known_hosts(context));
    Some(resolve_words(&view, args, repo.as_ref()))
}

/// Resolves words. `repo` is the repository that the call is for, URLs among its words left aside; a number of
/// another one is another issue.
fn resolve_words(view: &View, args: &[OsString], repo: Option<&Repo>) -> Resolved {
    let mut resolved =
        Resolved { args: args.to_vec(), is_changed: false, waiting: Vec::new(), lost: Vec::new() };
    for word in &mut resolved.args {
        let Some((text, seq)) = word.to_str().and_then(|text| Some((text, handle_in(text)?))) else {
            continue;
        };
        let home = home(view, seq);
        let target = Target::parse(text);
        let named = target.as_ref().and_then(Target::repo);
        let home = home.as_ref();
        let other = |repo: Option<&Repo>| home.filter(|home| repo.is_some_and(|repo| repo != *home));
        if let Some(home) = other(named.or(repo)) {
            resolved.lost.push((seq, format!("{} is for {home}, and this call is not", entry::id(seq))));
            continue;
        }
        if let Some(number) = view.number(seq) {
            *word = match other(repo) {
                // Only its URL says that it is not an issue of the call's own repository.
                Some(home) => home.issue_url(number).into(),
                None => number.to_string().into(),
            };
            resolved.is_changed = true;
            continue;
        }
        match view.loaded.found.iter().find(|found| found.seq == seq) {
            Some(found) if found.is_ours() => resolved.waiting.push(seq),
            Some(found) => {
                let status = found.entry().map_or("no entry any more", |entry| entry.status.as_str());
                resolved.lost.push((seq, format!("{} is {status}", entry::id(seq))));
            }
            None => resolved.lost.push((seq, format!("there is no {}", entry::id(seq)))),
        }
    }
    resolved
}

/// The repository whose issue a handle stands for: where it has landed, or where its entry goes.
fn home(view: &View, seq: u32) -> Option<Repo> {
    let landed = url_of(&view.log.lines, seq).and_then(Target::parse);
    if let Some(Target::Url(repo, _)) = landed {
        return Some(repo);
    }
    let found = view.loaded.found.iter().find(|found| found.seq == seq)?;
    Repo::parse(&found.entry()?.repo, GITHUB)
}

/// The number a handle stands for: from the log, or from the entry's own record.
pub(super) fn number(loaded: &Loaded, log: &Log, seq: u32) -> Option<u64> {
    number_of(&log.lines, seq).or_else(|| {
        let found = loaded.found.iter().find(|found| found.seq == seq)?;
        let record = found.record.as_ref().ok().filter(|record| record.is_sealed)?;
        let landed = record.entry.status == Status::Delivered;
        landed.then(|| record.entry.result.as_deref().and_then(number_in_url))?
    })
}
