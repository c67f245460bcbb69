//! The writes of this machine to the issues that were read: a stored answer is marked with those that are not
//! in it, be they queued, delivered by a replay, or made live.

use super::super::queue::{self, View};
use super::super::{Context, place};
use crate::decide::argv;
use crate::decide::entry::{Entry, Status};
use crate::decide::fallback::Unread;
use crate::decide::journal::Event;
use crate::decide::plan::Plan;
use crate::decide::repo::{Repo, Target};
use crate::error::Kind;
use crate::settings::{Lookup, Settings};
use crate::store::own_writes;
use std::ffi::OsString;
use std::path::Path;

/// The issues that a read shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issues {
    /// This one.
    One(u64),
    /// Whichever there are.
    Any,
    /// None.
    None,
}

impl Issues {
    /// The issues that this call reads.
    pub fn of(command: &str, args: &[OsString]) -> Issues {
        match command {
            "issue list" | "search issues" => Issues::Any,
            "issue view" => {
                let call = argv::parse(args);
                let operand = call.operands.first().and_then(|operand| operand.text.to_str());
                match operand.and_then(Target::parse) {
                    Some(Target::Number(number) | Target::Url(_, number)) => Issues::One(number),
                    _ => Issues::None,
                }
            }
            _ => Issues::None,
        }
    }

    fn include(self, number: Option<u64>) -> bool {
        match self {
            Issues::One(one) => number == Some(one),
            // A create that has not landed has no number yet, and is not in any list either.
            Issues::Any => true,
            Issues::None => false,
        }
    }
}

/// The writes of this machine that an answer does not show, which was asked for at `since_ns`. `repo` is
/// that of the read (`host/owner/name`), where it has one.
pub fn unread(context: &Context, issues: Issues, repo: Option<&str>, since_ns: u64) -> Unread {
    if issues == Issues::None {
        return Unread::default();
    }
    let known = match queue::view(context) {
        Ok(view) => of(&view, issues, repo, since_ns / 1_000_000_000),
        // Where there can be no queue, nothing is missing.
        Err(e) if e.kind() == Kind::Usage => Unread::default(),
        Err(_) => Unread { is_unknown: true, ..Unread::default() },
    };
    Unread { newer: live(context, issues, repo, since_ns / 1_000_000).or(known.newer), ..known }
}

/// The newest write to such an issue that went live.
fn live(context: &Context, issues: Issues, repo: Option<&str>, since_ms: u64) -> Option<u64> {
    let written = own_writes::since(context.settings.state.as_deref()?, since_ms).ok()?;
    let is_read = |w: &&own_writes::Written| {
        repo.is_none_or(|repo| repo.eq_ignore_ascii_case(&w.repo)) && issues.include(Some(w.number))
    };
    written.iter().rev().find(is_read).map(|w| w.number)
}

/// A write went live: notes the issues it wrote to. Those of a create or a comment stand in its answer, as
/// URLs.
pub fn landed(plan: &Plan, env: &impl Lookup, cwd: Option<&Path>, on: &[Target], answer: &[u8], at_ms: u64) {
    let Some(state) = Settings::read(env).state else { return };
    let words = std::str::from_utf8(answer).unwrap_or_default().split_whitespace();
    let shown: Vec<Target> =
        words.filter_map(Target::parse).filter(|target| matches!(target, Target::Url(..))).collect();
    let of_call = place::repo(plan, env, cwd, &place::known_hosts(env));
    let mut noted = Vec::new();
    for target in on.iter().chain(&shown) {
        let (repo, number) = match target {
            Target::Url(repo, number) => (Some(repo), *number),
            Target::Number(number) => (of_call.as_ref(), *number),
            Target::Handle(_) | Target::HandleUrl(..) => continue,
        };
        let Some(repo) = repo.map(Repo::key) else { continue };
        let written = own_writes::Written { at_ms, repo, number };
        if !noted.contains(&written) {
            // The write has landed; that a read is not marked with it is all that a full disk costs.
            let _ = own_writes::append(&state, &written);
            noted.push(written);
        }
    }
}

fn of(view: &View, issues: Issues, repo: Option<&str>, since_s: u64) -> Unread {
    let is_read = |entry: &&Entry| {
        let same_repo = repo.is_none_or(|repo| repo.eq_ignore_ascii_case(&entry.repo));
        same_repo && issues.include(view.issue_of(entry))
    };
    let queued = view.loaded.found.iter().filter(|found| found.is_ours());
    let queued = queued.filter_map(|found| found.entry()).filter(is_read).count() as u64;
    let delivered = view.loaded.found.iter().filter_map(|found| found.entry()).filter(is_read);
    let newest = delivered.filter(|entry| entry.status == Status::Delivered).filter_map(|entry| {
        Some((entry.last_attempt_at.filter(|at| *at >= since_s)?, view.issue_of(entry)?))
    });
    // What was dropped, cleared or set aside since, or has landed in part, stands in the log alone.
    let steps = view.log.lines.iter().filter_map(|line| match &line.event {
        Event::Delivered(url) | Event::Found(url) => match Target::parse(url) {
            Some(Target::Url(of, number)) => {
                let is_read = repo.is_none_or(|repo| repo.eq_ignore_ascii_case(&of.key()));
                let at_s = line.at_ms / 1_000;
                (is_read && at_s >= since_s && issues.include(Some(number))).then_some((at_s, number))
            }
            _ => None,
        },
        _ => None,
    });
    let newest = newest.chain(steps).max();
    let is_unknown = view.log_trouble.is_some();
    Unread { queued, newer: newest.map(|(_, number)| number), is_unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_reads_one_issue_a_list_any_and_labels_none() {
        let of = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let command = args[..2].iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ");
            Issues::of(&command, &args)
        };
        assert_eq!(of("issue view 12 --comments"), Issues::One(12));
        assert_eq!(of("issue view https://github.com/o/r/issues/7"), Issues::One(7));
        assert_eq!(of("issue view"), Issues::None);
        assert_eq!(of("issue list"), Issues::Any);
        assert_eq!(of("search issues x"), Issues::Any);
        assert_eq!(of("label list"), Issues::None);
    }
}
