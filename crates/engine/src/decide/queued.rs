//! The command lines of a queued write: as it is kept, and step by step as it is delivered.
//!
//! What is kept is rebuilt from what was understood, never copied: `issue VERB [TARGET] --flag value …`,
//! each value a word of its own behind its flag, so that no value can be read as a flag.

use std::ffi::OsString;

use super::argv::{self, Value};
use super::entry::parse_handle;
use super::repo::{Repo, Target};
use super::write::{Action, Body, Write, WriteKind, judge_words};

/// A write, understood and ready to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Which of the five.
    pub kind: WriteKind,
    /// The issue: its number, or a handle (`BOB-Q3`); `None` for a create.
    pub target: Option<String>,
    /// The command line, its body's file named `-`.
    pub argv: Vec<String>,
    /// The word of `argv` that names the body's file.
    pub body_word: Option<usize>,
    /// Handles it needs, wherever they stand.
    pub needs: Vec<u32>,
}

/// One request (or a few that belong together) on the way to a delivered write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The new issue.
    Create,
    /// What gh sets on a new issue only once it exists: projects, assignees, type, relations.
    Extras,
    /// A comment, be it one that goes with a close or a reopen.
    Comment,
    /// The change of an issue.
    Edit,
    /// The close or the reopen itself.
    State,
}

impl Step {
    /// Every step.
    pub const ALL: [Step; 5] = [Step::Create, Step::Extras, Step::Comment, Step::Edit, Step::State];

    /// The name that the log uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Create => "create",
            Step::Extras => "extras",
            Step::Comment => "comment",
            Step::Edit => "edit",
            Step::State => "state",
        }
    }

    /// The step with this name.
    pub fn parse(name: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.as_str() == name)
    }
}

/// Flags of `issue create` that some version of gh applies only after the issue exists, and the flag
/// of `issue edit` that does the same.
const AFTERWARDS: &[(&str, &str)] = &[
    ("project", "add-project"),
    ("assignee", "add-assignee"),
    ("type", "type"),
    ("parent", "parent"),
    ("blocked-by", "add-blocked-by"),
    ("blocking", "add-blocking"),
];

/// The argument that `word` is, when it is exactly a handle: bare, or as the URL that a queued create
/// printed.
pub fn handle_in(word: &str) -> Option<u32> {
    if let Some(seq) = parse_handle(word) {
        return Some(seq);
    }
    if !word.starts_with("http") && !word.starts_with('#') {
        return None;
    }
    match Target::parse(word) {
        Some(Target::Handle(seq) | Target::HandleUrl(_, seq)) => u32::try_from(seq).ok(),
        _ => None,
    }
}

/// A write as it is kept, from the words of a call that [`judge_words`] found queueable.
///
/// # Errors
/// A word that an entry cannot hold.
pub fn queued(args: &[OsString], action: &Action) -> Result<Queued, &'static str> {
    let parsed = argv::parse(args);
    let mut argv = vec!["issue".to_string(), action.kind().as_str().to_string()];
    let target = action.on().map(|issue| plain_target(&issue.target));
    argv.extend(target.clone());
    for flag in parsed.flags.iter().filter(|flag| !matches!(flag.name, "body" | "body-file")) {
        match flag.value {
            Value::Switch(true) => argv.push(format!("--{}", flag.name)),
            Value::Switch(false) => argv.push(format!("--{}=false", flag.name)),
            Value::Text(text) => {
                let text = text.to_str().ok_or("a word of it is not UTF-8")?;
                argv.extend([format!("--{}", flag.name), text.to_string()]);
            }
        }
    }
    let body_word = action.body().map(|_| {
        argv.extend(["--body-file".to_string(), "-".to_string()]);
        argv.len() - 1
    });
    let needs = argv.iter().filter_map(|word| handle_in(word)).collect();
    Ok(Queued { kind: action.kind(), target, argv, body_word, needs })
}

fn plain_target(target: &Target) -> String {
    match target {
        Target::Number(number) | Target::Url(_, number) => number.to_string(),
        Target::Handle(seq) | Target::HandleUrl(_, seq) => format!("BOB-Q{seq}"),
    }
}

/// What an entry's command line says, read anew; `None` where it is none of the five.
pub fn reread(argv: &[String]) -> Option<(Queued, Action)> {
    let words: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let Write::Queueable(action) = judge_words(&words) else { return None };
    let queued = queued(&words, &action).ok()?;
    Some((queued, action))
}

/// The file that an entry's command line reads its body from.
pub fn body_file(action: &Action) -> Option<&str> {
    match action.body()? {
        Body::File(path, _) => path.to_str(),
        Body::Inline(..) | Body::Stdin(_) => None,
    }
}

/// Every repository that the command line itself names (`-R`, the operand's URL).
pub fn repos_named(argv: &[String], default_host: &str) -> Vec<Option<Repo>> {
    let words: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let parsed = argv::parse(&words);
    let flags = parsed.values("repo").map(|value| Repo::parse(value.to_str()?, default_host));
    let operand = |operand: &argv::Operand| Target::parse(operand.text.to_str()?)?.repo().cloned();
    flags.chain(parsed.operands.iter().filter_map(operand).map(Some)).collect()
}

/// Whether gh makes more than one writing request for it.
pub fn has_several_steps(queued: &Queued) -> bool {
    queued.kind == WriteKind::Edit || steps(queued).len() > 1
}

/// The steps of a write, in order. A create's extras are a step only when the create itself did not
/// come back clean.
pub fn steps(queued: &Queued) -> Vec<Step> {
    match queued.kind {
        WriteKind::Create if extras(queued).is_empty() => vec![Step::Create],
        WriteKind::Create => vec![Step::Create, Step::Extras],
        WriteKind::Comment => vec![Step::Comment],
        WriteKind::Edit => vec![Step::Edit],
        WriteKind::Close | WriteKind::Reopen => match comment(queued) {
            Some(_) => vec![Step::Comment, Step::State],
            None => vec![Step::State],
        },
    }
}

/// The text of `--comment`.
pub fn comment(queued: &Queued) -> Option<&str> {
    value(queued, "comment").filter(|text| !text.is_empty())
}

/// The title of a create.
pub fn title(queued: &Queued) -> Option<&str> {
    value(queued, "title")
}

fn value<'q>(queued: &'q Queued, name: &str) -> Option<&'q str> {
    pairs(queued).filter(|(flag, _)| *flag == name).last().and_then(|(_, value)| value)
}

/// Flags and values of the kept command line; it was built here, so it is read without the grammar.
fn pairs(queued: &Queued) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut words = queued.argv.iter().skip(if queued.target.is_some() { 3 } else { 2 }).peekable();
    let path = queued.kind.as_str();
    std::iter::from_fn(move || {
        let flag = words.next()?.strip_prefix("--").unwrap_or_default();
        match takes_value(path, flag) {
            true => Some((flag, words.next().map(String::as_str))),
            false => Some((flag, None)),
        }
    })
}

/// Every flag of the five that takes no value.
fn takes_value(_kind: &str, flag: &str) -> bool {
    !flag.contains('=') && !matches!(flag, "remove-milestone" | "remove-type" | "remove-parent" | "yes")
}

fn extras(queued: &Queued) -> Vec<String> {
    let mut argv = Vec::new();
    for (flag, text) in pairs(queued) {
        if let (Some((_, edit)), Some(text)) = (AFTERWARDS.iter().find(|(create, _)| *create == flag), text) {
            argv.extend([format!("--{edit}"), text.to_string()]);
        }
    }
    argv
}

/// What one step sends: gh's words, and whether the body goes to its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The words, without `gh`.
    pub argv: Vec<String>,
    /// The text that is fed in, where it is not the entry's body.
    pub text: Option<String>,
    /// Whether anything is fed in.
    pub feeds: bool,
}

/// The command of one step, for the issue `number` (a create has none yet) of `repo`. `resolve` turns a
/// handle among the words into its number.
pub fn command(
    queued: &Queued,
    step: Step,
    number: Option<u64>,
    repo: &Repo,
    resolve: &dyn Fn(u32) -> Option<u64>,
) -> Option<Command> {
    let issue =
        |verb: &str| -> Option<Vec<String>> { Some(vec!["issue".into(), verb.into(), number?.to_string()]) };
    let (mut argv, text) = match step {
        Step::Create => (vec!["issue".to_string(), "create".to_string()], None),
        Step::Extras => {
            let mut argv = issue("edit")?;
            argv.extend(extras(queued));
            (argv, None)
        }
        Step::Comment => (issue("comment")?, comment(queued).map(str::to_string)),
        Step::Edit => (issue("edit")?, None),
        Step::State => (issue(queued.kind.as_str())?, None),
    };
    if matches!(step, Step::Create | Step::Edit | Step::State) {
        for (flag, value) in pairs(queued) {
            if !matches!(flag, "repo" | "body-file" | "comment") {
                argv.push(format!("--{flag}"));
                argv.extend(value.map(str::to_string));
            }
        }
    }
    for word in &mut argv {
        if let Some(seq) = handle_in(word) {
            *word = resolve(seq)?.to_string();
        }
    }
    argv.extend(["--repo".into(), repo.to_string()]);
    let feeds = text.is_some()
        || (queued.body_word.is_some() && matches!(step, Step::Create | Step::Comment | Step::Edit));
    if feeds {
        argv.extend(["--body-file".into(), "-".into()]);
    }
    Some(Command { argv, text, feeds })
}

/// One line about a write, for people: `comment on #12`.
pub fn summary(kind: WriteKind, target: Option<&str>, title: Option<&str>) -> String {
    match (kind, target) {
        (WriteKind::Create, _) => format!("create {:?}", title.unwrap_or_default()),
        (WriteKind::Comment, Some(on)) => format!("comment on {}", named(on)),
        (kind, Some(on)) => format!("{} {}", kind.as_str(), named(on)),
        (kind, None) => kind.as_str().to_string(),
    }
}

/// `#12`, or the handle.
pub fn named(target: &str) -> String {
    if target.starts_with(|c: char| c.is_ascii_digit()) { format!("#{target}") } else { target.to_string() }
}

#[cfg(test)]
#[path = "queued_tests.rs"]
mod tests;
