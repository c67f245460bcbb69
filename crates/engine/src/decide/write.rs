//! Whether a call is one of the five writes the queue may carry, and what it carries (#1750).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

use super::argv::{self, Given, Named, Operand, Parsed, Place, Value};
use super::repo::Target;

/// The five kinds of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteKind {
    /// `issue create`.
    Create,
    /// `issue comment`.
    Comment,
    /// `issue edit`.
    Edit,
    /// `issue close`.
    Close,
    /// `issue reopen`.
    Reopen,
}

impl WriteKind {
    /// Every kind.
    pub const ALL: [WriteKind; 5] =
        [WriteKind::Create, WriteKind::Comment, WriteKind::Edit, WriteKind::Close, WriteKind::Reopen];

    /// The name that entries and messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            WriteKind::Create => "create",
            WriteKind::Comment => "comment",
            WriteKind::Edit => "edit",
            WriteKind::Close => "close",
            WriteKind::Reopen => "reopen",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<WriteKind> {
        WriteKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// What the queue may do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// None of the five: never queued, and no word is said about it.
    None,
    /// One of the five that the queue carries when the forge cannot take it.
    Queueable(Action),
    /// One of the five that fails honestly.
    Refused {
        /// Which.
        kind: WriteKind,
        /// Why.
        why: WhyNot,
        /// The issues it names, as far as they can be read.
        targets: Vec<Target>,
    },
}

/// A write the queue may carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new issue.
    Create {
        /// Its title, not empty.
        title: OsString,
        /// Its body; may be empty.
        body: Body,
    },
    /// A comment.
    Comment {
        /// On this issue.
        on: Issue,
        /// Its body.
        body: Body,
    },
    /// A change of an issue.
    Edit {
        /// The issue.
        on: Issue,
        /// The new body, where it changes. It replaces the old one, so whoever reads a file or stdin
        /// has to refuse a blank one ([`is_blank`], #3186).
        body: Option<Body>,
    },
    /// A close.
    Close {
        /// The issue.
        on: Issue,
        /// `--comment`: posted first.
        comment: Option<OsString>,
    },
    /// A reopen.
    Reopen {
        /// The issue.
        on: Issue,
        /// `--comment`: posted first.
        comment: Option<OsString>,
    },
}

impl Action {
    /// Which of the five it is.
    pub fn kind(&self) -> WriteKind {
        match self {
            Action::Create { .. } => WriteKind::Create,
            Action::Comment { .. } => WriteKind::Comment,
            Action::Edit { .. } => WriteKind::Edit,
            Action::Close { .. } => WriteKind::Close,
            Action::Reopen { .. } => WriteKind::Reopen,
        }
    }

    /// The issue it acts on; a create has none yet.
    pub fn on(&self) -> Option<&Issue> {
        match self {
            Action::Create { .. } => None,
            Action::Comment { on, .. }
            | Action::Edit { on, .. }
            | Action::Close { on, .. }
            | Action::Reopen { on, .. } => Some(on),
        }
    }

    /// Where its body comes from, where it has one.
    pub fn body(&self) -> Option<&Body> {
        match self {
            Action::Create { body, .. } | Action::Comment { body, .. } => Some(body),
            Action::Edit { body, .. } => body.as_ref(),
            Action::Close { .. } | Action::Reopen { .. } => None,
        }
    }
}

/// The operand that names an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// What it points at.
    pub target: Target,
    /// Its word in argv.
    pub word: usize,
}

/// Where a body comes from, and the flag that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// `--body TEXT`.
    Inline(OsString, Place),
    /// `--body-file FILE`, relative to the working directory.
    File(OsString, Place),
    /// `--body-file -`.
    Stdin(Place),
}

/// Why one of the five is not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyNot {
    /// A flag this version does not know.
    UnknownFlag,
    /// gh itself would refuse the command line.
    Usage,
    /// `--web`, `--editor`, `--recover`: a person finishes it.
    Interactive,
    /// `comment --edit-last`, `--delete-last` or `--create-if-none`: later it is another comment.
    LastComment,
    /// `--attach`: the files are read at run time, and uploaded before the write.
    Attachment,
    /// A create without a title.
    NoTitle,
    /// A create or comment without a body.
    NoBody,
    /// An edit that names no change: gh asks.
    NoChange,
    /// An edit whose body is blank would wipe the issue's (#3186).
    EmptyEdit,
    /// More than one issue.
    SeveralTargets,
    /// No issue, or an operand that names none.
    NoTarget,
}

impl WhyNot {
    /// The reason, as it follows `NOT queued and NOT delivered: `.
    pub fn as_str(self) -> &'static str {
        match self {
            WhyNot::UnknownFlag => "it has a flag the queue does not know",
            WhyNot::Usage => "gh does not accept this command line",
            WhyNot::Interactive => "it opens a browser, an editor or a saved draft",
            WhyNot::LastComment => "the account's last comment may be another one by then",
            WhyNot::Attachment => "its attachments cannot be kept",
            WhyNot::NoTitle => "it has no title",
            WhyNot::NoBody => "it has no body",
            WhyNot::NoChange => "it names no change",
            WhyNot::EmptyEdit => "its body is empty and would replace the issue's",
            WhyNot::SeveralTargets => "it names more than one issue",
            WhyNot::NoTarget => "it names no issue",
        }
    }
}

/// Whether a body holds nothing but white space.
pub fn is_blank(body: &[u8]) -> bool {
    match std::str::from_utf8(body) {
        Ok(text) => text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty(),
        Err(_) => false,
    }
}

/// The same command line with its body read from `path` in place of wherever it came from; every
/// other word stays as it was typed. Without a body, argv as it is.
pub fn with_body_file(args: &[OsString], path: &OsStr) -> Vec<OsString> {
    let call = argv::parse(args);
    let bodies: Vec<Place> =
        call.flags.iter().filter(|f| matches!(f.name, "body" | "body-file")).map(|f| f.place).collect();
    let mut out = Vec::with_capacity(args.len() + 1);
    for (word, text) in args.iter().enumerate() {
        match bodies.iter().find(|place| place.word == word) {
            Some(place) => out.extend(other_shorts(text, *place).map(OsStr::to_os_string)),
            None if bodies.iter().any(|place| place.value == Some((word, 0))) => {}
            None => out.push(text.clone()),
        }
        // The last body wins, so that is where the file goes.
        if bodies.last().is_some_and(|place| place.word == word) {
            out.extend([OsString::from("--body-file"), path.to_os_string()]);
        }
    }
    out
}

/// The switches in front of a short flag in its word: `-w` of `-wbTEXT`.
fn other_shorts(text: &OsStr, place: Place) -> Option<&OsStr> {
    let bytes = text.as_bytes();
    let value_at = place.value.filter(|(word, _)| *word == place.word).map_or(bytes.len(), |(_, byte)| byte);
    let before = &bytes[..value_at];
    let before = before.strip_suffix(b"=").unwrap_or(before);
    let (_, before) = before.split_last()?;
    (before.len() > 1 && !before.starts_with(b"--")).then(|| OsStr::from_bytes(before))
}

/// Judges a command line (without `gh` itself).
pub fn judge_words(args: &[OsString]) -> Write {
    judge(&super::argv::parse(args))
}

/// Judges a call.
pub(super) fn judge(call: &Parsed<'_>) -> Write {
    let kind = match call.named {
        Named::Command("issue create") => WriteKind::Create,
        Named::Command("issue comment") => WriteKind::Comment,
        Named::Command("issue edit") => WriteKind::Edit,
        Named::Command("issue close") => WriteKind::Close,
        Named::Command("issue reopen") => WriteKind::Reopen,
        _ => return Write::None,
    };
    match action(kind, call) {
        Ok(action) => Write::Queueable(action),
        Err(why) => {
            let targets = call.operands.iter().filter_map(target).collect();
            Write::Refused { kind, why, targets }
        }
    }
}

fn action(kind: WriteKind, call: &Parsed<'_>) -> Result<Action, WhyNot> {
    if call.has_unknown_flag() {
        return Err(WhyNot::UnknownFlag);
    }
    if !call.faults.is_empty() {
        return Err(WhyNot::Usage);
    }
    if call.given_any(&["web", "editor", "recover"]) {
        return Err(WhyNot::Interactive);
    }
    if call.given_any(&["edit-last", "delete-last", "create-if-none"]) {
        return Err(WhyNot::LastComment);
    }
    if call.given("attach") {
        return Err(WhyNot::Attachment);
    }
    let comment = || call.value("comment").filter(|text| !text.is_empty()).map(OsStr::to_os_string);
    Ok(match kind {
        WriteKind::Create => create(call)?,
        WriteKind::Comment => {
            Action::Comment { on: issue(call)?, body: only_body(call)?.ok_or(WhyNot::NoBody)? }
        }
        WriteKind::Edit => edit(call)?,
        WriteKind::Close => Action::Close { on: issue(call)?, comment: comment() },
        WriteKind::Reopen => Action::Reopen { on: issue(call)?, comment: comment() },
    })
}

fn create(call: &Parsed<'_>) -> Result<Action, WhyNot> {
    if !call.operands.is_empty() {
        return Err(WhyNot::Usage);
    }
    let title = call.value("title").filter(|title| !title.is_empty()).ok_or(WhyNot::NoTitle)?;
    // A create lets the file win over the text.
    let body = body_file(call).or_else(|| body_text(call)).ok_or(WhyNot::NoBody)?;
    Ok(Action::Create { title: title.to_os_string(), body })
}

fn edit(call: &Parsed<'_>) -> Result<Action, WhyNot> {
    let on = issue(call)?;
    if call.names_no_change() {
        return Err(WhyNot::NoChange);
    }
    let body = only_body(call)?;
    match &body {
        Some(Body::Inline(text, _)) if is_blank(text.as_encoded_bytes()) => Err(WhyNot::EmptyEdit),
        _ => Ok(Action::Edit { on, body }),
    }
}

fn issue(call: &Parsed<'_>) -> Result<Issue, WhyNot> {
    match &call.operands[..] {
        [] => Err(WhyNot::NoTarget),
        [operand] => {
            let target = target(operand).ok_or(WhyNot::NoTarget)?;
            Ok(Issue { target, word: operand.word })
        }
        _ => Err(WhyNot::SeveralTargets),
    }
}

fn target(operand: &Operand<'_>) -> Option<Target> {
    Target::parse(operand.text.to_str()?)
}

/// Where a comment's or an edit's body comes from; gh refuses both flags together.
fn only_body(call: &Parsed<'_>) -> Result<Option<Body>, WhyNot> {
    match (body_file(call), body_text(call)) {
        (Some(_), Some(_)) => Err(WhyNot::Usage),
        (file, text) => Ok(file.or(text)),
    }
}

/// The last occurrence of a flag with its value, which wins.
fn last<'a>(call: &Parsed<'a>, name: &str) -> Option<(Given<'a>, &'a OsStr)> {
    let given = call.flags.iter().rev().find(|flag| flag.name == name)?;
    match given.value {
        Value::Text(text) => Some((*given, text)),
        Value::Switch(_) => None,
    }
}

fn body_text(call: &Parsed<'_>) -> Option<Body> {
    last(call, "body").map(|(given, text)| Body::Inline(text.to_os_string(), given.place))
}

/// An empty file name counts as none.
fn body_file(call: &Parsed<'_>) -> Option<Body> {
    let (given, path) = last(call, "body-file").filter(|(_, path)| !path.is_empty())?;
    if path == "-" {
        return Some(Body::Stdin(given.place));
    }
    Some(Body::File(path.to_os_string(), given.place))
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
