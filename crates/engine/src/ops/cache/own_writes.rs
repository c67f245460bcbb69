//! What the queue knows about the issues that were read: a stored answer is marked with the writes of this
//! machine that are not in it.

use super::super::Context;
use super::super::queue::{self, View};
use crate::decide::argv;
use crate::decide::entry::{Entry, Status, parse_handle};
use crate::decide::fallback::Unread;
use crate::decide::repo::Target;
use std::ffi::OsString;

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

/// The writes of this machine that an answer does not show, which was asked for at `since_s`. `repo` is
/// that of the read (`host/owner/name`), where it has one.
pub fn unread(context: &Context, issues: Issues, repo: Option<&str>, since_s: u64) -> Unread {
    match queue::view(context) {
        Ok(view) if issues != Issues::None => of(&view, issues, repo, since_s),
        // A queue that cannot be read says so in its own status.
        _ => Unread::default(),
    }
}

fn of(view: &View, issues: Issues, repo: Option<&str>, since_s: u64) -> Unread {
    let number = |entry: &Entry| match entry.target.as_deref() {
        Some(target) => match parse_handle(target) {
            Some(seq) => view.number(seq),
            None => target.parse().ok(),
        },
        None => view.number(entry.seq),
    };
    let is_read = |entry: &&Entry| {
        let same_repo = repo.is_none_or(|repo| repo.eq_ignore_ascii_case(&entry.repo));
        same_repo && issues.include(number(entry))
    };
    let queued = view.loaded.found.iter().filter(|found| found.is_ours());
    let queued = queued.filter_map(|found| found.entry()).filter(is_read).count() as u64;
    let delivered = view.loaded.found.iter().filter_map(|found| found.entry()).filter(is_read);
    let newest = delivered
        .filter(|entry| entry.status == Status::Delivered)
        .filter_map(|entry| Some((entry.last_attempt_at.filter(|at| *at >= since_s)?, number(entry)?)))
        .max();
    Unread { queued, newer: newest.map(|(_, number)| number) }
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
